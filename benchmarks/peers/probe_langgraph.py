"""LangGraph: a reviewer saw revision 1, the draft became revision 2, then the reviewer's "approve" arrives.

Each way is the library's own documented way to wait for a person, over its SQLite checkpointer, with the
content system of examples/museum as the target. Run by ./run.
"""

import sqlite3
import tempfile
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from report import Published, tell

CONFIG: Any = {"configurable": {"thread_id": "label-7"}}


class Asked(NamedTuple):
    """What the reviewer was shown, the id of the question, and how the run goes on."""

    shown: str
    id: str
    resume: Callable[[Any], Any]


class State(TypedDict, total=False):
    """What a label's graph carries."""

    draft: str
    decision: str


def compiled(build: StateGraph, folder: Path, **keys: Any) -> Any:
    """The graph over a checkpointer in a file, as a process that starts again would open it."""
    base = sqlite3.connect(folder / "checkpoints.sqlite3", check_same_thread=False)
    return build.compile(checkpointer=SqliteSaver(base), **keys)


def one_node(node: Callable[[State], State]) -> StateGraph:
    """A graph of the node alone."""
    build = StateGraph(State)
    build.add_node("publish", node)
    build.add_edge(START, "publish")
    build.add_edge("publish", END)
    return build


def question(found: dict[str, Any], run: Callable[[Any], Any]) -> Asked:
    """What a run that stopped in `interrupt()` asks."""
    (asked,) = found["__interrupt__"]
    return Asked(asked.value["draft"], asked.id, run)


def state_changes(target: Published, folder: Path) -> Asked:
    """`interrupt()` shows the draft of the state, which is changed with `update_state` while it waits."""

    def publish(state: State) -> State:
        if interrupt({"draft": state["draft"]}) == "approve":
            target.publish(state["draft"])
        return {}

    build = one_node(publish)
    asked = compiled(build, folder).invoke({"draft": "revision 1"}, CONFIG)
    compiled(build, folder).update_state(CONFIG, {"draft": "revision 2"})
    return question(asked, lambda answer: compiled(build, folder).invoke(answer, CONFIG))


def file_changes(target: Published, folder: Path) -> Asked:
    """The draft is a file that the node reads: it shows it with `interrupt()`, and is changed meanwhile."""
    draft = folder / "draft.txt"
    draft.write_text("revision 1")

    def publish(state: State) -> State:
        if interrupt({"draft": draft.read_text()}) == "approve":
            target.publish(draft.read_text())
        return {}

    build = one_node(publish)
    asked = compiled(build, folder).invoke({}, CONFIG)
    draft.write_text("revision 2")
    return question(asked, lambda answer: compiled(build, folder).invoke(answer, CONFIG))


def model_in_the_node(target: Published, folder: Path) -> Asked:
    """The node asks its model and then `interrupt()`: at the resume the node runs again from its start."""
    drafts = iter(["revision 1", "revision 2", "revision 3"])

    def publish(state: State) -> State:
        draft = next(drafts)  # the model, which answers otherwise each time
        if interrupt({"draft": draft}) == "approve":
            target.publish(draft)
        return {}

    build = one_node(publish)
    asked = compiled(build, folder).invoke({}, CONFIG)
    return question(asked, lambda answer: compiled(build, folder).invoke(answer, CONFIG))


def stops_before_the_node(target: Published, folder: Path) -> Asked:
    """`interrupt_before`: the reviewer reads the state, `update_state` changes it, the run goes on."""

    def publish(state: State) -> State:
        target.publish(state["draft"])
        return {}

    build = one_node(publish)
    keys = {"interrupt_before": ["publish"]}
    compiled(build, folder, **keys).invoke({"draft": "revision 1"}, CONFIG)
    shown = compiled(build, folder, **keys).get_state(CONFIG).values["draft"]
    compiled(build, folder, **keys).update_state(CONFIG, {"draft": "revision 2"})
    return Asked(shown, "", lambda answer: compiled(build, folder, **keys).invoke(None, CONFIG))


WAYS = {
    "interrupt(), the state changed by update_state": state_changes,
    "interrupt(), the draft is a file that changed": file_changes,
    "interrupt() behind the model in one node": model_in_the_node,
    "interrupt_before, the state changed by update_state": stops_before_the_node,
}


def main() -> None:
    """Each way once with the answer alone and, where the interrupt has an id, once addressed to that id."""
    library = f"langgraph {version('langgraph')}"
    for way, ask in WAYS.items():
        for by_id in (False, True):
            with tempfile.TemporaryDirectory() as folder, Published(Path(folder)) as target:
                asked = ask(target, Path(folder))
                if by_id and not asked.id:
                    continue
                answer = Command(resume={asked.id: "approve"} if by_id else "approve")
                name = f"{way}, answered by id" if by_id else way
                tell(library, name, asked.shown, partial(approve, asked, answer), target)


def approve(asked: Asked, answer: Any) -> tuple[bool, str]:
    """Answers; whether the library asks again."""
    after = asked.resume(answer)
    return bool(after and after.get("__interrupt__")), ""


if __name__ == "__main__":
    main()
