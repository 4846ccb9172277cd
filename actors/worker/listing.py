"""The items of a workflow of programs: listed, pinned and frozen by the job's first step.

A program that names items runs like any other of the worker's: contained, bounded, its words in the log.
"""

import os
from collections.abc import Iterator, Mapping

import anyio.to_thread
from attrs import evolve, frozen

from resumed.schemas import strict, templates
from resumed.schemas.decisions import Decided, FanOut, HoldBack, Later, NewItem, TryAgain
from resumed.schemas.frames import Run
from resumed.schemas.job import Item, Reader, Source
from resumed.schemas.jobfile import item_name_problem
from resumed.schemas.workflow import Programs

from . import faulttext, globbing, lists, program, reach, sources, surroundings
from .lists import Members, UnfitItemsError
from .runlog import RunLog
from .trial import Trial

MAX_FROZEN = 12 * 1024 * 1024
"""Bytes of all items' names, paths and inputs: with what stands beside them they fit a frame and a line."""
_BESIDE = 320  # a pin's fields and the punctuation around one item
_SHOWN = 5
_LATER, _HOLD = 75, 78  # EX_TEMPFAIL and EX_CONFIG of sysexits.h
_WAIT = 30.0


@frozen(kw_only=True)
class Origin:
    """Where the items of one job come from: `at` is a pattern or a list's path, its placeholders filled."""

    kind: str
    at: str = ""
    key: str = ""
    requested: bool = False
    """The requester chose it, or had a say in it: it is read as the requester."""

    def relative(self, path: str) -> str:
        """What `{source.rel}` is: the name that a path has by the pattern or the list, else its last part."""
        if self.kind == "glob":
            base = globbing.base_of(self.at).rstrip("/") + "/"
            if path.startswith(base):
                return path[len(base) :]
        elif self.kind in ("lines", "run") and not self.key:
            return lists.name_below(self.base, path)
        return os.path.basename(path)

    @property
    def base(self) -> str:
        """The folder that listed paths are called by: that of the list."""
        return os.path.dirname(self.at) or "/"


def origin_of(programs: Programs, run: Run, values: Mapping[str, str]) -> Origin:
    """What the job's own file says, else its workflow."""
    if run.items_glob:
        return Origin(kind="glob", at=run.items_glob, requested=True)
    if run.items_file:
        key = (programs.items_key or "id") if run.items_from == "jsonl" else ""
        return Origin(kind=run.items_from, at=run.items_file, key=key, requested=True)
    if run.items or run.items_from == "job":
        said = any(item.source is not None and item.source.requested for item in run.items)
        return Origin(kind="job", requested=said)
    # A program answers for what it names, whatever it was given.
    said = any(
        name.startswith("inputs.") for name in templates.names(programs.items_glob + programs.items_file)
    )
    if programs.items_from == "glob":
        # What an input says is text; a star in it is a star.
        plain = {name: globbing.escape(text) for name, text in values.items()}
        return Origin(kind="glob", at=templates.fill(programs.items_glob, plain), requested=said)
    key = programs.items_key or ("id" if programs.items_from == "jsonl" else "")
    at = templates.fill(programs.items_file, values)
    return Origin(kind=programs.items_from, at=at, key=key, requested=said)


async def freeze(programs: Programs, run: Run, values: Mapping[str, str], trial: Trial) -> Decided:
    """The decision of the step that lists: a fan-out over all items, or why there is none."""
    origin = origin_of(programs, run, values)
    printed = b""
    try:
        if origin.kind == "run":
            ended = await _listed_by(programs, run, values, trial)
            if not isinstance(ended, program.Ended):
                return ended
            printed = ended.stdout
        # In a thread, so that a `stop` is heard while large files are read; it only reads.
        found = await anyio.to_thread.run_sync(
            items_of, programs, origin, run, printed, abandon_on_cancel=True
        )
    except UnfitItemsError as error:
        return HoldBack(code="items", reason=faulttext.clean(str(error)))
    if found.left_out:
        with _log(run) as log:
            for folder in found.left_out:
                log.note(faulttext.clean(f"{folder} may not be listed, and was left out"))
    return FanOut(
        start=programs.steps[0].name,
        then="finish",
        items=found.items,
        parallel=min(step.parallel for step in programs.steps),
    )


def _log(run: Run) -> RunLog:
    return RunLog(run.log, program.stamped(f"{run.step} try {run.number}"))


async def _listed_by(
    programs: Programs, run: Run, values: Mapping[str, str], trial: Trial
) -> program.Ended | Decided:
    """The end of the program that prints the items, when it is a good one."""
    argv = tuple(templates.fill_word(word, values) for word in programs.items_run)
    call = program.Call(argv=argv, env=surroundings.usual(values), folder=run.scratch, keep=lists.MAX_BYTES)
    try:
        with _log(run) as log:
            ended = await program.run(call, log, trial)
    except OSError as error:
        reason = faulttext.clean(f"cannot start {argv[0]}: {error.strerror or error}")
        return TryAgain(reason=f"the items are not known: {reason}", code="cannot_start")
    if ended.status == 0:
        if ended.printed > lists.MAX_BYTES:
            raise UnfitItemsError(f"{argv[0]} printed {ended.printed} bytes, the most is {lists.MAX_BYTES}")
        return ended
    spelled = program.spell(ended.status)
    said = faulttext.clean(f"the items are not known: {argv[0]}: {spelled}: {ended.last_line}".rstrip(": "))
    if ended.status == _LATER:
        return Later(seconds=_WAIT, reason=said)
    if ended.status == _HOLD:
        return HoldBack(code="items", reason=said)
    return TryAgain(reason=said, code=spelled.replace(" ", "-"))


