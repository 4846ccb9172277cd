"""Writes the golden store of the present level: after each wanted change of a stored record, and never again
once a release wrote that level. Stores of earlier levels are frozen: `level-1` and `first-release.tar.xz`.

    .venv/bin/python tests/golden/make.py

Every field of every stored record is away from its default, so that none can change unnoticed.
"""

import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

# E402 below: the path above has to be set first.
import stored  # noqa: E402
from attrs import evolve  # noqa: E402
from faults import world  # noqa: E402

from resumed.actors.containment import Identity  # noqa: E402
from resumed.schemas import checked, codec, line_io  # noqa: E402
from resumed.schemas import job as j  # noqa: E402
from resumed.schemas import ledger as g  # noqa: E402
from resumed.schemas.approvals import ApprovalRule, Gate  # noqa: E402
from resumed.schemas.effecttable import EffectTable  # noqa: E402
from resumed.schemas.limits import Limits, OnFailed  # noqa: E402
from resumed.schemas.publication import Publication, Sequel  # noqa: E402
from resumed.schemas.receipt import Receipt  # noqa: E402
from resumed.schemas.snapshot import (  # noqa: E402
    STATE_SCHEMA,
    Admission,
    Changes,
    Decision,
    Entry,
    Line,
    Snapshot,
)
from resumed.schemas.table import ItemTable  # noqa: E402
from resumed.schemas.workflow import Contract, OnChange, OnUnknown, Pinning, StepContract, StepKind  # noqa: E402
from resumed.store import (  # noqa: E402
    admission,
    archive,
    artifacts,
    claims,
    identities,
    intake,
    layout,
    names,
    quarantine,
    retire,
)

ID = "harbour-7"
WORKER = Identity(name="w-1", boot="b", pid=1, start=2, group=3, workflow="label", version=2)
m = world.moment


