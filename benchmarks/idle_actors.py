"""What a living actor weighs that has nothing to do: many jobs that go on within the minute, and none.

A job whose next instant is under 60 seconds away keeps its actor, its open log and its whole snapshot.
"""

import json
import shutil
from pathlib import Path
from time import sleep

from attrs import frozen
from running import Daemon

MODULE = Path(__file__).with_name("waiting.py")
WORKFLOW = """version = 1
python = { entry = "waiting:Waiting", slots = 64 }
"""


@frozen
class Weight:
    """KiB of the daemon's PSS an idle actor, and the jobs that it was taken of."""

    kib: float
    jobs: int


def measure(folder: Path, count: int) -> Weight:
    """Hand in `count` jobs whose one step says "in 55 seconds", and look when all have said so."""
    with Daemon(folder, workers=1) as daemon:
        daemon.workflow("waiting", WORKFLOW)
        shutil.copy(MODULE, daemon.workflows)
        daemon.start()
        # The first ones bring what any job brings: the worker, caches, a pool.
        _submit(daemon, "first", 16)
        before = daemon.pss_mib()
        _submit(daemon, "job", count)
        return Weight((daemon.pss_mib() - before) * 1024 / count, count)


def _submit(daemon: Daemon, prefix: str, count: int) -> None:
    with daemon.client() as client:
        for number in range(count):
            file = {"workflow": "waiting", "id": f"{prefix}-{number}"}
            client.call("Submit", file=json.dumps(file))
        while True:
            rows = client.call("List")["jobs"]
            if all(row["status"] == "waiting" for row in rows):
                break
            sleep(0.1)
    sleep(0.5)
