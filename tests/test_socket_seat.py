"""The socket's place: held by its lock, replaced only under it, unlinked only when it is ours."""

import os
import shutil
import socket
import stat
import threading
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from resumed.daemon.socket import Seat
from resumed.schemas.errors import BusyError, StoreError


def connects(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as peer:
        try:
            peer.connect(str(path))
        except OSError:
            return False
        return True


def test_seat_is_private_from_its_first_moment(tmp_path: Path) -> None:
    """The socket and its lock are its owner's alone, in a folder made for the owner alone."""
    path = tmp_path / "run" / "control"
    seat = Seat(path)
    modes = [stat.S_IMODE(os.stat(each).st_mode) for each in (path, f"{path}.lock", path.parent)]
    seat.leave()

    assert [0o600, 0o600, 0o700] == modes
    assert ["control.lock"] == os.listdir(path.parent)


def test_mode_is_not_cut_by_the_umask(tmp_path: Path) -> None:
    """A socket for a group is open to it whatever the umask says."""
    before = os.umask(0o077)
    try:
        seat = Seat(tmp_path / "control", mode=0o660, group=os.getegid())
    finally:
        os.umask(before)
    mode = stat.S_IMODE(os.stat(tmp_path / "control").st_mode)
    seat.leave()

    assert 0o660 == mode


def test_second_seat_is_refused_and_disturbs_nothing(tmp_path: Path) -> None:
    """While one daemon holds the seat another is told who does, and the socket goes on."""
    seat = Seat(tmp_path / "control")
    with pytest.raises(BusyError, match=f"process {os.getpid()}"):
        Seat(tmp_path / "control")
    works = connects(tmp_path / "control")
    seat.leave()

    assert works


def test_stale_socket_is_replaced(tmp_path: Path) -> None:
    """What a killed daemon left does not keep the next one out."""
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(tmp_path / "control"))
    stale.close()
    (tmp_path / ".control.new").touch()
    seat = Seat(tmp_path / "control")
    works = connects(tmp_path / "control")
    seat.leave()

    assert works


def test_live_socket_without_our_lock_is_left_alone(tmp_path: Path) -> None:
    """A program that listens there and knows nothing of our lock is not pushed out."""
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(tmp_path / "control"))
        other.listen()
        with pytest.raises(BusyError):
            Seat(tmp_path / "control")

        assert connects(tmp_path / "control")


NO_SOCKETS = {
    "a file": lambda path: path.write_text("precious"),
    "a folder": lambda path: path.mkdir(),
    "a link to a socket elsewhere": lambda path: path.symlink_to("elsewhere"),
}


@pytest.mark.parametrize("case", NO_SOCKETS)
def test_what_is_no_socket_is_never_replaced(case: str, tmp_path: Path) -> None:
    """Somebody's file under the socket's name is refused and stays."""
    path = tmp_path / "control"
    NO_SOCKETS[case](path)
    before = os.lstat(path).st_ino
    with pytest.raises(StoreError, match="no socket"):
        Seat(path)

    assert before == os.lstat(path).st_ino


def test_lock_that_is_a_link_is_refused(tmp_path: Path) -> None:
    """A link under the lock's name is not followed: nothing behind it is opened or cut."""
    (tmp_path / "precious").write_text("kept")
    (tmp_path / "control.lock").symlink_to("precious")
    with pytest.raises(StoreError):
        Seat(tmp_path / "control")

    assert "kept" == (tmp_path / "precious").read_text()


def test_place_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """A path that cannot hold a socket is refused with the path in the sentence."""
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"cannot listen at .*file/control"):
        Seat(tmp_path / "file" / "control")


def test_long_path_works(tmp_path: Path) -> None:
    """The kernel's 107 bytes for a socket's path are no limit of ours."""
    path = tmp_path / ("x" * 120) / "control"
    seat = Seat(path)
    seat.leave()

    assert not path.exists()


@pytest.mark.parametrize("how", ["removed", "replaced by a file", "replaced by a socket"])
@pytest.mark.anyio
async def test_seat_is_taken_anew_when_its_socket_is_lost(how: str, tmp_path: Path) -> None:
    """A socket that was removed is bound anew; a stranger's file in its place is named and stays."""
    path = tmp_path / "control"
    seat = Seat(path)
    path.unlink()
    if how == "replaced by a file":
        path.touch()
        with pytest.raises(StoreError):
            seat.look()
        path.unlink()
    if how == "replaced by a socket":
        stale = socket.socket(socket.AF_UNIX)
        stale.bind(str(path))
        stale.close()
    looked = [seat.look(), seat.look()]
    works = connects(path)
    seat.leave()

    assert [True, False] == looked
    assert works
    assert not path.exists()


