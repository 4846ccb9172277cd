"""Following what programs say: every piece once, in its order, to its end; and nobody else waits for it."""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from attrs import evolve
from socket_kit import STATUS, House, control_call, hear, hear_out, house, say

from resumed.actors.printed import Printed, Unit
from resumed.daemon import api_files, conversation, growth
from resumed.daemon.growth import Growth
from resumed.schemas import control
from resumed.schemas.job import Status

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def hearing() -> AsyncIterator[Growth]:
    """What tells of growth, at work."""
    made = Growth()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(made.run)
        with anyio.fail_after(20):
            yield made
        tasks.cancel_scope.cancel()


async def test_ear_hears_which_file_grew(tmp_path: Path) -> None:
    """A write rings with the file's name; what was heard once is not heard again."""
    (tmp_path / "a").write_text("1")
    async with hearing() as found:
        with found.follow(tmp_path) as ear:
            first = ear.take()
            with (tmp_path / "a").open("a") as file:
                file.write("2")
            await ear.wait()
            second = ear.take()
            (tmp_path / "b").touch()
            await ear.wait()
            third = ear.take()

    assert (None, {"a"}, {"b"}) == (first, second, third)


async def test_ear_follows_a_folder_that_moves(tmp_path: Path) -> None:
    """A job that is archived meanwhile is followed where it goes."""
    (tmp_path / "old").mkdir()
    async with hearing() as found:
        with found.follow(tmp_path / "old") as ear:
            ear.take()
            (tmp_path / "old").rename(tmp_path / "new")
            (tmp_path / "new" / "a").touch()
            await ear.wait()

            assert {"a"} == ear.take()


async def test_ears_share_one_watch_and_leave_none(tmp_path: Path) -> None:
    """Two who follow one folder hear both; when the last has gone nothing is watched."""
    async with hearing() as found:
        with found.follow(tmp_path) as one:
            with found.follow(tmp_path) as other:
                one.take()
                other.take()
                (tmp_path / "a").touch()
                await one.wait()
                await other.wait()
                heard = one.take(), other.take()
                watches = len(found._ears)
            (tmp_path / "b").touch()
            await one.wait()
            alone = one.take()
        left = dict(found._ears)

    assert ({"a"}, {"a"}) == heard
    assert (1, {"b"}, {}) == (watches, alone, left)


async def test_events_that_the_kernel_forgot_ring_all(tmp_path: Path) -> None:
    """After an overflow everybody looks at everything."""
    async with hearing() as found:
        with found.follow(tmp_path) as ear:
            ear.take()
            found._ring_all()
            await ear.wait()

            assert None is ear.take()


async def test_without_the_kernels_word_files_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no watch can be had, whoever follows looks by itself, now and then."""
    monkeypatch.setattr(growth, "LOOK_UNHEARD", 0.01)
    async with hearing() as found:
        with found.follow(tmp_path / "is not there") as ear:
            looks = []
            for _ in range(3):
                looks.append(ear.take())
                await ear.wait()

    assert [None, None, None] == looks


class Programs:
    """The logs of a job's items, and what is known of them."""

    def __init__(self, there: House, folder: Path, *items: str) -> None:
        self.there = there
        self.folder = folder / "logs"
        self.folder.mkdir()
        units = tuple(Unit(item, f"{item or 'steps'}.log", False) for item in items)
        there.jobs.prints = Printed(folder=self.folder, units=units, sequence=1, over=False)

    def say(self, item: str, text: str) -> None:
        with (self.folder / f"{item or 'steps'}.log").open("a") as file:
            file.write(text)

    def _change(self, **changes: Any) -> None:
        jobs = self.there.jobs
        jobs.prints = evolve(jobs.prints, sequence=jobs.row.sequence + 1, **changes)
        jobs.move(Status.COMPLETED if jobs.prints.over else Status.RUNNING)

    def start(self, item: str) -> None:
        self._change(units=(*self.there.jobs.prints.units, Unit(item, f"{item}.log", False)))

    def end(self, *items: str) -> None:
        units = self.there.jobs.prints.units
        self._change(units=tuple(evolve(each, over=each.over or each.item in items) for each in units))

    def end_job(self) -> None:
        self._change(over=True)


