"""What the probes share: a target that counts, and one line of JSON for each way."""

import json
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "museum"))

from target import Target

PAGE = "harbour"


class Published:
    """A content system of one's own, and the call that publishes to it."""

    def __init__(self, folder: Path) -> None:
        self.target = Target(folder)

    def __enter__(self) -> "Published":
        self.target.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.target.kill()

    def publish(self, text: str) -> None:
        """One write, as the author of a workflow would make it."""
        address = f"{self.target.address}/pages/{PAGE}"
        request = urllib.request.Request(address, data=text.encode(), method="PUT")
        with urllib.request.urlopen(request, timeout=10):
            pass

    def text(self) -> str:
        """What the page says now; '' where there is none."""
        return self.target.read(PAGE) if self.target.counts()["pages"] else ""


def tell(
    library: str, way: str, shown: str, approve: Callable[[], tuple[bool, str]], target: Published
) -> None:
    """Approves, which says whether it is asked again and what was answered; and says what that published."""
    try:
        again, said = approve()
    except Exception as error:  # noqa: BLE001 - whatever a library says to it is its answer
        again, said = False, f"{type(error).__name__}: {error}"[:200]
    counts = target.target.counts()
    line = {
        "probe": "stale approval",
        "library": library,
        "way": way,
        "shown": shown,
        "published": target.text(),
        "asks_again": again,
        "writes_received": counts["writes_received"],
        "said": said,
    }
    print(json.dumps(line), flush=True)
