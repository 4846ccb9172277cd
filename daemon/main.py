"""`resumed`: the daemon's command line; what each refusal to start means as an exit code."""

import errno
import faulthandler
import gc
import logging
import os
import resource
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from resumed.schemas import control
from resumed.schemas.errors import BusyError, ResumedError, StoreError
from resumed.schemas.release import VERSION

if TYPE_CHECKING:
    from .config import Config

PASSING = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})
"""What a disk refuses a start with today and may not tomorrow."""
MOST_DESCRIPTORS = 65_536
"""Each open job has a log at hand and each worker a socket; the usual soft limit is 1,024."""


def main(argv: list[str] | None = None) -> int:
    """Runs one command; 0 done, 75 try again (another daemon holds the store), 78 do not restart."""
    import click

    try:
        _commands()(args=argv, prog_name="resumed", standalone_mode=False)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return control.EXIT_INTERRUPTED
    except _LeaveError as error:
        if error.said:
            print(f"resumed: {error.said}", file=sys.stderr)
        return error.code
    return control.EXIT_DONE


class _LeaveError(Exception):
    """Ends the command with a sentence and an exit code."""

    def __init__(self, code: int, said: str = "") -> None:
        super().__init__(said)
        self.code = code
        self.said = said


def _commands() -> Any:
    import click

    @click.group(context_settings={"help_option_names": ["-h", "--help"]})
    @click.version_option(VERSION, prog_name="resumed")
    def top() -> None:
        """A daemon for long jobs on one Linux host."""

    places = [
        click.option("--config", metavar="FILE", help="the configuration file"),
        click.option("--state", metavar="DIR", help="where all state lies"),
        click.option("--socket", metavar="PATH", help="where resumectl finds the daemon"),
        click.option("--workflows", metavar="DIR", help="the folder of workflow files"),
        click.option("--incoming", metavar="DIR", help="the watched folder (default: STATE/incoming)"),
        click.option("--backend", type=click.Choice(["asyncio", "trio"]), help="the event loop"),
    ]

    def placed(command: Any) -> Any:
        for option in reversed(places):
            command = option(command)
        return command

    @top.command()
    @placed
    @click.option("--take-over", is_flag=True, help="end a daemon that holds the store, hung or stopped")
    def serve(config: str | None, take_over: bool, **flags: str | None) -> None:
        """Serve until SIGTERM."""
        _serve(config, flags, take_over)

    @top.command("check-config")
    @placed
    @click.option(
        "--passed",
        is_flag=True,
        help="as a service manager starts it: the socket passed on, control groups delegated",
    )
    def check_config(config: str | None, passed: bool, **flags: str | None) -> None:
        """Look at all that `serve` would refuse, and at the workflow files; changes nothing."""
        _check_config(config, flags, passed)

    @top.command()
    @click.option("--socket", metavar="PATH", help="the daemon's socket (or RESUMED_SOCKET)")
    def reload(socket: str | None) -> None:
        """Let the daemon read its configuration and workflows again, and wait until it has."""
        from . import asking

        raise _LeaveError(asking.reload(socket))

    @top.command()
    @click.argument("folder", metavar="DIR")
    @click.option("--json", "as_json", is_flag=True, help="print what was found as JSON")
    @click.option("--repair", is_flag=True, help="move what is damaged out of the way; deletes nothing")
    def fsck(folder: str, as_json: bool, repair: bool) -> None:
        """Read a store whole and say what is wrong with it; changes nothing, but with --repair.

        Exit status: 0 clean, 1 damage, 3 not all could be read; with --repair also 75, a daemon holds it.
        """
        from . import check, logs

        try:
            run = check.run_repair if repair else check.run
            raise _LeaveError(run(Path(folder), as_json=as_json))
        except BusyError as error:
            raise _LeaveError(control.EXIT_TEMPORARY, logs.escape(str(error))) from None

    return top


def _serve(config_file: str | None, flags: Mapping[str, str | None], take_over: bool) -> None:
    # What is loaded now stays; the house has it looked through once, when it is ready.
    gc.disable()
    from . import logs, orders

    orders.hear_early()
    logs.begin(os.environ)
    # A watchdog ends us with SIGABRT: where each thread stood is then in the journal.
    faulthandler.enable()
    with _refusals():
        again = _reader(config_file, flags)
        chosen = again()
        from . import serve  # only now: a bad configuration needs no loop to be refused

        _raise_limit()
        serve.begin(chosen, again, VERSION, os.environ, take_over=take_over)


def _check_config(config_file: str | None, flags: Mapping[str, str | None], passed: bool) -> None:
    from . import logs

    logging.disable()  # what is found is printed, in one place
    with _refusals():
        chosen = _reader(config_file, flags)()
        from . import config, policy, premises, serve
        from .grants import Grants

        premises.look(chosen, passed=passed)
        shelf = serve.shelf_of(chosen, limits_hold=passed)
        shelf.reload()
        for problem in shelf.problems:
            print(f"! {logs.escape(problem)}")
        granted = Grants(os.geteuid(), chosen.grants)
        granted.look_up()
        for name in granted.unknown:
            print(f"! {logs.escape(name)} of a grant is not known to this host, and gets nothing by it")
        for said in policy.unknown(chosen.approvals):
            print(f"! {logs.escape(said)}: what it is wanted for waits")
        print(logs.escape(f"approvals: {config.bounds(chosen, os.environ, os.geteuid())}"))
        places = f"state {chosen.state}, socket {chosen.socket}, incoming {chosen.incoming}"
        print(logs.escape(f"{places}, workflows {', '.join(shelf.names()) or 'none'}: nothing is refused"))


def _reader(config_file: str | None, flags: Mapping[str, str | None]) -> Callable[[], "Config"]:
    """Reads the configuration, each time anew, as this start was asked to."""
    from . import config

    file, environ = Path(config_file).absolute() if config_file else None, dict(os.environ)
    return lambda: config.load(file, flags, environ, os.geteuid())


@contextmanager
def _refusals() -> Iterator[None]:
    """What a refusal to start means as an exit code: to try again later, or not to be tried again."""
    from . import logs
    from .orders import EarlyStop

    try:
        yield
    except EarlyStop:
        raise _LeaveError(control.EXIT_DONE, "asked to stop while starting") from None
    except ResumedError as error:
        later = isinstance(error, BusyError) or (isinstance(error, StoreError) and error.errno in PASSING)
        code = control.EXIT_TEMPORARY if later else control.EXIT_DO_NOT_RESTART
        raise _LeaveError(code, logs.escape(str(error))) from None


def _raise_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


if __name__ == "__main__":
    sys.exit(main())
