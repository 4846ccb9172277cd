"""The call of an effect of programs: how it is stored, and how what is sent is made of what was stored.

Stored are the values of its placeholders by their names, and the call itself with those values in it: `argv`,
or `method`, `url`, `headers` and the body. What stands for bytes, for the key or for a credential stays a
placeholder there, and is filled when it is sent: bytes by their sha256, from the copies kept with the call.
"""

import base64
import hashlib
import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from attrs import evolve, field, frozen

from resumed.schemas import jcs, keys, templates, workfloweffects, workflowhttp
from resumed.schemas.frames import CallGiven
from resumed.schemas.job import Artifact
from resumed.schemas.programeffects import HttpAsk, HttpSend, ProgramEffect

_ARGUMENTS = "cannot read a stored call"
_SOURCE = "source"
_WHOLE = ("item", "job")
_HALVES = ("inputs", "outputs", _SOURCE)
"""The placeholders that a call is stored with, in one word or two."""
_SLASHES = ("source.rel",)
"""Values whose slashes are those of a path, in a URL, too."""
_ALONE = re.compile(r"\{([^{}]+)\}")


class UnfitError(Exception):
    """No call can be made of the values; the text says why."""


@frozen(kw_only=True)
class Request:
    """One HTTP request, whole."""

    method: str
    url: str
    headers: dict[str, str] = field(factory=dict)
    body: bytes = b""


# ---- as it is stored -----------------------------------------------------------------------------------


def stored(effect: ProgramEffect, values: Mapping[str, str], digests: Mapping[str, str]) -> tuple[str, str]:
    """The texts of all that binds and of what does not; UnfitError when the values make no call.

    `values` are those known now, `digests` the sha256 of the bytes, both by placeholder.
    """
    wanted = {name: values[name] for name in workfloweffects.values_of(effect)}
    bound = {name: text for name, text in wanted.items() if name not in effect.unbound}
    unbound = {name: text for name, text in wanted.items() if name in effect.unbound}
    call = _http(effect.send_http, bound) if effect.send_http is not None else _argv(effect, bound)
    try:
        return keys.canonical({**_nested({**bound, **digests}), **call}), keys.canonical(unbound)
    except ValueError as error:
        raise UnfitError(f"cannot spell its arguments: {error}") from None


def _nested(values: Mapping[str, str]) -> dict[str, Any]:
    """Values by the two halves of their names, as people name arguments: `inputs.page` is page in inputs.

    The sha256 of an item's source, which has other values below it, is `source.sha256`.
    """
    found: dict[str, Any] = {}
    for name, text in values.items():
        first, _, rest = name.partition(".")
        if rest or first == _SOURCE:
            found.setdefault(first, {})[rest or "sha256"] = text
        else:
            found[first] = text
    return found


def _flat(stored: Mapping[str, Any]) -> dict[str, str]:
    """The values of a stored call by placeholder, without the parts of the call itself."""
    found: dict[str, str] = {}
    for name, value in stored.items():
        if name in _WHOLE and isinstance(value, str):
            found[name] = value
        elif name in _HALVES and isinstance(value, dict):
            found |= {f"{name}.{rest}": text for rest, text in value.items() if isinstance(text, str)}
    if "source.sha256" in found:
        found[_SOURCE] = found.pop("source.sha256")
    return found


def _argv(effect: ProgramEffect, bound: Mapping[str, str]) -> dict[str, Any]:
    return {"argv": [templates.fill_word_some(word, bound) for word in effect.send]}


def _http(http: HttpSend, bound: Mapping[str, str]) -> dict[str, Any]:
    call: dict[str, Any] = {
        "method": http.method,
        "url": url_of(http, bound),
        "headers": {name: templates.fill_some(text, bound) for name, text in http.headers.items()},
    }
    if http.key_header:
        call["key_header"] = http.key_header
    if http.json:
        call["json"] = _mapped(workflowhttp.json_of(http), lambda text: templates.fill_some(text, bound))
    else:
        call["body"] = templates.fill_some(http.body, bound)
    return call


def url_of(http: HttpSend, values: Mapping[str, str]) -> str:
    """The URL with the values that are known."""
    return templates.fill_some(http.url, _quoted(values))


