"""A model of what a power cut leaves: names and bytes that no sync made durable are lost, torn or reordered.

`Disk` watches a story on a real folder. `states` then gives, for each point of the story, the trees that a
crash there may leave, as {relative path: bytes, or None for a folder}.

What is promised: a file's bytes and length by a sync of that file; a name by a sync of its folder; a rename
is one event, also between two folders (ext4, XFS and btrfs journal it whole). Everything else may or may not
be there, each by itself; an unsynced write may be lost, whole, halved, zeros, or whole up to a block edge
with zeros or nothing behind. After a failed sync the bytes it was for stay unsure for ever.
"""

import hashlib
import itertools
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from resumed.store import durable

from .seam import Seam

BLOCK = 4096
Tree = dict[str, bytes | None]


@define(eq=False)
class Node:
    """A file or a folder, whatever its names are."""

    folder: bool
    base: bytes = b""
    number: int = 0


@define(eq=False)
class Event:
    """One thing that a crash may lose: a change of names (`sets`, `drops`) or of one file's bytes."""

    at: int
    """How many calls of the story came before."""
    nodes: tuple[Node, ...]
    """Whose sync makes it durable: any of the folders, or the file."""
    sets: tuple[tuple[Node, str, Node], ...] = ()
    drops: tuple[tuple[Node, str], ...] = ()
    offset: int = 0
    raw: bytes | None = None
    cut: int | None = None
    safe_at: int | None = None
    unsure: bool = False

    def choices(self) -> tuple[str, ...]:
        """What may have become of it while it is not durable."""
        if self.raw is None:
            return ("no", "yes")
        edges = range((self.offset // BLOCK + 1) * BLOCK - self.offset, len(self.raw), BLOCK)
        picked = sorted({*list(edges)[:1], *list(edges)[-1:]})
        cuts = [f"{word}{edge}" for edge in picked for word in ("cut", "zero", "hole")]
        return ("no", "yes", "half", "zeros", *cuts)

    def bytes_left(self, choice: str) -> bytes:
        """The bytes of a write under a choice."""
        assert self.raw is not None
        if choice == "half":
            return self.raw[: len(self.raw) // 2]
        if choice == "zeros":
            return bytes(len(self.raw))
        for word in ("cut", "zero", "hole"):
            if choice.startswith(word):
                edge = int(choice.removeprefix(word))
                if word == "hole":
                    return bytes(edge) + self.raw[edge:]
                return self.raw[:edge] + (bytes(len(self.raw) - edge) if word == "zero" else b"")
        return self.raw


@frozen
class State:
    """One tree that a crash may leave: after how many calls, what had been told by then, and why."""

    point: int
    told: tuple[Any, ...]
    tree: Tree
    why: str


@define
class Disk(Seam):
    """A seam that remembers every change below `root`, which may hold durable files already."""

    root: Path = field(kw_only=True)
    events: list[Event] = field(factory=list)
    told: list[tuple[int, Any]] = field(factory=list)
    top: Node = field(factory=lambda: Node(True))
    start: dict[tuple[Node, str], Node] = field(factory=dict)
    live: dict[tuple[Node, str], Node] = field(factory=dict)
    open: dict[int, Node] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        for path in sorted(self.root.rglob("*")):
            folder, name = self._place(path)
            self.start[folder, name] = self.live[folder, name] = Node(
                path.is_dir(), b"" if path.is_dir() else path.read_bytes()
            )

    def revive(self) -> None:
        """A new process after a kill: what the dead one had written and not synced stays unsure."""
        self.dead, self.fault = False, None
        self._next.clear()  # a fault that the dead one's story had still before it

    def tell(self, what: Any) -> None:
        """Note that something was promised to somebody now."""
        self.told.append((len(self.calls), what))

    def put(self, path: Path, raw: bytes) -> None:
        """Let somebody else place a durable file (a file dropped into the watched folder)."""
        path.write_bytes(raw)
        folder, name = self._place(path)
        self.live[folder, name] = node = Node(False, raw)
        at = len(self.calls) - 1
        self.events.append(Event(at=at, nodes=(folder,), sets=((folder, name, node),), safe_at=at))

    def _place(self, path: Path) -> tuple[Node, str]:
        parts = path.relative_to(self.root).parts
        folder = self.top
        for part in parts[:-1]:
            folder = self.live[folder, part]
        return folder, parts[-1]

    def _folder(self, path: Path) -> Node:
        return self.top if path == self.root else self.live[self._place(path)]

    def _look(self, name: str, args: tuple[Any, ...]) -> Any:
        found = super()._look(name, args)
        if name == "open_read" and args[0].is_relative_to(self.root):
            # A sync by a descriptor that only reads is a sync of that file, too.
            self.open[found] = self.live[self._place(args[0])]
        return found

    def done(self, name: str, args: tuple[Any, ...], found: Any) -> None:
        """Turn a call that happened into events and barriers."""
        at = len(self.calls) - 1
        if name in ("create", "open_lock", "make_folder"):
            self._made(at, name, args[0], found)
        elif name == "pwrite":
            node = self.open[args[0]]
            self.events.append(Event(at=at, nodes=(node,), raw=bytes(args[1]), offset=args[2]))
        elif name == "truncate":
            self.events.append(Event(at=at, nodes=(self.open[args[0]],), cut=args[1]))
        elif name in ("sync_data", "sync_file"):
            self._synced(at, self.open[args[0]])
        elif name == "sync_folder":
            if args[0] == self.root or args[0].is_relative_to(self.root):
                self._synced(at, self._folder(args[0]))
        elif name == "rename_new":
            self._renamed(at, *args)
        elif name in ("unlink", "remove_folder"):
            place = self._place(args[0])
            del self.live[place]
            self.events.append(Event(at=at, nodes=(place[0],), drops=(place,)))

    def failed(self, name: str, args: tuple[Any, ...]) -> None:
        """A failed sync leaves unsure for ever what it was for; the kernel may have dropped the pages."""
        node = {"sync_data": lambda: self.open[args[0]], "sync_file": lambda: self.open[args[0]]}.get(name)
        for event in self.events if node else ():
            if event.safe_at is None and node() in event.nodes:
                event.unsure = True

    def _made(self, at: int, name: str, path: Path, fd: Any) -> None:
        place = self._place(path)
        node = self.live.get(place)
        if node is None:
            self.live[place] = node = Node(name == "make_folder")
            self.events.append(Event(at=at, nodes=(place[0],), sets=((*place, node),)))
        if name != "make_folder":
            self.open[fd] = node

    def _renamed(self, at: int, source: Path, target: Path) -> None:
        old, new = self._place(source), self._place(target)
        node = self.live.pop(old)
        self.live[new] = node
        self.events.append(Event(at=at, nodes=(new[0], old[0]), sets=((*new, node),), drops=(old,)))

    def _synced(self, at: int, node: Node) -> None:
        for event in self.events:
            if event.safe_at is None and not event.unsure and node in event.nodes:
                event.safe_at = at


def states(disk: Disk, *, most: int, seed: int, points: Sequence[int] | None = None) -> Iterator[State]:
    """Every distinct state a crash may leave; at most about `most` a point: corners, then a seeded sample."""
    seen: set[bytes] = set()
    for point in range(len(disk.calls) + 1) if points is None else points:
        told = tuple(what for at, what in disk.told if at <= point)
        done = [event for event in disk.events if event.at < point]
        free = [event for event in done if event.safe_at is None or event.safe_at >= point]
        for picks in _picks(free, most, random.Random(f"{seed}-{point}")):
            tree = _build(disk, done, dict(zip(map(id, free), picks, strict=True)))
            key = _digest(told, tree)
            if key not in seen:
                seen.add(key)
                yield State(point, told, tree, _why(disk, free, picks))


def _picks(free: list[Event], most: int, chance: random.Random) -> Iterator[tuple[str, ...]]:
    choices = [event.choices() for event in free]
    total = 1
    for one in choices:
        total *= len(one)
    if total <= most:
        yield from itertools.product(*choices)
        return
    yield ("no",) * len(free)
    yield ("yes",) * len(free)
    corners: list[tuple[str, ...]] = []
    for index, one in enumerate(choices):
        around = [((usual,) * index, (usual,) * (len(free) - index - 1)) for usual in ("yes", "no")]
        corners.extend((*left, choice, *right) for left, right in around for choice in one)
    chance.shuffle(corners)
    yield from corners[: max(most // 2, 1)]
    for _ in range(max(most - 2 - len(corners), most // 2)):
        yield tuple(chance.choice(one) for one in choices)


def _build(disk: Disk, done: list[Event], picks: dict[int, str]) -> Tree:
    names = dict(disk.start)
    bytes_of: dict[Node, bytearray] = {}
    for event in done:
        choice = picks.get(id(event), "yes")
        if choice == "no":
            continue
        for place in event.drops:
            names.pop(place, None)
        for folder, name, node in event.sets:
            names[folder, name] = node
        if event.raw is not None or event.cut is not None:
            _change(bytes_of, event, choice)
    tree: Tree = {}
    _walk(names, bytes_of, disk.top, "", tree)
    return tree


def _change(bytes_of: dict[Node, bytearray], event: Event, choice: str) -> None:
    node = event.nodes[0]
    held = bytes_of.setdefault(node, bytearray(node.base))
    if event.cut is not None:
        del held[event.cut :]
        held.extend(bytes(event.cut - len(held)))
        return
    raw = event.bytes_left(choice)
    held.extend(bytes(max(0, event.offset - len(held))))
    held[event.offset : event.offset + len(raw)] = raw


def _walk(
    names: dict[tuple[Node, str], Node],
    bytes_of: dict[Node, bytearray],
    folder: Node,
    prefix: str,
    tree: Tree,
) -> None:
    for (parent, name), node in names.items():
        if parent is folder:
            path = f"{prefix}{name}"
            tree[path] = None if node.folder else bytes(bytes_of.get(node, node.base))
            if node.folder:
                _walk(names, bytes_of, node, f"{path}/", tree)


def _digest(told: tuple[Any, ...], tree: Tree) -> bytes:
    found = hashlib.blake2b(repr(len(told)).encode(), digest_size=16)
    for path in sorted(tree):
        raw = tree[path]
        found.update(path.encode() + (b"/" if raw is None else hashlib.blake2b(raw).digest()))
    return found.digest()


def _why(disk: Disk, free: list[Event], picks: Sequence[str]) -> str:
    odd = (f"{disk.calls[e.at]}={p}" for e, p in zip(free, picks, strict=True) if p != "yes")
    return "; ".join(odd) or "nothing lost"


def materialise(tree: Tree, root: Path) -> Path:
    """Write a tree into a folder that is there and empty."""
    for path in sorted(tree):
        raw = tree[path]
        if raw is None:
            os.mkdir(root / path)
        else:
            (root / path).write_bytes(raw)
    return root


assert set(durable.MUTATING) >= {"pwrite", "sync_data", "sync_file", "sync_folder", "rename_new"}
