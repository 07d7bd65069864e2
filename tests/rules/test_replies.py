"""What receiving servers reply, read from the prose that senders hand on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookbox.model import BounceClass
from hookbox.rules.replies import Reply, bounce_class, enhanced_code, reply


@pytest.mark.parametrize(
    ("text", "code", "enhanced"),
    [
        ("550 5.1.1 The email account does not exist", 550, "5.1.1"),
        ("smtp;550 5.1.1 The email account", 550, "5.1.1"),
        ("smtp; 550 5.1.1 user unknown", 550, "5.1.1"),
        ("SMTP;451-4.7.1 try later", 451, "4.7.1"),
        ("550-5.7.26 This mail is unauthenticated", 550, "5.7.26"),
        ("550 #5.1.0 Address rejected", 550, "5.1.0"),
        ("5.1.1 The email account", None, "5.1.1"),
        ("250 OK", 250, None),
        ("421", 421, None),
        ("4.7.1", None, "4.7.1"),
        (" 550\r\n5.1.1 folded", 550, "5.1.1"),
        ("5501 bad", None, None),
        ("550.1 bad", None, None),
        ("see 550 5.1.1", None, None),
        ("192.0.2.1 said no", None, None),
        ("5.1.1.1 is an address", None, None),
        ("", None, None),
        (550, None, None),
        (None, None, None),
    ],
)
def test_codes_are_those_that_the_reply_begins_with(
    text: object, code: int | None, enhanced: str | None
) -> None:
    assert reply(text) == Reply(code, enhanced)


@pytest.mark.parametrize(
    ("code", "enhanced", "wanted"),
    [
        (550, "5.1.1", BounceClass.HARD),
        (None, "5.1.10", BounceClass.HARD),
        (550, "5.1.7", BounceClass.BLOCK),
        (550, "5.1.8", BounceClass.BLOCK),
        (554, "5.7.1", BounceClass.BLOCK),
        (450, "4.2.2", BounceClass.SOFT),
        (550, "4.2.2", BounceClass.SOFT),
        (450, None, BounceClass.SOFT),
        (552, "5.2.2", BounceClass.UNDETERMINED),
        (550, None, BounceClass.UNDETERMINED),
        (450, "5.2.2", BounceClass.UNDETERMINED),
        (None, None, BounceClass.UNDETERMINED),
    ],
)
def test_class_goes_by_the_enhanced_code_first(
    code: int | None, enhanced: str | None, wanted: BounceClass
) -> None:
    assert bounce_class(Reply(code, enhanced)) is wanted


@given(st.text() | st.integers() | st.none())
def test_anything_can_be_asked(value: object) -> None:
    bounce_class(reply(value))
    enhanced_code(value)
