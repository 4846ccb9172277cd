"""The daemon's side of a worker: identity first, frames as they come, an end that is known and told once."""

import asyncio
import base64
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from attrs import evolve
from worker_kit import WAIT, Desk, alive, contract, desk, one_step, python_contract, python_desk

from resumed.actors import containment, workers
from resumed.actors.containment import Containment
from resumed.actors.worker import main
from resumed.schemas import framelines, frames
from resumed.schemas.errors import CommitError, GoneError
from resumed.store import durable

pytestmark = pytest.mark.anyio


async def test_identity_is_recorded_before_the_first_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that is not on record gets no frame: when the record fails, it is ended without a trace."""
    monkeypatch.setattr(durable, "sync_file", _refuse)
    made = Desk(tmp_path, Containment())
    async with anyio.create_task_group() as group:
        with pytest.raises(CommitError):
            await made.start(group, one_step("true"))
    made.close()

    assert not [path for path in made.workers.iterdir() if path.suffix == ".json"]
    assert () == containment.remains_of("w1")


def _refuse(_: int) -> None:
    raise OSError(28, "No space left on device")


async def test_identity_names_the_keeper(tmp_path: Path) -> None:
    """The record names one process of this host for ever: boot, pid and start time."""
    async with desk(tmp_path, one_step("true")) as made:
        ((name, identity),) = containment._recorded(made.workers)

        assert identity is not None
        assert ("w1", containment.boot_id()) == (name, identity.boot)
        assert (made.worker.pid, "flow", 1) == (identity.pid, identity.workflow, identity.version)
        assert containment.start_time(identity.pid) == identity.start


async def test_worker_ends_in_good_order(tmp_path: Path) -> None:
    """Asked to close, a worker ends by itself, and its end is told once and proven."""
    async with desk(tmp_path, one_step("true")) as made:
        pid = made.worker.pid
    assert [("it ended with status 0", True)] == made.ends
    assert not alive(pid)
    with pytest.raises(GoneError):
        made.worker.send(frames.Close())


async def test_answers_sent_before_the_end_are_heard_before_it(tmp_path: Path) -> None:
    """What a worker answered is handed over, then its end: an answer is never lost to a death after it."""
    async with desk(tmp_path, one_step("true")) as made:
        for number in range(1, 51):
            made.worker.send(made.frame(number=number))
        made.worker.send(frames.Close())
        await made.gone.wait()

        heard: list[Any] = [await made.heard() for _ in range(50)]
        assert set(range(1, 51)) == {frame.number for frame in heard}


async def test_killed_worker_is_known_gone(tmp_path: Path) -> None:
    """A kill order ends a worker whatever it is doing, and its end is proven."""
    async with desk(tmp_path, one_step("sleep", "600")) as made:
        made.worker.send(made.frame())
        made.worker.kill()
        with anyio.fail_after(WAIT):
            await made.gone.wait()

        assert [("it was killed by signal 9, on the daemon's order", True)] == made.ends
        assert () == containment.remains_of("w1")


async def test_canceled_owner_ends_its_worker(tmp_path: Path) -> None:
    """When the owner's tasks are canceled the worker is ended, its end awaited, and told."""
    made = Desk(tmp_path, Containment())
    async with anyio.create_task_group() as group:
        await made.start(group, one_step("sleep", "600"))
        group.cancel_scope.cancel()
    made.close()

    assert [True] == [proven for _, proven in made.ends]
    assert () == containment.remains_of("w1")


FAULTY = {
    "no JSON": b"hello\n",
    "an unknown frame": b'{"frame":"approve"}\n',
    "a field too many": b'{"frame":"stopped","job":"j","epoch":1,"item":"","number":1,"by":"me"}\n',
    "a bool for a number": b'{"frame":"stopped","job":"j","epoch":true,"item":"","number":1}\n',
    "a key twice": b'{"frame":"stopped","job":"j","job":"k","epoch":1,"item":"","number":1}\n',
    "a second ready": (
        b'{"frame":"ready","worker":"w1","contract":{"workflow":"f","version":1,"start":"","steps":[]}}\n'
    ),
    "an empty line": b"\n",
}


