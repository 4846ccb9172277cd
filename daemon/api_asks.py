"""The socket's methods about people's decisions: what is asked, one call whole, and the decisions themselves.

Who decides is who the kernel says is at the other end; no field of a call says so. Whether somebody may
decide about this very call is the law's to judge, in the commit that records it.
"""

from collections.abc import Callable

from attrs import evolve, frozen

from resumed.actors.sight import Whose
from resumed.schemas import control, events
from resumed.schemas.askviews import AskKind, AskRow, AskView, ToolRow
from resumed.schemas.refusal import Refusal

from .api_jobs import MOST_ESCAPED, MOST_FIELDS, ToldAnswer
from .desk import Desk
from .grants import Role
from .peers import Peer


@frozen(kw_only=True)
class InboxAsked:
    """Which of the rows to begin with."""

    offset: int = 0


@frozen(kw_only=True)
class InboxAnswer:
    """Rows over all jobs in sight, oldest first.

    `next` is where the following piece begins, 0 after the last.
    """

    asks: tuple[AskRow, ...]
    total: int
    next: int
    you: str


@frozen(kw_only=True)
class SubjectAsked:
    """A job, and what in it: the id of a row of the inbox, an effect, a question, or the item they are about.

    With an empty subject it is the only thing that the job asks.
    """

    job: str
    subject: str = ""


@frozen(kw_only=True)
class AskedAnswer:
    """All that is shown before deciding."""

    ask: AskView


@frozen(kw_only=True)
class ApproveAsked:
    """Allow what `subject` names (as in `Asked`), which must bear this fingerprint.

    `shown` is the digest of what was shown. With `edit`, `text` takes the place of the draft. `record`
    and `request` as for Resume.
    """

    job: str
    fingerprint: str
    subject: str = ""
    shown: str = ""
    edit: bool = False
    text: str = ""
    reason: str = ""
    record: int = 0
    request: str = ""


@frozen(kw_only=True)
class DenyAsked:
    """Refuse what `subject` names, which must bear this fingerprint; or have it made anew, by this note."""

    job: str
    fingerprint: str
    subject: str = ""
    reason: str = ""
    record: int = 0
    request: str = ""


@frozen(kw_only=True)
class RevokeAsked:
    """Take a yes back before it is spent."""

    job: str
    subject: str = ""
    reason: str = ""
    record: int = 0
    request: str = ""


@frozen(kw_only=True)
class AnswerAsked:
    """Answer a question."""

    job: str
    answer: str
    subject: str = ""
    reason: str = ""
    record: int = 0
    request: str = ""


@frozen(kw_only=True)
class SettleAsked:
    """Say what became of an effect that may have left: it landed, under this `reference` of the target's own,
    or (with `absent`) it never arrived. `record` is the one that was looked at, and is needed."""

    job: str
    record: int
    subject: str = ""
    reference: str = ""
    absent: bool = False
    reason: str = ""
    request: str = ""


@frozen(kw_only=True)
class ToolsAnswer:
    """The tool contracts of all workflows in force."""

    tools: tuple[ToolRow, ...]
    problems: tuple[str, ...]
    """Why those of other workflows cannot be told."""


async def inbox(desk: Desk, peer: Peer, asked: InboxAsked) -> InboxAnswer:
    """Who must do what, over all jobs in sight, oldest first."""
    rows = [
        evolve(row, yours=_has_role(peer, row, whose) and _may_be_asked(peer, row))
        for row, whose in desk.jobs.inbox(peer.permit)
    ]
    rows.sort(key=lambda row: (row.asked, row.job, row.subject))
    piece = _fitting(rows[max(0, asked.offset) :])
    after = max(0, asked.offset) + len(piece)
    return InboxAnswer(
        asks=tuple(piece), total=len(rows), next=after if after < len(rows) else 0, you=peer.person.name
    )


def _has_role(peer: Peer, row: AskRow, whose: Whose) -> bool:
    return any(peer.permit.over(Role(role), whose) for role in row.role.split(" or "))


