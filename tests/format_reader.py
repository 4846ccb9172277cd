"""A reader of stores, written from `docs/format.md` alone: standard library only, nothing of `resumed`.

It knows no more than the page says. Where it and the product disagree, one of the three is wrong.
"""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

HIGHEST = 2
LOG = re.compile(r"([1-9][0-9]*)\.(0|[1-9][0-9]*)\.log\Z")
CHECKPOINT = re.compile(r"([1-9][0-9]*)-([0-9a-f]{64})\.checkpoint\.json\Z")
DIGEST = re.compile(r"[0-9a-f]{64}\Z")
GOOD = re.compile(rb"(?=([0-9a-f]{64}) (\{[^\n]*)\n)")
SET = (
    *("position", "next", "each", "epoch", "attempt", "pause", "cancel", "expiry", "hold", "outcome"),
    *("budget", "used", "breaker", "clocks", "waits", "sources", "questions"),
)  # section 6
ROWS = {
    *("items", "state", "tries", "ended", "publications", "published", "receipt", "forgotten", "cleared"),
    *("effects", "approvals", "errands", "returned", "performances", "performed", "reviews", "reviewed"),
}
LEAVING = {
    "errands": ("returned", "effect"),
    "performances": ("performed", "unit"),
    "reviews": ("reviewed", "unit"),
}
"""Which change names those that leave a table, and which field of a row it stands under."""


class Damage(Exception):  # noqa: N818 - the page's word
    """Bytes that the page calls damage."""


class Newer(Exception):  # noqa: N818 - the page's word
    """A level above those the page describes."""


def digest(raw: bytes) -> str:
    """Section 1."""
    return hashlib.sha256(raw).hexdigest()


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Damage("a key is written twice")
    return found


def parse(raw: bytes) -> dict[str, Any]:
    """Section 1: an object of strict JSON, as far as a reader needs it."""
    try:
        value = json.loads(raw.decode(), object_pairs_hook=_pairs)
    except ValueError as error:
        raise Damage(str(error)) from None
    if not isinstance(value, dict):
        raise Damage("no object")
    return value


def level(value: dict[str, Any], key: str) -> int:
    """Section 8."""
    found = value.get(key)
    if type(found) is not int or found < 1:
        raise Damage(f"no level under {key}")
    if found > HIGHEST:
        raise Newer(found)
    return found


# ---- section 3 --------------------------------------------------------------------------------------------

TAIL = re.compile(rb'  "sha256": "([0-9a-f]{64})"\n\}\n\Z')


def small(path: Path) -> dict[str, Any]:
    """A small file that carries its own digest, or one of format 1."""
    raw = path.read_bytes()
    value = parse(raw)
    end = TAIL.search(raw)
    if end is None:
        if "sha256" in value or re.search(rb'"[0-9a-f]{64}"\n\}\n\Z', raw):
            raise Damage("no digest in its last line")
        return value
    if digest(raw[: end.start()]) != end[1].decode():
        raise Damage("its digest does not hold")
    del value["sha256"]
    return value


def name_of(kind: str, uid: int, value: str) -> str:
    """The file's name under `names/`."""
    return digest(f"{kind}\0{uid}\0{value}".encode())


def kept(path: Path) -> dict[str, Any]:
    """What a name holds."""
    value = small(path)
    if set(value) == {"job"}:
        return value
    if value["name"] != path.name:
        raise Damage("another name")
    return parse(value["holds"].encode())


# ---- section 4 --------------------------------------------------------------------------------------------


def shard(job: str) -> str:
    """The folder that an id falls in."""
    return digest(job.encode())[:2]


def good_line(raw: bytes, place: int) -> tuple[bytes, str, int] | None:
    """JSON, digest and end of the line at a place, None when it does not verify."""
    end = raw.find(b"\n", place)
    if end < 0 or raw[place + 64 : place + 65] != b" ":
        return None
    payload = raw[place + 65 : end]
    if digest(payload).encode() != raw[place : place + 64] or not payload:
        return None
    return payload, digest(payload), end + 1


