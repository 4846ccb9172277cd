"""Durations as people write them (`30s`, `15m`, `6h`, `7d`, `1h30m`), kept as whole seconds or fractions."""

import re

MOST = 10 * 366 * 86_400.0
"""Seconds of the longest span, ten years: an instant that far ahead can still be spelled."""

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d|w)")


def read(text: str) -> float:
    """Seconds of a duration text; ValueError when it is not one."""
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f'expected a duration such as "30s", "15m" or "1h30m", got {text!r}')
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if seconds > MOST:
        raise ValueError(f"expected a duration of at most ten years, got {text!r}")
    return seconds


def exact(seconds: float) -> str:
    """The shortest text that reads back as this span: `48h`, `90m`, `1.5s`."""
    for unit in ("h", "m"):
        if seconds and seconds % _UNITS[unit] == 0:
            return f"{seconds // _UNITS[unit]:.0f}{unit}"
    return f"{seconds:.3f}".rstrip("0").rstrip(".") + "s"


def spell(seconds: float) -> str:
    """A short text for a span of seconds, at most two units: `3d4h`, `7d`, `2m05s`, `8s`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    if whole < 86_400:
        return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
    hours = whole % 86_400 // 3600
    return f"{whole // 86_400}d{hours}h" if hours else f"{whole // 86_400}d"
