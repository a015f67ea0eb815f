"""Chromium without a window, driven over pipes by its DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

_OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
    "--remote-debugging-pipe", "--window-size=1500,900",
)  # fmt: skip
_PATIENCE = 120.0


class Browser:
    """One page in a browser of its own; ``errors`` has what it complained about."""

    def __init__(self, profile: Path) -> None:
        self.errors: list[str] = []
        self._number = 0
        ours_read, theirs_write = os.pipe()
        theirs_read, ours_write = os.pipe()
        self._read, self._write = ours_read, ours_write
        self._buffer = b""

        def place() -> None:  # the browser reads from 3 and writes to 4
            os.dup2(theirs_read, 103)
            os.dup2(theirs_write, 104)
            os.dup2(103, 3)
            os.dup2(104, 4)

        self._process = subprocess.Popen(
            ["chromium", *_OPTIONS, f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=place, close_fds=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs_read)
        os.close(theirs_write)
        targets = self._call("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: object, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._read)
        os.close(self._write)

    def call(self, method: str, **params: Any) -> Any:
        """A command to the page."""
        return self._call(method, self._session, **params)

    def open(self, path: Path, ready: str) -> None:
        """Load a file and wait for an expression to be true."""
        self.call("Page.navigate", url=path.as_uri())
        self.wait(ready)

    def wait(self, expression: str) -> None:
        """Wait until an expression of JavaScript is true."""
        end = time.monotonic() + _PATIENCE
        while not self.evaluate(expression):
            assert time.monotonic() < end, f"{expression} never came true: {self.errors}"
            time.sleep(0.02)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def screenshot(self) -> bytes:
        """The page as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot")["data"])

    def _call(self, method: str, session: str | None = None, **params: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self._note(answer)

    def _next(self) -> Any:
        while b"\0" not in self._buffer:
            data = os.read(self._read, 1 << 16)
            assert data, "the browser has ended"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _note(self, event: Any) -> None:
        params = event.get("params", {})
        if event["method"] == "Runtime.exceptionThrown":
            self.errors.append(str(params["exceptionDetails"]))
        if event["method"] == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.errors.append(str(params["args"]))
        if event["method"] == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"])
