"""Headless Chromium through its DevTools protocol, over a pipe: no driver, no port, no other package."""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from select import select
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")
PATIENCE = 60.0  # seconds
LOCAL = ("file:", "data:", "blob:", "about:")


FETCHED = Path(__file__).resolve().parents[1] / "build" / "browser"  # where install_browser.sh leaves one


def find_chromium() -> str | None:
    return next(filter(None, map(shutil.which, (*NAMES, str(FETCHED / "chromium")))), None)


def why_missing() -> str:
    """What install_browser.sh said, or that it did not run."""
    note = FETCHED / "missing"
    return note.read_text(encoding="utf-8").strip() if note.is_file() else "There is no browser: run `make browser`"


def chromium() -> str:
    """The program; tests that need it skip where there is none."""
    found = find_chromium()
    if found is None:
        pytest.skip(why_missing())
    return found


class Browser:
    """One page of a browser, and all that it says."""

    def __init__(self, process: subprocess.Popen, reading: int, writing: int) -> None:
        self.process, self._reading, self._writing = process, reading, writing
        self._buffer, self._count, self._session = b"", 0, None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Network", "Page"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._writing, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._count:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            assert select([self._reading], [], [], max(0.0, until - time.monotonic()))[0], "the browser does not answer"
            part = os.read(self._reading, 1 << 20)
            assert part, f"the browser ended with {self.process.poll()}"
            self._buffer += part
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def open(self, path: Path) -> None:
        """Load a page and wait until its figures are drawn."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=0, y=0)
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("document.readyState === 'complete'")
        self.wait_for("!document.getElementById('plotly') || document.documentElement.dataset.drawn === 'yes'")

    def value(self, expression: str) -> Any:
        """What a JavaScript expression gives."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, expression: str) -> None:
        until = time.monotonic() + PATIENCE
        while not self.value(expression):
            assert time.monotonic() < until, f"this stays false: {expression}"
            time.sleep(0.05)

    def show(self, width: int, *, dark: bool = False) -> None:
        """As wide as so many pixels, in one of the two colour schemes."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def hover(self, element: str) -> None:
        """Move the pointer to the middle of what a JavaScript expression gives."""
        self.value(f"({element}).scrollIntoView({{block: 'center'}})")
        box = f"(box => [box.x + box.width / 2, box.y + box.height / 2])(({element}).getBoundingClientRect())"
        x, y = self.value(box)
        for shift in (3, 1, 0):
            self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x + shift, y=y + shift)

    def press(self, key: str) -> None:
        code = {"Enter": 13, "Tab": 9}[key]
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

    def screenshot(self, path: Path) -> None:
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(answer["data"]))

    def complaints(self) -> list[str]:
        """Errors and warnings that were logged, and exceptions."""
        self.value("0")  # what was said before is here now
        kinds = {"Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"}
        said = [event for event in self.events if event.get("method") in kinds]
        return [json.dumps(event["params"]) for event in said if not _is_harmless(event["params"])]

    def fetched(self) -> list[str]:
        """Requests that leave the page."""
        self.value("0")
        sent = [event for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [url for event in sent if not (url := event["params"]["request"]["url"]).startswith(LOCAL)]


def _is_harmless(parameters: dict[str, Any]) -> bool:
    level = parameters.get("entry", {}).get("level") or parameters.get("type", "error")
    return level in ("info", "verbose", "log", "debug")


@contextmanager
def browser(folder: Path) -> Any:
    """A browser with a profile of its own, which ends with the block."""
    from_browser, to_browser = os.pipe(), os.pipe()

    def as_three_and_four() -> None:
        reading, writing = (fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser[0], from_browser[1]))
        os.dup2(reading, 3)
        os.dup2(writing, 4)

    command = [chromium(), *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={folder}", "about:blank"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, preexec_fn=as_three_and_four, pass_fds=(3, 4), start_new_session=True
        )
    os.close(to_browser[0])
    os.close(from_browser[1])
    try:
        yield Browser(process, from_browser[0], to_browser[1])
    finally:
        os.close(to_browser[1])  # which ends it
        os.close(from_browser[0])
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