@frozen
class Found:
    """All items of a job, each source pinned, and the folders that may not be listed."""

    items: tuple[NewItem, ...]
    left_out: tuple[str, ...] = ()


def items_of(programs: Programs, origin: Origin, run: Run, printed: bytes = b"") -> Found:
    """All items of a job in a stable order; UnfitItemsError with the reasons why they cannot be frozen."""
    reader = run.reader if origin.requested else None
    return reach.run_as(reader, _items_of, programs, origin, run, printed, reader)


def _items_of(programs: Programs, origin: Origin, run: Run, printed: bytes, reader: Reader | None) -> Found:
    left_out: list[str] = []
    what = _spelled(programs, origin)
    try:
        if origin.at.startswith("/"):
            reach.check(globbing.base_of(origin.at) if origin.kind == "glob" else origin.at, reader)
        found = _bounded(_listed(programs, origin, run, printed, left_out), programs.items_max, what)
    except OSError as error:
        raise UnfitItemsError(f"cannot list {what}: {error.strerror or error}") from None
    if not found and not programs.allow_empty:
        more = f" ({', '.join(left_out[:_SHOWN])} may not be listed)" if left_out else ""
        raise UnfitItemsError(f"{what} gives no items{more}; allow_empty = true makes that a success")
    _check_once(found)
    unfit = [f"{item.id}: {said}" for item in found for said in _misplaced(programs, origin, item, reader)]
    return Found(_pinned(found, programs, origin, reader, unfit), tuple(left_out))


def _misplaced(programs: Programs, origin: Origin, item: NewItem, reader: Reader | None) -> Iterator[str]:
    """What is wrong with the paths among the inputs that a listed item brings; a job file's were judged."""
    if origin.key and item.inputs != "{}":
        given = strict.parse_own(item.inputs.encode(), "cannot read an item's inputs")
        for name, said in reach.problems(programs.inputs, given, reader):
            yield f"{said} @ {strict.step('$', name)}"


def _spelled(programs: Programs, origin: Origin) -> str:
    if origin.kind == "job":
        return "the job file"
    return programs.items_run[0] if origin.kind == "run" else origin.at


def _listed(
    programs: Programs, origin: Origin, run: Run, printed: bytes, left_out: list[str]
) -> Iterator[NewItem]:
    if origin.kind == "job":
        return _by_list(run.items)
    if origin.kind == "glob":
        return _by_glob(origin.at, programs.items_max, left_out)
    raw = printed if origin.kind == "run" else lists.read(_list_path(origin.at))
    members = None
    if origin.key:
        given = strict.parse_own(run.inputs.encode(), "cannot read a job's inputs")
        members = Members(key=origin.key, declared=programs.inputs, given=frozenset(given))
    return lists.items(raw, origin.base, members, _spelled(programs, origin))


def _list_path(path: str) -> str:
    if not path.startswith("/"):
        raise UnfitItemsError(f"the list {path} is no absolute path")
    return path


def _bounded(found: Iterator[NewItem], most: int, what: str) -> list[NewItem]:
    items: list[NewItem] = []
    size = 0
    for item in found:
        items.append(item)
        if len(items) > most:
            raise UnfitItemsError(f"{what} gives more than {most} items (items.max)")
        path = item.source.path if item.source is not None else ""
        size += _BESIDE + len((item.id + path + item.inputs).encode("utf-8", "surrogateescape"))
        if size > MAX_FROZEN:
            raise UnfitItemsError(f"the items of {what} take more than {MAX_FROZEN} bytes")
    return items


def _by_list(given: tuple[Item, ...]) -> Iterator[NewItem]:
    for item in given:
        yield NewItem(id=item.id, source=item.source, inputs=item.inputs)


def _by_glob(pattern: str, most: int, left_out: list[str]) -> Iterator[NewItem]:
    if not pattern.startswith("/") or ".." in pattern.split("/"):
        raise UnfitItemsError(f"the glob {pattern} is not absolute, or climbs")
    base = globbing.base_of(pattern)
    for path in globbing.files(pattern, most, left_out.append):
        try:
            path.encode("utf-8")
        except UnicodeEncodeError:
            shown = os.fsencode(path).decode("utf-8", "replace")
            raise UnfitItemsError(f"{shown}: a file name that is not UTF-8 cannot be an item") from None
        name = lists.name_below(base, path)
        if problem := item_name_problem(name):
            raise UnfitItemsError(f"{name[:80]!a}: {problem}")
        yield NewItem(id=name, source=Source(path=path))


def _check_once(items: list[NewItem]) -> None:
    seen: set[str] = set()
    twice = []
    for item in items:
        if item.id in seen:
            twice.append(item.id)
        seen.add(item.id)
    if twice:
        raise UnfitItemsError(f"more than one item is called {', '.join(map(repr, twice[:_SHOWN]))}")


def _pinned(
    items: list[NewItem], programs: Programs, origin: Origin, reader: Reader | None, unfit: list[str]
) -> tuple[NewItem, ...]:
    """The items with their sources pinned; UnfitItemsError for what cannot be, and what was unfit before."""
    pinned: list[NewItem] = []
    for item in items:
        source = item.source
        if source is None:
            pinned.append(item)
            continue
        if origin.kind != "job":
            source = evolve(source, requested=origin.requested)
        try:
            pinned.append(evolve(item, source=sources.pinned(source, programs.items_pin, reader)))
        except OSError as error:
            unfit.append(f"{item.id}: cannot read its source: {error.strerror or error}")
    if unfit:
        more = f" and {len(unfit) - _SHOWN} more" if len(unfit) > _SHOWN else ""
        raise UnfitItemsError("; ".join(unfit[:_SHOWN]) + more)
    return tuple(pinned)
