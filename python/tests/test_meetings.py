"""What meetings cost is measured, kept, and known to first plans; segments are merged where that costs less."""

from __future__ import annotations

import random

import pytest
from conftest import links, need

torch = need("torch")

import moirai  # noqa: E402
import moirai.torch as mt  # noqa: E402
from moirai.torch import held  # noqa: E402
from moirai.torch.ir import Meta  # noqa: E402
from moirai.torch.measure import OpToMeasure, _environments  # noqa: E402
from moirai.torch.merging import Game, Item, expect, expected_ns, merge, play  # noqa: E402
from moirai.torch.profile import _cold  # noqa: E402
from moirai.torch.program import build  # noqa: E402
from moirai.torch.times import one_device, plan_key  # noqa: E402


def two_devices():
    """A computes 10, sends, computes 10 and 30 more; B needs the first and sends back what A's last one reads."""
    a = [Item(10, [], [0]), Item(10, [], []), Item(30, [1], [])]
    b = [Item(20, [0], [1])]
    return [a, b]


def test_a_run_is_played_through_with_its_meetings():
    ranks = two_devices()
    assert play(Game([5, 5], [0, 1], [1, 0], [0, 0]), ranks) == 10 + 5 + 20 + 5 + 30
    # With meetings of 20, A is not ready when the answer is there: 10 + 20 + 10 + 20.
    assert play(Game([5, 5], [0, 1], [1, 0], [20, 20]), ranks) == 60 + 30
    waiting = [[Item(1, [1], [0])], [Item(1, [0], [1])]]
    assert play(Game([5, 5], [0, 1], [1, 0], [0, 0]), waiting) is None


def test_by_ports_messages_leave_one_after_the_other_in_the_plan_s_order():
    ranks = [[Item(10, [], [1]), Item(10, [], [0])], [Item(1, [0], [])], [Item(1, [1], [])]]
    assert play(Game([5, 5], [0, 0], [1, 2], [0] * 3), ranks) == 26
    assert play(Game([5, 5], [0, 0], [1, 2], [0] * 3, ports=True), ranks) == 20 + 5 + 5 + 1


def test_segments_are_merged_where_a_meeting_costs_more_than_a_delay():
    for meeting, counts, end in ((0, [1, 1, 1], 70), (20, [2, 1], 20 + 5 + 20 + 5 + 30)):
        sizes, end_ns = merge(Game([5, 5], [0, 1], [1, 0], [meeting] * 2), two_devices())
        assert sizes == [counts, [1]] and end_ns == end
    # Of two that exchange results only one can be merged: else each would wait for the other.
    ranks = [[Item(10, [], [0]), Item(10, [1], [])], [Item(10, [], [1]), Item(10, [0], [])]]
    sizes, end_ns = merge(Game([1, 1], [0, 1], [1, 0], [1000] * 2), ranks)
    assert sizes == [[2], [1, 1]] and end_ns == 10 + 1000 + 10


def problem_of(network, cluster, ns=200_000, **options):
    for device in cluster.devices:
        network.graph.set_times(device.name, [ns] * len(network.graph))
    return moirai.Problem(network.graph, cluster, **options)


def test_merged_segments_give_the_module_s_results(captured, cpu_workers, cpu_cluster):
    module, args, network = captured("inception")
    problem = problem_of(network, cpu_cluster)
    choose = random.Random(3)
    for ports in (False, True):
        plan = moirai.Plan.by_devices(problem, {n: choose.choice(problem.devices) for n in problem.op_names})
        before = sum(len(r.segments) for r in build(network, plan).ranks)
        expect(network, plan, dict.fromkeys(problem.devices, 400_000), ports)
        assert expected_ns(plan) > plan.makespan_ns
        with mt.distribute(network, plan, workers=cpu_workers, verify=module) as run:
            for _ in range(3):
                run(*args)
            after = sum(len(r.segments) for r in run.program.ranks)
            planned_ns = run.measure(warmup=0, runs=1).timeline["planned_ns"]
            assert planned_ns == expected_ns(plan) if ports else planned_ns >= expected_ns(plan)
        assert after < before


def test_first_plans_know_what_meetings_cost(captured, cpu_cluster, tmp_path):
    _, _, network = captured("inception")
    problem_of(network, cpu_cluster, 50_000)
    quick = cpu_cluster.with_links([moirai.Link(x.source, x.target, 10**12, 2000) for x in cpu_cluster.links])
    options = {"congestion": "none"}

    def segments(meetings):
        plan = mt.Times(network, quick, options, tmp_path, meetings).place("moirai", effort=0.01, threads=1)
        return plan, sum(len(r.segments) for r in build(network, plan, merge=True).ranks)

    free, many = segments(None)
    some, fewer = segments(dict.fromkeys("ABCD", 50_000))
    none, one = segments(dict.fromkeys("ABCD", 10**8))
    assert many > fewer > one == 1 and one_device(none)
    assert free.makespan_ns < expected_ns(some) <= none.makespan_ns
    # The plan that knows of no meetings is no faster with them.
    held_up = expect(network, free.replay(some.problem), dict.fromkeys("ABCD", 50_000), False)
    assert expected_ns(some) <= expected_ns(held_up)


