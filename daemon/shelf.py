"""The shelf: workflow files as they are in force, read from `workflows.d`; changes no file.

Each file stands for itself: a bad one is named in `problems` and the others go on. Whoever may write a
workflow file may run commands as the daemon's user, so a file that others may write is refused.
"""

import logging
import os
import re
import stat
from pathlib import Path

from attrs import frozen

from resumed.actors.worker import programs as worker_programs
from resumed.schemas import effectadvice, workflowfile
from resumed.schemas.errors import AuthorError, FaultyInputError
from resumed.schemas.job import Reader
from resumed.schemas.jobfile import JobFile
from resumed.schemas.limits import Limits, unenforced
from resumed.schemas.refusal import Refusal
from resumed.schemas.workflow import Contract, InputType, Programs

from . import judging, rights
from .desk import InputRow, WorkflowRow

SUFFIX = ".toml"
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}\Z")
MAX_BYTES = 1024 * 1024

log = logging.getLogger(__name__)


@frozen(kw_only=True)
class _Shelved:
    """One file as it was read: the marks it had, and what it says or what is wrong with it."""

    marks: tuple[int, ...]
    programs: Programs | None = None
    contract: Contract | None = None
    problem: str = ""


class WorkflowShelf:
    """The workflows of one folder. Readers may come from any thread; `reload` replaces all at once."""

    def __init__(self, folder: Path, home: Path | None = None, *, control_groups: bool = False) -> None:
        self.folder = folder
        self.control_groups = control_groups
        """Whether `limits.memory` and `pids` can be held; else a workflow that insists on them is refused."""
        self._home = home
        """Where a path must lie whose input names no roots; None where it may lie anywhere."""
        self._files: dict[str, _Shelved] = {}
        self._problem = ""

    def newest(self, name: str) -> Contract | None:
        """The newest enabled version of a workflow, None when there is none."""
        shelved = self._files.get(name)
        if shelved is None or shelved.programs is None or not shelved.programs.enabled:
            return None
        return shelved.contract

    def allowed(self, name: str) -> Limits | None:
        """What a workflow allows its jobs today; None when it is not in force."""
        found = self.newest(name)
        return None if found is None else found.limits

    def find(self, name: str, version: int) -> Contract | None:
        """That very version, enabled or not; None when it does not lie here."""
        shelved = self._files.get(name)
        if shelved is None or shelved.contract is None or shelved.contract.version != version:
            return None
        return shelved.contract

    def declared(self, name: str) -> Programs | None:
        """What the workflow's file says, enabled or not; None when none of that name can be read."""
        shelved = self._files.get(name)
        return None if shelved is None else shelved.programs

    def programs(self, name: str, version: int) -> Programs | None:
        """What the file of that version declares beside its contract: inputs, and where items come from."""
        shelved = self._files.get(name)
        if shelved is None or shelved.programs is None or shelved.programs.version != version:
            return None
        return shelved.programs

    def pick(self, name: str, version: int | None) -> Contract | Refusal:
        """The workflow a job file names: that version, or the newest enabled one."""
        found = self.newest(name) if version is None else self.find(name, version)
        if found is not None:
            return found
        wanted = name if version is None else f"{name}@{version}"
        shelved = self._files.get(name)
        why = "no such workflow is in force"
        if shelved is not None:
            why = shelved.problem or "it is not enabled"
            if shelved.programs is not None and version not in (None, shelved.programs.version):
                why = f"only version {shelved.programs.version} lies in {self.folder}"
        return Refusal(
            code="no_workflow",
            reason=f"cannot admit a job of {wanted}: {why}",
            commands=("resumectl workflows",),
        )

    def is_quick(self, contract: Contract) -> bool:
        """Whether `accept` looks at no path and matches no pattern."""
        programs = self.programs(contract.workflow, contract.version)
        return programs is None or not any(
            each.type is InputType.PATH or each.pattern for each in programs.inputs
        )

    def accept(self, contract: Contract, job: JobFile, what: str, reader: Reader | None = None) -> str:
        """The job's inputs with defaults, as JSON text, where the reader may have what they name.

        FaultyInputError begun by `what` otherwise.
        """
        programs = self.programs(contract.workflow, contract.version)
        if programs is None:
            raise FaultyInputError(what, (f"the workflow {contract.workflow} was taken away meanwhile",))
        if not self.control_groups and (lacking := unenforced(job.limits, contract.limits, "$.limits")):
            raise FaultyInputError(what, lacking)
        return judging.accepted(programs, job, what, reader)

    def contracts(self) -> list[Contract]:
        """The newest contracts in force, by name; a Python workflow's is not whole yet."""
        found = [self.newest(name) for name in sorted(self._files)]
        return [contract for contract in found if contract is not None]

    def names(self) -> tuple[str, ...]:
        """The names of all workflows in force, sorted."""
        return tuple(name for name in sorted(self._files) if self.newest(name) is not None)

    @property
    def problems(self) -> tuple[str, ...]:
        """Why files on the shelf are not in force, one sentence each."""
        found = (each.problem for _, each in sorted(self._files.items()))
        return tuple(problem for problem in (self._problem, *found) if problem)

    def rows(self) -> list[WorkflowRow]:
        """The readable workflows, as people are shown them."""
        return [_row(shelved.programs) for _, shelved in sorted(self._files.items()) if shelved.programs]

    def reload(self) -> bool:
        """Reads what changed since the last time; true when anything did."""
        try:
            _check_folder(self.folder)
            names = sorted(name for name in os.listdir(self.folder) if name.endswith(SUFFIX))
            problem = ""
        except (OSError, FaultyInputError) as error:
            names = []
            problem = str(error) if isinstance(error, FaultyInputError) else _unreadable(self.folder, error)
        files = {name.removesuffix(SUFFIX): self._look(name) for name in names if not name.startswith(".")}
        changed = files != self._files or problem != self._problem
        before = set(self.problems)
        self._files, self._problem = files, problem
        for said in self.problems:
            if said not in before:
                log.warning("A workflow was refused: %s", said)
        return changed

    def _look(self, name: str) -> _Shelved:
        known = self._files.get(name.removesuffix(SUFFIX))
        path = self.folder / name
        try:
            marks = _marks(os.stat(path))
            if known is not None and known.marks == marks:
                return known
        except OSError as error:
            return _Shelved(marks=(), problem=_unreadable(path, error))
        return _read(path, marks, self._home, self.control_groups)


