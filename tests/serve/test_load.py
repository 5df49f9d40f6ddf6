"""bench/load.py, in short: every accepted request of a server under load is answered, also when its ranks are killed.
Usage: test_load.py MOIRAI [NAME...]"""
import array
import json
import os
import subprocess
import sys
import tempfile
import unittest

from server import CLUSTER, PINS, write_model

MOIRAI = ""
BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "load.py")
sys.path.insert(0, os.path.dirname(BENCH))
import load  # noqa: E402


class Simulation(unittest.TestCase):
    """What stands beside measured latencies, by hand: 2 s alone, at most one answer a second."""

    def test_far_apart_each_takes_as_long_as_alone(self):
        self.assertEqual(load.simulate([0, 3, 6], [(2, 1.0)], [2.0], 1.0), [2, 2, 2])

    def test_at_once_answers_are_a_period_apart(self):
        self.assertEqual(load.simulate([0, 0, 0], [(4, 1.0)], [2.0], 1.0), [2, 3, 4])

    def test_slots_are_waited_for(self):
        self.assertEqual(load.simulate([0, 0, 0], [(1, 1.0)], [2.0], 0.5), [2, 4, 6])

    def test_what_one_alone_takes_beyond_its_slot_keeps_no_other_waiting(self):
        self.assertEqual(load.simulate([0, 0, 0], [(1, 1.0)], [2.0], 1.0), [2, 3, 4])
        self.assertEqual(load.simulate([0, 0, 0], [(1, 0.5), (1, 0.5)], [2.0], 2.0), [2, 2, 3])

    def test_copies_do_not_wait_for_each_other(self):
        self.assertEqual(load.simulate([0, 0, 0], [(2, 0.5), (2, 0.5)], [2.0], 1.0), [2, 2, 4])

    def test_slow_ones_are_drawn_again(self):
        said = load.simulate(list(range(0, 4000, 10)), [(1, 1.0)], [1.0] * 9 + [5.0], 1.0)
        self.assertEqual((said[0], said[-1]), (1, 5))
        self.assertTrue(20 <= said.count(5.0) <= 60)

    def test_devices_are_slow_for_a_while(self):
        slow_at = load.slowness([(0, 10.0, 100), (1, 11.0, 110), (2, 11.3, 113), (3, 14.0, 120), (4, 15.0, 130)], 0.1)
        self.assertEqual([(t, round(times, 9)) for t, times in slow_at], [(0, 1.0), (1, 3.0), (3, 1.0)])
        self.assertEqual(load.simulate([0, 0, 0], [(4, 1.0)], [2.0], 1.0, slow_at=[(0, 2.0)]), [4, 6, 8])
        self.assertEqual(load.simulate([0, 5, 20], [(1, 1.0)], [2.0], 0.5, slow_at=[(0, 1.0), (4, 3.0), (15, 1.5)]), [2, 3, 6])
        self.assertEqual(load.simulate([1, 4], [(1, 1.0)], [2.0], 0.5, slow_at=[(3, 2.0)]), [4, 5])

    def test_a_machine_that_becomes_slower_is_no_variation(self):
        even = load.at_one_speed([1.0] * 20 + [3.0] * 20)
        self.assertEqual((even[10], even[-10]), (2, 2))
        self.assertAlmostEqual(load.at_one_speed([1.0, 2.0] * 20)[30] / load.at_one_speed([1.0, 2.0] * 20)[10], 2, 0)

    def test_a_silence_is_one_of_requests_that_wait(self):
        self.assertEqual(load.longest_silence([(0, 1), (0, 2), (50, 53), (60, 61)]), 3)


class Answers(unittest.TestCase):
    def test_rounding_is_no_other_answer(self):
        of = lambda *x: array.array("f", x).tobytes()
        self.assertTrue(load.near(of(1, -2, 0.0001), of(1.0005, -2, 0)))
        self.assertFalse(load.near(of(1, -2), of(1.01, -2)))
        self.assertFalse(load.near(of(float("nan"), -2), of(1, -2)))
        self.assertFalse(load.near(of(1), of(1, 0)))


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
            self.assertGreater(p["p50_simulated_s"], 0)
            self.assertGreaterEqual(p["silence_s"], 0)
            self.assertLessEqual(p["p50_simulated_s"], p["p99_simulated_s"])
            self.assertGreater(p["p50_at_speed_s"], 0)
            self.assertTrue(all(times > 0 for _, times in p["slow_at"]))
            self.assertGreater(len(p["slow_at"]), 0)


if __name__ == "__main__":
    MOIRAI = sys.argv.pop(1)
    unittest.main()
