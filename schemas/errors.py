"""The error tree: types exist only where a caller acts differently, split by who is at fault.

ResumedError
+- FaultyInputError      the file's or the peer's: the bytes offered to us do not hold
|  +- NewerSchemaError   written by a later release; never guessed at, never rewritten
|  +- ProtocolError      the other end of a worker's socket speaks another release's frames
+- AuthorError           the workflow author's: a declaration or a returned decision is wrong
+- StoreError            the disk's
|  +- DamagedError       bytes that must verify do not: set the job aside
|  +- UnreadableError    a read failed: no verdict, try again
|  +- CommitError        a write or sync failed: the outcome of that commit is unknown
+- BusyError             another daemon holds what we need
+- GoneError             what was asked about no longer exists in this process
"""


class ResumedError(Exception):
    """Anything this project raises on purpose."""


class FaultyInputError(ResumedError):
    """Input that a strict door refused; `problems` are full sentences with the path in the file."""

    def __init__(self, what: str, problems: tuple[str, ...]) -> None:
        super().__init__(f"{what}: {'; '.join(problems)}" if problems else what)
        self.what = what
        self.problems = problems


class NewerSchemaError(FaultyInputError):
    """A record of a schema level that this release does not know; it is listed, never rewritten."""

    def __init__(self, what: str, level: int, known: int) -> None:
        super().__init__(what, (f"written by schema {level}, this daemon reads up to {known}",))
        self.level = level
        self.known = known


class ProtocolError(FaultyInputError):
    """A first frame of another protocol; `spoken` is its number as it was given."""

    def __init__(self, what: str, spoken: object, known: int) -> None:
        super().__init__(what, (f"expected protocol {known}, got {spoken!r} @ $.protocol",))
        self.spoken = spoken


class AuthorError(ResumedError):
    """A workflow declaration or a handler's answer that cannot be carried out."""


class StoreError(ResumedError):
    """The disk's fault, for one path."""

    def __init__(self, message: str, *, path: str = "", errno: int = 0) -> None:
        super().__init__(message)
        self.path = path
        self.errno = errno


class DamagedError(StoreError):
    """Stored bytes that fail their digest, chain or law; the job is set aside untouched."""


class UnreadableError(StoreError):
    """A read that failed: no verdict about the bytes, so nothing is cut, moved or fallen back from."""


class CommitError(StoreError):
    """A write or sync that failed; whether the line will be found after a restart is unknown."""


class BusyError(ResumedError):
    """Another daemon holds the store or the socket."""


class GoneError(ResumedError):
    """The actor, worker or connection asked for has ended."""
