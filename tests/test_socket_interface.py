"""The interface as strangers see it: its text, and every method and record through other people's clients."""

import json
import shutil
import subprocess
import types
from collections.abc import AsyncIterator
from enum import Enum
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import anyio.lowlevel
import attrs
import pytest
from anyio import to_thread
from socket_kit import control_call, hear, hear_out, house, say

from resumed.daemon import idl
from resumed.daemon.methods import METHODS, Method
from resumed.schemas import control
from resumed.schemas.refusal import Refusal

pytestmark = pytest.mark.anyio
PLAIN = {int: 7, str: "text", bool: True, float: 1.5}


def filled(kind: Any) -> Any:
    """A value of this type with nothing left out, records and all that is in them."""
    if kind in PLAIN:
        return PLAIN[kind]
    if get_origin(kind) is tuple:
        return (filled(get_args(kind)[0]),)
    if get_origin(kind) is dict:
        return {"key": filled(get_args(kind)[1])}
    if get_origin(kind) in (Union, types.UnionType):
        return filled(next(arm for arm in get_args(kind) if arm is not types.NoneType))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(iter(kind))
    hints = get_type_hints(kind)
    return kind(**{each.name: filled(hints[each.name]) for each in attrs.fields(kind)})


def least(kind: Any) -> dict[str, Any]:
    """The parameters that a call must have, about the job there is."""
    hints = get_type_hints(kind)
    needed = {
        each.name: filled(hints[each.name]) for each in attrs.fields(kind) if each.default is attrs.NOTHING
    }
    return needed | ({"job": "attic"} if "job" in needed else {})


