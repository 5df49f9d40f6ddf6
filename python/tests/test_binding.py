"""The library through Python: objects, errors, searches, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from conftest import links

import moirai


@pytest.fixture(scope="module")
def tiny():
    return moirai.Problem(moirai.Graph.open("gpt3-tiny"), "inter-server")


def test_graph_is_built_read_and_written(tmp_path):
    ops = [
        moirai.Op("a", "MatMul", ("x", "w"), (moirai.Tensor("a", 4000),), weight_bytes=64, flops=10, traffic_bytes=20),
        moirai.Op("b", "Relu", ("a",), (moirai.Tensor("b", 4000),), members=("b1", "b2"), time_ns={"v100": 7}),
    ]
    graph = moirai.Graph.build("two", ops)
    graph.save(tmp_path / "g.json")
    again = moirai.Graph.open(tmp_path / "g.json")
    assert again.name == "two" and len(again) == 2 and again.devices == ["v100"]
    assert again["a"].inputs == ("x", "w") and again["a"].flops == 10 and again["a"].weight_bytes == 64
    assert again["b"].members == ("b1", "b2") and again["b"].time_ns == {"v100": 7} and again["b"].flops is None
    assert "a" in again and "nobody" not in again
    assert again.stats()["n_edges"] == 1
    with pytest.raises(KeyError):
        again["nobody"]


def test_measured_times_are_set_by_name_and_decide(tmp_path):
    graph = moirai.Graph.build("one", [moirai.Op("a", "Relu", ("x",), (moirai.Tensor("a", 4),))])
    cluster = {"devices": [{"name": n, "type": "v100"} for n in "AB"], "links": links("AB")}
    graph.set_times("A", {"a": 5000})
    graph.set_times("B", [3000])
    problem = moirai.Problem(graph, cluster)
    assert problem.time_ns("a") == {"A": 5000, "B": 3000}
    assert moirai.place(problem, "single").placement == {"a": "B"}
    with pytest.raises(ValueError, match="2 times for 1 operators"):
        graph.set_times("A", [1, 2])


def test_errors_are_exceptions_with_the_library_s_line(tmp_path):
    with pytest.raises(moirai.InputError, match="can't open"):
        moirai.Graph.open(tmp_path / "nothing.json")
    with pytest.raises(moirai.InputError, match="device 'B': memory \"16XB\": unknown unit"):
        moirai.Cluster.open({"devices": [{"name": "B", "memory": "16XB"}]})
    with pytest.raises(moirai.InputError, match="cycle"):
        moirai.Graph.build("c", [moirai.Op("a", "Relu", ("b",), (moirai.Tensor("a", 4),)),
                                 moirai.Op("b", "Relu", ("a",), (moirai.Tensor("b", 4),))])  # fmt: skip
    with pytest.raises(moirai.UsageError, match="placer"):
        moirai.place(moirai.Problem(moirai.Graph.open("gpt3-tiny"), "inter-server"), "nobody")
    graph = moirai.Graph.build("g", [moirai.Op("a", "Relu", (), (moirai.Tensor("a", 4),), weight_bytes=10**12)])
    with pytest.raises(moirai.InfeasibleError):
        moirai.place(moirai.Problem(graph, "inter-server"), "single")
    assert issubclass(moirai.InputError, moirai.Error) and issubclass(moirai.InputError, ValueError)


def test_share_of_a_gpu_is_read_written_and_limited(tmp_path):
    devices = [{"name": "A", "type": "v100", "share": 0.25}, {"name": "B", "type": "v100"}]
    cluster = moirai.Cluster.open({"devices": devices, "links": links("AB")})
    assert [d.share for d in cluster.devices] == [0.25, None] and not cluster.notes
    cluster.save(tmp_path / "c.json")
    assert [d.share for d in moirai.Cluster.open(tmp_path / "c.json").devices] == [0.25, None]
    for share in (0, -0.5, 1.5):
        with pytest.raises(moirai.InputError, match="share is"):
            moirai.Cluster.open({"devices": [{"name": "A", "type": "v100", "share": share}]})


def test_cluster_with_other_links_keeps_its_devices(cpu_cluster):
    slow = [moirai.Link(x.source, x.target, 1000, 7) for x in cpu_cluster.links]
    other = cpu_cluster.with_links(slow)
    assert other.devices == cpu_cluster.devices
    assert {(x.bytes_per_second, x.latency_ns) for x in other.links} == {(1000, 7)}


def test_every_placer_gives_a_checked_plan(tiny):
    for placer in moirai.placers():
        if placer in ("milp", "exact"):  # not meant for this size
            continue
        plan = moirai.place(tiny, placer, time_limit=2, seed=3)
        plan.check()
        assert plan.placer == placer and set(plan.placement) == set(tiny.op_names)
        assert plan.makespan_ns == max(s.finish_ns for s in plan.steps)
        assert plan.lower_bound_ns is None or plan.lower_bound_ns <= plan.makespan_ns


def test_plan_is_saved_read_and_replayed(tiny, tmp_path):
    plan = moirai.place(tiny, "heft")
    plan.save(tmp_path / "p.json")
    again = moirai.Plan.read(tiny, tmp_path / "p.json")
    assert again.placement == plan.placement and again.makespan_ns == plan.makespan_ns
    assert json.loads((tmp_path / "p.json").read_text())["format"] == "moirai-plan"
    assert plan.replay(tiny).makespan_ns <= plan.makespan_ns
    assert "<table>" in plan._repr_html_() and "<svg" in plan._repr_html_()
    plan.report(tmp_path / "p.html")
    assert "</html>" in (tmp_path / "p.html").read_text()
    assert plan.verdict and all("\n" not in line for line in plan.verdict)


def test_placement_by_hand_is_simulated(tiny):
    device = tiny.devices[1]
    plan = moirai.Plan.by_devices(tiny, device)
    plan.check()
    assert set(plan.placement.values()) == {device} and not plan.transfers
    assert plan.makespan_ns == sum(tiny.time_ns(n)[device] for n in tiny.op_names)
    with pytest.raises(ValueError, match="no device for operator"):
        moirai.Plan.by_devices(tiny, {})


def test_wishes_are_kept():
    graph = moirai.Graph.open("gpt3-tiny")
    problem = moirai.Problem(graph, "inter-server", pin={"L0/*": "B"}, forbid={"L1/fc1": "A,B"}, memory="peak")
    placement = moirai.place(problem, "heft").placement
    assert {d for n, d in placement.items() if n.startswith("L0/")} == {"B"}
    assert placement["L1/fc1"] not in ("A", "B")
    with pytest.raises(moirai.Error):
        moirai.Problem(graph, "inter-server", pin={"nothing*": "A"})


def test_comparison_has_a_row_per_placer_and_a_best(tiny):
    found = moirai.compare(tiny, ["single", "heft", "nobody"])
    assert [r.placer for r in found.rows] == ["single", "heft", "nobody"]
    assert found.rows[2].plan is None and "nobody" in (found.rows[2].error or "")
    assert found.best.makespan_ns == min(found["single"].makespan_ns, found["heft"].makespan_ns)
    assert "heft" in repr(found) and "<table>" in found._repr_html_()


def test_certificate_is_written_and_proven(tiny, tmp_path):
    path = tmp_path / "c.json"
    plan = moirai.place(tiny, time_limit=3, certificate=path)
    proof = moirai.prove(tiny, path)
    assert 0 < proof.proven_ns <= plan.makespan_ns and proof.proven_ns >= proof.certified_ns
    assert not proof.of_rate and proof.in_flight == 0
    other = moirai.Problem(moirai.Graph.open("t5-tiny"), "inter-server")
    with pytest.raises(moirai.Error):
        moirai.prove(other, path)


def test_certificate_of_a_rate_says_so(tiny, tmp_path):
    path = tmp_path / "rate.json"
    plan = moirai.place(tiny, objective="rate", in_flight=2, certificate=path, effort=0.02, threads=1)
    proof = moirai.prove(tiny, path)
    assert proof.of_rate and proof.in_flight in (0, 2)
    assert 0 < proof.proven_ns <= plan.rate.period_ns


def test_plan_knows_the_steps_behind_it(tiny, tmp_path):
    plan = moirai.place(tiny, effort=0.05, time_limit=0)
    steps = {s.name: s for s in plan.search_steps}
    assert plan.plan_by in steps and plan.bound_by
    assert all(s.calls > 0 and s.cpu_ns is not None for s in steps.values())
    plan.save(tmp_path / "plan.json")
    read = moirai.Plan.read(tiny, tmp_path / "plan.json")
    assert (read.plan_by, read.bound_by) == (plan.plan_by, plan.bound_by)
    assert [(s.name, s.calls, s.cpu_ns) for s in read.search_steps] == [(n, s.calls, None) for n, s in steps.items()]
    assert moirai.place(tiny, "heft").search_steps == []


def test_many_requests_in_flight(tiny, tmp_path):
    plan = moirai.place(tiny, objective="rate", in_flight=8, effort=0.05, threads=1)
    rate = plan.rate
    assert rate.in_flight <= 8 and rate.period_bound_ns <= rate.period_ns < rate.alone_ns
    assert rate.per_second == pytest.approx(1e9 / rate.period_ns) and 0 <= rate.gap < 1
    assert sum(c.share for c in rate.copies) == pytest.approx(1) and rate.copies[0].placement == plan.placement
    plan.save(tmp_path / "rate.json")
    assert moirai.Plan.read(tiny, tmp_path / "rate.json").rate == rate
    assert moirai.place(tiny, "heft").rate is None
    each = moirai.place(tiny, objective="rate", in_flight=8, effort=0.05, threads=1, kind="replicas").rate
    assert len(each.copies) > 1 and all(len(set(c.placement.values())) == 1 for c in each.copies)
    for wrong in ({"in_flight": 4}, {"kind": "stages"}, {"objective": "speed"}, {"objective": "rate", "placer": "heft"}):
        with pytest.raises(ValueError):
            moirai.place(tiny, **wrong)
    with pytest.raises(moirai.InfeasibleError, match="one request alone takes"):
        moirai.place(tiny, objective="rate", in_flight=2, latency_limit_ms=1e-6, effort=0.05)


def test_progress_is_called_on_this_thread_and_may_stop_the_search(tiny):
    seen = []
    moirai.place(tiny, time_limit=1, progress=lambda n: seen.append((threading.current_thread(), n)))
    assert seen and all(t is threading.current_thread() for t, _ in seen)
    makespans = [n.makespan_ns for _, n in seen if n.makespan_ns]
    assert makespans == sorted(makespans, reverse=True)

    def trouble(news):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        moirai.place(tiny, time_limit=30, progress=trouble)


def test_ctrl_c_gives_the_best_plan():
    problem = moirai.Problem(moirai.Graph.open("gpt3-330M"), "inter-server")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for jobs in the background
    try:
        timer = threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        plan = moirai.place(problem, time_limit=60)
    finally:
        signal.signal(signal.SIGINT, before)
    assert plan.interrupted
    plan.check()


def test_other_threads_run_while_it_searches():
    problem = moirai.Problem(moirai.Graph.open("gpt3-330M"), "inter-server")
    turns, done = 0, threading.Event()

    def count():
        nonlocal turns
        while not done.is_set():
            turns += 1
            time.sleep(0.01)

    other = threading.Thread(target=count)
    other.start()
    moirai.place(problem, time_limit=1, threads=1)
    done.set()
    other.join()
    assert turns > 20


def test_plan_of_a_name_is_what_the_command_gives():
    graph = moirai.Graph.open("gpt3-tiny")
    by_name = moirai.plan("gpt3-tiny", "inter-server", effort=0.05)
    by_hand = moirai.place(moirai.Problem(graph.coarsen("onnxruntime"), "inter-server"), effort=0.05)
    as_it_is = moirai.plan(graph, "inter-server", effort=0.05)
    assert by_name.makespan_ns == by_hand.makespan_ns < as_it_is.makespan_ns
    assert len(by_name.placement) < len(as_it_is.placement) == len(graph)


def test_launches_are_the_runtime_s():
    graph = moirai.Graph.open("gpt3-tiny")
    op = next(iter(moirai.Problem(graph, "1x v100").op_names))
    times = [moirai.Problem(graph, "1x v100", runtime=r).time_ns(op)["A"] for r in ("eager", "ort", "graph")]
    assert times[0] > times[1] > times[2]
    with pytest.raises(moirai.Error, match="runtime"):
        moirai.Problem(graph, "1x v100", runtime="slow")


def test_mistaken_arguments_are_named_at_once() -> None:
    with pytest.raises(TypeError, match="place: 3 is no moirai.Problem"):
        moirai.place(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="plan: no option 'timelimit': there are seed, time_limit"):
        moirai.plan("no-such-file.onnx", "inter-server", timelimit=3)
    with pytest.raises(TypeError, match="plan: problem: no option 'memori'"):
        moirai.plan("gpt3-tiny", "inter-server", problem={"memori": "peak"})
    with pytest.raises(moirai.UsageError, match="has no setting 'efort': it has "):
        moirai.plan("gpt3-tiny", "inter-server", settings={"efort": 1})


def test_cuts_cost_what_the_runtime_needs() -> None:
    graph = moirai.Graph.open("gpt3-tiny")
    usual = moirai.place(moirai.Problem(graph, "inter-server", runtime="ort"), "heft")
    given = moirai.place(moirai.Problem(graph, "inter-server", runtime="ort", segment_us=17), "heft")
    assert usual.makespan_ns == given.makespan_ns
