"""What a measurement says: one JSON line for machines on stdout, everything for people on stderr."""

import json
import os
import sys
from statistics import median

from attrs import frozen

Key = float | str


@frozen
class Figure:
    """One measured value; `keys` name what varies, such as `jobs`. `beside` is F measured beside it, or 0."""

    measure: str
    value: float
    unit: str
    keys: dict[str, Key]
    beside: float


SAID: list[Figure] = []
"""Every figure of this run, in order."""


def figure(measure: str, value: float, unit: str, *, beside: float = 0.0, **keys: Key) -> None:
    """Print one measured value and keep it for the table; `beside` is the F that was measured beside it."""
    SAID.append(Figure(measure, value, unit, keys, beside))
    spelled = round(value, 4) if value < 10 else round(value, 1)
    print(json.dumps({"measure": measure, "value": spelled, "unit": unit, **keys}), flush=True)


def say(text: str) -> None:
    """Print a sentence for people."""
    print(text, file=sys.stderr, flush=True)


def is_quiet() -> bool:
    """Say how busy the machine is: beside others' work no figure here means much, F least of all."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    say(f"load {load:.1f} on {cores} processors")
    return load < cores * 0.75


def middle(values: list[float], what: str, unit: str) -> float:
    """The median; the spread goes to stderr, since a shared machine shows in it."""
    found = median(values)
    say(f"  {what}: {found:,.4g} {unit} [{min(values):,.4g}-{max(values):,.4g}, {len(values)} runs]")
    return found


def percentile(values: list[float], share: float) -> float:
    """The value that `share` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def quantiles(measure: str, values: list[float], unit: str, what: str, **keys: Key) -> None:
    """Print the middle and the 99th of a hundred of one measurement's values."""
    for share in (0.5, 0.99):
        found = percentile(values, share)
        say(f"  {what}, {share:.0%} within: {found:,.4g} {unit} ({len(values)} taken)")
        figure(measure, found, unit, quantile=share, **keys)
