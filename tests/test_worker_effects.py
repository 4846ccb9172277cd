"""Effects of programs: what is asked for, what is sent is what was hashed, and what ends mean."""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from calls_kit import (
    KEY,
    Says,
    argv,
    artifact,
    asked,
    draft,
    errand,
    flow,
    free_port,
    given,
    proposed,
    target,
)
from worker_kit import Desk, alive, contract, desk

from resumed.actors.worker import programs
from resumed.actors.worker.trial import Trial
from resumed.schemas import frames, keys
from resumed.schemas.decisions import (
    Absent,
    Call,
    HoldBack,
    Landed,
    NotSent,
    Performing,
    Refused,
    TryAgain,
    Unsure,
)
from resumed.schemas.job import Item, PinKind, Source
from resumed.schemas.ledger import Effect, EffectState, ErrandKind

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """A worker has one loop, whatever its daemon runs on."""
    return "asyncio"


SENDER = 'printf %s "$1" > "$2"; cat "$3" >> "$2"; echo "page $4"'


def program(*words: str, more: str = "approve = false") -> str:
    """A workflow whose effect is a program."""
    return flow(f"{more}\nsend = {argv(*words)}")


def http(address: str, send: str = "", more: str = "approve = false") -> str:
    """A workflow whose effect is a request."""
    return flow(
        f"""{more}
[effect.send]
method = "PUT"
url = "{address}/pages/{{inputs.page}}"
key_header = "Idempotency-Key"
statuses = {{ landed = [200, 201], refused = [412, 422], not_sent = [503] }}
{send or 'body = "{outputs.draft}"'}
"""
    )


def fingerprint(made: Desk, call: Call) -> str:
    """What an approval of this call would cover."""
    pinned = made.worker.contract.tool(call.tool)
    assert pinned is not None
    row = Effect(
        id="e",
        state=EffectState.PROPOSED,
        item="i",
        business_object="",
        operation_key=KEY,
        fingerprint="",
        tool=call.tool,
        target=pinned.target,
        arguments=call.arguments,
        bodies=tuple(artifact(body) for body in call.bodies),
        observed=call.observed,
    )
    return keys.fingerprint(row, pinned)


async def test_a_step_asks_for_its_call_and_lets_nothing_leave(tmp_path: Path) -> None:
    """The effect's step answers with the filled call and the bytes that it names; its program has not run."""
    marker = tmp_path / "sent"
    words = ("sh", "-c", 'touch "$1"', "sh", str(marker), "{item}", "--page={inputs.page}", "{outputs.draft}")
    async with desk(tmp_path, contract(program(*words))) as made:
        decided = (await asked(made)).answer.decided

        assert isinstance(decided, Performing)
        assert ("", "", "draft") == (decided.then, decided.otherwise, decided.back)
        (call,) = decided.calls
        stored = json.loads(call.arguments)
        assert [*words[:5], "i", "--page=harbour", "{outputs.draft}"] == stored["argv"]
        assert ({"page": "harbour"}, {"draft": draft().sha256}) == (stored["inputs"], stored["outputs"])
        assert [("draft", draft().sha256, draft().text)] == [(b.name, b.sha256, b.text) for b in call.bodies]
        assert ("i", "publish", "{}") == (call.business_object, call.tool, call.unbound)
        assert not marker.exists()


async def test_what_a_program_is_sent_is_what_was_hashed(tmp_path: Path) -> None:
    """Words and bytes are those of the stored call, whatever else has changed since: job, item and step."""
    out = tmp_path / "out"
    words = ("sh", "-c", SENDER, "sh", "{inputs.page} {{x}} ", str(out), "{outputs.draft}", "{key}")
    async with desk(tmp_path, contract(program(*words))) as made:
        call = await proposed(made, inputs='{"page": "-{har}bour"}')
        stored = evolve(given(call), unbound='{"inputs.page":"third"}')  # it binds, whatever else is said
        landed = await errand(made, stored, inputs='{"page": "other"}', outputs=(draft("other"),))

        assert ("-{har}bour {x} Harbour, 1906\n", f"page {KEY}") == (out.read_text(), landed.reference)
        assert hashlib.sha256(landed.response.text.encode()).hexdigest() == landed.response.sha256
        assert f"page {KEY}\n" == landed.response.text


