"""`resumed serve`: takes the store and the socket, then runs supervisor, socket and incoming folder together.

The order that must hold: what can be refused by looking, then the lock of a store that is there, then the
seat at the socket, and only then is a store made, so that a refused start leaves nothing behind. The jobs
before the doors, the doors before `ready`. At the end: the incoming folder rests, tries are stopped in good
order, the doors close.
"""

import logging
import os
import select
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
from anyio import to_thread
from attrs import frozen

from resumed.actors import controlgroups
from resumed.actors.bounds import Bounds
from resumed.actors.clock import Clock, SystemClock
from resumed.actors.containment import start_time
from resumed.actors.controlgroups import Groups
from resumed.actors.house import House
from resumed.schemas.errors import BusyError, ResumedError
from resumed.schemas.instant import MICRO
from resumed.store import layout as store_layout
from resumed.store import lock
from resumed.store.layout import Layout
from resumed.store.lock import Lock

from . import config as configs
from . import notify, passed, premises, takeover
from .config import Config
from .connections import Connection, Doorman
from .desk import Desk, Jobs
from .grants import Grants
from .growth import Growth
from .herald import Herald
from .incoming import Incoming, PlacedLayout
from .notify import Notifier
from .orders import SIGNALS, Orders
from .passed import PassedSeat
from .reloading import Reloading
from .shelf import WorkflowShelf
from .socket import Seat

GIVE_WAY = 2.0
"""Seconds in which another that starts at the same instant has given way."""

log = logging.getLogger(__name__)


@frozen(kw_only=True)
class Start:
    """What a start goes by: the configuration, how to read it again, and what the service manager gave."""

    config: Config
    again: Callable[[], Config]
    release: str
    notifier: Notifier
    seat: PassedSeat | None
    take_over: bool = False
    """End a daemon that holds the store."""


@frozen(kw_only=True)
class Taken:
    """What was taken before the loop runs."""

    start: Start
    layout: Layout
    seat: Seat | PassedSeat
    shelf: WorkflowShelf
    clock: Clock
    groups: Groups | None


def begin(
    config: Config,
    again: Callable[[], Config],
    release: str,
    environ: MutableMapping[str, str],
    *,
    take_over: bool = False,
) -> None:
    """Serves until a signal; BusyError, StoreError and FaultyInputError are refusals to start.

    What the service manager gave us is taken out of `environ`.
    """
    pid = os.getpid()
    notifier, seat = notify.take(environ, pid), passed.take(environ, pid)
    run(
        Start(
            config=config,
            again=again,
            release=release,
            notifier=notifier,
            seat=seat,
            take_over=take_over,
        )
    )


def run(start: Start) -> None:
    """Serves until a signal."""
    with taken(start) as had:
        try:
            anyio.run(partial(serve, had), backend=start.config.backend)
        except BaseExceptionGroup as group:
            # A refusal that only the loop could find, a store that cannot be listed, is one like the others.
            refused = _only(group)
            if isinstance(refused, ResumedError):
                raise refused from None
            raise


