"""What a handler may return: the authors' forms of decisions, and their words on the wire.

The state and the data an author returns are checked here, in the author's own process; what leaves is
JSON text that the daemon never structures.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from resumed.schemas import decisions, times
from resumed.schemas.approvals import ApprovalRule
from resumed.schemas.decisions import NewItem as NewItem  # authors import it from here
from resumed.schemas.errors import AuthorError
from resumed.schemas.job import Source

from . import faulttext, offers
from .calls import Sends
from .durations import seconds, span
from .effects import by, check_who, words
from .views import Item

Output = str | bytes | Path | None


@frozen
class Goto:
    """The job goes on at another job step; a new state is committed with it."""

    step: str
    state: Any = None


@frozen
class Each:
    """Item steps run from `start`, `parallel` at once, until each item settled; then the job goes to `then`.

    `items` is `job.items`, or new ones: names, or `NewItem(id=..., source=..., inputs=...)`.
    """

    items: Iterable[Item] | Iterable[str] | Iterable[NewItem]
    start: str
    then: str
    parallel: int = 1
    tries: int | None = None
    state: Any = None


@frozen
class Done:
    """The job is done."""

    state: Any = None


@frozen
class Next:
    """The item goes on at another item step, with small data: a mapping that JSON can spell."""

    step: str
    data: Mapping[str, Any] | None = None


@frozen
class Accept:
    """The item is done. `output` is text, bytes, or the path of a file in `job.scratch`."""

    output: Output = None
    name: str = "output"


@frozen
class Fail:
    """This cannot succeed: no further try is made."""

    reason: str


@frozen
class Hold:
    """A person must decide."""

    reason: str
    code: str = "author"


@frozen
class RetryAfter:
    """Not now: another try after `wait`, which uses up no limit.

    `wait` is a duration (`"30s"`, or seconds), or a moment with its zone (`"2026-11-29T03:00:00+01:00"`).
    """

    wait: str | float
    reason: str = ""


@frozen(init=False)
class Perform:
    """Effects are to happen; the job, or the item, goes on when each is settled and takes no slot before.

    With all of them landed it goes to `then` (empty: the item is done, or the job finishes), else to
    `otherwise` (empty: as each outcome means by itself). The step is given one outcome, or a tuple of them in
    this order. `sources` are compared just before each is sent; a path is pinned now. `back` is the step that
    a reviewer sends it back to. `state` is the job's, where a step of the job asks.
    """

    effects: tuple[Sends, ...]
    sources: tuple[Source | str | Path, ...] = ()
    then: str = ""
    otherwise: str = ""
    back: str = ""
    state: Any = None

    def __init__(
        self,
        *effects: Sends,
        sources: Iterable[Source | str | Path] = (),
        then: str = "",
        otherwise: str = "",
        back: str = "",
        state: Any = None,
    ) -> None:
        init: Any = self.__attrs_init__
        init(effects, tuple(sources), then, otherwise, back, state)


@frozen
class Review:
    """A draft of the item waits for a person, who accepts it, edits it, sends it back or refuses it.

    `output` is the draft: text, bytes, or a file in `job.scratch`. `by` is who may decide: a user, a group,
    several of them, or `by(...)`. Accepted as it was or edited it goes to `then`, which is given the text
    (empty: the item is done with it); sent back it comes to this step again, with `item.note`.
    """

    output: Output
    by: str | tuple[str, ...] | ApprovalRule = ()
    edit: bool = True
    then: str = ""
    decide_within: str | float = "7d"
    name: str = "output"
    data: Mapping[str, Any] | None = None
    show: str = ""


@frozen
class Ask:
    """A question to a person; `then` is given the answer, a text, one of `choices` where there are some.

    `of` is a user or a group, empty for the job's owner; after `within` any operator may answer, too.
    """

    text: str
    then: str
    choices: tuple[str, ...] = ()
    of: str = ""
    within: str | float | None = None
    state: Any = None


JobDecision = Goto | Each | Done | Fail | Hold | RetryAfter | Perform | Ask
ItemDecision = Next | Accept | Fail | Hold | RetryAfter | Perform | Review | Ask

JOB_FORMS = (Goto, Each, Done, Fail, Hold, RetryAfter, Perform, Ask)
ITEM_FORMS = (Next, Accept, Fail, Hold, RetryAfter, Perform, Review, Ask)


def json_text(value: Any, what: str) -> str:
    """The JSON text of an author's value; AuthorError when JSON cannot keep it exactly."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        text.encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise AuthorError(f"cannot keep {what}: {faulttext.clean(str(error), 300)}") from None
    if "\\u0000" in text:
        raise AuthorError(f"cannot keep {what}: a NUL character is not allowed")
    return text


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise AuthorError(f"cannot use {what}: expected text, got {type(value).__name__}")
    return faulttext.clean(value)


