"""The settings of an `hmac` source, read and checked into a Scheme.

Every combination that cannot work, or that would prove less than it seems to, is refused here with
the setting, the reason and the mend, so that `providers/hmac.py` has nothing left to doubt. What
each setting means stands there.
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hookbox.errors import ConfigError
from hookbox.providers.contract import Table
from hookbox.providers.places import ANYWHERE, KEPT, Place, Where, parsed_place
from hookbox.providers.plain import Map, parsed_map
from hookbox.providers.secret_text import (
    base64_secret,
    base64url_secret,
    hex_secret,
    utf8_secret,
    whsec_only,
)
from hookbox.providers.templates import Template, parsed_template
from hookbox.rules.reading import Pointer
from hookbox.rules.signatures import ALGORITHMS, ENCODINGS

SECRETS: Mapping[str, Callable[[str], bytes]] = {
    "utf8": utf8_secret,
    "base64": base64_secret,
    "base64url": base64url_secret,
    "hex": hex_secret,
    "whsec": whsec_only,
}
HMACS = {f"hmac-{name}": name for name in ALGORITHMS}
UNITS = ("s", "ms", "iso8601")
SIG = "{sig}"
SETTINGS = (
    *("signed", "algorithm", "secret_encoding", "url", "signs"),
    *("signature", "signature_pair", "signature_pattern", "signature_separator"),
    *("signature_encoding", "timestamp", "timestamp_unit"),
    *("id", "id_stable", "natural_key", "body", "items", "challenge", "map"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureForm:
    """Where signatures stand, what stands around them, and how they are written."""

    place: Place
    pair: bytes  # the key whose values are signatures; empty when there are no pairs
    separator: bytes  # between the entries of a list; empty when there is no list
    patterns: tuple[tuple[bytes, bytes], ...]  # what stands before and after a signature
    encoding: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """Where the signed time stands and how it is written."""

    place: Place
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What makes an event itself: the sender's id, and what to use when there is none."""

    id: Template | None
    stable: bool
    natural: tuple[Pointer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """A request that wants its own text back: where `when` holds `equals`, `echo` is answered."""

    when: Pointer
    equals: str
    echo: Pointer


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """How one sender signs, names and words its events."""

    algorithm: str
    secret_encoding: str
    signed: Template
    signature: SignatureForm
    stamp: Stamp | None
    identity: Identity
    url: str
    signs_plain: bool
    form: bool
    items: Pointer | None
    challenge: Challenge | None
    map: Map

    def headers(self) -> frozenset[str]:
        """The headers that are read besides those that are proved."""
        places = self.identity.id.places() if self.identity.id else ()
        return self.map.headers() | {p.name for p in places if p.where is Where.HEADER}


def parsed_scheme(table: Table) -> Scheme:
    """The scheme that a source's settings describe."""
    for name in table:
        if name not in SETTINGS:
            near = difflib.get_close_matches(name, SETTINGS, n=1)
            mend = f"did you mean `{near[0]}`?" if near else f"it has: {', '.join(SETTINGS)}"
            raise ConfigError(f"there is no setting `{name}`", where=name, mend=mend)
    form = _signature_form(table)
    stamp = _stamp(table, form)
    scheme = Scheme(
        algorithm=HMACS[_choice(table, "algorithm", tuple(HMACS))],
        secret_encoding=_choice(table, "secret_encoding", tuple(SECRETS), needed=True),
        signed=_signed(table, stamp),
        signature=form,
        stamp=stamp,
        identity=_identity(table),
        url=_text(table, "url"),
        signs_plain=_choice(table, "signs", ("received", "plain")) == "plain",
        form=_choice(table, "body", ("json", "form")) == "form",
        items=_pointer("items", table["items"]) if "items" in table else None,
        challenge=_challenge(table["challenge"]) if "challenge" in table else None,
        map=parsed_map(table.get("map", {})),
    )
    _check_proof(scheme)
    _check_identity(scheme)
    return scheme


def _signature_form(table: Table) -> SignatureForm:
    pair = _text(table, "signature_pair")
    patterns = table.get("signature_pattern", SIG)
    return SignatureForm(
        place=parsed_place("signature", _text(table, "signature", needed=True)),
        pair=pair.encode(),
        separator=_text(table, "signature_separator", "," if pair else "").encode(),
        patterns=tuple(map(_pattern, patterns if isinstance(patterns, list) else [patterns])),
        encoding=_choice(table, "signature_encoding", tuple(ENCODINGS)),
    )


def _pattern(text: object) -> tuple[bytes, bytes]:
    if not isinstance(text, str) or text.count(SIG) != 1 or not text.isascii():
        raise ConfigError(
            f"`{text}` does not say where the signature is",
            where="signature_pattern",
            mend=f'for example "sha256={SIG}", or a list of such texts',
        )
    before, after = text.split(SIG)
    return before.encode(), after.encode()


def _stamp(table: Table, form: SignatureForm) -> Stamp | None:
    if "timestamp" not in table:
        if "timestamp_unit" in table:
            raise ConfigError(
                "a unit without a timestamp",
                where="timestamp_unit",
                mend='say where it is: timestamp = "header:X-Timestamp"',
            )
        return None
    allowed = (*ANYWHERE, Where.PAIR) if form.pair else ANYWHERE
    place = parsed_place("timestamp", table["timestamp"], allowed)
    return Stamp(place=place, unit=_choice(table, "timestamp_unit", UNITS))


def _signed(table: Table, stamp: Stamp | None) -> Template:
    """`{id}` stands for a place of its own, or for nothing where the id is made of several."""
    found = table.get("id")
    single = isinstance(found, str) and "{" not in found
    named = {
        "ts": stamp.place if stamp else None,
        "id": parsed_place("id", found, KEPT) if single else None,
    }
    return parsed_template("signed", _text(table, "signed", needed=True), named)


def _identity(table: Table) -> Identity:
    identity = table.get("id")
    template = None
    if isinstance(identity, str) and "{" in identity:
        template = parsed_template("id", identity, {}, KEPT)
    elif identity is not None:
        template = Template((parsed_place("id", identity, KEPT),))
    pointers = table.get("natural_key", [])
    if not isinstance(pointers, list):
        raise ConfigError("a list", where="natural_key", mend='["/order", "/status", "/time"]')
    return Identity(
        id=template,
        stable=_flag(table, "id_stable", default=True),
        natural=tuple(_pointer("natural_key", each) for each in pointers),
    )


def _challenge(table: object) -> Challenge:
    names = {"when", "equals", "echo"}
    if not isinstance(table, Mapping) or set(table) != names:
        raise ConfigError(
            "a challenge has when, equals and echo",
            where="challenge",
            mend='{ when = "/type", equals = "url_verification", echo = "/challenge" }',
        )
    return Challenge(
        when=_pointer("challenge.when", table["when"]),
        equals=_text(table, "equals", needed=True),
        echo=_pointer("challenge.echo", table["echo"]),
    )


def _check_proof(scheme: Scheme) -> None:
    """What is signed must be what is read, and what is read as a time must be signed."""
    whole, places = scheme.signed.whole, scheme.signed.places()
    covers_body = whole("body") or whole("form_sorted")
    if not covers_body and not places:
        raise ConfigError("nothing of the request is signed", where="signed", mend='"{ts}.{body}"')
    if whole("url") and not scheme.url:
        raise ConfigError(
            "`{url}` needs the address that the sender calls",
            where="signed",
            mend="set `public_url` under [server], or `url` here",
        )
    if whole("form_sorted") and not scheme.form:
        raise ConfigError("`{form_sorted}` is of forms", where="signed", mend='set body = "form"')
    stamp = scheme.stamp.place if scheme.stamp else None
    in_body = stamp is not None and stamp.where is Where.JSON and covers_body
    if stamp and stamp not in places and not in_body:
        raise ConfigError(
            "the timestamp is not signed, so anybody could renew it",
            where="timestamp",
            mend="put `{ts}` into `signed` as the sender does, or leave `timestamp` out",
        )
    if scheme.signature.place.where is Where.JSON and covers_body:
        raise ConfigError("a signature cannot sign itself", where="signature", mend="see `signed`")


def _check_identity(scheme: Scheme) -> None:
    """Every event must end up with a key of its own."""
    identity = scheme.identity
    if identity.id is None and not identity.natural:
        raise ConfigError(
            "nothing says what makes an event itself",
            where="id",
            mend='set id = "/id" or "header:X-Event-Id", or natural_key to a list of pointers',
        )
    if not identity.stable and not identity.natural:
        raise ConfigError(
            "ids that change between attempts identify nothing",
            where="id_stable",
            mend='set natural_key, for example ["/order", "/status", "/occurred_at"]',
        )
    places = identity.id.places() if identity.id else ()
    if scheme.items is not None and scheme.form:
        raise ConfigError("a form holds no list", where="items", mend="leave `items` or `body` out")
    if scheme.items is not None and places and all(p.where is not Where.JSON for p in places):
        raise ConfigError(
            "every event of a batch would have the id of the request",
            where="id",
            mend="point into the event: pointers are relative to each element of `items`",
        )


def _pointer(setting: str, text: object) -> Pointer:
    return parsed_place(setting, text, (Where.JSON,)).pointer if text != "" else ()


def _text(table: Table, name: str, default: str = "", *, needed: bool = False) -> str:
    value = table.get(name, default)
    if not isinstance(value, str) or (needed and not value):
        missing = "this setting is needed" if name not in table else "this must be a text"
        raise ConfigError(missing, where=name, mend=f'{name} = "..."')
    return value


def _flag(table: Table, name: str, *, default: bool) -> bool:
    value = table.get(name, default)
    if not isinstance(value, bool):
        raise ConfigError(
            "this is true or false", where=name, mend=f"{name} = {str(default).lower()}"
        )
    return value


def _choice(table: Table, name: str, known: tuple[str, ...], *, needed: bool = False) -> str:
    """One of the known words; the first of them is the default unless the setting is needed."""
    value = table.get(name, "" if needed else known[0])
    if value not in known:
        what = f"`{value}` is not known" if name in table else "this setting is needed"
        raise ConfigError(what, where=name, mend=f"one of: {', '.join(known)}")
    assert isinstance(value, str)
    return value
