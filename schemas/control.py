"""The control socket's names and limits, for daemon and client alike: plain constants, standard library only.

Varlink (https://varlink.org): each message is one JSON object ended by a NUL byte.
"""

INTERFACE = "org.resumed.Control"
VENDOR = "resumed"
PRODUCT = "resumed"
MAX_MESSAGE = 4 * 1024 * 1024
"""A job file is at most 1 MiB; escaped it stays under this."""

ERROR_REFUSED = f"{INTERFACE}.Refused"
"""Parameters: code, reason, commands (list of text)."""
MOVED = "moved"
"""The code of a refusal: the job has moved on from the record that the command was bound to."""
ERROR_NO_SUCH = f"{INTERFACE}.NoSuch"
"""Parameters: kind (job, item), name, reason."""
ERROR_NOT_PERMITTED = f"{INTERFACE}.NotPermitted"
"""Parameters: method, reason."""
ERROR_UNKNOWN_OUTCOME = f"{INTERFACE}.OutcomeUnknown"
"""Parameters: reason. The command may or may not be in force: ask again with the same request id."""
ERROR_FAULTY = f"{INTERFACE}.Faulty"
"""Parameters: reason, problems (list of text)."""

CHANGING = frozenset(
    {
        *("Submit", "Pause", "Resume", "Cancel", "Retry", "Skip", "Reopen", "Extend"),
        *("Approve", "Deny", "SendBack", "Revoke", "Answer", "Settle"),
        *("Restore", "Discard", "Prune", "Reload"),
    }
)
"""Methods that take a request id, so that they can be asked again when no answer came."""

EXIT_DONE = 0
EXIT_REFUSED = 1
EXIT_USAGE = 2
EXIT_UNREACHABLE = 3
EXIT_NO_SUCH = 4
EXIT_NOT_PERMITTED = 5
EXIT_MOVED = 6
EXIT_ENDED_WITH_FAILURES = 10
EXIT_NEEDS_PERSON = 11
EXIT_CANCELED = 12
EXIT_WAIT_OVER = 13
EXIT_INTERRUPTED = 130
EXIT_TEMPORARY = 75
EXIT_DO_NOT_RESTART = 78
