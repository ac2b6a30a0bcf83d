"""Addresses and statements: what is sent to the server, and to which one."""

import pytest
from psycopg.conninfo import conninfo_to_dict

from kb.core.errors import InvalidRequest
from kb.store.postgres.address import parsed
from kb.store.postgres.statements import escaped, translated, unescaped


@pytest.mark.parametrize(
    ("url", "mode"),
    [
        ("postgresql://kb@db.example.org/kb", "verify-full"),
        ("postgresql://kb@db.example.org/kb?sslmode=verify-full&sslrootcert=/own.pem", "verify-full"),
        ("postgresql://kb@localhost,db.example.org/kb", "verify-full"),
        ("postgresql://kb@localhost/kb?hostaddr=10.0.0.7", "verify-full"),
        ("postgresql://kb@127.0.0.1/kb", None),
        ("postgresql://kb@[::1]/kb?sslmode=disable", "disable"),
        ("postgresql:///kb?host=/run/postgresql", None),
    ],
)
def test_beyond_this_machine_the_server_must_prove_who_it_is(url: str, mode: str | None) -> None:
    assert conninfo_to_dict(parsed(url, "kb").conninfo).get("sslmode") == mode


@pytest.mark.parametrize("mode", ["disable", "prefer", "require", "verify-ca"])
def test_less_is_refused(mode: str) -> None:
    with pytest.raises(InvalidRequest, match="verify-full"):
        parsed(f"postgresql://kb@db.example.org/kb?sslmode={mode}", "kb")


def test_a_password_is_never_shown() -> None:
    assert "secret" not in parsed("postgresql://kb:secret@db.example.org/kb", "kb").shown


@pytest.mark.parametrize(
    "defaults",
    [
        {"PGHOST": "db.example.org"},
        {"PGHOSTADDR": "10.0.0.7"},
        {"PGSERVICE": "kb"},
        {"PGHOST": "db", "PGSSLMODE": "allow"},
    ],
)
def test_so_must_one_that_the_environment_names(monkeypatch: pytest.MonkeyPatch, defaults: dict[str, str]) -> None:
    for name, value in defaults.items():
        monkeypatch.setenv(name, value)
    assert conninfo_to_dict(parsed("postgresql:///kb", "kb").conninfo)["sslmode"] == "verify-full"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://kb@host:port:port/kb?nonsense",
        "postgresql://kb:s3%cret@host/kb",
        "postgresql://kb:s3/cret@host/kb",
        "postgresql://kb:s3cret@[::1/kb",
    ],
)
def test_an_address_that_cannot_be_read_is_refused_without_showing_its_password(url: str) -> None:
    with pytest.raises(InvalidRequest, match="password") as refused:
        parsed(url, "kb")
    assert "cret" not in refused.value.message


@pytest.mark.parametrize(
    ("sql", "sent"),
    [
        ("a = :a AND b = :b2", "a = %(a)s AND b = %(b2)s"),
        ("x::text = ':no' AND y LIKE '%'", "x::text = ':no' AND y LIKE '%%'"),
        ("'it''s :a' || :a % 2", "'it''s :a' || %(a)s %% 2"),
    ],
)
def test_parameters_are_named_as_psycopg_names_them(sql: str, sent: str) -> None:
    assert translated(sql) == sent


@pytest.mark.parametrize("text", ["", "plain", "\0", "\U0010fffe", "\U0010fffe0", "\0\U0010fffe1\0"])
def test_no_character_is_lost(text: str) -> None:
    assert "\0" not in escaped(text)
    assert unescaped(escaped(text)) == text
