import sys
from pathlib import Path

import pytest

from lanczosnet.graphs import directory
from lanczosnet.graphs.directory import data_directory, search_path, source_tree, user_cache, writable_directory


def test_an_argument_comes_before_the_variable_before_the_cache_folder(monkeypatch, tmp_path):
    assert data_directory() == user_cache()
    monkeypatch.setenv("LANCZOSNET_DATA", str(tmp_path / "variable"))
    assert data_directory() == tmp_path / "variable"
    assert data_directory(tmp_path / "argument") == tmp_path / "argument"


@pytest.mark.parametrize(
    ("platform", "expected"),
    [("linux", ".cache/lanczosnet"), ("darwin", "Library/Caches/lanczosnet"), ("win32", "AppData/Local/lanczosnet")],
)
def test_each_platform_has_its_own_cache_folder(monkeypatch, platform, expected):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("LOCALAPPDATA")
    assert user_cache() == Path.home() / expected


def test_a_read_only_folder_is_read_but_new_files_go_to_the_user_cache(tmp_path):
    tmp_path.chmod(0o555)
    assert data_directory(tmp_path) == tmp_path
    assert writable_directory(tmp_path) == user_cache()
    assert search_path(tmp_path) == [tmp_path, user_cache()]
    tmp_path.chmod(0o755)
    assert writable_directory(tmp_path) == tmp_path


def test_nothing_is_written_inside_the_source_tree():
    assert (source_tree() / "pyproject.toml").is_file()
    assert writable_directory(source_tree() / "src" / "lanczosnet" / "data") == user_cache()


def test_an_installed_package_counts_as_the_source_tree(monkeypatch, tmp_path):
    package = tmp_path / "site-packages" / "lanczosnet"
    monkeypatch.setattr(directory.lanczosnet, "__file__", str(package / "__init__.py"))
    assert source_tree() == package
