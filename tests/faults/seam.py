"""Faults on the durable seam: every primitive of `durable` can be recorded, killed at, failed or cut short.

    with Seam(Kill(7, "after")) as seam:
        with pytest.raises(Killed):
            story()
    assert seam.hit

Calls that change the disk are counted from 0. After a kill every further call raises too: nothing that a
`finally` or an `except` does can still reach the disk.
"""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from attrs import define, field, frozen

from resumed.store import durable


class Killed(BaseException):
    """The process is gone; no handler may survive it."""


@frozen
class Call:
    """One call that changes the disk: its number, the primitive, and what it was about."""

    number: int
    name: str
    about: str

    def __str__(self) -> str:
        return f"#{self.number} {self.name} {self.about}"


@frozen
class Kill:
    """Die at call `at`: `before` it happens, `after` it happened, or with `half` of a write done."""

    at: int
    when: str = "before"


@frozen
class Fail:
    """Call `at` fails with this errno; a failed write may have taken half, a failed sync synced nothing."""

    at: int
    errno: int


@frozen
class Short:
    """Write call `at` takes one byte only, as a signal or a full disk can make it."""

    at: int


@frozen
class FailLook:
    """Reading call `at` (counted apart) fails with this errno."""

    at: int
    errno: int


Fault = Kill | Fail | Short | FailLook | None


@define
class Seam:
    """Replaces the primitives while it is entered; `calls` is what was asked of the disk, in order."""

    fault: Fault = None
    calls: list[Call] = field(factory=list)
    looks: int = 0
    hit: bool = False
    dead: bool = False
    paths: dict[int, str] = field(factory=dict)
    _real: dict[str, Callable[..., Any]] = field(factory=dict)
    _next: dict[str, int] = field(factory=dict)
    _acts: dict[str, Callable[..., object]] = field(factory=dict)

    def __enter__(self) -> Self:
        for name in (*durable.MUTATING, *durable.READING):
            self._real[name] = getattr(durable, name)
            setattr(durable, name, self._wrap(name))
        # What goes to the kernel in one call cannot be hit in its middle: here it goes call by call.
        self._real["_own_group"] = durable._own_group
        setattr(durable, "_own_group", lambda: None)  # noqa: B010 - a function, for the time of a test
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name, real in self._real.items():
            setattr(durable, name, real)

    def fail_next(self, name: str, number: int = errno.EIO) -> None:
        """Let the next call of that primitive fail: a fault that belongs to the story itself."""
        self._next[name] = number

    def before(self, name: str, act: Callable[..., object]) -> None:
        """Let somebody else act just before each call of a primitive: a race, made certain."""
        self._acts[name] = act

    def names(self) -> list[str]:
        """The primitives called, in order."""
        return [call.name for call in self.calls]

    def _wrap(self, name: str) -> Callable[..., Any]:
        if name in durable.MUTATING:
            return lambda *args: self._mutate(name, args)
        return lambda *args: self._look(name, args)

    def _look(self, name: str, args: tuple[Any, ...]) -> Any:
        if self.dead:
            if name == "close":  # the kernel closes what a dead process had open
                self._real[name](*args)
            raise Killed
        if name != "close":
            self.looks += 1
            if isinstance(self.fault, FailLook) and self.fault.at == self.looks - 1:
                self.hit = True
                raise OSError(self.fault.errno, os.strerror(self.fault.errno), str(args[0]))
        self._act(name, args)
        found = self._real[name](*args)
        if name == "open_read":
            self.paths[found] = str(args[0])
        return found

    def _mutate(self, name: str, args: tuple[Any, ...]) -> Any:
        if self.dead:
            raise Killed
        number = len(self.calls)
        self.calls.append(Call(number, name, self._about(name, args)))
        scripted = self._next.pop(name, None)
        if isinstance(self.fault, Kill | Fail | Short) and self.fault.at == number:
            return self._strike(self.fault, name, args)
        if scripted is not None:
            self.failed(name, args)
            raise OSError(scripted, os.strerror(scripted), self.calls[-1].about)
        return self._do(name, args)

    def _strike(self, fault: Kill | Fail | Short, name: str, args: tuple[Any, ...]) -> Any:
        self.hit = True
        if isinstance(fault, Short):
            return self._do(name, (args[0], bytes(args[1])[:1], args[2]))
        if isinstance(fault, Fail):
            if name == "pwrite":
                self._half(args)
            self.failed(name, args)
            raise OSError(fault.errno, os.strerror(fault.errno), self.calls[-1].about)
        try:
            if fault.when == "half":
                self._half(args)
            elif fault.when == "after":
                self._do(name, args)
        except OSError:
            pass  # the call refused by itself (a name that was taken); whoever asked never learns it
        self.dead = True
        raise Killed

    def _half(self, args: tuple[Any, ...]) -> None:
        raw = bytes(args[1])
        self._do("pwrite", (args[0], raw[: len(raw) // 2], args[2]))

    def _do(self, name: str, args: tuple[Any, ...]) -> Any:
        self._act(name, args)
        found = self._real[name](*args)
        if name in ("create", "open_lock"):
            self.paths[found] = str(args[0])
        elif name == "rename_new":
            self.paths = {fd: str(args[1]) if one == str(args[0]) else one for fd, one in self.paths.items()}
        self.done(name, args, found)
        return found

    def _act(self, name: str, args: tuple[Any, ...]) -> None:
        if name in self._acts:
            self._acts[name](*args)

    def _about(self, name: str, args: tuple[Any, ...]) -> str:
        if isinstance(args[0], int):
            place = f"{Path(self.paths.get(args[0], '?')).name}"
            return f"{place} {len(args[1])}@{args[2]}" if name == "pwrite" else place
        return " -> ".join(Path(one).name for one in args)

    # ---- for those who watch: see `disk.Disk` ---------------------------------------------------------

    def done(self, name: str, args: tuple[Any, ...], found: Any) -> None:
        """Called after a primitive changed the disk."""

    def failed(self, name: str, args: tuple[Any, ...]) -> None:
        """Called when a primitive is made to fail."""
