"""The watched folder at work: the folder is the truth, events are only hints to look at it sooner.

It is scanned at start, at every event and every five seconds; what was claimed and not finished is taken up
first. A file leaves `claimed/` only when its job, or its refusal, is durable; so a kill anywhere repeats at
most the question, and the supervisor answers the same file of the same owner with the job that exists.
"""

import logging
import os
import pwd
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import watchfiles
from anyio import to_thread
from anyio.abc import TaskGroup, TaskStatus
from attrs import frozen

from resumed.actors import refusals
from resumed.actors.clock import Clock
from resumed.schemas import strict
from resumed.schemas.errors import FaultyInputError, GoneError, StoreError
from resumed.schemas.job import Person
from resumed.schemas.refusal import Refusal
from resumed.store import intake
from resumed.store.intake import Claimed, Taken
from resumed.store.layout import Layout

from .desk import Jobs
from .grants import Grants, Permit, Role

SCAN_EVERY = 5.0
YOUNG = 3_000_000_000
"""Nanoseconds after its last change in which a file that cannot be read may still be being written."""
SOON = 0.25
"""Seconds until a file that is not whole yet is looked at again."""
TOGETHER = 32
"""Files that are taken out of the folder by one call, and become jobs in one."""
AT_ONCE = 2 * TOGETHER
"""Files under admission at a time: some are judged while the disk is at work on others."""

T = TypeVar("T")
log = logging.getLogger(__name__)

PAUSED = "/"
"""The key, no file's name, under which it is noted that a pause was said."""


@frozen
class PlacedLayout(Layout):
    """A store whose watched folder lies elsewhere, on the same file system."""

    watched: Path

    @property
    def incoming(self) -> Path:
        """The watched folder."""
        return self.watched