@pytest.mark.parametrize(
    ("send", "body"),
    {
        "the bytes": ('body = "{outputs.draft}"', b"Harbour, \xff\n"),
        "text around text": ('body = "<p>{inputs.page}</p>"', b"<p>a b/\xc3\xa9?</p>"),
        "a JSON table": (
            'body = { title = "{inputs.page}", n = 1, rows = ["{item}", true] }',
            '{"n":1,"rows":["i",true],"title":"a b/é?"}'.encode(),
        ),
    }.values(),
)
async def test_what_a_request_sends_is_what_was_hashed(send: str, body: bytes, tmp_path: Path) -> None:
    """Method, URL, headers and body are made of the stored call alone; the key is in its header."""
    import base64

    raw = b"Harbour, \xff\n"
    made_before = Item(
        id="i",
        ordinal=0,
        outputs=(
            draft().__class__(
                name="draft",
                sha256=hashlib.sha256(raw).hexdigest(),
                size=len(raw),
                base64=base64.b64encode(raw).decode(),
            ),
        ),
    )
    with target() as cms:
        async with desk(tmp_path, contract(http(cms.address, send))) as made:
            call = await proposed(made, row=made_before, inputs='{"page": "a b/é?"}')
            landed = await errand(made, given(call), inputs='{"page": "other"}')

            assert isinstance(landed, Landed), landed
        (heard,) = cms.heard
        assert ("PUT", "/pages/a%20b%2F%C3%A9%3F", body) == (heard.method, heard.path, heard.body)
        assert KEY == heard.headers["idempotency-key"]
        stored = json.loads(call.arguments)
        assert f"{cms.address}/pages/a%20b%2F%C3%A9%3F" == stored["url"]


async def test_every_argument_binds_and_what_does_not_is_named(tmp_path: Path) -> None:
    """Another page, item or draft is another fingerprint; an unbound value is named and changes none."""
    more = 'approve = false\nunbound = ["inputs.note"]'
    steps = (
        flow("")
        .partition("[[effect]]")[0]
        .replace("inputs.page", 'inputs.note = { type = "string" }\ninputs.page')
    )
    words = argv("true", "{item}", "{inputs.page}", "{outputs.draft}", "{inputs.note}")
    out = {}
    async with desk(tmp_path, contract(flow(f"{more}\nsend = {words}", steps))) as made:
        cases: dict[str, dict[str, Any]] = {
            "as it is": {},
            "another note": {"inputs": '{"page": "harbour", "note": "b"}'},
            "another page": {"inputs": '{"page": "pier", "note": "a"}'},
            "another draft": {"row": Item(id="i", ordinal=0, outputs=(draft("other"),))},
        }
        for number, (case, more_of) in enumerate(cases.items()):
            call = await proposed(
                made, number=number, **{"inputs": '{"page": "harbour", "note": "a"}', **more_of}
            )
            out[case] = fingerprint(made, call)
            if case == "another note":
                assert '{"inputs.note":"b"}' == call.unbound
                assert "b" not in json.loads(call.arguments).get("inputs", {}).values()
    assert out["as it is"] == out["another note"]
    assert 3 == len(set(out.values()))


