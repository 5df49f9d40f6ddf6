#!/usr/bin/env python3
"""The plan checker itself: hand-made plans of every mode, each right, and wrong after a single change, for the right reason."""
import copy
import os
import random
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check_plan import check  # noqa: E402


def op(name, times, inputs=(), outputs=(), memory=0, group=None):
    o = {"name": name, "type": "Op", "memory_bytes": memory, "time_ns": list(times), "inputs": list(inputs),
         "outputs": [dict(zip(("name", "bytes", "transfer_ns"), t)) for t in outputs]}
    return dict(o, group=group) if group else o


def problem(ops, flow="tensor", congestion="port", memory="static", capacity=(100, 100), rate=10 ** 9, latency=0):
    names = "ABCDEFGH"[:len(capacity)]
    return {"format": "moirai-problem", "version": 1, "name": "p", "flow": flow, "congestion": congestion, "memory": memory,
            "devices": [{"name": n, "memory_bytes": c} for n, c in zip(names, capacity)],
            "channels": [{"from": a, "to": b, "bytes_per_second": rate, "latency_ns": latency}
                         for a in names for b in names if a != b], "ops": ops}


def plan(ops, transfers=(), **more):
    """ops: (name, device, start, finish); transfers: (tensor, from, to, start, finish[, consumer])."""
    doc = {"format": "moirai-plan", "version": 1, "problem": "p", "makespan_ns": max((o[3] for o in ops), default=0),
           "ops": [dict(zip(("name", "device", "start_ns", "finish_ns"), o)) for o in ops],
           "transfers": [dict(zip(("tensor", "from", "to", "start_ns", "finish_ns", "consumer"), t)) for t in transfers]}
    return dict(doc, **more)


# a writes s (4 bytes, 4 ns on the way) and t (6 bytes); b and c on B read s, c also t; d on A reads what c writes.
OPS = [op("a", (5, 7), outputs=[("s", 4), ("t", 6)], memory=30), op("b", (3, 4), ["s"], [("u", 0)], 20),
       op("c", (9, 2), ["s", "t"], [("v", 3)], 10), op("d", (1, 1), ["v", "w"], memory=5)]
GOOD_OPS = [("a", "A", 0, 5), ("b", "B", 9, 13), ("c", "B", 15, 17), ("d", "A", 20, 21)]
GOOD_TRANSFERS = [("s", "A", "B", 5, 9), ("t", "A", "B", 9, 15), ("v", "B", "A", 17, 20)]


class Checks(unittest.TestCase):
    def right(self, p, x):
        self.assertEqual(check(p, x), [])

    def wrong(self, p, x, words):
        faults = check(p, x)
        self.assertTrue(any(words in f for f in faults), f"{words!r} is not among {faults}")

    def changed(self, words, **where):
        """GOOD with one operator or transfer changed: op=(index, key, value) or transfer=(index, key, value)."""
        x = copy.deepcopy(plan(GOOD_OPS, GOOD_TRANSFERS))
        for kind, (index, key, value) in where.items():
            x[kind][index][key] = value
        self.wrong(problem(OPS), x, words)


class TestTimes(Checks):
    def test_a_plan_by_hand_is_right(self):
        self.right(problem(OPS), plan(GOOD_OPS, GOOD_TRANSFERS))

    def test_operators_take_their_time(self):
        self.changed("operator d takes 2 ns on A, not 1", ops=(3, "finish_ns", 22))
        self.changed("operator b takes 3 ns on B, not 4", ops=(1, "finish_ns", 12))

    def test_nothing_starts_before_zero(self):
        x = plan([("a", "A", -5, 0)] + GOOD_OPS[1:], GOOD_TRANSFERS)
        self.wrong(problem(OPS), x, "starts at -5, before time 0")

    def test_transfers_take_their_time(self):
        self.changed("transfer of s for B takes 3 ns, not 4", transfers=(0, "finish_ns", 8))
        self.changed("transfer of v for A takes 4 ns, not 3", transfers=(2, "start_ns", 16))

    def test_transfer_times_round_up_and_add_latency(self):
        ops = [op("a", (1, 1), outputs=[("s", 10)]), op("b", (1, 1), ["s"])]
        p = problem(ops, rate=3 * 10 ** 9, latency=2)  # 10 / 3 ns, up, and 2
        self.right(p, plan([("a", "A", 0, 1), ("b", "B", 7, 8)], [("s", "A", "B", 1, 7)]))
        self.wrong(p, plan([("a", "A", 0, 1), ("b", "B", 6, 7)], [("s", "A", "B", 1, 6)]), "takes 5 ns, not 6")

    def test_a_table_counts_instead(self):
        ops = [op("a", (1, 1), outputs=[("s", 10, [[0, 50], [60, 0]])]), op("b", (1, 1), ["s"])]
        self.right(problem(ops), plan([("a", "B", 0, 1), ("b", "A", 61, 62)], [("s", "B", "A", 1, 61)]))
        self.wrong(problem(ops), plan([("a", "A", 0, 1), ("b", "B", 61, 62)], [("s", "A", "B", 1, 61)]), "takes 60 ns, not 50")

    def test_numbers_do_not_overflow(self):
        huge = 2 ** 60
        ops = [op("a", (1, 1), outputs=[("s", huge)]), op("b", (1, 1), ["s"])]
        p = problem(ops, rate=10 ** 9)
        self.right(p, plan([("a", "A", 0, 1), ("b", "B", huge + 1, huge + 2)], [("s", "A", "B", 1, huge + 1)]))
        self.wrong(p, plan([("a", "A", 0, 1), ("b", "B", huge, huge + 1)], [("s", "A", "B", 1, huge)]), f"not {huge}")


