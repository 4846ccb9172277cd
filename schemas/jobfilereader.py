"""Reading a job file: the strict door, INTERFACE's keys, and every problem with its path.

What the inputs must be depends on the workflow, and is checked against it (`inputs.check_inputs`).
"""

import re
from collections.abc import Iterator
from typing import Any

from . import codec, jobschedule, strict, tomltext
from .errors import FaultyInputError
from .filetable import Table, kind
from .jobfile import ID, MAX_BYTES, MAX_ITEMS, MAX_KEY, FileItem, JobFile, item_name_problem, path_problem

MAX_TEXT = 64 * 1024
"""Characters in any one string."""

_FORMS = ("glob", "lines", "jsonl")

_TENANT = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}\Z")
_OWNER = re.compile(r"(user|group):[A-Za-z0-9_][A-Za-z0-9_.-]*\Z")


def read(raw: bytes, name: str) -> JobFile:
    """The job file in bytes; `name` is the file's, and a `.toml` one is TOML. FaultyInputError otherwise."""
    what = f"cannot admit {name}"
    value = _parsed(raw, name, what)
    if not isinstance(value, dict):
        raise FaultyInputError(what, (f"expected an object, got {kind(value)} @ $",))
    problems = list(_long_texts(value, "$"))
    table = Table(value, "$", problems)
    workflow, version = _workflow(table)
    items, forms = _items(table)
    job = _matching(table, "id", ID, "1 to 64 of a-z 0-9 . _ -, beginning with a letter or digit")
    file = JobFile(
        workflow=workflow,
        version=version,
        id=job,
        key=_key(table),
        tenant=_matching(table, "tenant", _TENANT, "a slug"),
        title=table.text("title"),
        objective=table.text("objective"),
        labels=_labels(table),
        items=items,
        inputs=_inputs(table),
        owner=_matching(table, "owner", _OWNER, "user:NAME or group:NAME"),
        **{**forms, **jobschedule.read(table, job)},
    )
    table.close()
    if problems:
        raise FaultyInputError(what, tuple(problems[:20]))
    return file


def _key(table: Table) -> str:
    written = table.has("key")
    key = table.text("key")
    if written and not (key.isprintable() and 0 < len(key) <= MAX_KEY):
        table.problem("key", f"expected 1 to {MAX_KEY} characters that can be shown")
    return key


def _parsed(raw: bytes, name: str, what: str) -> Any:
    if len(raw) > MAX_BYTES:
        raise FaultyInputError(what, (f"{len(raw)} bytes, the most is {MAX_BYTES}",))
    return tomltext.parse(raw, what, MAX_BYTES) if name.endswith(".toml") else strict.parse(raw, what)


def _long_texts(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, str) and len(value) > MAX_TEXT:
        yield f"{len(value)} characters, the most is {MAX_TEXT} @ {path}"
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _long_texts(inner, strict.step(path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _long_texts(inner, f"{path}[{place}]")


def _matching(table: Table, key: str, pattern: re.Pattern[str], expected: str) -> str:
    text = table.text(key)
    if text and not pattern.match(text):
        table.problem(key, f"expected {expected}, got {text!r}")
    return text


def _workflow(table: Table) -> tuple[str, int | None]:
    text = table.text("workflow", required=True)
    name, at, number = text.partition("@")
    if text and not ID.match(name):
        table.problem("workflow", f'expected "name" or "name@3", got {text!r}')
    if not at:
        return name, None
    if not re.fullmatch(r"[1-9][0-9]{0,8}", number):
        table.problem("workflow", f'expected "name" or "name@3", got {text!r}')
        return name, None
    return name, int(number)


def _labels(table: Table) -> dict[str, str]:
    inner = table.inner("labels")
    if inner is None:
        return {}
    return {key: inner.text(key) for key in inner.left()}


def _inputs(table: Table) -> str:
    inputs = table.take("inputs", dict, {})
    try:
        return codec.dump_plain(inputs).decode()
    except TypeError as error:
        table.problem("inputs", str(error))
        return "{}"


def _items(table: Table) -> tuple[tuple[FileItem, ...] | None, dict[str, str]]:
    """The items written out, or where they are: one of `items_glob`, `items_lines` and `items_jsonl`."""
    value = table.whatever("items")
    if value is None:
        return None, {}
    if isinstance(value, dict):
        return None, _form(Table(value, table.at("items"), table.problems))
    if not isinstance(value, list):
        table.problem("items", f"expected a list, or {{glob}}, {{lines}} or {{jsonl}}, got {kind(value)}")
        return None, {}
    if len(value) > MAX_ITEMS:
        table.problem("items", f"{len(value)} items, the most is {MAX_ITEMS}")
        return None, {}
    return _listed(table, value), {}


def _form(table: Table) -> dict[str, str]:
    written = [form for form in _FORMS if table.has(form)]
    found = {f"items_{form}": table.text(form) for form in written}
    if len(written) != 1:
        table.problems.append(f"expected one of {', '.join(_FORMS)} @ {table.path}")
    for form in written:
        if problem := path_problem(found[f"items_{form}"]):
            table.problem(form, problem)
    table.close()
    return found


def _listed(table: Table, values: list[Any]) -> tuple[FileItem, ...]:
    items: list[FileItem] = []
    seen: dict[str, int] = {}
    for place, value in enumerate(values):
        path = f"{table.at('items')}[{place}]"
        item = FileItem(id=value) if isinstance(value, str) else _item(value, path, table.problems)
        if problem := item_name_problem(item.id):
            table.problems.append(f"{problem} @ {path}")
        elif item.id in seen:
            table.problems.append(f"the item {item.id!r} stands at {seen[item.id]} already @ {path}")
        seen.setdefault(item.id, place)
        items.append(item)
    return tuple(items)


def _item(value: Any, path: str, problems: list[str]) -> FileItem:
    if not isinstance(value, dict):
        problems.append(f"expected a name or {{id, source, inputs}}, got {kind(value)} @ {path}")
        return FileItem(id=path)
    table = Table(value, path, problems)
    source = table.text("source")
    if source and (problem := path_problem(source)):
        table.problem("source", problem)
    item = FileItem(id=table.text("id", source.rpartition("/")[2]), source=source, inputs=_inputs(table))
    table.close()
    return item
