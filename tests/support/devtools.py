"""A headless Chromium driven by its DevTools protocol over a pair of pipes; standard library only."""
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find():
    """The browser's path, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    def __init__(self, path):
        self.profile = tempfile.mkdtemp(prefix="moirai-browser-")
        to_read, self.out = os.pipe()
        self.inp, to_write = os.pipe()
        os.set_inheritable(to_read, True)
        os.set_inheritable(to_write, True)
        # The browser reads commands from descriptor 3 and writes answers to 4; a shell puts them there.
        line = f'exec 3<&{to_read} 4>&{to_write}; exec "$@"'
        self.process = subprocess.Popen(
            ["bash", "-c", line, "bash", path, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
             f"--user-data-dir={self.profile}", "--window-size=1280,900", "about:blank"],
            pass_fds=(to_read, to_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(to_read)
        os.close(to_write)
        self.buffer, self.number, self.session, self.events = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")

    def close(self):
        try:
            os.close(self.out)
            os.close(self.inp)
            self.process.wait(5)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self, seconds):
        """The next message, or None after that many seconds."""
        end = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.inp], [], [], max(0, end - time.monotonic()))
            if not ready:
                return None
            part = os.read(self.inp, 1 << 20)
            if not part:
                raise RuntimeError("the browser went away")
            self.buffer += part
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + 60
        while time.monotonic() < end:
            answer = self.receive(60)
            if answer and answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            if answer:
                self.events.append(answer)
        raise RuntimeError(f"{method}: no answer")

    def run(self, script):
        """The value of a script in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def open(self, path):
        """Opens a file and waits until the page has drawn itself; returns the seconds that it took."""
        self.events.clear()
        began = time.monotonic()
        url = "file://" + os.path.abspath(path)
        self.call("Page.navigate", url=url)
        ready = f"location.href === {json.dumps(url)} && document.documentElement?.hasAttribute('data-ready') && document.readyState === 'complete'"
        while not self.run(ready):
            if time.monotonic() - began > 60:
                raise RuntimeError(f"{path}: the page never got ready: {self.complaints()}")
            time.sleep(0.01)
        self.frame()
        return time.monotonic() - began

    def frame(self):
        """Waits for what was asked to be drawn."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def requests(self):
        return [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]

    def complaints(self):
        """Exceptions, errors on the console, refused loads."""
        self.run("0")
        return [e["params"] for e in self.events
                if e.get("method") in ("Runtime.exceptionThrown", "Network.loadingFailed")
                or (e.get("method") == "Log.entryAdded" and e["params"]["entry"]["level"] in ("error", "warning"))
                or (e.get("method") == "Runtime.consoleAPICalled" and e["params"]["type"] in ("error", "warning"))]