def _new_items(items: Iterable[Any], all_items: tuple[Item, ...]) -> tuple[NewItem, ...] | None:
    given = tuple(items)
    if given and all(isinstance(each, Item) for each in given):
        if {each.id for each in given} != {each.id for each in all_items}:
            raise AuthorError("cannot fan out: Each takes all of job.items, or new items, not some of them")
        return None
    made = tuple(NewItem(id=each) if isinstance(each, str) else each for each in given)
    for each in made:
        if not isinstance(each, NewItem):
            raise AuthorError(f"cannot fan out: expected a name or NewItem, got {type(each).__name__}")
    return made


def offer(output: Output, name: str, scratch: str) -> decisions.Offer | None:
    """The offer of an author's output."""
    if output is None:
        return None
    if isinstance(output, str):
        return offers.of_text(name, output, scratch)
    if isinstance(output, bytes):
        return offers.of_bytes(name, output, scratch)
    if isinstance(output, Path):
        return offers.of_file(name, str(output.absolute()))
    raise AuthorError(f"cannot accept an output: expected text, bytes or a path, got {type(output).__name__}")


def spell(given: Any, scratch: str, all_items: tuple[Item, ...] = ()) -> decisions.Decided:
    """The words on the wire for an author's decision."""
    if isinstance(given, Goto):
        return decisions.GoTo(step=given.step)
    if isinstance(given, Each):
        # An empty job.items is all there are, not an empty list of new ones.
        items = None if given.items is all_items else _new_items(given.items, all_items)
        return decisions.FanOut(
            start=given.start, then=given.then, items=items, parallel=given.parallel, tries=given.tries
        )
    if isinstance(given, Next):
        data = "{}" if given.data is None else json_text(dict(given.data), "an item's data")
        return decisions.NextStep(step=given.step, data=data)
    if isinstance(given, Accept):
        return decisions.Accepted(output=offer(given.output, _text(given.name, "a name"), scratch))
    if isinstance(given, Done):
        return decisions.Finished()
    if isinstance(given, Review):
        return _review(given, scratch)
    if isinstance(given, Ask):
        return _question(given)
    if isinstance(given, Fail):
        return decisions.Failed(reason=_text(given.reason, "a reason"))
    if isinstance(given, Hold):
        return decisions.HoldBack(code=_text(given.code, "a code"), reason=_text(given.reason, "a reason"))
    return _later(given)


def _later(given: RetryAfter) -> decisions.Later:
    reason = _text(given.reason, "a reason")
    if isinstance(given.wait, str):
        try:
            when = times.read(given.wait)
        except ValueError as error:
            raise AuthorError(f"cannot read a time: {error}") from None
        if when.wall is not None:
            return decisions.Later(seconds=0.0, until=when.wall, reason=reason)
    return decisions.Later(seconds=seconds(given.wait), reason=reason)


def _review(given: Review, scratch: str) -> decisions.Reviewing:
    draft = offer(given.output, _text(given.name, "a name"), scratch)
    if draft is None:
        raise AuthorError("cannot have a draft reviewed: its output is None")
    if not isinstance(given.edit, bool):
        raise AuthorError(f"cannot have a draft reviewed: edit is True or False, got {given.edit!r}")
    shown = _text(given.show, "what is shown")
    return decisions.Reviewing(
        draft=draft,
        rule=_rule(given),
        edit=given.edit,
        then=given.then,
        data="{}" if given.data is None else json_text(dict(given.data), "an item's data"),
        shown=offers.of_text("shown", shown, scratch) if shown else None,
    )


def _rule(given: Review) -> ApprovalRule:
    if isinstance(given.by, ApprovalRule):
        return given.by
    who = (given.by,) if isinstance(given.by, str) else given.by
    return by(*who, decide_within=given.decide_within, not_requester=False)


def _question(given: Ask) -> decisions.Asking:
    what = "cannot ask a question"
    words(given.choices, f"{what}: choices")
    if given.of:
        check_who(given.of, what)
    return decisions.Asking(
        text=_text(given.text, "a question"),
        then=given.then,
        choices=tuple(_text(each, "a choice") for each in given.choices),
        of=given.of,
        within=None if given.within is None else span(f"{what}: within", given.within),
    )
