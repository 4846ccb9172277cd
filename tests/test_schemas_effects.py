"""Effects and reviews in workflow files: read strictly, every problem with its path."""

import pytest
from calls_kit import STEP, flow

from resumed.actors.worker import programs
from resumed.schemas import advice, workflowfile
from resumed.schemas.approvals import ApprovalRule
from resumed.schemas.errors import FaultyInputError
from resumed.schemas.ledger import ToolContract
from resumed.schemas.programeffects import HttpAsk, HttpSend, Place
from resumed.schemas.workflow import OnUnknown, StepKind

WHOLE = """
on_unknown = "continue"
version = 2
inputs.page = { type = "string" }
inputs.amount = { type = "decimal", default = "0" }
[[step]]
name = "draft"
run = ["true"]
repeatable = true
secrets = ["model.key"]
review = { by = "group:curators", edit = false, decide_within = "2d", show = ["wc", "{output}"] }
[[step]]
name = "tell"
run = ["true"]
repeatable = true
[[effect]]
name = "publish"
after = "draft"
version = 3
target = { name = "cms", account = "museum" }
secrets = ["cms"]
unbound = ["inputs.amount"]
sources = ["/etc/rules", "{source}"]
show = ["cat", "{outputs.draft}", "{observed}"]
undo = "cms withdraw PAGE"
dedup = "24h"
in_flight = "2m"
timeout = "20s"
at_once = 4
owner = "group:web"
absent_is_final = true
check_first = true
[effect.approve]
by = ["group:curators", "user:lee"]
quorum = 2
not_requester = false
decide_within = "72h"
valid_for = "1h"
via = ["socket"]
when = 'inputs.page != "test"'
[effect.send]
method = "PUT"
url = "https://cms.example/pages/{inputs.page}?n={inputs.amount}"
headers = { Authorization = "Bearer {secrets.cms}", If-Match = "{observed}" }
body = "{outputs.draft}"
key_header = "Idempotency-Key"
statuses = { landed = [200, 201], refused = [412], not_sent = [429] }
reference = { json = "page.reference" }
[effect.look_up]
url = "https://cms.example/keys/{key}"
statuses = { landed = [200], absent = [404] }
reference = { json = "reference" }
[effect.observe]
url = "https://cms.example/pages/{inputs.page}"
statuses = { absent = [404] }
version = { header = "ETag" }
"""


def test_effect_is_read_whole() -> None:
    """Every key of an effect and of a review becomes what the law and the worker need."""
    read = workflowfile.read(WHOLE.encode(), "label")
    made = programs.contract_of(read)
    (effect,) = read.effects
    rule = ApprovalRule(
        by=("group:curators", "user:lee"),
        quorum=2,
        not_requester=False,
        decide_within=72 * 3600.0,
        valid_for=3600.0,
        via=("socket",),
        when='inputs.page != "test"',
    )
    tool = ToolContract(
        tool="publish",
        version=3,
        target="cms",
        key_lifetime=86_400.0,
        look_up=True,
        absent_is_final=True,
        in_flight=120.0,
        unclear_owner="group:web",
        undo="cms withdraw PAGE",
        address="https://cms.example",
        account="museum",
        approve=rule,
        timeout=20.0,
        at_once=4,
        observe=True,
        check_first=True,
        unbound=("inputs.amount",),
    )

    assert ((tool,), OnUnknown.CONTINUE) == (made.effects, made.on_unknown)
    assert ["start", "draft", "publish", "tell", "finish"] == [step.name for step in made.steps]
    assert {"draft", "publish", "tell"} == {s.name for s in made.steps if s.kind is StepKind.ITEM}
    assert HttpSend(
        method="PUT",
        url="https://cms.example/pages/{inputs.page}?n={inputs.amount}",
        headers={"Authorization": "Bearer {secrets.cms}", "If-Match": "{observed}"},
        body="{outputs.draft}",
        key_header="Idempotency-Key",
        landed=(200, 201),
        refused=(412,),
        not_sent=(429,),
        reference=Place(json="page.reference"),
    ) == (effect.send_http)
    assert HttpAsk(
        url="https://cms.example/keys/{key}", found=(200,), absent=(404,), word=Place(json="reference")
    ) == (effect.look_up_http)
    assert (("/etc/rules", "{source}"), ("cms",)) == (effect.sources, effect.secrets)
    review = read.steps[0].review
    assert review is not None
    assert (("group:curators",), False, 2 * 86_400.0, False, ("wc", "{output}")) == (
        review.rule.by,
        review.rule.not_requester,
        review.rule.decide_within,
        review.edit,
        review.show,
    )
    assert ("model.key",) == read.steps[0].secrets