def snapshot() -> Snapshot:
    """A snapshot with nothing at its default."""
    sha = "a" * 64
    prov = j.Provenance(
        job=ID, item="p-0001", step="draft", attempt=2, model="m-1", prompt="p-3", editor="ada"
    )
    art = j.Artifact(
        name="draft",
        sha256=codec.digest(b"a draft"),
        size=7,
        revision=2,
        text="a draft",
        provenance=prov,
        access_policy="owner",
    )
    big = j.Artifact(name="report", sha256=codec.digest(b"a long report"), size=13)
    raw = j.Artifact(name="raw", sha256=codec.digest(b"\xff"), size=1, base64="/w==", text="\ufffd")
    far = j.Artifact(name="film", sha256=sha, size=9, path="/srv/small/1.mp4", device=3, inode=4)
    src = j.Source(path="/srv/in/1.pdf", pin=j.PinKind.STAT, size=9, mtime=8, inode=7)
    was = j.Source(
        path="/srv/in/2.pdf",
        pin=j.PinKind.SHA256,
        sha256=sha,
        size=5,
        mtime=4,
        inode=3,
        ctime=2,
        requested=True,
    )
    items = ItemTable(
        [
            j.Item(
                id="p-0001",
                ordinal=0,
                state=j.ItemState.DONE,
                at="draft",
                occurrence=1,
                tries=2,
                started=m(1),
                ended=m(2),
                inputs='{"n":1}',
                data='{"k":"v"}',
                source=src,
                output=art,
            ),
            j.Item(
                id="p-0002",
                ordinal=1,
                state=j.ItemState.IN_PROGRESS,
                at="draft",
                occurrence=1,
                tries=1,
                crashes=1,
                started=m(3),
                publishes=2,
                outputs=(raw, far),
            ),
            j.Item(
                id="p-0003",
                ordinal=2,
                state=j.ItemState.FAILED,
                tries=3,
                failures=3,
                reason="exit 1",
                code="failed",
                note="shorter, please",
            ),
            j.Item(id="p-0004", ordinal=3, not_before=m(90), output=big),
            j.Item(
                id="p-0005",
                ordinal=4,
                state=j.ItemState.REVIEW,
                output=raw,
                source=j.Source(path="/srv/in/2.pdf", pin=j.PinKind.SHA256, sha256=sha),
            ),
            j.Item(
                id="p-0006",
                ordinal=5,
                state=j.ItemState.HELD,
                code="crashes",
                reason="it died three times",
                source=was,
                seen=src,
            ),
            j.Item(id="p-0007", ordinal=6, state=j.ItemState.SKIPPED, code="skipped"),
        ]
    )
    contract = Contract(
        workflow="label",
        version=2,
        start="draft",
        steps=(
            StepContract(
                name="draft",
                kind=StepKind.ITEM,
                version=3,
                repeatable=False,
                timeout=60.0,
                grace=1.5,
                tries=2,
                backoff_first=1.0,
                backoff_max=2.0,
                crashes=4,
                parallel=5,
            ),
            StepContract(name="close", kind=StepKind.JOB),
        ),
        description="Labels pages",
        owner="ada",
        entry="label:Label",
        interpreter="/usr/bin/python3",
        definition="{}",
        slots=2,
        passed=("DISPLAY",),
        pin=Pinning.SHA256,
        on_change=OnChange.REOPEN,
        limits=Limits(
            usd="9.5",
            tokens=8,
            turns=7,
            active_time=60.5,
            deadline=7200.0,
            memory=1024,
            pids=5,
            failures_in_a_row=4,
            best_effort=True,
        ),
        on_failed=OnFailed.STOP,
        effects=(
            g.ToolContract(
                tool="cms.publish",
                version=3,
                target="cms",
                approval="group:curators",
                key_lifetime=86400.0,
                look_up=True,
                absent_is_final=True,
                in_flight=30.0,
                unclear_owner="group:desk",
                undo="cms.take_down",
                irreversible=True,
                address="http://127.0.0.1:8000",
                account="museum",
                approve=rule(),
                timeout=9.0,
                at_once=2,
                observe=True,
                check_first=True,
                unbound=("sent_at",),
            ),
        ),
        on_unknown=OnUnknown.CONTINUE,
    )
    return Snapshot(
        job=j.Job(
            id=ID,
            tenant="harbour",
            requester="ada",
            owner="bo",
            created=m(0),
            workflow="label",
            version=2,
            title="Pages of May",
            objective="label them",
            inputs='{"month":"2026-05"}',
            deadline=m(3600),
            items_glob="/srv/archive/**/*.tif",
            items_from="lines",
            items_file="/srv/archive/list",
            reader=j.Reader(uid=1000, gid=1001, groups=(1001, 4)),
            labels={"team": "archive", "naïve": "ü"},
            priority=-2,
            after=("harbour-6",),
            not_before=m(30),
            sha256=sha,
        ),
        contract=contract,
        code_version=j.CodeVersion(workflow="label", version=2, contract=sha, release="0.1.0"),
        epoch=2,
        newest=m(0),
        last_transition="admitted",
        position=j.Item(id="", ordinal=0, at="draft", output=big),
        next=j.Next(step="draft", preconditions=("items frozen",), allowed_tools=("cms",)),
        each=j.Each(start="draft", then="close", parallel=2, tries=3),
        state={"page": '"p-1"', "count": "3"},
        items=items,
        attempt=j.Attempt(epoch=2, opened=m(1)),
        tries={
            "p-0002": j.Try(
                epoch=2,
                item="p-0002",
                number=1,
                step="draft",
                occurrence=1,
                started=m(3),
                until=m(63),
                worker="w-1",
                stop=j.StopReason.PAUSE,
                compares=True,
            )
        },
        publications={
            "p-0006": Publication(
                unit="p-0006",
                number=3,
                destination="/srv/small/6.mp4",
                temp=".resumed-6.tmp",
                device=1,
                inode=2,
                sha256=sha,
                size=9,
                sequel=Sequel.EACH,
                step="draft",
                waits=True,
                data='{"k":"v"}',
                then="close",
                parallel=4,
                output=far,
                failures=1,
                not_before=m(70),
                blocked=True,
                stop=j.StopReason.SKIP,
            )
        },
        pause=j.Mark(by="ada", at=m(4), reason="lunch", now=True),
        cancel=j.Mark(by="bo", at=m(5)),
        expiry=j.Mark(by="deadline", at=m(6)),
        hold=j.Hold(code="items", reason="none found", owner="ada", since=m(7)),
        outcome=j.Outcome(ending=j.Ending.CANCELED, at=m(8), reason="asked"),
        budget=j.Budget(
            attempts=5, turns=6, tool_calls=7, tokens=8, usd="1.50", active_seconds=9.5, deadline=m(7200)
        ),
        used=j.Budget(attempts=1, tokens=2, usd="0.000001"),
        breaker=j.Breaker(key="exit-1 exit #", reason="exit 1", units=("p-0003",), waits=1),
        clocks=j.Clocks(known=m(0), floor=True, jumped=m(5), accepted=True),
        authority=j.Authority(
            actor="ada", scopes=("cms:write",), policy="p1", approval="a1", target="cms", expiry=m(100)
        ),
        effects=EffectTable(
            (
                effect(),
                evolve(effect(), id="e2", state=g.EffectState.CONFIRMED, hold=None, gate=None),
            )
        ),
        errands={
            "e1": g.Errand(
                effect="e1",
                kind=g.ErrandKind.LOOK_UP,
                epoch=2,
                number=4,
                started=m(9),
                until=m(39),
                worker="w-1",
                stop=j.StopReason.TIMEOUT,
            )
        },
        performances={
            "p-0001": g.Performance(
                unit="p-0001",
                step="draft",
                occurrence=2,
                effects=("e1", "e2"),
                then="published",
                otherwise="again",
                back="draft",
                over=True,
            )
        },
        reviews={
            "p-0002": g.Review(
                unit="p-0002",
                step="draft",
                occurrence=1,
                draft=art,
                rule=rule(),
                gate=gate(),
                edit=False,
                then="accepted",
                data='{"a":1}',
                shown=art,
                decision="edit",
                editor="cy",
                by="bo",
                led=2,
            )
        },
        approvals=(
            g.Approval(
                id="a1",
                effect="e1",
                fingerprint=sha,
                reviewer="cy",
                uid=1001,
                groups=("curators",),
                via="socket",
                decision="approve",
                scope="effect",
                policy_version="1",
                given=m(9),
                valid_until=m(99),
                reason="fine",
                shown=sha,
                round=2,
                spent=m(10),
                operation_key=sha,
                revoked=m(11),
                same_user=True,
            ),
        ),
        waits=(
            g.Wait(
                id="w1",
                kind="approval",
                event="a1",
                deadline=m(50),
                lease=m(51),
                approver="group:curators",
                owner="ada",
                cancellation_rule="deny",
                obstacle=g.Obstacle.FAILED,
            ),
        ),
        questions=(
            g.Question(
                id="q1",
                text="Which?",
                choices=("a", "b"),
                asked_of="ada",
                deadline=m(52),
                answer="a",
                answered_by="ada",
                answered=m(10),
                unit="p-0003",
                then="told",
                asked=m(8),
                occurrence=1,
                widened=True,
                led=2,
            ),
        ),
        sources=j.SourceReport(
            epoch=2, at=m(8), through=7, over=True, compared=6, held=1, reopened=2, kept=3, unreadable=1
        ),
        receipts={"1001 r-1": receipt("r-1"), "1001 r-2": receipt("r-2")},
    )


