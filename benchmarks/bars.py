"""The bars: what each row must reach, and what a sound daemon should; and the table of a run against them.

Bars in steps a second hold where F, the flushes a second of one caller, is about 7,500. Where a run's F is
another, the table also says what the row reaches of its bar scaled by F. Rows in milliseconds and seconds
hold where Python alone starts in about 14 ms; the table says how long it took.
"""

from attrs import frozen
from report import SAID, Figure, Key, say

FULL = 7_500
"""Flushes a second of one caller on the machine that the bars were set on."""
PYTHON_START = 14.0
"""Milliseconds of `python -c pass` there."""


@frozen
class Bar:
    """One row: `must` and `goal` in the figure's unit, or with `of_f` as multiples of F."""

    measure: str
    must: float
    goal: float
    keys: dict[str, Key]
    most: bool = True
    """Whether less is better."""
    of_f: bool = False
    by_disk: bool = False
    """Whether the bar is known for one F, so that it scales with it."""


def _most(measure: str, must: float, goal: float, **keys: Key) -> Bar:
    return Bar(measure, must, goal, keys)


def _least(measure: str, must: float, goal: float, *, by_disk: bool = False, **keys: Key) -> Bar:
    return Bar(measure, must, goal, keys, most=False, by_disk=by_disk)


def _of_f(measure: str, must: float, goal: float, **keys: Key) -> Bar:
    return Bar(measure, must, goal, keys, most=False, of_f=True)


BARS = (
    _of_f("store.transitions_per_s", 0.4, 0.6, jobs=1),
    _of_f("store.transitions_per_s", 0.8, 1.5, jobs=64),
    _of_f("store.transitions_per_s", 0.8, 1.5, jobs=1_000),
    _least("daemon.steps_per_s", 1_000, 1_650, by_disk=True, jobs=1),
    _least("daemon.steps_per_s", 4_500, 7_000, by_disk=True, jobs=64),
    _least("daemon.steps_per_s", 4_500, 7_000, by_disk=True, jobs=1_000),
    _most("daemon.step_ms", 1.0, 0.6, jobs=1, quantile=0.5),
    _most("daemon.step_ms", 5.0, 2.0, jobs=1, quantile=0.99),
    _most("daemon.step_ms", 40.0, 20.0, jobs=64, quantile=0.99),
    _most("daemon.step_ms", 400.0, 200.0, jobs=1_000, quantile=0.99),
    _most("daemon.syncs_per_step", 1.05, 1.0, jobs=1),
    _most("daemon.syncs_per_step", 1.05, 1.0, jobs=64),
    _most("daemon.syncs_per_step", 1.05, 1.0, jobs=1_000),
    _least("daemon.effect_steps_per_s", 500, 800, by_disk=True, jobs=1),
    _least("daemon.steps_per_s", 250, 300, jobs=1, sync_delay_ms=2),
    _least("daemon.steps_per_s", 2_500, 5_000, jobs=64, sync_delay_ms=2),
    _most("daemon.cold_start_s", 0.5, 0.3),
    _most("daemon.ready_s", 0.5, 0.35, parked=1_000),
    _most("daemon.ready_s", 1.2, 0.6, parked=10_000),
    _most("daemon.ready_s", 12.0, 4.0, parked=100_000),
    _most("daemon.pss_mib", 45.0, 35.0, parked=0),
    _most("daemon.pss_mib", 65.0, 50.0, parked=10_000),
    _most("daemon.pss_mib", 200.0, 150.0, parked=100_000),
    _most("daemon.actor_pss_kib", 12.0, 8.0),
    _most("cli.status_ms", 70.0, 50.0, quantile=0.5),
    _most("cli.status_ms", 150.0, 90.0, quantile=0.99),
    _most("daemon.command_ms", 1.0, 0.5, quantile=0.5),
    _most("daemon.command_ms", 6.0, 3.0, quantile=0.99),
    _most("daemon.read_ms", 0.3, 0.1, quantile=0.5),
    _least("daemon.reads_per_s", 5_000, 15_000),
    _most("inbox.accept_ms", 150.0, 80.0, quantile=0.5),
    _least("inbox.jobs_per_s", 700, 1_500, files=10_000),
)


def table() -> None:
    """Say what this run reached; a row that was not measured is left out."""
    found = [(bar, figure) for bar in BARS for figure in SAID if _fits(bar, figure)]
    if not found:
        return
    start = next((each.value for each in SAID if each.measure == "cli.python_start_ms"), 0.0)
    if start:
        say(f"Python alone starts in {start:.1f} ms here ({start / PYTHON_START:.1f} of {PYTHON_START:.0f}).")
    say(f"{'measure':<58} {'must':>10} {'goal':>10} {'measured':>10}  verdict")
    for bar, figure in found:
        say(_row(bar, figure))


def _fits(bar: Bar, figure: Figure) -> bool:
    return bar.measure == figure.measure and bar.keys == figure.keys


def _row(bar: Bar, figure: Figure) -> str:
    keys = ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in bar.keys.items()
    )
    what = f"{bar.measure} {keys} [{'F' if bar.of_f else figure.unit}]"
    value = figure.value / figure.beside if bar.of_f else figure.value
    verdict = "MET" if _reaches(bar, value, bar.must) else "MISSED"
    if _reaches(bar, value, bar.goal):
        verdict += ", goal too"
    if bar.by_disk and figure.beside:
        share = value / (bar.must * figure.beside / FULL)
        verdict += f" (F is {figure.beside:,.0f}: {share:.2f} of the must scaled by it)"
    return f"{what:<58} {bar.must:>10,.4g} {bar.goal:>10,.4g} {value:>10,.4g}  {verdict}"


def _reaches(bar: Bar, value: float, wanted: float) -> bool:
    return value <= wanted if bar.most else value >= wanted
