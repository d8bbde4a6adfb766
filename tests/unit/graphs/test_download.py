"""Downloads, against a server on this machine that can be told to misbehave."""

import contextlib
import hashlib
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from lanczosnet.graphs.data_sets.download import fetch
from lanczosnet.graphs.data_sets.sources import SourceFile
from lanczosnet.graphs.directory import writable_directory
from lanczosnet.graphs.errors import DataError

CONTENT = bytes(range(256)) * 2000


class Server(ThreadingHTTPServer):
    """Serves CONTENT at /good; other paths are faults. Remembers every request as (path, range)."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[str, str | None]] = []
        self.torn = 1  # how many transfers of /torn break off

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{path}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        path, wanted = self.path.strip("/"), self.headers.get("Range")
        self.server.requests.append((path, wanted))
        if path == "absent":
            self.send_error(404)
        elif path == "busy":
            self.send_error(503)
        elif path == "wrong":
            self._send(CONTENT[::-1])
        elif path == "endless":
            self._send(CONTENT * 3)
        elif path == "whole":  # a server that knows no ranges
            self._send(CONTENT)
        elif path == "torn" and self.server.torn:
            self.server.torn -= 1
            self._send(CONTENT, stop=100_000)
        elif wanted:
            begin = int(wanted.removeprefix("bytes=").rstrip("-"))
            if begin >= len(CONTENT):
                self.send_error(416)
            else:
                self._send(CONTENT[begin:], status=206)
        else:
            self._send(CONTENT)

    def _send(self, content: bytes, status: int = 200, stop: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[:stop])

    def log_message(self, *arguments) -> None:
        pass


@pytest.fixture
def server():
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def a_file(*mirrors: str) -> SourceFile:
    return SourceFile(("folder/file",), mirrors, {hashlib.sha256(CONTENT).hexdigest(): len(CONTENT)})


def get(file, tmp_path, **options):
    return fetch(file, "sample", tmp_path, **{"pause": 0.0, "timeout": 5.0} | options)


def files_in(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")


def test_a_file_is_downloaded_once(server, tmp_path):
    for _ in range(2):
        assert get(a_file(server.url("good")), tmp_path).read_bytes() == CONTENT
    assert server.requests == [("good", None)]
    assert files_in(tmp_path) == ["file"]


def test_the_next_mirror_is_asked_when_one_fails(server, tmp_path):
    file = a_file(server.url("absent"), "http://127.0.0.1:9/nobody-listens", server.url("wrong"), server.url("good"))
    assert get(file, tmp_path).read_bytes() == CONTENT
    assert files_in(tmp_path) == ["file"]


def test_a_busy_mirror_is_tried_again_but_an_absent_file_is_not(server, tmp_path):
    with pytest.raises(DataError):
        get(a_file(server.url("busy"), server.url("absent")), tmp_path, tries=3)
    assert [path for path, _ in server.requests] == ["busy"] * 3 + ["absent"]


def test_a_torn_transfer_goes_on_where_it_stopped(server, tmp_path):
    assert get(a_file(server.url("torn")), tmp_path).read_bytes() == CONTENT
    assert server.requests == [("torn", None), ("torn", "bytes=100000-")]


def test_a_part_of_an_earlier_run_is_completed(server, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file.part").write_bytes(CONTENT[:70_000])
    assert get(a_file(server.url("good")), tmp_path).read_bytes() == CONTENT
    assert server.requests == [("good", "bytes=70000-")]
    assert files_in(tmp_path) == ["file"]


def test_a_part_is_thrown_away_where_the_server_knows_no_ranges(server, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file.part").write_bytes(b"x" * 70_000)
    assert get(a_file(server.url("whole")), tmp_path).read_bytes() == CONTENT


def test_a_complete_part_needs_no_more_bytes(server, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file.part").write_bytes(CONTENT)
    assert get(a_file(server.url("good")), tmp_path).read_bytes() == CONTENT
    assert server.requests == [("good", f"bytes={len(CONTENT)}-")]


def test_a_wrong_part_is_dropped_and_the_file_loaded_afresh(server, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file.part").write_bytes(b"x" * 70_000)
    assert get(a_file(server.url("good")), tmp_path).read_bytes() == CONTENT
    assert server.requests == [("good", "bytes=70000-"), ("good", None)]


@pytest.mark.parametrize("fault", ["wrong", "endless"])
def test_a_wrong_file_is_never_left_behind(server, tmp_path, fault):
    with pytest.raises(DataError, match="wrong checksum"):
        get(a_file(server.url(fault)), tmp_path)
    assert files_in(tmp_path) == []


def checked_file(*mirrors: str) -> SourceFile:
    """A file without a published checksum, which is known by its first bytes."""

    def check(path):
        if path.read_bytes()[:4] != CONTENT[:4]:
            raise DataError("it begins otherwise", file=path)

    return SourceFile(("folder/file",), mirrors, {}, check, limit=2 * len(CONTENT))


def test_a_file_without_a_checksum_is_known_by_its_content(server, tmp_path):
    for _ in range(2):
        assert get(checked_file(server.url("wrong"), server.url("good")), tmp_path, tries=1).read_bytes() == CONTENT
    assert [path for path, _ in server.requests] == ["wrong", "good"]
    assert files_in(tmp_path) == ["file"]


def test_a_file_without_a_checksum_is_never_left_behind_if_it_is_wrong(server, tmp_path):
    with pytest.raises(DataError, match=r"what arrived is not the published file \(wrong content\)"):
        get(checked_file(server.url("wrong")), tmp_path)
    assert files_in(tmp_path) == []


def test_a_wrong_copy_of_a_file_without_a_checksum_is_named(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_bytes(b"truncated")
    with pytest.raises(DataError, match=r"it begins otherwise.*Delete it and run `lanczosnet data fetch sample`"):
        checked_file("http://127.0.0.1:9/file").checked("sample", tmp_path)


def test_without_a_network_the_message_says_how_to_place_the_file_by_hand(tmp_path):
    file = a_file("http://127.0.0.1:9/file")
    with pytest.raises(DataError) as error:
        get(file, tmp_path, tries=1)
    assert "could not be downloaded" in str(error.value)
    place = tmp_path / "folder" / "file"
    assert f"load http://127.0.0.1:9/file elsewhere and place it at {place}" in str(error.value)


def test_a_bad_file_in_the_folder_is_replaced(server, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_bytes(b"truncated")
    assert get(a_file(server.url("good")), tmp_path).read_bytes() == CONTENT


def test_a_read_only_folder_gets_its_missing_files_in_the_user_cache(server, tmp_path, user_cache):
    tmp_path.chmod(0o555)
    file = a_file(server.url("good"))
    assert get(file, tmp_path) == user_cache / "folder" / "file"
    assert writable_directory(tmp_path) == user_cache
    assert file.checked("sample", tmp_path) == user_cache / "folder" / "file"
    tmp_path.chmod(0o755)


def test_a_silent_server_is_given_up_after_the_timeout(tmp_path):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/file"
        with pytest.raises(DataError, match="timed out"):
            get(a_file(url), tmp_path, timeout=0.2, tries=1)


def test_progress_hears_of_every_byte(server, tmp_path):
    received: list[int] = []
    get(a_file(server.url("good")), tmp_path, progress=received.append)
    assert sum(received) == len(CONTENT)


def test_two_processes_fetching_at_once_do_not_disturb_each_other(server, tmp_path):
    file = a_file(server.url("good"))
    script = (
        "import sys; from lanczosnet.graphs.data_sets.download import fetch\n"
        "from lanczosnet.graphs.data_sets.sources import SourceFile\n"
        f"file = SourceFile({file.places!r}, {file.mirrors!r}, {file.versions!r})\n"
        f"print(fetch(file, 'sample', {str(tmp_path)!r}))"
    )
    processes = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) for _ in range(3)]
    for process in processes:
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        assert output.decode().strip() == str(tmp_path / "folder" / "file")
    assert (tmp_path / "folder" / "file").read_bytes() == CONTENT
    assert len(server.requests) == 1


def answering(content: bytes, *, every: float = 0.0):
    """A server that answers each connection with these bytes, one by one if so many seconds lie between two."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                connection.recv(65536)
                if not every:
                    connection.sendall(content)
                for byte in content if every else b"":
                    connection.sendall(bytes([byte]))
                    time.sleep(every)

    threading.Thread(target=serve, daemon=True).start()
    return listening, f"http://127.0.0.1:{listening.getsockname()[1]}/file"


