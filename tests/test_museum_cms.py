"""The content system of the examples: it keeps what it accepts, faults are what they say, counts are true."""

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cms import Cms
from cms_shelf import Shelf
from cms_switches import FAULTS, Switch
from target import Target, Truth


class Clock:
    """An hour of one's own."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Cut(Exception):  # noqa: N818 - an answer of a kind
    """No whole answer came."""


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server(tmp_path: Path, clock: Clock) -> Iterator[Cms]:
    shelf = Shelf(tmp_path / "pages.sqlite3", clock)
    made = Cms(0, shelf)
    serving = threading.Thread(target=made.serve_forever, args=(0.005,))
    serving.start()
    yield made
    made.shutdown()
    made.server_close()
    serving.join()
    shelf.close()


@pytest.fixture
def truth(server: Cms) -> Truth:
    return Truth(server.address)


def ask(
    at: Truth, method: str, path: str, body: str | None = None, *, timeout: float = 20, **headers: str
) -> tuple[int, dict[str, Any], http.client.HTTPMessage]:
    """Status, answer and headers; Cut where no whole answer came."""
    place = urlsplit(at.address)
    assert place.hostname is not None
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=timeout)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, body.encode() if body is not None else None, named)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read()), answer.headers
    except (OSError, http.client.HTTPException) as error:
        raise Cut(repr(error)) from error
    finally:
        connection.close()


def put(at: Truth, key: str = "k1", body: str = "Harbour", **keys: Any) -> tuple[int, dict[str, Any]]:
    status, told, _ = ask(at, "PUT", "/pages/harbour", body, Idempotency_Key=key, **keys)
    return status, told


def look_up(at: Truth, key: str = "k1") -> int:
    return ask(at, "GET", f"/keys/{key}")[0]


def counted(at: Truth) -> tuple[int, int, int]:
    found = at.counts()
    return found["pages"], found["revisions"], found["writes_received"]


def test_page_written_is_read_and_looked_up(truth: Truth) -> None:
    """A write is answered with its reference, read with its version, and found by its key."""
    assert 404 == ask(truth, "GET", "/pages/harbour")[0]

    status, told = put(truth)

    assert (201, "harbour@1", "k1") == (status, told["reference"], told["key"])
    status, page, headers = ask(truth, "GET", "/pages/harbour")
    assert (200, "Harbour", '"1"') == (status, page["body"], headers["ETag"])
    status, found, _ = ask(truth, "GET", "/keys/k1")
    assert (200, "harbour@1", 1) == (status, found["reference"], found["writes"])
    assert (1, 1, 1) == counted(truth)


def test_post_makes_a_page_each_time(truth: Truth) -> None:
    """What makes pages makes another one at each call: the target's count tells a repeat."""
    references = [
        ask(truth, "POST", "/pages/harbour", "Harbour", Idempotency_Key=key)[1]["reference"]
        for key in ("k1", "k2", "k3")
    ]

    assert ["harbour@1", "harbour-2@1", "harbour-3@1"] == references
    assert {"harbour": 1, "harbour-2": 1, "harbour-3": 1} == truth.pages()
    assert (3, 3, 3) == counted(truth)


def test_repeat_under_one_key_is_one_write(truth: Truth) -> None:
    """A repeat is answered as the first was, marked, and counted as received, not as accepted."""
    first = put(truth)
    status, told, headers = ask(truth, "PUT", "/pages/harbour", "Harbour", Idempotency_Key="k1")

    assert first == (status, told)
    assert "true" == headers["Idempotent-Replayed"]
    assert (1, 1, 2) == counted(truth)
    assert ["accepted", "repeated"] == [each["outcome"] for each in truth.requests("write")]


def test_key_of_another_request_is_a_conflict(truth: Truth) -> None:
    """A key that comes with other text writes nothing."""
    put(truth)

    assert 409 == put(truth, body="Port")[0]
    assert "Harbour" == truth.read("harbour")
    assert (1, 1, 2) == counted(truth)


def test_keys_are_forgotten_when_their_life_is_over(truth: Truth, clock: Clock) -> None:
    """Past its life a key no longer deduplicates, though what it wrote is still found by it."""
    truth.settings(key_life=60)
    put(truth)
    clock.now += 59
    put(truth)
    clock.now += 1
    put(truth)

    assert (1, 2, 3) == counted(truth)
    assert 2 == ask(truth, "GET", "/keys/k1")[1]["writes"]


