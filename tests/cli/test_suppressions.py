"""`hookbox suppressions`: a person's word about addresses, and lists of them going in and out."""

import csv
import io
import json
import os

import pytest

from hookbox.clock import SystemClock
from hookbox.store.lock import Lock
from tests.cli.shell import Shell, delivery

WHY = ("--reason", "asked us on the phone")

# Nothing in these may break a table, a statement or a file, and none may be taken for another.
HOSTILE = [
    "a+news@example.com",
    '"x@y, z"@example.com',
    "o'brien@example.com",
    "a.b@example.com",
    '"semi;colon"@example.com',
    '"quo\\"te"@example.com',
    "=cmd|'/c'!a1@example.com",
    "-leading@example.com",
    "drop'--@example.com",
    "ünïcode@bücher.example",
    "%@example.com",
]


def reason_of(shell: Shell, address: str) -> str | None:
    """Why the address must not be mailed; None when it may be."""
    result = shell("suppressions", "check", "--json", "--", address)
    told = json.loads(result.stdout)
    assert (result.exit_code == 3) == told["suppressed"]
    return told["reason"]


@pytest.fixture(params=["stopped", "running"])
def box(request: pytest.FixtureRequest) -> Shell:
    """Every change works with the server running or stopped."""
    return request.getfixturevalue("shell" if request.param == "stopped" else "serving")


def test_added_address_is_suppressed_until_somebody_lifts_it(box: Shell) -> None:
    added = box("suppressions", "add", "Ann <Ann@Example.com>", *WHY)
    assert added.exit_code == 0, added.output
    assert added.stdout == "Ann@Example.com is suppressed\n"
    assert reason_of(box, "ann@example.com") == "manual"
    again = box("suppressions", "add", "ann@example.com", *WHY)
    assert "was suppressed already" in again.stdout
    lifted = box("suppressions", "lift", "ANN@example.com", "--reason", "she wrote to us")
    assert lifted.exit_code == 0, lifted.output
    assert reason_of(box, "ann@example.com") is None
    assert box.lines("suppressions", "list") == []
    [row] = box.lines("suppressions", "list", "--all")
    assert row["address"] == "Ann@Example.com"
    assert row["lift_reason"] == "she wrote to us"


def test_lift_of_what_is_not_on_the_list_exits_1_and_records_nothing(box: Shell) -> None:
    assert box("suppressions", "add", "news@x.org", *WHY, "--scope", "news").exit_code == 0
    result = box("suppressions", "lift", "news@x.org", "--reason", "x")
    assert result.exit_code == 1
    assert "is not suppressed" in result.stderr
    assert reason_of(box, "news@x.org") == "manual"
    assert box("suppressions", "lift", "news@x.org", *WHY, "--scope", "news").exit_code == 0
    assert reason_of(box, "news@x.org") is None


@pytest.mark.parametrize(("sudo", "who"), [("eve", "eve"), (None, None)])
def test_decision_names_the_person_also_behind_sudo(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, sudo: str | None, who: str | None
) -> None:
    monkeypatch.delenv("SUDO_USER", raising=False)
    if sudo is not None:
        monkeypatch.setenv("SUDO_USER", sudo)
    monkeypatch.setattr("pwd.getpwuid", lambda number: (_ for _ in ()).throw(KeyError(number)))
    shell("suppressions", "add", "ann@example.com", *WHY)
    shell("suppressions", "lift", "ann@example.com", *WHY)
    [row] = shell.lines("suppressions", "list", "--all")
    assert row["lifted_by"] == (who or f"user {os.getuid()}")


@pytest.mark.parametrize("verb", ["add", "lift"])
@pytest.mark.parametrize("words", [(), ("--reason", " ")])
def test_decision_wants_a_reason(shell: Shell, verb: str, words: tuple[str, ...]) -> None:
    assert shell("suppressions", verb, "ann@example.com", *words).exit_code == 2


def test_what_is_no_address_is_not_added(shell: Shell) -> None:
    result = shell("suppressions", "add", "nonsense", *WHY)
    assert result.exit_code == 2
    assert "not an address" in result.stderr


def test_list_narrows_and_turns_pages(shell: Shell) -> None:
    shell.receive(
        delivery("a", "email.complained", to="a@x.org"),
        delivery("b", "email.complained", to="b@x.org"),
    )
    for name in "cd":
        shell("suppressions", "add", f"{name}@x.org", *WHY, "--scope", name)
    every = shell.lines("suppressions", "list")
    assert [row["address"] for row in every] == ["a@x.org", "b@x.org", "c@x.org", "d@x.org"]
    listed = ("suppressions", "list")
    assert shell.lines(*listed, "--reason", "complaint") == every[:2]
    assert shell.lines(*listed, "--source", "std") == every[:2]
    assert shell.lines(*listed, "--scope", "d") == every[3:]
    assert shell.lines(*listed, "--since", "1h") == every
    assert shell.lines(*listed, "--since", "2999-01-01") == []
    assert shell.lines(*listed, "--limit", "2") == every[2:]
    assert shell.lines(*listed, "--before", str(every[2]["id"])) == every[:2]
    assert shell.lines(*listed, "--after", str(every[0]["id"]), "--limit", "1") == every[1:2]
    assert shell(*listed, "--source", "nobody").exit_code == 1
    assert "complaint" in shell("suppressions").stdout


