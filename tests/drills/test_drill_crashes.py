"""Job code that fails in every way there is: its own job says the cause, and no other is touched."""

import signal
import time

import pytest

from .kit import FINAL, Daemon, until

KINDS = {
    "value": "ValueError",
    "group": "ExceptionGroup",
    "recursion": "RecursionError",
    "memory": "MemoryError",
    "exit": "SystemExit",
    "interrupt": "KeyboardInterrupt",
    "early": "returned NoneType",
    "unprintable": "Unprintable",
    "cancelled": "CancelledError",
    "generator": "GeneratorExit",
    "keeper": "ended",
    "socket": "ended",
    "loop": "CancelledError",
    "hard_exit": "ended",
    "killed": "ended",
}
MODULE = """
import asyncio, os, signal, time
from resumed import workflow, step, Accept, Each, Done

def say(event, job, item):
    line = f"{event} {job.id} {item.id} {job.attempt} {os.getpid()} {time.monotonic_ns()}\\n"
    descriptor = os.open("WITNESS", os.O_WRONLY | os.O_APPEND)
    os.write(descriptor, line.encode()); os.fsync(descriptor); os.close(descriptor)

class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")
    __repr__ = __str__

def deeper(n):
    return deeper(n + 1)

def fail(kind):
    if kind == "value": raise ValueError("bad value")
    if kind == "group": raise ExceptionGroup("many", [ValueError("one"), ExceptionGroup("in", [KeyError()])])
    if kind == "recursion": deeper(0)
    if kind == "memory": raise MemoryError
    if kind == "exit": raise SystemExit(3)
    if kind == "interrupt": raise KeyboardInterrupt
    if kind == "unprintable": raise Unprintable
    if kind == "cancelled": raise asyncio.CancelledError
    if kind == "generator": raise GeneratorExit
    if kind == "blocked": time.sleep(600)
    if kind == "keeper": os.kill(os.getppid(), signal.SIGKILL)
    if kind == "socket": os.close(3)
    if kind == "loop": asyncio.get_running_loop().stop()
    if kind == "hard_exit": os._exit(7)
    if kind == "killed": os.kill(os.getpid(), signal.SIGKILL)

@workflow("crashes", version=1)
class Crashes:
    @step(start=True)
    async def start(self, job, state):
        return Each(job.items, start="one", then="end")
    @step(item=True, tries=2, backoff=("10ms", "10ms"))
    async def one(self, job, item):
        say("start", job, item)
        await asyncio.sleep(0.02)
        if item.id == "i2" and job.id.startswith("bad-"):
            fail(job.id.removeprefix("bad-").replace("-", "_"))
            if job.id != "bad-early":
                await asyncio.sleep(600)
            return None
        say("end", job, item)
        return Accept(item.id)
    @step
    async def end(self, job, state):
        return Done()

@workflow("stuck", version=1)
class Stuck(Crashes):
    @step(item=True, tries=1, timeout="1s", grace="100ms")
    async def one(self, job, item):
        say("start", job, item)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
"""
ITEMS = [f"i{number}" for number in range(4)]


def shelve(daemon: Daemon) -> None:
    """The workflow of these drills."""
    module = daemon.workflows / "crashing.py"
    module.write_text(MODULE.replace("WITNESS", str(daemon.witness.path)))
    module.chmod(0o644)
    for name in ("Crashes", "Stuck"):
        daemon.workflow(name.lower(), f'version = 1\n[python]\nentry = "crashing:{name}"\n')


@pytest.mark.timeout(300)
def test_what_one_jobs_code_raises_disturbs_no_other(daemon: Daemon, faults_scale: float) -> None:
    """C47: whatever job code raises, or however it ends its process, its own item fails or is held with the
    cause after a bounded number of starts, nine other jobs run each item once, and commands are answered."""
    shelve(daemon)
    daemon.start()
    bad = {f"bad-{kind.replace('_', '-')}": words for kind, words in KINDS.items()}
    if faults_scale < 1:
        del bad[
            "bad-socket"
        ]  # each of its ends takes five seconds, in which a worker may still leave by itself
    good = [f"good-{number}" for number in range(9)]
    names = list(bad)
    for number in range(max(len(names), len(good))):
        for job in (names[number : number + 1], good[number : number + 1]):
            if job:
                daemon.submit(job[0], "crashes", ITEMS)
    for job, words in bad.items():
        began = time.monotonic()
        assert daemon.ask("Status")["house"]["pid"]
        assert time.monotonic() - began < 5
        row = daemon.wait_status(job, *FINAL, "held", within=120)
        item = daemon.items(job)["i2"]
        assert ("held", 3) == (row["status"], row["done"]), (job, row)
        assert item["state"] in ("failed", "held"), (job, item)
        assert words in item["reason"], (job, item)
        assert item["tries"] <= 4, (job, item)
    for job in good:
        assert "completed" == daemon.wait_status(job, *FINAL)["status"]
        for event in ("start", "end"):
            assert ITEMS == sorted(said.item for said in daemon.witness.lines(job, event=event)), job
    for job in bad:
        for item in ("i0", "i1", "i3"):
            assert 1 == len(daemon.witness.lines(job, item, "end")), (job, item)
    assert sorted(bad) == sorted(row["id"] for row in daemon.ask("List")["jobs"])
    assert [] == daemon.witness.overlaps()


def test_a_handler_that_never_lets_go_is_ended_with_its_worker(daemon: Daemon) -> None:
    """C47: a handler that blocks its worker's loop and hears no signal is ended past its time and grace, and
    its item says that it ran too long, not only how its worker died."""
    shelve(daemon)
    daemon.start()
    daemon.submit("stuck", "stuck", ["i0"])
    assert "held" == daemon.wait_status("stuck", *FINAL, "held")["status"]
    item = daemon.items("stuck")["i0"]
    assert ("failed", "timeout", 1) == (item["state"], item["code"], item["tries"])
    assert "ran longer than its time limit" in item["reason"]
    assert "on the daemon's order" in item["reason"]
    until(lambda: len(daemon.processes()) <= 1, "nothing but the daemon is left")


def test_a_real_stop_still_ends_all_ten_promptly(daemon: Daemon) -> None:
    """C47: with crashing jobs about, SIGTERM stops all that runs and the daemon ends with 0 in its time."""
    shelve(daemon)
    daemon.works("long", "work", 60_000)
    daemon.start()
    daemon.submit("bad-exit", "crashes", ITEMS)
    for number in range(9):
        daemon.submit(f"long-{number}", "long", ["a"])
    until(lambda: daemon.witness.lines(event="start"), "something runs")
    began = time.monotonic()
    daemon.signal(signal.SIGTERM)
    assert daemon.process is not None
    assert 0 == daemon.process.wait(30)
    assert time.monotonic() - began < 20
    assert [] == daemon.processes()
