"""The socket's wire and its bounds: any bytes in any pieces get one clear answer."""

import json
import os
import resource
import socket
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anyio import to_thread
from socket_kit import STATUS, FakeJobs, FakeShelf, control_call, hear, house, row, say, silent

from resumed.daemon import connections, conversation
from resumed.daemon.answers import Answers
from resumed.daemon.client import Client, whole_job
from resumed.daemon.desk import Desk
from resumed.daemon.peers import Peer
from resumed.daemon.socket import Seat
from resumed.daemon.varlink import Call, OversizeError, Splitter
from resumed.schemas import control
from resumed.schemas.job import Status
from resumed.schemas.views import ItemRow

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_splitter_takes_any_pieces(size: int) -> None:
    """Messages come out whole and in order, however their bytes arrive."""
    raw = b"one\0two\0\0three\0rest"
    splitter = Splitter(10)
    found = []
    for start in range(0, len(raw), size):
        splitter.feed(raw[start : start + size])
        while (message := splitter.take()) is not None:
            found.append(message)

    assert [b"one", b"two", b"", b"three"] == found
    assert not splitter.empty


def test_splitter_refuses_what_is_too_long() -> None:
    """A message past the bound is refused whether or not its end has come."""
    for raw in (b"x" * 11, b"x" * 11 + b"\0"):
        splitter = Splitter(10)
        splitter.feed(raw)

        with pytest.raises(OversizeError):
            splitter.take()


async def test_answers_byte_by_byte(tmp_path: Path) -> None:
    """A call that comes in single bytes is answered as one that comes whole."""
    async with house(tmp_path) as there, await there.connect() as stream:
        for byte in json.dumps(STATUS).encode() + b"\0":
            await stream.send(bytes([byte]))
        answers = await hear(stream)

    assert "keeper" == answers[0]["parameters"]["house"]["containment"]


async def test_answers_calls_sent_together_in_their_order(tmp_path: Path) -> None:
    """Calls that arrive in one piece are answered one after the other."""
    names = ["Status", "List", "Workflows"]
    async with house(tmp_path) as there, await there.connect() as stream:
        calls = [json.dumps({"method": f"{control.INTERFACE}.{name}"}).encode() for name in names]
        await stream.send(b"\0".join(calls) + b"\0")
        answers = await hear(stream, 3)

    assert ["house", "jobs", "workflows"] == [next(iter(each["parameters"])) for each in answers]


BAD_MESSAGES = {
    "no JSON": b"hello",
    "not UTF-8": b'{"method": "\xff"}',
    "a list": b"[]",
    "a key twice": b'{"method": "a.B", "method": "a.C"}',
    "no method": b"{}",
    "method is a number": b'{"method": 1}',
    "more is a text": b'{"method": "org.resumed.Control.Status", "more": "true"}',
    "unknown key": b'{"method": "org.resumed.Control.Status", "uid": 0}',
    "NaN": b'{"method": "org.resumed.Control.Status", "parameters": {"x": NaN}}',
    "a deep nest": b'{"method": "a.B", "parameters": {"x": ' + b"[" * 2000 + b"]" * 2000 + b"}}",
    "nothing": b"",
}


@pytest.mark.parametrize("case", BAD_MESSAGES)
async def test_bad_message_is_answered_and_ends_the_connection(case: str, tmp_path: Path) -> None:
    """What is no call gets one error answer by name, then the connection ends; the next one works."""
    async with house(tmp_path) as there:
        async with await there.connect() as stream:
            await say(stream, BAD_MESSAGES[case])
            answers = await hear(stream, 2)
        after = await there.call(STATUS)

    assert [control.ERROR_FAULTY] == [each["error"] for each in answers]
    assert answers[0]["parameters"]["problems"]
    assert "parameters" in after


