"""Settings survive a restart, and a damaged file costs only what was in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.settings import Settings, load_settings, save_settings, settings_path


def test_they_come_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "settings.json"
    settings = Settings(theme="dark", last_target="h100", geometry=b"\x00\xff", splitters={"main": b"\x01"})
    settings.remember("example:gpt2")
    assert save_settings(path, settings)
    assert load_settings(path) == settings
    assert [file.name for file in path.parent.iterdir()] == ["settings.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"theme": 3}', "\xff"])
def test_a_damaged_file_means_defaults(tmp_path: Path, text: str) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text, encoding="latin-1")
    assert load_settings(path) == Settings()


def test_a_newer_files_extra_fields_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"theme": "dark", "from_the_future": [1]}')
    assert load_settings(path).theme == "dark"


def test_an_unwritable_place_is_told_not_raised(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not save_settings(tmp_path / "file" / "settings.json", Settings())


def test_recent_ones_are_the_latest_first_without_repeats() -> None:
    settings = Settings()
    for name in ["a", "b", "a", *(f"c{index}" for index in range(20))]:
        settings.remember(name)
    assert settings.recent[0] == "c19"
    assert len(settings.recent) == 12
    settings.forget("c19")
    assert settings.recent[0] == "c18"


def test_the_place_depends_on_the_platform() -> None:
    assert settings_path({"XDG_CONFIG_HOME": "/x"}, "linux") == Path("/x/fusescope/settings.json")
    assert settings_path({"APPDATA": "/roaming"}, "win32") == Path("/roaming/fusescope/settings.json")
    assert settings_path({}, "darwin").parts[-4:-2] == ("Library", "Application Support")
    assert settings_path({"FUSESCOPE_CONFIG": "/own"}, "linux") == Path("/own/settings.json")