def test_bounces_suppress_exactly_whom_they_name(shell: Shell) -> None:
    """Through the whole box: nothing is merged, cut, or taken for a statement."""
    named = [*HOSTILE, "B <b@example.com>"]
    shell.receive(
        *(
            delivery(f"k{number}", "email.complained", to=address)
            for number, address in enumerate(named)
        )
    )
    listed = shell.lines("suppressions", "list")
    assert [row["address"] for row in listed] == [*HOSTILE, "b@example.com"]
    for address in HOSTILE:
        assert reason_of(shell, address) == "complaint"
    for near in ("a@example.com", "ab@example.com", "news@example.com", "y@example.com"):
        assert reason_of(shell, near) is None


# --- exchange


def imported(shell: Shell, text: str | bytes, *words: str) -> tuple[int, str]:
    """Exit code and all that was said about this list on the standard input."""
    result = shell("suppressions", "import", "-", *words, typed=text)
    return result.exit_code, result.output


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_exported_list_comes_back_unchanged(shell: Shell, form: tuple[str, ...]) -> None:
    for address in HOSTILE:
        assert shell("suppressions", "add", *WHY, "--", address).exit_code == 0, address
    shell("suppressions", "add", "gone@x.org", *WHY)
    shell("suppressions", "lift", "gone@x.org", *WHY)
    shell("suppressions", "add", "news@x.org", *WHY, "--scope", "a, list")
    shell.receive(delivery("k", "email.complained", to="late@x.org"))
    before = shell.lines("suppressions", "list")
    exported = shell("suppressions", "export", "--all", *form).stdout_bytes

    other = Shell(config=shell.config, state=shell.state.with_name("other"))
    code, told = imported(other, exported)
    assert (code, told) == (0, "13 suppressed, 0 were already; 1 lifted ones left out\n")
    after = other.lines("suppressions", "list")
    kept = ("address", "scope", "reason", "since")
    assert [[row[name] for name in kept] for row in after] == [
        [row[name] for name in kept] for row in before
    ]
    for address in HOSTILE:
        assert reason_of(other, address) == "manual"
    for near in ("a@example.com", "ab@example.com", "news@example.com", "y@example.com"):
        assert reason_of(other, near) is None


def test_export_has_the_columns_of_the_view(shell: Shell) -> None:
    shell("suppressions", "add", "ann@example.com", *WHY)
    [row] = csv.DictReader(io.StringIO(shell("suppressions", "export").stdout))
    assert list(row) == [
        "address", "scope", "reason", "since", "event_id", "source", "lifted_at", "lifted_by",
        "lift_reason",
    ]  # fmt: skip
    assert shell.lines("suppressions", "export") == [
        {name: value or ("" if name == "scope" else None) for name, value in row.items()}
    ]


def test_bare_list_of_addresses_is_imported(box: Shell) -> None:
    assert imported(box, "ann@example.com\r\n\r\nBob <bob@example.com>\r\n")[0] == 0
    assert reason_of(box, "ann@example.com") == reason_of(box, "bob@example.com") == "imported"


def test_list_of_another_program_is_imported(shell: Shell) -> None:
    sheet = "\ufeffEmail,Created,Reason\nann@example.com,2024-01-31 10:00:00,mailbox full\n"
    assert imported(shell, sheet)[0] == 0
    assert reason_of(shell, "ann@example.com") == "imported"


def test_import_keeps_the_earlier_cause(box: Shell) -> None:
    old, new = "2020-01-01T00:00:00Z", "2024-01-01T00:00:00Z"
    rows = f"address,reason,since\nann@x.org,complaint,{new}\nbob@x.org,hard_bounce,{old}\n"
    assert imported(box, rows)[0] == 0
    rows = f"address,reason,since\nann@x.org,hard_bounce,{old}\nbob@x.org,complaint,{new}\n"
    assert imported(box, rows) == (0, "0 suppressed, 2 were already\n")
    listed = {row["address"]: row for row in box.lines("suppressions", "list")}
    assert listed["ann@x.org"]["reason"] == listed["bob@x.org"]["reason"] == "hard_bounce"
    assert listed["ann@x.org"]["since"].startswith("2020")


def test_importing_again_changes_nothing(shell: Shell) -> None:
    for _ in range(3):
        assert imported(shell, "ann@example.com\n")[0] == 0
    [told] = shell.lines("recipients", "show", "ann@example.com")
    assert [len(row["causes"]) for row in told["suppressions"]] == [1]


BAD = """address,since
good@x.org,2024-01-01
nonsense,2024-01-01
also@x.org,yesterday
"two\x07bells"@x.org,2024-01-01
fine@x.org,
"""