class TestOrder(Checks):
    def test_inputs_are_there_first(self):
        x = plan(GOOD_OPS[:2] + [("c", "B", 14, 16)] + GOOD_OPS[3:], GOOD_TRANSFERS)
        self.wrong(problem(OPS), x, "operator c starts at 14, its input t is there at 15")
        x = plan([("a", "A", 0, 5), ("b", "B", 8, 12)] + GOOD_OPS[2:], GOOD_TRANSFERS)
        self.wrong(problem(OPS), x, "operator b starts at 8, its input s is there at 9")

    def test_on_one_device_too(self):
        p = problem([op("a", (5, 5), outputs=[("s", 4)]), op("b", (3, 3), ["s"])])
        self.right(p, plan([("a", "A", 0, 5), ("b", "A", 5, 8)]))
        self.wrong(p, plan([("a", "A", 3, 8), ("b", "A", 0, 3)]), "its input s is there at 8")

    def test_a_transfer_waits_for_its_tensor(self):
        x = plan([("a", "A", 0, 5), ("b", "B", 9, 13), ("c", "B", 15, 17), ("d", "A", 20, 21)],
                 [("s", "A", "B", 4, 8), ("t", "A", "B", 9, 15), ("v", "B", "A", 17, 20)])
        self.wrong(problem(OPS), x, "transfer of s starts at 4, produced at 5")

    def test_what_nobody_makes_needs_no_transfer(self):
        self.right(problem([op("a", (1, 1), ["image"])]), plan([("a", "B", 0, 1)]))


class TestPlaces(Checks):
    def test_every_operator_once(self):
        self.wrong(problem(OPS), plan(GOOD_OPS[:3], GOOD_TRANSFERS[:2]), "operator d is nowhere")
        self.wrong(problem(OPS), plan(GOOD_OPS + [("d", "A", 30, 31)], GOOD_TRANSFERS), "operator d is there twice")
        self.wrong(problem(OPS), plan(GOOD_OPS + [("e", "A", 30, 31)], GOOD_TRANSFERS), "operator e is not one of the problem's")

    def test_devices_that_exist_and_can(self):
        self.changed("operator d is on C", ops=(3, "device", "C"))
        p = problem([op("a", (None, 4))])
        self.right(p, plan([("a", "B", 0, 4)]))
        self.wrong(p, plan([("a", "A", 0, 4)]), "operator a can't run on A")

    def test_groups_share_a_device(self):
        p = problem([op("a", (1, 1), group="g"), op("b", (1, 1), group="g"), op("c", (1, 1))])
        self.right(p, plan([("a", "A", 0, 1), ("b", "A", 1, 2), ("c", "B", 0, 1)]))
        self.wrong(p, plan([("a", "A", 0, 1), ("b", "B", 0, 1), ("c", "B", 1, 2)]), "group g is on A and B")


