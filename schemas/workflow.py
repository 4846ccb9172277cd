"""What a workflow declares to the law: its steps, their limits, and the definition a worker runs it from."""

from enum import StrEnum

from attrs import field, frozen

from .ledger import ToolContract
from .limits import Limits, OnFailed
from .programeffects import ProgramEffect, ProgramReview

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where programs are looked for that a workflow names without a folder."""


class StepKind(StrEnum):
    """Whether a step is entered once for the job or once for each item."""

    JOB = "job"
    ITEM = "item"


class Pinning(StrEnum):
    """How sources are pinned: `auto` is `sha256` up to 64 MiB, and `stat` above it."""

    AUTO = "auto"
    SHA256 = "sha256"
    STAT = "stat"
    NONE = "none"


class OnChange(StrEnum):
    """What becomes of an item whose source is not what it was pinned as."""

    HOLD = "hold"
    """It is held for a person; what is done stays done."""
    REOPEN = "reopen"
    """It is pinned anew and begins again, also when it is done."""
    IGNORE = "ignore"
    """Nothing is compared."""


class OnUnknown(StrEnum):
    """What becomes of a job while nobody can tell whether one of its effects landed."""

    HOLD = "hold"
    """It is held; the target goes on being asked."""
    CONTINUE = "continue"
    """Other items go on; what depends on that effect does not."""


@frozen(kw_only=True)
class StepContract:
    """One named, versioned position and its limits; spans of time are seconds (defaults: INTERFACE.md)."""

    name: str
    kind: StepKind
    version: int = 1
    repeatable: bool = True
    timeout: float = 3600.0
    grace: float = 10.0
    tries: int = 3
    backoff_first: float = 30.0
    backoff_max: float = 900.0
    crashes: int = 3
    parallel: int | None = None
    """How many tries of it may be open at once in one job; None: as many as the fan-out allows."""


@frozen(kw_only=True)
class Contract:
    """A workflow as the law sees it; pinned in the job at admission, its sha256 is the contract digest.

    `entry` is `module:Class` for Python, empty for a workflow of programs; `definition` is the JSON text
    of the checked TOML file for a workflow of programs. `slots` is how many tries one worker may hold.
    """

    workflow: str
    version: int
    start: str
    steps: tuple[StepContract, ...]
    description: str = ""
    owner: str = ""
    entry: str = ""
    interpreter: str = ""
    definition: str = ""
    slots: int = 1
    passed: tuple[str, ...] = ()
    """Names of the daemon's own environment variables that its workers are given, beside the usual ones."""
    pin: Pinning = Pinning.AUTO
    on_change: OnChange = OnChange.HOLD
    limits: Limits = field(factory=Limits)
    """What the workflow allows; `memory`, `pids` and `failures_in_a_row` as the job's file tightened them."""
    on_failed: OnFailed = OnFailed.HOLD
    effects: tuple[ToolContract, ...] = ()
    """What it may write to other systems, and how."""
    on_unknown: OnUnknown = OnUnknown.HOLD

    def tool(self, name: str) -> ToolContract | None:
        """The contract of the tool of that name, or None."""
        for each in self.effects:
            if each.tool == name:
                return each
        return None

    def step(self, name: str) -> StepContract | None:
        """The step of that name, or None."""
        for each in self.steps:
            if each.name == name:
                return each
        return None


class ExitMeaning(StrEnum):
    """What a program's end says about its item."""

    DONE = "done"
    RETRY = "retry"
    LATER = "later"
    SKIP = "skip"
    FAIL = "fail"
    HOLD = "hold"


@frozen(kw_only=True)
class ExitRule:
    """One row of a step's `exit` table. `code` is an exit status, 0 to 255."""

    code: int
    means: ExitMeaning


EXITS = (
    ExitRule(code=0, means=ExitMeaning.DONE),
    ExitRule(code=75, means=ExitMeaning.LATER),  # EX_TEMPFAIL of sysexits.h
    ExitRule(code=78, means=ExitMeaning.HOLD),  # EX_CONFIG of sysexits.h
)
"""What exit statuses mean where a step's own table does not say; all others, and a signal, are a retry."""


