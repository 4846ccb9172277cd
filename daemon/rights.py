"""Who may have written a file or folder that the daemon goes by; reads no more than its rights."""

import os
import stat

ROOT = 0


def problem(found: os.stat_result) -> str:
    """Why what was found cannot be trusted, "" when only root or the daemon's own user may write it."""
    if found.st_uid not in (ROOT, os.geteuid()):
        return f"it belongs to uid {found.st_uid}, expected root or our own"
    if found.st_mode & 0o022:
        return f"others may write it (mode {stat.S_IMODE(found.st_mode):04o}): chmod go-w"
    return ""
