"""The story of a museum label: drafted, approved by a curator, published once, whatever is lost on the way.

A real daemon, a real content system (cms.py), and decisions by `resumectl` as a curator would type them. The
last line of the output is one JSON object, counted at the content system, which is not ours to count.

A decision needs a person other than whoever handed the job in. Where the demo runs as root, two users that
every host has play the curator and a stranger. An ordinary user has only itself: it may approve its own jobs
on its own daemon, and a page that root alone may approve shows what becomes of the wrong approver.
"""

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from stage import Stage, tell, wait_for
from target import Target

from resumed.daemon import cli

HERE = Path(__file__).resolve().parent
WITHIN = 55.0
ROOT, OVERFLOW = 0, 65534
TOKEN = "a-key-that-publishes"


class Person(NamedTuple):
    """Somebody of this host."""

    name: str
    uid: int
    gid: int


class Told(NamedTuple):
    """How one `resumectl` ended, and what it said."""

    code: int
    said: str

    @property
    def first(self) -> str:
        """Its first line, shortened."""
        line = self.said.strip().partition("\n")[0]
        return line if len(line) < 200 else f"{line[:100]} ... {line[-90:]}"

    @property
    def plain(self) -> Any:
        """What it said, with --json."""
        return json.loads(self.said)


class Museum(Stage):
    """The daemon, the content system, and the people of one demo."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.records = root / "records"
        self.records.mkdir()
        self.target = Target(root / "cms", "--token-file", str(root / "credentials" / "cms-token"))
        self.target.data.mkdir()
        self.credentials = root / "credentials"
        self.credentials.mkdir(mode=0o700)
        (self.credentials / "cms-token").write_text(TOKEN)
        (self.credentials / "cms-token").chmod(0o600)
        self.curator, self.stranger = people()
        self.kills = 0

    def prepare(self) -> None:
        """The workflows, and who may approve; the content system is up already, at an address of its own."""
        approver = f"user:{self.curator.name}"
        places = {
            '"python3"': json.dumps(sys.executable),
            "/etc/resumed/workflows.d": str(HERE / "workflows.d"),
            "http://127.0.0.1:8080": self.target.address,
            '"group:curators"': json.dumps(approver),
        }
        self.workflow(HERE / "workflows.d" / "label.toml", places)
        if self.stranger is self.curator:
            self.workflow(
                HERE / "workflows.d" / "label.toml", places | {'"group:curators"': '"user:root"'}, "guarded"
            )
        else:
            names = json.dumps([self.curator.name, self.stranger.name])
            self.config.write_text(f'[[grant]]\nrole = "approver"\nusers = {names}\n')

    def record(self, name: str, note: str) -> Path:
        """The museum's record of an object, as it is from now on."""
        record = json.loads((HERE / "objects" / "harbour.json").read_text())
        path = self.records / f"{name}.json"
        beside = self.records / f".{name}.json"
        beside.write_text(json.dumps(record | {"note": note}))
        beside.rename(path)
        return path

    def hand_in(self, job: str, page: str, workflow: str = "label") -> None:
        """One job for one page."""
        source = str(self.records / f"{page}.json")
        self.drop({"workflow": workflow, "id": job, "items": [{"id": page, "source": source}]})

    def resumectl(self, *words: str, by: Person | None = None) -> Told:
        """One command, as one of the people types it."""
        command = [f"--socket={self.socket}", *words]
        if by is not None and by.uid != os.geteuid():
            return as_person(by, command)
        ran = subprocess.run(
            [sys.executable, "-m", "resumed.daemon.cli", *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        return Told(ran.returncode, ran.stdout + ran.stderr)

    def asked(self, job: str, other_than: str = "") -> dict[str, Any] | None:
        """What the inbox asks about a job; with `other_than` only about another call than that one."""
        told = self.resumectl("inbox", "--json")
        rows = told.plain["asks"] if told.code == 0 else []
        found = [row for row in rows if row["job"] == job and row["kind"] == "approve"]
        return next((row for row in found if row["fingerprint"] != other_than), None)

    def status(self, job: str) -> str:
        """The job's status; '' while nobody answers."""
        row = self.row(job)
        return row["status"] if row is not None else ""


def people() -> tuple[Person, Person]:
    """Who plays the curator, and who somebody that may not approve."""
    if os.geteuid() != ROOT:
        me = pwd.getpwuid(os.geteuid())
        person = Person(me.pw_name, me.pw_uid, me.pw_gid)
        return person, person
    others = [each for each in pwd.getpwall() if each.pw_uid not in (ROOT, OVERFLOW)]
    curator, stranger = (Person(each.pw_name, each.pw_uid, each.pw_gid) for each in others[:2])
    return curator, stranger


def as_person(person: Person, words: list[str]) -> Told:
    """`resumectl` in a process of that user: forked, since our Python may lie where nobody else may read."""
    mine, theirs = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 70
        try:
            # Anew: our own may be a file, and remember its place in it.
            sys.stdout = sys.stderr = open(theirs, "w", closefd=False)  # noqa: SIM115 - until the end
            os.setgroups([person.gid])
            os.setgid(person.gid)
            os.setuid(person.uid)
            code = cli.main(words)
        except BaseException:  # noqa: BLE001 - the parent is told
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    os.close(theirs)
    with os.fdopen(mine, "rb") as heard:
        said = heard.read().decode()
    return Told(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said)


def play(stage: Museum, counted: dict[str, Any]) -> None:
    """The story itself; what it counts goes into `counted` as it happens."""
    deadline = time.monotonic() + WITHIN
    stage.target.start()
    stage.prepare()
    tell(
        f"the content system serves at {stage.target.address}, and has {stage.target.counts()['pages']} pages"
    )
    stage.start()
    tell(f"a daemon was started; {stage.curator.name} is its curator")
    wait_for(stage.is_ready, deadline)
    spent = published_once(stage, deadline)
    spent_approval(stage, spent)
    changed_draft(stage, counted, deadline)
    wrong_approver(stage, counted, deadline)


def published_once(stage: Museum, deadline: float) -> str:
    """Drafted, approved, sent; the reply is lost and the daemon killed; looked up, and never sent again.

    What it returns is the fingerprint that was approved.
    """
    stage.record("harbour", "The lighter in the foreground is the Johanna.")
    stage.hand_in("label-7", "harbour")
    asked = wait_for(partial(stage.asked, "label-7"), deadline)
    tell(f"label-7 drafted its text, and asks: {asked['what']}")
    stage.target.switch("lose_reply")
    tell("the content system will lose its reply to the next write")
    told = stage.resumectl("approve", "label-7", f"--fingerprint={asked['fingerprint']}", by=stage.curator)
    tell(f"{stage.curator.name} approved what was shown: {told.first}")
    assert told.code == 0, told.said
    stage.target.heard(write=1)
    stage.kill()
    stage.kills += 1
    tell("the write arrived, its reply was lost, and the daemon was killed with SIGKILL")
    stage.start()
    tell("a daemon was started again, and nobody said anything to it")
    wait_for(lambda: stage.status("label-7") == "completed", deadline)
    look_ups = stage.target.counts()["look_ups"]
    tell(f"it asked the content system by the key ({look_ups} look-ups), and label-7 is completed")
    return str(asked["fingerprint"])


def spent_approval(stage: Museum, fingerprint: str) -> None:
    """The yes that was spent is told of, and does nothing more."""
    told = stage.resumectl("approve", "label-7", "harbour", f"--fingerprint={fingerprint}", by=stage.curator)
    tell(f"the same approval once more: {told.first}")


def changed_draft(stage: Museum, counted: dict[str, Any], deadline: float) -> None:
    """Revision 1 is approved after the record has changed: nothing leaves, and revision 2 is asked about."""
    before = stage.target.pages()
    stage.record("pier", "The pier was new.")
    stage.hand_in("label-8", "pier")
    asked = wait_for(partial(stage.asked, "label-8"), deadline)
    stage.record("pier", "The pier was twelve years old.")
    tell("label-8 asks about its draft; meanwhile the museum's record of the pier was corrected")
    told = stage.resumectl("approve", "label-8", f"--fingerprint={asked['fingerprint']}", by=stage.curator)
    tell(f"{stage.curator.name} approves revision 1 all the same: {told.first}")
    anew = wait_for(partial(stage.asked, "label-8", asked["fingerprint"]), deadline)
    counted["stale_approval_published"] = len(set(stage.target.pages()) - set(before))
    tell(f"nothing was published; it asks anew ({anew['again'] or 'another draft'}): {anew['what']}")
    told = stage.resumectl("approve", "label-8", f"--fingerprint={asked['fingerprint']}", by=stage.curator)
    counted["stale_approval_published"] = len(set(stage.target.pages()) - set(before))
    tell(f"the old fingerprint once more: {told.first}")


def wrong_approver(stage: Museum, counted: dict[str, Any], deadline: float) -> None:
    """Somebody whom the rule does not name approves: refused, and nothing leaves."""
    before = stage.target.pages()
    workflow = "label" if stage.stranger is not stage.curator else "guarded"
    stage.record("mole", "The mole in winter.")
    stage.hand_in("label-9", "mole", workflow)
    asked = wait_for(partial(stage.asked, "label-9"), deadline)
    told = stage.resumectl("approve", "label-9", f"--fingerprint={asked['fingerprint']}", by=stage.stranger)
    tell(f"{stage.stranger.name} tries to approve label-9: {told.first}")
    counted["wrong_approver_published"] = len(set(stage.target.pages()) - set(before)) + (told.code == 0)


def count(stage: Museum, counted: dict[str, Any]) -> dict[str, Any]:
    """The numbers, as the content system has them; -1 where the story did not get so far."""
    truth = stage.target.counts()
    return {
        "demo": "museum",
        "pages": truth["pages"],
        "writes_received": truth["writes_received"],
        "kills": stage.kills,
        "replies_lost": stage.target.faults().count("lose_reply"),
        "stale_approval_published": counted.get("stale_approval_published", -1),
        "wrong_approver_published": counted.get("wrong_approver_published", -1),
    }


def main() -> int:
    """0 when each page was published as it was approved and nothing else was, 1 when the counts disagree."""
    root = Path(tempfile.mkdtemp(prefix="resumed-demo-"))
    root.chmod(0o755)
    stage = Museum(root)
    os.environ["CREDENTIALS_DIRECTORY"] = str(stage.credentials)
    counted: dict[str, Any] = {}
    began = time.monotonic()
    problem = ""
    try:
        play(stage, counted)
    except TimeoutError:
        problem = "it took too long"
    finally:
        if stage.process is not None:
            tell(f"the daemon was asked to stop and ended with {stage.stop()}")
        line = count(stage, counted)
        stage.target.kill()
    tell(f"the content system was asked after {time.monotonic() - began:.1f} s")
    wanted = {"pages": 1, "writes_received": 1, "kills": 1, "replies_lost": 1}
    wanted |= {"stale_approval_published": 0, "wrong_approver_published": 0}
    good = not problem and line == {"demo": "museum", **wanted}
    print(
        "One page for one approval, in one write."
        if good
        else f"something is wrong {problem}: look at {root}"
    )
    if good:
        shutil.rmtree(root)
    print(json.dumps(line, separators=(",", ":")))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
