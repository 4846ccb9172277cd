"""The faults of the content system: what may be switched on, for how many requests, and which came to pass.

A switch waits for the next request of its kind and is used up by it; one request takes at most one. What is
late waits for `release` or for so many seconds, whichever comes first.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

FAULTS = {
    "lose_request": "close the connection before the request is read; nothing is accepted",
    "reset_request": "read `bytes` bytes of the request, then reset the connection; nothing is accepted",
    "lose_reply": "accept, then close the connection without an answer",
    "answer_late": "accept now; answer after `seconds`, or when released",
    "apply_late": "take it, say nothing until the writer has gone, apply it after `seconds` or when released",
    "queue": "take it, answer 202 at once, apply it after `seconds` or when released",
    "show_late": "accept and answer; look-ups see it only after `seconds`, or when released",
    "fail_after": "accept, then answer `status` (500)",
    "fail_before": "answer `status` (503) and accept nothing",
    "refuse": "answer `status` (422) and accept nothing",
    "reset_answer": "accept, send `bytes` bytes of the answer, then reset the connection",
    "garble": "accept, then answer with bytes that are no HTTP",
}
EARLY = ("lose_request", "reset_request")
KINDS = ("write", "look_up", "page")
ON_READS = (
    "lose_request",
    "reset_request",
    "lose_reply",
    "answer_late",
    "fail_before",
    "reset_answer",
    "garble",
)
"""What can befall a request that only reads; the rest speaks of writes."""

_VALUES: dict[str, Callable[[str], Any]] = {"seconds": float, "of": str, "page": str}
STATUS = {"fail_after": 500, "fail_before": 503, "refuse": 422}


class Switch(NamedTuple):
    """One fault, for the next `times` requests of a kind."""

    fault: str
    of: str = "write"
    times: int = 1
    seconds: float = float("inf")
    bytes: int = 0
    status: int = 0
    page: str = ""
    """Only for requests that name this page; empty: for any."""

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> "Switch":
        """From an admin call; ValueError says what is wrong."""
        if unknown := set(given) - set(cls._fields):
            raise ValueError(f"unknown keys: {', '.join(sorted(unknown))}")
        fault, of = given.get("fault", ""), given.get("of", "write")
        if fault not in FAULTS:
            raise ValueError(f"no fault named {fault!r}; there are {', '.join(FAULTS)}")
        if of not in KINDS or (of != "write" and fault not in ON_READS):
            raise ValueError(f"{fault} cannot befall {of!r}")
        made = cls(**given)
        if made.times < 1 or made.bytes < 0 or not made.seconds >= 0:
            raise ValueError("expected times >= 1, bytes >= 0, seconds >= 0")
        return made._replace(status=made.status or STATUS.get(fault, 0))

    @classmethod
    def parse(cls, text: str) -> "Switch":
        """From the command line: `lose_reply`, or `reset_answer,bytes=17,times=2`."""
        fault, *rest = text.split(",")
        given: dict[str, Any] = {"fault": fault}
        for word in rest:
            name, _, value = word.partition("=")
            given[name] = _VALUES.get(name, int)(value)
        return cls.read(given)


class Switches:
    """The switches that are on, and the gate at which late answers wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._on: list[Switch] = []
        self._gate = threading.Event()

    def put(self, switch: Switch) -> None:
        """One more, behind those that are on."""
        with self._lock:
            self._on.append(switch)

    def clear(self) -> None:
        """All off."""
        with self._lock:
            self._on.clear()

    def on(self) -> list[dict[str, Any]]:
        """Those that nothing has taken yet; `seconds` is None for until released."""
        with self._lock:
            rows = [each._asdict() for each in self._on]
        return [
            {**row, "seconds": None if row["seconds"] == float("inf") else row["seconds"]} for row in rows
        ]

    def expect_early(self) -> bool:
        """Whether some request is to meet its fault before it is read."""
        with self._lock:
            return any(each.fault in EARLY for each in self._on)

    def take(self, of: str, page: str, *, early: bool = False) -> Switch | None:
        """The fault of this request, `early` for one that is met before it is read; None for a sound one."""
        with self._lock:
            for place, each in enumerate(self._on):
                if each.of == of and each.page in ("", page):
                    if (each.fault in EARLY) != early:
                        return None
                    if each.times > 1:
                        self._on[place] = each._replace(times=each.times - 1)
                    else:
                        del self._on[place]
                    return each
        return None

    def gate(self) -> threading.Event:
        """What the next `release` opens; taken before the request is on record, so that none is missed."""
        with self._lock:
            return self._gate

    def release(self) -> None:
        """Lets all go that wait now; those that come later wait again."""
        with self._lock:
            gate, self._gate = self._gate, threading.Event()
        gate.set()
