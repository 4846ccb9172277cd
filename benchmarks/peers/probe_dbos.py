"""DBOS on SQLite: a reviewer saw revision 1, the draft became revision 2, then "approve" arrives.

DBOS has no approval of its own; each way is the one its documentation shows for a person in the loop, a
workflow that waits in `recv` for a message, with what is shown published by `set_event`. Run by ./run.
"""

import tempfile
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dbos import DBOS, SetWorkflowID
from report import Published, tell

WAIT = 20.0
target: Published
draft: Path


@DBOS.step()
def read_draft() -> str:
    """The draft, as it is now."""
    return draft.read_text()


@DBOS.step()
def publish(text: str) -> None:
    """One write to the target."""
    target.publish(text)


@DBOS.workflow()
def by_file() -> None:
    """Shows the draft, waits for a decision, publishes the draft."""
    DBOS.set_event("draft", read_draft())
    if DBOS.recv("decision", timeout_seconds=WAIT) == "approve":
        publish(read_draft())


@DBOS.workflow()
def by_value() -> None:
    """Shows the draft, waits for a decision, publishes what it showed."""
    text = read_draft()
    DBOS.set_event("draft", text)
    if DBOS.recv("decision", timeout_seconds=WAIT) == "approve":
        publish(text)


@DBOS.workflow()
def by_message() -> None:
    """Takes decisions and new drafts as they come; shows each draft, publishes the newest."""
    text = "revision 1"
    DBOS.set_event("draft", text)
    while message := DBOS.recv("decision", timeout_seconds=WAIT):
        if message == "approve":
            publish(text)
            return
        text = message["draft"]
        DBOS.set_event("draft", text)


def ask(workflow: Any, name: str) -> tuple[Any, str]:
    """Starts it; its handle, and what the reviewer is shown."""
    with SetWorkflowID(name):
        handle = DBOS.start_workflow(workflow)
    return handle, DBOS.get_event(name, "draft", timeout_seconds=WAIT)


def approve(handle: Any) -> tuple[bool, str]:
    """Sends the decision; the workflow ends with it, so it does not ask again."""
    DBOS.send(handle.workflow_id, "approve", topic="decision")
    handle.get_result()
    return False, ""


def main() -> None:
    """One line a way."""
    global target, draft  # noqa: PLW0603 - steps are functions of a module, and see what it holds
    library = f"dbos {version('dbos')}"
    ways = {
        "recv(), the draft is a file that changed": by_file,
        "recv(), a new draft came as a message": by_message,
        "recv(), the workflow publishes the value that it showed": by_value,
    }
    with tempfile.TemporaryDirectory() as base:
        DBOS(
            config={
                "name": "probe",
                "system_database_url": f"sqlite:///{base}/dbos.sqlite",
                "log_level": "ERROR",
            }
        )
        DBOS.launch()
        try:
            for way, workflow in ways.items():
                with tempfile.TemporaryDirectory() as folder, Published(Path(folder)) as target:
                    draft = Path(folder) / "draft.txt"
                    draft.write_text("revision 1")
                    handle, shown = ask(workflow, workflow.__name__)
                    draft.write_text("revision 2")
                    if workflow is by_message:
                        DBOS.send(handle.workflow_id, {"draft": "revision 2"}, topic="decision")
                    tell(library, way, shown, partial(approve, handle), target)
        finally:
            DBOS.destroy()


if __name__ == "__main__":
    main()
