"""The floors of the house, held over the syntax trees of all modules; nothing of the product is imported.

The tables come first. A new module that needs a right gets its name into the row, or a row with its reason.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeGuard

import pytest

HOUSE = Path(__file__).resolve().parent.parent
MOST_LINES = 400
OVER_LONG: frozenset[str] = frozenset()  # stays empty: past 400 lines a module is split by noun


class Floor(NamedTuple):
    """What the modules of one folder may import: product folders, third parties, and why no more."""

    package: str
    below: str
    third_parties: str
    reason: str


def words(text: str) -> frozenset[str]:
    """Split a table cell."""
    return frozenset(text.split())


# Keyed by folder. A module belongs to the deepest folder that holds it, and may always import its own floor.
FLOORS = {
    "schemas": Floor(
        "resumed.schemas", "", "attr attrs cattrs orjson rfc8785", "the words know nobody who uses them"
    ),
    "store": Floor("resumed.store", "schemas", "attr attrs", "the disk is synchronous and decides nothing"),
    "actors/machine": Floor("resumed.actors.machine", "schemas", "attr attrs", "the law of one job is pure"),
    "actors/worker": Floor(
        "resumed.actors.worker",
        "schemas",
        "attr attrs cattrs anyio trio httpx",
        "author code never sees the daemon's disk",
    ),
    "actors": Floor(
        "resumed.actors",
        "actors/machine actors/worker store schemas",
        "attr attrs anyio",
        "living jobs run on either loop, by anyio alone",
    ),
    "daemon": Floor(
        "resumed.daemon",
        "actors actors/machine actors/worker store schemas",
        "attr attrs anyio trio watchfiles click rich",
        "the outside sees every floor and brings in no more third parties",
    ),
    "front": Floor("resumed", "actors/worker", "", "`import resumed` is lazy and holds nothing of its own"),
}

# Single modules of a floor above that a folder may import.
DOORS = {"front": words("resumed.daemon.client")}

# The client half of the daemon: a whole `resumectl status` is one short process, so it starts light.
CLIENT = words(
    "daemon/cli.py daemon/client.py daemon/completion.py daemon/editing.py daemon/grammar.py "
    "daemon/grammar_people.py daemon/jobtext.py daemon/picking.py daemon/render_asks.py "
    "daemon/verbs_people.py daemon/words.py "
    "daemon/keeping.py daemon/letters.py daemon/lint.py daemon/parsing.py daemon/pieces.py "
    "daemon/render.py daemon/render_contract.py daemon/render_house.py daemon/render_jobs.py "
    "daemon/render_past.py daemon/render_preview.py daemon/render_retire.py daemon/screen.py "
    "daemon/verbs_house.py daemon/verbs_jobs.py daemon/verbs_past.py daemon/verbs_retire.py "
    "daemon/verbs_steer.py daemon/verbs_work.py daemon/waiting.py daemon/watching.py"
)
CLIENT_AT_ONCE = words("resumed.schemas.control")  # every other schema only inside a function

# Modules that the client half loads at its start: standard library only.
LIGHT = words("schemas/control.py")
SLOW = words("anyio attr attrs cattrs click orjson rfc8785 rich trio watchfiles")

# The law computes: what it may use of the standard library is what cannot look at the world.
PURE = words(
    "__future__ base64 bisect collections contextlib copy dataclasses datetime decimal enum "
    "fractions functools hashlib heapq itertools json math operator re string struct textwrap "
    "types typing unicodedata zlib"
)


class Right(NamedTuple):
    """What only the named modules (or whole folders) may touch."""

    touches: frozenset[str]
    modules: frozenset[str]
    reason: str


WORKER_PROCESS = words(
    "actors/worker/keeper.py actors/worker/main.py actors/worker/program.py actors/worker/sources.py"
)

# `touches` are dotted names with all that is below them; `.name` is a method called on any object.
RIGHTS = {
    "read a clock": Right(
        words(
            "time.time time.time_ns time.monotonic time.monotonic_ns time.perf_counter "
            "time.perf_counter_ns time.clock_gettime time.clock_gettime_ns datetime.datetime.now "
            "datetime.datetime.utcnow datetime.datetime.today datetime.date.today anyio.current_time "
            "trio.current_time"
        ),
        words("actors/clock.py") | CLIENT | WORKER_PROCESS,
        "`now` comes with the event from one seam; client and worker are processes of their own",
    ),
    "block in a sleep": Right(
        words("time.sleep"),
        CLIENT | WORKER_PROCESS,
        "a sleep in the daemon stops every job",
    ),
    "change the disk": Right(
        words(
            "os.fsync os.fdatasync os.sync os.rename os.renames os.replace os.link os.symlink "
            "os.unlink os.remove os.removedirs os.rmdir os.mkdir os.makedirs os.mkfifo os.truncate "
            "os.ftruncate os.posix_fallocate os.write os.pwrite os.writev os.pwritev os.chmod "
            "os.fchmod os.chown os.fchown os.copy_file_range shutil.copy shutil.copy2 "
            "shutil.copyfile shutil.copytree shutil.move shutil.rmtree tempfile .write_bytes .write_text "
            ".unlink .rename .mkdir .rmdir .touch .symlink_to .hardlink_to"
        ),
        words(
            "store/durable.py daemon/socket.py daemon/keeping.py actors/scratch.py actors/controlgroups.py "
            "actors/worker"
        ),
        "one file keeps the order of write, sync, rename, sync the folder; a socket's path and a scratch "
        "folder are no state, a file that a person asked for is that person's, control groups are the "
        "kernel's, and a worker writes its own scratch files and proof",
    ),
    "open a socket": Right(
        words("socket socketserver"),
        words(
            "daemon/socket.py daemon/client.py daemon/notify.py daemon/passed.py actors/workers.py "
            "actors/worker"
        ),
        "peers are placed by the kernel at accept, and a worker has its inherited end only",
    ),
    "touch a process": Right(
        words(
            "subprocess multiprocessing pty signal os.fork os.forkpty os.execv os.execve os.execvp "
            "os.execvpe os.execl os.execle os.execlp os.execlpe os.posix_spawn os.posix_spawnp "
            "os.system os.popen os.kill os.killpg os.pidfd_open os.wait os.wait3 os.wait4 os.waitid "
            "os.waitpid os.setsid anyio.run_process anyio.open_process anyio.open_signal_receiver "
            "trio.run_process"
        ),
        words(
            "actors/workers.py actors/containment.py daemon/main.py daemon/serve.py daemon/orders.py "
            "daemon/takeover.py"
        )
        | WORKER_PROCESS,
        "who starts a process tree must know that it is gone",
    ),
    "draw a random number": Right(
        words("random secrets uuid os.urandom os.getrandom"),
        words("store/durable.py daemon/client.py daemon/cli.py"),
        "recovery is a function of the files; only temporary names and request ids are drawn",
    ),
    "structure a record": Right(
        words("cattrs"),
        words("schemas/codec.py"),
        "the one strict converter: the stock one coerces",
    ),
    "speak HTTP": Right(
        words("httpx http.client urllib.request"),
        words("actors/worker/exchange.py"),
        "one client, well kept: no redirects, no proxies of the environment, bounded, and loaded on demand",
    ),
    "watch a folder": Right(
        words("watchfiles"),
        words("daemon/incoming.py"),
        "events are hints, and one module knows their traps",
    ),
}

WRITING = words("O_WRONLY O_RDWR O_CREAT O_TMPFILE O_TRUNC O_APPEND")


def folder_of(module: str) -> str:
    """The deepest floor that holds a module, given by its path from the top."""
    return max((folder for folder in FLOORS if module.startswith(f"{folder}/")), key=len)


def floor_named(target: str) -> str:
    """The folder behind a dotted import of the product."""
    inside = (f for f, floor in FLOORS.items() if f"{target}.".startswith(f"{floor.package}."))
    return max(inside, key=lambda folder: len(FLOORS[folder].package))


class Import(NamedTuple):
    """One imported name, whole, and whether the module's own import brings it in."""

    target: str
    line: int
    at_once: bool