@pytest.mark.anyio
async def test_seat_is_taken_anew_when_its_folder_is_lost(tmp_path: Path) -> None:
    """A folder that was swept whole is made again, with a lock and a socket; nobody gets in between."""
    path = tmp_path / "run" / "control"
    seat = Seat(path)
    shutil.rmtree(path.parent)
    looked = [seat.look(), seat.look()]
    with pytest.raises(BusyError):
        Seat(path)
    works = connects(path)
    seat.leave()

    assert [True, False] == looked
    assert works
    assert not path.exists()


@pytest.mark.anyio
async def test_folder_that_another_took_is_the_others(tmp_path: Path) -> None:
    """Where another daemon has taken the folder that was made again, the seat is lost, and said so."""
    path = tmp_path / "run" / "control"
    seat = Seat(path)
    path.parent.rename(tmp_path / "swept")
    other = Seat(path)
    for _ in range(2):
        with pytest.raises(BusyError):
            seat.look()
    descriptors = len(os.listdir("/proc/self/fd"))
    with pytest.raises(BusyError):
        seat.look()
    assert descriptors == len(os.listdir("/proc/self/fd"))
    seat.leave()
    works = connects(path)
    other.leave()

    assert works


@pytest.mark.anyio
async def test_accept_goes_on_at_the_new_place(tmp_path: Path) -> None:
    """Who waits for a connection while the seat is taken anew gets those that come to the new one."""
    path = tmp_path / "run" / "control"
    seat = Seat(path)
    accepted = []

    async def accept() -> None:
        accepted.append(await seat.accept())

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(accept)
            await anyio.wait_all_tasks_blocked()
            shutil.rmtree(path.parent)
            assert seat.look()
            await anyio.wait_all_tasks_blocked()
            with socket.socket(socket.AF_UNIX) as peer:
                peer.connect(str(path))
                while not accepted:
                    await anyio.lowlevel.checkpoint()
    accepted[0].close()
    seat.leave()


def test_name_that_fits_no_socket_is_refused(tmp_path: Path) -> None:
    """A name that the kernel cannot bind is refused with the path, and nothing listens (C35 d)."""
    for length in (100, 300):
        path = tmp_path / ("x" * length)
        with pytest.raises(StoreError, match=r"cannot listen at .*xxx: "):
            Seat(path)

        assert not os.path.lexists(path) if length < 256 else True


def test_leaving_spares_what_is_not_ours(tmp_path: Path) -> None:
    """A socket that took our place meanwhile is not unlinked at our end."""
    path = tmp_path / "control"
    seat = Seat(path)
    path.unlink()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        seat.leave()

        assert path.exists()


def test_lost_lock_is_taken_again_or_the_seat_is_lost(tmp_path: Path) -> None:
    """A lock file that was removed is taken anew; one that another daemon made meanwhile is the other's."""
    seat = Seat(tmp_path / "control")
    (tmp_path / "control.lock").unlink()
    looked = seat.look()
    with pytest.raises(BusyError):
        Seat(tmp_path / "control")
    (tmp_path / "control.lock").unlink()
    (tmp_path / "control").unlink()
    other = Seat(tmp_path / "control")
    with pytest.raises(BusyError):
        seat.look()
    seat.leave()
    works = connects(tmp_path / "control")
    other.leave()

    assert not looked
    assert works


def test_race_has_one_winner(tmp_path: Path) -> None:
    """Of many that start at once one gets the seat, and its socket is the one that stands."""
    assert {(1, 5, True)} == {race(tmp_path / "control", 6) for _ in range(20)}


def race(path: Path, count: int) -> tuple[int, int, bool]:
    """How many of some that start at once got the seat, how many did not, and whether the socket works."""
    barrier = threading.Barrier(count)
    seats: list[Seat] = []
    busy: list[BusyError] = []

    def start() -> None:
        barrier.wait()
        try:
            seats.append(Seat(path))
        except BusyError as error:
            busy.append(error)

    threads = [threading.Thread(target=start) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    works = connects(path)
    for seat in seats:
        seat.leave()
    return len(seats), len(busy), works
