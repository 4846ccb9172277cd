"""Frames between daemon and worker: each kind reads back, on its own side, through the strict door."""

import json
from typing import Any, get_args

import attrs
import pytest
from attrs import evolve
from schema_kit import sample

from resumed.schemas import decisions, framelines, frames
from resumed.schemas.errors import FaultyInputError, ProtocolError

TO, FROM = get_args(frames.ToWorker), get_args(frames.FromWorker)


def spoken(kind: type[Any]) -> Any:
    """A valid frame of our own protocol."""
    frame = sample(kind)
    return evolve(frame, protocol=frames.PROTOCOL) if kind in (frames.Open, frames.Ready) else frame


@pytest.mark.parametrize("kind", [*TO, *FROM], ids=lambda kind: kind.__name__)
def test_frame_reads_back_on_its_own_side_only(kind: type[Any]) -> None:
    """A frame is one line; the other side's frames are refused, so neither can play the other's part."""
    frame = spoken(kind)
    raw = framelines.write(frame)
    reads = [framelines.read_to_worker, framelines.read_from_worker]
    own, other = reads if kind in TO else reversed(reads)

    assert (1, True) == (raw.count(b"\n"), raw.endswith(b"\n"))
    assert frame == own(raw[:-1])
    with pytest.raises(FaultyInputError, match=r"expected one of .* as frame"):
        other(raw[:-1])


@pytest.mark.parametrize("decided", get_args(decisions.Decided), ids=lambda kind: kind.__name__)
def test_every_decision_crosses(decided: type[Any]) -> None:
    """Each decision a handler can make arrives as what it was, also at its defaults."""
    whole = sample(decided)
    for answer in (decisions.Answer(decided=whole), decisions.Answer(decided=_bare(decided))):
        frame = frames.Returned(job="j", epoch=1, item="a", number=2, answer=answer)

        assert frame == framelines.read_from_worker(framelines.write(frame)[:-1])


def _bare(kind: type[Any]) -> Any:
    given: dict[str, Any] = {
        "step": "s",
        "start": "s",
        "then": "t",
        "reason": "r",
        "seconds": 1.0,
        "code": "c",
    }
    given |= {"through": 3}
    needed = [field.name for field in attrs.fields(kind) if field.default is attrs.NOTHING]
    whole = sample(kind)
    return kind(**{name: given[name] if name in given else getattr(whole, name) for name in needed})


BAD: dict[str, bytes] = {
    "an unknown kind": b'{"frame":"approve","job":"j"}',
    "no kind": b'{"job":"j","epoch":1,"item":"a","number":1}',
    "a kind that is no word": b'{"frame":["returned"],"job":"j"}',
    "a kind of null": b'{"frame":null}',
    "no object": b'["stopped"]',
    "a kind twice": b'{"frame":"stopped","frame":"returned","job":"j","epoch":1,"item":"a","number":1}',
    "an epoch as text": b'{"frame":"stopped","job":"j","epoch":"1","item":"a","number":1}',
    "a number as a float": b'{"frame":"stopped","job":"j","epoch":1,"item":"a","number":1.0}',
    "an extra key": b'{"frame":"stopped","job":"j","epoch":1,"item":"a","number":1,"approved":true}',
    "a missing key": b'{"frame":"stopped","job":"j","epoch":1,"item":"a"}',
    "an unknown decision": b'{"frame":"returned","job":"j","epoch":1,"item":"a","number":1,'
    b'"answer":{"decided":{"kind":"Approve"}}}',
    "a decision without a kind": b'{"frame":"returned","job":"j","epoch":1,"item":"a","number":1,'
    b'"answer":{"decided":{"reason":"x"}}}',
    "state that is no text": b'{"frame":"returned","job":"j","epoch":1,"item":"","number":1,'
    b'"answer":{"decided":{"kind":"Finished"},"state":{"page":7}}}',
    "a wait of no number": b'{"frame":"returned","job":"j","epoch":1,"item":"a","number":1,'
    b'"answer":{"decided":{"kind":"Later","seconds":NaN}}}',
    "NUL in an error": b'{"frame":"raised","job":"j","epoch":1,"item":"a","number":1,"error":"\\u0000"}',
    "half a frame": b'{"frame":"stopped","job":"j","epo',
    "nothing": b"",
}


@pytest.mark.parametrize("case", BAD)
def test_faulty_frame_is_refused(case: str) -> None:
    """A worker's word has the form it must have, or it is none."""
    with pytest.raises(FaultyInputError, match="cannot read a worker's frame"):
        framelines.read_from_worker(BAD[case])


def test_c27_in_frames() -> None:
    """`"false"`, 0, null and the like never arrive as a bool, whatever side sends them."""
    opened = json.loads(framelines.write(spoken(frames.Open)))
    run = json.loads(framelines.write(sample(frames.Run)))
    for wrong in ("false", "no", 0, 1, None, {}, [], {"status": "denied"}):
        for plain, field in ((opened, "describe"), (run, "interrupted")):
            with pytest.raises(FaultyInputError, match=rf"\$\.{field}"):
                framelines.read_to_worker(json.dumps({**plain, field: wrong}).encode())
        step = {**opened["contract"]["steps"][0], "repeatable": wrong}
        contract = {**opened["contract"], "steps": [step]}
        with pytest.raises(FaultyInputError, match=r"\$\.contract\.steps\[0\]\.repeatable"):
            framelines.read_to_worker(json.dumps({**opened, "contract": contract}).encode())


def test_too_large_a_frame_is_refused_before_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the other side would not read to its end is never begun."""
    monkeypatch.setattr(framelines, "MAX_FRAME", 200)
    frame = frames.Raised(job="j", epoch=1, item="a", number=1, error="x" * 300)
    with pytest.raises(FaultyInputError, match="the most is 200"):
        framelines.write(frame)


OTHERS = {"the next": 2, "none at all": None, "a text": "1", "a float": 1.5}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("kind", [frames.Open, frames.Ready])
def test_another_protocol_is_named_before_all_else(kind: type[Any], other: str) -> None:
    """Whatever else stands in it, a first frame of another protocol is refused by its number."""
    plain = json.loads(framelines.write(spoken(kind)))
    line = json.dumps({**plain, "protocol": OTHERS[other], "dialect": "new"}).encode()
    reads = framelines.read_to_worker if kind is frames.Open else framelines.read_from_worker
    with pytest.raises(ProtocolError, match=r"expected protocol 1, got .* @ \$\.protocol"):
        reads(line)


@pytest.mark.parametrize("kind", [frames.Open, frames.Ready])
def test_the_protocol_is_always_named(kind: type[Any]) -> None:
    """A default that may change between releases is written: the other side may be older."""
    frame = evolve(sample(kind), protocol=frames.PROTOCOL)

    assert b'"protocol":%d' % frames.PROTOCOL in framelines.write(frame)