def test_effect_has_the_documented_defaults() -> None:
    """What is left out is what INTERFACE.md says; a look-up without deduplication is made first."""
    toml = flow('approve = {}\nsend = ["s"]\nlook_up = ["l", "{key}"]')
    read = workflowfile.read(toml.encode(), "label")
    (tool,) = programs.contract_of(read).effects
    bare = ToolContract(
        tool="publish", version=1, target="cms", look_up=True, check_first=True, approve=ApprovalRule()
    )

    assert bare == tool
    assert ("draft", True) == (read.effects[0].after, read.effects[0].each)


SEND = 'approve = false\nsend = ["s"]\n'
PUT = 'method = "PUT"\nurl = "http://h/p"\n'


def put(more: str = "", statuses: str = "landed = [200]", lines: str = PUT) -> str:
    """An effect in HTTP form."""
    return f"approve = false\n[effect.send]\n{lines}statuses = {{ {statuses} }}\n{more}"


E = "$.effect[0]"
WRONG = {
    "no approve": ('send = ["s"]', f"required key 'approve' is missing (false, or who must say yes) @ {E}"),
    "approve = true": (
        'approve = true\nsend = ["s"]',
        f'expected false, or a table such as {{ by = "group:curators" }} @ {E}.approve',
    ),
    "an unknown key of approve": (
        'approve = { who = "group:a" }\nsend = ["s"]',
        f"unknown key 'who' @ {E}.approve",
    ),
    "nobody's name": (
        'approve = { by = ["curators"] }\nsend = ["s"]',
        f"expected user:NAME or group:NAME, got 'curators' @ {E}.approve.by[0]",
    ),
    "a name twice": (
        'approve = { by = ["user:a", "user:a"] }\nsend = ["s"]',
        f"user:a stands twice @ {E}.approve.by",
    ),
    "more people than there are": (
        'approve = { by = ["user:a"], quorum = 2 }\nsend = ["s"]',
        f"only 1 of 2 people are named in by @ {E}.approve.quorum",
    ),
    "no quorum": (
        'approve = { quorum = 0 }\nsend = ["s"]',
        f"expected at least 1, got 0 @ {E}.approve.quorum",
    ),
    "no time to decide": (
        'approve = { decide_within = "0s" }\nsend = ["s"]',
        f"expected more than 0s @ {E}.approve.decide_within",
    ),
    "a way that decides nothing": (
        'approve = { via = ["incoming"] }\nsend = ["s"]',
        f"expected one of socket, got 'incoming' @ {E}.approve.via[0]",
    ),
    "no condition": (
        'approve = { when = "amount" }\nsend = ["s"]',
        f"expected NAME == | != | <= | >= | < | > VALUE, got 'amount' @ {E}.approve.when",
    ),
    "a condition on nothing": (
        "approve = { when = 'inputs.amount > 3' }\nsend = [\"s\"]",
        (
            "when: expected one of inputs.page, item, job, source.rel, source.stem, got 'inputs.amount' "
            f"@ {E}.approve"
        ),
    ),
    "a condition on a bool": (
        "approve = { when = 'inputs.page == true' }\nsend = [\"s\"]",
        f'when: values are numbers or texts here (write "true" for a bool) @ {E}.approve',
    ),
    "no send": ("approve = false", f"required key 'send' is missing @ {E}"),
    "a shell string": (
        'approve = false\nsend = "curl x"',
        f"expected an argv list, or a table of an HTTP request, got string @ {E}.send",
    ),
    "a placeholder in a script": (
        'approve = false\nsend = ["sh", "-c", "x {item}"]',
        f'no placeholder inside a shell\'s script: pass it as an argument, and use "$1" @ {E}.send[2]',
    ),
    "an output that is made later": (
        'approve = false\nsend = ["s", "{outputs.x}"]',
        f"unknown placeholder {{outputs.x}} @ {E}.send[1]",
    ),
    "what differs at every try": (
        'approve = false\nsend = ["s", "{attempt}", "{output}", "{kept}"]',
        f"unknown placeholder {{attempt}} @ {E}.send[1]",
    ),
    "a secret nobody handed on": (
        'approve = false\nsend = ["s", "{secrets.cms}"]',
        f"unknown placeholder {{secrets.cms}} @ {E}.send[1]",
    ),
    "the key before there is one": (
        f'{SEND}observe = ["o", "{{key}}"]',
        f"unknown placeholder {{key}} @ {E}.observe[1]",
    ),
    "a secret in what is shown": (
        f'{SEND}secrets = ["cms"]\nshow = ["s", "{{secrets.cms}}"]',
        f"unknown placeholder {{secrets.cms}} @ {E}.show[1]",
    ),
    "a version that is not observed": (
        'approve = false\nsend = ["s", "{observed}"]',
        f"unknown placeholder {{observed}} @ {E}.send[1]",
    ),
    "an item of the job's own": (
        'approve = false\neach = false\nsend = ["s", "{item}"]',
        f"unknown placeholder {{item}} @ {E}.send[1]",
    ),
    "no such step": (f'{SEND}after = "x"', f"expected one of draft, got 'x' @ {E}.after"),
    "finality without words": (
        f'{SEND}look_up = ["l"]\nabsent_is_final = true',
        f"in_flight must be written beside it: how long a lost call may still arrive @ {E}.absent_is_final",
    ),
    "finality without look-up": (
        f'{SEND}absent_is_final = true\nin_flight = "1m"',
        f"without look_up nobody says that it is absent @ {E}.absent_is_final",
    ),
    "a check without look-up": (f"{SEND}check_first = true", f"it needs look_up @ {E}.check_first"),
    "undone and irreversible": (
        f'{SEND}undo = "x"\nirreversible = true',
        f"undo says how it is undone: one of both @ {E}.irreversible",
    ),
    "dedup = true": (
        f"{SEND}dedup = true",
        f'expected false, or how long the target knows a key such as "24h" @ {E}.dedup',
    ),
    "no time": (f'{SEND}timeout = "0s"', f"expected more than 0s @ {E}.timeout"),
    "an owner that is none": (
        f'{SEND}owner = "lee"',
        f"expected user:NAME or group:NAME, got 'lee' @ {E}.owner",
    ),
    "unbound and unused": (
        f'{SEND}unbound = ["inputs.page"]',
        f"send does not use {{inputs.page}} @ {E}.unbound[0]",
    ),
    "unbound bytes": (
        'approve = false\nsend = ["s", "{outputs.draft}"]\nunbound = ["outputs.draft"]',
        (
            "expected one of inputs.page, item, job, source.rel, source.stem, got 'outputs.draft' "
            f"@ {E}.unbound[0]"
        ),
    ),
    "a relative source": (f'{SEND}sources = ["x"]', f"expected an absolute path, got 'x' @ {E}.sources[0]"),
    "a secret's name": (
        f'{SEND}secrets = ["../x"]',
        f"a credential's name is at most 64 of A-Z a-z 0-9 . _ -, got '../x' @ {E}.secrets[0]",
    ),
    "a secret twice": (f'{SEND}secrets = ["x", "x"]', f"'x' stands twice @ {E}.secrets[1]"),
    "an unknown key": (f"{SEND}lookup = 1", f"unknown key 'lookup' @ {E}"),
    "no statuses": (
        f"approve = false\n[effect.send]\n{PUT}",
        f"required key 'statuses' is missing @ {E}.send",
    ),
    "no landed": (put(statuses="refused = [400]"), f"required key 'landed' is missing @ {E}.send.statuses"),
    "none at all landed": (
        put(statuses="landed = []"),
        f"expected at least one status @ {E}.send.statuses.landed",
    ),
    "a status of two meanings": (
        put(statuses="landed = [200], refused = [200]"),
        f"200 stands twice in statuses @ {E}.send.statuses.refused",
    ),
    "a status in words": (
        put(statuses='landed = ["2xx"]'),
        f"expected statuses of 200 to 599, got '2xx' @ {E}.send.statuses.landed",
    ),
    "a send that writes nothing": (
        put(lines='method = "GET"\nurl = "http://h/p"\n'),
        f"GET writes nothing @ {E}.send.method",
    ),
    "a host of anybody's choice": (
        put(lines='method = "PUT"\nurl = "http://{inputs.page}/p"\n'),
        (
            "expected http:// or https://, a host that is no placeholder, and a path without spaces or #, "
            f"got 'http://{{inputs.page}}/p' @ {E}.send.url"
        ),
    ),
    "a password in a URL": (
        put(lines='method = "PUT"\nurl = "http://a:b@h/p"\n'),
        (
            "expected http:// or https://, a host that is no placeholder, and a path without spaces or #, "
            f"got 'http://a:b@h/p' @ {E}.send.url"
        ),
    ),
    "a file's scheme": (
        put(lines='method = "PUT"\nurl = "file:///etc/passwd"\n'),
        (
            "expected http:// or https://, a host that is no placeholder, and a path without spaces or #, "
            f"got 'file:///etc/passwd' @ {E}.send.url"
        ),
    ),
    "bytes in a URL": (
        put(lines='method = "PUT"\nurl = "http://h/{outputs.draft}"\n'),
        f"{{outputs.draft}} stands for bytes: name it in body @ {E}.send.url",
    ),
    "a second length": (
        put('headers = { Content-Length = "3" }'),
        f'Content-Length is written by the client itself @ {E}.send.headers["Content-Length"]',
    ),
    "a header of two lines": (
        put('headers = { X = "a\\nb" }'),
        f"expected printable ASCII @ {E}.send.headers.X",
    ),
    "a secret in a body": (
        f'secrets = ["cms"]\n{put("body = " + chr(34) + "{secrets.cms}" + chr(34))}',
        f"unknown placeholder {{secrets.cms}} @ {E}.send.body",
    ),
    "a reference nowhere": (
        put("reference = {}"),
        f'expected header = "NAME" or json = "MEMBER" @ {E}.send.reference',
    ),
    "a look-up that cannot say no": (
        f'{SEND}look_up = {{ url = "http://h/{{key}}", statuses = {{ landed = [200] }} }}',
        f"required key 'absent' is missing @ {E}.look_up.statuses",
    ),
    "a version nowhere": (
        f'{SEND}observe = {{ url = "http://h/x" }}',
        f"required key 'version' is missing @ {E}.observe",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_effect_that_does_not_hold_is_refused(case: str) -> None:
    """Each problem is named with its path, and nothing of the file is used."""
    toml, problem = WRONG[case]
    with pytest.raises(FaultyInputError) as refused:
        workflowfile.read(flow(toml).encode(), "label")

    assert problem in refused.value.problems


NAMES = {
    "a step's name": ("draft", "'draft' is a step's name @ $.effect[0].name"),
    "a name of ours": ("finish", "'finish' is a step's name @ $.effect[0].name"),
    "a name that is none": ("Publish it", "'Publish it' cannot be an effect's name @ $.effect[0].name"),
    "what may stand behind a step": (
        "draft.next",
        "draft.next is the name of what may stand behind draft @ $",
    ),
}


@pytest.mark.parametrize("case", NAMES)
def test_effect_has_a_name_of_its_own(case: str) -> None:
    """An effect is a step like the others, and needs a name that none of them has."""
    name, problem = NAMES[case]
    toml = flow('approve = false\nsend = ["s"]').replace('"publish"', f'"{name}"')
    with pytest.raises(FaultyInputError) as refused:
        workflowfile.read(toml.encode(), "label")

    assert problem in refused.value.problems


REVIEWS = {
    "published before": (
        'review = {}\noutput.publish = "/srv/{item}"',
        "a draft is not published before it is accepted: publish it in a later step @ $.step[0].review",
    ),
    "of the job's own": (
        "review = {}\neach = false",
        "a step with each = false has no item to look at @ $.step[0].review",
    ),
    "an unknown key": ("review = { quorum = 2 }", "unknown key 'quorum' @ $.step[0].review"),
}


@pytest.mark.parametrize("case", REVIEWS)
def test_review_that_does_not_hold_is_refused(case: str) -> None:
    """A review is of an item's draft, before anything is published of it."""
    more, problem = REVIEWS[case]
    with pytest.raises(FaultyInputError) as refused:
        workflowfile.read(f"{STEP}{more}".encode(), "label")

    assert problem in refused.value.problems


def test_private_input_is_in_no_call() -> None:
    """Reviewers are shown all of a call, and a private input is shown nowhere."""
    steps = STEP.replace('type = "string"', 'type = "string", private = true')
    with pytest.raises(FaultyInputError) as refused:
        workflowfile.read(flow('approve = false\nsend = ["s", "{inputs.page}"]', steps).encode(), "label")

    said = "{inputs.page} is private, and reviewers are shown all of a call @ $.effect[0].send[1]"
    assert (said,) == refused.value.problems


def put_with(send: str = "", look_up: str = "", top: str = "") -> str:
    """An effect in HTTP form that gives nothing to think about, changed as a case has it."""
    look = look_up or 'url = "https://h/keys/{key}"'
    return f"""approve = {{}}
undo = "by hand"
in_flight = "1m"
{top or "absent_is_final = true"}
[effect.send]
method = "PUT"
{send or 'url = "https://h/p"'}
statuses = {{ landed = [200] }}
[effect.look_up]
{look}
statuses = {{ landed = [200], absent = [404] }}
"""


ADVICE = {
    "nothing": (put_with(), []),
    "nobody can tell": (
        'approve = {}\nundo = "x"\nsend = ["s"]',
        ["neither look_up nor dedup: when an answer is lost only a person can say what happened"],
    ),
    "absence that is never final": (
        put_with(top="check_first = true"),
        [
            (
                'its "absent" is never final and it does not deduplicate: a call that got lost waits for a '
                "person (absent_is_final, or dedup)"
            )
        ],
    ),
    "a short memory": (
        put_with('url = "https://h/p"\nkey_header = "K"', top='dedup = "90s"'),
        ["dedup does not outlast timeout and in_flight: no call is ever repeated by it"],
    ),
    "a key that is not sent": (
        put_with(top='dedup = "1d"'),
        ["dedup, and its request bears no key: name a key_header, or put {key} in it"],
    ),
    "a key in the body": (put_with('url = "https://h/p"\nbody = { k = "{key}" }', top='dedup = "1d"'), []),
    "a look-up of anything": (
        put_with(look_up='url = "https://h/p"'),
        ["look_up does not ask by {key}: it cannot tell this call from another of the same words"],
    ),
    "no word about undoing": (
        put_with().replace('undo = "by hand"\n', ""),
        ["neither undo nor irreversible: a reviewer is not told whether it can be undone"],
    ),
    "irreversible without anybody": (
        put_with().replace('undo = "by hand"', "irreversible = true").replace("{}", "false", 1),
        ["irreversible, and nobody is asked"],
    ),
    "a credential in clear": (
        put_with(
            'url = "http://h/p"\nheaders = { A = "{secrets.k}" }',
            'url = "http://127.0.0.1/{key}"',
            'absent_is_final = true\nsecrets = ["k"]',
        ),
        ["send goes over the network in clear, with a credential: use https"],
    ),
    "a credential in the file": (
        put_with('url = "https://h/p"\nheaders = { Authorization = "Bearer abc" }'),
        ["the header Authorization is written in the file, stored and shown: use a credential"],
    ),
    "a path that nothing covers": (
        'approve = {}\nundo = "x"\ndedup = "1d"\nsend = ["s", "{inputs.page}"]',
        ["what lies at {inputs.page} is not covered by an approval: name it in sources"],
    ),
    "a path among its sources": (
        'approve = {}\nundo = "x"\ndedup = "1d"\nsources = ["{inputs.page}"]\nsend = ["s", "{inputs.page}"]',
        [],
    ),
}


@pytest.mark.parametrize("case", ADVICE)
def test_what_is_worth_a_thought_is_said(case: str) -> None:
    """Each sentence is a fact about what will happen; an effect that has an answer for all gives none."""
    toml, said = ADVICE[case]
    steps = STEP.replace('"string"', '"path", roots = ["/srv"]') if "path" in case else STEP
    read = workflowfile.read(flow(toml, steps).encode(), "label")
    found = list(advice.of_effects(read, programs.contract_of(read).effects))

    assert [f"{each} @ $.effect[0]" for each in said] == found
