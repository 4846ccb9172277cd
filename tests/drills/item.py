"""What items run in the drills: one line in WITNESS when it begins, one when it ends, each synced.

    item.py WITNESS work MILLISECONDS       between the lines it waits so long
    item.py WITNESS gate PATH               it waits until PATH is there
    item.py WITNESS tick MILLISECONDS       it writes a `tick` line every other millisecond for so long
    item.py WITNESS deaf MILLISECONDS       like tick, and SIGTERM, SIGINT and SIGHUP mean nothing to it
    item.py WITNESS flee MILLISECONDS       a double-forked grandchild in a session of its own ticks, deaf

A line is `EVENT JOB ITEM ATTEMPT PID NANOSECONDS`, the last by the monotonic clock. A `start` of `work` says
there when it means to end.
"""

import os
import signal
import sys
import time


def say(witness: str, event: str, at: int = 0) -> None:
    """One line, on the disk when this returns."""
    names = [os.environ[f"RESUMED_{name}"] for name in ("JOB", "ITEM", "ATTEMPT")]
    line = " ".join([event, *names, str(os.getpid()), str(at or time.monotonic_ns())])
    descriptor = os.open(witness, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    os.write(descriptor, line.encode() + b"\n")
    os.fsync(descriptor)
    os.close(descriptor)


def be_deaf() -> None:
    """From here on only SIGKILL ends this process."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def tick(witness: str, milliseconds: float) -> None:
    """Lines until the time is over."""
    until = time.monotonic() + milliseconds / 1000
    while time.monotonic() < until:
        say(witness, "tick")
        time.sleep(0.002)


def flee() -> None:
    """Returns in a grandchild in a session of its own, whose parent is gone; the first process stays."""
    if os.fork():
        time.sleep(600)
    os.setsid()
    if os.fork():
        os._exit(0)


def main(witness: str, verb: str, argument: str) -> None:
    """One run."""
    ends = time.monotonic_ns() + int(float(argument) * 1e6) if verb == "work" else 0
    say(witness, "start", ends)
    if verb == "work":
        time.sleep(max(0, ends - time.monotonic_ns()) / 1e9)
    elif verb == "gate":
        while not os.path.exists(argument):
            time.sleep(0.005)
    elif verb == "tick":
        tick(witness, float(argument))
    elif verb in ("deaf", "flee"):
        be_deaf()
        if verb == "flee":
            flee()
        tick(witness, float(argument))
    say(witness, "end")


if __name__ == "__main__":
    main(*sys.argv[1:])
