"""Credentials: handed by file to whoever names them, and to be found nowhere else, then or afterwards."""

import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from calls_kit import STEP, Says, argv, errand, flow, given, proposed, secret_folder, target
from worker_kit import contract, desk

from resumed.actors import scratch
from resumed.actors.worker import credentials
from resumed.actors.worker.runlog import MASK, RunLog
from resumed.schemas import framelines, frames
from resumed.schemas.decisions import Accepted, Asking, HoldBack, Landed, NotSent, TryAgain, Unsure
from resumed.schemas.ledger import ErrandKind

pytestmark = pytest.mark.anyio

CANARY = "canary-5f2e71c0a9d4"
OTHER = "canary-of-a-step-88"
SHOWS = """
for name in "$RESUMED_CREDENTIALS"/*; do stat -c '%a %F' "$name"; basename "$name"; done
stat -c %a "$RESUMED_CREDENTIALS"; echo "$1"
"""


@pytest.fixture
def anyio_backend() -> str:
    """A worker has one loop, whatever its daemon runs on."""
    return "asyncio"


def hits(folder: Path, *values: str) -> list[str]:
    """Files below a folder that hold one of these texts, the folder of credentials left out."""
    words = [word for value in values for word in ("-e", value)]
    found = subprocess.run(
        ["grep", "-rlaF", "--exclude-dir=vault", *words, str(folder)], capture_output=True, text=True
    )
    return found.stdout.split("\n")[:-1]


def frame_bytes(said: Any) -> bytes:
    """What crossed to the daemon."""
    return (
        framelines.write(said) if isinstance(said, frames.Returned | frames.Raised) else repr(said).encode()
    )


async def test_a_step_is_handed_what_it_names_and_no_more(tmp_path: Path) -> None:
    """A private folder, 0700, with files of 0400, in memory; it is gone when the try is answered."""
    vault = secret_folder(tmp_path / "vault", model=OTHER, cms=CANARY)
    run = argv("sh", "-c", SHOWS, "sh", "{secrets.model}")
    toml = STEP.replace('run = ["true"]', f'run = {run}\nsecrets = ["model"]')
    async with desk(tmp_path, contract(toml)) as made:
        answer = await made.run("draft", credentials=vault)

        assert isinstance(answer.answer.decided, Accepted), answer
        lines = answer.answer.decided.output.text.split("\n")
        assert ["400 regular file", "model", "700"] == lines[:3]
        assert f"{lines[3].rpartition('/')[0]}/model" == lines[3]
        assert lines[3].startswith(credentials.memory(str(tmp_path.parent)))
        assert not os.path.exists(os.path.dirname(lines[3]))


async def test_an_effect_and_its_step_see_their_own_alone(tmp_path: Path) -> None:
    """The program of a step never finds the key that publishes, nor does what is shown to reviewers."""
    vault = secret_folder(tmp_path / "vault", model=OTHER, cms=CANARY)
    listing = argv("sh", "-c", 'ls "$RESUMED_CREDENTIALS"/; env | grep -c canary')
    steps = STEP.replace('run = ["true"]', f'run = {listing}\nsecrets = ["model"]\nexit = {{ 1 = "done" }}')
    sender = argv("sh", "-c", 'ls "$RESUMED_CREDENTIALS"; cat "$1"', "sh", "{secrets.cms}")
    show = argv("sh", "-c", 'echo "[$RESUMED_CREDENTIALS]"')
    effect = flow(f'approve = {{}}\nsecrets = ["cms"]\nshow = {show}\nsend = {sender}', steps)
    async with desk(tmp_path, contract(effect)) as made:
        step = (await made.run("draft", number=2, credentials=vault)).answer.decided
        call = await proposed(made, credentials=vault)
        landed = await errand(made, given(call), credentials=vault)

    assert "model\n0\n" == step.output.text
    assert call.shown is not None
    assert "[]\n" == call.shown.text
    assert "cms" == landed.reference


