"""The witness: what really ran, in order, as the workers' own processes would have written it down."""

from collections.abc import Callable

from attrs import define, field, frozen

Unit = tuple[str, str]


@frozen
class Ran:
    """One try as it was seen: `number` 0 of `order` is the first thing that happened in this world."""

    job: str
    unit: str
    epoch: int
    number: int
    worker: str
    order: int
    at: int


@define
class Witness:
    """Starts and ends of tries; an overlap is noted at the moment it happens."""

    ran: list[Ran] = field(factory=list)
    alive: dict[Unit, Ran] = field(factory=dict)
    faults: list[str] = field(factory=list)
    heard: Callable[[Ran], None] | None = None
    """Told of each start."""

    def start(self, job: str, unit: str, epoch: int, number: int, worker: str, at: int) -> Ran:
        """A try begins."""
        seen = Ran(job, unit, epoch, number, worker, len(self.ran), at)
        for other in self.alive.values():
            if other.job == job and (other.unit == unit or other.epoch != epoch):
                self.faults.append(f"overlap: {seen} while {other} lives")
        if any((r.job, r.unit, r.number) == (job, unit, number) for r in self.ran):
            self.faults.append(f"started twice: {seen}")
        self.ran.append(seen)
        self.alive[job, unit] = seen
        if self.heard is not None:
            self.heard(seen)
        return seen

    def end(self, seen: Ran) -> None:
        """Its whole tree is gone."""
        if self.alive.get((seen.job, seen.unit)) is seen:
            del self.alive[seen.job, seen.unit]

    def runs(self, job: str, unit: str) -> int:
        """How often a unit was started."""
        return sum((one.job, one.unit) == (job, unit) for one in self.ran)
