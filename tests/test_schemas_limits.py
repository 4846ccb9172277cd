"""Limits in files: read strictly, spelled as they were meant, and tightened only."""

from typing import Any

import pytest
from attrs import evolve
from machine_kit import CONTRACT, moment

from resumed.actors.machine.terms import terms
from resumed.actors.worker import programs
from resumed.schemas import codec, durations, jobfilereader, limits, sizes, workflowfile
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.job import Budget
from resumed.schemas.jobfile import JobFile
from resumed.schemas.limits import Limits, OnFailed, Tighter

STEP = '[[step]]\nname = "a"\nrun = ["true"]\nrepeatable = true\n'
HOUR = 3600.0


def flow(text: str) -> Any:
    """The workflow file with these lines of its own."""
    return workflowfile.read(f"version = 1\n{text}\n{STEP}".encode(), "x")


def test_a_workflow_without_limits_has_those_of_the_interface() -> None:
    """24 hours of active time, 256 processes, five failures in a row, on to the end and then held."""
    made = flow("")

    assert (Limits(), OnFailed.HOLD) == (made.limits, made.on_failed)
    assert (24 * HOUR, 256, 5) == (
        made.limits.active_time,
        made.limits.pids_most(),
        made.limits.failures_in_a_row,
    )


def test_limits_of_a_workflow_reach_its_contract() -> None:
    """Every key lands in the record, and what holds is what the law is given."""
    made = flow(
        'on_failed = "stop"\n'
        'limits = { usd = "12.50", tokens = 1_000_000, turns = 40, active_time = "3h30m", deadline = "2d", '
        'memory = "2G", pids = 64, failures_in_a_row = 3, best_effort = true }'
    )
    wanted = Limits(
        usd="12.5",
        tokens=1_000_000,
        turns=40,
        active_time=3.5 * HOUR,
        deadline=48 * HOUR,
        memory=2 * 1024**3,
        pids=64,
        failures_in_a_row=3,
        best_effort=True,
    )

    assert (wanted, OnFailed.STOP) == (made.limits, made.on_failed)
    contract = programs.contract_of(made)
    assert (wanted, OnFailed.STOP) == (contract.limits, contract.on_failed)


def test_none_lifts_a_default() -> None:
    """ "none" is no limit at all, also where one would hold unsaid."""
    made = flow('limits = { active_time = "none", pids = "none", failures_in_a_row = "none", usd = "none" }')

    assert (None, None, 0, None) == (
        made.limits.active_time,
        made.limits.pids_most(),
        made.limits.failures_in_a_row,
        made.limits.usd,
    )