def _only(error: BaseException) -> BaseException:
    """What a group holds when that is one error, else the group."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


@contextmanager
def taken(start: Start) -> Iterator[Taken]:
    """The store and the socket, held together and given up together."""
    clock, config = SystemClock(), start.config
    premises.look(config, passed=start.seat is not None)
    with ExitStack() as held:
        there = Layout(config.state).store_file.exists()
        if there:
            held.callback(_hold(Layout(config.state), clock, start.take_over).release)
        seat = start.seat or Seat(config.socket, *premises.openness(config))
        held.callback(seat.leave)
        layout = _made(config, clock)
        if not there:
            held.callback(_hold_made(layout, clock, start.take_over).release)
        groups = controlgroups.take(config.state, said=os.environ.get(controlgroups.SAID, ""))
        shelf = shelf_of(config, limits_hold=groups is not None and groups.can_limit())
        shelf.reload()
        yield Taken(start=start, layout=layout, seat=seat, shelf=shelf, clock=clock, groups=groups)


def shelf_of(config: Config, *, limits_hold: bool) -> WorkflowShelf:
    """The workflow files that a configuration names, not read yet; whether the kernel holds their limits."""
    home = configs.own_home(config, os.environ, os.geteuid())
    return WorkflowShelf(config.workflows, home, control_groups=limits_hold)


def _hold(layout: Layout, clock: Clock, take_over: bool) -> Lock:
    ours = own_identity(clock)
    return takeover.hold(layout, ours, clock) if take_over else lock.hold(layout, ours)


def _hold_made(layout: Layout, clock: Clock, take_over: bool) -> Lock:
    """The lock of a store that was made just now, by whoever holds the seat.

    Another that starts at the same instant may have found the store made, and hold its lock until it finds
    the seat taken; were both to give up for the other, none would be left (C35 e).
    """
    until = clock.now().up + round(GIVE_WAY * MICRO)
    while True:
        try:
            return _hold(layout, clock, take_over)
        except BusyError:
            if clock.now().up >= until:
                raise
        select.poll().poll(20)


def _made(config: Config, clock: Clock) -> Layout:
    try:
        layout = store_layout.create(config.state, new_id(), clock.now())
    except FileExistsError:
        raise BusyError(f"cannot make the store {config.state}: another process is making it") from None
    except OSError as error:
        raise premises.unusable(config.state, error) from None
    if config.incoming != layout.incoming:
        return PlacedLayout(layout.root, config.incoming)
    return layout


async def serve(had: Taken) -> None:
    """Runs the daemon until a signal has drained it."""
    config, shelf = had.start.config, had.shelf
    grants = Grants(os.geteuid(), config.grants)
    house = House(
        had.layout,
        shelf,
        clock=had.clock,
        backend=config.backend,
        most_workers=config.workers,
        credentials=str(config.credentials or ""),
        shelf=lambda: (shelf.names(), shelf.problems),
        groups=had.groups,
        authority=grants,
        bounds=_bounds(config),
    )

    def changed(found: Config) -> None:
        house.allow_workers(found.workers)
        house.bound(_bounds(found))
        grants.replace(found.grants)

    reloading = Reloading(config, shelf, had.start.again, had.start.notifier, changed)
    growth = Growth()
    desk = Desk(jobs=house.jobs, shelf=shelf, reload=reloading.now, permit_of=grants.permit_of, growth=growth)
    doorman = Doorman(had.seat, _converse(desk, had.start.release), grants)
    intake = Incoming(had.layout, house.jobs, had.clock, grants, lambda: house.trouble.said)
    herald = Herald(had.start.notifier, house, lambda: doorman.trouble)
    orders = Orders(reloading.ring)
    with anyio.open_signal_receiver(*SIGNALS) as signals:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(orders.hear, signals)
            tasks.start_soon(herald.run)
            async with anyio.create_task_group() as doors:
                with orders.opening:
                    await tasks.start(house.run)
                    await doors.start(doorman.run)
                    await doors.start(intake.run)
                    doors.start_soon(reloading.run)
                    doors.start_soon(growth.run)
                    doors.start_soon(to_thread.run_sync, grants.look_up)
                    _say_ready(had, house.jobs)
                    herald.ready()
                    _methods()
                    await anyio.sleep_forever()
                # Asked to stop, wherever the start had come to.
                seconds = reloading.config.stop_timeout
                log.info(
                    "The daemon was asked to stop (%s) and has %g seconds for it.", orders.asked, seconds
                )
                herald.stopping(seconds)
                intake.rest()
                await _drain(orders, house, seconds)
                doors.cancel_scope.cancel()
            tasks.cancel_scope.cancel()
    log.info("The daemon stopped.")


def _converse(desk: Desk, release: str) -> Callable[[Connection], Awaitable[None]]:
    """How a connection is held; the first one waits until the methods are loaded."""

    async def converse(connection: Connection) -> None:
        conversation, answers = _methods()
        await conversation.hold(connection, answers.Answers(desk, release))

    return converse


def _methods() -> tuple[Any, Any]:
    """What answers at the socket: loaded once the daemon has said that it is ready, or by its first caller.

    It is a tenth of a start, and nothing is ready later for it: who connects meanwhile waits in the backlog.
    """
    from . import answers, conversation

    return conversation, answers


def _bounds(config: Config) -> Bounds:
    return configs.bounds(config, os.environ, os.geteuid())


async def _drain(orders: Orders, house: House, seconds: float) -> None:
    """Returns once the tries are stopped; a second signal hurries."""
    async with anyio.create_task_group() as waiting:

        async def hurry() -> None:
            await orders.hurry.wait()
            await house.drain(0)
            waiting.cancel_scope.cancel()

        waiting.start_soon(hurry)
        await house.drain(seconds)
        waiting.cancel_scope.cancel()


def _say_ready(had: Taken, jobs: Jobs) -> None:
    view = jobs.house()
    log.info(
        "ready: store %s, socket %s, incoming %s, workflows %s; %d open jobs, %d set aside; loop %s.",
        had.layout.root,
        had.seat.path,
        had.layout.incoming,
        ", ".join(had.shelf.names()) or "none",
        view.open,
        view.quarantined,
        had.start.config.backend,
    )


def new_id() -> str:
    """A store's id is drawn once, by the kernel."""
    return Path("/proc/sys/kernel/random/uuid").read_text("ascii").strip()


def own_identity(clock: Clock) -> dict[str, str | int]:
    """Who holds the lock, for people and for a later daemon that looks."""
    pid = os.getpid()
    return {"boot": clock.now().boot, "pid": pid, "start": start_time(pid) or 0}
