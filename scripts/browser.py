"""Pictures of pages by headless Chromium, over its debugging pipe: any width, also that of a telephone."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any


class Browser:
    """One browser with one page. Ends with `close`."""

    def __init__(self) -> None:
        if (program := shutil.which("chromium")) is None:
            raise SystemExit("chromium is missing")
        self._directory = tempfile.TemporaryDirectory(prefix="pc-browser-")
        here, there = os.pipe(), os.pipe()  # to it, from it: its descriptors 3 and 4
        words = [program, "--headless", "--no-sandbox", "--disable-gpu", "--no-proxy-server", "--hide-scrollbars"]
        words += [f"--user-data-dir={self._directory.name}", "--remote-debugging-pipe", "about:blank"]
        # bash: dash knows descriptors of one digit only
        line = f'exec "$@" 3<&{here[0]} 4>&{there[1]}'
        self._process = subprocess.Popen(
            ["bash", "-c", line, "bash", *words],
            pass_fds=(here[0], there[1]),
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        os.close(here[0])
        os.close(there[1])
        self._to, self._from = here[1], os.fdopen(there[0], "rb", 0)
        self._last, self._session, self._rest = 0, None, b""
        page = next(of for of in self._ask("Target.getTargets")["targetInfos"] if of["type"] == "page")
        attached = self._ask("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]

    def close(self) -> None:
        # its network and storage services outlive it, and write into the directory until they end
        while self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            time.sleep(0.01)
        self._process.wait()
        self._directory.cleanup()

    def processes(self) -> list[int]:
        """Those of the browser that run, by their pid. A zombie does not."""
        found = []
        for entry in Path("/proc").glob("[0-9]*/stat"):
            try:
                # after the name, which may hold anything: state, parent, group
                state, _, group = entry.read_text().rpartition(")")[2].split()[:3]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(group) == self._process.pid and state not in "ZX":
                found.append(int(entry.parent.name))
        return found

    def _ask(self, method: str, **given: Any) -> dict[str, Any]:
        self._last += 1
        message = {"id": self._last, "method": method, "params": given}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self._rest:
                if not (more := self._from.read(1 << 20)):
                    raise SystemExit("chromium has ended")
                self._rest += more
            text, _, self._rest = self._rest.partition(b"\0")
            answer = json.loads(text)
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise SystemExit(f"chromium: {method}: {answer['error']['message']}")
                return answer["result"]

    def tells(self, url: str, width: int, script: str) -> Any:
        """What an expression of JavaScript is in a page so wide [CSS px], once all of it is there."""
        self._ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 600
        )
        self._ask("Page.navigate", url=url)
        whole = f"new Promise(f => {{ const g = () => f({script});"
        whole += " document.readyState == 'complete' ? g() : addEventListener('load', g) })"
        found = self._ask("Runtime.evaluate", expression=whole, awaitPromise=True, returnByValue=True)
        return found["result"]["value"]

    def picture(self, url: str, file: Path, width: int, most: int, settles_s: float = 3.0) -> int:
        """A page from its top, so wide and at most so high [CSS px]; how wide its contents are."""
        self._ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 600
        )
        self._ask("Page.navigate", url=url)
        time.sleep(settles_s)
        size = self._ask("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": width, "height": min(size["height"], most), "scale": 1}
        taken = self._ask("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(taken["data"]))
        return int(size["width"])