@pytest.mark.parametrize("setting", [{"deduplicate": False}, {"key_life": 0}], ids=["not at all", "at once"])
def test_without_deduplication_a_repeat_is_a_second_write(truth: Truth, setting: dict[str, Any]) -> None:
    """Where keys mean nothing, or are forgotten at once, the same request twice writes twice."""
    truth.settings(**setting)
    put(truth)
    put(truth)

    assert (1, 2, 2) == counted(truth)


def test_versions_bind_a_write(truth: Truth) -> None:
    """A write that names another version than the page's is refused and writes nothing."""
    assert 201 == put(truth, "k1", If_None_Match="*")[0]
    assert 412 == put(truth, "k2", If_None_Match="*")[0]
    assert 412 == put(truth, "k3", If_Match='"7"')[0]
    assert 201 == put(truth, "k4", If_Match='"1"')[0]
    assert (1, 2, 4) == counted(truth)


LOST = {
    "the reply is lost": ("lose_reply", {}, 1),
    "the request is lost": ("lose_request", {}, 0),
    "reset in the answer's first line": ("reset_answer", {"bytes": 5}, 1),
    "reset before any answer": ("reset_answer", {"bytes": 0}, 1),
    "reset in the answer's body": ("reset_answer", {"bytes": 190}, 1),
    "reset in the request's first line": ("reset_request", {"bytes": 7}, 0),
    "reset before any byte of the request": ("reset_request", {"bytes": 0}, 0),
    "an answer that is no HTTP": ("garble", {}, 1),
}


@pytest.mark.parametrize("case", LOST)
def test_lost_write_is_accepted_or_not_as_the_fault_says(truth: Truth, case: str) -> None:
    """The writer hears nothing whole; the target's count and its look-up say what came to be."""
    fault, keys, accepted = LOST[case]
    truth.switch(fault, **keys)

    with pytest.raises(Cut):
        put(truth)

    assert [fault] == truth.faults()
    assert accepted == truth.counts()["revisions"]
    assert (200 if accepted else 404) == look_up(truth)
    assert 201 == put(truth)[0], "the switch is used up"
    assert (1, 1) == counted(truth)[:2]


def test_answer_is_an_error_after_the_write_was_accepted(truth: Truth) -> None:
    """500 says nothing about what was accepted."""
    truth.switch("fail_after")

    assert 500 == put(truth)[0]
    assert (1, 1, 1) == counted(truth)


@pytest.mark.parametrize(("fault", "status"), [("fail_before", 503), ("refuse", 422)])
def test_answer_is_an_error_and_nothing_was_accepted(truth: Truth, fault: str, status: int) -> None:
    """Refused or not now: nothing is written."""
    truth.switch(fault)

    assert status == put(truth)[0]
    assert (0, 0, 1) == counted(truth)


def test_late_answer_comes_when_released(truth: Truth) -> None:
    """What was accepted shows at once; its answer comes when it is released."""
    answers: list[int] = []
    truth.switch("answer_late")
    writer = threading.Thread(target=lambda: answers.append(put(truth)[0]))
    writer.start()
    truth.heard(write=1)

    assert 200 == look_up(truth)
    truth.release(only="writes")
    assert [] == answers
    truth.release(only="answers")
    writer.join(20)
    assert [201] == answers


def test_late_answer_comes_after_its_seconds(truth: Truth) -> None:
    """With seconds given nobody has to release it."""
    truth.switch("answer_late", seconds=0.01)

    assert 201 == put(truth)[0]


def test_write_is_applied_after_its_writer_gave_up(truth: Truth) -> None:
    """Nothing is there, and no look-up sees it, until it is released; then it is there once."""
    truth.settings(deduplicate=False)
    truth.switch("apply_late")

    with pytest.raises(Cut):
        put(truth, timeout=0.1)

    assert (0, 0, 1) == counted(truth)
    assert 404 == look_up(truth)
    truth.release()
    assert (1, 1, 1) == counted(truth)
    assert 200 == look_up(truth)


