"""Captured modules with operators in pieces compute what they do whole, and say what their pieces are."""

from __future__ import annotations

import random
import sys

import pytest
from conftest import need

torch = need("torch")

import cut_networks as networks  # noqa: E402

import moirai  # noqa: E402
import moirai.torch as mt  # noqa: E402
from moirai.torch.choose import _Chooser  # noqa: E402
from moirai.torch.cut_sizes import balanced, samples, step_of  # noqa: E402

UNITS = {"gpt2": (4, "heads"), "vit": (6, "heads"), "llama": (2, "head groups"), "llama-native": (3, "head groups"),
         "biased": (4, "heads"), "encoder": (4, "heads")}  # fmt: skip


@pytest.mark.parametrize("name", networks.NAMES)
def test_cut_modules_compute_what_they_do_whole(name):
    module, args = networks.make(name)
    with torch.no_grad():
        expected = module(*args)
    whole = mt.capture(module, args)
    kinds = {s.kind: s for s in whole.strips}
    assert (kinds["attention"].units, kinds["attention"].unit) == UNITS[name]
    assert sum(s.kind == "attention" for s in whole.strips) == sum(s.kind == "mlp" for s in whole.strips)
    for cuts in ("*attention: 1:1; *mlp: 3:5", {"*": "2 tree"}, "*mlp: 1:5:7:2 tree; *attention: whole",
                 "*attention: 1:1 every; *mlp: 3:5:2 every"):  # fmt: skip
        cut = whole.recut(cuts)
        got = mt.whole(cut, args)
        assert got.dtype == expected.dtype and torch.allclose(got, expected, atol=2e-5, rtol=1e-4)
        assert len(cut.graph) > len(whole.graph)
    assert mt.whole(whole.recut("*mlp: whole"), args).equal(mt.whole(whole, args))


def test_pieces_have_their_part_of_arithmetic_and_weights_and_say_so():
    module, args = networks.make("llama")
    cut = mt.capture(module, args, cuts="0/mlp: 24,48; 0/attention: 1,1")
    whole = {op.name: op for op in cut.recut(None).graph.ops}
    ops = {op.name: op for op in cut.graph.ops}
    for name, parts in {("0.gate", "0.up"): (24, 48), ("0.down",): (24, 48)}.items():
        assert not set(name) & set(ops)
        for k, n in enumerate(parts):
            label = f"({k + 1} of 2, {n} of 72 columns)"
            piece = ops[f"0.gate+up {label}" if len(name) > 1 else f"0.down {label}"]
            assert piece.weight_bytes * 72 == sum(whole[x].weight_bytes for x in name) * n
            assert piece.flops * 72 == sum(whole[x].flops for x in name) * n
            assert list(piece.members) == [f"{x} {label}" for x in name if len(name) > 1]
    assert "0.q_proj+k_proj+v_proj (2 of 2, 1 of 2 head groups)" in ops and "0.o_proj (sum)" in ops and "1.o_proj" in ops


def test_sums_that_every_piece_makes_for_itself_leave_partial_results_alone_to_be_sent():
    module, args = networks.make("gpt2")
    whole = mt.capture(module, args)
    for how, most in (("", 0), (" every", 1)):
        ops = {op.name: op for op in whole.recut(f"*attention: 1:1{how}; *mlp: 1:1{how}").graph.ops}
        made_by = {t.name: op.name for op in ops.values() for t in op.outputs}
        second = {n for n in ops if " (2 of 2, " in n}
        read = {made_by[t] for n in second for t in ops[n].inputs if t in made_by} - second
        parts = {n for n in read if " (1 of 2, " in n and n.split(" (")[0].endswith(("proj", "down", "out", "o"))}
        assert read and (parts == read if most else not parts), how
        assert any(n.endswith("(2 of 2, repeated)") for n in ops) == bool(most)


def test_products_of_a_piece_that_read_the_same_are_one():
    """Queries, keys and values; the times of pieces are in proportion to all three."""
    whole = mt.capture(*networks.make("llama"))
    whole.graph.set_times("A", {op.name: op.flops * 10 + 1 for op in whole.graph.ops})
    cut = whole.recut("*attention: 1,1")
    mt.piece_times(cut.graph, [whole.graph])
    joined = [op for op in cut.graph.ops if "q_proj+k_proj+v_proj (" in op.name]
    assert len(joined) == 2 * sum(s.kind == "attention" for s in whole.strips)
    for op in joined:
        assert len(op.members) == 3 and abs(op.time_ns["A"] - op.flops * 10) < 0.02 * op.flops * 10