async def test_canaries_are_found_nowhere(tmp_path: Path) -> None:
    """Planted where programs and targets print, echo and fail with them: no file and no frame has one."""
    vault = secret_folder(tmp_path / "vault", model=f"{OTHER}\n", cms=f"{CANARY}\n")
    loud = argv("sh", "-c", 'cat "$1"; cat "$1" >&2; exit "$2"', "sh", "{secrets.cms}", "{inputs.page}")
    steps = STEP.replace(
        'run = ["true"]',
        f'run = {argv("sh", "-c", "cat $1 >&2; exit 3", "sh", "{secrets.model}")}\nsecrets = ["model"]',
    )
    said: list[Any] = []
    effect = flow(f'approve = false\nsecrets = ["cms"]\nsend = {loud}\nlook_up = {loud}', steps)
    async with desk(tmp_path, contract(effect)) as made:
        said.append(await made.run("draft", number=90, credentials=vault))
        for number, status in enumerate((0, 1, 44, 45, 46)):
            call = await proposed(made, number=number, inputs=f'{{"page": "{status}"}}', credentials=vault)
            said.append(call)
            said.append(await errand(made, given(call), number, credentials=vault))
            asked = given(call, ErrandKind.LOOK_UP)
            said.append(await errand(made, asked, 10 + number, credentials=vault))
    (tmp_path / "http").mkdir()
    with target() as cms:
        cms.says = Says(body=f'{{"reference": "{CANARY}"}}'.encode(), headers={"Location": CANARY})
        send = f"""
approve = false
secrets = ["cms"]
[effect.send]
method = "PUT"
url = "{cms.address}/x"
headers = {{ Authorization = "Bearer {{secrets.cms}}" }}
statuses = {{ landed = [201], refused = [403] }}
"""
        async with desk(tmp_path / "http", contract(flow(send))) as made:
            call = await proposed(made, credentials=vault)
            said.append(call)
            said.append(landed := await errand(made, given(call), credentials=vault))
            cms.says = Says(status=403, body=f"no such token: {CANARY}".encode())
            said.append(await errand(made, given(call), 2, credentials=vault))
            cms.says = Says(raw=b"")
            said.append(await errand(made, given(call), 3, credentials=vault))
    spoken = b"".join(map(frame_bytes, said))

    assert [f"Bearer {CANARY}"] * 3 == [one.headers["authorization"] for one in cms.heard]
    assert Landed(reference=MASK.decode(), response=landed.response) == landed
    assert [] == hits(tmp_path, CANARY, OTHER)
    assert (0, 0) == (spoken.count(CANARY.encode()), spoken.count(OTHER.encode()))
    assert MASK in (tmp_path / "run.log").read_bytes()
    assert not os.path.exists(credentials.memory(str(tmp_path.parent)) + f"/{tmp_path.name}")


LACKING = {
    "no folder at all": (lambda vault: "", "the daemon has no folder of credentials"),
    "no such file": (lambda vault: vault, "put it there (mode 0400), then go on"),
    "a folder for others": (lambda vault: _put(_opened(vault), "x", 0o400), "chmod 0700"),
    "a file for others": (lambda vault: _put(vault, "x", 0o644), "chmod 0400"),
    "an empty file": (lambda vault: _put(vault, "", 0o400), "expected 1 to 1048576 bytes"),
}


def _opened(vault: str) -> str:
    os.chmod(vault, 0o755)
    return vault


def _put(vault: str, text: str, mode: int) -> str:
    path = Path(vault, "cms")
    path.write_text(text)
    path.chmod(mode)
    return vault


@pytest.mark.parametrize("case", LACKING)
async def test_what_is_missing_is_said_before_anybody_is_asked(case: str, tmp_path: Path) -> None:
    """A credential that cannot be handed on holds the step with what to do; a call with it is not sent."""
    prepare, expected = LACKING[case]
    good = secret_folder(tmp_path / "good", cms="x")
    toml = STEP.replace("repeatable", 'secrets = ["cms"]\nrepeatable')
    effect = flow('approve = false\nsecrets = ["cms"]\nsend = ["true"]\nlook_up = ["true"]', toml)
    async with desk(tmp_path, contract(effect)) as made:
        call = await proposed(made, credentials=good)
        vault = prepare(secret_folder(tmp_path / "vault"))
        held = [
            (await made.run(step, number=number, inputs='{"page": "x"}', credentials=vault)).answer.decided
            for number, step in ((5, "draft"), (6, "publish"))
        ]
        sent = await errand(made, given(call), credentials=vault)
        looked = await errand(made, given(call, ErrandKind.LOOK_UP), 2, credentials=vault)

    assert [HoldBack] * 2 == [type(one) for one in held]
    assert ["secrets"] * 2 == [one.code for one in held]
    assert (NotSent, Unsure) == (type(sent), type(looked))
    for said in (*held, sent, looked):
        assert expected in said.reason
        assert "'cms'" in said.reason


async def test_a_header_takes_one_line_of_ascii(tmp_path: Path) -> None:
    """A credential that would end a header, or is no text, is not sent; its value is in no answer."""
    vault = secret_folder(tmp_path / "vault", cms=f"{CANARY}\nX-Other: 1")
    send = """
approve = false
secrets = ["cms"]
[effect.send]
method = "PUT"
url = "http://127.0.0.1:9/x"
headers = { Authorization = "{secrets.cms}" }
statuses = { landed = [201] }
"""
    async with desk(tmp_path, contract(flow(send))) as made:
        said = await errand(made, given(await proposed(made, credentials=vault)), credentials=vault)

    assert isinstance(said, NotSent)
    assert said.reason == "the credential 'cms' cannot stand in a header: expected one line of ASCII"