class TestFlow(Checks):
    def test_one_transfer_per_tensor_and_device(self):
        p = problem(OPS)
        self.wrong(p, plan(GOOD_OPS, GOOD_TRANSFERS[1:]), "transfer of s for B is missing")
        self.wrong(p, plan(GOOD_OPS, GOOD_TRANSFERS + [("s", "A", "B", 30, 34)]), "transfer of s for B is there twice")
        self.wrong(p, plan(GOOD_OPS, GOOD_TRANSFERS + [("u", "B", "A", 30, 30)]), "transfer of u for A is not needed")
        self.wrong(p, plan(GOOD_OPS, GOOD_TRANSFERS + [("x", "A", "B", 30, 34)]), "no such tensor or device")
        self.changed("goes from B to B, not from A to B", transfers=(0, "from", "B"))

    def test_one_transfer_per_reader(self):
        p = problem(OPS, flow="edge")
        ops = [("a", "A", 0, 5), ("b", "B", 9, 13), ("c", "B", 19, 21), ("d", "A", 24, 25)]
        sent = [("s", "A", "B", 5, 9, "b"), ("s", "A", "B", 9, 13, "c"), ("t", "A", "B", 13, 19, "c"), ("v", "B", "A", 21, 24, "d")]
        self.right(p, plan(ops, sent))
        self.wrong(p, plan(ops, [sent[0]] + sent[2:]), "transfer of s for c is missing")
        self.wrong(p, plan(ops, sent + [("s", "A", "B", 30, 34, "d")]), "transfer of s for d is not needed")
        self.wrong(p, plan(ops, [t[:5] for t in sent]), "malformed")

    def test_a_tensor_read_twice_by_one_operator_is_sent_once(self):
        p = problem([op("a", (1, 1), outputs=[("s", 2)]), op("b", (1, 1), ["s", "s"])], flow="edge")
        self.right(p, plan([("a", "A", 0, 1), ("b", "B", 3, 4)], [("s", "A", "B", 1, 3, "b")]))

    def test_bytes_that_are_said_are_right(self):
        x = plan(GOOD_OPS, GOOD_TRANSFERS)
        x["transfers"][0]["bytes"] = 4
        self.right(problem(OPS), x)
        x["transfers"][0]["bytes"] = 5
        self.wrong(problem(OPS), x, "has 5 bytes, not 4")


class TestResources(Checks):
    def test_a_device_runs_one_operator_at_a_time(self):
        p = problem([op("a", (5, 5)), op("b", (5, 5)), op("c", (0, 0))])
        self.right(p, plan([("a", "A", 0, 5), ("b", "A", 5, 10), ("c", "A", 3, 3)]))  # no time, no place
        self.wrong(p, plan([("a", "A", 0, 5), ("b", "A", 4, 9), ("c", "A", 0, 0)]), "device A: operator a and operator b at once")

    def test_a_long_operator_overlaps_with_later_ones(self):
        p = problem([op("a", (50, 5)), op("b", (1, 5)), op("c", (1, 0))])
        faults = check(p, plan([("a", "A", 0, 50), ("b", "A", 10, 11), ("c", "A", 20, 21)]))
        self.assertEqual(len(faults), 2)  # c does not overlap with its neighbour b, but with a

    # Two tensors from A, to B and to C; and one from B to C.
    FAN = [op("a", (1, 1, 1), outputs=[("s", 4), ("t", 4)]), op("b", (1, 1, 1), ["s"]), op("c", (1, 1, 1), ["t"]),
           op("d", (1, 1, 1), outputs=[("u", 4)]), op("e", (1, 1, 1), ["u"])]

    def fan(self, congestion, s, t, u):
        p = problem(self.FAN, congestion=congestion, capacity=(9, 9, 9))
        ops = [("a", "A", 0, 1), ("b", "B", 20, 21), ("c", "C", 20, 21), ("d", "B", 0, 1), ("e", "C", 21, 22)]
        return p, plan(ops, [("s", "A", "B", s, s + 4), ("t", "A", "C", t, t + 4), ("u", "B", "C", u, u + 4)])

    def test_ports(self):
        self.right(*self.fan("port", 1, 5, 1))
        self.wrong(*self.fan("port", 1, 4, 9), "send port of A: transfer of s for B and transfer of t for C at once")
        self.wrong(*self.fan("port", 1, 5, 8), "receive port of C: transfer of t for C and transfer of u for C at once")

    def test_channels(self):
        self.right(*self.fan("channel", 1, 1, 1))
        p = problem([op("a", (1, 1), outputs=[("s", 4), ("t", 4)]), op("b", (1, 1), ["s", "t"])], congestion="channel")
        ops = [("a", "A", 0, 1), ("b", "B", 9, 10)]
        self.right(p, plan(ops, [("s", "A", "B", 1, 5), ("t", "A", "B", 5, 9)]))
        self.wrong(p, plan(ops, [("s", "A", "B", 1, 5), ("t", "A", "B", 4, 8)]), "channel A B")

    def test_no_congestion(self):
        self.right(*self.fan("none", 1, 1, 1))

    def test_sending_does_not_disturb_receiving(self):
        p = problem([op("a", (1, 1), outputs=[("s", 4)]), op("b", (1, 1), outputs=[("t", 4)]), op("c", (1, 1), ["s"]), op("d", (1, 1), ["t"])])
        self.right(p, plan([("a", "A", 0, 1), ("b", "B", 0, 1), ("c", "B", 5, 6), ("d", "A", 5, 6)],
                           [("s", "A", "B", 1, 5), ("t", "B", "A", 1, 5)]))