SENDS = {
    # exit status -> what a send that ended so says
    0: Landed(reference="ref 7"),
    45: Refused(reason="exit 45: why"),
    46: NotSent(reason="exit 46: why", seconds=30.0),
    1: Unsure(reason="exit 1: why"),
    2: Unsure(reason="exit 2: why"),
    44: Unsure(reason="exit 44: why"),
    127: Unsure(reason="exit 127: why"),
    -9: Unsure(reason="signal 9: why"),
}
LOOK_UPS = {
    0: Landed(reference="ref 7"),
    44: Absent(),
    1: Unsure(reason="exit 1: why"),
    45: Unsure(reason="exit 45: why"),
    46: Unsure(reason="exit 46: why"),
    127: Unsure(reason="exit 127: why"),
    -9: Unsure(reason="signal 9: why"),
}


@pytest.mark.parametrize("kind", ["send", "look_up"])
async def test_exit_statuses_mean_what_is_documented(kind: str, tmp_path: Path) -> None:
    """Of `send` 0, 45 and 46 decide, of `look_up` 0 and 44; every other end leaves open what happened."""
    script = 'echo "ref 7"; echo why >&2; test "$1" -ge 0 && exit "$1"; kill -9 $$'
    call = argv("sh", "-c", script, "sh", "{inputs.page}")
    found = {}
    table: dict[int, Any] = SENDS if kind == "send" else LOOK_UPS
    async with desk(tmp_path, contract(flow(f"approve = false\nsend = {call}\nlook_up = {call}"))) as made:
        for number, status in enumerate(table):
            asked_for = await proposed(made, number=number, inputs=f'{{"page": "{status}"}}')
            said = await errand(made, given(asked_for, ErrandKind(kind)), number)
            if not isinstance(said, NotSent):
                assert "ref 7\n" == said.response.text
                said = said.__class__(**{**_fields(said), "response": None})
            found[status] = said
    assert table == found


def _fields(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__class__.__annotations__}


async def test_a_program_that_cannot_start_has_sent_nothing(tmp_path: Path) -> None:
    """What is not there did not run: surely not sent; a look-up by it is unclear."""
    words = 'approve = false\nsend = ["/nowhere/send"]\nlook_up = ["/nowhere/look-up"]'
    async with desk(tmp_path, contract(flow(words))) as made:
        call = await proposed(made)
        sent = await errand(made, given(call))
        looked = await errand(made, given(call, ErrandKind.LOOK_UP), 2)

    assert NotSent(reason="cannot start /nowhere/send: No such file or directory", seconds=30.0) == sent
    assert Unsure(reason="cannot start /nowhere/look-up: No such file or directory") == looked


async def test_a_send_that_takes_too_long_is_unknown_and_dead(tmp_path: Path) -> None:
    """The worker ends a call before its errand is stopped, with all that it started: unknown."""
    pids = tmp_path / "pids"
    script = 'setsid sh -c "sleep 600" & echo $! $$ > "$1"; sleep 600'
    async with desk(tmp_path, contract(program("sh", "-c", script, "sh", str(pids)))) as made:
        said = await errand(made, given(await proposed(made), timeout=0.5))

        assert Unsure(reason="send did not end within 0.45 s, and was killed") == said
        assert not any(alive(int(pid)) for pid in pids.read_text().split())


async def test_a_double_forked_sender_dies_with_its_errand(tmp_path: Path) -> None:
    """Whatever left the session and lost its parent is dead before the errand is answered."""
    pids = tmp_path / "pids"
    script = (
        '(setsid sh -c "echo \\$\\$ > $1; exec sleep 600" >/dev/null 2>&1 &)\n'
        'while ! test -s "$1"; do :; done'
    )
    async with desk(tmp_path, contract(program("sh", "-c", script, "sh", str(pids)))) as made:
        said = await errand(made, given(await proposed(made)))

        assert isinstance(said, Landed)
        assert not alive(int(pids.read_text()))


