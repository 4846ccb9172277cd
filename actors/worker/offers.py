"""Outputs as bytes first: any bytes become an offer that can be written, hashed and shown."""

import base64
import hashlib
import io
import os
import stat

from resumed.schemas.decisions import Offer

INLINE = 16 * 1024
_AT_ONCE = 1024 * 1024


class NotRegularError(OSError):
    """What lies under a name is no regular file."""


def lossy(raw: bytes) -> str:
    """The text people are shown for bytes that are not UTF-8 text: what cannot be decoded is U+FFFD."""
    return raw.decode("utf-8", "replace").replace("\x00", "\ufffd")


def of_bytes(name: str, raw: bytes, scratch: str) -> Offer:
    """The offer of these bytes: inline up to 16 KiB, else a file in `scratch`."""
    digest = hashlib.sha256(raw).hexdigest()
    if len(raw) > INLINE:
        os.makedirs(scratch, 0o700, exist_ok=True)
        path = os.path.join(scratch, f"offer-{digest[:16]}")
        with open(path, "wb") as file:
            file.write(raw)
        return Offer(name=name, sha256=digest, size=len(raw), path=path)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = "\x00"
    if "\x00" not in text:
        return Offer(name=name, sha256=digest, size=len(raw), text=text)
    spelled = base64.b64encode(raw).decode()
    return Offer(name=name, sha256=digest, size=len(raw), text=lossy(raw), base64=spelled)


def of_text(name: str, text: str, scratch: str) -> Offer:
    """The offer of an author's text; lone surrogates are kept as the bytes they would be."""
    return of_bytes(name, text.encode("utf-8", "surrogatepass"), scratch)


def open_regular(path: str) -> io.FileIO:
    """A regular file, open for reading; OSError when it is none or cannot be read.

    Looked at before it is opened for reading, so that a pipe or a device under that name delays nothing,
    and no device is touched: to open one may already rewind a tape or start a clock.
    """
    looked_at = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(looked_at).st_mode):
            raise NotRegularError("it is not a regular file")
        descriptor = os.open(f"/proc/self/fd/{looked_at}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    finally:
        os.close(looked_at)
    return io.FileIO(descriptor, "r")


def of_file(name: str, path: str) -> Offer:
    """The offer of a regular file; OSError when it cannot be read or is no regular file."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size <= INLINE:
            return of_bytes(name, file.read(INLINE + 1), os.path.dirname(path))
        digest, size = hashlib.sha256(), 0
        while piece := file.read(_AT_ONCE):
            digest.update(piece)
            size += len(piece)
    return Offer(name=name, sha256=digest.hexdigest(), size=size, path=path)
