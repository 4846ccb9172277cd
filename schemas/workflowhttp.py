"""The HTTP form of an effect's `send`, `look_up` and `observe` tables: requests, and what statuses mean."""

import re
from collections.abc import Collection, Iterator
from typing import Any

from . import codec, strict, templates
from .filetable import Table
from .programeffects import HttpAsk, HttpSend, Place

_METHOD = re.compile(r"[A-Z]{1,20}")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_ORIGIN = re.compile(r"(https?://(?:[A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\])(?::[0-9]{1,5})?)(/[^\s\\#]*)?")
_MEMBER = re.compile(r"[^.\s]+(\.[^.\s]+)*")
_OURS = frozenset(
    (
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "accept-encoding",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "proxy-authorization",
    )
)
"""What the client writes itself: a second one would make two readings of one request."""


def send(table: Table, known: Collection[str], secrets: Collection[str]) -> HttpSend:
    """The request of a `send` table. Credentials stand in headers alone, the operation key anywhere."""
    headers = _headers(table.inner("headers"), {*known, *secrets})
    body, spelled = _body(table, known)
    statuses = _statuses(table, ("landed", "refused", "not_sent"), "landed")
    found = HttpSend(
        method=_method(table, "", required=True),
        url=_url(table, known),
        headers=headers,
        body=body,
        json=spelled,
        key_header=_key_header(table, headers),
        landed=statuses["landed"],
        refused=statuses["refused"],
        not_sent=statuses["not_sent"],
        reference=_place(table.inner("reference")),
    )
    if found.method in ("GET", "HEAD", "OPTIONS", "TRACE", "CONNECT"):
        table.problem("method", f"{found.method} writes nothing")
    table.close()
    return found


def look_up(table: Table, known: Collection[str], secrets: Collection[str]) -> HttpAsk:
    """The request of a `look_up` table, which must have a word for "it is not there"."""
    return _ask(table, {*known}, secrets, ("landed", "absent"), "reference", needs=("landed", "absent"))


def observe(table: Table, known: Collection[str], secrets: Collection[str]) -> HttpAsk:
    """The request of an `observe` table; the version must be found somewhere."""
    found = _ask(table, {*known}, secrets, ("found", "absent"), "version", needs=())
    if found.word is None:
        table.problems.append(f"required key 'version' is missing @ {table.path}")
    return found


def _ask(
    table: Table,
    known: Collection[str],
    secrets: Collection[str],
    words: tuple[str, str],
    place: str,
    needs: tuple[str, ...],
) -> HttpAsk:
    statuses = _statuses(table, words, *needs)
    found, absent = statuses[words[0]], statuses[words[1]]
    asked = HttpAsk(
        method=_method(table, "GET"),
        url=_url(table, known),
        headers=_headers(table.inner("headers"), {*known, *secrets}),
        found=found or (200,),
        absent=absent,
        word=_place(table.inner(place)),
    )
    table.close()
    return asked


def origin(url: str) -> str:
    """Scheme, host and port of a URL: where the target is."""
    found = _ORIGIN.fullmatch(url)
    return found[1] if found else ""


def _method(table: Table, default: str, *, required: bool = False) -> str:
    found = table.text("method", default, required=required)
    if found and not _METHOD.fullmatch(found):
        table.problem("method", f"expected a method such as PUT, got {found!r}")
    return found


def _url(table: Table, known: Collection[str]) -> str:
    url = table.text("url", required=True)
    for problem in templates.problems(url, known):
        table.problem("url", problem)
    if url and not origin(url):
        table.problem(
            "url",
            "expected http:// or https://, a host that is no placeholder, and a path without spaces or #, "
            f"got {url!r}",
        )
    for name in templates.names(url):
        if name.startswith("outputs.") or name == "source":
            table.problem("url", f"{{{name}}} stands for bytes: name it in body")
    return url


def _headers(table: Table | None, known: Collection[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in table.left() if table is not None else ():
        assert table is not None
        text = table.text(name)
        found[name] = text
        for problem in _header_problems(name, text, known, found):
            table.problem(name, problem)
    return found


def _header_problems(name: str, text: str, known: Collection[str], before: Collection[str]) -> Iterator[str]:
    yield from templates.problems(text, known)
    if not _TOKEN.fullmatch(name):
        yield f"{name!r} cannot be a header's name"
    elif name.lower() in _OURS:
        yield f"{name} is written by the client itself"
    if [one.lower() for one in before].count(name.lower()) > 1:
        yield f"{name} stands twice"
    if not all(" " <= character <= "~" for character in text):
        yield "expected printable ASCII"
    for used in templates.names(text):
        if used.startswith("outputs.") or used == "source":
            yield f"{{{used}}} stands for bytes: name it in body"


def _key_header(table: Table, headers: Collection[str]) -> str:
    found = table.text("key_header")
    if found and (not _TOKEN.fullmatch(found) or found.lower() in _OURS):
        table.problem("key_header", f"{found!r} cannot be the header of the key")
    if found.lower() in {name.lower() for name in headers}:
        table.problem("key_header", f"{found} stands in headers, too")
    return found


def _body(table: Table, known: Collection[str]) -> tuple[str, str]:
    """The body as a template, or as the text of a JSON value of templates."""
    value = table.whatever("body")
    if value is None:
        return "", ""
    if isinstance(value, str):
        for problem in templates.problems(value, known):
            table.problem("body", problem)
        return value, ""
    if not isinstance(value, dict | list):
        table.problem("body", "expected text, or a table that is sent as JSON")
        return "", ""
    for text in texts_of(value):
        for problem in templates.problems(text, known):
            table.problem("body", problem)
    return "", codec.dump_plain(value).decode()


def json_of(http: HttpSend) -> Any:
    """The JSON value of templates that is a request's body; None when it has no such body."""
    return strict.parse_own(http.json.encode(), "cannot read a body") if http.json else None


def texts_of(value: Any) -> Iterator[str]:
    """Every text in a JSON value; names of members are none."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from texts_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_of(inner)


def _statuses(table: Table, words: tuple[str, ...], *needed: str) -> dict[str, tuple[int, ...]]:
    inner = table.inner("statuses")
    if inner is None:
        if needed:
            table.problems.append(f"required key 'statuses' is missing @ {table.path}")
        return dict.fromkeys(words, ())
    seen: set[int] = set()
    found: dict[str, tuple[int, ...]] = {}
    for word in words:
        if word in needed and not inner.has(word):
            inner.problems.append(f"required key {word!r} is missing @ {inner.path}")
        codes = tuple(inner.take(word, list, []))
        for code in codes:
            if type(code) is not int or not 200 <= code <= 599:
                inner.problem(word, f"expected statuses of 200 to 599, got {code!r}")
            elif code in seen:
                inner.problem(word, f"{code} stands twice in statuses")
            else:
                seen.add(code)
        if word in needed and not codes and not inner.has(word):
            inner.problem(word, "expected at least one status")
        found[word] = tuple(code for code in codes if type(code) is int)
    inner.close()
    return found


def _place(table: Table | None) -> Place | None:
    if table is None:
        return None
    place = Place(header=table.text("header"), json=table.text("json"))
    if bool(place.header) == bool(place.json):
        table.problems.append(f'expected header = "NAME" or json = "MEMBER" @ {table.path}')
    if place.header and not _TOKEN.fullmatch(place.header):
        table.problem("header", f"{place.header!r} cannot be a header's name")
    if place.json and not _MEMBER.fullmatch(place.json):
        table.problem("json", f"expected the name of a member, or names with dots, got {place.json!r}")
    table.close()
    return place
