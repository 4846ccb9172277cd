"""One offer of a job file: its bytes, whose they are, and under which names; and what becomes of it."""

from collections.abc import Callable

from attrs import frozen

from resumed.schemas import codec
from resumed.schemas.job import Person


@frozen(kw_only=True)
class Submission:
    """A job file as it was handed in. `name` is the file's; a `.toml` one is TOML."""

    raw: bytes
    name: str
    requester: Person
    via: str
    may: Callable[[str], bool] = lambda _: True
    """Whether the requester may hand in jobs of a workflow."""
    request: str = ""
    """The id it is handed in under: with the same content it is the same submission."""
    hindered: str = ""
    """Why no new job can be taken in now; one that is there already is found all the same."""
    again: bool = False
    """It is to be another job than the one that the same content was before."""

    @property
    def sha256(self) -> str:
        """Of the bytes."""
        return codec.digest(self.raw)

    @property
    def content(self) -> str:
        """The sha256 of what a request id covers: the bytes, how they are read, and whether again."""
        kind = b"toml" if self.name.endswith(".toml") else b"json"
        return codec.digest(b"%s %d\n%s" % (kind, self.again, self.raw))


@frozen(kw_only=True)
class Admitted:
    """The job that a submission is."""

    job: str
    repeated: bool = False
    """It was there before."""
    known: bool = False
    """The same request id was answered before."""
    key: str = ""
    """The business key it was found under."""
