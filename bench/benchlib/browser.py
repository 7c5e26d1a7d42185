# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium that is driven over its debugging pipe."""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time


class Failed(Exception):
    """The browser answered with an error, or has ended."""


def find():
    """The browser's path, or None if none is installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    """One page, drawn by software, so that figures of machines without a display can be compared."""

    def __init__(self, width=1400, height=900, timeout=60):
        self.profile = tempfile.TemporaryDirectory(prefix="horo-bench-browser-", ignore_cleanup_errors=True)
        self.timeout = timeout
        self.number = 0
        self.waiting = b""
        self.events = []
        command_read, self.to = os.pipe()
        self.of, answer_write = os.pipe()
        # The protocol of the pipe uses descriptors 3 and 4.
        script = 'exec 3<&%d 4>&%d; exec "$@"' % (command_read, answer_write)
        self.process = subprocess.Popen(
            ["bash", "-c", script, "bash", find(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--remote-debugging-pipe", "--user-data-dir=" + self.profile.name,
             "--window-size=%d,%d" % (width, height), "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=(command_read, answer_write), start_new_session=True)
        os.close(command_read)
        os.close(answer_write)
        self.session = None
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        self.call("Page.enable")

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        os.close(self.to)
        os.close(self.of)
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.profile.cleanup()

    def send(self, method, **parameters):
        """Sends a command without waiting; returns the number of its answer."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        return self.number

    def call(self, method, **parameters):
        number = self.send(method, **parameters)
        while True:
            answer = self.read()
            if answer.get("id") != number:
                self.events.append(answer)
            elif "error" in answer:
                raise Failed("%s: %s" % (method, answer["error"].get("message")))
            else:
                return answer["result"]

    def read(self):
        end = time.monotonic() + self.timeout
        while b"\0" not in self.waiting:
            if not select.select([self.of], [], [], max(0, end - time.monotonic()))[0]:
                raise Failed("no answer within %d s" % self.timeout)
            got = os.read(self.of, 1 << 20)
            if not got:
                raise Failed("the browser has ended")
            self.waiting += got
        text, _, self.waiting = self.waiting.partition(b"\0")
        return json.loads(text)

    def value(self, expression):
        """The value of a JavaScript expression in the page; for a promise, its result."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise Failed(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    def open(self, address):
        """Seconds until the page has loaded and been drawn."""
        begin = time.monotonic()
        self.events.clear()
        self.call("Page.navigate", url=address)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.read())
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return time.monotonic() - begin

    def mouse(self, kind, x, y, **more):
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
