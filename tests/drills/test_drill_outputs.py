"""Outputs are bytes: nothing a program prints or names can lose, repeat or hide its finished work."""

import hashlib
import json
import sys

from .kit import FINAL, Daemon, command, program

BYTES = b"ok \xff\xfe"
ESCAPE = b'"\\ud83d"'
NAME = b"\xff.txt"
PYTHON = """
import resumed
from resumed import workflow, step, Accept, Each, Done

@workflow("lone", version=1)
class Lone:
    @step(start=True)
    async def start(self, job, state):
        return Each(job.items, start="one", then="end")
    @step(item=True, tries=1)
    async def one(self, job, item):
        if item.id == "text":
            return Accept("\\ud83d")
        if item.id == "raw":
            return Accept(b"ok \\xff\\xfe")
        raise ValueError("no text \\ud83d \\x00")
    @step
    async def end(self, job, state):
        return Done()
"""


def once(daemon: Daemon, job: str, item: str) -> tuple[str, int]:
    """An item's state and how often it was tried."""
    found = daemon.items(job)[item]
    return found["state"], found["tries"]


def test_output_that_is_no_text_is_kept_byte_for_byte(daemon: Daemon) -> None:
    """C25: an item that prints bytes which are no UTF-8, a lone surrogate's escape, or a file name with byte
    ff, on both streams, is done once; its bytes are kept, and every screen and a restart can show it."""
    script = daemon.root / "odd.py"
    script.write_text(
        "import os, sys\n"
        f"made = {{'bytes': {BYTES!r}, 'escape': {ESCAPE!r}, 'name': {NAME!r}}}[os.environ['RESUMED_ITEM']]\n"
        f"open({NAME!r}, 'wb').write(made)\n"
        "os.write(1, made); os.write(2, made)\n"
    )
    daemon.workflow("odd", program([script]))
    daemon.workflow("printf", command(["printf", r"ok \377\376"]))
    daemon.start()
    daemon.submit("odd", "odd", ["bytes", "escape", "name"])
    daemon.submit("printf", "printf", ["a"])
    wanted = [
        ("odd", "bytes", BYTES),
        ("odd", "escape", ESCAPE),
        ("odd", "name", NAME),
        ("printf", "a", BYTES),
    ]
    for _ in range(2):
        for job in ("odd", "printf"):
            assert "completed" == daemon.wait_status(job, *FINAL)["status"]
        for job, item, made in wanted:
            assert ("done", 1) == once(daemon, job, item)
            assert made == daemon.resumectl("output", job, item).stdout
            assert hashlib.sha256(made).hexdigest() == daemon.items(job)[item]["output"]
            logs = daemon.resumectl("logs", job, item)
            assert 0 == logs.returncode, logs.stderr
        logs = daemon.resumectl("logs", "odd", "bytes").stdout
        assert b"ok " in logs
        for words in (
            ["list", "-a"],
            ["show", "odd"],
            ["show", "odd", "--json"],
            ["status"],
            ["logs", "odd"],
        ):
            ran = daemon.resumectl(*words)
            assert 0 == ran.returncode, (words, ran.stderr)
        daemon.kill()
        daemon.bury()
        assert 0 == daemon.fsck().returncode
        daemon.start()


def test_reasons_that_are_no_text_are_shown(daemon: Daemon) -> None:
    """C25: a program that fails with such text on stderr, and a handler that raises it, fail with a reason
    that can be stored, listed and read after a restart."""
    (daemon.workflows / "lone_module.py").write_text(PYTHON)
    (daemon.workflows / "lone_module.py").chmod(0o644)
    daemon.workflow("lone", 'version = 1\n[python]\nentry = "lone_module:Lone"\n')
    daemon.workflow(
        "fails", program(["-c", f"import os, sys; os.write(2, {BYTES!r} + b'\\x1b[31m\\n'); sys.exit(3)"])
    )
    daemon.start()
    daemon.submit("fails", "fails", ["a"])
    daemon.submit("lone", "lone", ["text", "raw", "raises"])
    for _ in range(2):
        for job in ("fails", "lone"):
            assert "held" == daemon.wait_status(job, *FINAL, "held")["status"]
        assert ("failed", 1) == once(daemon, "fails", "a")
        assert "exit 3" in daemon.items("fails")["a"]["reason"]
        assert ("done", 1) == once(daemon, "lone", "raw")
        assert BYTES == daemon.resumectl("output", "lone", "raw").stdout
        assert ("failed", 1) == once(daemon, "lone", "raises")
        assert "no text" in daemon.items("lone")["raises"]["reason"]
        text = daemon.items("lone")["text"]
        assert 1 == text["tries"]
        if text["state"] == "done":
            assert b"\xed\xa0\xbd" == daemon.resumectl("output", "lone", "text").stdout
        for words in (
            ["list"],
            ["show", "fails"],
            ["show", "lone"],
            ["show", "lone", "--json"],
        ):
            ran = daemon.resumectl(*words)
            assert (0, False) == (ran.returncode, b"\x1b[31m" in ran.stdout), (words, ran.stderr)
        daemon.kill()
        daemon.bury()
        daemon.start()


def test_a_listed_file_whose_name_is_no_text_holds_its_job_alone(daemon: Daemon) -> None:
    """C25: a glob that meets a file name with byte ff holds the job with a reason that shows the name."""
    folder = daemon.root / "files"
    folder.mkdir()
    (folder / "plain.txt").write_text("x")
    with open(bytes(folder) + b"/" + NAME, "wb") as file:
        file.write(b"x")
    text = command([sys.executable, "-c", "pass"])
    items = f"[items]\nfrom = 'glob'\nglob = {json.dumps(str(folder) + '/*')}\n"
    daemon.workflow("globs", text.replace("[[step]]", f"{items}[[step]]"))
    daemon.start()
    daemon.ask("Submit", file=json.dumps({"workflow": "globs", "id": "globs"}))
    for _ in range(2):
        row = daemon.wait_status("globs", "held", *FINAL)
        assert "held" == row["status"]
        assert "\N{REPLACEMENT CHARACTER}.txt" in daemon.ask("Show", job="globs")["job"]["reason"]
        for words in (["list"], ["show", "globs"], ["logs", "globs"]):
            assert 0 == daemon.resumectl(*words).returncode
        daemon.kill()
        daemon.bury()
        daemon.start()