def _mapped(value: Any, change: Any) -> Any:
    """A JSON value with each of its texts changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: _mapped(inner, change) for name, inner in value.items()}
    return [_mapped(inner, change) for inner in value] if isinstance(value, list) else value


def _quoted(values: Mapping[str, str]) -> dict[str, str]:
    return {
        name: quote(text, safe="/" if name in _SLASHES else "", errors="surrogateescape")
        for name, text in values.items()
    }


# ---- as it is sent -------------------------------------------------------------------------------------


class Stored:
    """A stored call, from which everything that goes out is made.

    `artifacts` is the folder of bytes that do not travel in the frame, `scratch` the errand's own.
    """

    def __init__(self, given: CallGiven, artifacts: str, scratch: str) -> None:
        self._given = given
        self._artifacts = artifacts
        self._scratch = scratch
        found = jcs.read(given.arguments, _ARGUMENTS)
        self._call: dict[str, Any] = found if isinstance(found, dict) else {}
        unbound = jcs.read(given.unbound, _ARGUMENTS)
        texts = {name: text for name, text in unbound.items() if isinstance(text, str)}
        texts |= _flat(self._call)  # what binds is never another's word
        self._digests = {name: text for name, text in texts.items() if workfloweffects.is_bytes(name)}
        self.values = {name: text for name, text in texts.items() if name not in self._digests}
        """The texts by placeholder, the key and what was observed among them."""
        self.values |= {"key": given.operation_key, "observed": given.observed}

    def argv(self, paths: Mapping[str, str]) -> tuple[str, ...]:
        """What is started, with the files of its bytes and credentials; UnfitError when it is no argv."""
        stored = self._call.get("argv")
        if not isinstance(stored, list) or not stored:
            raise UnfitError("the stored call is no argv list")
        return words(tuple(stored), {**self.values, **paths})

    def request(self, secrets: Mapping[str, str]) -> Request:
        """The request that is sent; UnfitError when the stored call makes none."""
        call, values = self._call, self.values
        headers = {
            name: templates.fill(text, {**values, **secrets})
            for name, text in call.get("headers", {}).items()
        }
        if call.get("key_header"):
            headers[call["key_header"]] = self._given.operation_key
        body = self._body()
        if "json" in call and not any(name.lower() == "content-type" for name in headers):
            headers["Content-Type"] = "application/json"
        url = templates.fill(call["url"], _quoted(values))
        return checked(Request(method=call["method"], url=url, headers=headers, body=body))

    def _body(self) -> bytes:
        if "json" in self._call:
            value = _mapped(self._call["json"], lambda text: templates.fill(text, self._with_texts(text)))
            return keys.canonical(value).encode()
        template: str = self._call.get("body", "")
        alone = _ALONE.fullmatch(template)
        if alone and alone[1] in self._digests:
            return self.content(alone[1])
        filled = templates.fill(template, self._with_texts(template))
        return filled.encode("utf-8", "surrogateescape")

    def _with_texts(self, template: str) -> dict[str, str]:
        """The values, with the bytes that a template names as the text they are."""
        named = [name for name in templates.names(template) if name in self._digests]
        try:
            return self.values | {name: self.content(name).decode("utf-8") for name in named}
        except UnicodeDecodeError as error:
            raise UnfitError(f"{{{', '.join(named)}}} is no UTF-8 text: {error.reason}") from None

    def content(self, name: str) -> bytes:
        """The bytes that a placeholder stands for, held against their digest; OSError when they fail it."""
        artifact = self._body_of(name)
        if artifact.base64 is not None:
            raw = base64.b64decode(artifact.base64)
        elif artifact.text is not None:
            raw = artifact.text.encode("utf-8", "surrogatepass")
        else:
            with open(artifact.path or os.path.join(self._artifacts, artifact.sha256), "rb") as file:
                raw = file.read(artifact.size + 1)
        if hashlib.sha256(raw).hexdigest() != self._digests[name]:
            raise OSError(f"the bytes kept for {{{name}}} fail their digest")
        return raw

    def _body_of(self, name: str) -> Artifact:
        for artifact in self._given.bodies:
            if artifact.sha256 == self._digests[name]:
                return artifact
        raise OSError(f"the bytes that {{{name}}} stands for did not come along")

    def paths(self) -> dict[str, str]:
        """Files with the bytes, by placeholder, each a copy of the errand's own."""
        found = {}
        for number, name in enumerate(sorted(self._digests)):
            folder = os.path.join(self._scratch, "bodies", str(number))
            os.makedirs(folder, 0o700, exist_ok=True)
            path = os.path.join(folder, os.path.basename(self._body_of(name).name) or "bytes")
            with open(path, "wb") as file:
                file.write(self.content(name))
            found[name] = path
        return found


def asked(http: HttpAsk, values: Mapping[str, str], secrets: Mapping[str, str]) -> Request:
    """The request of a look-up or an observation; UnfitError when the values make none."""
    headers = {name: templates.fill(text, {**values, **secrets}) for name, text in http.headers.items()}
    url = templates.fill(http.url, _quoted(values))
    return checked(Request(method=http.method, url=url, headers=headers))


def words(argv: tuple[str, ...], values: Mapping[str, str]) -> tuple[str, ...]:
    """An argv list with its values."""
    return tuple(templates.fill_word(word, values) for word in argv)


def checked(request: Request) -> Request:
    """The request, if it can go out as it stands; else UnfitError."""
    path = urlsplit(request.url).path
    if any(part in (".", "..") for part in path.split("/")):
        raise UnfitError(
            f"the URL {request.url!r} has a part `.` or `..`, which targets read as another path"
        )
    for name, text in request.headers.items():
        if not all(" " <= character <= "~" for character in text):
            raise UnfitError(f"the header {name} would hold what is no printable ASCII")
    return request


def tried(effect: ProgramEffect, given: CallGiven, scratch: str) -> None:
    """See that requests can be made of what will be stored, before anybody is asked; else UnfitError."""
    call = Stored(evolve(given, operation_key="0" * 64), "", scratch)
    secrets = {f"secrets.{name}": "x" for name in effect.secrets}
    if effect.send_http is not None:
        call.request(secrets)
    for http in (effect.look_up_http, effect.observe_http):
        if http is not None:
            asked(http, call.values, secrets)
