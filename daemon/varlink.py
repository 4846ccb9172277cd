"""The Varlink wire, pure: bytes to calls, answers to bytes; knows no socket and no method of ours.

Each message is one JSON object ended by a NUL byte (https://varlink.org). Calls pass the strict door.
"""

from typing import Any

from attrs import field, frozen

from resumed.schemas import codec, strict
from resumed.schemas.errors import FaultyInputError

SERVICE = "org.varlink.service"
ERROR_INTERFACE_NOT_FOUND = f"{SERVICE}.InterfaceNotFound"
ERROR_METHOD_NOT_FOUND = f"{SERVICE}.MethodNotFound"
ERROR_INVALID_PARAMETER = f"{SERVICE}.InvalidParameter"
ERROR_EXPECTED_MORE = f"{SERVICE}.ExpectedMore"

SERVICE_TEXT = """\
# The Varlink service interface: what every Varlink service says about itself.
interface org.varlink.service

method GetInfo() -> (
  vendor: string,
  product: string,
  version: string,
  url: string,
  interfaces: []string
)

method GetInterfaceDescription(interface: string) -> (description: string)

error InterfaceNotFound (interface: string)
error MethodNotFound (method: string)
error MethodNotImplemented (method: string)
error InvalidParameter (parameter: string)
error PermissionDenied ()
error ExpectedMore ()
"""

_KEYS = {"method": str, "parameters": dict, "more": bool, "oneway": bool, "upgrade": bool}


class OversizeError(Exception):
    """A message grew past the bound before its NUL byte came."""


@frozen(kw_only=True)
class Call:
    """One call as a peer wrote it: a method's full name and parameters that nobody has checked yet."""

    method: str
    parameters: dict[str, Any] = field(factory=dict)
    more: bool = False
    oneway: bool = False
    upgrade: bool = False

    @property
    def interface(self) -> str:
        """The part of the method's name before its last dot."""
        return self.method.rpartition(".")[0]


@frozen(kw_only=True)
class Fault:
    """An error answer: its full name and its parameters as a plain object."""

    error: str
    parameters: dict[str, Any] = field(factory=dict)


class Splitter:
    """Cuts a stream of bytes into messages, however the bytes arrive; holds at most one message's bound."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._held = bytearray()
        self._looked = 0

    def feed(self, chunk: bytes) -> None:
        """Takes what was read."""
        self._held += chunk

    @property
    def empty(self) -> bool:
        """Whether no part of a message is in hand."""
        return not self._held

    @property
    def full(self) -> bool:
        """Whether so much is in hand that no more should be read before some of it is answered."""
        return len(self._held) > self._bound

    def take(self) -> bytes | None:
        """The oldest whole message in hand, without its NUL, or None; OversizeError past the bound."""
        # Looking again at what has been searched would make many small pieces cost their square.
        end = self._held.find(b"\0", self._looked)
        self._looked = len(self._held) if end < 0 else 0
        if end > self._bound or (end < 0 and len(self._held) > self._bound):
            raise OversizeError
        if end < 0:
            return None
        message = bytes(memoryview(self._held)[:end])
        del self._held[: end + 1]
        return message


def read_call(raw: bytes) -> Call:
    """The call in one message; FaultyInputError names what does not fit."""
    what = "cannot read the call"
    value = strict.parse(raw, what)
    if not isinstance(value, dict):
        raise FaultyInputError(what, ("expected object @ $",))
    if value.get("parameters", {}) is None:
        del value["parameters"]
    problems = [f"unknown key {key!r} @ $" for key in value if key not in _KEYS]
    problems += [
        f"expected {kind.__name__} @ $.{key}"
        for key, kind in _KEYS.items()
        if key in value and type(value[key]) is not kind
    ]
    if "method" not in value:
        problems.append("required field 'method' is missing @ $")
    if problems:
        raise FaultyInputError(what, tuple(problems[:20]))
    return Call(**value)


def spell_answer(parameters: object, *, continues: bool = False) -> bytes:
    """The message of one answer, a record or a plain object; `continues` says that more follow."""
    answer: dict[str, Any] = {"parameters": parameters}
    if continues:
        answer["continues"] = True
    return codec.dump_whole(answer) + b"\0"


def spell_fault(fault: Fault) -> bytes:
    """The message of an error."""
    return codec.dump_plain({"error": fault.error, "parameters": fault.parameters}) + b"\0"
