"""A daemon for drills, run as a process of its own: one worker, one try, told in JSON lines on stdout.

worker_daemon.py BACKEND WORKERS NAME CONTRACT ATTEMPT [DRILL]: settles what an earlier one left, starts the
worker and a try of step `only`, then does the drill (`wait`, `kill keeper`, `stop keeper`,
`stop keeper and worker`).
"""

import json
import os
import signal
import sys
from pathlib import Path

import anyio

from resumed.actors import containment, workers
from resumed.actors.containment import Containment
from resumed.actors.workers import WorkerProcess
from resumed.schemas import codec, frames
from resumed.schemas.job import Item
from resumed.schemas.workflow import Contract


def say(**told: object) -> None:
    """One line to the test."""
    print(json.dumps(told), flush=True)


async def main(folder: str, name: str, contract: str, attempt: str, drill: str) -> None:
    """Settle, start, drill."""
    workers_folder = Path(folder)
    contained = Containment()
    contained.become_subreaper()
    verdicts = await containment.settle(workers_folder, 10.0)
    say(
        settled={
            key: [verdict.proven, verdict.how, len(verdict.remains)] for key, verdict in verdicts.items()
        }
    )
    answered = anyio.Event()

    def on_frame(_: WorkerProcess, frame: frames.FromWorker) -> None:
        if isinstance(frame, frames.Returned | frames.Raised):
            say(frame=type(frame).__name__)
            answered.set()

    worker = WorkerProcess(
        name=name,
        contract=codec.decode(contract.encode(), Contract, "contract"),
        workers=workers_folder,
        contained=contained,
        on_frame=on_frame,
        on_faulty=lambda _, error: say(faulty=str(error)),
        on_gone=lambda _, how, proven: say(
            gone=how, proven=proven, remains=len(containment.remains_of(name))
        ),
    )
    async with anyio.create_task_group() as group:
        await worker.start(group)
        say(keeper=worker.pid)
        scratch = workers_folder.parent / f"scratch-{name}"
        scratch.mkdir()
        worker.send(
            frames.Run(
                job="j",
                epoch=1,
                item="i",
                number=1,
                step="only",
                occurrence=1,
                log=str(workers_folder.parent / "run.log"),
                scratch=str(scratch),
                attempt=int(attempt),
                row=Item(id="i", ordinal=0),
            )
        )
        # The test says when the program stands, by a line on stdin.
        await anyio.to_thread.run_sync(sys.stdin.readline)
        if drill == "kill keeper":
            os.kill(worker.pid, signal.SIGKILL)
        elif drill.startswith("stop keeper"):
            workers._STUCK = 0.2
            os.kill(worker.pid, signal.SIGSTOP)
            if drill == "stop keeper and worker":
                for pid in Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split():
                    os.kill(int(pid), signal.SIGSTOP)
            worker.kill()
        await worker.gone.wait()
    sys.stdin.readline()


if __name__ == "__main__":
    anyio.run(main, *sys.argv[2:7], backend=sys.argv[1])