@pytest.mark.parametrize("case", FAULTY)
async def test_faulty_frame_ends_the_worker(case: str, tmp_path: Path) -> None:
    """A worker that breaks the protocol once is reported, heard no more, and ended; nothing else suffers."""
    async with desk(tmp_path, one_step("true")) as made:
        good = b'{"frame":"stopped","job":"j","epoch":1,"item":"","number":1}\n'
        for line in (FAULTY[case] + good).splitlines(keepends=True):
            made.worker._hand_over(line[:-1])
        with anyio.fail_after(WAIT):
            await made.gone.wait()

        assert 1 == len(made.faults)
        assert made.nothing_heard()
        assert [True] == [proven for _, proven in made.ends]


async def test_a_worker_of_another_contract_is_not_used(tmp_path: Path) -> None:
    """What a worker says it can run is what it was asked to run, or it ends before its first try."""
    asked = one_step("true")
    async with desk(tmp_path, asked) as made:
        other = frames.Ready(worker="w1", contract=evolve(asked, slots=9))
        made.worker.ready = False
        made.worker._hand_over(framelines.write(other)[:-1])
        with anyio.fail_after(WAIT):
            await made.gone.wait()

        assert ["cannot use a worker: its contract is not the one it was asked to run"] == made.faults
        assert 1 == made.worker.slots


async def test_a_worker_of_another_protocol_is_not_used(tmp_path: Path) -> None:
    """A `ready` of another protocol is trouble, whatever else it says; nothing more of it is heard."""
    async with desk(tmp_path, one_step("true")) as made:
        made.worker.ready = False
        ready = b'{"frame":"ready","worker":"w1","protocol":2,"dialect":"new","contract":{}}'
        made.worker._hand_over(ready)
        made.worker._hand_over(b'{"frame":"stopped","job":"j","epoch":1,"item":"","number":1}')
        heard = await made.heard()
        with anyio.fail_after(WAIT):
            await made.gone.wait()

        assert isinstance(heard, frames.Trouble)
        assert "protocol" == heard.code
        assert "its worker speaks protocol 2, this daemon 1" in heard.reason
        assert sys.executable in heard.reason
        assert ([], False) == (made.faults, made.worker.ready)
        assert made.nothing_heard()


def test_a_worker_refuses_an_open_of_another_protocol() -> None:
    """A worker that is spoken to in another protocol says so in one frame, loads nothing, and ends."""
    ours, theirs = socket.socketpair()
    with ours:
        ours.sendall(b'{"frame":"open","worker":"w1","protocol":7,"dialect":"new","contract":{}}\n')
        asyncio.run(asyncio.wait_for(main.serve(theirs), WAIT))
        said = b""
        while piece := ours.recv(4096):
            said += piece
    (line,) = said.splitlines()
    heard = framelines.read_from_worker(line)

    assert isinstance(heard, frames.Trouble)
    assert "protocol" == heard.code
    assert "the daemon speaks protocol 7, this worker 1" in heard.reason


async def test_repeated_and_stale_frames_start_nothing(tmp_path: Path) -> None:
    """A repeated `run` or `stop` is silent; a `run` that comes after its own `stop` starts nothing."""
    witness = tmp_path / "witness"
    async with desk(tmp_path, one_step("sh", "-c", 'echo x >> "$1"', "sh", str(witness))) as made:
        made.stop(number=7)
        assert isinstance(await made.heard(), frames.Stopped)
        for number in (7, 1, 1):
            made.worker.send(made.frame(number=number))
        first: Any = await made.heard()
        made.stop(number=1)
        made.worker.send(made.frame(number=1))
        second = await made.run(number=2)

        assert [1, 2] == [first.number, second.number]
        assert made.nothing_heard()
    assert "x\nx\n" == witness.read_text()


async def test_large_frames_wait_for_a_slow_worker(tmp_path: Path) -> None:
    """Frames larger than the socket takes at once go out as the worker reads, in order and whole."""
    async with python_desk(tmp_path, "author_flow:Flow", "author", 3) as made:
        for number in range(1, 9):
            made.worker.send(made.frame("one", "i", number, objective="x" * 1_000_000))
        heard: list[Any] = [await made.heard() for _ in range(8)]

    assert dict.fromkeys(range(1, 9), 1_000_002) == {
        frame.number: frame.answer.decided.output.size for frame in heard
    }