def is_end(payload: bytes) -> bool:
    """Whether a line is the end of a log."""
    return set(parse(payload)) == {"end", "digest"}


class Folder:
    """One job's folder: what its names say."""

    def __init__(self, path: Path) -> None:
        self.path = path
        names = [each.name for each in path.iterdir()]
        self.logs: dict[int, tuple[int, str]] = {}
        for name in names:
            if (found := LOG.match(name)) is not None:
                first, k = int(found[1]), int(found[2])
                self.logs[first] = max(self.logs.get(first, (-1, "")), (k, name))
        found_ones = [one for name in names if (one := CHECKPOINT.match(name)) is not None]
        self.checkpoints = sorted(((int(one[1]), one[2], one[0]) for one in found_ones), reverse=True)
        if "job.json" not in names:
            raise Damage("no job.json")


# ---- sections 5 and 6 -------------------------------------------------------------------------------------


class Job:
    """A job as its folder tells it."""

    def __init__(self, path: Path) -> None:
        folder = Folder(path)
        self.path = path
        raw = (path / "job.json").read_bytes()
        self.job = digest(raw)
        self.snapshot: dict[str, Any] | None = None
        self.sequence, self.digest = 0, self.job
        self.torn: list[dict[str, Any]] = []
        self._base(folder)
        base = self.sequence
        for vouched in (base, *(one[0] for one in folder.checkpoints if one[0] > base)):
            if vouched + 1 not in folder.logs:
                raise Damage(f"the log of line {vouched + 1} is missing")
        firsts = sorted(first for first in folder.logs if first > base)
        for first, later in zip(firsts, [*firsts[1:], None], strict=True):
            self._log(first, folder.logs[first][1], later)
        if self.snapshot is None:
            raise Damage("no line 1")
        self.admission = parse(raw)
        level(self.admission, "schema")
        if self.snapshot["job"]["id"] != self.admission["id"]:
            raise Damage("job.json is another job's")

    def _base(self, folder: Folder) -> None:
        for sequence, name_digest, name in folder.checkpoints:
            raw = (self.path / name).read_bytes()
            if digest(raw) != name_digest:
                continue
            value = parse(raw)
            level(value, "state_schema")
            if value["sequence"] != sequence or value["job"] != self.job:
                raise Damage(f"{name} does not fit")
            self.snapshot, self.sequence, self.digest = value["snapshot"], sequence, value["previous"]
            return

    def _log(self, first: int, name: str, later: int | None) -> None:
        raw = (self.path / name).read_bytes()
        seal_line = good_line(raw, 0)
        if seal_line is None:
            raise Damage(f"{name} has no seal")
        seal = parse(seal_line[0])
        level({"state_schema": 1, **seal}, "state_schema")
        if (seal["seal"], seal["seal"], seal["digest"], seal["job"]) != (
            first - 1,
            self.sequence,
            self.digest,
            self.job,
        ):
            raise Damage(f"{name} does not continue line {self.sequence}")
        place = seal_line[2]
        while (later is None or self.sequence < later - 1) and (line := good_line(raw, place)) is not None:
            if is_end(line[0]):
                break
            self._line(parse(line[0]), line[1])
            place = line[2]
        if later is not None:
            if self.sequence != later - 1:
                raise Damage(f"{name} breaks off after line {self.sequence}")
            return
        self.torn = seal.get("torn", [])
        self._tail(raw, place, seal, name)

    def _tail(self, raw: bytes, place: int, seal: dict[str, Any], name: str) -> None:
        if self.sequence < seal.get("through", 0):
            raise Damage(f"{name} was published with more lines")
        rest = raw[place:]
        if not rest.strip(b"\0"):
            return
        for found in GOOD.finditer(rest):
            if digest(found[2]).encode() == found[1]:
                raise Damage(f"a good line stands behind a broken one in {name}")
        self.torn = [*self.torn, {"log": name, "offset": place, "sequence": self.sequence + 1}]

    def _line(self, line: dict[str, Any], line_digest: str) -> None:
        if line["sequence"] != self.sequence + 1 or line["previous"] != self.digest:
            raise Damage(f"line {line['sequence']} does not continue line {self.sequence}")
        self.snapshot = apply(self._opening(line) or self.snapshot, line)
        self.sequence, self.digest = line["sequence"], line_digest

    def _opening(self, line: dict[str, Any]) -> dict[str, Any] | None:
        if "opening_artifact" not in line:
            opening: dict[str, Any] | None = line.get("opening")
            return opening
        return parse(artifact(self.path, line["opening_artifact"]))