def test_heads_are_a_case_of_cuts():
    module, args = networks.make("gpt2")
    with torch.no_grad():
        expected = module(*args)
    whole = mt.capture(module, args)
    names = [[op.name for op in c.graph.ops] for c in (mt.capture(module, args, heads=2), whole.recut("*heads: 2"), whole)]
    assert names[0] == names[1] != names[2]
    cut = whole.recut("0/heads: 1,3; *mlp: 1:2")
    assert torch.allclose(mt.whole(cut, args), expected, atol=2e-5)


def test_groups_of_heads_get_shares_of_what_was_measured():
    whole = mt.capture(*networks.make("gpt2"))
    whole.graph.set_times("A", {op.name: op.flops // 10 + 1 for op in whole.graph.ops})
    cut = whole.recut("*heads: 1,3").graph
    mt.piece_times(cut, [whole.graph])
    total, pieces = (sum(op.time_ns["A"] for op in g.ops) for g in (whole.graph, cut))
    assert total <= pieces < 1.05 * total
    some = [op for op in cut.ops if "(2 of 2, 3 of 4 heads)" in op.name]
    assert len(some) >= 4 and len({op.name for op in cut.ops}) == len(cut)


class Attends(torch.nn.Module):
    """Queries, keys and values taken apart in the ways that models do it."""

    def __init__(self, how):
        super().__init__()
        self.how, self.qkv, self.out = how, torch.nn.Linear(32, 96), torch.nn.Linear(32, 32)

    def forward(self, x):
        b, n, _ = x.shape
        y = self.qkv(x).view(b, n, 3, 4, 8).permute(2, 0, 3, 1, 4)
        q, k, v = y if self.how == "iterated" else y.unbind(0) if self.how == "unbind" else (y[0], y[1], y[2])
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(b, n, 32))


@pytest.mark.parametrize("how", ["iterated", "unbind", "indexed"])
def test_attention_is_found_however_its_tensors_are_taken_apart(how):
    module, x = Attends(how).eval(), torch.randn(2, 5, 32)
    whole = mt.capture(module, (x,))
    assert [s.kind for s in whole.strips] == ["attention", "heads", "tokens", "batch"]
    with torch.no_grad():
        for cuts in ("*attention: 1,3", "*attention: 1:1 every", "*tokens: 2,3", "*batch: 1,1"):
            assert torch.allclose(mt.whole(whole.recut(cuts), (x,)), module(x), atol=1e-6)


BAD = {
    "0/mlp: 2,3": "strip '0/mlp': the sizes add up to 5 columns, it has 96",
    "0/attention: 5": "strip '0/attention': 5 pieces, it has 4 heads",
    "9/mlp: 2": 'cut "9/mlp": no strip of that name; there are 0/attention',
    "0/mlp: 2:x": '"x" is not a size of at least 1',
    "0/mlp: 2:3,5": "2,4,6 .units. or 2:3:5 .shares.",
    "0/mlp": "a strip, a colon and sizes are needed",
    "0/mlp: 2 sideways": 'cut "0/mlp": sum "sideways": expected chain, star, tree or every',
    "0/mlp: 0,96": '"0" is not a size of at least 1',
    " # nothing": "the cut is empty",
    b"0/mlp: 2": "a text or a mapping of strips to sizes, not bytes",
    5: "a text or a mapping of strips to sizes, not int",
}


def test_bad_cuts_get_one_line():
    whole = mt.capture(*networks.make("gpt2"))
    for cuts, message in BAD.items():
        with pytest.raises(moirai.UsageError, match=message) as caught:
            whole.recut(cuts)
        assert "\n" not in str(caught.value)


def test_options_of_the_problem_go_where_they_belong():
    whole = mt.capture(*networks.make("gpt2"))
    for function in (lambda: mt.plan(whole, two(), congestion="none"), lambda: mt.all_cuts_bound(whole, two(), effort=1), lambda: mt.choose(whole, two(), efort=1)):  # fmt: skip
        with pytest.raises(TypeError, match="no option '(congestion|effort|efort)': there are ") as caught:
            function()
        assert "\n" not in str(caught.value)


def test_what_is_read_outside_is_not_cut():
    class Open(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)

        def forward(self, x):
            y = torch.relu(self.up(x))
            return self.down(y), y

    strips = mt.capture(Open().eval(), (torch.randn(3, 8),)).strips
    assert [(s.name, s.kind) for s in strips if s.kind != "batch"] == [("up/linear", "linear"), ("down/linear", "linear")]


def test_slices_of_one_weight_are_not_taken_for_one_another():
    """Layers that share their weights, two cut like this and two like that: four slices, each read twice."""

    class Again(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = torch.nn.Linear(32, 64), torch.nn.Linear(64, 32)

        def forward(self, x):
            for _ in range(4):
                x = self.down(torch.relu(self.up(x)))
            return x

    module, x = Again().eval(), torch.randn(3, 32)
    whole = mt.capture(module, (x,))
    names = [s.name for s in whole.strips if s.kind == "mlp"]
    assert names == ["mlp", "network#2/mlp", "network#3/mlp", "network#4/mlp"]
    cut = whole.recut("; ".join(f"{n}: {s}" for n, s in zip(names, ("32,32", "32,32", "16,48", "16,48"))))
    held = {t.name: t.bytes for op in cut.graph.ops for t in op.shared_weights if "up" in op.name}
    assert sorted(held.values()) == [n * 32 * 4 for n in (16, 32, 32, 48)]
    assert torch.allclose(mt.whole(cut, (x,)), module(x), atol=1e-5)


def two():
    """Two processors with a link that hardly costs."""
    links = [{"from": "A", "to": "B", "bandwidth": "900GB/s", "both": True}]
    return moirai.Cluster.open(
        {"name": "two", "devices": [{"name": n, "type": "cpu", "memory": "2GB"} for n in "AB"], "links": links}
    )


@pytest.mark.parametrize("pieces", [1.0, 1.5])
def test_no_cut_is_shorter_than_the_bound_of_all_cuts(pieces):
    module, args = networks.make("gpt2")
    whole, speed = mt.capture(module, args), {"A": 1, "B": 2}
    strips = [s for s in whole.strips if s.kind in ("attention", "mlp", "linear")]
    for device, factor in speed.items():
        whole.graph.set_times(device, {op.name: factor * (op.flops + 1) * 100 for op in whole.graph.ops})
    halves = whole.recut("; ".join(f"{s.name}: {s.units // 2},{s.units - s.units // 2}" for s in strips))
    for device, factor in speed.items():  # pieces take longer than their share
        halves.graph.set_times(device, {op.name: int(pieces * factor * (op.flops + 1) * 100) for op in halves.graph.ops})
    known = [whole.graph, halves.graph]
    bound = mt.all_cuts_bound(whole, two(), measured=known, congestion="none")
    shared = sum((op.flops + 1) * 100 for op in whole.graph.ops) / 1.5
    assert 0.8 * shared < bound <= shared * (1.05 if pieces == 1.0 else 1.5)  # by its longest path a little more
    choose = random.Random(5)
    for _ in range(6):
        some = choose.sample(strips, choose.randint(0, len(strips)))
        first = {s.name: choose.choice(range(step_of(s), s.units, step_of(s))) for s in some}
        graph = whole.recut("; ".join(f"{s.name}: {first[s.name]},{s.units - first[s.name]}" for s in some) or None).graph
        mt.piece_times(graph, known)
        assert moirai.place(moirai.Problem(graph, two(), congestion="none"), effort=0.001, threads=1).makespan_ns >= bound
    whole.strips[:] = []
    alone = mt.all_cuts_bound(whole, two(), measured=[whole.graph], congestion="none")
    assert bound <= alone <= moirai.place(moirai.Problem(whole.graph, two(), congestion="none"), "heft").makespan_ns


@pytest.mark.parametrize("fuse", ["none", "inductor"])
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_no_cut_of_a_chain_is_shorter_than_its_longest_path(name, fuse):
    """Operators take some time however small they are: a chain has no work to share out."""
    whole = mt.capture(*networks.make(name), fuse=fuse).recut(None, quick=True)
    strips = [s for s in whole.strips if s.kind in ("attention", "mlp", "linear")]
    halves = whole.recut("; ".join(f"{s.name}: {s.units // 2},{s.units - s.units // 2}" for s in strips), quick=True)
    for graph in (whole.graph, halves.graph):
        for device, factor in (("A", 1), ("B", 2)):
            graph.set_times(device, {op.name: 300 + factor * op.flops // 10 for op in graph.ops})
    known, options = [whole.graph, halves.graph], {"congestion": "none"}
    bound = mt.all_cuts_bound(whole, two(), measured=known, **options)
    alone = sum(op.time_ns["A"] for op in whole.graph.ops)
    assert 0.4 * alone < bound <= alone
    assert bound < mt.all_cuts_bound(whole, two(), measured=known, meeting_ns=100_000, **options) <= alone
    choose, least = random.Random(7), alone
    for k in range(8):
        some = choose.sample(strips, choose.randint(0, len(strips))) if k else strips
        first = {s.name: choose.choice(range(step_of(s), s.units, step_of(s))) for s in some}
        how = choose.choice(["", " every"])
        graph = whole.recut("; ".join(f"{s.name}: {first[s.name]},{s.units - first[s.name]}{how}" for s in some) or None, quick=True).graph
        mt.piece_times(graph, known)
        least = min(least, moirai.place(moirai.Problem(graph, two(), **options), effort=0.001, threads=1).makespan_ns)
        assert least >= bound
    assert least < alone  # some cut pays, so that this says something


class Opaque(torch.nn.Module):
    """Attention that has heads to cut by, but no strip: its keys are read outside, too."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = torch.nn.Linear(64, 192), torch.nn.Linear(64, 64)

    def forward(self, x):
        q, k, v = (p.unflatten(-1, (4, 16)).transpose(1, 2) for p in self.qkv(x).chunk(3, -1))
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).flatten(2)), k.mean()


def test_the_bound_of_all_cuts_holds_for_heads_that_no_strip_has():
    whole = mt.capture(Opaque().eval(), (torch.randn(1, 256, 64),))
    assert not any(s.kind == "attention" for s in whole.strips) and any(s.kind == "heads" for s in whole.strips)
    cut = whole.recut("*heads: 2").graph
    for graph in (whole.graph, cut):
        for device in "AB":
            graph.set_times(device, [1000 + op.flops // 100 for op in graph.ops])
    bound = mt.all_cuts_bound(whole, two(), measured=[whole.graph], congestion="none")
    plan = moirai.place(moirai.Problem(cut, two(), congestion="none"), effort=0.01, threads=1)
    assert 0 < bound <= plan.makespan_ns < sum(op.time_ns["A"] for op in whole.graph.ops)


def test_the_bound_of_all_cuts_knows_of_strips_that_are_small():
    layers = [torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 512), torch.nn.Softmax(-1)]
    layers += [torch.nn.Linear(512, 32), torch.nn.Tanh(), torch.nn.Linear(32, 32), torch.nn.Softmax(-1)]
    whole = mt.capture(torch.nn.Sequential(*layers).eval(), (torch.randn(4, 512),))
    for device in "AB":  # what computes little takes long
        whole.graph.set_times(device, [10**6 if op.flops > 10**6 else 3 * 10**6 for op in whole.graph.ops])
    small = [s.name for s in whole.strips if s.kind == "mlp"][1]
    plan = mt.plan(whole, two(), split_operators=f"{small}: 16,16", effort=0.01, problem={"congestion": "none"})
    assert mt.all_cuts_bound(whole, two(), congestion="none") <= plan.makespan_ns


@pytest.mark.parametrize(
    "given", [{"meeting_ns": float("nan")}, {"meeting_ns": -1}, {"meeting_ns": "x"}, {"measured": [mt.capture(*networks.make("vit")).graph]}]
)
def test_the_bound_of_all_cuts_refuses_what_it_does_not_know(given):
    with pytest.raises(moirai.UsageError, match="^all_cuts_bound: "):
        mt.all_cuts_bound(mt.capture(*networks.make("gpt2")), two(), **given)


def test_cuts_are_chosen_by_measured_times_and_none_where_none_pays():
    module, args = networks.make("gpt2")
    whole = mt.capture(module, args)
    whole.strips[:] = [s for s in whole.strips if s.kind not in ("tokens", "batch")]  # tests of their own look at those
    for device, factor in (("A", 1), ("B", 2)):
        whole.graph.set_times(device, {op.name: factor * (op.flops + 1) * 100 for op in whole.graph.ops})
    found = mt.choose(whole, two())
    assert found.cut and found.cut_ns < 0.9 * found.whole_ns
    assert "0/mlp: 64,32" in found.cut and "0/attention: 3,1" in found.cut  # by speed
    assert len(found.finalists) == 2 and "0/mlp: 64,32;" in found.finalists[0]  # two devices: nothing in more pieces
    assert "0/mlp: 64,32 every" in found.finalists[1]
    plan = mt.plan(whole, two(), split_operators="auto", effort=0.01)
    assert plan.cut == found.cut and plan.captured.cuts == plan.cut and len(set(plan.placement.values())) == 2
    assert torch.allclose(mt.whole(plan.captured, args), module(*args), atol=2e-5)
    # Where pieces were measured to take as long as the whole, no cut pays.
    cut = whole.recut(found.cut)
    for device, factor in (("A", 1), ("B", 2)):
        slow = {op.name: factor * max(whole.graph.ops, key=lambda o: o.flops).flops * 100 for op in cut.graph.ops}
        cut.graph.set_times(device, slow)
    assert mt.choose(whole, two(), measured=[whole.graph, cut.graph]).cut == ""


def test_sizes_of_pieces_are_looked_at_in_all_layers_and_classes_at_once(monkeypatch):
    whole = mt.capture(*networks.make("llama"))
    for device, factor in (("A", 1), ("B", 2)):
        whole.graph.set_times(device, {op.name: factor * (op.flops + 1) * 100 for op in whole.graph.ops})
    chooser = _Chooser(whole, two(), {}, {"seed": 1, "threads": 1}, [], 0)
    assert len(chooser.order) > 1 and any(len(chooser.classes[k]) > 1 for k in chooser.order)
    made, again = [], whole.again
    monkeypatch.setattr(whole, "again", lambda cuts, quick: made.append(cuts) or again(cuts, quick))
    at_once, few = chooser.piece_ns(), len(made)
    assert set(at_once) == set(chooser.order)
    for key in list(chooser.order):  # one class, one layer of it
        chooser.order, chooser.classes[key] = [key], chooser.classes[key][:1]
        assert chooser.piece_ns() == {key: at_once[key]} and set(at_once[key]) == {"A", "B"}
        assert all(0 < a < b for times in at_once[key].values() for a, b in zip(times[1:], times[2:]))
    assert 2 * few < len(made) - few
    chooser.end = 0.0  # no time: no sizes, and no cut by them
    assert chooser.piece_ns() == {}


def test_a_plan_of_pieces_runs_on_ranks_as_the_module_does(cpu_workers, cpu_cluster):
    module, args = networks.make("llama")
    whole = mt.capture(module, args)
    plan = mt.plan(whole, cpu_cluster, split_operators="*attention: 2; *mlp: 1:2", effort=0.01, placer="m-etf")
    assert any("(1 of 2, 24 of 72 columns)" in name for name in plan.placement)
    with mt.distribute(plan.captured, plan, workers=cpu_workers, verify=module) as run:
        assert torch.allclose(run(*args), module(*args), atol=2e-5)


def test_sizes_balance_by_the_times_of_all_sizes():
    """Ten steps: B is half as fast in large pieces and far slower in small ones; tiles of two."""
    a, b = [0, 20, 20, 40, 40, 60, 60, 80, 80, 100, 100], [0, 90, 90, 90, 100, 100, 110, 110, 120, 120, 130]
    found = balanced([a, b], [0, 0], 10)
    assert sum(found) == 10 and max(a[found[0]], b[found[1]]) == min(max(a[10 - n], b[n]) for n in range(1, 10))
    assert balanced([a, b], [0, 50], 10) == [10, 0]  # a message makes the second one too late
    assert balanced([a[:3], b[:3]], [0, 0], 10) == []  # all of them together can't


def test_samples_are_cuts_of_many_sizes():
    whole = mt.capture(*networks.make("gpt2"))
    made = [whole.recut(cut) for cut in samples(s for s in whole.strips if s.kind not in ("heads", "tokens"))]
    sizes = {op.name.split(", ")[-1] for c in made for op in c.graph.ops if " of " in op.name and "columns" in op.name}
    assert len(made) >= 2 and len(sizes) >= 4


def test_tune_runs_the_cuts_that_are_worth_it_and_keeps_the_fastest(cpu_workers, tmp_path, monkeypatch):
    tuning, contest = (sys.modules[f"moirai.torch.{m}"] for m in ("tune", "contest"))
    cuts = ("0/mlp: 48,48", "0/mlp: 32,32,32")
    monkeypatch.setattr(contest, "choose", lambda *_, **__: mt.CutChoice(cuts[0], 10, 5, 2, cuts))
    for module, name, value in ((tuning, "_HOPELESS", 1e9), (contest, "_NEAR", 1e9), (contest, "one_device", lambda _: False)):
        monkeypatch.setattr(module, name, value)  # all of them are run
    said = []
    module, args = networks.make("gpt2")
    found = mt.tune(module, args, workers=cpu_workers, probed=cpu_workers.cluster, cuts=("auto",), fuse=("none",), rounds=0,
                    placers=("heft",), time_limit=0.2, runs=3, passes=1, cache=tmp_path, say=said.append)  # fmt: skip
    first = {t.captured.cuts: t.latency_ns[0] for t in reversed(found.trials) if t.captured.cuts}
    assert set(first) == set(cuts)
    assert f"cut: {min(first, key=first.get)}" in said