async def test_dead_worker_is_told_while_its_keeper_lives(tmp_path: Path) -> None:
    """A worker that is killed from outside is told as gone, with the signal, and all its programs with it."""
    async with desk(tmp_path, one_step("sleep", "600")) as made:
        made.worker.send(made.frame())
        (worker,) = _children(made.worker.pid)
        os.kill(worker, signal.SIGKILL)
        with anyio.fail_after(WAIT):
            await made.gone.wait()

        assert [("it was killed by signal 9", True)] == made.ends
        assert () == containment.remains_of("w1")


def _children(pid: int) -> list[int]:
    return [int(n) for n in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def test_keeper_that_nothing_ends_is_told_unproven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A keeper that even SIGKILL does not end (it sits in the kernel) leaves no worker open for ever."""
    monkeypatch.setattr(workers, "_STUCK", 0.1)
    async with desk(tmp_path, one_step("true")) as made:
        keeper = made.worker._keeper
        monkeypatch.setattr(keeper, "kill", lambda: None)
        os.kill(keeper.pid, signal.SIGSTOP)
        made.worker.kill()
        with anyio.fail_after(WAIT):
            await made.gone.wait()
        os.kill(keeper.pid, signal.SIGKILL)
        keeper.wait(WAIT)

        assert [("its keeper does not end, not even when killed", False)] == made.ends


async def test_worker_sees_a_made_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the daemon knows by its environment, a program does not, unless its own step passes it on."""
    monkeypatch.setenv("DAEMON_SECRET", "s3cret")
    monkeypatch.setenv("LD_DEBUG", "help")
    toml = """
    version = 1
    [[step]]
    name = "usual"
    repeatable = true
    run = ["env", "-0"]
    [[step]]
    name = "chosen"
    repeatable = true
    run = ["env", "-0"]
    env = { pass = ["DAEMON_SECRET", "NOT_THERE"], set = { KEY = "{key}/{item}", PATH = "/usr/bin:/bin" } }
    [[step]]
    name = "last"
    repeatable = true
    run = ["env", "-0"]
    env.pass = ["LD_DEBUG"]
    """
    seen: dict[str, dict[str, str]] = {}
    async with desk(tmp_path, contract(toml)) as made:
        for number, name in enumerate(("usual", "chosen")):
            answer = await made.run(name, number=number, key="k1")
            # A NUL is no text that can be stored: the bytes travel beside it.
            lines = base64.b64decode(answer.answer.decided.output.base64).decode().split("\0")
            found = dict(line.split("=", 1) for line in lines if line)
            assert "w1" == found[containment.MARK]
            assert not [each for each in found if each.startswith("RESUMED_PASSED_")]
            seen[name] = {each: value for each, value in found.items() if not each.startswith("RESUMED_")}

    usual = {"PATH", "LANG", "TZ", *(["HOME"] if os.geteuid() else [])}
    assert usual == set(seen["usual"])
    assert {"DAEMON_SECRET": "s3cret", "KEY": "k1/i", "PATH": "/usr/bin:/bin"} == seen["chosen"]


async def test_worker_of_one_slot_leaves_no_process_behind_an_answer(tmp_path: Path) -> None:
    """C41: when a handler has answered, the processes it started are dead, wherever they hid."""
    async with python_desk(tmp_path, "author_flow:Alone", "alone") as made:
        answer = await made.run("begin", "")

        assert not alive(int(answer.answer.decided.reason))
        assert alive(int(answer.answer.decided.code))


async def test_worker_that_cannot_load_says_why(tmp_path: Path) -> None:
    """An import that fails, or a class that is not the pinned one, is told in one sentence, then it ends."""
    said = {}
    for entry, version in (("no_such_module:Flow", 3), ("author_flow:Nothing", 3), ("author_flow:Flow", 4)):
        folder = tmp_path / f"{len(said)}"
        folder.mkdir()
        heard: list[frames.Trouble] = []
        async with desk(folder, python_contract(entry, "author", version), describe=True, first=heard.append):
            pass
        said[entry, version] = heard[0].reason.splitlines()[0]

    assert "ModuleNotFoundError: No module named 'no_such_module'" == said["no_such_module:Flow", 3]
    assert (
        "cannot load author_flow:Nothing: the module has no class 'Nothing'" == said["author_flow:Nothing", 3]
    )
    assert (
        "cannot load author_flow:Flow: it declares author@3, expected author@4" == said["author_flow:Flow", 4]
    )