class Incoming:
    """Admits the files of one folder, some at a time: one that takes long holds up no other."""

    def __init__(
        self,
        layout: Layout,
        jobs: Jobs,
        clock: Clock,
        grants: Grants,
        paused: Callable[[], str] = str,
    ) -> None:
        self._layout = layout
        self._jobs = jobs
        self._clock = clock
        self._grants = grants
        """Whose files are taken: those of everybody who may hand in jobs of the workflow they name."""
        self._paused = paused
        """Why nothing is taken in now; "" when it is."""
        self._bell = anyio.Event()
        self._said: dict[str, str] = {}
        self._resting = False
        self._places = anyio.Semaphore(AT_ONCE, fast_acquire=True)
        self._busy: set[str] = set()
        """The names under admission, or on their way out of `claimed/`."""
        self._admitted: list[tuple[Claimed, str]] = []
        """What is to leave `claimed/`, and what became of it; with `_removing`, somebody is at it."""
        self._removing = False
        self._owners: dict[int, Person] = {}
        self._unready = False

    def rest(self) -> None:
        """Takes no more files; those that are claimed are taken up by the next daemon."""
        self._resting = True

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Scans until cancelled; `started()` once the watching has begun."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch)
            task_status.started()
            async with anyio.create_task_group() as admissions:
                while not self._resting:
                    self._bell = anyio.Event()
                    wait = await self._round(admissions)
                    with anyio.move_on_after(wait):
                        await self._bell.wait()
            tasks.cancel_scope.cancel()

    async def scan(self) -> bool:
        """One look at both folders, to its end; true when a file is there that has to be looked at again."""
        self._unready = False
        async with anyio.create_task_group() as admissions:
            soon = await self._look(admissions, 0.0)
        return soon is not None or self._unready

    async def _look(self, admissions: TaskGroup, pause: float) -> float | None:
        """Begins what both folders hold; how soon a file is there that has to be looked at again, if any."""
        self._owners.clear()
        if said := self._paused():
            self._say_once(PAUSED, f"No file is taken in: {said}")
            return None
        self._said.pop(PAUSED, None)
        for names in _pieces(await _disk(intake.claimed, self._layout)):
            await self._take(admissions, partial(intake.take_up, self._layout), names, pause)
        soonest: float | None = None
        for names in _pieces(await _disk(intake.scan, self._layout.incoming)):
            if self._resting:
                return None
            take = partial(intake.take, self._layout, now=self._clock.now())
            soon = await self._take(admissions, take, names, pause)
            if soon is not None:
                soonest = soon if soonest is None else min(soon, soonest)
        return soonest

    async def _take(
        self, admissions: TaskGroup, take: Callable[..., Taken], names: Sequence[str], pause: float
    ) -> float | None:
        """Reads some files by one call and begins each admission once there is a place for it.

        A name that is under admission is left alone.
        """
        names = [name for name in names if name not in self._busy]
        if not names:
            return None
        # Before they are claimed: whoever has no place must not take files out of the folder.
        await self._places.acquire()
        self._places.release()
        taken = await _disk(take, names=names)
        begun: list[tuple[str, Claimed | Exception]] = [(file.name, file) for file in taken.files]
        for name, what in (*begun, *taken.met):
            await self._places.acquire()
            self._busy.add(name)
            admissions.start_soon(self._go_on, name, what, pause)
        return taken.still_in

    async def _go_on(self, name: str, what: Claimed | Exception, pause: float) -> None:
        """Takes one file through; when it has to be tried again soon, that is said a moment later."""
        leaves = False
        try:
            leaves, ready = await self._admit(name, what)
        finally:
            self._places.release()
            if not leaves:
                self._busy.discard(name)
        if leaves:
            await self._remove_admitted()
        if not ready:
            self._unready = True
            await anyio.sleep(pause)
            self._bell.set()

    async def _remove_admitted(self) -> None:
        """Empties `claimed/` of what was admitted; whoever is at it takes along what is added meanwhile."""
        if self._removing:
            return
        self._removing = True
        try:
            while admitted := self._admitted:
                self._admitted = []
                _say_admitted([said for _, said in admitted])
                files = [file for file, _ in admitted]
                try:
                    await _disk(intake.finish, self._layout, *files)
                except (StoreError, OSError) as error:
                    # They are found there by the next scan, and each is then the job that exists.
                    self._say_once("", f"What was admitted could not be removed yet: {error}")
                finally:
                    self._busy.difference_update(file.name for file in files)
        finally:
            self._removing = False

    async def _round(self, admissions: TaskGroup) -> float:
        """Seconds until the next one, unless the bell rings before."""
        try:
            soon = await self._look(admissions, SOON)
        except (StoreError, OSError) as error:
            self._say_once("", f"The incoming folder could not be scanned: {error}")
            return SCAN_EVERY
        self._said.pop("", None)
        return SCAN_EVERY if soon is None else min(soon, SCAN_EVERY)

    async def _admit(self, name: str, what: Claimed | Exception) -> tuple[bool, bool]:
        """Takes one file through: whether it leaves `claimed/` now, and not whether it has to be tried again
        soon. Its trouble is its own."""
        file = what if isinstance(what, Claimed) else None
        try:
            if isinstance(what, Exception):
                raise what
            if said := await self._offer(what):
                self._admitted.append((what, said))
                self._said.pop(name, None)
                return True, True
        except FaultyInputError as error:
            return False, await self._refuse(name, file, error)
        except (FileNotFoundError, FileExistsError):
            pass  # gone again, or an earlier file of that name is still being admitted
        except (StoreError, OSError, GoneError) as error:
            self._say_once(name, f"The file {name!r} could not be admitted yet: {error}")
            return False, True
        except Exception as error:  # noqa: BLE001  # logged in full there
            return False, await self._give_up(name, error)
        self._said.pop(name, None)
        return False, True

    async def _give_up(self, name: str, error: Exception) -> bool:
        """Puts a file aside that met a fault of ours: left in its place it would meet it at every start."""
        log.error("The file %r met an internal error.", name, exc_info=error)
        try:
            what = f"cannot admit {_shown(name)}: internal error"
            await self._reject(name, "internal", what, (strict.plain(f"{type(error).__name__}: {error}"),))
        except Exception as trouble:  # noqa: BLE001  # it stays where it is, and all other files go on
            self._say_once(name, f"The file {name!r} could not be put aside yet: {trouble}")
        return True

    async def _refuse(self, name: str, file: Claimed | None, error: FaultyInputError) -> bool:
        """Puts a faulty file aside; False when it may still be being written, and is left for a while."""
        try:
            if not (file is not None and _is_whole(file.raw)) and not await self._is_old(name):
                return False
            await self._reject(name, "faulty", error.what, error.problems)
        except (StoreError, OSError) as trouble:
            self._say_once(name, f"The file {name!r} could not be put aside yet: {trouble}")
        return True

    async def _permit_of(self, uid: int) -> Permit:
        """What the owner of a file may do; only of others it takes a look at the host's groups."""
        if uid in self._grants.ours:
            return self._grants.permit(uid, ())
        return await _disk(self._grants.permit_of_owner, uid)

    async def _offer(self, file: Claimed) -> str:
        """Hands a file to the supervisor; what became of it, or nothing when it now lies in `rejected/`."""
        permit = await self._permit_of(file.uid)
        if not permit.anywhere(Role.SUBMITTER):
            said = (
                f"cannot admit {_shown(file.name)}: it belongs to uid {file.uid}, which may not hand jobs in"
            )
            await self._reject(file.name, "not_permitted", said, ())
            return ""
        if file.uid not in self._owners:
            self._owners[file.uid] = await _disk(_owner_of, file.uid)
        told = await self._jobs.submit(
            file.raw,
            name=_shown(file.name),
            requester=self._owners[file.uid],
            via="incoming",
            may=lambda workflow: permit.of_workflow(Role.SUBMITTER, workflow),
        )
        if isinstance(told, Refusal) and told.code == refusals.DISK:
            raise StoreError(told.reason)  # it stays claimed, and is offered again when the disk works
        if isinstance(told, Refusal):
            await self._reject(file.name, told.code, told.reason, told.commands)
            return ""
        verb = "was known already as" if told.repeated else "was admitted as"
        return f"{file.name!r} {verb} job {told.row.id}"

    async def _is_old(self, name: str) -> bool:
        """Whether nothing has changed in a claimed file for so long that nobody is still writing it."""
        found = await _disk(os.lstat, self._layout.claimed / name)
        return abs(self._clock.now().wall * 1000 - found.st_mtime_ns) >= YOUNG

    async def _reject(self, name: str, code: str, reason: str, problems: tuple[str, ...]) -> None:
        said = {"code": code, "reason": reason, "problems": list(problems)}
        place = await _disk(intake.reject, self._layout, name, said, self._clock.now())
        log.warning("The file %r was refused and lies in %s: %s %s", name, place, reason, "; ".join(problems))

    def _say_once(self, name: str, sentence: str) -> None:
        if self._said.get(name) != sentence:
            log.warning("%s", sentence)
        self._said[name] = sentence

    async def _watch(self) -> None:
        """Rings the bell at every event; begins anew when the watching broke or the folder is another."""
        while True:
            stop = anyio.Event()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._stop_when_replaced, stop)
                try:
                    async for _ in watchfiles.awatch(
                        self._layout.incoming,
                        watch_filter=None,
                        stop_event=stop,
                        step=20,
                        debounce=200,
                        recursive=False,
                    ):
                        self._bell.set()
                except Exception as error:  # noqa: BLE001  # a hint that fails must not end the daemon
                    # A name that is not UTF-8 ends the watching, and so does a folder that is gone.
                    log.debug("The watching of %s ended: %s", self._layout.incoming, error)
                tasks.cancel_scope.cancel()
            self._bell.set()
            await anyio.sleep(1.0)

    async def _stop_when_replaced(self, stop: anyio.Event) -> None:
        try:
            begun = await _disk(_identity, self._layout.incoming)
            while True:
                await anyio.sleep(SCAN_EVERY)
                if await _disk(_identity, self._layout.incoming) != begun:
                    break
        finally:
            # Also when we are cancelled: the watcher's thread is waited for, and hears nothing else.
            stop.set()