@frozen(kw_only=True)
class ProgramStep:
    """One `[[step]]` of a workflow of programs. `run` is an argv list; times are seconds, `max` bytes."""

    name: str
    run: tuple[str, ...]
    each: bool = True
    """Whether it runs for each item; else once for the job, at its place among the steps."""
    prepare: tuple[str, ...] = ()
    """Run before `run` in the same folder; its failure fails the try."""
    verify: tuple[str, ...] = ()
    """Run after `run` ended well: the item is done only when this ends with 0, too."""
    stdin: str = ""
    exits: tuple[ExitRule, ...] = ()
    """What the step says of exit statuses; those it does not name mean what `EXITS` says."""
    result: str = "exit"
    """`exit`, or `json`: then the program must write a result file that holds."""
    output_from: str = ""
    """`stdout` or `file`; empty means `file` where `{output}` is used, else `stdout`."""
    output_max: int = 16 * 1024 * 1024
    publish: str = ""
    """The template of the path that the output is published at; nothing there is ever replaced."""
    keep: str = "copy"
    """`copy`, or `reference`: the published file is the output, and no copy is kept in the store."""
    dir: str = "fresh"
    """Where its programs run: `fresh` (the try's own folder), `item` (`{kept}`), or a path's template."""
    env_pass: tuple[str, ...] | None = None
    """Variables of the daemon's that its programs see; None: `LANG` and `TZ`, and `HOME` of a user's own."""
    env_set: dict[str, str] = field(factory=dict)
    """Variables and the templates of their values."""
    timeout: float = 3600.0
    silence: float = 0.0
    """Seconds without a byte of output that end the try; 0: it may be silent."""
    grace: float = 10.0
    tries: int = 3
    backoff_first: float = 30.0
    backoff_max: float = 900.0
    crashes: int = 3
    parallel: int = 1
    repeatable: bool = False
    secrets: tuple[str, ...] = ()
    """Names of the daemon's credentials that its programs are handed, by file."""
    review: ProgramReview | None = None


class InputType(StrEnum):
    """The kinds of input a workflow may declare."""

    STRING = "string"
    TEXT = "text"
    INT = "int"
    BOOL = "bool"
    DECIMAL = "decimal"
    DATE = "date"
    PATH = "path"
    CHOICE = "choice"


@frozen(kw_only=True)
class Input:
    """One declared input; `default` is JSON text, None when the input is required."""

    name: str
    type: InputType = InputType.STRING
    default: str | None = None
    choices: tuple[str, ...] = ()
    pattern: str = ""
    roots: tuple[str, ...] = ()
    max: int | None = None
    private: bool = False
    """Its value is shown nowhere; it is stored with the job like every other."""


@frozen(kw_only=True)
class PythonEntry:
    """Where a Python workflow's class is: its steps are what the class declares.

    `slots` None means the class's own; `folder`, an absolute path, is looked in first for the module.
    """

    entry: str
    interpreter: str = ""
    slots: int | None = None
    folder: str = ""


@frozen(kw_only=True)
class Programs:
    """A checked `workflows.d/NAME.toml`: what a worker needs to run it; with `python` no steps stand here."""

    name: str
    version: int
    steps: tuple[ProgramStep, ...]
    description: str = ""
    owner: str = ""
    enabled: bool = True
    inputs: tuple[Input, ...] = field(factory=tuple)
    items_from: str = "job"
    """`job` (the items of the job file), `glob`, `lines`, `jsonl` or `run`."""
    items_glob: str = ""
    items_file: str = ""
    """The list that `lines` and `jsonl` read, a template like the glob."""
    items_run: tuple[str, ...] = ()
    """The argv whose output `run` reads."""
    items_key: str = ""
    """The member of a JSON line that is the item's id; with `run` it says that the lines are JSON."""
    items_pin: Pinning = Pinning.AUTO
    items_on_change: OnChange = OnChange.HOLD
    items_max: int = 10_000
    allow_empty: bool = False
    python: PythonEntry | None = None
    limits: Limits = field(factory=Limits)
    on_failed: OnFailed = OnFailed.HOLD
    effects: tuple[ProgramEffect, ...] = ()
    on_unknown: OnUnknown = OnUnknown.HOLD
