"""moirai serve when a device becomes slow: it is planned around, and taken back when it is fast again.
Usage: test_slow.py MOIRAI [NAME...]"""
import json
import re
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from server import Server, field, node, value_info

MOIRAI = ""
SIZE = 384
PLACES = "A" * 4 + "B" * 16 + "C" * 4 # the work of B takes several turns of the brake
NAMES = ["p%02d" % k for k in range(len(PLACES))]


def write_products(path):
    """Products of matrices, one after the other: enough work to be slowed."""
    nodes = [node("MatMul", [last, "x"], name) for last, name in zip(["x"] + NAMES, NAMES)]
    graph = b"".join(field(1, n) for n in nodes) + field(2, "small")
    graph += field(11, value_info("x", 1, [SIZE, SIZE])) + field(12, value_info(NAMES[-1], 1, [SIZE, SIZE]))
    with open(path, "wb") as f:
        f.write(field(1, 8) + field(7, graph) + field(8, field(2, 13)))


PINS = [word for k, name in enumerate(NAMES) for word in ("--pin", "MatMul_%s=%s" % (name, PLACES[k]))]
DATA = b"".join(struct.pack("<%df" % SIZE, *(2.0 if k == row else 0.0 for k in range(SIZE))) for row in range(SIZE))
PRODUCT = b"".join(struct.pack("<%df" % SIZE, *(2.0 ** (len(PLACES) + 1) if k == row else 0.0 for k in range(SIZE))) for row in range(SIZE))
HEAD = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [SIZE, SIZE], "parameters": {"binary_data_size": len(DATA)}}],
                   "parameters": {"binary_data_output": True}}).encode()


class Client(threading.Thread):
    def __init__(self, server):
        super().__init__()
        self.server, self.stopping, self.wrong, self.answers = server, False, [], 0
        self.start()

    def run(self):
        while not self.stopping:
            code, data, headers = self.server.get("/v2/models/small/infer", "POST", HEAD + DATA, {"Inference-Header-Content-Length": str(len(HEAD))})
            if code != 200 or data[int(headers["Inference-Header-Content-Length"]):] != PRODUCT:
                self.wrong.append((code, data[:200]))
            self.answers += 1
            time.sleep(0.05) # enough of them to tell, and a core for the tests beside


BRAKE = """
import os, signal, sys, time
pid, times = int(sys.argv[1]), int(sys.argv[2])
try:
    os.nice(-10)
except PermissionError:
    pass
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
try:
    while True:
        ran = time.monotonic()
        time.sleep(0.001)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(times * (time.monotonic() - ran))
        os.kill(pid, signal.SIGCONT)
except ProcessLookupError:
    pass
finally:
    try:
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        pass
"""


class Brake:
    """Stops a process for so many times as long as it lets it run, in turns shorter than what it does for a request; a process
    of its own, whose turns nothing in this one makes longer."""

    def __init__(self, pid, times):
        self.process = subprocess.Popen([sys.executable, "-c", BRAKE, str(pid), str(times)])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


class Slow(unittest.TestCase):
    def test_a_slow_device_is_planned_around_and_taken_back(self):
        with tempfile.TemporaryDirectory(prefix="moirai-serve") as folder, \
             Server(MOIRAI, folder, "--no-fallback", "--slow-for", "2", "--plan-limit", "1", write=write_products, pins=PINS, slow="3") as server:
            b = server.ranks()[1]
            clients = []
            try:
                with Brake(b, 9): # from the first request on: what it takes then is not what is expected of it for ever
                    clients += [Client(server) for _ in range(3)]
                    self.wait_for_slowness(server, lambda slowness: 0.7 < slowness < 2)
                self.wait_for_slowness(server, lambda slowness: slowness < 0.6)
                self.wait_for_slowness(server, lambda slowness: 0.7 < slowness < 2)
                with Brake(b, 40):
                    server.wait_for(r"slow: device 'B' takes [\d.]+ times as long as expected, for 2 s", seconds=240)
                    slowness = server.metrics()['moirai_device_slowness{device="B"}']
                    found = server.wait_for(r"by another plan: device 'B' at ([\d.]+) of its speed", seconds=180)
                self.assertGreater(slowness, 3)
                self.assertLess(float(found.group(1)), 1 / 3)
                self.assertGreaterEqual(server.metrics()["moirai_replans_total"], 1)
                with open(server.at("w/plan/slow-0.json")) as f:
                    work = [op["device"] for op in json.load(f)["ops"]]
                self.assertLess(work.count("B"), PLACES.count("B"))
                server.wait_for("back: all 3 devices of the plan", seconds=300)
            finally:
                for c in clients:
                    c.stopping = True
                for c in clients:
                    c.join()
            for c in clients:
                self.assertEqual(c.wrong, [])
            self.assertEqual(server.stop(), 0, server.text())
            accepted = int(re.search(r"(\d+) requests were accepted, and all of them answered", server.text()).group(1))
            self.assertEqual(sum(c.answers for c in clients), accepted)

    def wait_for_slowness(self, server, fits):
        end, seen = time.monotonic() + 120, None
        while time.monotonic() < end:
            seen = server.metrics().get('moirai_device_slowness{device="B"}', 0)
            if fits(seen):
                return
            time.sleep(0.05)
        raise AssertionError("device 'B' has a slowness of %s" % seen)


if __name__ == "__main__":
    MOIRAI = sys.argv.pop(1)
    unittest.main()
