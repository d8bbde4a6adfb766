"""No test of this folder sees the developer's own data directory or cache."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def user_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    monkeypatch.setenv("LOCALAPPDATA", str(home))
    monkeypatch.delenv("LANCZOSNET_DATA", raising=False)
    return home / "lanczosnet"
