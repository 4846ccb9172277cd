"""Reads one file and writes a digest card of it: size, lines, definitions, first sentence, sha256.

    digest.py ITEM SOURCE CARDS WITNESS [REST]

The witness is a file that every run appends to: one line before it begins, one after its card is in place.
It belongs to nobody but the programs, so it tells what really ran. REST is how many milliseconds to wait in
between, for a demo that has only few files to read.
"""

import ast
import hashlib
import json
import os
import sys
import time
from pathlib import Path
from urllib.parse import quote


def main(item: str, source: str, cards: str, witness: str, rest: str = "0") -> None:
    """One run for one item."""
    testify(witness, "start", item)
    raw = Path(source).read_bytes()
    time.sleep(int(rest) / 1000)
    text = json.dumps(card(item, raw), indent=2) + "\n"
    put(Path(cards), card_name(item), text.encode())
    testify(witness, "end", item)
    print(text, end="")


def card(item: str, raw: bytes) -> dict[str, object]:
    """What the card says about a file's bytes."""
    text = raw.decode("utf-8", "replace")
    try:
        tree: ast.Module | None = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        tree = None
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {
        "item": item,
        "size": len(raw),
        "lines": text.count("\n"),
        "definitions": sum(isinstance(node, kinds) for node in ast.walk(tree)) if tree else 0,
        "first_sentence": first_sentence(tree, text),
        "sha256": hashlib.sha256(raw).hexdigest(),
    }


def first_sentence(tree: ast.Module | None, text: str) -> str:
    """The first sentence of the docstring, else the first line with something in it."""
    said = ast.get_docstring(tree) if tree else None
    if said is None:
        said = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return " ".join(said.split()).split(". ")[0][:200]


def card_name(item: str) -> str:
    """A file name for any item; a long one is cut and told apart by its digest."""
    name = quote(item, safe="")
    if len(name) > 200:
        name = name[:150] + "-" + hashlib.sha256(item.encode()).hexdigest()[:16]
    return name + ".json"


def put(folder: Path, name: str, raw: bytes) -> None:
    """The whole card or none of it, also when this program is killed here."""
    temporary = folder / f".{name}.{os.getpid()}"
    with temporary.open("wb") as file:
        file.write(raw)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(folder / name)


def testify(witness: str, event: str, item: str) -> None:
    """One whole line, on the disk before anything else happens."""
    line = json.dumps({"event": event, "item": item, "pid": os.getpid(), "at": time.time()}) + "\n"
    descriptor = os.open(witness, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, line.encode())
    os.fsync(descriptor)
    os.close(descriptor)


if __name__ == "__main__":
    main(*sys.argv[1:])