def test_plans_found_beside_the_first_are_handed_out(captured, cpu_cluster, tmp_path):
    _, _, network = captured("inception")
    problem_of(network, cpu_cluster, 50_000)
    quick = cpu_cluster.with_links([moirai.Link(x.source, x.target, 10**12, 2000) for x in cpu_cluster.links])
    times = mt.Times(network, quick, {"congestion": "none"}, tmp_path, dict.fromkeys("ABCD", 20_000))
    some = times.places("moirai", within=10, effort=0.01, threads=1)
    keys = [plan_key(p) for p in some]
    assert len(some) > 1 and len(set(keys)) == len(keys)
    assert [expected_ns(p) for p in some] == sorted(expected_ns(p) for p in some)
    assert plan_key(times.place("moirai", effort=0.01, threads=1)) == keys[0]
    least = expected_ns(some[0])
    assert all(expected_ns(p) == least for p in times.places("moirai", effort=0.01, threads=1))


@pytest.mark.parametrize("megabytes, cold", [(1, False), (40, True)])
def test_weights_are_cold_where_a_network_s_do_not_fit_into_the_cache(megabytes, cold):
    class Ranks:
        about = {0: {"cache": 60 << 20}, 1: {"cache": 60 << 20}}

    class Network:
        weights = {"w": torch.empty(megabytes << 18)}

    assert _cold(Network, Ranks) == cold
    meta = Meta((1 << 18,), torch.float32, (1,))
    op = OpToMeasure((), {"x": meta, "w": meta}, frozenset({"w"}))
    made = _environments(op, torch.device("cpu"), cold)
    assert len(made) == (16 if cold else 1)
    assert len({e["w"].data_ptr() for e in made}) == len(made) and len({e["x"].data_ptr() for e in made}) == 1


def timeline(lengths):
    """Devices with segments of one operator each: (median, held)."""
    return [
        {"name": name, "segments": [{"median_ns": t, "held_ns": h, "ops": ["x"]} for t, h in some]}
        for name, some in lengths.items()
    ]


def test_a_meeting_is_what_segments_take_longer_and_what_passes_between_them():
    apart = timeline({"A": [(100, 0)] * 3, "B": [(50, 0)] * 3})
    ring = timeline({"A": [(103, 7), (105, 9), (104, 0)], "B": [(51, 0), (51, 0), (90, 0)]})
    found = held.meeting_ns(apart, ring)
    assert found == {"A": 4 + 8, "B": 1 + 8}  # B always waited
    assert {d: ns.begin_ns for d, ns in found.items()} == {"A": 4, "B": 1}


@pytest.mark.parametrize("ports", [False, True])
def test_who_waits_for_a_message_pays_for_the_begin_of_a_segment_too(captured, cpu_cluster, tmp_path, ports):
    """Two devices by turns: nobody meets without waiting, so that only what comes after the wait makes the run longer."""
    _, _, network = captured("inception")
    problem = problem_of(network, cpu_cluster, 50_000)
    turns = {op: "AB"[i % 2] for i, op in enumerate(network.ops)}
    plan = moirai.Plan.by_devices(problem, turns)
    takes = [expected_ns(expect(network, plan, dict.fromkeys("ABCD", held.Meeting(2000, begin)), ports)) for begin in (0, 1500)]
    assert takes[0] == takes[1] if ports else takes[0] < takes[1] <= takes[0] + 1500 * len(network.ops)


def test_meetings_are_measured_once_and_kept(cpu_workers, tmp_path, monkeypatch):
    found = mt.meetings(cpu_workers, cache=tmp_path, n_bytes=4096, steps=6, runs=3)
    assert set(found) == set("ABCD") and all(0 < ns < 10**10 for ns in found.values())
    (file,) = tmp_path.glob("meetings-*.json")
    measured = held._busy
    monkeypatch.setattr(held, "_busy", lambda *_: pytest.fail("measured again"))
    again = mt.meetings(cpu_workers, cache=tmp_path, n_bytes=4096, steps=6, runs=3)
    assert again == found and [m.begin_ns for m in again.values()] == [m.begin_ns for m in found.values()]
    monkeypatch.setattr(held, "_busy", measured)
    file.write_text("{not ours")
    assert set(mt.meetings(cpu_workers, cache=tmp_path, n_bytes=4096, steps=6, runs=3)) == set("ABCD")
    one = {"devices": [{"name": "A", "type": "cpu", "memory": "1GB"}], "links": links("A")}
    with mt.Workers(one) as alone:
        assert mt.meetings(alone, cache=None) == {}


def test_segments_of_the_ring_that_goes_through_the_host_are_longer_than_a_message(cpu_workers, cpu_cluster):
    """One segment of slack between what is sent and who reads it, so that copies are no meetings."""
    network, where = held.ring(4, 48, 4096, apart=False, long=16)
    problem = problem_of(network, cpu_cluster)
    names = list(problem.devices)
    plan = moirai.Plan.by_devices(problem, {op: names[d] for op, d in where.items()})
    for rank in build(network, plan).ranks:
        assert [len(g.steps) for g in rank.segments] == [16, 16, 16]
        assert [len(g.waits) for g in rank.segments] == [0, 0, 1] and [len(g.sends) for g in rank.segments] == [1, 0, 0]
    alone = [{"name": "A", "segments": [{"median_ns": 3200, "held_ns": 0, "ops": ["x"] * 32}]}]
    ring = [{"name": "A", "segments": [{"median_ns": 1650, "held_ns": h, "ops": ["x"] * 16} for h in (7, 9, 0)]}]
    assert held.meeting_ns(alone, ring) == {"A": 50 + 8}