def rule() -> ApprovalRule:
    """A rule with nothing at its default."""
    return ApprovalRule(
        by=("group:curators", "user:cy"),
        quorum=2,
        not_requester=False,
        decide_within=3600.0,
        valid_for=60.0,
        via=("socket",),
        when="amount > 100",
        same_user=False,
        also=("group:staff",),
    )


def gate() -> Gate:
    """A gate with nothing at its default."""
    return Gate(round=2, asked=m(8), policy="a" * 64, why="lapsed", within=60.0, until=m(9), met=m(8))


def effect() -> g.Effect:
    """An effect with nothing at its default."""
    sha = "a" * 64
    body = j.Artifact(name="body", sha256=codec.digest(b"a label"), size=7, text="a label")
    return g.Effect(
        id="e1",
        state=g.EffectState.UNKNOWN,
        item="p-0001",
        business_object="page:1",
        operation_key=sha,
        fingerprint=sha,
        tool="cms.publish",
        target="cms",
        arguments='{"page":"1"}',
        expected_result="published",
        ordinal=1,
        not_before=m(9),
        response=sha,
        reference="r-1",
        confirmed_by="look_up",
        version=3,
        step="draft",
        occurrence=2,
        unbound='{"sent_at":"now"}',
        bodies=(body,),
        observed="rev-7",
        shown=body,
        sources=(j.Source(path="/srv/in/1.pdf", pin=j.PinKind.STAT, size=9, mtime=8, inode=7),),
        proposed=m(7),
        gate=gate(),
        again="r-0",
        errands=4,
        dispatches=1,
        first_dispatch=m(8),
        since=m(9),
        look_ups=2,
        unclear=1,
        absent=True,
        suspect=True,
        hold=j.Hold(code="unclear", reason="503", owner="bo", since=m(9)),
        settled=m(12),
        code="unclear",
        reason="503",
    )


