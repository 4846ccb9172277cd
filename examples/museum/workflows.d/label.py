"""The museum label in Python: the twin of `label.toml`, and the shape of every effect in Python.

`label-py.toml` beside it puts it on the shelf. What a handler returns is all that exists: it may be killed
anywhere and is entered again with the same job and item. The content system is reached by the effect alone.
"""

import json
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import assert_never
from urllib.parse import quote, urlsplit

from draft import label_of

from resumed import (
    Absent,
    Accept,
    Call,
    Changed,
    Denied,
    Done,
    Each,
    Fail,
    Hold,
    Item,
    ItemDecision,
    Job,
    JobDecision,
    Landed,
    Lapsed,
    Next,
    NotSent,
    Perform,
    Refused,
    SentBack,
    Unlanded,
    Unsure,
    Withdrawn,
    by,
    effect,
    step,
    workflow,
)

CMS = "http://127.0.0.1:8080"


@effect(
    "cms.publish",
    version=1,
    target="cms",
    address=CMS,
    approve=by("group:curators", decide_within="72h", valid_for="24h"),
    timeout="2s",
    in_flight="2s",
    absent_is_final=True,
    irreversible=True,
    about="page",
    expects="the page says this text, in its first revision",
)
class Publish:
    """One new page. Both fields bind: an approval of it covers no other page and no other text."""

    page: str
    body: bytes

    async def send(self, call: Call) -> Landed | Refused | NotSent | Unsure:
        """201 is the target's word for yes, 4xx for no; nobody can tell anything from other statuses."""
        headers = {"Idempotency-Key": call.key, "Content-Type": "text/plain; charset=utf-8"}
        try:
            status, told = exchange(call, "POST", f"/pages/{quote(self.page)}", self.body, headers)
        except ConnectionRefusedError as error:
            return NotSent(f"nobody listens at {call.address}: {error}")
        if status == 201:
            return Landed(json.loads(told)["reference"], told)
        if 400 <= status < 500:
            return Refused(f"status {status}", told)
        return Unsure(f"status {status}", told)

    async def look_up(self, call: Call) -> Landed | Absent | Unsure:
        """What was written under this key: 404 is the target's word for nothing."""
        status, told = exchange(call, "GET", f"/keys/{call.key}")
        if status == 200:
            return Landed(json.loads(told)["reference"], told)
        return Absent(told) if status == 404 else Unsure(f"status {status}", told)

    async def observe(self, call: Call) -> str:
        """The page's version; empty where there is no such page."""
        status, told = exchange(call, "GET", f"/pages/{quote(self.page)}")
        if status not in (200, 404):
            raise HTTPException(f"status {status}")
        return str(json.loads(told)["revision"]) if status == 200 else ""


def exchange(
    call: Call, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> tuple[int, bytes]:
    """One request, and its answer whole. It blocks its worker, which has nothing else to do, and no longer
    than the contract allows: whatever it raises leaves the outcome unknown."""
    place = urlsplit(call.address)
    connection = HTTPConnection(place.hostname or "", place.port, timeout=call.timeout)
    try:
        connection.request(method, path, body, headers or {})
        answer: HTTPResponse = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@workflow("label-py", version=1)
class Label:
    """One label for each item of the job."""

    @step(start=True)
    async def begin(self, job: Job, state: None) -> JobDecision:
        """All objects of the job, one after the other."""
        return Each(job.items, start="draft", then="finish")

    @step(item=True)
    async def draft(self, job: Job, item: Item) -> ItemDecision:
        """The text, and the wish to publish it; what a curator wrote when it was sent back is in the note."""
        assert item.source is not None
        text = label_of(item.source.path, item.note).encode()
        return Perform(
            Publish(page=item.id, body=text),
            sources=(item.source,),
            then="published",
            otherwise="again",
            back="draft",
        )

    @step(item=True)
    async def published(self, job: Job, item: Item, landed: Landed) -> ItemDecision:
        """It is there."""
        return Accept(landed.reference)

    @step(item=True)
    async def again(self, job: Job, item: Item, outcome: Unlanded) -> ItemDecision:
        """Whatever else may come of it: a type checker says when one is left out."""
        match outcome:
            case Changed() | SentBack():
                return Next("draft")
            case Denied(reason):
                return Fail(f"denied: {reason}")
            case Refused(reason):
                return Hold(f"the content system refused: {reason}")
            case Lapsed(reason) | Withdrawn(_, reason):
                return Hold(reason)
            case _:
                assert_never(outcome)

    @step
    async def finish(self, job: Job, state: None) -> JobDecision:
        """All labels are published or given up."""
        return Done()