STATUSES: dict[str, tuple[Says, Any]] = {
    "landed": (Says(), Landed(reference="harbour@1")),
    "refused": (Says(status=412, body=b"stale"), Refused(reason="HTTP 412: stale")),
    "not sent": (
        Says(status=503, body=b"", headers={"Retry-After": "7"}),
        NotSent(reason="HTTP 503", seconds=7.0),
    ),
    "a status nobody named": (Says(status=500, body=b"oops"), Unsure(reason="HTTP 500: oops")),
    "a redirect": (
        Says(status=307, headers={"Location": "/elsewhere"}, body=b""),
        Unsure(reason="HTTP 307"),
    ),
    "no JSON": (
        Says(body=b"<html>"),
        Unsure(reason="HTTP 201: <html>, but its reference is not where it should be"),
    ),
    "no reference": (
        Says(body=b'{"reference": null}'),
        Unsure(reason='HTTP 201: {"reference": null}, but its reference is not where it should be'),
    ),
}


async def test_statuses_mean_what_the_file_says(tmp_path: Path) -> None:
    """Named statuses decide, all others leave it unknown; an answer that cannot be read is kept."""
    found = {}
    send = 'body = "{outputs.draft}"\nreference = { json = "reference" }'
    with target() as cms:
        async with desk(tmp_path, contract(http(cms.address, send))) as made:
            call = given(await proposed(made))
            for number, (case, (says, _)) in enumerate(STATUSES.items()):
                cms.says = says
                said = await errand(made, call, number)
                if not isinstance(said, NotSent):
                    assert said.response.text.endswith(f"\n\n{says.body.decode()}")
                    said = said.__class__(**{**_fields(said), "response": None})
                found[case] = (says, said)
        assert len(STATUSES) == len(cms.heard)
    assert STATUSES == found


WHOLE = b'HTTP/1.1 201 Created\r\nContent-Length: 26\r\n\r\n{"reference": "harbour@1"}'


CUTS = sorted({*range(0, len(WHOLE), 4), WHOLE.index(b"\r\n\r\n") + 4, len(WHOLE) - 1})
"""Offsets: every fourth byte, the end of the headers, the last byte of all."""


async def test_an_answer_cut_at_any_byte_is_unknown(tmp_path: Path) -> None:
    """However much came of an answer before the connection broke, it is unknown."""
    send = 'body = "{outputs.draft}"\nreference = { json = "reference" }'
    with target() as cms:
        async with desk(tmp_path, contract(http(cms.address, send))) as made:
            call = given(await proposed(made))
            for number in CUTS:
                cms.says = Says(raw=WHOLE[:number])
                said = await errand(made, call, number)

                assert isinstance(said, Unsure), (WHOLE[:number], said)
            cms.says = Says(raw=WHOLE)
            assert "harbour@1" == (await errand(made, call, len(WHOLE))).reference
        assert len(CUTS) + 1 == len(cms.heard)


async def test_a_refused_connection_has_sent_nothing(tmp_path: Path) -> None:
    """Where nobody listens nothing was written: surely not sent, and a look-up there is unclear."""
    address = f"http://127.0.0.1:{free_port()}"
    ask = f'look_up = {{ url = "{address}/keys/{{key}}", statuses = {{ landed = [200], absent = [404] }} }}'
    async with desk(tmp_path, contract(http(address, more=f"approve = false\n{ask}"))) as made:
        call = await proposed(made)
        sent = await errand(made, given(call))
        looked = await errand(made, given(call, ErrandKind.LOOK_UP), 2)

    assert isinstance(sent, NotSent)
    assert sent.reason.startswith("cannot connect: ConnectError")
    assert isinstance(looked, Unsure)


@pytest.mark.parametrize("page", ["..", "."])
async def test_no_value_makes_another_path_of_a_url(page: str, tmp_path: Path) -> None:
    """A value that a target would read as a way out of the path is held before anybody is asked."""
    async with desk(tmp_path, contract(http("http://127.0.0.1:9"))) as made:
        decided = (await asked(made, inputs=json.dumps({"page": page}))).answer.decided

    assert isinstance(decided, HoldBack)
    assert "call" == decided.code


