"""Nothing hostile and no password reaches a screen."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.redact import mask_url, printable


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("plain text, accents é and 東京", "plain text, accents é and 東京"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\nb\r\tc", "a\\x0ab\\x0d\\x09c"),
        ("invoice\u202egpj.exe", "invoice\\u202egpj.exe"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("line\u2028break", "line\\u2028break"),
        ("\ud800", "\\ud800"),
        ("\x9b31m", "\\x9b31m"),
        ("\U000e0041tag", "\\U000e0041tag"),
    ],
)
def test_hidden_characters_become_visible(hostile: str, shown: str) -> None:
    assert printable(hostile) == shown


@given(st.text(alphabet=st.characters(), max_size=50))
def test_printable_is_one_harmless_line_and_stable(text: str) -> None:
    shown = printable(text)
    assert not {unicodedata.category(char) for char in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert printable(shown) == shown


def test_every_character_that_is_hidden_becomes_visible() -> None:
    for code in range(sys.maxunicode + 1):
        shown = printable(chr(code))
        hidden = unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
        assert (shown == chr(code)) is not hidden, code


def test_limit_ends_in_an_ellipsis() -> None:
    assert printable("abcdef", limit=4) == "abc…"
    assert printable("abcd", limit=4) == "abcd"
    assert len(printable("\x1b" * 10_000_000, limit=20)) == 20


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:s3cret@db/x", "postgresql://ann:***@db/x"),
        (
            "postgresql+asyncpg://ann:p@ss@db:5432/x?sslmode=require",
            "postgresql+asyncpg://ann:***@db:5432/x?sslmode=***",
        ),
        ("cannot open mysql://root:pw@h/d: refused", "cannot open mysql://root:***@h/d: refused"),
        ("mysql://ann:a/b?c#d=e@db/x", "mysql://ann:***@db/x"),
        ("postgresql://ann@server:pw@db/x", "postgresql://ann@server:***@db/x"),
        ("postgresql://db:5432/x", "postgresql://db:5432/x"),
        ("sqlite:///file.db", "sqlite:///file.db"),
        ("sqlite:////home/a:b@c/file.db", "sqlite:////home/a:b@c/file.db"),
        ("postgresql://ann@db/x", "postgresql://ann@db/x"),
        ("/plain/path?x=1", "/plain/path?x=1"),
    ],
)
def test_passwords_and_query_values_are_masked(url: str, shown: str) -> None:
    assert mask_url(url) == shown