class TestMemory(Checks):
    def test_static(self):
        self.right(problem(OPS, capacity=(35, 30)), plan(GOOD_OPS, GOOD_TRANSFERS))
        self.wrong(problem(OPS, capacity=(34, 30)), plan(GOOD_OPS, GOOD_TRANSFERS), "device A has 34 bytes and needs 35")
        self.wrong(problem(OPS, capacity=(35, 29)), plan(GOOD_OPS, GOOD_TRANSFERS), "device B has 29 bytes and needs 30")

    def test_peak_by_hand(self):
        # A: s 0..9, t 0..15, v 17..21: 35 + 10. B: s 5..17, t 9..17, u 9..21 (an output, no bytes), v 15..20: 30 + 13.
        for a, b, words in ((45, 43, None), (44, 43, "device A has 44 bytes and needs 45"), (45, 42, "device B has 42 bytes and needs 43")):
            p = problem(OPS, memory="peak", capacity=(a, b))
            x = plan(GOOD_OPS, GOOD_TRANSFERS)
            self.wrong(p, x, words) if words else self.right(p, x)

    def test_outputs_live_to_the_end(self):
        ops = [op("a", (1, 1), outputs=[("s", 8)]), op("b", (9, 9), outputs=[("t", 5)])]
        x = plan([("a", "A", 0, 1), ("b", "A", 1, 10)])
        self.right(problem(ops, memory="peak", capacity=(13, 0)), x)
        self.wrong(problem(ops, memory="peak", capacity=(12, 0)), x, "needs 13")

    def test_what_dies_makes_room_at_once(self):
        ops = [op("a", (2, 2), outputs=[("s", 8)]), op("b", (2, 2), ["s"], [("t", 1)]), op("c", (2, 2), ["t"], [("u", 8)]),
               op("d", (2, 2), ["u"])]
        x = plan([("a", "A", 0, 2), ("b", "A", 2, 4), ("c", "A", 4, 6), ("d", "A", 6, 8)])
        self.right(problem(ops, memory="peak", capacity=(9, 0)), x)
        self.wrong(problem(ops, memory="peak", capacity=(8, 0)), x, "needs 9")

    def test_copies_of_one_tensor_for_two_readers_count_once(self):
        ops = [op("a", (1, 1), outputs=[("s", 4)]), op("b", (1, 1), ["s"]), op("c", (1, 1), ["s"])]
        x = plan([("a", "A", 0, 1), ("b", "B", 5, 6), ("c", "B", 9, 10)], [("s", "A", "B", 1, 5, "b"), ("s", "A", "B", 5, 9, "c")])
        self.right(problem(ops, flow="edge", memory="peak", capacity=(4, 4)), x)
        self.wrong(problem(ops, flow="edge", memory="peak", capacity=(4, 3)), x, "device B has 3 bytes and needs 4")
        self.wrong(problem(ops, flow="edge", memory="peak", capacity=(3, 4)), x, "device A has 3 bytes and needs 4")


