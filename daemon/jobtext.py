"""A job file's bytes with its relative paths made absolute, as `resumectl submit` sends them.

Nothing is judged here: bytes that this reader does not understand go to the daemon as they are, whose strict
door says what is wrong with them.
"""

import json
import os
import tomllib
from typing import Any


class _TwiceError(ValueError):
    """A key is written twice: the daemon must see it."""


def with_absolute_paths(raw: bytes, name: str, folder: str, flows: dict[str, Any]) -> tuple[bytes, str]:
    """The bytes, or the same job as JSON when a path in it was relative to `folder`; and the name to go by.

    Paths are item sources, patterns and lists of items, and inputs that the workflow declares as paths.
    """
    job, is_toml = _read(raw, name)
    if is_toml and not name.endswith(".toml"):
        # The daemon tells the two spellings apart by the name.
        name = f"{name}.toml"
    if not isinstance(job, dict):
        return raw, name
    before = _spelled(job)
    if "items" in job:
        job["items"] = _items(job["items"], folder)
    if isinstance(job.get("inputs"), dict):
        for each in _path_inputs(job.get("workflow"), flows) & job["inputs"].keys():
            job["inputs"][each] = _absolute(job["inputs"][each], folder)
    after = _spelled(job)
    return (raw, name) if before == after else (after.encode(), name.removesuffix(".toml"))


def _spelled(job: dict[str, Any]) -> str:
    """The job as JSON, which has texts for the dates and times that TOML has words for."""
    return json.dumps(job, default=lambda moment: moment.isoformat())


def _read(raw: bytes, name: str) -> tuple[Any, bool]:
    """The job as a plain value, None when it cannot be read, and whether it is (meant to be) TOML.

    A name that ends in neither `.json` nor `.toml` tells nothing: the text itself does.
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None, False
    kind = name.rpartition(".")[2]
    if kind != "toml":
        try:
            return json.loads(text, object_pairs_hook=_once), False
        except (ValueError, RecursionError):
            if kind == "json" or text.lstrip().startswith("{"):
                return None, False
    try:
        return tomllib.loads(text), True
    except (ValueError, RecursionError):
        return None, True


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise _TwiceError
    return dict(pairs)


def _path_inputs(workflow: object, workflows: dict[str, Any]) -> set[str]:
    row = workflows.get(str(workflow).partition("@")[0])
    return {each["name"] for each in row["inputs"] if each["type"] == "path"} if row else set()


def _items(items: Any, folder: str) -> Any:
    if isinstance(items, list):
        return [_item(each, folder) for each in items]
    if isinstance(items, dict):
        return {
            name: _absolute(value, folder) if name in ("glob", "lines", "jsonl") else value
            for name, value in items.items()
        }
    return items


def _item(item: Any, folder: str) -> Any:
    if isinstance(item, dict) and "source" in item:
        return {**item, "source": _absolute(item["source"], folder)}
    if isinstance(item, str) and not os.path.isabs(item) and os.path.exists(os.path.join(folder, item)):
        return {"id": item, "source": _absolute(item, folder)}
    return item


def _absolute(value: Any, folder: str) -> Any:
    if not isinstance(value, str) or not value or os.path.isabs(value):
        return value
    return os.path.normpath(os.path.join(folder, value))