async def test_what_a_killed_worker_left_is_removed(tmp_path: Path) -> None:
    """A folder that outlived its worker goes with the worker's scratch folder, or at the next start."""
    root = tmp_path / "scratch"
    vault = secret_folder(tmp_path / "vault", cms=CANARY)
    left = []
    for worker in ("w1", "w2", "w3"):
        with credentials.handed(vault, ("cms",), str(root / worker / "try")) as handed:
            os.rename(handed.folder, f"{handed.folder}.left")
            left.append(f"{handed.folder}.left")
    assert [True] * 3 == [os.path.exists(folder) for folder in left]

    scratch.remove_worker(root, "w1")
    assert [False, True, True] == [os.path.exists(folder) for folder in left]

    root.mkdir()
    scratch.empty(root, frozenset({"w2"}))
    assert [False, True, False] == [os.path.exists(folder) for folder in left]

    scratch.empty(root)
    assert not os.path.exists(credentials.memory(str(root)))


async def test_a_place_in_memory_that_is_anothers_is_not_used(tmp_path: Path) -> None:
    """Anybody may make a folder where everybody may: one with other rights is passed by."""
    vault = secret_folder(tmp_path / "vault", cms=CANARY)
    place = credentials.memory(str(tmp_path))
    os.mkdir(place, 0o755)
    try:
        with credentials.handed(vault, ("cms",), str(tmp_path / "w" / "try")) as handed:
            assert Path(handed.folder).is_relative_to(tmp_path)
            assert 0o700 == stat.S_IMODE(os.stat(handed.folder).st_mode)
    finally:
        os.rmdir(place)
    assert not os.path.exists(handed.folder)


MASKED = {
    "whole": ([b"a secret b"], b"a (a credential) b"),
    "in pieces": ([b"a se", b"cr", b"et b"], b"a (a credential) b"),
    "a beginning that goes on otherwise": ([b"sec", b"tion"], b"section"),
    "a beginning at the end": ([b"x secr"], b"x secr"),
    "twice": ([b"secretsecret"], b"(a credential)(a credential)"),
}


@pytest.mark.parametrize("case", MASKED)
async def test_a_log_hides_credentials_however_they_come(case: str, tmp_path: Path) -> None:
    """A value is hidden also where it comes in pieces, and nothing else is lost or held back for ever."""
    pieces, expected = MASKED[case]
    with RunLog(str(tmp_path / "log"), "head") as log:
        log.mask((b"secret", b"abc"))
        for piece in pieces:
            log.write(piece)

    assert b"--- head ---\n" + expected + b"\n" == (tmp_path / "log").read_bytes()


async def test_a_reason_of_its_own_does_not_tell_a_credential(tmp_path: Path) -> None:
    """What a program writes into its result file becomes a reason or a question: without the value."""
    vault = secret_folder(tmp_path / "vault", model=OTHER)
    script = 'echo "{{\\"$2\\": \\"not with $(cat "$1")\\"}}" > "$RESUMED_RESULT"; exit 1'
    found = []
    for number, word in enumerate(("reason", "question")):
        run = argv("sh", "-c", script, "sh", "{secrets.model}", word)
        toml = STEP.replace('run = ["true"]', f'run = {run}\nsecrets = ["model"]')
        (tmp_path / word).mkdir()
        async with desk(tmp_path / word, contract(toml)) as made:
            found.append((await made.run("draft", number=number, credentials=vault)).answer.decided)

    assert TryAgain(reason="not with (a credential)", code="exit-1") == found[0]
    assert Asking(text="not with (a credential)", then="draft") == found[1]


async def test_a_failing_step_does_not_tell_its_credential(tmp_path: Path) -> None:
    """The last line that a program printed is a reason: without the value that stood in it."""
    vault = secret_folder(tmp_path / "vault", model=OTHER)
    run = argv("sh", "-c", 'echo "bad token $(cat "$1")" >&2; exit 1', "sh", "{secrets.model}")
    toml = STEP.replace('run = ["true"]', f'run = {run}\nsecrets = ["model"]')
    async with desk(tmp_path, contract(toml)) as made:
        decided = (await made.run("draft", credentials=vault)).answer.decided

    assert TryAgain(reason="exit 1: bad token (a credential)", code="exit-1") == decided
