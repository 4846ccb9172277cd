"""What is measured, by name: each runs its measurement several times, and says the figures."""

from argparse import Namespace
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Protocol

import bare_store
import command_line
import idle_actors
import inbox
import parked_store
import socket_calls
import start_up
import whole_daemon
from report import figure, middle, percentile, quantiles, say
from whole_daemon import Run

COMMITS = {1: 4_000, 64: 400, 1_000: 30}
"""Commits a job in one run of the store."""
DELAY_MS = 2
PARKED = (0, 1_000, 10_000)
LARGE = 100_000


class Place(Protocol):
    """Where a measurement writes."""

    def folder(self) -> AbstractContextManager[Path]:
        """A folder of its own."""

    def flushes(self, seconds: float = 0.5) -> float:
        """F, now."""

    def kept(self, name: str) -> Path:
        """A folder that lasts as long as the run."""


def _runs(asked: Namespace) -> int:
    return 1 if asked.quick else int(asked.runs)


def _seconds(asked: Namespace) -> float:
    return 0.5 if asked.quick else 3.0


def disk(place: Place, asked: Namespace) -> None:
    """F alone."""
    say("disk: append 1 KiB to a preallocated, zero-filled file, flush, again")
    found = [place.flushes(_seconds(asked) / 2) for _ in range(max(3, _runs(asked)))]
    figure("disk.flushes_per_s", middle(found, "F", "flushes/s"), "1/s")


def store(place: Place, asked: Namespace) -> None:
    """The store's transitions."""
    for size in asked.jobs:
        say(f"store, {size} jobs")
        rates, syncs, flushes = [], [], []
        for _ in range(_runs(asked)):
            flushes.append(place.flushes())
            with place.folder() as folder:
                rate, each = bare_store.measure(folder, size, _commits(asked, size))
            rates.append(rate)
            syncs.append(each)
        beside = middle(flushes, "F beside it", "1/s")
        figure(
            "store.transitions_per_s", middle(rates, "transitions", "1/s"), "1/s", beside=beside, jobs=size
        )
        figure("store.syncs_per_transition", middle(syncs, "syncs a transition", ""), "syncs", jobs=size)


