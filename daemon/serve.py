"""`resumed serve`: takes the store and the socket, then runs supervisor, socket and incoming folder together.

The order that must hold: what can be refused by looking, then the seat at the socket, then the store and its
lock, so that a refused start leaves no store behind; the jobs before the doors. At the end: the incoming
folder rests, tries are stopped in good order, the doors close.
"""

import logging
import os
import signal
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread
from attrs import frozen

from resumed.actors.clock import Clock, SystemClock
from resumed.actors.containment import start_time
from resumed.actors.house import House
from resumed.schemas.errors import BusyError, StoreError
from resumed.store import layout as store_layout
from resumed.store import lock
from resumed.store.layout import Layout

from . import conversation, rights
from .answers import Answers
from .config import Config
from .connections import Doorman
from .desk import Desk, Jobs
from .incoming import Incoming, PlacedLayout
from .shelf import WorkflowShelf
from .socket import Seat

RELOAD_EVERY = 5.0
SIGNALS = (signal.SIGTERM, signal.SIGINT)

log = logging.getLogger(__name__)


@frozen(kw_only=True)
class Taken:
    """What was taken before the loop runs."""

    config: Config
    layout: Layout
    seat: Seat
    shelf: WorkflowShelf
    clock: Clock
    release: str


def run(config: Config, release: str) -> None:
    """Serves until a signal; BusyError and StoreError are refusals to start."""
    with taken(config, release) as had:
        anyio.run(partial(serve, had), backend=config.backend)


@contextmanager
def taken(config: Config, release: str) -> Iterator[Taken]:
    """The store and the socket, held together and given up together."""
    clock = SystemClock()
    _check_state(config)
    _check_incoming(config)
    seat = Seat(config.socket)
    try:
        layout = _made(config, clock)
        held = lock.hold(layout, _own_identity(clock))
        try:
            shelf = WorkflowShelf(config.workflows, None if os.geteuid() == rights.ROOT else Path.home())
            shelf.reload()
            yield Taken(config=config, layout=layout, seat=seat, shelf=shelf, clock=clock, release=release)
        finally:
            held.release()
    finally:
        seat.leave()


def _made(config: Config, clock: Clock) -> Layout:
    try:
        layout = store_layout.create(config.state, _new_id(), clock.now())
    except FileExistsError:
        raise BusyError(f"cannot make the store {config.state}: another process is making it") from None
    except OSError as error:
        raise _unusable(config.state, error) from None
    if config.incoming != layout.incoming:
        return PlacedLayout(layout.root, config.incoming)
    return layout


async def serve(had: Taken) -> None:
    """Runs the daemon until a signal has drained it."""
    config, shelf = had.config, had.shelf
    house = House(
        had.layout,
        shelf,
        clock=had.clock,
        backend=config.backend,
        most_workers=config.workers,
        shelf=lambda: (shelf.names(), shelf.problems),
    )
    answers = Answers(Desk(jobs=house.jobs, shelf=shelf), os.geteuid(), had.release)
    doorman = Doorman(had.seat, lambda connection: conversation.hold(connection, answers), os.geteuid())
    intake = Incoming(had.layout, house.jobs, had.clock)
    with anyio.open_signal_receiver(*SIGNALS) as signals:
        async with anyio.create_task_group() as tasks:
            await tasks.start(house.run)
            async with anyio.create_task_group() as doors:
                await doors.start(doorman.run)
                await doors.start(intake.run)
                doors.start_soon(_reload, shelf)
                _say_ready(had, house.jobs)
                await _wait_and_drain(signals, intake, house, config.stop_timeout)
                doors.cancel_scope.cancel()
            tasks.cancel_scope.cancel()
    log.info("The daemon stopped.")


async def _wait_and_drain(
    signals: AsyncIterator[signal.Signals], intake: Incoming, house: House, seconds: float
) -> None:
    """Returns once a signal came and the tries are stopped; a second signal hurries."""
    asked = await anext(signals)
    log.info("The daemon was asked to stop (%s) and has %g seconds for it.", asked.name, seconds)
    intake.rest()

    async with anyio.create_task_group() as waiting:

        async def hurry() -> None:
            again = await anext(signals)
            log.warning("The daemon was asked again to stop (%s), and hurried.", again.name)
            await house.drain(0)
            waiting.cancel_scope.cancel()

        waiting.start_soon(hurry)
        await house.drain(seconds)
        waiting.cancel_scope.cancel()


async def _reload(shelf: WorkflowShelf) -> None:
    """Looks at the workflow files from time to time; the jobs at work keep what they were admitted with."""
    while True:
        await anyio.sleep(RELOAD_EVERY)
        if await to_thread.run_sync(shelf.reload):
            log.info("The workflows were read again: %s.", ", ".join(shelf.names()) or "none")


def _say_ready(had: Taken, jobs: Jobs) -> None:
    view = jobs.house()
    log.info(
        "ready: store %s, socket %s, incoming %s, workflows %s; %d open jobs, %d set aside; loop %s.",
        had.layout.root,
        had.config.socket,
        had.layout.incoming,
        ", ".join(had.shelf.names()) or "none",
        view.open,
        view.quarantined,
        had.config.backend,
    )


def _check_state(config: Config) -> None:
    """A folder that is there must be a folder of ours alone, and hold no store that we cannot open."""
    try:
        there = os.stat(config.state)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unusable(config.state, error) from None
    why = rights.problem(there)
    if not stat.S_ISDIR(there.st_mode):
        why = "it is no folder"
    elif there.st_uid != os.geteuid():
        why = f"it belongs to uid {there.st_uid}, expected our own ({os.geteuid()})"
    if why:
        raise StoreError(f"cannot use the store {config.state}: {why}", path=str(config.state))
    store_layout.check(Layout(config.state))


def _check_incoming(config: Config) -> None:
    """A watched folder elsewhere must be there, and lie where a rename can reach it."""
    if config.incoming == config.state / "incoming":
        return
    try:
        there = os.stat(config.incoming)
    except OSError as error:
        raise _unusable(config.incoming, error) from None
    beside = config.state
    while not beside.exists():
        beside = beside.parent
    if there.st_dev != os.stat(beside).st_dev:
        raise StoreError(
            f"cannot watch {config.incoming}: it lies on another file system than the store {config.state}, "
            "and files are taken in by a rename",
            path=str(config.incoming),
        )


def _unusable(path: Path, error: OSError) -> StoreError:
    return StoreError(f"cannot use {path}: {error.strerror or error}", path=str(path))


def _new_id() -> str:
    """A store's id is drawn once, by the kernel."""
    return Path("/proc/sys/kernel/random/uuid").read_text("ascii").strip()


def _own_identity(clock: Clock) -> dict[str, str | int]:
    """Who holds the lock, for people and for a later daemon that looks."""
    pid = os.getpid()
    return {"boot": clock.now().boot, "pid": pid, "start": start_time(pid) or 0}
