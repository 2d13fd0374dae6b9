"""A configuration gives defaults to options that exist, of the type that they take."""

from __future__ import annotations

from pathlib import Path

import pytest

from exhume.audit.config import _COMMANDS, _FLAG, _TEXTS
from exhume.cli.app import build
from exhume.cli.main import run

KEYS = [(command, key, kind) for command, keys in _COMMANDS.items() for key, kind in keys.items()]


@pytest.mark.parametrize(("command", "key", "kind"), KEYS)
def test_every_key_is_an_option_of_its_command(command: str, key: str, kind: str) -> None:
    options = {parameter.name: parameter for parameter in build().commands[command].params}
    option = options[key.replace("-", "_")]
    assert f"--{key}" in option.opts
    assert option.is_flag is (kind == _FLAG)
    assert option.multiple is (kind == _TEXTS)


def test_how_much_an_export_hides_can_be_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = Path(__file__).resolve().parents[2] / "fixtures" / "refund-desk-1.21.0.db"
    monkeypatch.chdir(tmp_path)
    assert run(["export", str(source)]) == 0
    plain = capsys.readouterr().out
    (tmp_path / "exhume.toml").write_text('[export]\nredact = "texts"\n')
    assert run(["export", str(source)]) == 0
    assert "(text " in capsys.readouterr().out
    assert "(text " not in plain