def absolute(node: ast.ImportFrom, module: str) -> str:
    """The dotted name behind `from .x import y`."""
    if not node.level:
        return node.module or ""
    folder = folder_of(module)
    below = module.removeprefix(f"{folder}/").removesuffix(".py").split("/")
    parts = [*FLOORS[folder].package.split("."), *below]
    return ".".join([*parts[: len(parts) - node.level], *([node.module] if node.module else [])])


def is_typing_only(node: ast.AST) -> bool:
    """`if TYPE_CHECKING:` brings nothing in when the module runs."""
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def imports_by_name(node: ast.AST) -> TypeGuard[ast.Call]:
    """`import_module("...")`, `__import__("...")`."""
    return isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in (
        "import_module",
        "__import__",
    )


def imports(tree: ast.AST, module: str, at_once: bool = True) -> Iterator[Import]:
    """Every import of a module, also those in functions and by `import_module("...")`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (Import(name.name, node.lineno, at_once) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = absolute(node, module)
            yield from (Import(f"{base}.{name.name}", node.lineno, at_once) for name in node.names)
        elif imports_by_name(node):
            named = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            yield from (Import(target, node.lineno, at_once) for target in named)
        lazy = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or is_typing_only(node)
        yield from imports(node, module, at_once and not lazy)


def touched(tree: ast.AST, module: str) -> Iterator[tuple[str, int]]:
    """Every dotted name a module uses, seen through its imports, and every method it calls."""
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            known |= {n.asname: n.name for n in node.names if n.asname}
            known |= {n.name.split(".")[0]: n.name.split(".")[0] for n in node.names if not n.asname}
        elif isinstance(node, ast.ImportFrom):
            base = absolute(node, module)
            known |= {n.asname or n.name: f"{base}.{n.name}" for n in node.names}
    yield from ((found.target, found.line) for found in imports(tree, module))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            root, _, rest = ast.unparse(node).partition(".")
            if root in known:
                yield f"{known[root]}.{rest}", node.lineno
        elif isinstance(node, ast.Name) and node.id in known:
            yield known[node.id], node.lineno
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            on = ast.unparse(node.func.value)
            if "(" in on or on.split(".")[0] not in known:
                yield f".{node.func.attr}", node.lineno


def opens_for_writing(node: ast.AST) -> bool:
    """`open(path, "w")`, `path.open("ab")`, `os.open(path, os.O_CREAT)`."""
    if not isinstance(node, ast.Call):
        return False
    name = ast.unparse(node.func)
    if name.split(".")[-1] not in ("open", "fdopen") or "os.devnull" in map(ast.unparse, node.args):
        return False
    place = 1 if name in ("open", "io.open", "os.open", "os.fdopen") else 0
    asked = [*node.args[place:], *(k.value for k in node.keywords if k.arg in ("mode", "flags"))]
    modes = [a.value for a in asked if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    flags = {n.attr for a in asked for n in ast.walk(a) if isinstance(n, ast.Attribute)}
    return bool(flags & WRITING) or any(set(m) <= set("rwxabt+") and set(m) & set("wxa+") for m in modes)


def import_faults(module: str, tree: ast.AST) -> Iterator[str]:
    """Imports that go up, sideways, or to a third party this floor does not know."""
    folder = folder_of(module)
    floor = FLOORS[folder]
    for found in imports(tree, module):
        top = found.target.split(".")[0]
        if top == "resumed":
            by_door = any(f"{found.target}.".startswith(f"{door}.") for door in DOORS.get(folder, ()))
            allowed = by_door or floor_named(found.target) in {folder, *words(floor.below)}
        elif top in sys.stdlib_module_names:
            allowed = folder != "actors/machine" or top in PURE
        else:
            allowed = top in words(floor.third_parties)
        if not allowed:
            yield f"{module}:{found.line} imports {found.target}: {floor.reason}"


def client_faults(module: str, tree: ast.AST) -> Iterator[str]:
    """What would make the client slow to start."""
    if module not in CLIENT | LIGHT:
        return
    half = (
        {f"resumed.{m.removesuffix('.py').replace('/', '.')}" for m in CLIENT} if module in CLIENT else set()
    )
    for found in imports(tree, module):
        if found.target.split(".")[0] in sys.stdlib_module_names:
            continue
        allowed = half | (CLIENT_AT_ONCE if module in CLIENT else frozenset())
        if module in CLIENT and not found.at_once:
            allowed |= {"resumed.schemas"}
        if not any(f"{found.target}.".startswith(f"{name}.") for name in allowed):
            yield f"{module}:{found.line} imports {found.target}: the client half starts light"


def has_right(module: str, right: Right) -> bool:
    """Whether a row names the module or a folder above it."""
    return any(module == named or module.startswith(f"{named}/") for named in right.modules)


def right_faults(module: str, tree: ast.AST) -> Iterator[str]:
    """Names that belong to other modules."""
    uses = sorted(set(touched(tree, module)), key=lambda use: len(use[0]))  # the fullest name speaks
    for verb, right in RIGHTS.items():
        if has_right(module, right):
            continue
        seen = {
            line: name for name, line in uses if any(f"{name}.".startswith(f"{t}.") for t in right.touches)
        }
        for line, name in seen.items():
            yield f"{module}:{line} may not {verb} ({name}): {right.reason}"
    disk = RIGHTS["change the disk"]
    if not has_right(module, disk):
        for node in ast.walk(tree):
            if opens_for_writing(node):
                yield f"{module}:{node.lineno} may not open for writing: {disk.reason}"  # type: ignore[attr-defined]


def shape_faults(module: str, source: str, tree: ast.Module) -> Iterator[str]:
    """A module says first which noun it owns, and owns one."""
    if ast.get_docstring(tree) is None:
        yield f"{module}:1 has no docstring"
    if len(source.splitlines()) > MOST_LINES and module not in OVER_LONG:
        yield f"{module} has more than {MOST_LINES} lines: split it by noun"


def faults(module: str, source: str) -> list[str]:
    """All that is wrong with one module, given by its path from the top."""
    tree = ast.parse(source, module)
    found = {*import_faults(module, tree), *client_faults(module, tree), *right_faults(module, tree)}
    return sorted({*found, *shape_faults(module, source, tree)})


def modules() -> list[str]:
    """Every module of the product, by its path from the top."""
    return sorted(str(p.relative_to(HOUSE)) for top in FLOORS for p in (HOUSE / top).glob("*.py"))


@pytest.mark.parametrize("module", modules())
def test_module_keeps_to_its_floor(module: str) -> None:
    """A module imports downwards, touches only what it has a right to, and says what it is."""
    found = faults(module, (HOUSE / module).read_text())

    if found:
        pytest.fail("\n".join(found), pytrace=False)


BAD = {
    "upward import": ("store/log.py", "from resumed.actors import job"),
    "upward import by its package": ("store/log.py", "from resumed import daemon"),
    "upward relative import": ("schemas/job.py", "from ..store import durable"),
    "upward import in a function": ("schemas/job.py", "def f():\n    import resumed.store"),
    "upward import by name": ("schemas/job.py", "import importlib\nimportlib.import_module('resumed.store')"),
    "floor imports the front": ("actors/job.py", "import resumed"),
    "machine imports the store": ("actors/machine/work.py", "from resumed.store import durable"),
    "machine imports the loop": ("actors/machine/work.py", "from resumed.actors import job"),
    "machine looks at the world": ("actors/machine/work.py", "import os"),
    "worker imports the law": ("actors/worker/main.py", "from resumed.actors.machine import work"),
    "front imports the server": ("front/__init__.py", "from resumed.daemon import serve"),
    "folder by its bare name": ("daemon/serve.py", "import store"),
    "third party on the wrong floor": ("store/log.py", "import anyio"),
    "client loads attrs": ("daemon/cli.py", "def f():\n    import attrs"),
    "client loads records at once": ("daemon/cli.py", "from resumed.schemas import job"),
    "client loads the server": ("daemon/render.py", "def f():\n    from resumed.daemon import serve"),
    "client's constants load attrs": ("schemas/control.py", "import attrs"),
    "clock read": ("store/log.py", "import time\ntime.time()"),
    "clock passed on": ("actors/job.py", "from time import monotonic as tick\nf(tick)"),
    "clock through a class": ("schemas/job.py", "from datetime import UTC, datetime\ndatetime.now(UTC)"),
    "blocking sleep": ("actors/job.py", "import time\ntime.sleep(1)"),
    "sync outside its module": ("store/log.py", "import os\nos.fdatasync(3)"),
    "rename outside its module": ("store/intake.py", "import os as system\nsystem.rename('a', 'b')"),
    "open for writing": ("store/log.py", "open('x', 'wb')"),
    "open for writing by a path": ("store/log.py", "def f(path):\n    path.open(mode='a')"),
    "open for writing by flags": ("store/log.py", "import os\nos.open('x', os.O_RDWR | os.O_CLOEXEC)"),
    "unlink by a path": ("daemon/serve.py", "def f(path):\n    path.unlink()"),
    "socket in the loop": ("actors/job.py", "import socket"),
    "kill in the loop": ("actors/job.py", "import os\nos.kill(1, 9)"),
    "random number in a record": ("schemas/job.py", "import uuid\nuuid.uuid4()"),
    "second converter": ("schemas/job.py", "import cattrs"),
    "no docstring": ("store/log.py", None),
    "too long": ("store/log.py", "x = 1\n" * MOST_LINES),
}


@pytest.mark.parametrize("case", BAD)
def test_layer_test_catches(case: str) -> None:
    """Each way out of the house is found, and found once for its own reason."""
    module, body = BAD[case]
    found = faults(module, "x = 1\n" if body is None else f'"""One noun."""\n\n{body}\n')

    assert found
    assert all(fault.startswith(module) for fault in found)


GOOD = {
    "downward imports": (
        "actors/job.py",
        "from resumed.store import durable\nfrom resumed.schemas.job import Job",
    ),
    "law by the law": ("actors/machine/work.py", "from resumed.actors.machine import waits\nimport attrs"),
    "front by the client": ("front/__init__.py", "def __getattr__(n):\n    import resumed.daemon.client"),
    "client by its constants": ("daemon/cli.py", "from resumed.schemas.control import VERBS"),
    "client by records, lazily": ("daemon/render.py", "def f():\n    from resumed.schemas import job"),
    "client by records, for types": (
        "daemon/cli.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from resumed.schemas import job",
    ),
    "durable functions by module": (
        "store/log.py",
        "from resumed.store import durable\ndurable.rename('a')\nopen('x', 'rb')",
    ),
    "worker's scratch file": ("actors/worker/offers.py", "open('x', 'wb')"),
    "output thrown away": ("daemon/cli.py", "import os\nos.open(os.devnull, os.O_WRONLY)"),
    "text replaced": ("store/log.py", "'a'.replace('a', 'b')"),
    "date from text": ("schemas/instant.py", "from datetime import datetime\ndatetime.fromisoformat('')"),
}


@pytest.mark.parametrize("case", GOOD)
def test_layer_test_lets_pass(case: str) -> None:
    """What the floors allow is not reported."""
    module, body = GOOD[case]

    assert [] == faults(module, f'"""One noun."""\n\n{body}\n')


@pytest.mark.parametrize("module", sorted(m for m in CLIENT | LIGHT if (HOUSE / m).exists()))
def test_client_starts_light(module: str, tmp_path: Path) -> None:
    """Importing the client half loads none of the slow third parties, at any depth."""
    name = f"resumed.{module.removesuffix('.py').replace('/', '.')}"
    look = f"import sys, {name}; print(*{{m.split('.')[0] for m in sys.modules}})"
    ran = subprocess.run([sys.executable, "-I", "-c", look], cwd=tmp_path, capture_output=True, text=True)

    assert (0, "") == (ran.returncode, ran.stderr)
    assert set() == words(ran.stdout) & SLOW