@pytest.fixture
def whole_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every method answers with a whole record, a stream with two."""
    for name, method in METHODS.items():
        monkeypatch.setitem(METHODS, name, answering(method))


def answering(method: Method) -> Method:
    async def serve(*_: Any) -> Any:
        return filled(method.gives)

    async def stream(*_: Any) -> AsyncIterator[Any]:
        yield filled(method.gives), True
        yield filled(method.gives), False

    serve.__doc__ = stream.__doc__ = method.doc.__doc__
    return attrs.evolve(method, serve=method.serve and serve, stream=method.stream and stream)


def test_interface_text_is_checked_in() -> None:
    """The text beside the module is what the method table and its records say."""
    checked_in = Path(idl.__file__).resolve().with_name("org.resumed.Control.varlink")

    assert idl.interface_text() == checked_in.read_text()


def test_interface_names_are_unique() -> None:
    """Types, methods and errors of an interface share one space of names."""
    words = [line.split("(")[0].split()[:2] for line in idl.interface_text().splitlines()]
    names = [each[1] for each in words if each and each[0] in ("type", "method", "error")]

    assert len(set(names)) == len(names) > 20


def test_every_record_is_in_the_text() -> None:
    """Each method with its parameters, each record and each of its fields stands in the text."""
    import varlink

    found = varlink.Interface(idl.interface_text()).members

    assert set(METHODS) <= set(found)
    for name, method in METHODS.items():
        assert [each.name for each in attrs.fields(method.takes)] == list(found[name].in_type.fields)
        assert [each.name for each in attrs.fields(method.gives)] == list(found[name].out_type.fields)
        roles = " or ".join(role.value for role in method.roles)
        mine = ", or that the job is your own" if method.own else ""
        assert f"Needs the role {roles}{mine}." in found[name].doc
        assert ("`more`" in found[name].doc) == (method.stream is not None)


@pytest.mark.usefixtures("whole_answers")
async def test_every_method_by_the_varlink_package(tmp_path: Path) -> None:
    """The PyPI package `varlink` introspects, and calls each method by what the text says of it; the answers
    are what it expects by that text, field for field."""

    def use(path: Path) -> dict[str, list[Any]]:
        import varlink

        found: dict[str, list[Any]] = {}
        with (
            varlink.Client(f"unix:{path}") as client,
            client.open("org.varlink.service") as service,
            client.open(control.INTERFACE) as ours,
        ):
            found["GetInfo"] = [service.GetInfo()]
            for name, method in METHODS.items():
                parameters = least(method.takes)
                if method.serve is not None:
                    found[name] = [getattr(ours, name)(**parameters)]
                if method.stream is not None:
                    found[f"{name} more"] = list(getattr(ours, name)(**parameters, _more=True))
        return found

    import varlink

    async with house(tmp_path) as there:
        found = await to_thread.run_sync(use, there.path)

    assert control.INTERFACE in found.pop("GetInfo")[0]["interfaces"]
    text = varlink.Interface(idl.interface_text())
    for name, answers in found.items():
        method = METHODS[name.removesuffix(" more")]
        expected = json.loads(json.dumps(attrs.asdict(filled(method.gives), value_serializer=_plain)))

        assert [expected] * (2 if name.endswith("more") else 1) == answers
        members = text.members[name.removesuffix(" more")]
        for answer in answers:
            text.filter_params(name, members.out_type, False, answer, None)


def _plain(_record: object, _field: object, value: Any) -> Any:
    return getattr(value, "value", value)


@pytest.mark.usefixtures("whole_answers")
async def test_every_method_by_the_asyncvarlink_package(tmp_path: Path, anyio_backend_name: str) -> None:
    """The PyPI package `asyncvarlink` calls each method, and takes each stream to its end."""
    if anyio_backend_name != "asyncio":
        pytest.skip("asyncvarlink runs on asyncio only")
    import asyncvarlink

    found: dict[str, list[Any]] = {}
    async with house(tmp_path) as there:
        transport, protocol = await asyncvarlink.connect_unix_varlink(
            asyncvarlink.VarlinkClientProtocol, there.path
        )
        for name, method in METHODS.items():
            call = asyncvarlink.VarlinkMethodCall(f"{control.INTERFACE}.{name}", least(method.takes))
            if method.serve is not None:
                reply, _ = await protocol.call(call)
                found[name] = [reply]
            if method.stream is not None:
                call.more = True
                found[f"{name} more"] = [reply async for reply, _ in protocol.call_more(call)]
        transport.close()
        await anyio.lowlevel.checkpoint()

    assert all(reply.error is None for replies in found.values() for reply in replies)
    for name, replies in found.items():
        fields = [each.name for each in attrs.fields(METHODS[name.removesuffix(" more")].gives)]

        assert [fields] * (2 if name.endswith("more") else 1) == [list(each.parameters) for each in replies]


async def test_varlinkctl_works_unchanged(tmp_path: Path) -> None:
    """systemd's `varlinkctl` introspects and calls us."""
    varlinkctl = shutil.which("varlinkctl")
    if varlinkctl is None:
        pytest.skip("this host has no varlinkctl (systemd 255)")
    async with house(tmp_path) as there:

        def use(*words: str) -> str:
            ran = subprocess.run([varlinkctl, *words], capture_output=True, text=True, timeout=30)
            return ran.stdout or ran.stderr

        address = f"unix:{there.path}"
        info = await to_thread.run_sync(use, "info", address)
        text = await to_thread.run_sync(use, "introspect", address, control.INTERFACE)
        status = await to_thread.run_sync(use, "call", "-j", address, f"{control.INTERFACE}.Status", "{}")

    assert control.INTERFACE in info
    assert "method Watch" in text
    assert "keeper" == json.loads(status)["house"]["containment"]


WRONG = {int: ["7", 7.5, True, None, [7]], str: [7, True, ["x"], {"x": 1}], bool: ["true", 1, 0, "no", []]}
"""What is no value of a type, in a message."""


def wrong_values() -> list[tuple[str, str, Any]]:
    """Every parameter of every method, with each value it must not take."""
    found = []
    for name, method in METHODS.items():
        hints = get_type_hints(method.takes)
        for each in attrs.fields(method.takes):
            kind = hints[each.name]
            values: list[Any] = WRONG.get(kind, ["x", {"x": "y"}, [1], 3])
            if each.default is not attrs.NOTHING:
                values = [value for value in values if value is not None]
            found += [(name, each.name, value) for value in values]
    return found


async def test_every_parameter_keeps_its_type(tmp_path: Path) -> None:
    """Each parameter of each method refuses each value of a wrong type by its name, and nothing runs."""
    cases = wrong_values()
    async with house(tmp_path) as there, await there.connect() as stream:
        for name, field, value in cases:
            parameters = least(METHODS[name].takes) | {field: value}
            await say(stream, {**control_call(name, **parameters), "more": True})
            (answer,) = await hear(stream)

            assert control.ERROR_FAULTY == answer["error"], (name, field, value)
            assert f"@ $.{field}" in answer["parameters"]["problems"][0]
        asked = there.jobs.asked

    assert len(cases) > 60
    assert [] == asked