def artifact(folder: Path, name: str) -> bytes:
    """The bytes of an artifact."""
    path = folder / "artifacts" / name
    if not path.exists():
        raise Damage(f"artifact {name} is missing")
    raw = path.read_bytes()
    if digest(raw) != name:
        raise Damage(f"artifact {name} fails its digest")
    return raw


def apply(before: dict[str, Any] | None, line: dict[str, Any]) -> dict[str, Any]:
    """Section 6."""
    if before is None:
        raise Damage("no snapshot to apply a line to")
    snapshot = dict(before)
    for entry in line.get("entries", []):
        _change(snapshot, entry["changes"])
        snapshot["last_transition"] = entry["transition"]
    snapshot["sequence"] = line["sequence"]
    if line["at"]["wall"] >= snapshot["newest"]["wall"]:
        snapshot["newest"] = line["at"]
    return snapshot


def _change(snapshot: dict[str, Any], changes: dict[str, Any]) -> None:
    if unknown := set(changes) - ROWS - {*SET}:
        raise AssertionError(f"docs/format.md, section 6, does not say what {sorted(unknown)} do")
    for name in changes.get("cleared", []):
        snapshot.pop(name, None)
    for name in SET:
        if changes.get(name) is not None:
            snapshot[name] = changes[name]
    if "items" in changes:
        rows = {row["id"]: row for row in snapshot.get("items", [])}
        for row in changes["items"]:
            rows[row["id"]] = row
        snapshot["items"] = list(rows.values())
    if "state" in changes:
        snapshot["state"] = {**snapshot.get("state", {}), **changes["state"]}
    if "ended" in changes or "tries" in changes:
        ended = changes.get("ended", [])
        tries = {unit: row for unit, row in snapshot.get("tries", {}).items() if unit not in ended}
        snapshot["tries"] = tries | {row["item"]: row for row in changes.get("tries", [])}
    for table in ("effects", "approvals"):
        if table in changes:
            rows = {row["id"]: row for row in snapshot.get(table, [])}
            snapshot[table] = list((rows | {row["id"]: row for row in changes[table]}).values())
    for table, (gone, name) in LEAVING.items():
        if table in changes or gone in changes:
            stay = {
                key: row for key, row in snapshot.get(table, {}).items() if key not in changes.get(gone, [])
            }
            snapshot[table] = stay | {row[name]: row for row in changes.get(table, [])}
    if "published" in changes or "publications" in changes:
        over = changes.get("published", [])
        left = {unit: row for unit, row in snapshot.get("publications", {}).items() if unit not in over}
        snapshot["publications"] = left | {row["unit"]: row for row in changes.get("publications", [])}
    if (receipt := changes.get("receipt")) is not None:
        receipts = {
            key: one
            for key, one in snapshot.get("receipts", {}).items()
            if key not in changes.get("forgotten", [])
        }
        snapshot["receipts"] = receipts | {f"{receipt['uid']} {receipt['request']}": receipt}


# ---- section 2 --------------------------------------------------------------------------------------------


def jobs(root: Path) -> dict[str, Path]:
    """The folders of all jobs that are open or archived, by id."""
    found = {}
    for parent in ("jobs", "archive"):
        for each in sorted((root / parent).glob("*/*")):
            if each.is_dir() and not each.name.startswith("."):
                assert shard(each.name) == each.parent.name, each
                found[each.name] = each
    return found