def test_resend_beside_a_late_write_is_there_twice(truth: Truth) -> None:
    """Without deduplication, whoever sends again while the first is still on its way writes twice."""
    truth.settings(deduplicate=False)
    truth.switch("queue")
    assert 202 == ask(truth, "POST", "/pages/harbour", "Harbour", Idempotency_Key="k1")[0]
    assert 201 == ask(truth, "POST", "/pages/harbour", "Harbour", Idempotency_Key="k1")[0]

    truth.release()

    assert (2, 2, 2) == counted(truth)


def test_write_is_applied_after_its_seconds(truth: Truth, clock: Clock) -> None:
    """With seconds given the clock alone applies it."""
    truth.switch("queue", seconds=30)
    put(truth)
    clock.now += 29
    assert (0, 0, 1) == counted(truth)
    clock.now += 1

    assert (1, 1, 1) == counted(truth)


def test_write_is_shown_late(truth: Truth, clock: Clock) -> None:
    """It is there and answered, and look-ups say it is absent for a while."""
    truth.switch("show_late", seconds=30)

    assert 201 == put(truth)[0]
    assert (1, 1, 1) == counted(truth)
    assert (404, 404) == (look_up(truth), ask(truth, "GET", "/pages/harbour")[0])
    clock.now += 30
    assert (200, 200) == (look_up(truth), ask(truth, "GET", "/pages/harbour")[0])


def test_look_up_meets_faults_of_its_own(truth: Truth) -> None:
    """A fault of look-ups leaves writes alone, and the other way round."""
    truth.switch("fail_before", of="look_up", times=2)
    truth.switch("lose_reply", of="look_up")

    assert 201 == put(truth)[0]
    assert [503, 503] == [look_up(truth), look_up(truth)]
    with pytest.raises(Cut):
        look_up(truth)
    assert 200 == look_up(truth)
    assert ["fail_before", "fail_before", "lose_reply"] == truth.faults("look_up")
    assert [] == truth.faults("write")


def test_switch_of_a_page_leaves_others_alone(truth: Truth) -> None:
    """A fault that names a page waits for a request that names it."""
    truth.switch("lose_request", page="port")
    truth.switch("refuse", page="pier")

    assert 201 == put(truth)[0]
    assert 422 == ask(truth, "PUT", "/pages/pier", "Pier")[0]
    with pytest.raises(Cut):
        ask(truth, "PUT", "/pages/port", "Port")
    assert (1, 1, 2) == counted(truth)


def test_switch_that_makes_no_sense_is_refused() -> None:
    """A fault is known by name, and befalls only what it can."""
    for given in (
        {"fault": "burn"},
        {"fault": "show_late", "of": "look_up"},
        {"fault": "lose_reply", "of": "admin"},
        {"fault": "lose_reply", "often": 2},
        {"fault": "lose_reply", "times": 0},
        {"fault": "lose_reply", "seconds": float("nan")},
    ):
        with pytest.raises(ValueError, match=r"\w"):
            Switch.read(given)
    assert {"lose_reply", "lose_request", "answer_late", "apply_late", "show_late"} <= set(FAULTS)
    assert Switch("reset_answer", times=2, bytes=17) == Switch.parse("reset_answer,bytes=17,times=2")


def test_what_was_accepted_survives_a_kill(tmp_path: Path) -> None:
    """Pages, keys, the record of requests and what is still late are there after SIGKILL."""
    (tmp_path / "token").write_text("sesame\n")
    target = Target(tmp_path, "--token-file", str(tmp_path / "token"), "--switch", "lose_reply")
    target.start()
    try:
        known = {"Authorization": "Bearer sesame"}
        assert 401 == ask(target, "GET", "/keys/k1")[0]
        with pytest.raises(Cut):
            put(target, **known)
        target.switch("queue")
        assert 202 == put(target, "k2", body="Port", **known)[0]
        before = target.address, target.requests()

        target.words = target.words[:2]
        target.kill()
        with pytest.raises(Cut):
            put(target, **known)
        target.start()

        assert before == (target.address, target.requests())
        assert (1, 1) == counted(target)[:2]
        status, told, headers = ask(target, "PUT", "/pages/harbour", "Harbour", Idempotency_Key="k1", **known)
        assert (201, "harbour@1", "true") == (status, told["reference"], headers["Idempotent-Replayed"])
        target.release()
        assert "Port" == ask(target, "GET", "/pages/harbour", **known)[1]["body"]
    finally:
        target.kill()
