"""What tests of a page in a browser share: checks that are counted, the command, pictures on demand, and the run of all tests."""
import base64
import os
import subprocess
import sys
import tempfile
import time

import devtools

moirai = os.path.abspath(sys.argv[1])
shots = os.path.abspath(sys.argv[sys.argv.index("--shots") + 1]) if "--shots" in sys.argv else None
failures = []
checks = 0


def check(what, good):
    global checks
    checks += 1
    if not good:
        failures.append(what)
        print("FAILED", what)


def check_quiet(browser, what, path):
    check(f"{what}: no errors: {browser.complaints()}", browser.complaints() == [])
    others = [u for u in browser.requests() if u != "file://" + os.path.abspath(path)]
    check(f"{what}: no requests: {others}", others == [])


def run(*words, code=0):
    done = subprocess.run([moirai, *words], capture_output=True, text=True)
    if done.returncode != code:
        raise RuntimeError(f"moirai {' '.join(words)}: {done.returncode}: {done.stderr}")
    return done.stdout


def shoot(browser, name):
    if not shots:
        return
    height = browser.run("document.documentElement.scrollHeight")
    data = browser.call("Page.captureScreenshot", captureBeyondViewport=True, clip={"x": 0, "y": 0, "width": 1280, "height": height, "scale": 1})
    with open(os.path.join(shots, name + ".png"), "wb") as f:
        f.write(base64.b64decode(data["data"]))


def main(*tests):
    path = devtools.find()
    if not path:
        print("skipped: no Chromium is installed")
        sys.exit(77)
    browser = devtools.Browser(path)
    try:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            for test in tests:
                began = time.monotonic()
                test(browser)
                print(f"{test.__name__}: {time.monotonic() - began:.1f} s")
            os.chdir("/")
    finally:
        browser.close()
    print(f"{checks} checks, {len(failures)} failed")
    sys.exit(1 if failures else 0)
