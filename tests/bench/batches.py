"""The batch benchmark: one POST of a thousand events, and who waits beside it.

    python -m tests.bench.batches            about a minute
    python -m tests.bench.batches --check    exit 1 when a floor is missed

A SendGrid source takes batches of 1,000 events, each answered after its last row is committed; then
single events come at a fixed rate beside such batches. Prints a Markdown table.
"""

import argparse
import base64
import http.client
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.bench.contenders import ROOT, SECRET_NAME
from tests.bench.requests import make_secret, write_requests
from tests.bench.rig import Launch, Rig, Server, free_port

EVENTS = 1_000
BATCHES = 40
SMALL_PER_S = 200
SMALL_S = 8

RATE_MIN_PER_S = 25_000
SMALL_P99_MAX_MS = 60


def main() -> int:
    options = _options()
    server_core, load_core = map(int, options.cores.split(","))
    rig = Rig(
        options.folder, server_core=server_core, load_core=load_core, realtime=options.realtime
    )
    os.sched_setaffinity(0, {load_core})
    key = ec.generate_private_key(ec.SECP256R1())
    os.environ["SENDGRID_KEY"] = _public(key)
    os.environ[SECRET_NAME] = make_secret()
    try:
        rows = list(_measured(rig, key))
    finally:
        rig.close()
    print("| batches of 1,000 | measured | floor |\n| --- | --- | --- |")
    for name, measured, bound, met in rows:
        print(f"| {name} | {measured:,.1f} | {bound:,} {'' if met else '**missed**'} |")
    return int(options.check and not all(met for *_, met in rows))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="exit 1 when a floor is missed")
    parser.add_argument("--cores", default="1,0", help="core of the server, of the senders")
    parser.add_argument("--realtime", action="store_true", help="for a machine with other work")
    default = Path(tempfile.gettempdir()) / "hookbox-bench"
    parser.add_argument("--folder", type=Path, default=default, help="scratch, on a real disk")
    return parser.parse_args()


def _measured(rig: Rig, key: ec.EllipticCurvePrivateKey) -> Iterator[tuple[str, float, int, bool]]:
    """Name, figure, floor, met."""
    for senders in (1, 4):
        state, port = rig.folder("state"), free_port()
        with rig.serve(_launch(state, port), port) as server:
            took, used = _post_all(server, [_batch(key, n) for n in range(BATCHES)], senders)
        rate = BATCHES * EVENTS / took
        yield f"{senders} at a time: events/s", rate, RATE_MIN_PER_S, rate >= RATE_MIN_PER_S
        yield f"{senders} at a time: µs of server time per event", used, 40, used <= 40
    p99 = _beside(rig, key)
    yield "p99 of single events beside (ms)", p99, SMALL_P99_MAX_MS, p99 <= SMALL_P99_MAX_MS


def _launch(state: Path, port: int) -> Launch:
    config = state.parent / "batches.toml"
    config.write_text(
        f'[server]\nlisten = "127.0.0.1:{port}"\n[local]\nlisten = "off"\n'
        '[source.std]\nprovider = "standardwebhooks"\n'
        f'secret = "env:{SECRET_NAME}"\n'
        '[source.grid]\nprovider = "sendgrid"\nsecret = "env:SENDGRID_KEY"\n'
    )
    command = [sys.executable, "-m", "hookbox", "serve"]
    environment = {"HOOKBOX_CONFIG": str(config), "HOOKBOX_STATE": str(state)}
    return Launch(command=command, cwd=ROOT, environment=environment)


def _public(key: ec.EllipticCurvePrivateKey) -> str:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return base64.b64encode(
        key.public_key().public_bytes(serialization.Encoding.DER, form)
    ).decode()


def _batch(key: ec.EllipticCurvePrivateKey, number: int) -> tuple[dict[str, str], bytes]:
    """One signed POST of about 330 KB."""
    chance = random.Random(number)
    now = int(time.time())
    events = [
        {
            "email": f"user{chance.randrange(100_000)}@example.com",
            "timestamp": now,
            "smtp-id": f"<{chance.randbytes(12).hex()}@mail.example>",
            "event": chance.choice(("processed", "delivered", "open", "click")),
            "category": ["orders", "spring"],
            "sg_event_id": base64.urlsafe_b64encode(chance.randbytes(24)).decode(),
            "sg_message_id": f"{chance.randbytes(16).hex()}.filterdrecv-7c8b-1",
            "order": str(chance.randrange(10**6)),
        }
        for _ in range(EVENTS)
    ]
    body = ("[" + ",\r\n".join(json.dumps(each) for each in events) + "]\r\n").encode()
    stamp = str(now)
    signature = key.sign(stamp.encode() + body, ec.ECDSA(hashes.SHA256()))
    headers = {
        "content-type": "application/json",
        "X-Twilio-Email-Event-Webhook-Signature": base64.b64encode(signature).decode(),
        "X-Twilio-Email-Event-Webhook-Timestamp": stamp,
    }
    return headers, body


def _post_all(
    server: Server, batches: list[tuple[dict[str, str], bytes]], senders: int
) -> tuple[float, float]:
    """Seconds until the last was answered, and microseconds of server time for each event."""
    left = list(batches)
    faults: list[int] = []

    def send() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        while left:
            headers, body = left.pop()
            connection.request("POST", "/hooks/grid", body, headers)
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                faults.append(answer.status)

    used, begun = server.cpu_s(), time.perf_counter()
    threads = [threading.Thread(target=send) for _ in range(senders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - begun
    assert not faults, faults
    return took, (server.cpu_s() - used) / len(batches) / EVENTS * 1e6


def _beside(rig: Rig, key: ec.EllipticCurvePrivateKey) -> float:
    """The p99 of single events at a fixed rate while batches come one after the other."""
    state, port = rig.folder("state"), free_port()
    count = SMALL_PER_S * (SMALL_S + 3)
    small = write_requests(rig.scratch / "small.bin", count, secret=os.environ[SECRET_NAME])
    enough = threading.Event()
    with rig.serve(_launch(state, port), port) as server:

        def keep_sending() -> None:
            number = 1_000
            while not enough.is_set():
                _post_all(server, [_batch(key, number)], 1)
                number += 1

        sender = threading.Thread(target=keep_sending)
        sender.start()
        report = rig.load(server, small, connections=8, seconds=SMALL_S, rate=SMALL_PER_S)
        enough.set()
        sender.join()
    assert report.acknowledged == report.sent, report
    return report.p99_ms


if __name__ == "__main__":
    sys.exit(main())
