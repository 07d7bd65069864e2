"""Making a request as a declared sender would: the scheme's settings, used the other way round."""

import json
from collections.abc import Iterable
from urllib.parse import urlencode

from hookbox.errors import OperatorError
from hookbox.providers.contract import Signed, Simulation
from hookbox.providers.identities import identify
from hookbox.providers.places import Place, Where
from hookbox.providers.plain import specimen
from hookbox.providers.schemes import SECRETS, Scheme
from hookbox.providers.templates import Request
from hookbox.rules.instants import written
from hookbox.rules.reading import at, placed
from hookbox.rules.signatures import encoded_mac

Headers = dict[str, str]


def simulate(scheme: Scheme, wanted: Simulation) -> Signed:
    """A signed request that holds one event of the wanted kind."""
    event, headers = _event(scheme, wanted)
    known = identify(scheme.identity, event, headers.get)
    assert known is not None  # `_event` gave it an id, or parts of a natural key
    document = event if scheme.items is None else placed(None, (*scheme.items, "0"), event)
    time, stamp = _time(scheme, wanted), scheme.stamp
    if stamp:
        document = _put(document, headers, [stamp.place], time)
    document = _put(document, headers, scheme.signed.places(), wanted.id)
    signature = _signature(scheme, wanted.secret, _request(scheme, document, headers, time))
    document = _put(document, headers, [scheme.signature.place], signature)
    return Signed(
        headers=(("content-type", _content_type(scheme)), *headers.items()),
        body=_body(scheme, document),
        key=known.key,
    )


def _event(scheme: Scheme, wanted: Simulation) -> tuple[object, Headers]:
    """What the map reads as the wanted facts, with an identity of its own."""
    example = specimen(scheme.map, wanted)
    document, headers = example.document, dict(example.headers)
    if scheme.identity.id:
        for place in scheme.identity.id.places():
            if place.where is Where.JSON:
                document = placed(document, place.pointer, wanted.id)
            else:
                headers[place.name] = wanted.id
    for pointer in scheme.identity.natural:
        if at(document, pointer) is None:
            document = placed(document, pointer, wanted.id)
    return document, headers


def _put(document: object, headers: Headers, places: Iterable[Place], text: str) -> object:
    """The document, and the headers changed, with a text at every place that is still empty."""
    for place in places:
        if place.where is Where.QUERY:
            raise OperatorError("this source reads the query, which a simulation does not send")
        if place.where is Where.HEADER:
            headers.setdefault(place.name, text)
        elif place.where is Where.JSON and at(document, place.pointer) is None:
            document = placed(document, place.pointer, text)
    return document


def _time(scheme: Scheme, wanted: Simulation) -> str:
    unit = scheme.stamp.unit if scheme.stamp else "s"
    if unit == "iso8601":
        return written(wanted.now)
    return str(wanted.now if unit == "ms" else wanted.now // 1000)


def _request(scheme: Scheme, document: object, headers: Headers, time: str) -> Request:
    """The request as the scheme's template will see it."""
    pairs = []
    if scheme.stamp and scheme.stamp.place.where is Where.PAIR:
        pairs.append((scheme.stamp.place.name.encode(), time.encode()))
    sent = tuple((name.encode(), text.encode()) for name, text in headers.items())
    return Request(sent, b"", _body(scheme, document), scheme.url, scheme.form, pairs)


def _signature(scheme: Scheme, secret: str, request: Request) -> str:
    """The text that stands where the signature is looked for."""
    stamp, form = scheme.stamp.place if scheme.stamp else None, scheme.signature
    signed = scheme.signed.render(request, stamp)
    assert signed is not None  # every part was put in its place
    key = SECRETS[scheme.secret_encoding](secret)
    before, after = form.patterns[0]
    mac = before + encoded_mac(key, signed, scheme.algorithm, form.encoding) + after
    if form.pair:
        every = (*request.pairs, (form.pair, mac))
        mac = form.separator.join(name + b"=" + value for name, value in every)
    return mac.decode("ascii")


def _body(scheme: Scheme, document: object) -> bytes:
    if not scheme.form:
        return json.dumps(document).encode()
    if not isinstance(document, dict) or not all(isinstance(v, str) for v in document.values()):
        raise OperatorError(
            "a form is flat, and this source's map points deeper; write `map` with pointers such "
            "as `/recipient`, for every line"
        )
    return urlencode(document).encode()


def _content_type(scheme: Scheme) -> str:
    return "application/x-www-form-urlencoded" if scheme.form else "application/json"
