"""What authors write of effects: declared, spelled, stored, and made again of the stored words alone."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from effect_flow import Effects, Put, Shown, Tell
from worker_kit import desk, python_contract

import resumed
from resumed.actors.worker import authors, calls, effects, outcomes
from resumed.actors.worker import steps as running
from resumed.actors.worker.tools import PythonTool
from resumed.actors.worker.trial import Trial
from resumed.schemas import decisions, frames
from resumed.schemas.approvals import ApprovalRule
from resumed.schemas.errors import AuthorError
from resumed.schemas.frames import CallGiven, Given, Outcome
from resumed.schemas.job import Artifact, Item
from resumed.schemas.ledger import EffectState, ErrandKind, ToolContract

ASKED = python_contract("effect_flow:Effects", "effects", 1)
CONTRACT = authors.contract_of(Effects, ASKED)
KEY = "ab" * 32


def frame(step: str, item: str = "", **more: Any) -> frames.Run:
    """A `run` frame."""
    row = Item(id=item, ordinal=0, **more.pop("row", {})) if item else None
    base: dict[str, Any] = {
        "epoch": 3,
        "number": 1,
        "occurrence": 1,
        "log": "/dev/null",
        "scratch": "/nonexistent",
    }
    return frames.Run(job="j", item=item, step=step, row=row, **{**base, **more})


async def decided(step: str, item: str = "", **more: Any) -> Any:
    """What the test workflow decides."""
    return (await running.Steps(Effects, CONTRACT).run(frame(step, item, **more), Trial())).decided


async def performed(folder: Path, page: str = "one") -> decisions.Performing:
    """What the test workflow wants to be performed."""
    inputs = json.dumps({"folder": str(folder), "page": page})
    found: decisions.Performing = await decided("start", inputs=inputs, scratch=str(folder / "scratch"))
    return found


def kept(call: decisions.Call) -> tuple[Artifact, ...]:
    """The artifacts that a daemon makes of a call's bytes, which travel in their record."""
    return tuple(
        Artifact(name=each.name, sha256=each.sha256, size=each.size, text=each.text, base64=each.base64)
        for each in call.bodies
    )


def errand(call: decisions.Call, kind: ErrandKind, **more: Any) -> frames.Run:
    """The frame that sends a worker about a stored call."""
    given = CallGiven(
        effect="job/folder.put/1.0",
        kind=kind,
        tool=call.tool,
        version=2,
        operation_key=KEY,
        fingerprint="0" * 64,
        arguments=call.arguments,
        unbound=call.unbound,
        bodies=kept(call),
        attempt=1,
    )
    return frame("start", "", call=evolve(given, **more), number=7)


# ---- declared -------------------------------------------------------------------------------------------


def test_a_class_declares_its_tool_contract() -> None:
    """All that an author says of a target stands in the contract, times in seconds."""
    wanted = ToolContract(
        tool="folder.put",
        version=2,
        target="folder",
        address="file:///shelf",
        account="house",
        look_up=True,
        absent_is_final=True,
        in_flight=0.0,
        unclear_owner="group:curators",
        undo="remove the file by hand",
        timeout=20.0,
        at_once=3,
        observe=True,
        check_first=False,
        unbound=("sent_by",),
    )
    rule = ApprovalRule(by=("group:curators", "user:lee"), quorum=2, via=("cli",))

    assert wanted == CONTRACT.tool("folder.put")
    assert rule == effects.contract_of(Tell).approve
    assert ["folder.put", "mail.tell"] == [each.tool for each in CONTRACT.effects]


def test_only_the_effects_named_are_declared() -> None:
    """With `effects` a workflow has those and no others of its module."""

    @resumed.workflow("effects", version=1, effects=(Tell,))
    class Made:
        @resumed.step(start=True)
        async def start(self, job: Any, state: Any) -> Any:
            return resumed.Done()

    assert ["mail.tell"] == [each.tool for each in authors.contract_of(Made, ASKED).effects]


def declared(
    fields: dict[str, Any] | None = None, methods: dict[str, Any] | None = None, **more: Any
) -> ToolContract:
    """The contract of an effect that is declared so."""

    async def send(self: Any, call: Any) -> Any:
        return resumed.Landed("x")

    async def look_up(self: Any, call: Any) -> Any:
        return resumed.Absent()

    body = {"__annotations__": fields or {"page": str}, "send": send, "look_up": look_up, **(methods or {})}
    body = {name: value for name, value in body.items() if value is not None}
    given = {"version": 1, "target": "cms", "approve": False, **more}
    return effects.contract_of(resumed.effect("t.put", **given)(type("Made", (), body)))


