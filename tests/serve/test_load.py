"""bench/load.py, in short: every accepted request of a server under load is answered, also when its ranks are killed.
Usage: test_load.py MOIRAI [NAME...]"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

from server import CLUSTER, PINS, write_model

MOIRAI = ""
BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "load.py")


class Load(unittest.TestCase):
    def test_latencies_and_two_losses(self):
        with tempfile.TemporaryDirectory(prefix="moirai-serve") as folder:
            at = lambda name: os.path.join(folder, name)
            write_model(at("small.onnx"))
            with open(at("c.json"), "w") as f:
                json.dump(CLUSTER, f)
            subprocess.run([MOIRAI, "plan", at("small.onnx"), "--cluster", at("c.json"), "--placer", "heft", "--rules", "none", *PINS, "-o", at("plan.json"), "-q"],
                           check=True, stdout=subprocess.DEVNULL)
            words = [sys.executable, BENCH, at("plan.json"), at("small.onnx"), "--cluster", at("c.json"), "--moirai", MOIRAI, "--find", "1", "--seconds", "2",
                     "--parts", "50,80", "--kills", "2", "--json", at("said.json"), "--", "--rules", "none", "--retake", "0.2", "--plan-limit", "1", "--slow", "0",
                     "--queue", "1000"]
            r = subprocess.run(words, capture_output=True, text=True, timeout=800)
            self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
            with open(at("said.json")) as f:
                said = json.load(f)
        self.assertEqual(said["accepted"], said["codes"]["200"])
        self.assertEqual((said["wrong"], said["broken"], len(said["recovery_s"])), (0, 0, 2))
        self.assertEqual([p["percent"] for p in said["parts"]], [50, 80])
        for p in said["parts"]:
            self.assertGreater(p["requests"], 0)
            self.assertTrue(0 < p["p50_s"] <= p["p99_s"])
            self.assertGreaterEqual(p["p50_simulated_s"], said["alone_s"] * 0.999) # nothing is faster than one alone
            self.assertLessEqual(p["p50_simulated_s"], p["p99_simulated_s"])


if __name__ == "__main__":
    MOIRAI = sys.argv.pop(1)
    unittest.main()
