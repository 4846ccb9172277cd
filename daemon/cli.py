"""`resumectl`: runs one verb, and says what an error of the daemon means as text and exit code."""

import argparse
import importlib
import os
import sys
from collections.abc import Callable

from resumed.schemas import control

from . import parsing
from .client import CallError, Client, UnreachableError, default_path
from .screen import Screen, UsageError, complain, prepare

EXITS = {
    control.ERROR_REFUSED: control.EXIT_REFUSED,
    control.ERROR_FAULTY: control.EXIT_REFUSED,
    control.ERROR_NO_SUCH: control.EXIT_NO_SUCH,
    control.ERROR_NOT_PERMITTED: control.EXIT_NOT_PERMITTED,
    control.ERROR_UNKNOWN_OUTCOME: control.EXIT_MOVED,
}


def main(argv: list[str] | None = None) -> int:
    """Runs one verb; the exit codes are those of INTERFACE (`schemas.control`)."""
    words = sys.argv[1:] if argv is None else argv
    prepare()
    screen = Screen(as_json="--json" in words)
    asked: argparse.Namespace | str = ""
    try:
        asked = parsing.read(words)
        if isinstance(asked, str):
            print(asked, end="")
            return control.EXIT_DONE
        return _run(screen, asked)
    except UsageError as error:
        if screen.as_json:
            screen.show_json({"error": "usage", "parameters": {"reason": str(error)}})
        complain(error, commands=error.commands)
        return control.EXIT_USAGE
    except KeyboardInterrupt:
        return _interrupted(asked)
    except BrokenPipeError:
        # Whoever read our output has seen enough; the interpreter must not complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return control.EXIT_DONE
    except OSError as error:
        complain(f"cannot print the answer: {error.strerror or error}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return control.EXIT_REFUSED


def _of(verb: str, job: str) -> str:
    from shlex import quote

    return f"resumectl {verb} {quote(job)}"


def _interrupted(asked: argparse.Namespace | str) -> int:
    """Who only looked may go in silence; what was to be changed may be in force."""
    if not isinstance(asked, str) and getattr(asked, "changes", False):
        job = getattr(asked, "job", None)
        complain(
            "interrupted: nobody can tell whether the command took effect",
            commands=(_of("why", job) if job else "resumectl list -a",),
        )
    return control.EXIT_INTERRUPTED


def _run(screen: Screen, asked: argparse.Namespace) -> int:
    module, _, function = asked.serve.partition(":")
    try:
        if asked.alone:
            code: int = _served(module, function)(screen, asked)
        else:
            with Client(getattr(asked, "socket", None) or default_path()) as client:
                code = _served(module, function)(screen, client, asked)
        sys.stdout.flush()
        return code
    except UnreachableError as error:
        return _unreachable(screen, error)
    except CallError as error:
        return _refused(screen, error, asked)


def _served(module: str, function: str) -> Callable[..., int]:
    """The function behind a verb, loaded once somebody answers."""
    found: Callable[..., int] = getattr(importlib.import_module(f"{__package__}.{module}"), function)
    return found


def _unreachable(screen: Screen, error: UnreachableError) -> int:
    if screen.as_json:
        screen.show_json({"error": "unreachable", "parameters": {"reason": str(error)}})
    complain(error, commands=("resumed serve", "resumectl --socket PATH status"))
    return control.EXIT_UNREACHABLE


def _refused(screen: Screen, error: CallError, asked: argparse.Namespace) -> int:
    if screen.as_json:
        screen.show_json({"error": error.name, "parameters": error.parameters})
    commands = error.parameters.get("commands") or _possible(error.name, asked)
    said: object = error
    if _is_no_job(error, asked):
        commands = ["resumectl inbox", f"resumectl {asked.verb} JOB {asked.ask}"]
        said = f"{error}, and nothing that is asked now has that id (what was decided goes by its job)"
    complain(said, more=error.parameters.get("problems", ()), commands=commands)
    if error.parameters.get("code") == control.MOVED:
        return control.EXIT_MOVED
    return EXITS.get(error.name, control.EXIT_REFUSED)


def _is_no_job(error: CallError, asked: argparse.Namespace) -> bool:
    """Whether a word alone, which may be a job or the id of something asked, means no job."""
    lost = error.name == control.ERROR_NO_SUCH and error.parameters.get("kind") == "job"
    return lost and hasattr(asked, "ask") and not asked.subject


def _possible(error: str, asked: argparse.Namespace) -> list[str]:
    """What may be typed after an error that does not say so itself."""
    if error == control.ERROR_NOT_PERMITTED:
        return ["resumectl status"]
    if asked.verb == "submit":
        return ["resumectl workflows"]
    if hasattr(asked, "ask"):
        return ["resumectl inbox", *([f"resumectl history {asked.ask}"] if asked.ask else [])]
    job = getattr(asked, "job", None)
    lost = error == control.ERROR_NO_SUCH and not getattr(asked, "item", None)
    return [_of("show", job)] if job and not lost else ["resumectl list -a"]


if __name__ == "__main__":
    sys.exit(main())
