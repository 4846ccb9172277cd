"""Reading again what can be read again while the daemon runs; the jobs at work keep what they were given.

Workflow files are looked at every few seconds and at each request; the configuration only at a request.
What it says of places and of the loop is fixed at the start, so a change of those waits for a restart.
"""

import logging
from collections.abc import Callable

import anyio
from anyio import to_thread
from attrs import evolve, fields

from resumed.schemas.errors import ResumedError

from .config import Config
from .desk import Reloaded
from .notify import Notifier
from .shelf import WorkflowShelf

EVERY = 5.0
LIVE = frozenset({"approvals", "grants", "stop_timeout", "workers"})
"""The keys of the configuration that take effect at once."""

log = logging.getLogger(__name__)


class Reloading:
    """What was read last: `config` is in force, `again` reads the configuration anew."""

    def __init__(
        self,
        config: Config,
        shelf: WorkflowShelf,
        again: Callable[[], Config],
        notifier: Notifier,
        changed: Callable[[Config], None],
    ) -> None:
        self.config = config
        self._shelf = shelf
        self._again = again
        self._notifier = notifier
        self._changed = changed
        self._one = anyio.Lock()
        self._bell = anyio.Event()

    def ring(self) -> None:
        """Asks for everything to be read again soon."""
        self._bell.set()

    async def run(self) -> None:
        """Looks at the workflow files from time to time, and at everything when rung."""
        while True:
            with anyio.move_on_after(EVERY):
                await self._bell.wait()
            if self._bell.is_set():
                self._bell = anyio.Event()
                await self.now()
            else:
                async with self._one:
                    await self._workflows()

    async def now(self) -> Reloaded:
        """Reads the configuration and the workflows; a faulty configuration changes nothing."""
        async with self._one:
            self._notifier.reloading()
            try:
                said, problems = await self._configuration()
                said += await self._workflows()
            finally:
                # Also after a failure: the old configuration is in force, and the daemon serves.
                self._notifier.ready()
        for problem in problems:
            log.warning("%s", problem)
        return Reloaded(said=tuple(said), problems=(*problems, *self._shelf.problems))

    async def _configuration(self) -> tuple[list[str], list[str]]:
        """What took effect, and what could not."""
        try:
            found = await to_thread.run_sync(self._again)
        except ResumedError as error:
            return [], [str(error)]
        before = self.config
        differs = [each.name for each in fields(Config) if _differ(found, before, each.name)]
        live = [name for name in differs if name in LIVE]
        said = [f"{name} now: {_spell(found, name)}" for name in live]
        problems = [
            f"{name} stays {_spell(before, name)} until the daemon is restarted"
            for name in differs
            if name not in LIVE
        ]
        self.config = evolve(self.config, **{name: getattr(found, name) for name in live})
        self._changed(self.config)
        for sentence in said:
            log.info("The configuration was read again: %s.", sentence)
        return said, problems

    async def _workflows(self) -> list[str]:
        """What changed among the workflow files."""
        if not await to_thread.run_sync(self._shelf.reload):
            return []
        said = f"the workflows were read again: {', '.join(self._shelf.names()) or 'none'}"
        log.info("%s%s.", said[0].upper(), said[1:])
        return [said]


def _spell(config: Config, name: str) -> str:
    """A value for people; of grants their number, since each is a table of its own."""
    value = getattr(config, name)
    return str(len(value)) if isinstance(value, tuple) else str(value)


def _differ(one: Config, other: Config, name: str) -> bool:
    return bool(getattr(one, name) != getattr(other, name))
