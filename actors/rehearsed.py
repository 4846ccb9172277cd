"""The words of what a job would run: each program with its values, as far as they are known beforehand.

Private inputs are hidden, and credentials are named. What an effect would send is shown as it would be asked
for: what is known only when it is sent stays a placeholder.
"""

from collections.abc import Iterator, Mapping

from resumed.schemas import inputs, templates, workfloweffects
from resumed.schemas.frames import Run
from resumed.schemas.programeffects import ProgramEffect
from resumed.schemas.views import CommandRow
from resumed.schemas.workflow import Programs, ProgramStep

from .worker import credentials, programcalls, values
from .worker.course import Place


def commands(programs: Programs, place: Place, frame: Run, before: list[str]) -> Iterator[CommandRow]:
    """What one try at a place of the course starts, or would ask for; `before` are the steps that ran."""
    found = values.of_unit(programs, frame)
    found |= {f"inputs.{each.name}": inputs.HIDDEN for each in programs.inputs if each.private}
    if place.effect is not None:
        words = _words_of_effect(place.effect, found)
        yield CommandRow(item=frame.item, step=place.name, program="send", argv=words)
        return
    assert place.step is not None
    found |= {f"outputs.{name}": values.output_file(frame, name) for name in before}
    yield from _of_step(place.step, frame, found)


def _of_step(step: ProgramStep, frame: Run, found: dict[str, str]) -> Iterator[CommandRow]:
    found |= {f"secrets.{name}": f"${credentials.FOLDER}/{name}" for name in step.secrets}
    for name, argv in (("prepare", step.prepare), ("run", step.run), ("verify", step.verify)):
        if argv:
            words = tuple(templates.fill_word(word, found) for word in argv)
            yield CommandRow(item=frame.item, step=step.name, program=name, argv=words)


def _words_of_effect(effect: ProgramEffect, found: Mapping[str, str]) -> tuple[str, ...]:
    """The argv, or method and URL, with what is known by now."""
    early = {name: found[name] for name in workfloweffects.values_of(effect) if name in found}
    if effect.send_http is not None:
        return (effect.send_http.method, programcalls.url_of(effect.send_http, early))
    return tuple(templates.fill_word_some(word, early) for word in effect.send)


def asks(programs: Programs) -> Iterator[str]:
    """What waits for whom: a phrase for each review and each effect."""
    for step in programs.steps:
        if step.review is not None:
            yield f"what {step.name} makes waits for {_whom(step.review.rule.by)}"
    for effect in programs.effects:
        asked = "nobody is asked" if effect.approve is None else f"when {_whom(effect.approve.by)} said yes"
        if effect.approve is not None and effect.approve.when:
            asked += f", who is asked where {effect.approve.when}"
        where = f"{effect.target} ({effect.address})" if effect.address else effect.target
        yield f"{effect.name} writes to {where}: {asked}"


def _whom(by: tuple[str, ...]) -> str:
    return " or ".join(by) or "an approver"