def _commits(asked: Namespace, size: int) -> int:
    commits = COMMITS.get(size, max(20, 20_000 // size))
    return max(10, commits // 10) if asked.quick else commits


def daemon(place: Place, asked: Namespace) -> None:
    """Steps through daemon and worker."""
    for size in asked.jobs:
        say(f"daemon, {size} jobs in one worker of {size} slots")
        _steps(place, asked, size, jobs=size)
    if 64 in asked.jobs:
        say("daemon, 64 jobs in 16 workers of 4 slots")
        _steps(place, asked, 64, workers=16, jobs=64)
    if 1 in asked.jobs:
        say("daemon, 1 job that asks for one call after the other, in a worker of 1 slot")
        _effects(place, asked)


def slow_disk(place: Place, asked: Namespace) -> None:
    """The same on a disk whose every sync takes 2 ms more."""
    for size in (1, 64):
        say(f"daemon, {size} jobs, {DELAY_MS} ms added to each sync")
        _steps(place, asked, size, delay=DELAY_MS / 1000, jobs=size, sync_delay_ms=DELAY_MS)


def _steps(
    place: Place, asked: Namespace, size: int, *, workers: int = 1, delay: float = 0.0, **keys: int
) -> None:
    runs: list[Run] = []
    flushes = []
    for _ in range(_runs(asked)):
        flushes.append(place.flushes())
        with place.folder() as folder:
            runs.append(
                whole_daemon.measure(
                    folder, size, _seconds(asked), asked.backend, workers=workers, delay=delay
                )
            )
    if workers > 1:
        keys |= {"workers": workers}
    beside = middle(flushes, "F beside it", "1/s")
    rate = middle([run.steps_per_s for run in runs], "steps", "1/s")
    figure("daemon.steps_per_s", rate, "1/s", beside=beside, **keys)
    each = middle([run.syncs_per_step for run in runs], "syncs a step", "")
    figure("daemon.syncs_per_step", each, "syncs", **keys)
    each = middle([run.cpu_us for run in runs], "the daemon's CPU a step", "us")
    figure("daemon.cpu_us_per_step", each, "us", **keys)
    for share in (0.5, 0.99):
        found = middle([percentile(run.gaps, share) for run in runs], f"step, {share:.0%} within", "ms")
        figure("daemon.step_ms", found, "ms", quantile=share, **keys)


def _effects(place: Place, asked: Namespace) -> None:
    """Steps that each ask for one call, to a target that does nothing, and go on when it is confirmed."""
    runs: list[Run] = []
    flushes = []
    for _ in range(_runs(asked)):
        flushes.append(place.flushes())
        with place.folder() as folder:
            runs.append(
                whole_daemon.measure(folder, 1, _seconds(asked), asked.backend, workflow="publishing")
            )
    beside = middle(flushes, "F beside it", "1/s")
    rate = middle([run.steps_per_s for run in runs], "effect steps", "1/s")
    figure("daemon.effect_steps_per_s", rate, "1/s", beside=beside, jobs=1)
    each = middle([run.syncs_per_step for run in runs], "syncs an effect step", "")
    figure("daemon.syncs_per_effect_step", each, "syncs", jobs=1)


def start(place: Place, asked: Namespace) -> None:
    """Cold start; kill -9 to READY and the memory over stores of parked jobs."""
    runs = _runs(asked)
    say("start: a daemon where nothing is yet")
    colds = []
    for _ in range(runs + 2):
        with place.folder() as folder:
            colds.append(start_up.cold(folder))
    figure("daemon.cold_start_s", middle(colds, "cold start", "s"), "s")
    made = 0.0
    store = place.kept("parked")
    sizes = (0, 100) if asked.quick else (*PARKED, LARGE) if asked.large else PARKED
    for size in sizes:
        if size:
            begun = perf_counter()
            parked_store.make(store, size)
            made += perf_counter() - begun
            say(f"start: {size} parked jobs, made in {made:.0f} s")
        with place.folder() as folder:
            found = start_up.after_kill(folder, store if size else None, runs)
        ready = middle([each.ready for each in found], "kill -9 to READY", "s")
        figure("daemon.ready_s", ready, "s", parked=size)
        loaded = middle([each.loaded for each in found], "kill -9 to the last job read", "s")
        figure("daemon.loaded_s", loaded, "s", parked=size)
        figure("daemon.pss_mib", middle([each.pss for each in found], "PSS", "MiB"), "MiB", parked=size)


def actors(place: Place, asked: Namespace) -> None:
    """What an idle actor weighs."""
    count = 100 if asked.quick else 1_000
    say(f"actors: {count} jobs that are idle and not parked")
    with place.folder() as folder:
        weight = idle_actors.measure(folder, count)
    figure("daemon.actor_pss_kib", weight.kib, "KiB")
    say(f"  an idle actor: {weight.kib:.1f} KiB of {weight.jobs}")


def calls(place: Place, asked: Namespace) -> None:
    """Reads and durable commands on an open connection."""
    count = 50 if asked.quick else 2_000
    say(f"calls on an open connection, {count} of each, {socket_calls.JOBS} parked jobs")
    with place.folder() as folder:
        found = socket_calls.measure(folder, count)
    quantiles("daemon.command_ms", found.on_living, "ms", "a command, the job has an actor")
    quantiles("daemon.parked_command_ms", found.on_parked, "ms", "a command, the job is parked")
    for method, each in found.reads.items():
        say(f"  {method}: {percentile(each, 0.5):.3f} ms, 99% within {percentile(each, 0.99):.3f} ms")
    quantiles("daemon.read_ms", found.reads["Status"], "ms", "a read")
    say(f"  reads over {socket_calls.TOGETHER} connections: {found.reads_per_s:,.0f} 1/s")
    figure("daemon.reads_per_s", found.reads_per_s, "1/s")


def folder(place: Place, asked: Namespace) -> None:
    """The watched folder."""
    files = 10 if asked.quick else 60
    say(f"inbox: {files} files, one after the other")
    with place.folder() as where:
        found = inbox.accept_ms(where, files)
    quantiles("inbox.accept_ms", found, "ms", "a dropped file")
    files, runs = (200, 1) if asked.quick else (10_000, 1)
    say(f"inbox: a burst of {files} files")
    rates, flushes = [], []
    for _ in range(runs):
        flushes.append(place.flushes())
        with place.folder() as where:
            rates.append(inbox.jobs_per_s(where, files))
    say(f"  {median(rates):,.0f} jobs/s, F beside it {median(flushes):,.0f}")
    figure("inbox.jobs_per_s", median(rates), "1/s", beside=median(flushes), files=files)


def cli(place: Place, asked: Namespace) -> None:
    """A whole `resumectl status`, and the interpreter's share of it."""
    runs = 5 if asked.quick else 100
    say("cli: whole processes, one after the other")
    starts = command_line.python_start_ms(runs)
    with place.folder() as folder:
        found = command_line.status_ms(folder, runs)
    figure("cli.python_start_ms", middle(starts, "python alone", "ms"), "ms")
    quantiles("cli.status_ms", found, "ms", "resumectl status")
    say(f"  {median(found) / median(starts):.1f} times the bare interpreter")


KNOWN: dict[str, Callable[[Place, Namespace], None]] = {
    "disk": disk,
    "store": store,
    "daemon": daemon,
    "slow-disk": slow_disk,
    "start": start,
    "actors": actors,
    "calls": calls,
    "inbox": folder,
    "cli": cli,
}
