"""Operators are measured alone and while all devices compute, and plans take the time that lies between."""

from __future__ import annotations

import contextlib
import threading
import time

import pytest
from conftest import links, need

torch = need("torch")

from small_networks import Branches  # noqa: E402

import moirai  # noqa: E402
import moirai.torch as mt  # noqa: E402
from moirai.torch import busy, measure  # noqa: E402
from moirai.torch.busy import Corrected, Meeting, beside, both_times, graph_with, times_of, turns  # noqa: E402
from moirai.torch.measure import OpTime, OpToMeasure, Ready, bytes_of, _environments  # noqa: E402
from moirai.torch.ir import Meta  # noqa: E402
from moirai.torch.merging import expected_ns  # noqa: E402
from moirai.torch.profile import _Todo  # noqa: E402
from moirai.torch.times import one_device  # noqa: E402


class Store:
    """What ranks count with, for threads."""

    def __init__(self):
        self.counts, self.lock = {}, threading.Lock()

    def add(self, key, n):
        with self.lock:
            self.counts[key] = self.counts.get(key, 0) + n
            return self.counts[key]


def together(works, counts=None):
    """Every list of operators as a rank of its own; what each of them returns."""
    store, found = Store(), {}

    def rank(k):
        ready = [Ready(OpTime(1), work, 2) if work else Ready(OpTime(None)) for work in works[k]]
        meeting = Meeting(store, "test", k, len(works))
        found[k] = both_times(ready, counts or [1] * len(ready), meeting, torch.device("cpu"))

    threads = [threading.Thread(target=rank, args=(k,), daemon=True) for k in range(len(works))]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert len(found) == len(works), "a rank waits for ever"
    return [found[k] for k in range(len(works))]


def test_each_rank_is_alone_first_and_goes_on_until_the_last_has_enough():
    done, alone = [0, 0], [busy._ALONE] * 2  # turns of each rank; those that it has by itself
    wrong = []

    def work(k):
        other, mine = 1 - k, done[k]
        if mine < alone[k] and done[other] not in (0, alone[other]):
            wrong.append("both at once")
        if k == 1 and mine == alone[k] + 2:  # the other one has long had enough by then, and has to go on
            limit = time.monotonic() + 30
            while done[other] < alone[other] + 20 * busy._ROUNDS and time.monotonic() < limit:
                time.sleep(0.001)
            wrong.extend([] if time.monotonic() < limit else ["the first rank ended before the last"])
        done[k] += 1

    times = together([[lambda: work(0)], [lambda: work(1)]])
    assert not wrong and all(len(t) == 1 and t[0][0] >= 0 and t[0][1] >= 0 for t in times)


def test_what_can_t_run_has_no_times_and_a_rank_without_work_holds_nobody_up():
    first, second, none = together([[None, lambda: None], [lambda: None, lambda: None], []])
    assert first[0] is None and first[1] is not None and None not in second and none == []


class Event:
    def __init__(self, enable_timing=False):
        self.at = 0.0

    def record(self):
        self.at = time.perf_counter()

    def synchronize(self):
        pass

    def elapsed_time(self, end):
        return 1000 * (end.at - self.at)


class Recording:
    """A CUDA graph: what was called while it was recorded is called again."""

    now = None

    def __init__(self):
        self.calls = []

    def replay(self):
        for work in self.calls:
            work()


@contextlib.contextmanager
def recorded(graph):
    Recording.now = graph
    yield
    Recording.now = None


def test_what_a_gpu_keeps_ready_is_a_graph_of_its_calls(monkeypatch):
    for name, fake in {"Event": Event, "CUDAGraph": Recording, "graph": recorded, "synchronize": lambda: None}.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    seen = []

    def run(env):
        def once():
            seen.append(env["w"])

        if Recording.now:
            Recording.now.calls.append(once)
        once()

    options = mt.Options(runs=2, seconds=0.001)
    environments = [{"w": i} for i in range(3)]
    for keep in (True, False):
        ready = measure._measure_cuda(run, environments, options, keep)
        seen.clear()
        ready.again()
        assert seen == [i % 3 for i in range(ready.calls)] and 4 <= ready.calls <= measure._MOST_CALLS
        assert ready.time.time_ns > 0 and ready.time.eager_ns > 0
    store = Store()
    (both,) = both_times([ready], [7], Meeting(store, "gpu", 0, 1), torch.device("cuda"))
    assert both[0] >= 0 and both[1] >= 0
    assert store.counts["gpu/done"] == store.counts["gpu/alone"] == 1


