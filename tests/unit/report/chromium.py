"""A headless Chromium, spoken to over a pipe; needs no package but the browser itself.

Owns the process and the protocol (https://chromedevtools.github.io/devtools-protocol); must not know a page.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
DEADLINE_S = 60.0


def find_browser() -> str | None:
    """Return the path of an installed browser; the variable ``CHROMIUM`` goes first."""
    return next(filter(None, map(shutil.which, filter(None, (os.environ.get("CHROMIUM"), *NAMES)))), None)


class Chromium:
    """One browser with one tab; use it as a context manager."""

    def __init__(self, executable: str) -> None:
        self._profile = tempfile.TemporaryDirectory(prefix="harness-browser-", ignore_cleanup_errors=True)
        from_us, to_us = os.pipe(), os.pipe()

        def connect() -> None:
            # the browser reads file descriptor 3 and writes file descriptor 4
            reading, writing = os.dup(from_us[0]), os.dup(to_us[1])
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        self._process = subprocess.Popen(
            [
                executable,
                "--headless=new",
                "--remote-debugging-pipe",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                "--no-first-run",
                f"--user-data-dir={self._profile.name}",
                "about:blank",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=connect,
        )
        os.close(from_us[0])
        os.close(to_us[1])
        self._out, self._in = from_us[1], to_us[0]
        self._buffer = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []
        self._session = ""
        targets = self.send("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        self._session = self.send("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "Accessibility"):
            self.send(f"{domain}.enable")

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._out)
        os.close(self._in)
        try:
            self._process.wait(10)  # it ends when its pipe does
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._profile.cleanup()

    def send(self, method: str, **params: Any) -> Any:
        """Send one command and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            got = self._receive()
            if got.get("id") != self._number:
                self.events.append(got)
            elif "error" in got:
                raise RuntimeError(f"{method}: {got['error']}")
            else:
                return got["result"]

    def _receive(self) -> dict[str, Any]:
        end = time.monotonic() + DEADLINE_S
        while b"\0" not in self._buffer:
            if not select.select([self._in], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            read = os.read(self._in, 1 << 20)
            if not read:
                raise RuntimeError("the browser has ended")
            self._buffer += read
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def open(self, page: Path, *, anchor: str = "") -> None:
        """Open a file and wait until it is there."""
        self.send("Page.navigate", url="about:blank")  # else another anchor of the same page would load nothing
        self.events.clear()
        self.send("Page.navigate", url=page.resolve().as_uri() + anchor)
        while not self._is_loaded(page.name):
            self.events.append(self._receive())

    def _is_loaded(self, name: str) -> bool:
        """Return whether the page of this name is loaded, and not the one before it."""
        methods = [event.get("method") for event in self.events]
        for place, event in enumerate(self.events):
            if event.get("method") == "Page.frameNavigated" and name in event["params"]["frame"]["url"]:
                return "Page.loadEventFired" in methods[place:]
        return False

    def view(self, width: int, height: int = 900, *, scale: float = 1, **media: str) -> None:
        """Set the size of the window in CSS pixels, and media features such as ``prefers_color_scheme="dark"``."""
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False
        )
        features = [{"name": name.replace("_", "-"), "value": value} for name, value in media.items()]
        self.send("Emulation.setEmulatedMedia", media="", features=features)

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        got = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in got:
            raise RuntimeError(got["exceptionDetails"]["exception"].get("description"))
        return got["result"].get("value")

    def press(self, key: str) -> None:
        """Press and release a key, named as in ``KeyboardEvent.key``."""
        codes = {"Enter": 13, "Tab": 9, "Escape": 27, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39}
        codes |= {"ArrowDown": 40, "Home": 36, "End": 35}
        code = codes.get(key, ord(key.upper()[0]))
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        down = {"text": text} if text else {}
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **down)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def screenshot(self, file: Path, *, whole: bool = False) -> None:
        """Write a PNG of the window, or of the whole page."""
        got = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **self._clip(whole))
        file.write_bytes(base64.b64decode(got["data"]))

    def _clip(self, whole: bool) -> dict[str, Any]:
        if not whole:
            return {}
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}

    def pdf(self, file: Path) -> None:
        """Print to a PDF with the page's own sizes."""
        got = self.send("Page.printToPDF", preferCSSPageSize=True, printBackground=False)
        file.write_bytes(base64.b64decode(got["data"]))