async def test_sources_are_pinned_with_the_call(tmp_path: Path) -> None:
    """The item's own source and those that the effect names come along, each known by its bytes."""
    (tmp_path / "rules").write_text("r")
    (tmp_path / "own").write_text("o")
    more = f'approve = false\nsources = ["{tmp_path}/rules"]'
    async with desk(tmp_path, contract(program("true", more=more))) as made:
        pin = Source(
            path=str(tmp_path / "own"), pin=PinKind.SHA256, sha256=hashlib.sha256(b"o").hexdigest(), size=1
        )
        call = await proposed(made, row=Item(id="i", ordinal=0, source=pin))
        (tmp_path / "rules").unlink()
        gone = (await asked(made, number=2, row=Item(id="i", ordinal=0))).answer.decided

    digests = [hashlib.sha256(raw).hexdigest() for raw in (b"o", b"r")]
    assert digests == [source.sha256 for source in call.sources]
    assert isinstance(gone, TryAgain)


async def test_a_source_is_sent_as_the_bytes_it_was(tmp_path: Path) -> None:
    """`{source}` in a call stands for the bytes of that moment, under the file's own name."""
    source, out = tmp_path / "plate 7.txt", tmp_path / "out"
    source.write_text("first")
    words = ("sh", "-c", 'cat "$1" > "$2"; basename "$1"', "sh", "{source}", str(out))
    async with desk(tmp_path, contract(program(*words))) as made:
        call = await proposed(made, row=Item(id="i", ordinal=0, source=Source(path=str(source))))
        source.write_text("second")
        said = await errand(made, given(call))

    assert ("first", "plate 7.txt") == (out.read_text(), said.reference)


async def test_the_object_is_observed_and_shown(tmp_path: Path) -> None:
    """The version and what the author's program prints for the reviewer come with the call."""
    with target() as cms:
        cms.says = Says(status=200, headers={"ETag": '"3"'}, body=b"")
        show = argv("sh", "-c", "cat $0; echo; echo $1", "{outputs.draft}", "{observed}")
        more = (
            f'approve = {{ by = "group:curators" }}\nshow = {show}\n'
            f'observe = {{ url = "{cms.address}/pages/{{inputs.page}}", statuses = {{ absent = [404] }}, '
            'version = { header = "ETag" } }'
        )
        send = 'body = "{outputs.draft}"\nheaders = { If-Match = "{observed}" }'
        async with desk(tmp_path, contract(http(cms.address, send, more))) as made:
            call = await proposed(made)
            await errand(made, given(call))
            cms.says = Says(status=404)
            absent = await proposed(made, number=2)
            cms.says = Says(status=500, body=b"")
            unclear = (await asked(made, number=3)).answer.decided

    assert '"3"' == call.observed
    assert call.shown is not None
    assert 'Harbour, 1906\n\n"3"\n' == call.shown.text
    assert '"3"' == cms.heard[1].headers["if-match"]
    assert "absent" == absent.observed
    assert TryAgain(code="observe", reason="observe: HTTP 500, and no version where it should be") == unclear


async def test_without_a_client_nobody_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where httpx is not installed a request is held with what to do, before it is asked for."""
    steps = programs.load(contract(http("http://127.0.0.1:9")))
    row = Item(id="i", ordinal=0, outputs=(draft(),))
    run = frames.Run(
        job="j",
        epoch=1,
        item="i",
        number=1,
        step="publish",
        occurrence=1,
        log=str(tmp_path / "log"),
        scratch=str(tmp_path),
        row=row,
        inputs='{"page": "x"}',
    )
    monkeypatch.delitem(sys.modules, "httpx", raising=False)
    monkeypatch.setattr(sys, "path", [])
    decided = (await steps.run(run, Trial())).decided

    reason = "it is an HTTP request, and httpx is not installed: pip install 'resumed[http]'"
    assert HoldBack(code="http", reason=reason) == decided