def said(answers: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Whose pieces they are, and the pieces."""
    found = [each["parameters"] for each in answers]
    return [(each["item"], base64.b64decode(each["content"]).decode()) for each in found]


async def follow(stream: anyio.abc.ByteSendStream, **parameters: Any) -> None:
    await say(stream, {**control_call("Log", job="attic", **parameters), "more": True})


async def test_log_is_followed_to_the_items_end(tmp_path: Path) -> None:
    """Pieces come as they are written; with the item the stream ends, and the connection goes on."""
    async with house(tmp_path) as there, await there.connect() as stream:
        programs = Programs(there, tmp_path, "a", "b")
        programs.say("a", "one\n")
        await follow(stream, item="a")
        answers = await hear(stream)
        programs.say("b", "not this\n")
        programs.say("a", "two\n")
        answers += await hear(stream)
        programs.say("a", "three\n")
        programs.end("a")
        answers += await hear(stream, 2)
        await say(stream, STATUS)
        after = await hear(stream)

    assert [("a", "one\n"), ("a", "two\n"), ("a", "three\n"), ("a", "")] == said(answers)
    assert [True, True, True, None] == [each.get("continues") for each in answers]
    assert (14, True) == (answers[3]["parameters"]["next"], answers[3]["parameters"]["ended"])
    assert "house" in after[0]["parameters"]


async def test_log_is_followed_from_an_offset_and_anew(tmp_path: Path) -> None:
    """What was read before is not told again; a log that began anew is told from its beginning."""
    async with house(tmp_path) as there, await there.connect() as stream:
        programs = Programs(there, tmp_path, "a")
        programs.say("a", "one\ntwo\n")
        await follow(stream, item="a", offset=4)
        answers = await hear(stream)
        (programs.folder / "a.log").write_text("new\n")
        answers += await hear(stream)
        programs.end_job()
        answers += await hear(stream)

    assert [("a", "two\n"), ("a", "new\n"), ("a", "")] == said(answers)


async def test_item_that_has_not_begun_is_waited_for(tmp_path: Path) -> None:
    """A log that is not there yet is followed from its first byte, even where no folder of logs is."""
    async with house(tmp_path) as there, await there.connect() as stream:
        programs = Programs(there, tmp_path, "a")
        programs.folder.rmdir()
        await follow(stream, item="a")
        while not there.jobs.watchers:
            await anyio.lowlevel.checkpoint()
        programs.folder.mkdir()
        programs.say("a", "begun\n")
        programs.end()
        answers = await hear(stream)
        programs.end("a")
        answers += await hear(stream)

    assert [("a", "begun\n"), ("a", "")] == said(answers)


async def test_all_logs_of_a_job_are_followed(tmp_path: Path) -> None:
    """With `all` every item is told of under its name, also one that begins later, until the job ends."""
    async with house(tmp_path) as there, await there.connect() as stream:
        programs = Programs(there, tmp_path, "", "a")
        programs.say("", "listing\n")
        programs.say("a", "one\n")
        await follow(stream, all=True)
        answers = await hear(stream, 2)
        programs.say("b", "begun\n")
        programs.start("b")
        answers += await hear(stream)
        programs.end("a", "b")
        programs.say("", "closing\n")
        answers += await hear(stream)
        programs.end_job()
        answers += await hear(stream)

    assert [("", "listing\n"), ("a", "one\n"), ("b", "begun\n"), ("", "closing\n"), ("", "")] == said(answers)
    assert [True] * 4 + [None] == [each.get("continues") for each in answers]


async def test_large_log_comes_in_pieces(tmp_path: Path) -> None:
    """What is there at the beginning comes in pieces that fit a message, whole and in order."""
    text = "".join(f"{number}\n" for number in range(100_000))
    async with house(tmp_path) as there, await there.connect() as stream:
        programs = Programs(there, tmp_path, "a")
        programs.say("a", text)
        programs.end("a")
        await follow(stream, item="a")
        answers = await hear_out(stream)

    assert text == "".join(piece for _, piece in said(answers))
    assert all(len(piece) <= api_files.PIECE for _, piece in said(answers))


LOG_ERRORS = {
    "unknown item": ({"item": "z"}, control.ERROR_NO_SUCH),
    "all without more": ({"all": True}, control.ERROR_REFUSED),
    "all of the wrong type": ({"all": "yes"}, control.ERROR_FAULTY),
}


@pytest.mark.parametrize("case", LOG_ERRORS)
async def test_log_that_cannot_be_followed_says_so(case: str, tmp_path: Path) -> None:
    """Each way it can fail is one answer, the last."""
    parameters, error = LOG_ERRORS[case]
    async with house(tmp_path) as there:
        Programs(there, tmp_path, "a")
        message = control_call("Log", job="attic", **parameters)
        answer = await there.call({**message, "more": "without" not in case})

    assert error == answer["error"]


async def test_follower_that_hangs_up_leaves_nothing(tmp_path: Path) -> None:
    """Nobody waits and nothing is watched for one who has gone."""
    async with house(tmp_path) as there:
        async with await there.connect() as stream:
            programs = Programs(there, tmp_path, "a")
            programs.say("a", "one\n")
            await follow(stream, item="a")
            await hear(stream)
            while not (there.jobs.watchers and there.growth._ears):
                await anyio.lowlevel.checkpoint()
        with anyio.fail_after(5):
            while there.jobs.watchers or there.growth._ears:
                await anyio.lowlevel.checkpoint()


async def test_follower_that_does_not_read_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow reader is shown out in its time; what it left unread is kept nowhere, others are answered."""
    monkeypatch.setattr(conversation, "SEND", 0.3)
    async with house(tmp_path) as there, await there.connect() as stream:
        programs = Programs(there, tmp_path, "a")
        programs.say("a", "x" * 4_000_000)
        await follow(stream, item="a")
        while not there.growth._ears:
            await anyio.lowlevel.checkpoint()
        meanwhile = await there.call(STATUS)
        with anyio.fail_after(10):
            while there.growth._ears:
                await anyio.lowlevel.checkpoint()

    assert "parameters" in meanwhile


async def test_burst_of_writes_is_told_in_few_pieces(tmp_path: Path) -> None:
    """A program that writes line by line as fast as it can wakes its follower some times, not each time."""
    async with house(tmp_path) as there, await there.connect() as stream:
        programs = Programs(there, tmp_path, "a")
        await follow(stream, item="a")
        while not there.growth._ears:
            await anyio.lowlevel.checkpoint()
        with (programs.folder / "a.log").open("ab", buffering=0) as file:
            for number in range(2000):
                file.write(b"%d\n" % number)
        programs.end("a")
        answers = await hear_out(stream)

    assert "".join(f"{number}\n" for number in range(2000)) == "".join(piece for _, piece in said(answers))
    assert len(answers) < 20


async def test_long_list_comes_in_pieces(tmp_path: Path) -> None:
    """However many jobs there are they can be listed: in pieces, each of which fits a message."""
    async with house(tmp_path) as there, await there.connect() as stream:
        rows = [evolve(there.jobs.row, id=f"job-{number}", title='"' * 500) for number in range(8_000)]
        there.jobs.rows = lambda sight: rows  # type: ignore[method-assign]
        at_once = await there.call(control_call("List"))
        await say(stream, {**control_call("List"), "more": True})
        answers = await hear_out(stream)

    assert "too_long" == at_once["parameters"]["code"]
    assert len(answers) > 1
    assert [row.id for row in rows] == [
        row["id"] for answer in answers for row in answer["parameters"]["jobs"]
    ]
    assert all(len(json.dumps(answer)) < control.MAX_MESSAGE for answer in answers)