def test_operators_run_in_a_round_as_often_as_the_network_s_time_goes():
    # Of 100 like the first, which take 10 each, and one that takes 1,000: half of the time each.
    assert turns([100.0, 1000.0], [100, 1], [10, 1]) == [6, 1]
    assert turns([1.0, 10**6], [10**6, 1], [1, 1])[0] == busy._MOST_TURNS
    assert turns([5.0, 0.0], [1, 1], [1, 1]) == [1, 1] and turns([], [], []) == []


def test_memory_of_operators_that_are_kept_ready_is_known_before():
    meta = Meta((1 << 18,), torch.float32, (1,))
    op = OpToMeasure((), {"x": meta, "w": meta}, frozenset({"w"}))
    for cold in (True, False):
        made = _environments(op, torch.device("cpu"), cold, True)
        own = {t.data_ptr(): t.numel() * t.element_size() for e in made for t in e.values()}
        assert bytes_of(op, "cpu", cold) == sum(own.values())

    class Ranks:
        devices, about = [0, 1], {0: {"memory": 16 * 400 << 20}, 1: {"memory": 16 * 300 << 20}}

    todo = _Todo({str(i): op for i in range(5)}, {})
    cold = mt.Options(cold=True)
    each = bytes_of(op, "cuda", True)  # 65 MiB: 64 copies
    assert each == 65 << 20
    assert todo.batches([str(i) for i in range(5)], Ranks, cold) == [["0", "2", "4"], ["1", "3"]]  # 300 MiB for each rank
    assert todo.batches(["0"], Ranks, cold) == [["0"]] and todo.batches([], Ranks, cold) == []


# ---- plans


@pytest.fixture
def fork():
    """Two operators side by side, and one that reads both."""
    tensor = moirai.Tensor
    ops = [moirai.Op("a", "relu", ("x",), (tensor("ya", 4),)), moirai.Op("b", "relu", ("x",), (tensor("yb", 4),)),
           moirai.Op("c", "add", ("ya", "yb"), (tensor("yc", 4),))]  # fmt: skip
    graph = moirai.Graph.build("fork", ops)
    devices = [{"name": n, "type": "cpu", "memory": "1GB"} for n in "AB"]
    cluster = moirai.Cluster.open({"name": "two", "devices": devices, "links": links("AB", "1000GB/s", "1ns")})
    for d in "AB":
        graph.set_times(d, {"a": 1000, "b": 2000, "c": 1000})
    return graph, cluster


def plan_of(graph, cluster, where):
    return moirai.Plan.by_devices(moirai.Problem(graph, cluster, congestion="none"), where)


def test_an_operator_s_time_lies_between_by_how_much_computes_beside_it(fork):
    graph, cluster = fork
    plan = plan_of(graph, cluster, {"a": "A", "b": "B", "c": "B"})
    found = beside(plan, {"A": 1.0, "B": 1.0})
    assert found == {"a": 1.0, "b": 0.5, "c": 0.0}
    # A third device that computes nothing is half of what could be busy beside the others, if it is as large as they are.
    assert beside(plan, {"A": 1.0, "B": 1.0, "C": 3.0}) == {"a": 0.25, "b": 0.125, "c": 0.0}
    slow = graph_with(graph, {d: {op: 2 * ns for op, ns in known.items()} for d, known in times_of(graph).items()})
    between = Corrected(graph, slow, {"A": 1.0, "B": 1.0})
    assert times_of(between.before()) == times_of(slow)
    after = times_of(between.after(plan))
    assert (after["A"]["a"], after["B"]["b"], after["B"]["c"]) == (2000, 3000, 1000)
    assert after["A"]["b"] == 4000  # as busy as A's own in the mean


@pytest.fixture(scope="module")
def inception(captured):
    return captured("inception")


def slower(network, cluster, factor):
    """Times by hand: all operators alike, `factor` times as long with all devices busy."""
    for device in cluster.devices:
        network.graph.set_times(device.name, [50_000] * len(network.graph))
    every = {op.name: int(50_000 * factor) for op in network.graph.ops}
    network.busy = graph_with(network.graph, {d.name: every for d in cluster.devices})


