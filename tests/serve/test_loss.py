"""moirai serve when devices leave: kill -9 under load, plans without a device, the device's return.
Usage: test_loss.py MOIRAI [NAME...]"""
import json
import os
import re
import signal
import sys
import tempfile
import time
import unittest

from server import Load, Server, total

MOIRAI = ""
WITHOUT = ["without-%d" % rank for rank in range(3)]


class Loss(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="moirai-serve")
        self.addCleanup(self.folder.cleanup)

    def load(self, server, n):
        loads = [Load(server, seed) for seed in range(n)]
        time.sleep(0.5)
        return loads

    def end(self, server, loads):
        """Nobody got anything but a right answer, and everything accepted was answered."""
        for load in loads:
            load.stopping = True
        for load in loads:
            load.join()
            self.assertEqual((set(load.codes), load.wrong, load.refused), ({200}, [], 0), server.text())
        self.assertEqual(server.stop(), 0, server.text())
        accepted = int(re.search(r"(\d+) requests were accepted, and all of them answered", server.text()).group(1))
        self.assertEqual(total(loads, 200), accepted)
        self.assertEqual([server.ranks(plan) for plan in ("plan", *WITHOUT)], [[]] * 4)

    def stand_by(self, server, count=1):
        for device in "ABC":
            server.wait_for("the plan without '%s' is loaded and stands by" % device, count=count, seconds=60)

    def test_the_others_go_on_and_the_device_comes_back(self):
        with Server(MOIRAI, self.folder.name, "--retake", "1", "--plan-limit", "1") as server:
            server.wait_for("plans for the case that a device leaves: 3 of 3")
            loads = self.load(server, 4)
            os.kill(server.ranks()[1], signal.SIGKILL)
            server.wait_for(r"lost: device 'B' \(rank 1\) died: signal 9, Killed; \d+ requests")
            server.wait_for(r"going on after [\d.]+ s with \d devices, without 'B'")
            server.wait_for("back: all 3 devices of the plan")
            metrics = server.metrics()
            self.assertEqual([metrics['moirai_device_up{device="%s"}' % d] for d in "ABC"], [1, 1, 1])
            self.assertEqual(metrics["moirai_groups_total"], 3)
            self.end(server, loads)

    def test_the_first_rank_too_and_four_times_in_a_row(self):
        with Server(MOIRAI, self.folder.name, "--retake", "0.2", "--plan-limit", "1") as server:
            self.stand_by(server)
            loads = self.load(server, 4)
            for k in range(4):
                server.wait_for("the plan without '%s' is loaded and stands by" % "ABC"[k % 3], count=1 + k // 3, seconds=60)
                os.kill(server.ranks()[k % 3], signal.SIGKILL)
                server.wait_for("lost: ", count=k + 1)
                server.wait_for("back: all 3 devices of the plan", count=k + 1, seconds=60)
            self.end(server, loads)
            seconds = sorted(float(s) for s in re.findall(r"going on after ([\d.]+) s", server.text()))
            self.assertEqual(len(seconds), 4)
            self.assertLess(seconds[-1], 3)
            print("recovery, s: %s" % " ".join("%.2f" % s for s in seconds))

    def test_a_plan_that_stands_by_goes_on_with_the_processes_it_has(self):
        with Server(MOIRAI, self.folder.name, "--retake", "1", "--plan-limit", "1") as server:
            self.stand_by(server)
            waiting = [server.ranks(plan) for plan in WITHOUT]
            self.assertTrue(all(waiting), waiting)
            loads = self.load(server, 4)
            os.kill(server.ranks()[1], signal.SIGKILL)
            server.wait_for(r"going on after [\d.]+ s with \d devices, without 'B'")
            self.assertEqual(server.ranks("without-1"), waiting[1])
            # While the first comes up again, a device of those that serve dies: another plan stands by.
            os.kill(waiting[1][0], signal.SIGKILL)
            server.wait_for("lost: ", count=2)
            server.wait_for("going on after", count=2)
            server.wait_for("back: all 3 devices of the plan")
            server.wait_for("the plan without 'B' is loaded and stands by", count=2, seconds=60)
            # One that waits dies: nobody notices, and it is loaded again.
            os.kill(server.ranks("without-1")[0], signal.SIGKILL)
            server.wait_for("the plan without 'B' does not stand by: device '[AC]' .rank 0. died")
            server.wait_for("the plan without 'B' is loaded and stands by", count=3, seconds=60)
            self.end(server, loads)

    def test_a_launcher_that_does_not_notice_keeps_nobody_waiting(self):
        with Server(MOIRAI, self.folder.name, "--retake", "1", "--plan-limit", "1") as server:
            self.stand_by(server)
            loads = self.load(server, 4)
            rank = server.ranks()[1]
            with open("/proc/%d/stat" % rank) as f:
                launcher = int(f.read().rpartition(")")[2].split()[1])
            os.kill(launcher, signal.SIGSTOP)
            os.kill(rank, signal.SIGKILL)
            server.wait_for(r"lost: device 'B' \(rank 1\) died: signal 9, Killed; \d+ requests", seconds=10)
            server.wait_for(r"going on after [\d.]+ s with \d devices, without 'B'")
            server.wait_for("back: all 3 devices of the plan")
            self.end(server, loads)

    def test_nothing_stands_by_where_that_is_not_wanted(self):
        with Server(MOIRAI, self.folder.name, "--retake", "1", "--plan-limit", "1", "--standby", "0") as server:
            server.wait_for("plans for the case that a device leaves: 3 of 3")
            loads = self.load(server, 2)
            self.assertEqual([server.ranks(plan) for plan in WITHOUT], [[]] * 3)
            os.kill(server.ranks()[1], signal.SIGKILL)
            server.wait_for(r"going on after [\d.]+ s with \d devices, without 'B'")
            server.wait_for("back: all 3 devices of the plan")
            self.assertNotIn("stands by", server.text())
            self.end(server, loads)

    def test_a_plan_with_copies_is_followed_by_one_for_many_requests(self):
        with Server(MOIRAI, self.folder.name, "--retake", "1", "--plan-limit", "1", copies="BC", slots=(2, 1, 1)) as server:
            server.wait_for("plans for the case that a device leaves: 3 of 3")
            with open(server.at("w/plan/without-1.json")) as f:
                other = json.load(f)
            self.assertEqual((other["objective"], "B" in str(other.get("copies", other["ops"]))), ("rate", False))
            loads = self.load(server, 4)
            os.kill(server.ranks()[1], signal.SIGKILL)
            server.wait_for(r"going on after [\d.]+ s with (1 device|[2-9] devices), without 'B'")
            server.wait_for("back: all 3 devices of the plan")
            self.end(server, loads)

    def test_without_other_plans_all_start_again(self):
        with Server(MOIRAI, self.folder.name, "--no-fallback") as server:
            loads = self.load(server, 2)
            os.kill(server.ranks()[2], signal.SIGKILL)
            server.wait_for("going on after [0-9.]+ s with all 3 devices of the plan")
            self.end(server, loads)

    def test_while_nobody_is_at_work_it_says_so(self):
        with Server(MOIRAI, self.folder.name, "--no-fallback") as server:
            for k in range(3):
                os.kill(server.ranks()[0], signal.SIGKILL)
                code, end = 200, time.monotonic() + 20
                while code == 200 and time.monotonic() < end:
                    code = server.get("/v2/health/ready")[0]
                self.assertEqual(code, 503)
                self.assertEqual(server.get("/v2/health/live")[0], 200)
                server.wait_for("going on after", count=k + 1)
                self.assertEqual(server.get("/v2/health/ready")[0], 200)
            self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    MOIRAI = sys.argv.pop(1)
    unittest.main()
