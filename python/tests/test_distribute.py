"""Plans that run: processes that exchange tensors by gloo."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest
from conftest import links, need

torch = need("torch")

import networks  # noqa: E402

import moirai  # noqa: E402
import moirai.torch as mt  # noqa: E402
from moirai.torch import products  # noqa: E402
from moirai.torch.ir import call  # noqa: E402
from moirai.torch.program import build  # noqa: E402
from moirai.torch.rank import Rank, Stamps, issue_order  # noqa: E402
from moirai.torch.spmd import choose_transport  # noqa: E402
from moirai.torch.timeline import timeline  # noqa: E402

PLACERS = ["single", "m-etf", "heft", "m-topo", "random", "moirai"]


def problem_of(captured, cluster, ns=200_000, **options):
    """All operators take as long as a message or more, so that placers split."""
    for k, device in enumerate(cluster.devices):
        captured.graph.set_times(device.name, [ns + 1000 * k] * len(captured.graph))
    return moirai.Problem(captured.graph, cluster, **options)


@pytest.mark.parametrize("name", ["inception", "gpt2", "t5", "recommender"])
def test_plans_of_all_placers_give_the_module_s_results(name, captured, cpu_workers, cpu_cluster):
    module, args, network = captured(name)
    problem = problem_of(network, cpu_cluster)
    split = 0
    for placer in PLACERS:
        plan = moirai.place(problem, placer, time_limit=1)
        split += len(set(plan.placement.values())) > 1
        with mt.distribute(module, plan, workers=cpu_workers, verify=module) as run:
            run(*args)
    assert split >= 3


def test_every_operator_elsewhere_than_its_neighbours(captured, cpu_workers, cpu_cluster):
    module, args, network = captured("moe")
    problem = problem_of(network, cpu_cluster)
    places = {n: problem.devices[i % 4] for i, n in enumerate(problem.op_names)}
    plan = moirai.Plan.by_devices(problem, places)
    assert len(plan.transfers) > len(problem) / 2
    with mt.distribute(network, plan, workers=cpu_workers) as run:
        for i in range(40):
            x = torch.randn(args[0].shape, generator=torch.Generator().manual_seed(i))
            with torch.no_grad():
                assert torch.allclose(run(x), module(x), atol=1e-4), i


def test_ranks_hold_only_their_weights(captured, cpu_workers, cpu_cluster):
    module, args, network = captured("moe")
    problem = problem_of(network, cpu_cluster)
    places = {n: problem.devices[i % 4] for i, n in enumerate(problem.op_names)}
    with mt.distribute(network, moirai.Plan.by_devices(problem, places), workers=cpu_workers) as run:
        held = [set(r.weights) for r in run.program.ranks]
    assert set().union(*held) == set(network.weights) and all(len(h) < len(network.weights) / 2 for h in held)


def test_timeline_is_ours_and_refines(captured, cpu_workers, cpu_cluster, tmp_path):
    module, args, network = captured("recommender")
    problem = problem_of(network, cpu_cluster)
    plan = moirai.Plan.by_devices(problem, {n: problem.devices[i % 2] for i, n in enumerate(problem.op_names)})
    with mt.distribute(network, plan, workers=cpu_workers) as run:
        measured = run.measure(*args, warmup=2, runs=8)
    measured.save(tmp_path / "t.json")
    found = json.loads((tmp_path / "t.json").read_text())
    assert found["format"] == "moirai-timeline" and found["planned_ns"] == plan.makespan_ns
    assert len(found["latency_ns"]) == 8 and found["median_ns"] == measured.median_ns
    assert sorted(op for d in found["devices"] for s in d["segments"] for op in s["ops"]) == sorted(problem.op_names)
    for device in found["devices"]:
        ends = [(s["start_ns"], s["finish_ns"]) for s in device["segments"]]
        assert all(a <= b for a, b in ends) and ends == sorted(ends)
        assert max(b for _, b in ends) <= found["most_ns"]
    assert len(found["transfers"]) == len(plan.transfers)
    before = network.graph["cat"].time_ns or {}
    reports = moirai.refine(network.graph, cpu_cluster.copy(), [tmp_path / "t.json"])
    assert reports[0]["n_ops"] == len(problem) and network.graph["cat"].time_ns != before


def test_verify_notices_a_wrong_result(captured, cpu_workers, cpu_cluster):
    module, args, network = captured("recommender")
    problem = problem_of(network, cpu_cluster)
    other, _ = networks.make("recommender", small=True, seed=2)
    with mt.distribute(network, moirai.place(problem, "heft"), workers=cpu_workers, verify=other) as run:
        with pytest.raises(moirai.VerifyError, match="off by"):
            run(*args)


def test_arguments_that_were_not_captured_are_refused(captured, cpu_workers, cpu_cluster):
    module, args, network = captured("moe")
    problem = problem_of(network, cpu_cluster)
    with mt.distribute(network, moirai.place(problem, "single"), workers=cpu_workers) as run:
        with pytest.raises(moirai.UsageError, match="captured was"):
            run(torch.randn(1, 9, 16))
        with pytest.raises(moirai.UsageError, match="laid out"):
            run(*args, *args)
        run(*args)


def test_plans_that_are_closed_leave_no_thread_in_the_ranks(captured, cpu_workers, cpu_cluster):
    module, args, network = captured("moe")
    problem = problem_of(network, cpu_cluster)
    plan = moirai.Plan.by_devices(problem, {n: problem.devices[i % 4] for i, n in enumerate(problem.op_names)})
    job = {"module": "os", "function": "listdir", "args": ("/proc/self/task",)}
    threads = []
    for _ in range(3):
        with mt.distribute(network, plan, workers=cpu_workers) as run:
            run(*args)
        threads.append({k: len(x) for k, x in cpu_workers.tell("call", dict.fromkeys(range(4), job)).items()})
    assert threads[1] == threads[2] == threads[0]


def test_plan_of_another_network_is_refused(captured, cpu_workers, cpu_cluster):
    _, _, moe = captured("moe")
    _, _, other = captured("recommender")
    plan = moirai.place(problem_of(moe, cpu_cluster), "heft")
    with pytest.raises(moirai.UsageError, match="does not belong"):
        mt.distribute(other, plan, workers=cpu_workers)
    with pytest.raises(moirai.UsageError, match="not captured"):
        mt.distribute(torch.nn.Linear(2, 2), plan, workers=cpu_workers)


def test_profile_measures_distinct_operators_once(captured, cpu_workers, tmp_path):
    _, _, network = captured("moe")
    first = mt.profile(network, workers=cpu_workers, cache=tmp_path)
    assert first.ops == len(network.graph) and first.distinct < first.ops and not first.failed
    assert first.measured == first.distinct  # four equal devices: measured on one
    assert set(network.graph.devices) >= {"A", "B", "C", "D"}
    experts = {op.name: op.time_ns["A"] for op in network.graph.ops if op.name.endswith("up")}
    assert len(experts) == 8 and len(set(experts.values())) == 1
    assert mt.profile(network, workers=cpu_workers, cache=tmp_path).measured == 0
    assert mt.profile(network, workers=cpu_workers, cache=tmp_path, fresh=True).measured == first.distinct


def test_operators_that_can_t_run_alone_are_estimated(cpu_workers):
    class Picks(torch.nn.Module):
        def forward(self, x, i):
            return torch.relu(x)[i] + torch.gather(x, 0, i[:, None] + 100)  # measured with indices that are too large

    module = Picks().eval()
    network = mt.capture(module, (torch.randn(200, 1), torch.zeros(200, dtype=torch.int64)))
    bad = [n for n in network.nodes.values() if n.target == "aten.gather.default"]
    bad[0].target = "aten.no_such_operator.default"
    report = mt.profile(network, workers=cpu_workers, cache=None)
    assert list(report.failed) == ["gather"] and network.graph["gather"].time_ns["A"] > 0


def test_probe_gives_links_that_plans_can_use(cpu_workers):
    cluster = mt.probe(cpu_workers, length=6, sizes=(4096, 1 << 20), runs=3)
    assert [d.name for d in cluster.devices] == list("ABCD")
    assert all(x.latency_ns >= 0 and x.bytes_per_second > 0 for x in cluster.links)


def torchrun(ranks, *words, **env):
    """spmd_rank.py in so many processes; what they printed."""
    where = {**os.environ, **env, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    script = os.path.join(os.path.dirname(__file__), "spmd_rank.py")
    done = subprocess.run([*command, script, *words], env=where, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_torchrun_ranks_agree_also_in_the_order_that_nccl_needs():
    assert torchrun(3).count("agreed by gloo") == 6


@pytest.mark.parametrize("early", [True, False])
def test_both_ends_issue_messages_in_one_order(early, captured, cpu_cluster):
    _, _, network = captured("moe")
    problem = problem_of(network, cpu_cluster)
    spread = {n: problem.devices[(i * i) % 4] for i, n in enumerate(problem.op_names)}
    for plan in (moirai.place(problem, "heft"), moirai.Plan.by_devices(problem, spread)):
        program = build(network, plan)
        orders = [issue_order(r, early) for r in program.ranks]
        for a, one in enumerate(orders):
            assert sorted(s.index for batch in one for s in batch) == [
                t.index for t in program.transfers if a in (t.source, t.target)
            ]
            for i, segment in enumerate(program.ranks[a].segments):
                issued = {s.index for batch in one[: i + 1] for s in batch}
                assert all(w.index in issued for w in segment.waits)
                assert not any(s.index in issued for s in segment.sends)
            for b in range(a):
                mine = [s.index for batch in one for s in batch if b in (s.source, s.target)]
                theirs = [s.index for batch in orders[b] for s in batch if a in (s.source, s.target)]
                assert mine == theirs == sorted(mine)


def test_nccl_takes_a_gpu_for_every_rank(monkeypatch):
    one, other, cpu = ("cuda", "h", "1"), ("cuda", "h", "2"), ("cpu", "h", "3")
    assert choose_transport("auto", [one, other]) == choose_transport("nccl", [one, other]) == "nccl"
    assert choose_transport("auto", [one, one]) == choose_transport("auto", [one, cpu]) == "gloo"
    assert choose_transport("auto", [one, ("cuda", "g", "1")]) == "nccl"
    assert choose_transport("gloo", [one, other]) == "gloo"
    with pytest.raises(moirai.UsageError, match="share one"):
        choose_transport("nccl", [one, one])
    with pytest.raises(moirai.UsageError, match="processors"):
        choose_transport("nccl", [one, cpu])
    with pytest.raises(moirai.UsageError, match="under torchrun"):
        choose_transport("ipc", [one, other])
    monkeypatch.setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1")  # where it is asked for, not by itself
    assert choose_transport("nccl", [one, one]) == "nccl" and choose_transport("auto", [one, one]) == "gloo"
    with pytest.raises(moirai.UsageError, match="processors"):
        choose_transport("nccl", [one, cpu])


# ---- tune


def test_tune_keeps_what_was_measured_to_be_fastest(cpu_workers, captured, tmp_path):
    module, args, _ = captured("gpt2")
    said = []
    found = mt.tune(module, args, workers=cpu_workers, probed=cpu_workers.cluster, heads=(False, 2, False), rounds=0,
                    time_limit=0.2, runs=3, passes=1, cache=tmp_path, say=said.append)  # fmt: skip
    assert len(said) == len(found.trials) >= 1 and found.best in found.trials
    assert {t.heads for t in found.trials} <= {False, 2}
    assert any(len(t.devices) == 1 for t in found.trials)  # one device that runs all is always tried
    finals = [t for t in found.trials if len(t.latency_ns) > 1] or found.trials
    fastest = min(finals, key=lambda t: t.measured_ns)
    assert found.best is fastest or len(found.best.devices) == 1
    assert ("NO SPLIT PAYS" in found.verdict) == (len(found.best.devices) == 1)
    assert found.predicted_ns > 0
    with found.distribute(workers=cpu_workers, verify=module) as run:
        run(*args)


def measured_as(program, plan, ms):
    """A run in which every segment took as long as planned, times a factor."""
    scale = ms * 1e6 / plan.makespan_ns
    stamps = {}
    for r in program.ranks:
        if r.segments:
            s = Stamps(start=0)
            s.segments = [(int(g.start_ns * scale), int(g.finish_ns * scale)) for g in r.segments]
            s.end = s.segments[-1][1]
            stamps[r.rank] = [s] * 3
    for t in program.transfers:
        stamps[t.source][0].sent[t.index] = int(t.start_ns * scale)
        stamps[t.target][0].arrived[t.index] = int(t.finish_ns * scale)
    return timeline(program, stamps, 0)


def test_times_of_one_device_are_not_those_of_several(captured, cpu_cluster, tmp_path):
    """Devices that slow each other down: a plan of one is predicted by runs of one, a plan of several by runs of
    several."""
    _, _, network = captured("moe")
    problem = problem_of(network, cpu_cluster)
    times = mt.Times(network, cpu_cluster, {}, tmp_path)
    single, heft = moirai.place(problem, "single"), moirai.place(problem, "heft")
    assert len(set(heft.placement.values())) > 1
    ms = {p: p.makespan_ns / 1e6 for p in (single, heft)}
    times.learn(single, measured_as(build(network, single), single, 0.8 * ms[single]))
    times.learn(heft, measured_as(build(network, heft), heft, 0.95 * ms[heft]))
    assert times.place("single").makespan_ns / 1e6 == pytest.approx(0.8 * ms[single], rel=0.01)
    assert heft.replay(times.problem(False, "heft")).makespan_ns / 1e6 == pytest.approx(0.95 * ms[heft], rel=0.02)
    assert times.again_ns(single) == pytest.approx(0.8 * single.makespan_ns, rel=0.001) and times.again_ns(heft) == pytest.approx(0.95 * heft.makespan_ns, rel=0.02)
    times.learn(heft, measured_as(build(network, heft), heft, 9 * ms[single]))
    best = times.place("moirai", time_limit=0.3)
    assert len(set(best.placement.values())) == 1  # no split pays any more


def played(program, meet_ns, hop_ns):
    """A run in which segments take what was planned, but whose devices are held up for a time wherever they meet."""
    stamps = {r.rank: [Stamps(start=0)] for r in program.ranks if r.segments}
    left = sum(len(r.segments) for r in program.ranks)
    while left:
        for r in program.ranks:
            s = stamps[r.rank][0] if r.segments else None
            while s is not None and len(s.segments) < len(r.segments):
                g = r.segments[len(s.segments)]
                sent = [stamps[w.source][0].sent.get(w.index) for w in g.waits]
                if None in sent:
                    break
                begin = max([s.end + meet_ns if s.segments else 0, *(t + hop_ns for t in sent)])
                s.segments.append((begin, begin + g.work_ns))
                s.end = begin + g.work_ns
                s.sent.update((x.index, s.end) for x in g.sends)
                s.arrived.update((w.index, begin) for w in g.waits)
                left -= 1
    return timeline(program, stamps, 0)


def test_devices_that_are_held_up_where_they_meet_are_predicted_as_slower(captured, cpu_cluster, tmp_path):
    _, _, network = captured("moe")
    cluster = cpu_cluster.with_links([replace(x, latency_ns=2000) for x in cpu_cluster.links])
    problem = problem_of(network, cluster, congestion="none")
    plan = moirai.Plan.by_devices(problem, {n: "ABCD"[i % 4] for i, n in enumerate(problem.op_names)})
    program = build(network, plan)
    usual = statistics.median(s.finish_ns - s.start_ns for s in plan.steps)
    meet_ns = int(usual)
    run = played(program, meet_ns, 2000)
    segments = [g for d in run.timeline["devices"] for g in d["segments"]]
    assert {g["held_ns"] for g in segments} == {0, meet_ns}  # nothing where a tensor was waited for
    times = mt.Times(network, cluster, {"congestion": "none"}, tmp_path)
    times.learn(plan, run, "by hand")
    again = plan.replay(times.problem(False, "by hand"))
    assert again.makespan_ns == pytest.approx(run.median_ns, rel=0.1)
    for d in run.timeline["devices"]:
        held = sum(g["median_ns"] + g["held_ns"] for g in d["segments"])
        assert again.busy_ns[d["name"]] == pytest.approx(held, rel=0.01)
    freed = mt.Times(network, cluster, {"congestion": "none"}, tmp_path)
    freed.learn(plan, played(program, 0, 2000), "by hand")
    assert plan.replay(freed.problem(False, "by hand")).makespan_ns < 0.95 * again.makespan_ns


# ---- failures: processes of their own, since all ranks end


def two():
    return {"devices": [{"name": n, "type": "cpu", "memory": "1GB"} for n in "AB"], "links": links("AB")}


class Products(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.linear = torch.nn.Conv2d(3, 8, 3), torch.nn.Linear(36, 16)

    def forward(self, x):
        return self.linear(self.conv(x).relu().flatten(2)) @ torch.ones(16, 4, dtype=x.dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_products_in_half_precision_that_go_wrong_are_done_otherwise_or_refused(dtype, cpu_cluster, monkeypatch):
    x = torch.randn(2, 3, 8, 8, dtype=dtype)
    network = mt.capture(Products().eval().to(dtype), (x,))
    plan = moirai.place(problem_of(network, cpu_cluster), "single")

    def judge():
        (program,) = [r for r in build(network, plan).ranks if r.segments]
        judge = products.Judge(torch.device("cpu"))
        return program, judge, judge.settle(program, network.weights)

    assert len(judge()[1].right) == (0 if dtype == torch.float32 else 3) and not judge()[2]

    def leaves_a_tile_out(node, env, device):
        result = call(node, env, device)
        return result.index_fill(-1, torch.tensor([0]), 0) if node.target in faulty and result.dtype == dtype else result

    monkeypatch.setattr(products, "call", leaves_a_tile_out)
    for wrong in ("aten.linear.default", "aten.matmul.default"):
        faulty = {wrong, wrong.replace("aten", "moirai_triton")}  # Triton, too
        program, _, found = judge()
        if dtype == torch.float32:
            assert not found  # nothing to compare it with, and no such fault is known
            continue
        assert set(found.values()) == {wrong.replace("aten", "moirai_single")}
        rank = Rank(program, network.weights, torch.device("cpu"))
        for _, env in rank.rehearse({name: x for name in program.inputs}):
            pass
        (_, got), (expected,) = rank.results(env)[0], [mt.whole(network, (x,))]
        assert torch.allclose(got.float(), expected.float(), atol=0.05, rtol=0.05)
    faulty = {"aten.conv2d.default"}
    if dtype != torch.float32:
        with pytest.raises(products.WrongProduct, match="would be wrong: aten.conv2d.default of .* is off by") as refused:
            judge()
        assert "\n" not in str(refused.value)


def test_rank_that_dies_ends_all_with_one_line(captured):
    module, args, network = captured("moe")
    workers = mt.Workers(two())
    problem = problem_of(network, workers.cluster)
    plan = moirai.Plan.by_devices(problem, {n: "AB"[i % 2] for i, n in enumerate(problem.op_names)})
    run = mt.distribute(network, plan, workers=workers)
    run(*args)
    pids = [p.pid for p in workers._processes]
    threading.Timer(0.5, lambda: os.kill(pids[1], signal.SIGKILL)).start()
    began = time.monotonic()
    with pytest.raises(mt.RankError, match=r"device '[AB]'") as found:
        while time.monotonic() - began < 20:
            run(*args)
    assert time.monotonic() - began < 10 and "\n" not in str(found.value)
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert not workers.alive


def test_operator_that_fails_ends_all_with_its_words():
    class Bad(torch.nn.Module):
        def forward(self, table, i):
            return torch.nn.functional.embedding(i, table * 2)

    network = mt.capture(Bad().eval(), (torch.randn(5, 3), torch.tensor([1])))
    with mt.Workers(two()) as workers:
        plan = moirai.place(problem_of(network, workers.cluster), "single")
        run = mt.distribute(network, plan, workers=workers)
        with pytest.raises(mt.RankError, match="index out of range"):
            run(torch.randn(5, 3), torch.tensor([99]))


def test_ranks_end_with_their_caller():
    code = (
        "import os, sys, moirai.torch as mt\n"
        "w = mt.Workers({'devices': [{'name': 'A', 'type': 'cpu', 'memory': '1GB'}]})\n"
        "print(w._processes[0].pid, flush=True)\n"
        "os._exit(1)\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True).stdout
    limit = time.monotonic() + 10
    while time.monotonic() < limit:
        try:
            os.kill(int(out), 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail("the rank is still there")
