"""moirai serve when a device becomes slow: it is planned around, and taken back when it is fast again.
Usage: test_slow.py MOIRAI [NAME...]"""
import json
import os
import re
import signal
import struct
import sys
import tempfile
import threading
import time
import unittest

from server import Server, field, node, value_info

MOIRAI = ""
SIZE = 384
NAMES = ["a", "b", "c", "d", "e", "f"]


def write_products(path):
    """Six products of matrices, one after the other: enough work to be slowed."""
    nodes = [node("MatMul", [last, "x"], name) for last, name in zip(["x"] + NAMES, NAMES)]
    graph = b"".join(field(1, n) for n in nodes) + field(2, "small")
    graph += field(11, value_info("x", 1, [SIZE, SIZE])) + field(12, value_info("f", 1, [SIZE, SIZE]))
    with open(path, "wb") as f:
        f.write(field(1, 8) + field(7, graph) + field(8, field(2, 13)))


PINS = [word for k, name in enumerate(NAMES) for word in ("--pin", "MatMul_%s=%s" % (name, "AABBCC"[k]))]
DATA = b"".join(struct.pack("<%df" % SIZE, *(2.0 if k == row else 0.0 for k in range(SIZE))) for row in range(SIZE))
PRODUCT = b"".join(struct.pack("<%df" % SIZE, *(128.0 if k == row else 0.0 for k in range(SIZE))) for row in range(SIZE))
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
            time.sleep(0.03) # enough of them to tell, and a core for the tests beside


class Brake(threading.Thread):
    """Stops a process for most of the time."""

    def __init__(self, find):
        super().__init__()
        self.find, self.stopping = find, False
        self.start()

    def run(self):
        while not self.stopping:
            for pid in self.find():
                try:
                    os.kill(pid, signal.SIGSTOP)
                    time.sleep(0.09)
                    os.kill(pid, signal.SIGCONT)
                except ProcessLookupError:
                    pass
            time.sleep(0.01)


class Slow(unittest.TestCase):
    def test_a_slow_device_is_planned_around_and_taken_back(self):
        with tempfile.TemporaryDirectory(prefix="moirai-serve") as folder, \
             Server(MOIRAI, folder, "--no-fallback", "--slow-for", "2", "--plan-limit", "1", write=write_products, pins=PINS, slow="3") as server:
            clients = [Client(server) for _ in range(3)]
            try:
                self.wait_for_answers(clients, 150)
                ranks = server.ranks()
                brake = Brake(lambda: [pid for pid in ranks[1:2] if os.path.exists("/proc/%d" % pid)])
                try:
                    server.wait_for(r"slow: device 'B' takes [\d.]+ times as long as expected, for 2 s", seconds=240)
                    slowness = server.metrics()['moirai_device_slowness{device="B"}']
                    found = server.wait_for(r"by another plan: device 'B' at ([\d.]+) of its speed", seconds=180)
                finally:
                    brake.stopping = True
                    brake.join()
                self.assertGreater(slowness, 3)
                self.assertLess(float(found.group(1)), 1 / 3)
                self.assertGreaterEqual(server.metrics()["moirai_replans_total"], 1)
                with open(server.at("w/plan/slow-0.json")) as f:
                    work = [op["device"] for op in json.load(f)["ops"]]
                self.assertLess(work.count("B"), 2) # it had two of the six
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

    def wait_for_answers(self, clients, n):
        end = time.monotonic() + 300
        while sum(c.answers for c in clients) < n and time.monotonic() < end:
            time.sleep(0.1)
        self.assertGreaterEqual(sum(c.answers for c in clients), n)


if __name__ == "__main__":
    MOIRAI = sys.argv.pop(1)
    unittest.main()
