"""Whether a requester may read a path: the kernel is asked as that user, or its rules are followed by hand.

A daemon of root's reads for everybody. What a requester names is therefore read as the requester: in a thread
of its own, whose file system identity is the requester's from its first line to its end. A daemon of another
user cannot do so; it follows the modes and the access lists of all folders on the way.
"""

import ctypes
import errno
import os
import platform
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from resumed.schemas.job import Reader
from resumed.schemas.workflow import Input, InputType

T = TypeVar("T")

# The raw call: glibc's own setgroups changes every thread of the process.
_SETGROUPS = {"x86_64": 116, "aarch64": 159, "riscv64": 159, "loongarch64": 159, "ppc64le": 81, "s390x": 206}
_READ, _ENTER = 4, 1
_ACL = "system.posix_acl_access"
_OWNER, _USER, _GROUP, _NAMED, _MASK, _OTHER = 1, 2, 4, 8, 16, 32  # acl_ea.h of the kernel


def is_other(reader: Reader | None) -> bool:
    """Whether somebody is meant who may read less than we may."""
    return reader is not None and reader.uid not in (0, os.geteuid())


def run_as(reader: Reader | None, function: Callable[..., T], *args: Any) -> T:
    """The function's result, its file calls made as the reader where root may do so; blocks until it ends.

    PermissionError when the kernel does not let us be that user.
    """
    if reader is None or not is_other(reader) or os.geteuid() != 0:
        return function(*args)
    found: list[T] = []
    failed: list[BaseException] = []
    who = reader

    def run() -> None:
        try:
            _become(who)
            found.append(function(*args))
        except BaseException as error:  # noqa: BLE001 - it is raised again where it is waited for
            failed.append(error)

    # Never one of a pool: what it has become ends with it.
    thread = threading.Thread(target=run, name="reader", daemon=True)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return found[0]


def _become(reader: Reader) -> None:
    """This thread's file system identity is the reader's from here on; root's rights over files are gone."""
    number = _SETGROUPS.get(platform.machine())
    if number is None:
        raise PermissionError(errno.EPERM, f"cannot read as another user on {platform.machine()}")
    libc = ctypes.CDLL(None, use_errno=True)
    groups = (ctypes.c_uint32 * len(reader.groups))(*reader.groups)
    if libc.syscall(ctypes.c_long(number), ctypes.c_size_t(len(reader.groups)), groups):
        raise PermissionError(ctypes.get_errno(), f"cannot read as uid {reader.uid}")
    for change, wanted in ((libc.setfsgid, reader.gid), (libc.setfsuid, reader.uid)):
        # They answer with what was before, also when they did nothing.
        change(ctypes.c_uint32(wanted))
        if ctypes.c_uint32(change(ctypes.c_uint32(0xFFFFFFFF))).value != wanted:
            raise PermissionError(errno.EPERM, f"cannot read as uid {reader.uid}")


def check(path: str, reader: Reader | None) -> None:
    """PermissionError where we cannot be the reader, and by all rules the reader may not read the path."""
    if reader is not None and is_other(reader) and os.geteuid() != 0 and not _may_read(path, reader):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def _may_read(path: str, reader: Reader) -> bool:
    real = os.path.realpath(path)
    parts = real.split("/")[1:]
    folders = ["/", *("/" + "/".join(parts[:count]) for count in range(1, len(parts)))]
    return all(_may(folder, reader, _ENTER) for folder in folders) and _may(real, reader, _READ)


def _may(path: str, reader: Reader, right: int) -> bool:
    status = os.stat(path)
    groups = {reader.gid, *reader.groups}
    if status.st_mode & 0o070:  # with a mask of nothing the kernel looks at no list either
        try:
            return _by_list(os.getxattr(path, _ACL), status, reader.uid, groups, right)
        except OSError:
            pass  # none, or a file system without any
    mode = status.st_mode >> (6 if status.st_uid == reader.uid else 3 if status.st_gid in groups else 0)
    return bool(mode & right)


def _by_list(raw: bytes, status: os.stat_result, uid: int, groups: set[int], right: int) -> bool:
    """What an access list says (acl(5)): the owner, then the user, then any group, then the others."""
    rights: dict[tuple[int, int], int] = {}
    for at in range(4, len(raw) - 7, 8):
        tag, perm = (int.from_bytes(raw[place : place + 2], "little") for place in (at, at + 2))
        who = int.from_bytes(raw[at + 4 : at + 8], "little")
        rights[tag, who if tag in (_USER, _NAMED) else 0] = perm
    mask = rights.get((_MASK, 0), 7)
    if status.st_uid == uid:
        return bool(rights.get((_OWNER, 0), 0) & right)
    if (_USER, uid) in rights:
        return bool(rights[_USER, uid] & mask & right)
    found = [perm for (tag, who), perm in rights.items() if tag == _NAMED and who in groups]
    if status.st_gid in groups:
        found.append(rights.get((_GROUP, 0), 0))
    if found:
        return any(perm & mask & right for perm in found)
    return bool(rights.get((_OTHER, 0), 0) & right)


def problems(
    declared: tuple[Input, ...], given: Mapping[str, Any], reader: Reader | None
) -> Iterator[tuple[str, str]]:
    """What is wrong with the paths among these inputs, by name: one leads out, or is not to be read.

    Where nothing lies under a path there is nothing that could be read.
    """
    for each in declared:
        if each.type is InputType.PATH and each.name in given:
            path = given[each.name]
            try:
                check(path, reader)
                said = run_as(reader, _problem, each, path)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                who = f"uid {reader.uid}" if reader is not None and is_other(reader) else "the daemon"
                said = f"{who} cannot read it: {error.strerror or error}"
            if said:
                yield each.name, said


def _problem(declared: Input, path: str) -> str:
    real = os.path.realpath(path)
    roots = [os.path.realpath(root) for root in declared.roots]
    if roots and not any(real == root or real.startswith(root.rstrip("/") + "/") for root in roots):
        shown = "" if declared.private else f" to {real}"
        return f"it leads{shown}, outside of {' and '.join(dict.fromkeys(roots))}"
    _read(path)
    return ""


def _read(path: str) -> None:
    """Open it for reading if it is a file or a folder; no pipe is waited for, and no device touched."""
    looked_at = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        mode = os.fstat(looked_at).st_mode
        if stat.S_ISDIR(mode):
            os.stat(os.path.join(path, "."))  # to enter it, too
        if stat.S_ISDIR(mode) or stat.S_ISREG(mode):
            os.close(os.open(f"/proc/self/fd/{looked_at}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
        elif not os.access(f"/proc/self/fd/{looked_at}", os.R_OK, effective_ids=True):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    finally:
        os.close(looked_at)
