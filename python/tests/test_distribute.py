"""Plans that run: processes that exchange tensors by gloo."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not here: tests of moirai.torch are skipped")

import networks  # noqa: E402
from conftest import links  # noqa: E402

import moirai  # noqa: E402
import moirai.torch as mt  # noqa: E402

PLACERS = ["single", "m-etf", "heft", "m-topo", "random", "moirai"]


def problem_of(captured, cluster, ns=200_000):
    """All operators take as long as a message or more, so that placers split."""
    for k, device in enumerate(cluster.devices):
        captured.graph.set_times(device.name, [ns + 1000 * k] * len(captured.graph))
    return moirai.Problem(captured.graph, cluster)


@pytest.fixture(scope="module")
def captured():
    found = {}

    def get(name):
        if name not in found:
            module, args = networks.make(name, small=True)
            found[name] = (module, args, mt.capture(module, args, name=name, heads=networks.HEADS.get(name, False)))
        return found[name]

    return get


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
        for i in range(200):
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


def test_torchrun_ranks_agree(tmp_path):
    script = tmp_path / "run.py"
    script.write_text(
        "import sys, torch\n"
        f"sys.path[:0] = {sys.path!r}\n"
        "import moirai, moirai.torch as mt, networks\n"
        "from conftest import links\n"
        "torch.set_num_threads(1)\n"
        "module, args = networks.make('moe', small=True)\n"
        "network = mt.capture(module, args)\n"
        "for d in 'AB': network.graph.set_times(d, [200000] * len(network.graph))\n"
        "cluster = {'devices': [{'name': n, 'type': 'cpu', 'memory': '1GB'} for n in 'AB'], 'links': links('AB')}\n"
        "problem = moirai.Problem(network.graph, cluster)\n"
        "plan = moirai.Plan.by_devices(problem, {n: 'AB'[i % 2] for i, n in enumerate(problem.op_names)})\n"
        "run = mt.distribute(network, plan)\n"
        "for i in range(5):\n"
        "    x = torch.randn(args[0].shape, generator=torch.Generator().manual_seed(i))\n"
        "    with torch.no_grad(): assert torch.allclose(run(x), module(x), atol=1e-4)\n"
        "found = run.measure(x, warmup=1, runs=3)\n"
        "assert len(found.latency_ns) == 3 and min(found.latency_ns) > 0\n"
        "print('agreed', flush=True)\n"
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("agreed") == 2


# ---- failures: processes of their own, since all ranks end


def two():
    return {"devices": [{"name": n, "type": "cpu", "memory": "1GB"} for n in "AB"], "links": links("AB")}


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


def test_processors_and_gpus_do_not_mix():
    devices = [{"name": "A", "type": "cpu", "memory": "1GB"}, {"name": "B", "type": "v100", "share": 0.5}]
    with pytest.raises(mt.RankError, match="one cluster"):
        mt.Workers({"devices": devices, "links": links("AB")})
