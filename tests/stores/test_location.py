"""What a person can call a store, and when two names mean the same one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhume.errors import ExhumeError, NothingToLookAt, UsageError
from exhume.stores import open_store, same_store
from exhume.stores.location import Kind, parse_location, sniff


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("app.db", "app.db"),
        ("./a b/app.db", "a b/app.db"),
        ("sqlite:///app.db", "app.db"),
        ("sqlite:////srv/app.db", "/srv/app.db"),
        ("sqlite+aiosqlite:///./app.db", "app.db"),
        ("sqlite+aiosqlite:////srv/app.db?timeout=5", "/srv/app.db"),
        ("sqlite+pysqlite:///app.db", "app.db"),
        ("SQLite:///app.db", "app.db"),
        ("sqlite:///file:app.db?mode=ro&uri=true", "app.db"),
        ("file:app.db", "app.db"),
        ("file:/srv/app.db?immutable=1", "/srv/app.db"),
        ("file:///srv/a%20b.db", "/srv/a b.db"),
        ("file://localhost/srv/app.db", "/srv/app.db"),
    ],
)
def test_every_spelling_of_a_file_is_understood(text: str, path: str) -> None:
    location = parse_location(text)
    assert location.path == Path(path)
    assert location.kind is Kind.SQLITE


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("postgresql+asyncpg://u:secret@db/x", "postgresql+psycopg://u:secret@db/x"),
        ("postgres://u@db/x", "postgresql+psycopg://u@db/x"),
        ("postgresql+psycopg2://db/x", "postgresql+psycopg://db/x"),
        ("mysql+aiomysql://u:secret@db/x", "mysql+pymysql://u:secret@db/x"),
        ("mariadb+asyncmy://db/x", "mariadb+pymysql://db/x"),
    ],
)
def test_servers_get_a_synchronous_driver_and_a_name_without_password(text: str, url: str) -> None:
    location = parse_location(text)
    assert (location.kind, location.url) == (Kind.SERVER, url)
    assert "secret" not in location.name


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "a\x00b",
        "sqlite://",
        "sqlite:///",
        ":memory:",
        "sqlite:///:memory:",
        "sqlite://host/app.db",
        "http://x/y.db",
        "file:",
        "file://otherhost/app.db",
        "file:x?mode=memory",
        "file:a%00b",
        "sqlite:app.db",
        "oracle+x://u:secret@db/x",
    ],
)
def test_what_names_no_store_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_location(text)
    assert caught.value.todo
    assert "secret" not in caught.value.diagnostics()


@given(st.text())
def test_any_text_is_a_location_or_an_error_for_a_person(text: str) -> None:
    try:
        location = parse_location(text)
    except ExhumeError:
        return
    assert (location.path is None) == (location.kind is Kind.SERVER)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"SQLite format 3\x00 and more", Kind.SQLITE),
        (b'{"id": "s"}', Kind.EXPORT),
        (b'\xef\xbb\xbf\n [{"id": "e"}]', Kind.EXPORT),
        (b"-- PostgreSQL database dump\n", Kind.DUMP),
        (b"/*M!999999\\- enable the sandbox mode */\n", Kind.DUMP),
        (b"PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n", Kind.DUMP),
        (b"PGDMP\x01\x0e", Kind.DUMP),
        (b"\\restrict abc\n", Kind.DUMP),
        (b"", Kind.SQLITE),
        (b"\x00\x01\x02", Kind.SQLITE),
        (b"settings = 1", Kind.SQLITE),
    ],
)
def test_the_first_bytes_tell_the_kind_of_a_file(tmp_path: Path, content: bytes, kind: Kind) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert sniff(path) is kind
    assert parse_location(path).kind is kind
    assert parse_location(f"sqlite:///{path}").kind is kind


def test_a_dump_is_not_read_yet_and_the_message_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "dump.sql"
    path.write_text("-- PostgreSQL database dump\n")
    with pytest.raises(NothingToLookAt, match="SQL dump") as caught:
        open_store(path)
    assert "SQLite" in caught.value.todo


def test_same_store_sees_through_spellings_and_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "my app.db"
    path.write_bytes(b"x")
    (tmp_path / "symbolic").symlink_to(path)
    os.link(path, tmp_path / "hard")
    monkeypatch.chdir(tmp_path)
    spellings: list[str | Path] = [
        path,
        "my app.db",
        "./x/../my app.db",
        "symbolic",
        "hard",
        f"sqlite:///{path}",
        "sqlite+aiosqlite:///my app.db",
        "sqlite:///my%20app.db",
        "file:my%20app.db?mode=rw",
        f"file://{tmp_path}/my%20app.db",
    ]
    (tmp_path / "x").mkdir()
    assert all(same_store(one, other) for one in spellings for other in spellings)
    other = tmp_path / "other.db"
    other.write_bytes(b"x")
    assert not any(same_store(one, other) for one in spellings)


def test_files_that_do_not_exist_are_compared_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path)
    assert same_store("new.db", f"sqlite:///{tmp_path}/link/new.db")
    assert not same_store("new.db", "newer.db")


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("postgresql://u:a@DB/x", "postgres+asyncpg://v:b@db:5432/x?sslmode=require", True),
        ("mysql+aiomysql://localhost/x", "mariadb+pymysql://127.0.0.1:3306/x", True),
        ("postgresql://db/x", "postgresql://db/y", False),
        ("postgresql://db/x", "postgresql://db:5433/x", False),
        ("postgresql://db/x", "mysql://db/x", False),
        ("postgresql://db/x", "x", False),
        ("postgresql://db:port/x", "postgresql://db/x", True),
    ],
)
def test_servers_are_the_same_by_host_port_and_database(first: str, second: str, same: bool) -> None:
    assert same_store(first, second) is same
