"""How long to wait before the next try: doubling, capped, spread by the unit's name and not by chance."""

import zlib

from resumed.schemas.durations import MOST
from resumed.schemas.workflow import StepContract


def backoff(step: StepContract, failures: int, job: str, unit: str) -> float:
    """Seconds before the try after the `failures`-th failure: first x 2**(failures - 1), at most the maximum.

    The jitter takes up to a quarter off. It is drawn from a checksum of the names, since the law asks no
    source of chance: the same failure always waits the same time.
    """
    full = min(step.backoff_first * 2 ** min(failures - 1, 30), step.backoff_max, MOST)
    share = zlib.crc32(f"{job}\n{unit}\n{failures}".encode()) % 1000 / 1000
    return float(full * (1 - share / 4))