async def _three(self: Any, call: Any, more: Any) -> Any:
    """Takes too much."""


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a list": (lambda: declared({"pages": list[str]}), "pages is of list"),
    "a name that is none": (lambda: declared({"page": "Nowhere"}), "Nowhere"),
    "no send": (lambda: declared(methods={"send": None}), "it has no send"),
    "a send that blocks": (lambda: declared(methods={"send": lambda self, call: None}), "async def send"),
    "a look-up of three": (lambda: declared(methods={"look_up": _three}), "async def look_up"),
    "a show that waits": (lambda: declared(methods={"show": _three}), "def show"),
    "a tool without a version": (lambda: declared(version=0), "version is a whole number"),
    "no target": (lambda: declared(target=""), "target names the system"),
    "an approval by a text": (lambda: declared(approve="curators"), "approve is by"),
    "nobody's name": (lambda: resumed.by("curators"), 'expected "user:NAME" or "group:NAME"'),
    "a condition that is none": (lambda: resumed.by(when="amount is large"), "when: expected NAME"),
    "no quorum": (lambda: resumed.by(quorum=0), "quorum is a whole number"),
    "an absence without its time": (lambda: declared(absent_is_final=True), "in_flight written"),
    "an absence that nobody looks for": (
        lambda: declared(methods={"look_up": None}, absent_is_final=True, in_flight="1m"),
        "absent_is_final needs a look_up",
    ),
    "a key forgotten too soon": (lambda: declared(dedup="90s"), "do not outlast"),
    "a first look that cannot be": (
        lambda: declared(methods={"look_up": None}, check_first=True),
        "check_first",
    ),
    "unbound bytes": (lambda: declared({"body": bytes}, unbound=("body",)), "bytes always bind"),
    "unbound that is none": (lambda: declared(unbound=("when",)), "which is no field"),
    "both undone and not": (lambda: declared(undo="x", irreversible=True), "irreversible"),
    "about nothing": (lambda: declared(about="pages"), "no field of it"),
    "an owner of no kind": (lambda: declared(owner="curators"), "owner"),
    "at once none": (lambda: declared(at_once=0), "at_once"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_declaration_that_cannot_hold_is_refused(case: str) -> None:
    """What cannot be carried out is refused when it is loaded, naming the effect's part."""
    make, said = WRONG[case]
    with pytest.raises(AuthorError, match=said):
        make()


def test_defaults_are_the_careful_ones() -> None:
    """Without a word a target deduplicates nothing, its absence proves nothing, and it is looked up first."""
    found = declared()

    assert found.check_first
    assert not found.absent_is_final
    assert (None, None, 1, 30.0) == (found.key_lifetime, found.in_flight, found.at_once, found.timeout)
    assert not declared(dedup="1d").check_first


# ---- spelled, and made again ----------------------------------------------------------------------------


@pytest.mark.anyio
async def test_arguments_are_canonical_and_bytes_go_by_their_digest(tmp_path: Path) -> None:
    """Every field binds but those that are unbound; bytes by sha256 and size, and they come along."""
    (call,) = (await performed(tmp_path)).calls
    digest = hashlib.sha256(b"text\xff").hexdigest()

    assert call.arguments == (
        f'{{"body":{{"sha256":"{digest}","size":5}},"copies":1,"draft":false,"folder":"{tmp_path}",'
        '"page":"one","price":"1.50","weight":0.5}'
    )
    assert '{"sent_by":"j"}' == call.unbound
    assert [digest] == [each.sha256 for each in call.bodies]
    assert ("0", "one", "the page bears this body") == (
        call.observed,
        call.business_object,
        call.expected_result,
    )
    assert call.shown is not None
    assert "one: b'text\\xff'" == call.shown.text


@pytest.mark.anyio
async def test_a_stored_call_makes_the_same_effect_again(tmp_path: Path) -> None:
    """What is sent is built of the stored words and bytes, in the kinds that the author declared."""
    (call,) = (await performed(tmp_path)).calls
    run = errand(call, ErrandKind.SEND)
    assert run.call is not None
    made = calls.rebuild(Put, run.call, "")

    assert Put(folder=str(tmp_path), page="one", body=b"text\xff", sent_by="j") == made
    assert [Decimal, float, bool] == [type(each) for each in (made.price, made.weight, made.draft)]


@pytest.mark.anyio
@pytest.mark.parametrize("broken", ["rotted", "not there", "a word too many", "a word twice", "a wrong kind"])
async def test_words_that_make_no_effect_are_not_sent(broken: str, tmp_path: Path) -> None:
    """A call that cannot be rebuilt surely left nothing: it is not sent, whatever else comes of it."""
    (call,) = (await performed(tmp_path)).calls
    (body,) = kept(call)
    change: dict[str, Any] = {
        "rotted": {"bodies": (evolve(body, base64="AAAA"),)},
        "not there": {"bodies": (evolve(body, base64=None, text=None),)},
        "a word too many": {"unbound": '{"sent_by":"j","other":1}'},
        "a word twice": {"unbound": '{"sent_by":"j","page":"two"}'},
        "a wrong kind": {"arguments": call.arguments.replace('"copies":1', '"copies":"1"')},
    }[broken]
    tool = running.Steps(Effects, CONTRACT).tool("folder.put")
    said = await tool.send(errand(call, ErrandKind.SEND, **change), Trial())

    assert isinstance(said, decisions.NotSent)
    assert [] == list(tmp_path.iterdir())


BAD_VALUES: dict[str, dict[str, Any]] = {
    "another type": {"page": 7},
    "a bool for an int": {"copies": True},
    "not finite": {"weight": float("inf")},
    "no decimal": {"price": Decimal("NaN")},
    "beyond what JSON keeps": {"copies": 2**53},
    "a NUL": {"page": "a\x00"},
    "half a character": {"page": "\ud83d"},
    "text for bytes": {"body": "text"},
}


@pytest.mark.parametrize("case", BAD_VALUES)
def test_a_value_that_cannot_be_kept_is_the_authors_error(case: str) -> None:
    """What would not read back as it was meant is refused where it was made."""
    made = Put(**{"folder": "/", "page": "p", "body": b"", **BAD_VALUES[case]})
    with pytest.raises(AuthorError, match=r"cannot perform folder\.put"):
        calls.spell(made, "folder.put", ("sent_by",), frame("start"))


@pytest.mark.anyio
async def test_an_effect_that_the_workflow_does_not_declare_is_refused() -> None:
    """A handler performs what its contract says, and nothing else."""

    @resumed.workflow("effects", version=1, effects=(Tell,))
    class Made:
        @resumed.step(start=True)
        async def start(self, job: Any, state: Any) -> Any:
            return resumed.Perform(Put(folder="/", page="p", body=b""))

        @resumed.step
        async def other(self, job: Any, state: Any) -> Any:
            return resumed.Perform(job)

        @resumed.step
        async def none(self, job: Any, state: Any) -> Any:
            return resumed.Perform()

        @resumed.step
        async def nowhere(self, job: Any, state: Any) -> Any:
            return resumed.Perform(Tell(text=None), then="write")  # type: ignore[arg-type]  # never looked at

    steps = running.Steps(Made, authors.contract_of(Made, ASKED))
    for step, said in (("start", "does not declare"), ("other", "not decorated"), ("none", "at least one"),
                       ("nowhere", "no job step")):  # fmt: skip
        with pytest.raises(AuthorError, match=said):
            await steps.run(frame(step), Trial())


@pytest.mark.anyio
async def test_sources_are_pinned_where_nothing_is_known_of_them(tmp_path: Path) -> None:
    """A path becomes a source with its digest; one that cannot be read is the author's error."""
    source = tmp_path / "source"
    source.write_bytes(b"as it was")

    @resumed.workflow("effects", version=1, effects=(Tell,))
    class Made:
        @resumed.step(start=True)
        async def start(self, job: Any, state: Any) -> Any:
            text = Artifact(name="t", sha256=hashlib.sha256(b"").hexdigest(), size=0, text="")
            return resumed.Perform(Tell(text=text), sources=(source,))

    steps = running.Steps(Made, authors.contract_of(Made, ASKED))
    answer = (await steps.run(frame("start"), Trial())).decided
    assert isinstance(answer, decisions.Performing)
    (pinned,) = answer.calls[0].sources

    assert (str(source), hashlib.sha256(b"as it was").hexdigest()) == (pinned.path, pinned.sha256)
    source.unlink()
    with pytest.raises(AuthorError, match="cannot read its source"):
        await steps.run(frame("start"), Trial())


# ---- reviews, questions, and what a step is given -------------------------------------------------------


@pytest.mark.anyio
async def test_reviews_and_questions_are_spelled() -> None:
    """A draft goes with its rule and what is shown, a question with its choices and its time."""
    review = await decided("write", "a", row={"note": "shorter"})
    given = Given(outcomes=(outcome(EffectState.CONFIRMED, reference="r-1"),))
    asked = await decided("landed", given=given)

    assert isinstance(review, decisions.Reviewing)
    assert ("draft of a shorter", "written", True) == (review.draft.text, review.then, review.edit)
    assert ("group:curators",) == review.rule.by
    assert review.shown is not None
    assert decisions.Asking(
        text="go on?", then="answered", choices=("yes", "no"), of="user:lee", within=7200.0
    ) == asked  # fmt: skip


def outcome(state: EffectState, **more: Any) -> Outcome:
    """What became of one effect."""
    return Outcome(effect="job/folder.put/1.0", tool="folder.put", state=state, **more)


W = EffectState.WITHDRAWN
TOLD: dict[str, tuple[Outcome, Any]] = {
    "landed": (outcome(EffectState.CONFIRMED, reference="r"), resumed.Landed("r")),
    "refused": (outcome(EffectState.REJECTED, reason="no"), resumed.Refused("no")),
    "denied": (outcome(W, code="denied", reason="no"), resumed.Denied("no")),
    "sent back": (outcome(W, code="sent_back", reason="shorter"), resumed.SentBack("shorter")),
    "changed": (outcome(W, code="changed", reason="a -> b"), resumed.Changed("a -> b")),
    "lapsed": (outcome(W, code="lapsed", reason="late"), resumed.Lapsed("late")),
    "another": (outcome(W, code="superseded", reason="r"), resumed.Withdrawn("superseded", "r")),
}


@pytest.mark.parametrize("case", TOLD)
def test_a_step_is_given_what_became_of_its_effect(case: str) -> None:
    """Each outcome has its form; several come as a tuple, those that landed among them."""
    said, wanted = TOLD[case]

    assert wanted == outcomes.given(Given(outcomes=(said,)), "")
    assert (wanted, resumed.Landed("r")) == outcomes.given(Given(outcomes=(said, TOLD["landed"][0])), "")


def test_a_step_is_given_texts_and_answers(tmp_path: Path) -> None:
    """A reviewed text comes as text, or as bytes where it is none; an answer as it was given."""
    raw = b"\xff" * 20_000
    large = Artifact(name="draft", sha256=hashlib.sha256(raw).hexdigest(), size=len(raw))
    (tmp_path / large.sha256).write_bytes(raw)
    small = Artifact(name="draft", sha256=hashlib.sha256(b"text").hexdigest(), size=4, text="text")

    assert "text" == outcomes.given(Given(text=small), "")
    assert raw == outcomes.given(Given(text=large), str(tmp_path))
    assert "yes" == outcomes.given(Given(answer="yes"), "")
    assert outcomes.given(None, "") is None


@pytest.mark.anyio
async def test_a_handler_may_take_what_it_is_given_or_not() -> None:
    """A step with a third parameter is given the outcome; one without runs the same."""
    told = await decided("unlanded", given=Given(outcomes=(TOLD["refused"][0],)))

    assert decisions.Failed(reason="no") == told
    assert decisions.Finished() == await decided("end", given=Given(answer="ignored"))

    @resumed.workflow("effects", version=1)
    class Made:
        @resumed.step(start=True)
        async def start(self, job: Any, state: Any, given: Any, more: Any) -> Any:
            return resumed.Done()

    with pytest.raises(AuthorError, match="where it is given what was waited for"):
        authors.contract_of(Made, ASKED)


@pytest.mark.anyio
async def test_a_credential_is_handed_to_the_effect_that_names_it(tmp_path: Path) -> None:
    """`call.secret` has what the effect names and nothing else; it is part of no error, and without it
    nothing is begun."""
    folder = tmp_path / "credentials"
    folder.mkdir(mode=0o700)
    for name, raw in (("token", b"s3cret-word"), ("other", b"of somebody else")):
        (folder / name).write_bytes(raw)
        (folder / name).chmod(0o400)

    @resumed.effect("t.put", version=1, target="cms", approve=False, secrets=("token",))
    class Made:
        page: str

        async def send(self, call: resumed.Call) -> resumed.Landed:
            raise ConnectionError(f"{self.page}: {call.secret(self.page)!r} was not taken")

        async def look_up(self, call: resumed.Call) -> resumed.Landed:
            return resumed.Landed(call.secret("token").decode()[:2])

    tool = PythonTool(Made, effects.contract_of(Made))

    def run(page: str, credentials: Path | None = folder) -> frames.Run:
        given = CallGiven(
            effect="job/t.put/1.0", kind=ErrandKind.SEND, tool="t.put", version=1, operation_key=KEY,
            fingerprint="0" * 64, arguments=json.dumps({"page": page}),
        )  # fmt: skip
        return frame("start", call=given, credentials=str(credentials or ""), scratch=str(tmp_path / "s"))

    with pytest.raises(AuthorError, match="token") as masked:
        await tool.send(run("token"), Trial())
    with pytest.raises(AuthorError, match="asks for the credential 'other', and names token"):
        await tool.send(run("other"), Trial())
    without = await tool.send(run("token", None), Trial())

    assert "s3cret" not in str(masked.value)
    assert decisions.Landed(reference="s3") == await tool.look_up(run("token"), Trial())
    assert isinstance(without, decisions.NotSent)
    assert "cannot hand on the credential 'token'" in without.reason
    assert isinstance(await tool.look_up(run("token", None), Trial()), decisions.Unsure)


# ---- types ----------------------------------------------------------------------------------------------

ARM = "            case Withdrawn(code=code):\n                return Hold(code)\n"


@pytest.mark.timeout(120)
def test_a_type_checker_makes_authors_match_every_outcome(tmp_path: Path) -> None:
    """mypy passes the whole example, and fails it with one arm left out, at that very match."""
    source = Path(__file__).with_name("effect_flow.py").read_text()
    assert ARM in source
    (tmp_path / "whole.py").write_text(source)
    (tmp_path / "short.py").write_text(source.replace(ARM, ""))
    settings = Path(__file__).parents[1] / "pyproject.toml"
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file", str(settings), "whole.py", "short.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in checked.stdout.splitlines() if "error" in line and ".py:" in line]

    assert [True] == ["short.py" in line and "Withdrawn" in line for line in lines], checked.stdout


