import contextlib
import errno
import hashlib
import os
import re
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from safetensors.numpy import save_file

from lanczosnet.files import atomic_write, locks, sha256_of, temporary_beside, write_figure


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


def test_a_link_is_followed_to_its_target(tmp_path):
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    (tmp_path / "dangling").symlink_to("new")
    for name in ("link", "dangling"):
        with atomic_write(tmp_path / name) as temporary:
            temporary.write_text(name)
        assert (tmp_path / name).is_symlink()
    assert ((tmp_path / "target").read_text(), (tmp_path / "new").read_text()) == ("link", "dangling")


def test_a_link_can_be_replaced_instead(tmp_path):
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    with atomic_write(tmp_path / "link", follows_links=False) as temporary:
        temporary.write_text("new")
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "old"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes in folders are POSIX's")
def test_pipes_and_devices_are_written_through(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = threading.Thread(target=lambda: received.append((tmp_path / "pipe").read_text()))
    received = []
    reader.start()
    for target in (tmp_path / "pipe", Path(os.devnull)):
        with atomic_write(target) as temporary:
            temporary.write_text("content")
    reader.join(10)
    assert received == ["content"]
    assert (tmp_path / "pipe").is_fifo()
    assert Path(os.devnull).is_char_device()


def test_standard_output_is_written_where_it_stands(tmp_path, capfd):
    print("before", flush=True)
    with atomic_write(Path("/dev/stdout")) as temporary:
        temporary.write_text("content\n")
    print("after", flush=True)
    assert capfd.readouterr().out == "before\ncontent\nafter\n"


def test_a_full_disk_is_told_with_the_file_and_the_remedy(tmp_path):
    with pytest.raises(OSError, match=r"file cannot be written \(no space .*: free some space"), full(tmp_path):
        raise OSError(errno.ENOSPC, "No space left on device")


def full(folder):
    return atomic_write(folder / "file")


def test_what_dead_processes_left_is_removed(tmp_path):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    own = temporary_beside(tmp_path / "file")
    dead = own.with_name(own.name.replace(f"-{os.getpid()}-", f"-{ended.pid}-"))
    elsewhere = dead.with_name(re.sub(r"\.[0-9a-f]{8}-", ".00000000-", dead.name))
    for path in (own, dead, elsewhere, tmp_path / ".theirs.tmp"):
        path.touch()
    with atomic_write(tmp_path / "file"):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {own.name, elsewhere.name, ".theirs.tmp", "file"}


def test_a_long_name_has_a_temporary_one(tmp_path):
    with atomic_write(tmp_path / ("x" * 250)) as temporary:
        temporary.write_text("new")
    assert (tmp_path / ("x" * 250)).read_text() == "new"


HOLDER = """
import sys, time
from pathlib import Path
from lanczosnet.files import only_writer
with only_writer(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_writer_is_refused_and_told_the_first(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "GRACE", 0.1)
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, tmp_path / "out"], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(OSError, match=f"written by process {holder.pid} on {socket.gethostname()}: wait"):
            locks.only_writer(tmp_path / "out").__enter__()
    finally:
        holder.kill()
        holder.communicate()
    with locks.only_writer(tmp_path / "out"):  # the dead one holds it no more
        (tmp_path / "out" / "file").touch()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["file"]


def test_a_folder_that_stays_empty_goes(tmp_path):
    with locks.only_writer(tmp_path / "out"):
        pass
    assert not (tmp_path / "out").exists()
