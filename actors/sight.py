"""What whoever asks may see of the jobs: asked of a job's workflow and of who handed it in, no more."""

from typing import Protocol

from attrs import frozen


@frozen
class Whose:
    """A job's workflow ("" while it cannot be read), and the uid of whoever handed it in (-1: not known)."""

    workflow: str
    uid: int


class Sight(Protocol):
    """Which jobs somebody may see; a job out of sight is spoken of as one that is not there."""

    @property
    def everything(self) -> bool:
        """True when every job may be seen, also one of which nothing can be read."""
        ...

    @property
    def others(self) -> bool:
        """True when jobs of others may be seen, be it those of some workflows."""
        ...

    def sees(self, whose: Whose) -> bool:
        """Whether this job may be seen."""
        ...


class Everything:
    """The sight of the daemon itself, and of those who may do everything."""

    everything = True
    others = True

    def sees(self, whose: Whose) -> bool:
        """Always."""
        return True


EVERYTHING = Everything()