async def test_oversized_message_is_refused_before_it_is_whole(tmp_path: Path) -> None:
    """A message past the bound is refused at the bound, not kept until its end."""
    async with house(tmp_path) as there, await there.connect() as stream:
        try:
            for _ in range(control.MAX_MESSAGE // 65536 + 2):
                await stream.send(b"x" * 65536)
        except anyio.BrokenResourceError:
            pass
        with anyio.move_on_after(5):
            try:
                answers = await hear(stream)
            except anyio.BrokenResourceError:  # our own unread bytes may have reset it
                answers = []
        after = await there.call(STATUS)

    assert all(control.ERROR_FAULTY == each["error"] for each in answers)
    assert "parameters" in after


ERRORS = {
    "unknown method": (control_call("Frobnicate"), "org.varlink.service.MethodNotFound"),
    "unknown interface": ({"method": "org.example.Ping"}, "org.varlink.service.InterfaceNotFound"),
    "no interface": ({"method": "Status"}, "org.varlink.service.InterfaceNotFound"),
    "unknown service method": (
        {"method": "org.varlink.service.Reboot"}, "org.varlink.service.MethodNotFound",
    ),
    "upgrade": ({**STATUS, "upgrade": True}, "org.varlink.service.InvalidParameter"),
    "watch without more": (control_call("Watch", job="attic"), "org.varlink.service.ExpectedMore"),
    "unknown job": (control_call("Show", job="cellar"), control.ERROR_NO_SUCH),
    "unknown item": (control_call("Output", job="attic", item="z"), control.ERROR_NO_SUCH),
    "bad file": (control_call("Submit", file="{}"), control.ERROR_FAULTY),
    "failed sync": (control_call("Pause", job="attic", reason="disk"), control.ERROR_UNKNOWN_OUTCOME),
    "a fault of ours": (control_call("Pause", job="attic", reason="crash"), control.ERROR_UNKNOWN_OUTCOME),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
async def test_error_has_its_name(case: str, tmp_path: Path) -> None:
    """Each way a call can fail has its own error name, and the connection goes on."""
    message, name = ERRORS[case]
    async with house(tmp_path) as there, await there.connect() as stream:
        await say(stream, message)
        await say(stream, STATUS)
        answers = await hear(stream, 2)

    assert [name, None] == [each.get("error") for each in answers]


WRONG = {
    "the text false": "false",
    "the text no": "no",
    "zero": 0,
    "one": 1,
    "an object": {},
    "a denial": {"status": "denied"},
    "a list": [],
    "a number as text": "3",
    "a fraction": 3.7,
}


@pytest.mark.parametrize("case", WRONG)
async def test_wrong_type_is_never_coerced(case: str, tmp_path: Path) -> None:
    """A yes that is not `true` is refused with the field named, and no job is told anything (C27)."""
    async with house(tmp_path) as there:
        answer = await there.call(control_call("Pause", job="attic", now=WRONG[case]))
        asked = there.jobs.asked

    assert control.ERROR_FAULTY == answer["error"]
    assert "@ $.now" in answer["parameters"]["problems"][0]
    assert [] == asked


LISTS = {
    "a text": "abc",
    "a number": 3,
    "an object": {"a": 1},
    "a list of numbers": [1],
    "null inside": [None],
}


@pytest.mark.parametrize("case", LISTS)
async def test_wrong_list_is_never_coerced(case: str, tmp_path: Path) -> None:
    """Items that are no list of texts are refused with the field named (C27)."""
    async with house(tmp_path) as there:
        answer = await there.call(control_call("Retry", job="attic", items=LISTS[case]))
        asked = there.jobs.asked

    assert control.ERROR_FAULTY == answer["error"]
    assert "@ $.items" in answer["parameters"]["problems"][0]
    assert [] == asked


async def test_unknown_parameter_is_refused(tmp_path: Path) -> None:
    """A parameter nobody knows is refused, not dropped."""
    async with house(tmp_path) as there:
        answer = await there.call(control_call("Pause", job="attic", nwo=True))

    assert ("unknown key 'nwo' @ $",) == tuple(answer["parameters"]["problems"])


async def test_requester_is_the_peer(tmp_path: Path) -> None:
    """Who asked is the kernel's word about the peer."""
    async with house(tmp_path) as there:
        await there.call(control_call("Pause", job="att", reason="tea", now=None))
        asked = there.jobs.asked

    assert [(os.geteuid(), "socket", "tea", False)] == [
        (each.by.uid, each.by.via, each.reason, each.now) for each in asked
    ]


async def test_watch_tells_each_change_until_the_end(tmp_path: Path) -> None:
    """A watch answers now, at each change, and ends with the job."""
    async with house(tmp_path) as there, await there.connect() as stream:
        await say(stream, {**control_call("Watch", job="attic"), "more": True})
        answers = await hear(stream)
        there.jobs.move(Status.COMPLETED)
        answers += await hear(stream)
        await say(stream, STATUS)
        answers += await hear(stream)

    assert [True, None, None] == [each.get("continues") for each in answers]
    assert "completed" == answers[1]["parameters"]["row"]["status"]


async def test_call_right_behind_a_stream_is_not_lost(tmp_path: Path) -> None:
    """A call that arrives while the last answer of a stream goes out is the next one, byte for byte."""
    async with house(tmp_path) as there, await there.connect() as stream:
        there.jobs.row = row(5, Status.COMPLETED)
        for _ in range(200):
            await say(stream, {**control_call("Watch", job="attic"), "more": True})
            answers = await hear(stream)
            await say(stream, STATUS)
            with anyio.fail_after(5):
                answers += await hear(stream)

            assert ["row", "house"] == [next(iter(each["parameters"])) for each in answers]


async def test_watch_ends_with_its_watcher(tmp_path: Path) -> None:
    """A watcher that hangs up leaves nothing behind that waits."""
    async with house(tmp_path) as there:
        async with await there.connect() as stream:
            await say(stream, {**control_call("Watch", job="attic"), "more": True})
            await hear(stream)
            while not there.jobs.watchers:
                await anyio.lowlevel.checkpoint()
        with anyio.fail_after(5):
            while there.jobs.watchers:
                await anyio.lowlevel.checkpoint()


async def test_oneway_call_is_not_answered(tmp_path: Path) -> None:
    """A call that wants no answer gets none, and the next one gets its own."""
    async with house(tmp_path) as there, await there.connect() as stream:
        await say(stream, {**control_call("Pause", job="attic"), "oneway": True})
        await say(stream, STATUS)
        answers = await hear(stream)
        asked = there.jobs.asked

    assert "house" in answers[0]["parameters"]
    assert 1 == len(asked)


SPELLINGS = {"plain": "f", "escaped": '"', "wide": "\N{PENGUIN}"}


@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_job_of_ten_thousand_items_is_shown_whole(spelling: str, tmp_path: Path) -> None:
    """However many and long its items are, a job is shown: in pieces, each of which fits a message."""
    async with house(tmp_path) as there:
        there.jobs.items = tuple(
            ItemRow(
                id=f"{number}{SPELLINGS[spelling] * 245}", state="failed", at="convert", tries=3, failures=3,
                code="raised", reason=SPELLINGS[spelling] * 300,
            )
            for number in range(10_000)
        )  # fmt: skip

        def ask() -> tuple[dict[str, Any], dict[str, Any]]:
            with Client(str(tmp_path / "control")) as client:
                return whole_job(client, "attic"), client.call("Show", job="attic", offset=9_997, limit=2)

        shown, few = await to_thread.run_sync(ask)

    assert [item.id for item in there.jobs.items] == [item["id"] for item in shown["job"]["items"]]
    assert ([there.jobs.items[9_997].id, there.jobs.items[9_998].id], 9_999) == (
        [item["id"] for item in few["job"]["items"]],
        few["next"],
    )


async def test_output_comes_in_pieces(tmp_path: Path) -> None:
    """A large output is handed out in pieces that fit a message."""
    sizes, offset = [], 0
    async with house(tmp_path) as there, await there.connect() as stream:
        while True:
            await say(stream, control_call("Output", job="attic", item="a", offset=offset))
            answer = (await hear(stream))[0]["parameters"]
            sizes.append(answer["next"] - offset)
            offset = answer["next"]
            if answer["ended"]:
                break

    assert 600_000 == sum(sizes)
    assert 3 == len(sizes)


async def test_silent_connection_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who connects and says nothing is shown out."""
    monkeypatch.setattr(conversation, "FIRST_BYTE", 0.05)
    async with house(tmp_path) as there, await there.connect() as stream:
        assert await silent(stream)


async def test_slow_message_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who begins a message and never ends it is shown out."""
    monkeypatch.setattr(conversation, "WHOLE_MESSAGE", 0.05)
    async with house(tmp_path) as there, await there.connect() as stream:
        await stream.send(b'{"method"')
        assert await silent(stream)


async def test_peer_that_never_reads_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks and does not take the answer is shown out, and nothing of it piles up."""
    monkeypatch.setattr(conversation, "SEND", 0.05)
    asking = json.dumps(control_call("Output", job="attic", item="a")).encode() + b"\0"
    async with house(tmp_path) as there, await there.connect() as stream:
        with pytest.raises(anyio.BrokenResourceError):
            await stream.send(asking * 10_000)


async def test_flood_of_silent_peers_costs_only_itself(tmp_path: Path) -> None:
    """Past the bound the oldest silent connection gives way, so that a caller is always served."""
    async with house(tmp_path) as there:
        flood = []
        for _ in range(connections.MOST_OF_OURS + 40):
            peer = socket.socket(socket.AF_UNIX)
            await to_thread.run_sync(peer.connect, str(there.path))
            flood.append(peer)
        answer = await there.call(STATUS)
        held = len(there.doorman._held)
        for peer in flood:
            peer.close()

    assert "parameters" in answer
    assert held <= connections.MOST_OF_OURS


async def test_accept_survives_a_lack_of_descriptors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Overload errors of accept() are waited out; the peer is served afterwards."""
    import errno

    async with house(tmp_path) as there:
        accept = Seat.accept
        failures = [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS]

        async def failing(seat: Seat) -> Any:
            if failures:
                raise OSError(failures.pop(), "no descriptors")
            return await accept(seat)

        monkeypatch.setattr(Seat, "accept", failing)
        monkeypatch.setattr(connections, "OVERLOAD_PAUSE", 0.001)
        answers = [await there.call(STATUS) for _ in range(2)]

    assert [] == failures
    assert all("parameters" in each for each in answers)


async def test_descriptors_that_run_out_neither_spin_nor_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the process has no descriptor left, accept() is tried a few times a second; who waits is served
    as soon as there is one, and those who are connected all the while."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    failures: list[float] = []
    accept = Seat.accept

    async def counting(seat: Seat) -> Any:
        try:
            return await accept(seat)
        except OSError:
            failures.append(anyio.current_time())
            raise

    monkeypatch.setattr(Seat, "accept", counting)
    async with house(tmp_path) as there, await there.connect() as early:
        await say(early, STATUS)
        await hear(early)
        taken: list[int] = []
        with socket.socket(socket.AF_UNIX) as late:
            late.setblocking(False)
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (_highest() + 8, before[1]))
                while True:
                    try:
                        taken.append(os.dup(late.fileno()))
                    except OSError:
                        break
                late.connect(str(there.path))
                late.send(json.dumps(STATUS).encode() + b"\0")
                while len(failures) < 4:
                    await anyio.lowlevel.checkpoint()
                await say(early, STATUS)
                served = await hear(early)
            finally:
                for each in taken:
                    os.close(each)
                resource.setrlimit(resource.RLIMIT_NOFILE, before)
            await anyio.wait_readable(late)
            answer = late.recv(65536)

    assert failures[3] - failures[0] > 2.5 * connections.OVERLOAD_PAUSE
    assert "parameters" in served[0]
    assert b"keeper" in answer


def _highest() -> int:
    return max(int(name) for name in os.listdir("/proc/self/fd"))


async def test_caller_that_says_no_more_is_answered(tmp_path: Path) -> None:
    """Who closes its own direction behind a whole call still gets the answer."""
    async with house(tmp_path) as there, await there.connect() as stream:
        await say(stream, STATUS)
        await stream.send_eof()
        answers = await hear(stream, 2)

    assert ["house"] == [next(iter(each["parameters"])) for each in answers]


async def test_other_accept_errors_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of accept() that nobody has a rule for ends the daemon loudly."""

    async def failing(seat: Seat) -> Any:
        raise OSError(5, "input/output error")

    monkeypatch.setattr(Seat, "accept", failing)
    with pytest.raises(BaseExceptionGroup) as caught:
        async with house(tmp_path):
            await anyio.sleep_forever()

    assert caught.group_contains(OSError, depth=None)


async def test_anybody_may_ask_who_we_are() -> None:
    """What the service says about itself needs no role."""
    answers = Answers(Desk(jobs=FakeJobs(), shelf=FakeShelf()), "1")
    peer = Peer(pid=1, uid=65534, gid=65534, groups=(), name="x")
    info = [each async for each in answers.to(Call(method="org.varlink.service.GetInfo"), peer)]

    assert "org.resumed.Control" in json.loads(info[0][:-1])["parameters"]["interfaces"]