@pytest.mark.parametrize("meet", [0, 1000])
def test_plans_of_several_devices_are_made_for_busy_ones_and_one_alone_for_itself(inception, cpu_cluster, tmp_path, meet):
    _, _, network = inception
    quick = cpu_cluster.with_links([moirai.Link(x.source, x.target, 10**12, 2000) for x in cpu_cluster.links])
    meetings = dict.fromkeys("ABCD", meet) if meet else {}
    search = {"effort": 0.01, "threads": 1}

    def plan(factor, **options):
        slower(network, cpu_cluster, factor)
        return mt.Times(network, quick, {"congestion": "none"}, tmp_path, meetings, **options).place("moirai", **search)

    same, more, most = plan(1.0), plan(1.3), plan(20.0)
    assert not one_device(same) and not one_device(more) and one_device(most)
    assert expected_ns(same) < expected_ns(more) < 1.3 * 1.05 * expected_ns(same)
    assert expected_ns(most) == 50_000 * len(network.graph)  # alone, nobody is in the way
    off = plan(20.0, busy=False)
    assert not one_device(off) and expected_ns(off) == expected_ns(same)
    assert plan(20.0, whole_ns={"C": 123}).expected_ns is None  # its fastest is another one, as far as anybody knows
    assert expected_ns(plan(20.0, whole_ns={"A": 123})) == 123
    assert one_device(plan(1.0, whole_ns={"A": expected_ns(same) - 1}))
    network.busy = None


def test_plan_takes_busy_times_too(inception, cpu_cluster):
    _, _, network = inception
    search = {"effort": 0.01, "threads": 1, "problem": {"congestion": "none"}}
    slower(network, cpu_cluster, 1.3)
    split = mt.plan(network, cpu_cluster, **search)
    assert not one_device(split) and split.problem.time_ns(split.steps[0].name)["A"] == 65_000
    slower(network, cpu_cluster, 20.0)
    assert one_device(mt.plan(network, cpu_cluster, **search))
    assert mt.plan(network, cpu_cluster, **search).makespan_ns == 50_000 * len(network.graph)
    chosen = mt.choose(network, cpu_cluster, congestion="none", time_limit=0.2, threads=1)
    assert chosen.cut == "" and chosen.whole_ns == 50_000 * len(network.graph)
    network.busy = None


def test_runs_of_several_devices_say_more_than_a_profile(inception, cpu_cluster, tmp_path):
    _, _, network = inception
    slower(network, cpu_cluster, 1.3)
    times = mt.Times(network, cpu_cluster, {"congestion": "none"}, tmp_path)
    assert times.corrected() is not None
    times._runs[False].append(("moirai", "", {}))
    assert times.corrected() is None
    network.busy = None


# ---- measured


def test_profile_measures_with_all_devices_busy_and_keeps_both(cpu_workers, tmp_path):
    network = mt.capture(Branches().eval(), (torch.randn(1, 3, 16, 16),))
    few = mt.Options(runs=2, seconds=0.01)
    plain = mt.profile(network, workers=cpu_workers, cache=tmp_path, options=few)
    assert network.busy is None and plain.measured == plain.distinct  # processors: only where that is asked for
    report = mt.profile(network, workers=cpu_workers, cache=tmp_path, options=few, busy=True)
    assert report.measured == 4 * report.distinct and not report.failed  # equal devices, too: each is among the others
    both = [times_of(g) for g in (network.graph, network.busy)]
    assert all(set(t) >= set("ABCD") and all(len(t[d]) == len(network.graph) for d in "ABCD") for t in both)
    assert all(ns > 0 for t in both for d in "ABCD" for ns in t[d].values())
    again = mt.profile(network, workers=cpu_workers, cache=tmp_path, options=few, busy=True)
    assert again.measured == 0 and [times_of(g) for g in (network.graph, network.busy)] == both
    assert mt.profile(network, workers=cpu_workers, cache=tmp_path, options=few, busy=False).measured == 0
    assert network.busy is None


def test_tune_takes_both_times(cpu_workers, tmp_path):
    module, args = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()).eval(), (torch.randn(2, 8),)
    found = mt.tune(module, args, workers=cpu_workers, busy=True, cache=tmp_path, rounds=0, runs=2, passes=0,
                    placers=("heft",), threads=1, probed=cpu_workers.cluster)  # fmt: skip
    assert found.captured.busy is not None and one_device(found.trials[0].plan)
    assert found.best.measured_ns <= found.trials[0].measured_ns
