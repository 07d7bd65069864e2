"""Where a secret lies, and what is said when it does not lie there."""

from pathlib import Path

import pytest

from hookbox.errors import ConfigError
from hookbox.settings import Reference


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("env:AGENT_KEY", "env", "AGENT_KEY"),
        ("file:/run/a b", "file", "/run/a b"),
        ("credential:agent.key", "credential", "agent.key"),
    ],
)
def test_reference_is_read_and_shown(text: str, kind: str, name: str) -> None:
    reference = Reference.parse(text)
    assert (reference.kind, reference.name) == (kind, name)
    assert str(reference) == text


@pytest.mark.parametrize(
    "value",
    [
        *("", "AGENT_KEY", "ENV:A", "vault:a", 7, None, ["env:A"]),
        *("env:", "env:1A", "env:A-B", "env:A\n"),
        *("file:", "file:a", "file:~/a"),
        *("credential:", "credential:..", "credential:a/b"),
    ],
)
def test_what_is_no_reference_is_refused_with_the_three_forms(value: object) -> None:
    with pytest.raises(ConfigError) as refusal:
        Reference.parse(value)
    assert all(form in refusal.value.mend for form in ("env:NAME", "file:/", "credential:NAME"))


def test_environment_is_read_as_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_KEY", " s \n")
    assert Reference(kind="env", name="AGENT_KEY").read() == " s \n"


def test_file_is_read_as_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes("sécret\r\n".encode())
    assert Reference(kind="file", name=str(path)).read() == "sécret\r\n"


def test_credential_is_read_from_where_systemd_puts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "agent").write_text("s")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert Reference(kind="credential", name="agent").read() == "s"


def test_missing_variable_is_named() -> None:
    with pytest.raises(ConfigError, match="variable NOT_THERE is not set"):
        Reference(kind="env", name="NOT_THERE").read()


def test_credential_without_systemd_says_how_to_get_one() -> None:
    with pytest.raises(ConfigError) as refusal:
        Reference(kind="credential", name="agent").read()
    assert "handed no credentials" in refusal.value.message
    assert "LoadCredential=agent:" in refusal.value.mend


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot be read: No such file"),
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"\xff\xfe", "is not text in UTF-8"),
        (b"x" * 65_537, "is too long"),
        ("é".encode() * 40_000, "is too long"),
    ],
)
def test_unusable_file_is_refused(tmp_path: Path, content: bytes | None, reason: str) -> None:
    path = tmp_path / "key"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as refusal:
        Reference(kind="file", name=str(path)).read()
    assert reason in refusal.value.message
    assert refusal.value.mend
