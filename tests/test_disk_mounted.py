"""A real file system that fills up under a real daemon: ext4 in a file, mounted for the test."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from daemon_kit import LOOPS, eventually
from service_kit import Service

SIZE = 24 * 1024 * 1024
QUICK = 'version = 1\n[[step]]\nname = "do"\nrun = ["true"]\nrepeatable = true\n'


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own; where root cannot mount one, the test fails and says why."""
    image, place = tmp_path / "image", tmp_path / "disk"
    place.mkdir(mode=0o700)
    with image.open("wb") as file:
        file.truncate(SIZE)
    run("mkfs.ext4", "-q", "-m", "0", "-N", "4096", str(image))
    run("mount", "-o", "loop", str(image), str(place))
    place.chmod(0o700)
    yield place
    run("umount", "--lazy", str(place))


def run(*command: str) -> None:
    # Tools of the system's own lie where not every PATH leads.
    env = os.environ | {"PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)
    assert 0 == ran.returncode, f"{' '.join(command)}: {ran.stderr}"


def fill(folder: Path) -> Path:
    """Take all that is free, down to the last block."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (1024 * 1024, 4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                os.fsync(file.fileno())
    return filler


@pytest.fixture(params=LOOPS)
def service(request: pytest.FixtureRequest, mounted: Path, tmp_path: Path) -> Iterator[Service]:
    """A daemon whose store lies on the small disk."""
    made = Service(tmp_path, request.param)
    made.state = mounted / "state"
    yield made
    made.kill()


@pytest.mark.root
def test_full_disk_is_outlived(service: Service, mounted: Path) -> None:
    """Fill the disk, cancel still works, free it, and all goes on with no restart and nothing lost."""
    (service.workflows / "quick.toml").write_text(QUICK)
    (service.workflows / "quick.toml").chmod(0o644)
    (service.root / "resumed.toml").write_text("workers = 1\n")
    (service.root / "resumed.toml").chmod(0o600)
    process = service.up()
    for name, workflow in (("runs", "slow"), ("stopped", "slow"), ("later", "quick")):
        path = service.file(name, workflow, {"a": ""})
        assert 0 == service.ask("submit", str(path)).returncode
        if name == "runs":
            eventually(lambda: at_work(service, "runs"))
    # The one worker is taken, so these two wait; whatever fills the disk does so before anybody needs room.
    service.ask("pause", "stopped")
    waiting = mounted / "dropped.json"
    waiting.write_text(json.dumps({"workflow": "quick", "id": "dropped", "items": ["a"]}))
    waiting.chmod(0o600)
    filler = fill(mounted)
    canceled = service.ask("cancel", "stopped", "--reason", "enough")
    refused = service.ask("submit", str(service.file("refused", "quick", {"a": ""})))
    service.manager.until("STATUS=the disk is full")
    os.rename(waiting, service.state / "incoming" / "dropped.json")
    status = service.ask("status").stdout
    stopped = service.ask("cancel", "runs", "--reason", "enough")
    size = (service.state / "reserve").exists()
    filler.unlink()
    began = time.monotonic()
    eventually(lambda: ended(service, "dropped"), within=30)
    took = time.monotonic() - began
    again = service.ask("submit", str(service.root / "refused.json"), "--wait")
    later = service.ask("watch", "later")
    rows = {job: service.row(job) for job in ("runs", "stopped", "later", "dropped", "refused")}
    assert 0 == service.end()
    fsck = subprocess.run(
        [*service.command()[:3], "fsck", str(service.state)], capture_output=True, text=True, timeout=60
    )

    assert (0, 1) == (canceled.returncode, refused.returncode), (canceled, refused)
    assert "the disk is full; hand it in again once the disk works" in refused.stderr
    assert "! the disk is full" in status
    assert (0, False) == (stopped.returncode, size), stopped
    assert process.poll() == 0
    assert took < 25
    assert (0, 0) == (again.returncode, later.returncode)
    assert {
        "runs": ("canceled", 0),
        "stopped": ("canceled", 0),
        "later": ("completed", 1),
        "dropped": ("completed", 1),
        "refused": ("completed", 1),
    } == {job: (row["status"], row["done"]) for job, row in rows.items()}
    assert 0 == fsck.returncode, fsck.stdout


def at_work(service: Service, job: str) -> None:
    assert 1 == service.row(job)["running"]


def ended(service: Service, job: str) -> None:
    assert "completed" == service.row(job)["status"]
