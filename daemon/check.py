"""`resumed fsck`: what the examination of a store found, as text or JSON and as an exit code."""

import json
from pathlib import Path

import attrs

from resumed.actors.machine.apply import apply
from resumed.store import fsck, layout
from resumed.store.examine import Finding
from resumed.store.fsck import Report

from .logs import escape

CLEAN = 0
DAMAGE = 1
USAGE = 2
NOT_ALL_READ = 3

NOTES = frozenset({"temporary", "stray", "unfinished", "torn"})
"""What a crash or a person leaves, and recovery lives with: reported, and the store is clean."""
UNREAD = "unreadable"


def run(folder: Path, *, as_json: bool) -> int:
    """Examines a store, prints what was found, and returns the exit code."""
    if not layout.Layout(folder).store_file.exists() and not layout.Layout(folder).jobs.exists():
        print(f"resumed fsck: {escape(str(folder))} is no store: it has neither store.json nor jobs")
        return USAGE
    report = fsck.check(folder, apply)
    verdict = verdict_of(report.findings)
    if as_json:
        print(json.dumps({"verdict": verdict, **attrs.asdict(report)}, indent=2))
    else:
        print("\n".join(lines_of(report)))
    return verdict


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
