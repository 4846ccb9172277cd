"""The content system as a process of its own: started, asked for its own truth, given faults, killed."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

CMS = Path(__file__).resolve().with_name("cms.py")
WITHIN = 40.0


class Truth:
    """A content system somewhere: what it says of itself, and its switches."""

    def __init__(self, address: str = "") -> None:
        self.address = address

    # ---- its own truth --------------------------------------------------------------------------------

    def counts(self) -> dict[str, int]:
        """Pages, revisions, and what was received."""
        counts: dict[str, int] = self._call("GET", "counts")
        return counts

    def pages(self) -> dict[str, int]:
        """How many revisions each page has."""
        pages: dict[str, int] = self._call("GET", "pages")["pages"]
        return pages

    def requests(self, kind: str = "") -> list[dict[str, Any]]:
        """Every request that came, in order; of one kind."""
        found: list[dict[str, Any]] = self._call("GET", "requests")["requests"]
        return [each for each in found if kind in ("", each["kind"])]

    def faults(self, kind: str = "write") -> list[str]:
        """The faults that came to pass."""
        return [each["fault"] for each in self.requests(kind) if each["fault"]]

    def heard(self, **kinds: int) -> None:
        """Returns once so many requests of each kind have come; an error after half a minute."""
        self._call("GET", "heard?" + "&".join(f"{kind}={number}" for kind, number in kinds.items()))

    def read(self, page: str) -> str:
        """The text of a page, as everybody may read it."""
        with urllib.request.urlopen(f"{self.address}/pages/{page}", timeout=WITHIN) as answer:
            text: str = json.load(answer)["body"]
            return text

    # ---- faults ---------------------------------------------------------------------------------------

    def switch(self, fault: str, **keys: Any) -> None:
        """The next request of a kind meets this fault (cms_switches.py)."""
        self._call("POST", "switch", {"fault": fault, **keys})

    def clear(self) -> None:
        """No more faults."""
        self._call("POST", "clear", {})

    def settings(self, **keys: Any) -> None:
        """`deduplicate`, `key_life` in seconds."""
        self._call("POST", "settings", keys)

    def release(self, only: str = "") -> None:
        """Everything late happens now: `writes` that are applied or shown, `answers`, or both."""
        self._call("POST", "release", {"only": only})

    def _call(self, method: str, name: str, given: dict[str, Any] | None = None) -> Any:
        body = json.dumps(given).encode() if given is not None else None
        request = urllib.request.Request(f"{self.address}/admin/{name}", data=body, method=method)
        with urllib.request.urlopen(request, timeout=WITHIN) as answer:
            return json.load(answer)


class Target(Truth):
    """One content system over a folder, as a process; its address is the same after each start."""

    def __init__(self, data: Path, *words: str) -> None:
        super().__init__()
        self.data = data
        self.words = words
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Starts it; returns when it serves."""
        port = self.address.rpartition(":")[2] or "0"
        command = [sys.executable, "-I", "-S", "-c", _RUN, str(CMS), "--data", str(self.data), "--port", port]
        self.process = subprocess.Popen(
            [*command, *self.words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            raise RuntimeError("the content system did not start")

    def kill(self) -> None:
        """SIGKILL."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(30)
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.process = None


# -I keeps the script's folder off the path; -S saves the start a third of its time.
_RUN = (
    "import sys, runpy, os.path; sys.argv = sys.argv[1:]; sys.path.insert(0, os.path.dirname(sys.argv[0]));"
    " runpy.run_path(sys.argv[0], run_name='__main__')"
)
