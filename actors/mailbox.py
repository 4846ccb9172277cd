"""A job's mailbox: what has happened to it and is not yet committed; owned by the supervisor, not the actor.

Messages are taken in order and stay in hand until their commit is adopted. Reports of work in hand are
decided again by whoever comes next; a person's request in hand is answered, since it may be in force.
"""

from collections.abc import Callable

import anyio
from attrs import define, field

from resumed.schemas import events
from resumed.schemas.approvals import Facts
from resumed.schemas.errors import ResumedError
from resumed.schemas.refusal import Refusal
from resumed.schemas.snapshot import Entry, Snapshot

from .machine.verdict import Unchanged


@define(eq=False)
class Answered:
    """What a waiter gets: the law's verdict, and the snapshot it holds in."""

    verdict: Entry | Refusal | Unchanged
    snapshot: Snapshot


class Reply:
    """One waiter's place; filled exactly once."""

    def __init__(self) -> None:
        self._event = anyio.Event()
        self._value: Answered | ResumedError | None = None

    def fill(self, value: Answered | ResumedError) -> None:
        """Answer the waiter; a second answer is ignored."""
        if self._value is None:
            self._value = value
            self._event.set()

    async def wait(self) -> Answered:
        """The answer; raises it when it is an error."""
        await self._event.wait()
        if isinstance(self._value, ResumedError):
            raise self._value
        assert self._value is not None
        return self._value


@define(eq=False)
class Offered:
    """A slot of `worker` is offered to the job: it starts what is wanted, or gives the slot back.

    `facts`, by effect, are what was found out for those that may be let go in it.
    """

    worker: str
    facts: dict[str, Facts] = field(factory=dict)


@define(eq=False)
class Message:
    """One thing for the actor: an event of the law, or an offered slot; `reply` when somebody waits."""

    event: events.Event | Offered
    reply: Reply | None = None


class Mailbox:
    """Messages in order, and those in hand. An empty one is small: most of them are, most of the time."""

    __slots__ = ("_box", "in_hand", "reader", "rung")

    def __init__(self) -> None:
        self._box: list[Message] = []
        self.reader: Callable[[], None] | None = None
        """Called at each sign that there is something to do, while somebody waits for one."""
        self.rung = False
        """The actor is to look again at what is due."""
        self.in_hand: list[Message] = []

    def __len__(self) -> int:
        return len(self._box)

    def __bool__(self) -> bool:
        return bool(self._box)

    def put(self, message: Message) -> None:
        """Add a message and wake whoever waits for one."""
        self._box.append(message)
        if self.reader is not None:
            self.reader()

    def drop(self, message: Message) -> None:
        """Take a message out, undecided."""
        if message in self._box:
            self._box.remove(message)

    def wake(self) -> None:
        """Have the actor look again at what is due, at once or when it has done what it is doing."""
        self.rung = True
        if self.reader is not None:
            self.reader()

    def take(self, most: int = 64) -> list[Message]:
        """Up to `most` messages; they are in hand until `adopted` or `again`."""
        taken = self._box[: max(0, most - len(self.in_hand))]
        if taken:
            del self._box[: len(taken)]
            self.in_hand += taken
        return self.in_hand

    def keep_first(self) -> None:
        """Only the first message stays in hand; the others go back to the front."""
        first, rest = self.in_hand[:1], self.in_hand[1:]
        self.in_hand = first
        self._box[:0] = rest

    def adopted(self) -> None:
        """What was in hand is committed (or needed no commit)."""
        self.in_hand = []

    def again(self, error: ResumedError) -> list[Message]:
        """The commit failed or the actor died: requests get the error, reports go back to the front.

        Returns those reports.
        """
        back: list[Message] = []
        for message in self.in_hand:
            if message.reply is not None:
                message.reply.fill(error)
            else:
                back.append(message)
        self.in_hand = []
        self._box[:0] = back
        return back

    def offers(self) -> list[str]:
        """Take out the offered slots that are not decided yet; returns their workers."""
        found = [message.event.worker for message in self._box if isinstance(message.event, Offered)]
        if found:
            self._box = [each for each in self._box if not isinstance(each.event, Offered)]
        return found

    def refuse_requests(self, error: ResumedError) -> None:
        """Answer every waiting request with the error; reports stay."""
        kept = [message for message in self._box if message.reply is None]
        for message in self._box:
            if message.reply is not None:
                message.reply.fill(error)
        self._box = kept

    def left(self) -> list[Message]:
        """Everything that is undecided, in hand or not."""
        return [*self.in_hand, *self._box]

    def close(self, error: ResumedError) -> None:
        """Answer everyone: nobody will read this box again."""
        self.again(error)
        self.refuse_requests(error)
        self._box.clear()
