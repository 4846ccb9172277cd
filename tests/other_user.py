"""A second user: a call made in a child process of another uid and groups; only root can make one."""

import json
import os
import warnings
from collections.abc import Callable
from typing import Any

STRANGER = 54_321
FRIEND = 54_322
CLUB = 54_400


def as_user(uid: int, groups: tuple[int, ...], call: Callable[[], Any]) -> Any:
    """What `call` returns (plain JSON) in a process of that user; AssertionError with what it raised.

    A fork, since the interpreter may lie where no other user can reach it; so `call` imports nothing new.
    """
    mine, theirs = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of the suite; the child uses none
        child = os.fork()
    if child == 0:
        try:
            os.setgroups(groups)
            os.setgid(groups[0] if groups else uid)
            os.setuid(uid)
            said = {"returned": call()}
        except BaseException as error:  # noqa: BLE001 - the parent raises it
            said = {"raised": repr(error)}
        os.write(theirs, json.dumps(said).encode())
        os._exit(0)
    os.close(theirs)
    with os.fdopen(mine, "rb") as heard:
        told = json.loads(heard.read())
    os.waitpid(child, 0)
    assert "raised" not in told, told
    return told["returned"]