# ---- in a real worker -----------------------------------------------------------------------------------


ALONE = evolve(CONTRACT, slots=1)
"""The contract of a worker that goes on errands only."""


@pytest.mark.anyio
async def test_a_worker_sends_once_and_looks_up(tmp_path: Path) -> None:
    """A worker of one slot, of a workflow of many, sends, looks up and checks; an error is no answer."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    (call,) = (await performed(shelf)).calls

    async def said(kind: ErrandKind, number: int, **more: Any) -> Any:
        run = evolve(
            errand(call, kind, **more), item="\x1fjob/folder.put/1.0", number=number, scratch=str(tmp_path)
        )
        desk_.worker.send(run)
        answer = await desk_.heard()
        return answer.answer.decided if isinstance(answer, frames.Returned) else answer

    async with desk(tmp_path, ALONE) as desk_:
        assert decisions.Absent() == await said(ErrandKind.LOOK_UP, 1)
        landed = await said(ErrandKind.SEND, 2)
        assert isinstance(landed, decisions.Landed)
        assert (KEY, "attempt 1 of one") == (
            landed.reference,
            landed.response.text if landed.response else "",
        )
        assert b"text\xff" == (shelf / KEY).read_bytes()
        assert decisions.Landed(reference=KEY) == await said(ErrandKind.LOOK_UP, 3)
        again = await said(ErrandKind.SEND, 4)
        assert isinstance(again, frames.Raised)
        assert "FileExistsError" in again.error
        assert decisions.Checked(observed="1") == await said(ErrandKind.CHECK, 5)
        first = await said(ErrandKind.CHECK, 8, first=True)
        assert decisions.Checked(observed="1", found=KEY) == first
        words = call.arguments.replace('"one"', '"forbidden"')
        refused = await said(ErrandKind.SEND, 6, arguments=words)
        assert isinstance(refused, decisions.Refused)
        assert refused.response is not None
        assert "NDAz/w==" == refused.response.base64


def test_the_states_of_the_example_are_kept() -> None:
    """The example's own state is one that can be kept."""
    assert Shown() == running.states.States(Shown).read({})