def test_bad_rows_are_named_and_nothing_is_half_imported(box: Shell) -> None:
    box("suppressions", "add", "other@x.org", *WHY)
    code, told = imported(box, BAD)
    assert code == 1
    assert "line 3: 'nonsense' is not an address" in told
    assert "line 4: 'yesterday' is not a time" in told
    assert "line 5: " in told
    assert "\x07" not in told
    assert "nothing was imported" in told
    assert [row["address"] for row in box.lines("suppressions", "list")] == ["other@x.org"]


def test_good_rows_are_taken_on_request(box: Shell) -> None:
    code, told = imported(box, BAD, "--skip-bad")
    assert code == 0
    assert "line 3:" in told
    assert told.endswith("2 suppressed, 0 were already\n")
    assert reason_of(box, "good@x.org") == reason_of(box, "fine@x.org") == "imported"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"address": "a@x.org"}\n{"address": 3}\n', 2),
        ('{"address": "a@x.org"}\n[]\n', 2),
        ('{"address": "a@x.org"}\n\n{"address": \n', 3),
        ('{"address": "a@x.org", "scope": "\\u0000"}\n', 1),
        (b"address\n\xff\xfe@x.org\n", 2),
        ('address\na@x.org\n"never closed@x.org\n', 3),
        ("[" * 100_000, 1),
        ("a@x.org\n" + "x" * 200_000 + "\n", 2),
    ],
)
def test_unreadable_row_has_its_line(shell: Shell, text: str | bytes, line: int) -> None:
    code, told = imported(shell, text)
    assert code == 1
    assert f"line {line}: " in told


def test_hopeless_file_does_not_fill_the_screen(shell: Shell) -> None:
    code, told = imported(shell, "nonsense\n" * 3_000)
    assert code == 1
    assert "and 2980 more" in told
    assert told.count("\n") < 30


def test_list_longer_than_a_transaction_is_imported_whole(box: Shell) -> None:
    rows = "".join(f"u{number}@x.org\n" for number in range(1_234))
    assert imported(box, rows) == (0, "1234 suppressed, 0 were already\n")
    assert imported(box, rows) == (0, "0 suppressed, 1234 were already\n")


def test_time_ahead_of_ours_is_now(shell: Shell) -> None:
    """A lift at any later moment must be able to hold against it."""
    ahead = SystemClock().now() + 7_200_000
    assert imported(shell, f"address,since\nann@example.com,{ahead}\n")[0] == 0
    assert shell("suppressions", "lift", "ann@example.com", *WHY).exit_code == 0
    assert reason_of(shell, "ann@example.com") is None


def test_file_that_is_not_there_exits_1(shell: Shell) -> None:
    result = shell("suppressions", "import", "nowhere.csv")
    assert result.exit_code == 1
    assert "nowhere.csv" in result.stderr


# --- locked databases


@pytest.mark.parametrize(
    "words",
    [
        ("suppressions", "add", "ann@example.com", *WHY),
        ("suppressions", "lift", "ann@example.com", *WHY),
        ("suppressions", "import", "-"),
        ("events", "replay", "1"),
        ("events", "forget", "k", "--source", "std", *WHY),
    ],
    ids=lambda words: f"{words[0]}-{words[1]}",
)
def test_change_beside_a_process_that_does_not_answer_exits_75(
    shell: Shell, words: tuple[str, ...]
) -> None:
    shell.receive()
    lock = Lock(shell.state)
    lock.acquire()
    try:
        result = shell(*words, typed="ann@example.com\n")
    finally:
        lock.release()
    assert result.exit_code == 75
    assert shell.lines("suppressions", "list") == []


def test_question_is_answered_while_another_process_holds_the_box(shell: Shell) -> None:
    shell("suppressions", "add", "ann@example.com", *WHY)
    lock = Lock(shell.state)
    lock.acquire()
    try:
        assert reason_of(shell, "ann@example.com") == "manual"
        assert shell("recipients", "show", "ann@example.com").exit_code == 0
    finally:
        lock.release()


# --- spellings


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("ann@bücher.example", "ann@xn--bcher-kva.example"),
        ("ann@xn--bcher-kva.example", "ann@BÜCHER.example"),
        ("ann@bu\u0308cher.example", "ann@b\u00fccher.example"),
        ("ann@example.com.", "ann@example.com"),
        ('"ann"@example.com', "ann@example.com"),
        ("Ann Smith <ANN@Example.COM>", "ann@example.com"),
        ("Müller@example.com", "müller@example.com"),
    ],
)
def test_spellings_of_one_address_are_one(shell: Shell, stored: str, asked: str) -> None:
    assert shell("suppressions", "add", stored, *WHY).exit_code == 0
    assert reason_of(shell, asked) == "manual"
    assert shell("recipients", "show", asked).exit_code == 0


@pytest.mark.parametrize(
    "near",
    [
        "p\u0430ypal@example.com",  # a Cyrillic letter
        "pay.pal@example.com",
        "paypal+x@example.com",
        "paypal@example.com.org",
        "paypal@examp1e.com",
        "paypal@ex\u0430mple.com",
    ],
)
def test_look_alike_is_another_address(shell: Shell, near: str) -> None:
    assert shell("suppressions", "add", "paypal@example.com", *WHY).exit_code == 0
    assert reason_of(shell, near) is None