SLOW = {
    "in its headers": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1000,
    "in its body": b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1000,
}


@pytest.mark.parametrize("content", SLOW.values(), ids=SLOW)
def test_a_server_that_drips_is_cut_off(content, tmp_path):
    listening, url = answering(content, every=0.02)
    with listening, pytest.raises(DataError, match=r"less than 1,000 bytes a second"):
        get(a_file(url), tmp_path, timeout=0.2, tries=1)


def test_a_download_has_a_deadline(tmp_path):
    listening, url = answering(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1000, every=0.02)
    with listening, pytest.raises(DataError, match=r"takes too long[\s\S]*more than 0.3 seconds"):
        get(a_file(url), tmp_path, deadline=0.3)


@pytest.mark.parametrize("length", [b"many", b"-5", b"1" + b"0" * 5000])
def test_malformed_headers_are_tried_again_and_told(length, tmp_path):
    listening, url = answering(b"HTTP/1.1 200 OK\r\nContent-Length: " + length + b"\r\n\r\n" + CONTENT[:100])
    with listening, pytest.raises(DataError, match=r"malformed|transfer stopped"):
        get(a_file(url), tmp_path, tries=2)


def test_a_part_that_is_a_link_is_refused(server, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "theirs").write_text("theirs")
    (tmp_path / "folder" / "file.part").symlink_to(tmp_path / "theirs")
    with pytest.raises(DataError, match=r"file\.part: this is no file of a download\. Delete it"):
        get(a_file(server.url("good")), tmp_path)
    assert (tmp_path / "theirs").read_text() == "theirs"


def test_without_a_folder_to_write_the_variable_is_named(tmp_path, monkeypatch):
    (tmp_path / "plain").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "plain"))
    with pytest.raises(DataError, match=r"no file can be written in .* Let the variable LANCZOSNET_DATA name"):
        writable_directory(tmp_path / "plain" / "folder")


@pytest.mark.skipif(sys.platform != "linux", reason="XDG is Linux's")
def test_without_a_home_the_variable_serves(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("pathlib.Path.home", no_home)
    assert writable_directory(tmp_path) == tmp_path
    monkeypatch.delenv("LANCZOSNET_DATA", raising=False)
    with pytest.raises(DataError, match=r"no home folder .* LANCZOSNET_DATA"):
        writable_directory()


def no_home():
    raise RuntimeError("Could not determine home directory.")