def receipt(request: str) -> Receipt:
    """What a request was answered."""
    return Receipt(
        uid=1001,
        request=request,
        content=codec.digest(request.encode()),
        at=m(11),
        said="harbour-7 is paused",
        attempt=2,
        repeated=True,
    )


def admitted() -> Admission:
    """How the job came in, with all that is known of that."""
    return evolve(
        world.admission_of(ID), workflow="label", key="invoice-7", request="r-0", content=codec.digest(b"0")
    )


def first() -> Line:
    """Line 1 with all that a line and an entry may hold."""
    snap = snapshot()
    return Line(
        sequence=1,
        epoch=0,
        previous=admission.job_digest(admitted()),
        at=m(0),
        opening=snap,
        entries=(
            Entry(
                transition="admitted",
                decision=Decision(
                    by="folder",
                    rule="admission",
                    choice="admit",
                    relied_on=("owner",),
                    options=("admit", "refuse"),
                    reason="first",
                ),
                changes=Changes(epoch=0),
                evidence="none",
            ),
        ),
    )


def changes(snap: Snapshot) -> Changes:
    """Every kind of change."""
    items = snap.items
    return Changes(
        items=(items["p-0002"],),
        tries=tuple(snap.tries.values()),
        ended=("p-0001",),
        publications=tuple(snap.publications.values()),
        published=("p-0007",),
        position=snap.position,
        next=snap.next,
        each=snap.each,
        state={"a": "1"},
        epoch=2,
        attempt=snap.attempt,
        pause=snap.pause,
        cancel=snap.cancel,
        expiry=snap.expiry,
        hold=snap.hold,
        outcome=snap.outcome,
        budget=snap.budget,
        used=snap.used,
        breaker=snap.breaker,
        clocks=snap.clocks,
        waits=snap.waits,
        sources=snap.sources,
        effects=tuple(snap.effects),
        approvals=snap.approvals,
        errands=tuple(snap.errands.values()),
        returned=("e0",),
        performances=tuple(snap.performances.values()),
        performed=("p-0004",),
        reviews=tuple(snap.reviews.values()),
        reviewed=("p-0005",),
        questions=snap.questions,
        cleared=("hold", "pause"),
        receipt=receipt("r-3"),
        forgotten=("1001 r-1",),
    )