def _read(path: Path, marks: tuple[int, ...], home: Path | None, control_groups: bool) -> _Shelved:
    name = path.name.removesuffix(SUFFIX)
    what = f"cannot use the workflow {path}"
    try:
        if not NAME.match(name):
            raise FaultyInputError(what, (f"expected a name like {NAME.pattern[:-2]}, got {name!r}",))
        programs = judging.rooted(workflowfile.read(_checked_bytes(path, what), name), home)
        if not control_groups and (lacking := unenforced(programs.limits, programs.limits, "$.limits")):
            raise FaultyInputError(what, lacking)
        contract = worker_programs.contract_of(programs, str(path.parent))
        for tool in contract.effects:
            if said := effectadvice.blind(tool):
                log.warning("The workflow %s has an effect %s with %s.", name, tool.tool, said)
        return _Shelved(marks=marks, programs=programs, contract=contract)
    except OSError as error:
        return _Shelved(marks=marks, problem=_unreadable(path, error))
    except (FaultyInputError, AuthorError) as error:
        return _Shelved(marks=marks, problem=str(error))
    except Exception as error:  # a reader's own fault must not take the other workflows with it
        log.exception("The workflow %s could not be read.", path)
        return _Shelved(marks=marks, problem=f"{what}: internal error: {type(error).__name__}: {error}")


def _checked_bytes(path: Path, what: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise FaultyInputError(what, ("it is no regular file",))
        _check_rights(found, what)
        raw = file.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise FaultyInputError(what, (f"it is longer than {MAX_BYTES} bytes",))
    return raw


def _check_folder(folder: Path) -> None:
    what = f"cannot use the workflows in {folder}"
    try:
        found = os.stat(folder)
    except FileNotFoundError:
        raise FaultyInputError(what, ("there is no such folder",)) from None
    _check_rights(found, what)


def _check_rights(found: os.stat_result, what: str) -> None:
    if said := rights.problem(found):
        raise FaultyInputError(what, (said,))


def _marks(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _unreadable(path: Path, error: OSError) -> str:
    return f"cannot read {path}: {error.strerror or error}"


def _row(programs: Programs) -> WorkflowRow:
    return WorkflowRow(
        name=programs.name,
        version=programs.version,
        enabled=programs.enabled,
        description=programs.description,
        steps=tuple(step.name for step in programs.steps),
        inputs=tuple(
            InputRow(name=each.name, type=each.type.value, required=each.default is None)
            for each in programs.inputs
        ),
        items_from=programs.items_from,
    )
