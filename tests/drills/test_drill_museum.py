"""The examples that publish, played for real: counts are the content system's own."""

import json
import os
import subprocess
import sys
from pathlib import Path

HOUSE = Path(__file__).resolve().parents[2]


def test_demo_publishes_once_what_was_approved(open_folder: Path) -> None:
    """`./dev demo museum`: one page for one approval, through a lost reply and a kill; a stale approval, a
    wrong approver and a spent approval publish nothing."""
    ran = subprocess.run(
        [sys.executable, HOUSE / "examples" / "museum" / "demo.py"],
        env={**os.environ, "TMPDIR": str(open_folder)},
        capture_output=True,
        text=True,
        timeout=100,
    )

    assert 0 == ran.returncode, ran.stdout + ran.stderr
    assert {
        "demo": "museum",
        "pages": 1,
        "writes_received": 1,
        "kills": 1,
        "replies_lost": 1,
        "stale_approval_published": 0,
        "wrong_approver_published": 0,
    } == json.loads(ran.stdout.splitlines()[-1])
