"""`resumed` as a client of the daemon that runs: what a service unit asks of it, answered when it is done."""

import sys

from resumed.schemas import control

from .client import CallError, Client, UnreachableError
from .logs import escape


def reload(path: str | None) -> int:
    """Lets the daemon read everything again; 0, or 1 when something of it could not take effect."""
    try:
        with Client(path) as client:
            answer = client.call("Reload")
    except UnreachableError as error:
        print(f"resumed: {escape(str(error))}", file=sys.stderr)
        return control.EXIT_UNREACHABLE
    except CallError as error:
        print(f"resumed: cannot reload: {escape(str(error))}", file=sys.stderr)
        refused = error.name != control.ERROR_NOT_PERMITTED
        return control.EXIT_REFUSED if refused else control.EXIT_NOT_PERMITTED
    for said in answer["said"] or ["nothing had changed"]:
        print(escape(said))
    for problem in answer["problems"]:
        print(f"! {escape(problem)}", file=sys.stderr)
    return control.EXIT_REFUSED if answer["problems"] else control.EXIT_DONE
