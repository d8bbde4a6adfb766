import contextlib
import hashlib
import os
import stat

import numpy as np
import pytest
from matplotlib.figure import Figure
from safetensors.numpy import save_file

from lanczosnet.files import atomic_write, sha256_of, write_figure


def test_a_file_that_fails_half_way_leaves_the_old_one_and_no_rest(tmp_path):
    target = tmp_path / "file"
    target.write_text("old")
    with contextlib.suppress(RuntimeError), atomic_write(target) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_file_that_succeeds_replaces_the_old_one(tmp_path):
    with atomic_write(tmp_path / "folder" / "file") as temporary:
        temporary.write_text("new")
    assert (tmp_path / "folder" / "file").read_text() == "new"


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX's")
@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o007, 0o660)], ids=["all read", "the group writes"])
@pytest.mark.parametrize("writer", ["ours", "safetensors"])
def test_a_file_has_the_mode_that_the_umask_gives(tmp_path, mask, mode, writer):
    before = os.umask(mask)
    try:
        with atomic_write(tmp_path / "file") as temporary:
            if writer == "ours":
                temporary.write_text("new")
            else:
                save_file({"x": np.zeros(3)}, temporary)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode


def test_the_checksum_is_sha256(tmp_path):
    (tmp_path / "file").write_bytes(b"abc")
    assert sha256_of(tmp_path / "file") == hashlib.sha256(b"abc").hexdigest()


@pytest.mark.parametrize(("name", "begin"), [("a.png", b"\x89PNG"), ("a.pdf", b"%PDF"), ("a", b"\x89PNG")])
def test_a_figure_is_written_whole_in_the_format_of_its_ending(tmp_path, name, begin):
    write_figure(Figure(), tmp_path / "new" / name)
    assert (tmp_path / "new" / name).read_bytes().startswith(begin)
    assert [path.name for path in (tmp_path / "new").iterdir()] == [name]


def test_a_folder_is_not_replaced_by_a_file(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder: name a file in it"):
        write_figure(Figure(), tmp_path)
