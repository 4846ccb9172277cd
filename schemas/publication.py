"""An output on its way to the name it is published under: the row that is durable before the rename."""

from enum import StrEnum

from attrs import frozen

from .instant import Instant
from .job import Artifact, StopReason


class Sequel(StrEnum):
    """What its step decided that comes after it."""

    DONE = "done"
    NEXT = "next"
    GOTO = "goto"
    EACH = "each"


@frozen(kw_only=True)
class Publication:
    """One staged output. It is known by the inode of its file and by its digest, never by its name alone.

    `device` and `inode` are kept as far as every JSON reader keeps them exactly: their lowest 53 bits.
    """

    unit: str
    number: int
    """Counts the attempts to give an output of the unit its name; it never falls."""
    destination: str
    """The absolute path it gets."""
    temp: str
    """The name it has in the same folder until then."""
    device: int
    inode: int
    sha256: str
    size: int
    sequel: Sequel
    """Carried out once it is published: the item is done, or goes on at `step`; or the job does, or its items
    enter there, and the job goes to `then` after them."""
    step: str = ""
    waits: bool = False
    data: str = "{}"
    then: str = ""
    parallel: int = 1
    output: Artifact | None = None
    failures: int = 0
    not_before: Instant | None = None
    blocked: bool = False
    """A person must look: it waits for a retry, or to be left out."""
    stop: StopReason | None = None
    """Why it is not to be published any more: it is taken away, unless it is published already."""
