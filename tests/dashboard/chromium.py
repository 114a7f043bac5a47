"""A headless Chromium over its debugging pipe: open a page, run JavaScript, press keys, take pictures."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.waiting import PATIENCE, until

BINARY = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)

# Chromium reads commands from descriptor 3 and answers on 4; ours may be any numbers, 3 and 4 among them.
LAUNCH = """
import fcntl, os, sys
read, write = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 20) for number in sys.argv[1:3]]
os.dup2(read, 3)
os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Chromium:
    """One browser with one tab; remembers requests, console messages and exceptions."""

    def __init__(self, profile: Path) -> None:
        assert BINARY is not None
        to_read, self._to = os.pipe()
        self._from, to_write = os.pipe()
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                 "--disable-background-networking", "--disable-component-update",
                 "--disable-dev-shm-usage", "--remote-debugging-pipe",
                 f"--user-data-dir={profile}", "--window-size=1500,1000", "about:blank"]  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, str(to_read), str(to_write), BINARY, *flags],
            pass_fds=(to_read, to_write), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_read)
        os.close(to_write)
        self._buffer, self._number, self.events = b"", 0, list[dict[str, Any]]()
        target = self._pages()[0]["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def _pages(self) -> list[dict[str, Any]]:
        found = list[dict[str, Any]]()

        def is_open() -> bool:
            targets = self.call("Target.getTargets")["targetInfos"]
            found.extend(target for target in targets if target["type"] == "page")
            return bool(found)

        until(is_open, step=0.1)
        return found

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if session := getattr(self, "_session", None):
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self.events.append(answer)

    def _receive(self, seconds: float = PATIENCE) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], seconds)
            part = os.read(self._from, 1 << 20) if ready else b""
            if not part:
                raise TimeoutError("Chromium does not answer")
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(text)

    def open(self, url: str) -> None:
        """Load the page; back when every panel is drawn and the frame is on the screen."""
        self.events.clear()
        self.call("Page.navigate", url=url)
        ready = "document.documentElement?.dataset.ready === 'yes'"
        until(lambda: self.js(ready), lambda: str(self.problems()), step=0.02)
        self.js("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def js(self, code: str) -> Any:
        """The value of an expression, promises awaited."""
        answer = self.call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait until an expression is true."""
        until(lambda: self.js(condition), lambda: f"{condition}\n{self.problems()}", step=0.02)

    def text(self, selector: str) -> str:
        """What a reader sees of an element."""
        return self.js(f"document.querySelector({selector!r}).innerText")

    def count(self, selector: str) -> int:
        """How many elements fit."""
        return self.js(f"document.querySelectorAll({selector!r}).length")

    def inked(self, selector: str) -> str:
        """A canvas as text: equal texts are equal pictures."""
        return self.js(f"document.querySelector({selector!r}).toDataURL()")

    def box(self, selector: str) -> list[float]:
        """x, y, width and height on the screen."""
        corners = f"document.querySelector({selector!r}).getBoundingClientRect()"
        return self.js(f"(({{x, y, width, height}}) => [x, y, width, height])({corners})")

    def choose(self, selector: str, value: str, event: str = "change") -> None:
        """Set a control as a reader would."""
        s, v = json.dumps(selector), json.dumps(value)
        self.js(f"(() => {{ const n = document.querySelector({s}); n.value = {v}; "
                f"n.dispatchEvent(new Event('{event}', {{bubbles: true}})); }})()")  # fmt: skip

    def mouse(self, kind: str, x: float, y: float, count: int = 1) -> None:
        """A real pointer event."""
        held = {"button": "left", "buttons": 1} if kind != "mouseReleased" else {"button": "left"}
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, clickCount=count, **held)

    def key(self, key: str, text: str = "") -> None:
        """A key, pressed and released."""
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def size(self, width: int, height: int, dark: bool = False, scale: float = 1) -> None:
        """The window, and what the system prefers."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=False,
        )
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def picture(self, path: Path, whole: bool = True) -> bytes:
        """A screenshot."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))
        return path.read_bytes()

    def problems(self) -> list[str]:
        """Exceptions, console errors and what the policy refused."""
        self.js("1")  # whatever was under way has arrived before the answer
        kinds = ("Runtime.exceptionThrown", "Log.entryAdded")
        errors = [json.dumps(event) for event in self.events if event.get("method") in kinds]
        said = [event for event in self.events if event.get("method") == "Runtime.consoleAPICalled"]
        return errors + [
            json.dumps(event) for event in said if event["params"]["type"] in ("error", "warning")
        ]

    def requests(self) -> list[str]:
        """Addresses asked for since the page was opened."""
        sent = [event for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(PATIENCE)
        os.close(self._to)
        os.close(self._from)
