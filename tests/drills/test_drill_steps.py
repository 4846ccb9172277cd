"""Workflows of several steps through kills: each in its place, once, with what the steps before it made."""

from .kit import FINAL, Daemon, command, until

SAYS = 'echo "$1" >> "$2"; test "$3" = - || while ! test -e "$3"; do sleep 0.01; done; '


def steps(daemon: Daemon) -> str:
    """`open` for the job, `read` for each, `sum` for the job, `write` for each, `close` for the job."""
    seen, gate = daemon.root / "seen", daemon.root / "gate"

    def run(script: str, name: str, *more: str, gated: str = "-") -> str:
        words = ["sh", "-c", SAYS + script, "sh", name, str(seen), gated, *more]
        return "run = [" + ", ".join(repr(word) for word in words) + "]"

    read = 'cat "$4"; echo "$5" > "$6/half"; printf %s "$5"'
    write = 'cat "$4" "$5" "$6/half"'
    parts = [
        ("open", run("printf key", "open"), "each = false"),
        ("read", run(read, "read {item}", "{outputs.open}", "{item}", "{kept}"), "parallel = 2"),
        ("sum", run("printf total", "sum", gated=str(gate)), "each = false"),
        ("write", run(write, "write {item}", "{outputs.read}", "{outputs.sum}", "{kept}"), ""),
        ("close", run("true", "close"), "each = false"),
    ]
    return "version = 1\n" + "\n".join(
        f'[[step]]\nname = "{name}"\nrepeatable = true\n{run}\n{more}' for name, run, more in parts
    )


def test_steps_stand_in_their_place_through_kills(daemon: Daemon) -> None:
    """Killed while the job's own step runs between two fan-outs, a job goes on at that step: no item's step
    is run again, none before its turn, and kept folders and outputs are there; at the end none is left."""
    daemon.workflow("course", steps(daemon))
    daemon.start()
    daemon.submit("course", "course", ["a", "b"])
    seen = daemon.root / "seen"
    until(lambda: seen.exists() and "sum" in seen.read_text(), "the job's own step runs")
    kept = daemon.state / "jobs"
    assert 2 == len(list(kept.glob("*/course/kept/*/half")))
    daemon.kill()
    daemon.bury()
    daemon.start()
    until(lambda: 2 == seen.read_text().count("sum"), "the job's own step runs again")
    (daemon.root / "gate").touch()
    row = daemon.wait_status("course", *FINAL)

    assert "completed" == row["status"]
    said = seen.read_text().splitlines()
    assert ["open", "sum", "sum", "close"] == [line for line in said if " " not in line]
    assert ["read a", "read b"] == sorted(said[1:3])
    assert ["sum", "sum"] == said[3:5]
    assert ["write a", "write b", "close"] == said[5:]
    for item in ("a", "b"):
        output = daemon.resumectl("output", "course", item)
        assert f"key{item}total{item}\n".encode() == output.stdout
    assert [] == list((daemon.state / "archive").glob("*/course/kept"))
    assert 0 == daemon.fsck().returncode


def test_c49_items_that_wait_for_a_key_press_end_and_say_so(daemon: Daemon) -> None:
    """C49: an item that reads, opens the terminal, or asks and waits is shown as running while it waits, and
    ends within its limit with words that tell which it was; then the job says whom it needs."""
    script = (
        'case "$1" in read) read x ;; tty) cat </dev/tty ;; ask) echo "continue? [y]" >&2; sleep 600 ;; esac'
    )
    step = {"silence": "1500ms", "parallel": 3, "grace": "1s"}
    daemon.workflow("keys", command(["sh", "-c", script, "sh", "{item}"], **step))
    daemon.start()
    daemon.submit("keys", "keys", ["read", "tty", "ask"])
    until(
        lambda: {"failed"} == {daemon.items("keys")[name]["state"] for name in ("read", "tty")}, "two ended"
    )
    assert ("in_progress", "running") == (daemon.items("keys")["ask"]["state"], daemon.row("keys")["status"])
    row = daemon.wait_status("keys", "held")

    said = {name: (item["code"], item["reason"]) for name, item in daemon.items("keys").items()}
    assert ("exit-1", "exit 1") == said["read"]
    assert said["tty"][1].endswith("cannot open /dev/tty: No such device or address")
    assert ("silence", "run printed nothing for 1.5 s and was stopped; last: continue? [y]") == said["ask"]
    assert "retry or skip 3 items" in row["needs"]
    assert not daemon.processes_of("keys")
