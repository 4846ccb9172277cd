"""The configuration's `[approvals]`: what the administrator lets rules of approval say, as written."""

from collections.abc import Iterator

from attrs import frozen

from resumed.actors import hostnames
from resumed.actors.bounds import Bounds, Only
from resumed.schemas import durations
from resumed.schemas.jobfile import ID


@frozen(kw_only=True)
class Approvals:
    """The keys of the table; None where a key is absent."""

    valid_for: str | None = None
    decide_within: str | None = None
    quorum: int | None = None
    not_requester: bool | None = None
    same_user: bool | None = None
    only: tuple[Only, ...] | None = None


def problems_of(written: Approvals, path: str) -> Iterator[str]:
    """What is wrong with the table as written, each with its path."""
    for name in ("valid_for", "decide_within"):
        text = getattr(written, name)
        if text is None:
            continue
        try:
            if durations.read(text) <= 0:
                yield f"expected more than 0s, got {text!r} @ {path}.{name}"
        except ValueError as error:
            yield f"{error} @ {path}.{name}"
    if written.quorum is not None and not 1 <= written.quorum <= 100:
        yield f"expected 1 to 100, got {written.quorum} @ {path}.quorum"
    if written.not_requester is False:
        yield f"expected true: what a workflow says is not made looser here @ {path}.not_requester"
    if written.same_user is True:
        yield f"expected false: what a workflow says is not made looser here @ {path}.same_user"
    for place, each in enumerate(written.only or ()):
        yield from _problems_of_only(each, f"{path}.only[{place}]")


def _problems_of_only(only: Only, at: str) -> Iterator[str]:
    if not only.by:
        yield f"it names nobody: expected user:NAME or group:NAME @ {at}.by"
    for number, who in enumerate(only.by):
        kind, _, name = who.partition(":")
        if kind not in ("user", "group") or not name:
            yield f"expected user:NAME or group:NAME, got {who!r} @ {at}.by[{number}]"
    for key in ("tools", "workflows"):
        names = getattr(only, key)
        if names == ():
            yield f"it names none: leave the key out for all of them @ {at}.{key}"
    for number, name in enumerate(only.workflows or ()):
        if not ID.match(name):
            yield f"expected a workflow's name, got {name!r} @ {at}.workflows[{number}]"


def bounds(written: Approvals) -> Bounds:
    """The bounds that the table sets. ValueError for times that `problems_of` names."""
    return Bounds(
        valid_for=None if written.valid_for is None else durations.read(written.valid_for),
        decide_within=None if written.decide_within is None else durations.read(written.decide_within),
        quorum=written.quorum or 1,
        not_requester=bool(written.not_requester),
        same_user=written.same_user is not False,
        only=written.only or (),
    )


def unknown(bounds: Bounds) -> tuple[str, ...]:
    """Who is named and not known to this host, or why it cannot say; may take time."""
    named = tuple(dict.fromkeys(who for each in bounds.only for who in each.by))
    looked = hostnames.look(named, (), ())
    if looked.problem:
        return (looked.problem,)
    missing = [who for who in named if looked.numbers[who] is None]
    return tuple(f"{who} of approvals is not known to this host" for who in missing)
