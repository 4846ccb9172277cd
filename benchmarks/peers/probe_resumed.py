"""resumed: the same probe, with the workflow of examples/museum and a whole daemon. Run by ./run.

The text is drafted from a record whose note is "revision 1", then "revision 2".
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from report import PAGE, Published, tell

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "museum"))

from demo import Museum
from stage import wait_for

from resumed.schemas.release import VERSION

WITHIN = 60.0


def record_changes(stage: Museum, asked: dict[str, Any], until: float) -> None:
    """The record that the text was drafted from is corrected while the approval is awaited."""
    stage.record(PAGE, "revision 2")


def sent_back(stage: Museum, asked: dict[str, Any], until: float) -> None:
    """Another curator sends the draft back; revision 2 is asked about when the approval of 1 arrives."""
    stage.record(PAGE, "revision 2")
    words = ("send-back", "label-7", f"--fingerprint={asked['fingerprint']}", "--note=again")
    told = stage.resumectl(*words, by=stage.curator)
    assert told.code == 0, told.said
    wait_for(partial(stage.asked, "label-7", asked["fingerprint"]), until)


def approve(stage: Museum, asked: dict[str, Any], until: float) -> tuple[bool, str]:
    """Approves what was shown; whether it asks about another text then, and what was answered."""
    words = ("approve", "label-7", f"--fingerprint={asked['fingerprint']}")
    told = stage.resumectl(*words, by=stage.curator)
    again = wait_for(partial(stage.asked, "label-7", asked["fingerprint"]), until)
    return bool(again), told.first


WAYS: dict[str, Callable[[Museum, dict[str, Any], float], None]] = {
    "an effect's approval, the record of the draft changed": record_changes,
    "an effect's approval, the draft was sent back": sent_back,
}


def main() -> None:
    """One line a way."""
    for way, change in WAYS.items():
        with tempfile.TemporaryDirectory(prefix="resumed-peers-") as folder:
            Path(folder).chmod(0o755)
            stage = Museum(Path(folder))
            os.environ["CREDENTIALS_DIRECTORY"] = str(stage.credentials)
            target = Published(stage.target.data)
            target.target = stage.target
            until = time.monotonic() + WITHIN
            with target:
                stage.prepare()
                stage.start()
                try:
                    wait_for(stage.is_ready, until)
                    stage.record(PAGE, "revision 1")
                    stage.hand_in("label-7", PAGE)
                    asked = wait_for(partial(stage.asked, "label-7"), until)
                    change(stage, asked, until)
                    tell(
                        f"resumed {VERSION}", way, "revision 1", partial(approve, stage, asked, until), target
                    )
                finally:
                    stage.stop()


if __name__ == "__main__":
    main()
