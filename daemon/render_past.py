"""The screens that look back: why a job stands as it does, and all that happened to it."""

from typing import Any

from . import grammar
from .letters import clean, columns, pad, sentence, wrap
from .render import NAME, glyph_of, hour_of, local, paint, time_of_day

LEAST = 20
"""Columns of a sentence that stands beside something else."""
CONTROL = frozenset(verb.name for verb in grammar.VERBS if verb.group == "control")
"""Verbs that change a job."""


def why_view(answer: dict[str, Any], now: float, width: int, colour: bool) -> list[str]:
    """The screen of `resumectl why`."""
    why = answer["why"]
    row = why["row"]
    head = f"{clean(row['id'])} is {row['status']} since {hour_of(row['since'], now)}"
    said = f"{head}: {sentence(why['reason'], 600).removesuffix('.')}" if why["reason"] else head
    lines = [paint(line, glyph_of(row), colour) for line in wrap(f"{said}.", width)]
    lines += _events(why["events"], now, width)
    checks = "  ".join(_check(check) for check in why["checks"])
    lines += _named("checks", [checks] if checks else [], width)
    lines += _named("wakes by", [_wake(wake, now) for wake in why["wakes"]], width)
    lines += _named("not done", [clean(one, 600) for one in why["not_done"]], width)
    lines += _possible(answer, width)
    lines += _named("owner", [clean(row["owner"])] if row["owner"] else [], width)
    return lines + [line for note in why["notes"] for line in wrap(f"! {clean(note, 300)}", width)]


def _events(events: list[dict[str, Any]], now: float, width: int) -> list[str]:
    times = [time_of_day(local(event["at"]), now) if event["at"] else "-" for event in events]
    wide = max((len(time) for time in times), default=0)
    word = max((columns(clean(event["word"], 20)) for event in events), default=0)
    lead = wide + max(word, NAME) + 5
    # Where little room is left beside it, what happened stands below its time and word.
    below = width - lead < LEAST
    room = max(width - (4 if below else lead), LEAST)
    lines = []
    for time, event in zip(times, events, strict=True):
        first = f" {time:<{wide}}  {pad(clean(event['word'], 20), max(word, NAME))}  "
        parts = wrap(sentence(event["said"], 400), room)
        if below:
            lines += [first.rstrip(), *(f"    {part}" for part in parts)]
            continue
        lines += [f"{first}{parts[0]}".rstrip(), *(f"{'':<{columns(first)}}{part}" for part in parts[1:])]
    return lines


def _check(check: dict[str, Any]) -> str:
    name = clean(check["name"], 30)
    return f"{name if check['good'] else name.upper()} {clean(check['said'], 80)}"


def _wake(wake: dict[str, Any], now: float) -> str:
    said = clean(wake["said"], 200)
    return f"{said} at {time_of_day(local(wake['at']), now)}" if wake["at"] else said


def _named(name: str, said: list[str], width: int) -> list[str]:
    """The things said under one name: beside each other where they fit, else each on a line of its own."""
    if not said:
        return []
    room = max(width - NAME - 1, 20)
    whole = " / ".join(said)
    parts = [whole] if columns(whole) <= room else [part for one in said for part in wrap(one, room)]
    return [f"{name if i == 0 else '':<{NAME}} {part}" for i, part in enumerate(parts)]


def _possible(answer: dict[str, Any], width: int) -> list[str]:
    """What whoever looks may type, and what only somebody with the role may."""
    commands, role = answer["why"]["commands"], answer["role"]
    head = _bound(answer["why"]["record"], role)
    if answer["yours"] or not role:
        return command_lines(commands, head, width)
    mine = [each for each in commands if each["command"].split()[1] not in CONTROL]
    others = [each for each in commands if each not in mine]
    return [*command_lines(mine, "", width), *command_lines(others, head, width, who="others may")]


def _bound(record: int, role: str) -> str:
    bound = [f"bound to record {record}"] if record else []
    return "; ".join([*bound, *([f"role {clean(role, 30)}"] if role else [])])


def command_lines(
    commands: list[dict[str, Any]], head: str, width: int, *, who: str = "you may"
) -> list[str]:
    """What may be typed, each command whole on its line, with what it does."""
    if not commands:
        return []
    texts = [clean(each["command"], 400) for each in commands]
    wide = max(map(columns, texts))
    lines = _named(who, [f"({head})"], width) if head else [who]
    for text, each in zip(texts, commands, strict=True):
        means = clean(each["means"], 100)
        # What does not fit beside a command stands below it: a command must be there to be copied, whole.
        if 2 + wide + 4 + columns(means) <= width:
            lines.append(f"  {pad(text, wide)}    {means}".rstrip())
        else:
            below = [f"      {part}" for part in wrap(means, max(width - 6, 20)) if part]
            lines += [f"  {text}", *below]
    return lines


def history_rows(rows: list[dict[str, Any]], width: int, widths: list[int]) -> list[str]:
    """Rows of `resumectl history`; `widths` of the columns are kept from piece to piece, and grow only."""
    cells = [
        [
            str(row["sequence"]),
            f"{local(row['at']):%F %T}",
            clean(row["by"].partition(" ")[2] or row["by"], 16),
            clean(row["rule"], 40),
            clean(row["choice"], 40),
        ]
        for row in rows
    ]
    widths[:] = [
        max([wide, *map(columns, column)])
        for wide, column in zip(widths, zip(*cells, strict=True), strict=True)
    ]
    fits = sum(widths) + 2 * len(widths) <= width
    lines = []
    for row, line in zip(rows, cells, strict=True):
        padded = [
            pad(cell, wide, right=i == 0) for i, (cell, wide) in enumerate(zip(line, widths, strict=True))
        ]
        if fits:
            lines += _with_rest("  ".join(padded), _rest(row), width)
        else:
            what = ": ".join(part for part in (*line[3:], _rest(row)) if part)
            lines += ["  ".join(padded[:3]).rstrip(), *(f"      {part}" for part in wrap(what, width - 6))]
    return lines


def _rest(row: dict[str, Any]) -> str:
    """What stands behind the columns: the reason, what was started and stopped with it, what was kept."""
    named = {name: ", ".join(clean(one, 60) for one in row[name]) for name in ("started", "stopped")}
    parts = [sentence(row["reason"], 400), *(f"{name} {said}" for name, said in named.items() if said)]
    if row["evidence"]:
        parts.append(f"kept {clean(row['evidence'], 200)}")
    return "; ".join(part for part in parts if part)


def _with_rest(lead: str, rest: str, width: int) -> list[str]:
    if not rest:
        return [lead.rstrip()]
    if columns(lead) + 2 + columns(rest) <= width:
        return [f"{lead}  {rest}"]
    return [lead.rstrip(), *(f"      {part}" for part in wrap(rest, max(width - 6, 20)))]
