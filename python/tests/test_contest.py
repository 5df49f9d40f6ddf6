"""`tune` chooses cuts by the kernels that will run. Times are invented here: nothing is compiled, no rank is started."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
from conftest import links, need

torch = need("torch")

import cut_networks as networks  # noqa: E402

import moirai  # noqa: E402
import moirai.torch as mt  # noqa: E402
from moirai.torch import grouping  # noqa: E402
from moirai.torch.choose import by_pieces  # noqa: E402
from moirai.torch.compiler import Compiler  # noqa: E402
from moirai.torch.contest import Contest, _pieces, shifted  # noqa: E402
from moirai.torch.merging import expected_ns  # noqa: E402
from moirai.torch.profile import _read_outside, to_measure  # noqa: E402
from moirai.torch.times import Times  # noqa: E402

SLOW = {"none": "tokens", "inductor": "columns|heads"}  # pieces that take thrice as long, by the kernels


def invented(captured, code):
    """By operator: what it computes and moves; pieces of some kind are slow. Without code, what libraries compute alone."""
    outside, found = _read_outside(captured), {}
    for op in captured.graph.ops:
        made = to_measure(captured, op.name, outside.get(op.name, []))
        if code or captured.fuse != "inductor" or not Compiler.worth(made.piece):
            slow = 3 if re.search(rf"of \d+ ({SLOW[captured.fuse]})\)", op.name) else 1
            found[op.name] = slow * ((op.flops or 0) + (op.traffic_bytes or 0)) + 100
    return found


@pytest.fixture
def tuned(monkeypatch):
    """Calls `tune` with invented profiles; returns what it found and what was profiled."""
    tuning = sys.modules["moirai.torch.tune"]
    devices = [{"name": n, "type": "cpu", "memory": "2GB"} for n in "AB"]
    cluster = moirai.Cluster.open({"name": "two", "devices": devices, "links": links("AB", "1000GB/s", "1ns")})
    profiled = []

    def profile(captured, *, code=True, **_):
        profiled.append((captured.fuse, captured.cuts, code))
        for d in "AB":
            captured.graph.set_times(d, invented(captured, code))
        return mt.Profile(0, 0, 0)

    def measure(self, trial):
        trial.latency_ns.append(round(expected_ns(trial.plan) * (1.1 if trial.fuse == "none" else 1)))

    monkeypatch.setattr(tuning, "profile", profile)
    monkeypatch.setattr(tuning, "meetings", lambda *_, **__: {})
    monkeypatch.setattr(tuning._Tuner, "measure", measure)
    monkeypatch.setattr(Times, "learn", lambda *_: None)
    monkeypatch.setattr(grouping, "_ask", lambda piece, metas, nodes, base, calls, device: (grouping.by_rules(calls, nodes), "inductor"))

    def run(fuse, **options):
        module, (x,) = networks.make("gpt2")
        args = (x[:1],)  # one sample: samples would be the best cut of all
        where = {"workers": SimpleNamespace(kind="cpu"), "probed": cluster}
        found = mt.tune(module, args, **where, cuts=("auto",), fuse=fuse, placers=("heft",), rounds=0, time_limit=5, threads=1,
                        cache=None, **options)  # fmt: skip
        return found, profiled

    return run


def test_compiled_kernels_choose_another_cut_than_eager_ones(tuned):
    """Pieces of tokens are slow eagerly, those of columns and heads compiled: each way has its own best cut."""
    eager, _ = tuned(("none",))
    assert eager.cuts[0].kind in ("", "every") and eager.captured.cuts == eager.cuts[0].cut
    compiled, profiled = tuned(("none", "inductor"))
    assert compiled.cuts[0].kind == "tokens" and compiled.captured.cuts == compiled.cuts[0].cut
    assert compiled.best.fuse == "inductor" and compiled.best.measured_ns < eager.best.measured_ns
    assert {t.fuse for t in compiled.trials if t.captured.cuts} == {"inductor"}


def test_the_way_that_is_fastest_alone_is_the_only_one_whose_pieces_are_profiled(tuned, monkeypatch):
    contests, own = [], Contest.run
    monkeypatch.setattr(Contest, "run", lambda self: contests.append(self) or own(self))
    found, profiled = tuned(("none", "inductor"))
    assert {fuse for fuse, cuts, _ in profiled if cuts} == {"inductor"}
    compiled = [cuts for _, cuts, code in profiled if cuts and code]
    assert len(compiled) == 2 and all(_pieces(cuts) == 2 for cuts in compiled)  # one of columns and heads, one of tokens
    for c in contests[-1].known:  # sums of a piece's times are compared: all of them have theirs
        assert all(set(op.time_ns or {}) == {"A", "B"} for op in c.graph.ops)
    assert not found.captured.busy and all(set(op.time_ns or {}) == {"A", "B"} for op in found.captured.graph.ops)


def test_every_cut_that_was_looked_at_says_why_it_is_kept_or_not(tuned):
    said = []
    found, _ = tuned(("inductor",), say=said.append)
    assert found.cuts[0].why.startswith("kept") and all(t.why for t in found.cuts)
    assert all(t.why.startswith("not ") for t in found.cuts[1:])
    ran = [t for t in found.cuts if t.measured_ns is not None]
    least = min(t.predicted_ns for t in found.cuts)
    assert found.cuts[0].measured_ns == min(t.measured_ns for t in ran)
    assert all(t.predicted_ns > 1.15 * least or t.predicted_ns > 1.05 * found.cuts[0].measured_ns for t in found.cuts if t not in ran)
    assert f"cut: {found.cuts[0].cut}" in said and repr(found.cuts[0]) in repr(found)


def test_sizes_follow_what_devices_took_in_a_run():
    assert shifted([448, 320, 256], [3200, 3400, 3900], 64) == [512, 320, 192]
    assert shifted([512, 320, 192], [3580, 3670, 3590], 64) == []  # as even as steps allow
    assert shifted([3, 1], [2000, 1500], 1) == []
    assert shifted([2, 2], [1000, 3000], 1) == [3, 1] and shifted([64, 960], [9, 5], 64) == []


def test_the_fastest_cut_by_tokens_is_run_with_other_sizes_where_its_run_was_uneven(tuned, monkeypatch):
    even, _ = tuned(("inductor",))
    assert even.cuts[0].kind == "tokens"
    monkeypatch.setattr(Times, "busy_ns", lambda self: {"A": 1000, "B": 3000})
    found, _ = tuned(("inductor",))
    other = [t for t in found.cuts if t.kind == "tokens" and t.cut not in {e.cut for e in even.cuts}]
    assert other and all(t.measured_ns or t.why == "not run: far above what was measured" for t in other)


def test_a_device_per_piece_is_among_the_plans_of_a_cut():
    names = ["a", "b (1 of 3, 8 of 24 heads)", "b (2 of 3, 8 of 24 heads) (bias)", "n (3 of 3, repeated)", "kv (3 joined, 2)", "kv (3 joined)"]
    assert list(by_pieces(names, "ABC").values()) == ["A", "A", "B", "C", "B", "A"]
    assert by_pieces(names, "AB")["n (3 of 3, repeated)"] == "B"


def test_a_placer_that_finds_nothing_leaves_the_plan_with_a_device_per_piece(tuned, monkeypatch):
    monkeypatch.setattr(Times, "place", lambda self, *_, **__: self.single())
    found, _ = tuned(("inductor",))
    ran = [t for t in found.trials if t.captured.cuts]
    assert ran and all(len(t.devices) == 2 for t in ran)
    assert len(found.best.devices) == 2 and "by pieces" in repr(found.best)


def test_cuts_near_the_whole_network_are_planned_although_a_quick_plan_says_that_none_pays(tuned, monkeypatch):
    contest = sys.modules["moirai.torch.contest"]
    own = contest.choose
    monkeypatch.setattr(contest, "choose", lambda *a, **k: replace(own(*a, **k), cut=""))
    found, _ = tuned(("inductor",))
    assert found.cuts and len(found.best.devices) == 2


def test_nothing_is_begun_when_the_time_is_over(tuned):
    found, profiled = tuned(("none", "inductor"), seconds=1e-9)
    cut = [t for t in found.trials if t.captured.cuts]
    assert len(cut) <= 1 and len([cuts for _, cuts, _ in profiled if cuts]) <= 2 and not any(len(t.latency_ns) > 1 for t in found.trials)
    assert found.ended and found.verdict.endswith("; the time was over before all was tried")
    few, _ = tuned(("none",), seconds=1e-9)
    assert len(few.trials) == 1 and few.verdict.startswith("NO SPLIT WAS TRIED: ")
    whole, _ = tuned(("none", "inductor"), seconds=1000)
    assert not whole.ended and "time was over" not in whole.verdict
    # By what is known of pieces, and that depends on how many were profiled: a cut's time differs by some thousandths.
    assert len(whole.trials) >= len(found.trials) and whole.best.measured_ns <= 1.02 * found.best.measured_ns


def test_what_a_profile_left_out_takes_its_part_of_what_was_compiled(monkeypatch):
    monkeypatch.setattr(grouping, "_ask", lambda piece, metas, nodes, base, calls, device: (grouping.by_rules(calls, nodes), "inductor"))
    whole = mt.capture(*networks.make("gpt2"), fuse="inductor", fuse_for="cpu", cache=None)
    contest = Contest(SimpleNamespace(), (False, "inductor"), whole, {})
    contest.known = [whole.recut("*mlp: 64,32", quick=True)]
    made = whole.recut("*mlp: 48,48", quick=True)
    for captured, code in ((whole, True), (contest.known[0], True), (made, False)):
        captured.graph.set_times("A", invented(captured, code))
    before = {op.name: dict(op.time_ns or {}) for op in made.graph.ops}
    contest.fill(made)
    after = {op.name: op.time_ns["A"] for op in made.graph.ops}
    assert any(not t for t in before.values())
    assert all(after[n] == t["A"] for n, t in before.items() if t)  # products stay as they were measured
    known: dict[str, list[int]] = {}
    for op in contest.known[0].graph.ops:
        known.setdefault(op.name.split(" (")[0], []).append(op.time_ns["A"])
    left_out = [n for n, t in before.items() if not t and " 48 of 96 " in n]
    assert len(left_out) >= 2
    for name in left_out:
        ends = known[name.split(" (")[0]]
        assert min(ends) < after[name] < max(ends)


def test_a_profile_without_code_measures_what_libraries_compute_and_compiles_nothing(cpu_workers, tmp_path, monkeypatch):
    monkeypatch.setattr(grouping, "_ask", lambda piece, metas, nodes, base, calls, device: (grouping.by_rules(calls, nodes), "inductor"))
    whole = mt.capture(*networks.make("gpt2"), fuse="inductor", fuse_for="cpu", cache=None)
    made = whole.recut("*mlp: 48,48", quick=True)
    few = mt.Options(warmup=1, runs=2, seconds=0.01)
    report = mt.profile(made, workers=cpu_workers, cache=tmp_path, options=few, code=False)
    timed = {op.name for op in made.graph.ops if op.time_ns}
    assert timed == {n for n, ns in invented(made, False).items() if ns} and 0 < len(timed) < len(made.graph)
    assert report.measured == report.distinct and not report.failed and not (tmp_path / "compiled").exists()


def test_cuts_of_a_network_for_gpus_are_chosen_where_biases_are_sums_of_their_own(monkeypatch):
    monkeypatch.setattr(grouping, "_ask", lambda piece, metas, nodes, base, calls, device: (grouping.by_rules(calls, nodes), "inductor"))
    module, (x,) = networks.make("gpt2")
    devices = [{"name": n, "type": "cpu", "memory": "2GB"} for n in "AB"]
    cluster = moirai.Cluster.open({"name": "two", "devices": devices, "links": links("AB", "1000GB/s", "1ns")})
    found = []
    for kind in ("cpu", "cuda"):
        whole = mt.capture(module, (x[:1],), fuse="inductor", fuse_for=kind, cache=None)
        for d in "AB":
            whole.graph.set_times(d, invented(whole, True))
        found.append(mt.choose(whole, cluster, threads=1, congestion="none"))
    assert any("(bias)" in op.name for op in whole.graph.ops) or any("(bias)" in m for op in whole.graph.ops for m in op.members)
    assert all(f.cut and f.cut_ns < 0.8 * f.whole_ns for f in found)


@pytest.mark.parametrize("cut", ["*tokens: 2:1", "*attention: 1:1 every; *mlp: 3:5 every"])
def test_groups_by_rules_are_whole_and_compute_the_same(cut):
    module, args = networks.make("gpt2")
    whole = mt.capture(module, args, fuse="inductor", fuse_for="cpu", cache=None)
    made, asked = whole.recut(cut, quick=True), whole.recut(cut)
    assert made.grouped_by == "as asked" and asked.grouped_by == "inductor"
    assert sorted(c for calls in made.ops.values() for c in calls) == sorted(c for calls in asked.ops.values() for c in calls)
    with torch.no_grad():
        assert torch.allclose(mt.whole(made, args), module(*args), atol=2e-5, rtol=1e-4)
