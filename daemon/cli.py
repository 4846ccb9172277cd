"""`resumectl`: the command line's grammar, and what an error of the daemon means as text and exit code."""

import argparse
import os
import sys
from typing import Any

from resumed.schemas import control

from . import verbs
from .client import CallError, Client, UnreachableError, default_path
from .render import clean
from .verbs import Screen

EXITS = {
    control.ERROR_REFUSED: control.EXIT_REFUSED,
    control.ERROR_FAULTY: control.EXIT_REFUSED,
    control.ERROR_NO_SUCH: control.EXIT_NO_SUCH,
    control.ERROR_NOT_PERMITTED: control.EXIT_NOT_PERMITTED,
    control.ERROR_UNKNOWN_OUTCOME: control.EXIT_MOVED,
}


def parser() -> argparse.ArgumentParser:
    """The grammar. `--socket` and `--json` stand before or after the verb."""
    shared = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    shared.add_argument("--socket", metavar="PATH", help="the daemon's socket (or RESUMED_SOCKET)")
    shared.add_argument("--json", action="store_true", help="print what the daemon answered, as JSON")
    top = argparse.ArgumentParser(
        prog="resumectl",
        description="Hand long jobs to resumed, watch them, steer them.",
        parents=[shared],
        allow_abbrev=False,
    )
    adding = top.add_subparsers(dest="verb", metavar="VERB", required=True, prog="resumectl")

    def verb(name: str, serve: Any, said: str) -> argparse.ArgumentParser:
        made = adding.add_parser(name, help=said, description=said, parents=[shared], allow_abbrev=False)
        made.set_defaults(serve=serve)
        return made

    _work(verb)
    _steering(verb)
    verb("status", verbs.status, "how the daemon is")
    verb("workflows", verbs.workflows, "which workflows a job file may name")
    aside = verb("quarantine", verbs.quarantine, "jobs that were set aside")
    aside.add_argument("what", choices=["list"], help="list: which they are, and why")
    return top


def _work(verb: Any) -> None:
    made = verb("submit", verbs.submit, "hand in a job file")
    made.add_argument("file", metavar="FILE|-", help="a job file, JSON or TOML; - reads standard input")
    made.add_argument("--wait", action="store_true", help="watch the job until it ends or needs a person")
    made = verb("list", verbs.list_jobs, "the open jobs, oldest first")
    made.add_argument("-a", "--all", action="store_true", help="also the jobs that ended last")
    made = verb("show", verbs.show, "one job, its items, and what may be done with it now")
    made.add_argument("job", metavar="JOB", help="a job's id or a unique prefix of it")
    made.add_argument("--all", action="store_true", help="every item, in the job's order")
    made = verb("watch", verbs.watch, "follow a job until it ends or needs a person")
    made.add_argument("job", metavar="JOB")
    made = verb("logs", verbs.logs, "what the programs of a job said")
    made.add_argument("job", metavar="JOB")
    made.add_argument("item", metavar="ITEM", nargs="?", help="one item; else all that were started")
    made.add_argument("-f", "--follow", action="store_true", help="go on while programs run")
    made = verb("output", verbs.output, "an item's accepted output, byte for byte")
    made.add_argument("job", metavar="JOB")
    made.add_argument("item", metavar="ITEM")


def _steering(verb: Any) -> None:
    words = {
        "pause": "start nothing new of a job; what runs may finish",
        "resume": "go on with a paused or held job",
        "cancel": "end a job: nothing new starts, what runs is stopped",
        "retry": "give failed or held items (all of them, when none is named) a fresh set of tries",
        "skip": "leave items out (all failed and held ones, when none is named) and go on with the others",
    }
    for name, said in words.items():
        made = verb(name, verbs.steer, said)
        made.add_argument("job", metavar="JOB")
        if name in ("retry", "skip"):
            made.add_argument("items", metavar="ITEM", nargs="*")
        if name == "pause":
            made.add_argument("--now", action="store_true", help="also stop what runs")
        made.add_argument("--reason", default="", metavar="TEXT", help="kept in the job's history")


def main(argv: list[str] | None = None) -> int:
    """Runs one verb; the exit codes are those of INTERFACE (`schemas.control`)."""
    asked = parser().parse_args(argv)
    screen = Screen(as_json=getattr(asked, "json", False))
    try:
        return _run(screen, asked)
    except KeyboardInterrupt:
        return control.EXIT_INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough; the interpreter must not complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return control.EXIT_DONE


def _run(screen: Screen, asked: argparse.Namespace) -> int:
    path = getattr(asked, "socket", None) or default_path()
    try:
        with Client(path) as client:
            code: int = asked.serve(screen, client, asked)
            sys.stdout.flush()
            return code
    except UnreachableError as error:
        return _unreachable(screen, error)
    except CallError as error:
        return _refused(screen, error, asked)
    except verbs.UsageError as error:
        print(f"resumectl: {clean(error)}", file=sys.stderr)
        return control.EXIT_USAGE


def _unreachable(screen: Screen, error: UnreachableError) -> int:
    if screen.as_json:
        screen.show_json({"error": "unreachable", "parameters": {"reason": str(error)}})
    print(f"resumectl: {clean(error)}", file=sys.stderr)
    print("you may", file=sys.stderr)
    for command, said in (
        ("resumed serve", "start a daemon of your own"),
        ("resumectl --socket PATH ..", "name another daemon's socket, or set RESUMED_SOCKET"),
    ):
        print(f"  {command:<28} {said}", file=sys.stderr)
    return control.EXIT_UNREACHABLE


def _refused(screen: Screen, error: CallError, asked: argparse.Namespace) -> int:
    if screen.as_json:
        screen.show_json({"error": error.name, "parameters": error.parameters})
    print(f"resumectl: {clean(error, 2000)}", file=sys.stderr)
    for problem in error.parameters.get("problems", ()):
        print(f"  {clean(problem, 500)}", file=sys.stderr)
    if commands := error.parameters.get("commands") or _possible(error.name, asked):
        print("you may", file=sys.stderr)
        for command in commands:
            print(f"  {clean(command)}", file=sys.stderr)
    return EXITS.get(error.name, control.EXIT_REFUSED)


def _possible(error: str, asked: argparse.Namespace) -> list[str]:
    """What may be typed after an error that does not say so itself."""
    import shlex

    if error == control.ERROR_NOT_PERMITTED:
        return []
    if asked.verb == "submit":
        return ["resumectl workflows"]
    job = getattr(asked, "job", None)
    lost = error == control.ERROR_NO_SUCH and not getattr(asked, "item", None)
    return [f"resumectl show {shlex.quote(job)}"] if job and not lost else ["resumectl list -a"]


if __name__ == "__main__":
    sys.exit(main())
