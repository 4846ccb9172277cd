"""One peer's conversation: its calls are answered one after the other, in their order.

Nothing of a peer waits in an unbounded queue: one message in, one message out, each within its time.
"""

from contextlib import aclosing

import anyio
from anyio.lowlevel import checkpoint
from attrs import frozen

from resumed.schemas import control
from resumed.schemas.errors import FaultyInputError

from . import varlink
from .answers import Answers, faulty
from .connections import Connection
from .varlink import Call, OversizeError, Splitter

FIRST_BYTE = 5.0
IDLE = 600.0
WHOLE_MESSAGE = 30.0
SEND = 30.0
"""Seconds: from accept to the first byte, between calls, for one whole message, for taking an answer.

All but the last are kept by the doorman's looks, and so by as much longer as lies between two of them: a
timer for each message costs as much as reading it.
"""

_TOO_LONG = FaultyInputError("cannot read the call", (f"longer than {control.MAX_MESSAGE} bytes",))


@frozen
class Conversation:
    """A connection, the bytes of it that are not answered yet, and what answers."""

    connection: Connection
    answers: Answers
    splitter: Splitter

    async def hold(self) -> None:
        """Answers until the peer is gone, silent for too long, or breaks the protocol."""
        patience = FIRST_BYTE
        while (raw := await self._next_message(patience)) is not None:
            self.connection.busy = True
            if not await self._answer(raw):
                return
            self.connection.busy = False
            patience = IDLE

    async def _next_message(self, patience: float) -> bytes | None:
        """The next whole message; None when the peer is gone."""
        try:
            if (message := self.splitter.take()) is not None:
                await checkpoint()  # many that came together must not keep the loop
                return message
            begun = not self.splitter.empty
            self.connection.expect(WHOLE_MESSAGE if begun else patience)
            while await self._read_more():
                if (message := self.splitter.take()) is not None:
                    return message
                if not begun:
                    begun = True
                    self.connection.expect(WHOLE_MESSAGE)
        except OversizeError:
            await self._send(varlink.spell_fault(faulty(_TOO_LONG)))
        return None

    async def _read_more(self) -> bool:
        chunk = await self.connection.stream.receive()
        self.splitter.feed(chunk)
        return bool(chunk)

    async def _send(self, message: bytes) -> bool:
        sent = self.connection.stream.send_some(message)
        if sent == len(message):
            return True
        if sent >= 0:
            with anyio.move_on_after(SEND):
                return await self.connection.stream.send(message[sent:])
        return False

    async def _answer(self, raw: bytes) -> bool:
        """Answers one message; False when the connection is over."""
        try:
            call = varlink.read_call(raw)
        except FaultyInputError as error:
            await self._send(varlink.spell_fault(faulty(error)))
            return False
        if call.more:
            return await self._stream(call)
        message = await self.answers.one(call, self.connection.asker())
        return call.oneway or await self._send(message)

    async def _stream(self, call: Call) -> bool:
        """Sends answers that may go on for hours; it stops at once when the peer hangs up. False when the
        peer is gone."""
        said = False
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._stop_at_hang_up, tasks.cancel_scope)
            said = await self._say(call)
            tasks.cancel_scope.cancel()
        return said

    async def _say(self, call: Call) -> bool:
        async with aclosing(self.answers.to(call, self.connection.asker())) as answers:
            async for message in answers:
                if not call.oneway and not await self._send(message):
                    return False
                await checkpoint()
        return True

    async def _stop_at_hang_up(self, scope: anyio.CancelScope) -> None:
        """Reads on meanwhile, no more than one message's bound, to see the end."""
        while await self._read_more():
            if self.splitter.full:
                break
        scope.cancel()


async def hold(connection: Connection, answers: Answers) -> None:
    """Holds the whole conversation of one connection."""
    await Conversation(connection, answers, Splitter(control.MAX_MESSAGE)).hold()
