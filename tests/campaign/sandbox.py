"""Commands of the package in forked processes: no import per run, and limits of time, memory and file size."""

import contextlib
import fcntl
import gc
import importlib
import os
import pkgutil
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

SECONDS = 20.0  # a command that takes longer hangs
MEMORY = 2 << 30  # bytes that a command may have resident
ADDRESSES = 4 << 30  # bytes of address space on top of the imports: what protects this machine
PREPARED = (
    *("torch_geometric.data", "pandas", "rdkit.Chem", "safetensors.torch", "sklearn.neighbors", "joblib"),
    *("lightning.fabric", "lightning.pytorch", "matplotlib.backends.backend_agg", "matplotlib.figure", "pydantic"),
    *("mpl_toolkits.mplot3d", "PIL.PngImagePlugin", "scipy.sparse.csgraph", "scipy.sparse.linalg", "rich.table"),
    *("typer._adapters", "rich._emoji_codes", "torch._dynamo", "rdkit.Chem.Scaffolds.MurckoScaffold"),
)
PIPE = 1 << 20  # bytes that a command may say where the size of files is limited
UNTOLD = 70  # the exit status of a command that raised
MISTAKE = 3  # and of one that told of a mistake of the program, whose traceback is in a report


@dataclass(frozen=True)
class Ran:
    """A command that ended, was stopped for its time, or was killed."""

    arguments: tuple[str, ...]
    status: int  # negative: the signal that ended it
    out: str
    err: str
    seconds: float
    peak: int  # bytes

    @property
    def hangs(self) -> bool:
        return self.status == -signal.SIGALRM

    @property
    def shows_traceback(self) -> bool:
        return "Traceback (most recent call last)" in self.err + self.out or self.status in (
            MISTAKE,
            UNTOLD,
            -signal.SIGSEGV,
        )

    @property
    def command(self) -> str:
        return " ".join(("lanczosnet", *self.arguments))


@dataclass(frozen=True)
class Limits:
    """What a victim may use. `before` is called in it, and may make its world worse."""

    seconds: float = SECONDS
    addresses: int = ADDRESSES
    file_size: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    before: Callable[[], None] | None = None
    captured: Path | None = None  # where the home lies, if not in the command's folder


def prepare() -> None:
    """Import all that commands import, once, so that a fork of this process has it."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    package = importlib.import_module("lanczosnet")
    names = [module.name for module in pkgutil.walk_packages(package.__path__, "lanczosnet.")]
    for name in (*names, *PREPARED):
        if "triton" not in name and not name.endswith("__main__"):
            importlib.import_module(name)
    importlib.import_module("torch").set_num_threads(1)
    gc.collect()
    gc.freeze()  # a collection in a fork would copy every page


def run(arguments: Sequence[str], folder: Path, limits: Limits = Limits()) -> Ran:  # noqa: B008 - frozen
    """Run a command in a folder to its end."""
    return Victim(arguments, folder, limits).wait()


class _Spoken:
    """What a process says: a file, or a pipe where the size of files is limited."""

    def __init__(self, in_pipe: bool) -> None:
        self._begin, self.end = os.pipe() if in_pipe else (os.open(tempfile.gettempdir(), os.O_TMPFILE | os.O_RDWR), -1)
        if in_pipe:
            fcntl.fcntl(self.end, fcntl.F_SETPIPE_SZ, PIPE)
            os.set_blocking(self._begin, False)
        else:
            self.end = os.dup(self._begin)

    def taken(self) -> str:
        """All of it, once the process has ended."""
        os.close(self.end)
        with contextlib.suppress(OSError):  # a pipe has no beginning
            os.lseek(self._begin, 0, os.SEEK_SET)
        with open(self._begin, "rb") as stream:
            return (stream.read() or b"").decode(errors="replace")


class Victim:
    """A command that runs in a process and session of its own."""

    def __init__(self, arguments: Sequence[str], folder: Path, limits: Limits = Limits()) -> None:  # noqa: B008
        self.arguments, self.folder = tuple(arguments), folder
        self._begin = time.monotonic()
        self._spoken = [_Spoken(limits.file_size is not None) for _ in range(2)]
        self.process = os.fork()
        if self.process == 0:
            _become(self.arguments, folder, [spoken.end for spoken in self._spoken], limits)

    def send(self, number: int) -> None:
        os.kill(self.process, number)

    def wait(self) -> Ran:
        _, status, used = os.wait4(self.process, 0)
        seconds = time.monotonic() - self._begin
        out, err = (spoken.taken() for spoken in self._spoken)
        code = os.waitstatus_to_exitcode(status)
        return Ran(self.arguments, code, out, err, seconds, used.ru_maxrss * 1024)

    def left(self) -> list[int]:
        """Processes of its session that live."""
        return [number for number in map(int, filter(str.isdigit, os.listdir("/proc"))) if self._is_mine(number)]

    def _is_mine(self, number: int) -> bool:
        try:
            text = Path(f"/proc/{number}/stat").read_text(encoding="utf-8")
        except OSError:
            return False
        state, _, _, session = text.rpartition(")")[2].split()[:4]
        return int(session) == self.process and state != "Z"

    def orphans(self, seconds: float = 10.0) -> list[int]:
        """Those of its processes that outlive it by so many seconds; they are ended then."""
        until = time.monotonic() + seconds
        while (left := self.left()) and time.monotonic() < until:
            time.sleep(0.1)
        for number in left:
            os.kill(number, signal.SIGKILL)
        return left


def _become(arguments: tuple[str, ...], folder: Path, texts: list[int], limits: Limits) -> None:
    """Never returns."""
    status = UNTOLD
    try:
        os.setsid()
        _redirect(texts)
        os.chdir(folder)
        os.environ.update(_environment(folder, limits.captured) | dict(limits.environment))
        for number in (signal.SIGTERM, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        gc.callbacks.clear()  # Hypothesis's, in which a signal would be lost
        sys.modules["__main__"] = ModuleType("__main__")  # which worker processes would otherwise import
        _limit(limits)
        if limits.before:
            limits.before()
        status = _status_of(arguments)
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def _environment(folder: Path, captured: Path | None) -> dict[str, str]:
    """A home of its own, and the data beside the inputs."""
    home = (captured or folder) / "home"
    home.mkdir(exist_ok=True)
    return {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), "LANCZOSNET_DATA": str(folder / "data")}


def _redirect(texts: list[int]) -> None:
    for descriptor, end in zip((1, 2), texts, strict=True):
        os.dup2(end, descriptor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        errors = "backslashreplace" if descriptor == 2 else "strict"  # as Python's own have it
        stream = os.fdopen(descriptor, "w" if descriptor else "r", encoding="utf-8", errors=errors, buffering=1)
        setattr(sys, name, stream)


def _limit(limits: Limits) -> None:
    signal.setitimer(signal.ITIMER_REAL, limits.seconds)
    mapped = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + limits.addresses,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if limits.file_size is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limits.file_size,) * 2)


def _status_of(arguments: tuple[str, ...]) -> int:
    from lanczosnet.cli import main

    sys.argv = ["lanczosnet", *arguments]
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0
