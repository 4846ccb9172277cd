"""What a measurement says: one JSON line for machines on stdout, everything for people on stderr."""

import json
import os
import sys
from statistics import median


def figure(measure: str, value: float, unit: str, **more: int) -> None:
    """Print one measured value; `more` names what varies, such as `jobs`."""
    spelled = round(value, 4) if value < 10 else round(value, 1)
    print(json.dumps({"measure": measure, "value": spelled, "unit": unit, **more}), flush=True)


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


def against(what: str, value: float, flushes: float, must: float, *, quiet: bool) -> None:
    """Say a rate as a multiple of F, the flushes a second of one caller, beside what it must reach."""
    verdict = "holds" if value >= must * flushes else "MISSED"
    if not quiet:
        verdict = "not judged, since others are at work here"
    say(f"  {what}: {value / flushes:.2f} F, must {must:.2f} F: {verdict}")
