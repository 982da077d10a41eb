"""Passwords and tokens in addresses are hidden."""

import pytest

from ihgnn_cli.masking import masked_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://me:hunter2@host/db", "postgresql://me:***@host/db"),
        ("mysql+pymysql://me:hunter2@host:3306/db", "mysql+pymysql://me:***@host:3306/db"),
        ("postgresql://:hunter2@host/db", "postgresql://:***@host/db"),
        ("postgresql://me:hun@ter/2:x@host/db", "postgresql://me:***@host/db"),
        (
            "Cannot read 'postgresql://me:hunter2@host/db': no such file. Ask me@there: now.",
            "Cannot read 'postgresql://me:***@host/db': no such file. Ask me@there: now.",
        ),
        (
            "mysql://a:hunter2@x and\npostgresql://b:hunter3@y",
            "mysql://a:***@x and\npostgresql://b:***@y",
        ),
        # What becomes of an address that is taken for a path.
        ("postgresql:/me:hunter2@h", "postgresql:/me:***@h"),
        ("/home/me/postgresql:/me:hunter2@h/db", "/home/me/postgresql:/me:***@h/db"),
    ],
)
def test_passwords_in_addresses_are_hidden(text: str, shown: str) -> None:
    assert masked_text(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        "No data set MUTAQ. Did you mean MUTAG?",
        "--lr must be above 0, not -1: see https://example.org/a",
        "postgresql://me@host:5432/db is away",
        "http://127.0.0.1:8080/",
        "Ask a@b.org: or c:d@e",
        "C:\\runs\\x",
    ],
)
def test_text_without_a_password_stays_as_it_is(text: str) -> None:
    assert masked_text(text) == text


def test_passwords_in_a_query_or_with_a_loud_scheme_are_hidden() -> None:
    assert masked_text("no PostgreSQL://me:pw@h here") == "no PostgreSQL://me:***@h here"
    assert masked_text("x://h/db?user=me&password=pw") == "x://h/db?user=me&password=***"