class TestClaims(Checks):
    def test_makespan(self):
        self.wrong(problem(OPS), plan(GOOD_OPS, GOOD_TRANSFERS, makespan_ns=22), "the plan says makespan 22")

    def test_bound_status_and_gap(self):
        good = {"lower_bound_ns": 14, "status": "feasible", "gap": 7 / 21}
        self.right(problem(OPS), plan(GOOD_OPS, GOOD_TRANSFERS, **good))
        self.right(problem(OPS), plan(GOOD_OPS, GOOD_TRANSFERS, lower_bound_ns=21, status="optimal", gap=0.0))
        self.wrong(problem(OPS), plan(GOOD_OPS, GOOD_TRANSFERS, lower_bound_ns=22), "none is faster than 22")
        self.wrong(problem(OPS), plan(GOOD_OPS, GOOD_TRANSFERS, **dict(good, status="optimal")), "status optimal")
        self.wrong(problem(OPS), plan(GOOD_OPS, GOOD_TRANSFERS, **dict(good, gap=0.3)), "gap 0.3")

    def test_devices(self):
        said = {"name": "A", "busy_ns": 6, "memory_bytes": 35, "peak_bytes": 45}
        self.right(problem(OPS), plan(GOOD_OPS, GOOD_TRANSFERS, devices=[said]))
        for key in ("busy_ns", "memory_bytes", "peak_bytes"):
            bad = dict(said, **{key: said[key] + 1})
            self.wrong(problem(OPS), plan(GOOD_OPS, GOOD_TRANSFERS, devices=[bad]), f"device A: the plan says {key}")

    def test_shared_weights_count_once_per_device(self):
        ops = [dict(op(name, (1, 1), memory=2), shared_weights=[{"name": "w", "bytes": 10}]) for name in "ab"]
        here = plan([("a", "A", 0, 1), ("b", "A", 1, 2)])
        self.right(problem(ops, capacity=(14, 14)), here)
        self.wrong(problem(ops, capacity=(13, 14)), here, "device A")
        apart = plan([("a", "A", 0, 1), ("b", "B", 0, 1)])
        self.right(problem(ops, capacity=(12, 12)), apart)
        self.wrong(problem(ops, capacity=(12, 11)), apart, "device B")

    def test_files_that_are_none(self):
        self.wrong({"format": "moirai-graph", "version": 1}, plan(GOOD_OPS), "malformed")
        self.wrong(problem(OPS), {"format": "moirai-problem", "version": 1}, "malformed")
        self.wrong(problem(OPS, flow="river"), plan(GOOD_OPS), "flow: 'river' is none of tensor, edge")
        self.wrong(problem(OPS + OPS[:1]), plan(GOOD_OPS), "two operators or two devices of one name")
        self.wrong(problem([op("a", (1.5,), memory=1)], capacity=(1.5,)), plan([("a", "A", 0, 1)]), "is no whole number")


def serial(p, rng):
    """Everything one after the other on random devices: right in every mode."""
    time, device, ops, sent, done = 0, {}, [], [], set()
    maker = {t["name"]: o["name"] for o in p["ops"] for t in o["outputs"]}
    table = {t["name"]: t["bytes"] for o in p["ops"] for t in o["outputs"]}
    for o in p["ops"]:
        here = device[o["name"]] = rng.choice("ABC")
        for t in sorted(set(o["inputs"])):
            key = (t, o["name"] if p["flow"] == "edge" else here)
            if device[maker[t]] == here or key in done:
                continue
            done.add(key)
            sent.append((t, device[maker[t]], here, time, time + table[t], o["name"]))
            time += table[t]
        took = o["time_ns"]["ABC".index(here)]
        ops.append((o["name"], here, time, time + took))
        time += took
    return plan(ops, sent)


class TestRandom(Checks):
    def test_serial_plans_are_right_and_changed_ones_wrong(self):
        rng = random.Random(7)
        for _ in range(150):
            n = rng.randrange(2, 12)
            ops = [op(f"o{i}", [rng.randrange(1, 9) for _ in range(3)], {f"t{rng.randrange(i)}" for _ in range(rng.randrange(3)) if i},
                      [(f"t{i}", rng.randrange(1, 9))], rng.randrange(5)) for i in range(n)]
            p = problem(ops, rng.choice(("edge", "tensor")), rng.choice(("port", "channel", "none")), rng.choice(("static", "peak")),
                        (999, 999, 999))
            x = serial(p, rng)
            self.right(p, x)
            for key, by in (("start_ns", 1), ("finish_ns", -1), ("finish_ns", 1)):
                bad = copy.deepcopy(x)
                rng.choice(bad["ops"] + bad["transfers"])[key] += by
                self.assertNotEqual(check(p, bad), [])
            if x["transfers"]:
                bad = copy.deepcopy(x)
                bad["transfers"].pop(rng.randrange(len(bad["transfers"])))
                self.wrong(p, bad, "is missing")
            used = {o["device"] for o in x["ops"] if ops[int(o["name"][1:])]["memory_bytes"] > 0}
            for d in p["devices"]:
                if d["name"] in used:
                    d["memory_bytes"] = 0
                    self.wrong(p, x, f"device {d['name']} has 0 bytes")


if __name__ == "__main__":
    unittest.main()
