"""The job file a person writes: a workflow's name and its inputs; never a command, environment or secret."""

import posixpath
import re

from attrs import field, frozen

from .limits import OnFailed, Tighter

ID = re.compile(r"(?!.*\.reason\.json\Z)[a-z0-9][a-z0-9._-]{0,63}\Z")
"""A job's id. It may not end in `.reason.json`: the quarantine keeps such a file beside each job."""
MAX_BYTES = 1024 * 1024
MAX_ITEMS = 10_000
MAX_NAME = 1024
MAX_KEY = 512
"""Characters of a business key."""
MAX_AFTER = 100
"""Jobs that one job may wait for."""


def item_name_problem(name: str) -> str:
    """Why a text cannot name an item; empty when it can."""
    if not name:
        return "an item's name is empty"
    if len(name) > MAX_NAME:
        return f"an item's name has {len(name)} characters, the most is {MAX_NAME}"
    if not name.isprintable():
        return "an item's name holds a character that cannot be shown"
    if ".." in name.split("/"):
        return "an item's name may become part of a path, and must not climb (`..`)"
    return ""


def path_problem(path: str) -> str:
    """Why a text is no plain absolute path; empty when it is one."""
    if not path.startswith("/"):
        return f"expected an absolute path, got {path!r}"
    if path.startswith("//") or (path != "/" and posixpath.normpath(path) != path.rstrip("/")):
        return "expected a path without `.`, `..` or doubled slashes"
    return ""


@frozen(kw_only=True)
class FileItem:
    """One item as written in a job file. `inputs` is JSON text."""

    id: str
    source: str = ""
    inputs: str = "{}"


@frozen(kw_only=True)
class JobFile:
    """A checked job file; `version` is None for the newest enabled workflow, `inputs` is JSON text.

    At most one of the four `items` says where its items come from; without any, its workflow does.
    """

    workflow: str
    version: int | None = None
    id: str = ""
    key: str = ""
    """The business name of the work."""
    tenant: str = ""
    title: str = ""
    objective: str = ""
    labels: dict[str, str] = field(factory=dict)
    items: tuple[FileItem, ...] | None = None
    items_glob: str = ""
    items_lines: str = ""
    items_jsonl: str = ""
    """Absolute paths of lists."""
    inputs: str = "{}"
    owner: str = ""
    priority: int = 0
    after: tuple[str, ...] = ()
    not_before: str = ""
    """A moment in UTC or a span, as `times` reads it; empty means now."""
    deadline: str = ""
    """The same; empty means the workflow's."""
    limits: Tighter = field(factory=Tighter)
    on_failed: OnFailed | None = None