def grow(place: layout.Layout) -> None:
    """A job with a torn line in its past, two checkpoints and an artifact."""
    for claim in claims.of(admitted()):
        claims.take(place, claim)
    admission.admit(place, admitted(), first())
    ch = changes(snapshot())
    folder = place.job(ID)
    opened = world.open_job(folder)
    world.append(opened, 2)
    line = Line(
        sequence=4,
        epoch=2,
        previous=opened.digest,
        at=m(4),
        entries=(
            Entry(transition="all", decision=Decision(by="ada", rule="r", choice="c"), changes=ch),
            Entry(
                transition="counted",
                decision=Decision(by="ada", rule="r", choice="c"),
                changes=Changes(state={"last": "4"}),
            ),
        ),
    )
    r, d = line_io.spell_line(line)
    opened.append(r, 4, d)
    world.checkpoint(opened)
    world.append(opened, 2)
    opened.close()
    p = folder / "5.0.log"
    p.write_bytes(p.read_bytes() + b"0123 half a line")
    artifacts.put(folder, b"a long report")
    opened = world.open_job(folder)
    world.append(opened)
    world.checkpoint(opened, "park", fill=False)
    opened.close()


def others(place: layout.Layout) -> None:
    """One of everything that is no job under way."""
    f = world.admit(place, "pier-1")
    opened = world.open_job(f)
    world.append(opened)
    world.checkpoint(opened, "end", fill=False)
    opened.close()
    archive.move(place, "pier-1")
    f = world.admit(place, "pier-2")
    (f / "1.0.log").write_bytes((f / "1.0.log").read_bytes()[:-9])
    quarantine.set_aside(place, "pier-2", "damaged", "cannot load pier-2: line 1 is missing", m(60))
    identities.record(place, "w-1", checked.spell(WORKER))
    identities.mark_gone(place, "w-1")
    farewell = retire.Farewell(id="pier-9", how="pruned", by="ada", at=m(62), reason="long ago")
    names.keep(place.names, "id", 0, farewell.id, codec.encode(farewell))
    (place.incoming / "broken.json").write_bytes(b"{")
    (place.incoming / "broken.json").chmod(0o600)
    intake.claim(place, "broken.json")
    intake.reject(
        place, "broken.json", {"code": "not-json", "reason": "cannot admit broken.json: not JSON"}, m(61)
    )


def later(folder: Path) -> None:
    """A job as a later release may write it."""
    folder.mkdir(parents=True)
    here, there = (b'"schema": %d' % level for level in (STATE_SCHEMA, STATE_SCHEMA + 1))
    job = line_io.spell_admission(world.admission_of("harbour-9")).replace(
        here, there + b',\n  "mood": "calm"'
    )
    (folder / "job.json").write_bytes(job)
    seal = b'{"seal":0,"digest":"%s","why":"admission","job":"%s","state_schema":%d,"mood":"calm"}' % (
        *(codec.digest(job).encode(),) * 2,
        STATE_SCHEMA + 1,
    )
    line = (
        b'{"sequence":1,"epoch":0,"previous":"%s","weather":{"wind":3},"opening":{"tides":["ebb"]}}'
        % codec.digest(job).encode()
    )
    (folder / "1.0.log").write_bytes(line_io.spell(seal)[0] + line_io.spell(line)[0])
    cp = b'{\n  "state_schema": %d,\n  "sequence": 1,\n  "weather": {"wind": 3}\n}\n' % (STATE_SCHEMA + 1)
    (folder / f"1-{codec.digest(cp)}.checkpoint.json").write_bytes(cp)


def main() -> None:
    """Write both folders anew."""
    present, after = HERE / f"level-{STATE_SCHEMA}", HERE / "later"
    for folder in (present, after):
        shutil.rmtree(folder, ignore_errors=True)
    place = layout.create(present, "store-1", m(0))
    grow(place)
    others(place)
    later(after / "harbour-9")
    # A change of a stored record needs its line there too: said now, before a test does.
    sys.exit("\n".join(said for name in sorted(stored.records()) if (said := stored.missing(name))) or 0)


if __name__ == "__main__":
    main()
