"""What a person may type now about one job: each command complete, with what it does in a few words; pure."""

import shlex

from resumed.schemas.askviews import AskKind
from resumed.schemas.job import ItemState, Status
from resumed.schemas.snapshot import Snapshot
from resumed.schemas.views import Possible

from . import whyasked
from .machine import asks, standing

STEERING = frozenset({"pause", "resume", "cancel", "retry", "skip", "reopen", "extend", "settle"})
"""Verbs that change a job."""
BOUND = frozenset({Status.HELD, Status.PAUSED})
"""Where a job stands still, so that a command can be bound to the record that it was read from."""
_STUCK = (ItemState.FAILED, ItemState.HELD)

MEANS = {
    "resume": "go on from where it stands",
    "retry": "give {stuck} a fresh set of tries",
    "skip": "leave {stuck} out, and go on",
    "extend": "let it use that much, and go on",
    "pause": "start nothing new; what runs may finish",
    "cancel": "end it; what is done stays done",
    "watch": "follow it until it ends or needs a person",
    "show": "its items, one by one",
    "why": "why it stands as it does",
    "logs": "what its programs said",
    "history": "all that happened to it",
    "quarantine show": "what is wrong, and where",
    "quarantine restore": "move it back, once its files hold again",
    "quarantine discard": "give it up for good; its id stays known",
    "quarantine list": "all that is set aside",
}
"""What each command does, by its verb."""

SURE = {"quarantine discard": " --yes"}
"""What a command that cannot be taken back asks for."""
LANDED = "it is there, under that reference"
ABSENT = (
    "it never arrived, and will not; it is sent again",
    "it never arrived, and will not; it is asked about anew",
)
NEVER = "it never arrived, and will not"
"""What the two ways to settle an effect say: that it landed; and that it is absent, where nobody is asked
whether it may go, where somebody is, and where its job is being ended."""
NOT_GONE = "say that nothing of it runs any more, and go on"


def possible(snapshot: Snapshot, status: Status) -> tuple[Possible, ...]:
    """The commands that would change or show something now; bound to its record where a job stands still."""
    found = [*whyasked.commands(snapshot)]
    for command in standing.commands(snapshot):
        verb = command.split()[1]
        if command.endswith(" ITEM"):
            command = f"{command.removesuffix('ITEM')}{shlex.quote(first_stuck(snapshot))}"
        means = _means(verb, command, snapshot)
        if verb == "settle":
            command, means = _settling(command, snapshot)
        if verb == "settle" or (verb in STEERING and status in BOUND):
            # What became of an effect is always said about the record that was looked at.
            command += f" --record {snapshot.sequence}"
        found.append(Possible(command=command, means=means))
    return tuple(found)


def _means(verb: str, command: str, snapshot: Snapshot) -> str:
    if verb == "resume" and snapshot.hold is not None and snapshot.hold.code == standing.NOT_GONE:
        return NOT_GONE
    return MEANS.get(verb, "").format(stuck=_stuck(snapshot))


def _settling(command: str, snapshot: Snapshot) -> tuple[str, str]:
    """The law's command, and what it says. What would pass for an option is named by its id in the inbox."""
    job, name, word = shlex.split(command)[2:5]
    effect = snapshot.effects[name]
    if name.startswith("-"):
        short = asks.short(job, AskKind.SETTLE, name, effect.dispatches)
        rest = command.rpartition(word)[2]
        command = f"resumectl settle {job} {short}" + f" {word}{rest}"
    means = ABSENT[effect.gate is not None] if word == "--absent" else LANDED
    if word == "--absent" and (snapshot.cancel is not None or snapshot.expiry is not None):
        means = NEVER
    return command, means


def _stuck(snapshot: Snapshot) -> str:
    count = sum(snapshot.items.count(state) for state in _STUCK)
    return "it" if count == 1 else f"these {count}" if count else "items"


def first_stuck(snapshot: Snapshot) -> str:
    """The first item that failed or is held, empty when none is."""
    return next((item.id for item in snapshot.items if item.state in _STUCK), "")


def aside(job: str, *, moved: bool) -> tuple[Possible, ...]:
    """What may be typed about a job that is set aside, moved or in its place."""
    more = ("quarantine restore", "quarantine discard") if moved else ()
    verbs = ("quarantine show", *more)
    return (
        *(
            Possible(command=f"resumectl {verb} {job}{SURE.get(verb, '')}", means=MEANS[verb])
            for verb in verbs
        ),
        Possible(command="resumectl quarantine list", means=MEANS["quarantine list"]),
    )
