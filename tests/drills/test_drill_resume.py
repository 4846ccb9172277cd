"""Many resumes of one job at the same instant: one attempt starts, and all hear of the same one."""

import json
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from resumed.daemon.client import UnreachableError

from .kit import FINAL, Daemon, kinds, until

CLIENTS = 20
RUNS = 100
ITEMS = ["a", "b", "c"]


def burst(
    daemon: Daemon, job: str, also: Callable[[], Any] = lambda: None
) -> list[tuple[str, dict[str, Any]]]:
    """What 20 clients hear that send `resume` together; `also` happens at the same instant."""
    barrier = threading.Barrier(CLIENTS + 1)
    heard: list[tuple[str, dict[str, Any]]] = []

    def one() -> None:
        try:
            client = daemon.client()
        except UnreachableError as error:
            barrier.wait(20)
            heard.append(("unreachable", {"reason": str(error)}))
            return
        with client:
            barrier.wait(20)
            heard.append(kinds(lambda: client.call("Resume", job=job)))

    threads = [threading.Thread(target=one) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    barrier.wait(20)
    also()
    for thread in threads:
        thread.join(60)
    assert CLIENTS == len(heard)
    return heard


def paused(daemon: Daemon, job: str) -> int:
    """A job that was paused on its way; its epoch."""
    daemon.submit(job, "short", ITEMS, id=job)
    daemon.ask("Pause", job=job)
    return int(daemon.wait_status(job, "paused")["epoch"])


def one_line_each(daemon: Daemon, job: str) -> None:
    """Every item began once and ended once."""
    for event in ("start", "end"):
        assert ITEMS == sorted(said.item for said in daemon.witness.lines(job, event=event)), (job, event)


@pytest.mark.timeout(600)
def test_twenty_resumes_and_a_dropped_file_make_one_attempt(daemon: Daemon, faults_scale: float) -> None:
    """C15: when 20 clients resume one job at once and its file arrives again by the folder, one attempt
    starts, every answer names it, and every item runs once."""
    daemon.works("short", "work", 50, parallel=3)
    daemon.start()
    for number in range(round(RUNS * faults_scale)):
        job = f"many-{number}"
        epoch = paused(daemon, job)
        file = json.dumps({"workflow": "short", "id": job, "items": ITEMS}).encode()
        heard = burst(daemon, job, lambda job=job, file=file: daemon.drop(f"{job}.json", file))
        row = daemon.wait_status(job, *FINAL)
        until(lambda job=job: not (daemon.state / "incoming" / f"{job}.json").exists(), "it is claimed")

        assert {"told"} == {kind for kind, _ in heard}, heard
        assert {epoch + 1} == {said["told"]["attempt"] for _, said in heard}, heard
        assert 1 == sum(not said["told"]["repeated"] for _, said in heard)
        assert ("completed", epoch + 1) == (row["status"], row["epoch"])
        one_line_each(daemon, job)


@pytest.mark.timeout(600)
def test_resumes_that_land_during_start_up_make_one_attempt(daemon: Daemon, faults_scale: float) -> None:
    """C15: resumes that arrive while the daemon still reads its jobs make one attempt too."""
    daemon.works("short", "work", 5, parallel=3)
    daemon.start()
    for number in range(40):
        paused(daemon, f"other-{number}")
    early = 0
    for number in range(max(2, round(RUNS * faults_scale / 5))):
        job = f"early-{number}"
        epoch = paused(daemon, job)
        daemon.kill()
        daemon.start(ready=False)
        early += until(lambda: first_answer(daemon), "somebody answers", every=0.0005)["loading"] > 0
        heard = burst(daemon, job)
        row = daemon.wait_status(job, *FINAL)

        assert {"told"} == {kind for kind, _ in heard}, heard
        assert {epoch + 1} == {said["told"]["attempt"] for _, said in heard}, heard
        assert ("completed", epoch + 1) == (row["status"], row["epoch"])
        one_line_each(daemon, job)
    assert early > 0


def first_answer(daemon: Daemon) -> dict[str, Any] | None:
    """How the daemon says it is; None while nobody answers."""
    try:
        house: dict[str, Any] = daemon.ask("Status")["house"]
    except UnreachableError:
        return None
    return house


@pytest.mark.timeout(900)
def test_a_kill_among_twenty_resumes_leaves_one_attempt(daemon: Daemon, faults_scale: float) -> None:
    """C15: after a SIGKILL during the burst an acknowledged resume is in force, nothing that is done runs
    again, and each start of the job is one epoch."""
    daemon.works("short", "work", 50, parallel=3)
    daemon.start()
    cut = 0
    for number in range(round(RUNS * faults_scale / 2)):
        job = f"cut-{number}"
        epoch = paused(daemon, job)
        heard = burst(daemon, job, lambda: daemon.signal(signal.SIGKILL))
        assert daemon.process is not None
        daemon.process.wait(30)
        daemon.bury()
        done, size = daemon.done_on_disk(job), daemon.witness.size()
        stood = daemon.recover(job).snapshot
        cut += any(kind == "unreachable" for kind, _ in heard)
        daemon.start()
        told = [said["told"] for kind, said in heard if kind == "told"]
        status = daemon.row(job)["status"]
        assert not (told and status == "paused"), heard
        if status == "paused":
            daemon.ask("Resume", job=job)
        row = daemon.wait_status(job, *FINAL)

        assert {epoch + 1} >= {each["attempt"] for each in told}, heard
        assert stood.epoch <= epoch + 1
        assert ("completed", stood.epoch + (stood.outcome is None)) == (row["status"], row["epoch"])
        late = {said.item for said in daemon.witness.lines(job, event="start") if said.place >= size}
        assert not late & done
        assert [] == daemon.witness.overlaps()
    assert cut > 0