WRONG = {
    "an amount that is a float": ("usd = 1.5", 'expected an amount as text, such as "12.50", got 1.5'),
    "an amount below zero": ('usd = "-1"', "expected an amount"),
    "an amount in euros": ('usd = "5 EUR"', "expected an amount"),
    "a millionth too fine": ('usd = "0.0000001"', "expected an amount"),
    "no tokens": ("tokens = 0", "expected a number of at least 1, got 0"),
    "tokens as text": ('tokens = "5"', "expected a number of at least 1, got '5'"),
    "tokens as a bool": ("tokens = true", "expected a number of at least 1, got True"),
    "no time": ('active_time = "0s"', "expected more than 0s"),
    "a time without a unit": ("active_time = 30", 'expected a duration such as "24h", got 30'),
    "a moment": ('deadline = "2026-11-29T03:00:00Z"', "expected a duration"),
    "a size in words": ('memory = "a lot"', 'expected a size such as "512M" or "2G"'),
    "no size": ("memory = 0", "expected a size"),
    "a key that is none": ('cpu = "1"', "unknown key 'cpu'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_limits_that_are_none_are_refused(case: str) -> None:
    """Each wrong value is named with its path, in a workflow and in a job file."""
    line, said = WRONG[case]
    key = line.split(" ")[0]
    with pytest.raises(FaultyInputError, match=r"@ \$\.limits") as refused:
        flow(f"limits = {{ {line} }}")
    assert said in str(refused.value)
    with pytest.raises(FaultyInputError, match=r"@ \$\.limits") as refused:
        jobfilereader.read(f'workflow = "x"\nlimits = {{ {line} }}'.encode(), "j.toml")
    assert said in str(refused.value)
    assert key in str(refused.value)


@pytest.mark.parametrize("line", ['limits = { usd = "none" }', "limits = { best_effort = true }"])
def test_a_job_file_lifts_nothing(line: str) -> None:
    """What only a workflow may say is refused in a job file."""
    with pytest.raises(FaultyInputError, match=r"\$\.limits"):
        jobfilereader.read(f'workflow = "x"\n{line}'.encode(), "j.toml")


def test_a_word_for_failures_is_one_of_three() -> None:
    """Anything else is named, in both kinds of file."""
    with pytest.raises(FaultyInputError, match=r"@ \$\.on_failed"):
        flow('on_failed = "ignore"')
    with pytest.raises(FaultyInputError, match=r"@ \$\.on_failed"):
        jobfilereader.read(b'{"workflow":"x","on_failed":1}', "j.json")


def admitted(allowed: Limits, **file: Any) -> Any:
    """The terms of a job under such a workflow."""
    contract = evolve(CONTRACT, limits=allowed)
    return terms(JobFile(workflow="scan", **file), contract, moment(), "cannot admit x")


def test_a_job_has_what_its_workflow_allows() -> None:
    """Without a word of its own it may use all of it, and ends when its workflow says."""
    found = admitted(Limits(usd="9", tokens=5, turns=4, active_time=60.0, deadline=HOUR))

    assert Budget(usd="9", tokens=5, turns=4, active_seconds=60.0) == found.budget
    assert moment(HOUR) == found.deadline


def test_a_job_tightens_what_it_is_allowed() -> None:
    """Each limit of its own holds; what the workflow allows of it stays known."""
    allowed = Limits(usd="9", failures_in_a_row=5, pids=100)
    asked = Tighter(
        usd="2", tokens=7, active_time=60.0, deadline=HOUR, pids=10, memory=4096, failures_in_a_row=2
    )
    found = admitted(allowed, limits=asked, on_failed=OnFailed.STOP)

    assert Budget(usd="2", tokens=7, active_seconds=60.0) == found.budget
    assert (moment(HOUR), OnFailed.STOP) == (found.deadline, found.contract.on_failed)
    assert evolve(allowed, pids=10, memory=4096, failures_in_a_row=2) == found.contract.limits


LOOSER: dict[str, tuple[Limits, dict[str, Any], str]] = {
    "money": (Limits(usd="9"), {"usd": "9.01"}, "allows 9, got 9.01 @ $.limits.usd"),
    "time": (Limits(), {"active_time": 90_000.0}, "allows 24h, got 25h @ $.limits.active_time"),
    "processes": (Limits(), {"pids": 257}, "allows 256, got 257 @ $.limits.pids"),
    "memory": (Limits(memory=1024**3), {"memory": 1024**4}, "allows 1G, got 1T @ $.limits.memory"),
    "failures": (Limits(), {"failures_in_a_row": 6}, "allows 5, got 6"),
    "the end": (Limits(deadline=HOUR), {"deadline": 7201.0}, "allows 1h, got 7201s"),
}


@pytest.mark.parametrize("case", LOOSER)
def test_a_job_never_loosens_a_limit(case: str) -> None:
    """More than the workflow allows is refused at the door, with what it allows."""
    allowed, asked, said = LOOSER[case]
    with pytest.raises(FaultyInputError) as refused:
        admitted(allowed, limits=Tighter(**asked))

    assert said in str(refused.value)


def test_a_job_never_loosens_its_end_and_what_becomes_of_failures() -> None:
    """The same of a deadline that is a time, and of `on_failed`."""
    with pytest.raises(FaultyInputError, match=r"the workflow allows 1h @ \$\.deadline"):
        admitted(Limits(deadline=HOUR), deadline="61m")
    with pytest.raises(FaultyInputError, match=r"says hold, got continue @ \$\.on_failed"):
        admitted(Limits(), on_failed=OnFailed.CONTINUE)


def test_the_earlier_of_two_ends_counts() -> None:
    """A deadline and a limit of the same file: whichever comes first; one before the start is refused."""
    both = admitted(Limits(), limits=Tighter(deadline=HOUR), deadline="30m")
    limit = admitted(Limits(deadline=HOUR), limits=Tighter(deadline=60.0), deadline="30m")
    with pytest.raises(FaultyInputError, match="before the job may start"):
        admitted(Limits(deadline=HOUR), not_before="1h")

    assert (moment(1800.0), moment(60.0)) == (both.deadline, limit.deadline)


def test_what_needs_control_groups_is_refused_without_them() -> None:
    """Memory and processes that are written down must be held, unless the workflow says that it need not."""
    written = Limits(memory=1024, pids=5)

    assert 2 == len(limits.unenforced(written, written, "$.limits"))
    assert ("$.limits.memory" in limits.unenforced(Tighter(memory=1), Limits(), "$.limits")[0]) is True
    assert () == limits.unenforced(evolve(written, best_effort=True), evolve(written, best_effort=True), "$")
    assert () == limits.unenforced(Limits(), Limits(), "$")
    assert () == limits.unenforced(Tighter(pids=1), Limits(best_effort=True), "$")


@pytest.mark.parametrize(
    ("text", "size"), [("512", 512), ("1K", 1024), ("3MiB", 3 * 1024**2), ("2GB", 2 * 1024**3), (77, 77)]
)
def test_a_size_reads_as_bytes(text: str | int, size: int) -> None:
    """Units are powers of 1024, and what is spelled reads back."""
    assert size == sizes.read(text) == sizes.read(sizes.spell(size))


@pytest.mark.parametrize("seconds", [0.001, 0.5, 1.0, 60.0, 90.0, 3600.0, 5400.0, 86_400.0, 7201.0])
def test_a_span_spelled_exactly_reads_back(seconds: float) -> None:
    """What a command offers is what was meant, to the millisecond."""
    assert seconds == durations.read(durations.exact(seconds))


def test_a_job_that_tightens_nothing_is_held_to_the_very_record() -> None:
    """What its workflow says is then spelled once for all its jobs; another's is its own."""
    allowed = Limits(pids=64)
    contract = evolve(CONTRACT, limits=allowed)

    def held(**file: Any) -> Any:
        return terms(JobFile(workflow="scan", **file), contract, moment(), "cannot admit x").contract

    assert contract is held()
    assert evolve(contract, on_failed=OnFailed.STOP) == held(on_failed=OnFailed.STOP)
    assert evolve(contract, limits=evolve(allowed, pids=3)) == held(limits=Tighter(pids=3))


def test_a_contract_is_written_as_it_is() -> None:
    """Also when many were written before it, and one of them stood where it stands now."""
    for number in range(300):
        made = evolve(CONTRACT, version=number + 1, description=f"number {number}")
        once, again = codec.encode(made), codec.encode(made)

        assert once == again
        assert made == codec.decode_own(once, type(CONTRACT), "")
