"""`resumed fsck`: what the examination of a store found, as text or JSON and as an exit code."""

import json
from contextlib import closing
from pathlib import Path

import attrs

from resumed.actors.machine.apply import apply
from resumed.schemas.errors import NewerSchemaError, StoreError
from resumed.store import fsck, layout, lock, repair
from resumed.store.examine import Finding
from resumed.store.fsck import Report

from .logs import escape

CLEAN = 0
DAMAGE = 1
USAGE = 2
NOT_ALL_READ = 3

NOTES = fsck.NOTES
UNREAD = "unreadable"


def run(folder: Path, *, as_json: bool) -> int:
    """Examines a store, prints what was found, and returns the exit code."""
    if not _is_store(folder):
        return USAGE
    report = fsck.check(folder, apply)
    verdict = verdict_of(report.findings)
    if as_json:
        print(json.dumps({"verdict": verdict, **attrs.asdict(report)}, indent=2))
    else:
        print("\n".join(lines_of(report)))
    return verdict


def run_repair(folder: Path, *, as_json: bool) -> int:
    """Moves what is damaged out of the way, prints what was moved where, and returns fsck's exit code then.

    BusyError while somebody holds the store's lock.
    """
    if not _is_store(folder):
        return USAGE
    from resumed.actors.clock import SystemClock

    from . import serve  # only now: looking needs none of it

    place, clock = layout.Layout(folder.absolute()), SystemClock()
    try:
        repair.look(place)
        with closing(lock.hold(place, serve.own_identity(clock))):
            done = repair.repair(place, apply, clock.now(), serve.new_id())
    except (StoreError, NewerSchemaError) as error:
        print(escape(f"resumed fsck: cannot repair {folder}: {error}"))
        return DAMAGE if isinstance(error, NewerSchemaError) else NOT_ALL_READ
    verdict = verdict_of(done.report.findings)
    if as_json:
        print(json.dumps({"verdict": verdict, **attrs.asdict(done)}, indent=2))
    else:
        print("\n".join([*_steps_of(done), *lines_of(done.report)]))
    return verdict


def _is_store(folder: Path) -> bool:
    if layout.Layout(folder).store_file.exists() or layout.Layout(folder).jobs.exists():
        return True
    print(f"resumed fsck: {escape(str(folder))} is no store: it has neither store.json nor jobs")
    return False


def _steps_of(done: repair.Repair) -> list[str]:
    """What was done and what was left, each with its reason."""
    root = f"{done.report.root}/"
    lines = []
    for step in done.steps:
        source, target = step.source.removeprefix(root), step.target.removeprefix(root)
        lines.append(f"> {'moved ' + source + ' to ' if source else 'wrote '}{target}: {step.why}")
    lines += [f"= left {said}" for said in done.left]
    return [escape(line) for line in lines] or ["nothing to repair"]


def verdict_of(findings: tuple[Finding, ...]) -> int:
    """The exit code: damage is known as soon as one thing is damaged, whatever could not be read."""
    codes = {finding.code for finding in findings}
    if codes - NOTES - {UNREAD}:
        return DAMAGE
    return NOT_ALL_READ if UNREAD in codes else CLEAN


def lines_of(report: Report) -> list[str]:
    """The report as people read it: what is wrong first, the count last."""
    ranked = sorted(report.findings, key=lambda finding: (finding.code in NOTES, not finding.fatal))
    lines = []
    for finding in ranked:
        glyph = "." if finding.code in NOTES else "!"
        whose = f"job {finding.job}: " if finding.job else ""
        place = finding.path.removeprefix(f"{report.root}/")
        lines.append(escape(f"{glyph} {finding.code:<11} {whose}{place}: {finding.detail}"))
    words = {CLEAN: "clean", DAMAGE: "damaged", NOT_ALL_READ: "not all could be read"}
    counts = f"{report.jobs} open jobs, {report.archived} ended, {report.set_aside} set aside"
    lines.append(escape(f"{report.root}: {words[verdict_of(report.findings)]}; {counts}"))
    return lines