def _may_be_asked(peer: Peer, row: AskRow) -> bool:
    """Whether its rule does not plainly leave this user out. Who is in a group the host says, and is asked
    when a decision comes in."""
    if row.kind is AskKind.SETTLE:
        return True
    if row.not_requester and row.requester == peer.name:
        return False
    names = {f"user:{peer.name}", f"user:{peer.uid}"}
    return not row.whom or any(who in names or who.startswith("group:") for who in row.whom)


def _fitting(rows: list[AskRow]) -> list[AskRow]:
    """The first of these rows, as many as one message surely holds."""
    room = control.MAX_MESSAGE // 2
    for place, row in enumerate(rows):
        texts = (row.job, row.subject, row.item, row.what, row.otherwise, row.again, row.requester)
        room -= 2 * MOST_FIELDS + MOST_ESCAPED * sum(map(len, (*texts, *row.whom)))
        if room < 0 and place > 0:
            return rows[:place]
    return rows


async def ask(desk: Desk, _peer: Peer, asked: SubjectAsked) -> AskedAnswer | Refusal:
    """One call, draft or question, whole, as it is to be shown before anybody decides about it."""
    found = await desk.jobs.asked_of(asked.job, asked.subject)
    return found if isinstance(found, Refusal) else AskedAnswer(ask=found)


async def approve(desk: Desk, peer: Peer, asked: ApproveAsked) -> ToldAnswer | Refusal:
    """Allow an effect, or accept a draft, as it was shown."""
    if not asked.edit:
        return await _tell(
            desk, peer, asked, events.Approve, fingerprint=asked.fingerprint, shown=asked.shown
        )
    text = await desk.jobs.revision(asked.job, asked.subject, asked.text)
    if isinstance(text, Refusal):
        return text
    return await _tell(
        desk, peer, asked, events.Approve, fingerprint=asked.fingerprint, shown=asked.shown, text=text
    )


async def deny(desk: Desk, peer: Peer, asked: DenyAsked) -> ToldAnswer | Refusal:
    """Refuse an effect, or a draft."""
    return await _tell(desk, peer, asked, events.Deny, fingerprint=asked.fingerprint)


async def send_back(desk: Desk, peer: Peer, asked: DenyAsked) -> ToldAnswer | Refusal:
    """Have an effect or a draft made anew; the reason is the note for whoever makes it."""
    return await _tell(desk, peer, asked, events.SendBack, fingerprint=asked.fingerprint)


async def revoke(desk: Desk, peer: Peer, asked: RevokeAsked) -> ToldAnswer | Refusal:
    """Take a yes back before it is spent."""
    return await _tell(desk, peer, asked, events.Revoke)


async def answer(desk: Desk, peer: Peer, asked: AnswerAsked) -> ToldAnswer | Refusal:
    """Answer a question."""
    return await _tell(desk, peer, asked, events.Reply, answer=asked.answer)


async def settle(desk: Desk, peer: Peer, asked: SettleAsked) -> ToldAnswer | Refusal:
    """Say what became of an effect that may have left: a person's word, bound to the record looked at."""
    if asked.absent == bool(asked.reference):
        reason = f"cannot settle {asked.job}: expected either the target's reference, or that it is absent"
        return Refusal(code="settle", reason=reason, commands=(f"resumectl why {asked.job}",))
    if asked.record < 1:
        reason = f"cannot settle {asked.job}: expected the record that was looked at"
        return Refusal(code="settle", reason=reason, commands=(f"resumectl why {asked.job}",))
    reference = None if asked.absent else asked.reference
    return await _tell(desk, peer, asked, events.Settle, reference=reference)


async def tools(desk: Desk, _peer: Peer, _asked: object) -> ToolsAnswer:
    """What the workflows in force may write to other systems, and what holds of each."""
    found, problems = await desk.jobs.tools()
    return ToolsAnswer(tools=found, problems=problems)


async def _tell(
    desk: Desk,
    peer: Peer,
    asked: ApproveAsked | DenyAsked | RevokeAsked | AnswerAsked | SettleAsked,
    kind: Callable[..., events.Request],
    **more: object,
) -> ToldAnswer | Refusal:
    decision = kind(
        by=peer.person,
        subject=asked.subject,
        reason=asked.reason,
        record=asked.record,
        request=asked.request,
        **more,
    )
    told = await desk.jobs.tell(asked.job, decision)
    return told if isinstance(told, Refusal) else ToldAnswer(told=told)
