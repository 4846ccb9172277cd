"""`resumed`: the daemon's command line; what each refusal to start means as an exit code."""

import os
import resource
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from resumed.schemas import control
from resumed.schemas.errors import BusyError, ResumedError
from resumed.schemas.release import VERSION

MOST_DESCRIPTORS = 65_536
"""Each open job has a log at hand and each worker a socket; the usual soft limit is 1,024."""


def main(argv: list[str] | None = None) -> int:
    """Runs one command; 0 done, 75 another daemon holds the store, 78 do not restart."""
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

    @top.command()
    @click.option("--config", metavar="FILE", help="the configuration file")
    @click.option("--state", metavar="DIR", help="where all state lies")
    @click.option("--socket", metavar="PATH", help="where resumectl finds the daemon")
    @click.option("--workflows", metavar="DIR", help="the folder of workflow files")
    @click.option("--incoming", metavar="DIR", help="the watched folder (default: STATE/incoming)")
    @click.option("--backend", type=click.Choice(["asyncio", "trio"]), help="the event loop")
    def serve(config: str | None, **flags: str | None) -> None:
        """Serve until SIGTERM."""
        _serve(config, flags)

    @top.command()
    @click.argument("folder", metavar="DIR")
    @click.option("--json", "as_json", is_flag=True, help="print what was found as JSON")
    def fsck(folder: str, as_json: bool) -> None:
        """Read a store whole and say what is wrong with it; changes nothing."""
        from . import check

        raise _LeaveError(check.run(Path(folder), as_json=as_json))

    return top


def _serve(config_file: str | None, flags: Mapping[str, str | None]) -> None:
    from . import config, logs

    logs.begin(os.environ)
    try:
        chosen = config.load(Path(config_file) if config_file else None, flags, os.environ, os.geteuid())
        from . import serve  # only now: a bad configuration needs no loop to be refused

        _raise_limit()
        serve.run(chosen, VERSION)
    except BusyError as error:
        raise _LeaveError(control.EXIT_TEMPORARY, logs.escape(str(error))) from None
    except ResumedError as error:
        raise _LeaveError(control.EXIT_DO_NOT_RESTART, logs.escape(str(error))) from None


def _raise_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


if __name__ == "__main__":
    sys.exit(main())