@pytest.mark.parametrize("name", METHODS)
async def test_unknown_and_missing_parameters_are_named(name: str, tmp_path: Path) -> None:
    """A parameter nobody knows, and one that is missing, are each refused by name, for every method."""
    parameters = least(METHODS[name].takes)
    async with house(tmp_path) as there, await there.connect() as stream:
        await say(stream, {**control_call(name, **parameters, jbo="x"), "more": True})
        (unknown,) = await hear(stream)
        missing = []
        for field in parameters:
            rest = {key: value for key, value in parameters.items() if key != field}
            await say(stream, {**control_call(name, **rest), "more": True})
            missing += await hear(stream)
        asked = there.jobs.asked

    assert (control.ERROR_FAULTY, ["unknown key 'jbo' @ $"]) == (
        unknown["error"],
        unknown["parameters"]["problems"],
    )
    for field, answer in zip(parameters, missing, strict=True):
        assert [f"required field {field!r} is missing @ $.{field}"] == answer["parameters"]["problems"]
    assert [] == asked


NULS = {
    "in a text": ({"job": "at\0tic"}, "attic"),
    "alone": ({"job": "\0"}, "attic"),
    "in a name of a parameter": ({"job": "attic", "re\0ason": "x"}, "attic"),
    "after the end": ({"job": "attic\0"}, "attic"),
}


@pytest.mark.parametrize("case", NULS)
async def test_escaped_nul_is_refused(case: str, tmp_path: Path) -> None:
    """A NUL that is spelled inside a message ends no message, cuts no name, and is refused."""
    parameters, _ = NULS[case]
    async with house(tmp_path) as there, await there.connect() as stream:
        await say(stream, control_call("Pause", **parameters))
        (answer,) = await hear(stream)
        asked = there.jobs.asked

    assert (control.ERROR_FAULTY, []) == (answer["error"], asked)


async def test_nuls_between_messages_are_messages(tmp_path: Path) -> None:
    """A NUL too many is an empty message: answered as no call, and the connection is over."""
    async with house(tmp_path) as there, await there.connect() as stream:
        raw = json.dumps(control_call("Status")).encode()
        await stream.send(raw + b"\0\0" + raw + b"\0")
        answers = await hear(stream, 3)

    assert ["house", "reason"] == [next(iter(each["parameters"])) for each in answers]


async def test_half_a_call_and_its_hang_up_are_nothing(tmp_path: Path) -> None:
    """A call whose NUL never came did not happen."""
    async with house(tmp_path) as there:
        async with await there.connect() as stream:
            await stream.send(json.dumps(control_call("Pause", job="attic")).encode())
            await stream.send_eof()
            rest = await hear(stream)
        asked = there.jobs.asked

    assert ([], []) == (rest, asked)


async def test_more_on_a_method_without_a_stream_is_one_answer(tmp_path: Path) -> None:
    """A client that always says `more` gets the one answer there is."""
    async with house(tmp_path) as there, await there.connect() as stream:
        await say(stream, {**control_call("Pause", job="attic"), "more": True})
        answers = await hear_out(stream)

    assert 1 == len(answers)
    assert "told" in answers[0]["parameters"]


async def test_error_in_a_stream_is_its_last_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that meets a refusal, or a fault of ours, ends with one error by name; the next call works."""

    async def refused(*_: Any) -> AsyncIterator[Any]:
        yield filled(METHODS["Watch"].gives), True
        yield Refusal(code="trouble", reason="no more"), False

    async def broken(*_: Any) -> AsyncIterator[Any]:
        yield filled(METHODS["Watch"].gives), True
        raise ZeroDivisionError

    errors = []
    for stream_of in (refused, broken):
        monkeypatch.setitem(METHODS, "Watch", attrs.evolve(METHODS["Watch"], stream=stream_of))
        folder = tmp_path / stream_of.__name__
        folder.mkdir()
        async with house(folder) as there, await there.connect() as stream:
            await say(stream, {**control_call("Watch", job="attic"), "more": True})
            answers = await hear_out(stream)
            await say(stream, control_call("Status"))
            answers += await hear(stream)

        assert [True, None, None] == [each.get("continues") for each in answers]
        errors.append(answers[1]["error"])
        assert "house" in answers[2]["parameters"]

    assert [control.ERROR_REFUSED, control.ERROR_UNKNOWN_OUTCOME] == errors
