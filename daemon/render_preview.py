"""The screen of `resumectl submit --dry-run`: what a job file would become."""

import shlex
from collections.abc import Iterator
from typing import Any

from .letters import clean
from .render import paint

MOST_LINE = 4000
"""Characters of a command line; it is there to be read."""


def preview(view: dict[str, Any], colour: bool) -> Iterator[str]:
    """Line by line."""
    job, flow = clean(view["job"]), f"{clean(view['workflow'])}@{view['version']}"
    if view["exists"]:
        yield paint(f". {job} exists already: this file is that job of {flow}", ".", colour)
        yield "you may"
        yield f"  resumectl show {job}"
        return
    if view["problem"]:
        yield paint(f"! {job} of {flow} would be admitted and held", "!", colour)
        yield f"  {clean(view['problem'], 1000)}"
    else:
        count = f"{view['items']} item{'s' * (view['items'] != 1)}"
        yield paint(f"+ {job} of {flow} would be admitted: {count}", "+", colour)
    if view["first"]:
        more = f" and {view['items'] - len(view['first'])} more" * (view["items"] > len(view["first"]))
        yield f"items      {', '.join(clean(each) for each in view['first'])}{more}"
    if view["note"]:
        yield f"note       {clean(view['note'], 500)}"
    if view["commands"]:
        yield "first"
    for row in view["commands"]:
        what = " ".join(filter(None, (clean(row["item"]), clean(row["step"]))))
        yield f"  {what}{'' if row['program'] == 'run' else ' (' + row['program'] + ')'}"
        yield f"    {clean(shlex.join(row['argv']), MOST_LINE)}"
    if view["said"].strip():
        yield "said       while they were listed:"
        yield from (f"  {clean(line, 500)}" for line in view["said"].strip().splitlines()[-20:])
    yield "nothing was admitted"