def _say_admitted(said: Sequence[str]) -> None:
    """One line for what was admitted together: a burst of files must not drown the log."""
    if len(said) == 1:
        log.info("The file %s.", said[0])
    else:
        log.info("%d files were taken in: %s.", len(said), ", ".join(said))


async def _disk(call: Callable[..., T], *arguments: object, **named: object) -> T:
    """A call of the disk in a thread; it is never abandoned half way."""
    return await to_thread.run_sync(lambda: call(*arguments, **named))


def _pieces(names: Sequence[str]) -> Iterator[Sequence[str]]:
    return (names[start : start + TOGETHER] for start in range(0, len(names), TOGETHER))


def _is_whole(raw: bytes) -> bool:
    """Whether nothing can be missing at the end: JSON that was cut never parses, TOML may."""
    try:
        strict.parse(raw, "")
    except FaultyInputError:
        return False
    return True


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        return intake.identity(folder)
    except OSError:
        return None


def _owner_of(uid: int) -> Person:
    """The owner of a file, with the groups that the user database gives."""
    try:
        found = pwd.getpwuid(uid)
    except KeyError:
        return Person(uid=uid, name=str(uid), via="incoming")
    groups = tuple(os.getgrouplist(found.pw_name, found.pw_gid))
    return Person(uid=uid, name=found.pw_name, via="incoming", gid=found.pw_gid, groups=groups)


def _shown(name: str) -> str:
    """The name as text that any record can hold."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
