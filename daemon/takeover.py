"""Taking a store from a daemon that hangs or is stopped: it is ended, and then the lock is ours to wait for.

Only the process that the lock file names is ended, and only when boot, pid and start time agree while we hold
a descriptor of it, so a pid in use anew is never touched. Nothing is read before the lock is held.
"""

import logging
import os
import select
import signal
from collections.abc import Mapping
from typing import Any

from resumed.actors.clock import Clock
from resumed.actors.containment import start_time
from resumed.schemas.errors import BusyError
from resumed.schemas.instant import MICRO
from resumed.store import lock
from resumed.store.layout import Layout
from resumed.store.lock import Lock

SECONDS = 30.0
"""How long the lock is waited for: a killed process may still sit in a system call of a slow disk."""
_AGAIN = 0.05

log = logging.getLogger(__name__)


def hold(layout: Layout, identity: Mapping[str, Any], clock: Clock, seconds: float = SECONDS) -> Lock:
    """The store's lock, after its holder was ended; BusyError when it is not to be had in time."""
    until = clock.now().up + int(seconds * MICRO)
    while True:
        try:
            return lock.hold(layout, identity)
        except BusyError as error:
            left = (until - clock.now().up) / MICRO
            if left <= 0:
                raise BusyError(f"{error}, also after {seconds:g} s of taking over") from None
        _end(lock.holder(layout), identity, left)


def _end(holder: Mapping[str, Any], ours: Mapping[str, Any], seconds: float) -> None:
    """Ends the process that the lock file names, and waits for its end; a moment, when it names none."""
    waiting = select.poll()
    pid = _named(holder, ours)
    try:
        descriptor = os.pidfd_open(pid) if pid else -1
    except ProcessLookupError:
        descriptor = -1
    if descriptor < 0:
        waiting.poll(_AGAIN * 1000)
        return
    try:
        # The descriptor is held: from here on the pid cannot come to mean another process.
        if start_time(pid) != holder.get("start"):
            waiting.poll(_AGAIN * 1000)
            return
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        log.warning("The daemon with pid %s held the store and was ended to take it over.", pid)
        waiting.register(descriptor, select.POLLIN)
        waiting.poll(seconds * 1000)
    except PermissionError:
        raise BusyError(f"cannot take the store over: we may not end process {pid}") from None
    except ProcessLookupError:
        pass  # it ended by itself meanwhile
    finally:
        os.close(descriptor)


def _named(holder: Mapping[str, Any], ours: Mapping[str, Any]) -> int:
    """The pid that the lock file names, 0 when it is nobody's of this boot or our own."""
    pid = holder.get("pid")
    if not isinstance(pid, int) or pid <= 1 or pid == ours["pid"] or holder.get("boot") != ours["boot"]:
        return 0
    return pid
