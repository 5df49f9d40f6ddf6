"""Calls that are one kernel: what is made of a scheduler's words, and of none."""

from __future__ import annotations

import pytest
from conftest import need

torch = need("torch")

from small_networks import Branches, tiny_gpt  # noqa: E402
from torch import nn  # noqa: E402

import moirai.torch as mt  # noqa: E402
from moirai.torch import inductor  # noqa: E402
from moirai.torch.capture import Captured  # noqa: E402
from moirai.torch.groups import Calls, Kernels, acyclic, by_rules, calls_of, check, from_kernels  # noqa: E402
from moirai.torch.ir import OP, Node, Ref  # noqa: E402


def calls(results, **reads):
    return Calls(list(reads), {c: set(r.split()) for c, r in reads.items()}, set(results.split()))


def kernels(*found, **holds):
    """Kernels as lists of (written, read)."""
    return Kernels([[(w.split(), set(r.split())) for w, r in k] for k in found], holds)


def test_what_no_kernel_writes_belongs_to_its_reader():
    c = calls("d", a="", b="a", c="b", d="c")
    assert from_kernels(c, kernels([("x", "")], [("y", "x")], x="a", y="d")) == [["a"], ["b", "c", "d"]]


def test_kernels_that_hand_on_what_is_no_value_are_one():
    c = calls("b", a="", b="a")
    assert from_kernels(c, kernels([("x", "")], [("s", "x")], [("y", "x s")], x="a", y="b")) == [["a"], ["b"]]
    assert from_kernels(c, kernels([("x", "")], [("y", "x")], y="b")) == [["a", "b"]]


def test_copies_of_a_view_make_no_group_of_their_readers():
    c = calls("b c", a="", b="a", c="a")
    found = kernels([("x", "")], [("v", "x")], [("y", "v")], [("z", "v")], x="a", v=None, y="b", z="c")
    assert from_kernels(c, found) == [["a"], ["b"], ["c"]]


def test_siblings_are_one_only_if_nobody_waits_for_more():
    c = calls("p q", a="", b="", p="a", q="b")
    apart = from_kernels(c, kernels([("x", "")], [("y", "")], [("u", "x"), ("v", "y")], x="a", y="b", u="p", v="q"))
    assert sorted(apart) == [["a"], ["b"], ["p"], ["q"]]
    c = calls("p q", a="", p="a", q="a p")
    assert from_kernels(c, kernels([("x", "")], [("u v", "x")], x="a", u="p", v="q")) == [["a"], ["p", "q"]]


def test_repeated_calls_are_computed_once():
    after = calls("q", a="", r="a", p="r", q="r p")  # both compute r, and q comes after p anyway
    assert from_kernels(after, kernels([("x", "")], [("y", "x")], [("z", "x y")], x="a", y="p", z="q")) == [
        ["a"], ["r", "p"], ["q"],
    ]  # fmt: skip
    side = calls("p q", a="", r="a", p="r", q="r")  # neither comes first: with what r reads
    assert from_kernels(side, kernels([("x", "")], [("y", "x")], [("z", "x")], x="a", y="p", z="q")) == [
        ["a", "r"], ["p"], ["q"],
    ]  # fmt: skip
    two = calls("p q", a="", b="", r="a b", p="r", q="r")  # of two makers it is nobody's
    found = kernels([("x", "")], [("w", "")], [("y", "x w")], [("z", "x w")], x="a", w="b", y="p", z="q")
    assert sorted(from_kernels(two, found)) == [["a"], ["b"], ["p"], ["q"], ["r"]]


def test_groups_in_a_circle_are_taken_apart():
    c = calls("d e", a="", b="a", c="b", d="c a", e="d")
    assert acyclic(c, [["a", "d"], ["b", "c"], ["e"]]) == [["a"], ["b"], ["c"], ["d"], ["e"]]
    assert check(c, [["a"], ["b", "c"], ["d"], ["e"]]) == ""
    assert "two groups" in check(c, [["a"], ["a", "b"]])
    assert "comes later" in check(c, [["b"], ["a"]])
    assert check(c, [["a"], ["b", "c"]]) == "'d' is in no group"


def test_rules_of_our_own():
    nodes, kinds = {}, {"a": "linear", "b": "relu", "c": "mul", "d": "linear", "e": "relu", "f": "neg", "g": "exp"}
    c = calls("f g", a="", b="a", c="b", d="c", e="d", f="e", g="e")
    for name, kind in kinds.items():
        args = tuple(Ref(r) for r in c.reads[name])
        nodes[name] = Node(name, OP, f"aten.{kind}.default", args)
    assert by_rules(c, nodes) == [["a"], ["b", "c"], ["d"], ["e", "f", "g"]]


NETS = {"branches": Branches, "gpt": tiny_gpt}


@pytest.fixture(scope="module")
def grouped(tmp_path_factory):
    found = {}

    def get(name):
        if name not in found:
            torch.manual_seed(2)
            module, args = NETS[name]() if name == "gpt" else (Branches().eval(), (torch.randn(1, 3, 16, 16),))
            folder = tmp_path_factory.mktemp(name)
            found[name] = (module, args, mt.capture(module, args, fuse="inductor", cache=folder), folder)
        return found[name]

    return get


def all_calls(captured: Captured) -> Calls:
    base = {n: captured.path_to(n)[0] for n in captured.nodes}
    return calls_of(captured.nodes, base, [r.name for r in captured.out_leaves if isinstance(r, Ref)])


@pytest.mark.parametrize("name", NETS)
def test_inductor_s_groups_have_every_call_once(name, grouped):
    module, args, captured, _ = grouped(name)
    assert captured.grouped_by == "inductor"
    assert check(all_calls(captured), [list(g) for g in captured.ops.values()]) == ""
    plain = mt.capture(module, args)
    assert len(captured.graph) < len(plain.graph)
    assert sum(len(g) for g in captured.ops.values()) == len(plain.graph)
    assert sum(op.flops for op in captured.graph.ops) == sum(op.flops for op in plain.graph.ops)
    assert sum(op.traffic_bytes for op in captured.graph.ops) < sum(op.traffic_bytes for op in plain.graph.ops)
    assert all(len(op.members) == len(captured.ops[op.name]) for op in captured.graph.ops if "+" in op.type)


def test_a_layer_of_a_transformer_is_as_in_a_textbook(grouped):
    _, _, captured, _ = grouped("gpt")
    types = [op.type for op in captured.graph.ops]
    layer = ["linear"] * 3 + ["scaled_dot_product_attention", "linear", "add+layer_norm", "linear", "gelu", "linear"]
    assert types == ["embedding+layer_norm", *layer, "add+layer_norm", *layer, "add+layer_norm", "linear"]


def test_sums_of_branches_are_kernels_with_their_activations(grouped):
    _, _, captured, _ = grouped("branches")
    types = [op.type for op in captured.graph.ops]
    assert "add+relu" in types and any(t.startswith("upsample_nearest2d+add+relu") for t in types)


def refuses(*_):
    raise ValueError("not today\nnor tomorrow")


def test_groups_are_kept(grouped, monkeypatch):
    module, args, captured, folder = grouped("gpt")
    monkeypatch.setattr(inductor, "kernels_of", refuses)
    again = mt.capture(module, args, fuse="inductor", cache=folder)
    assert again.grouped_by == "inductor" and again.ops == captured.ops


def test_without_inductor_rules_of_our_own_do(grouped, monkeypatch):
    module, args, captured, folder = grouped("gpt")
    torch.set_float32_matmul_precision("high")  # other flags: nothing is kept under these
    try:
        monkeypatch.setattr(inductor, "kernels_of", refuses)
        ours = mt.capture(module, args, fuse="inductor", cache=folder)
    finally:
        torch.set_float32_matmul_precision("highest")
    assert ours.grouped_by == "no groups from Inductor: ValueError: not today"
    assert check(all_calls(ours), [list(g) for g in ours.ops.values()]) == ""
    assert len(captured.graph) <= len(ours.graph) < len(mt.capture(module, args).graph)


def test_biases_of_a_gpu_s_convolutions_are_in_the_kernel_behind_them(monkeypatch):
    monkeypatch.setattr(inductor, "kernels_of", refuses)
    module, x = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()).eval(), torch.randn(1, 3, 9, 9)
    captured = mt.capture(module, (x,), fuse="inductor", fuse_for="cuda", cache=None)
    assert [op.type for op in captured.graph.ops] == ["conv2d", "add+relu"]
    with torch.no_grad():
        assert torch.allclose(mt.whole(captured, (x,)), module(x), atol=1e-6)


class Residual(nn.Module):
    """The first product's result is read by a norm, the second one's by a sum, through a view."""

    def __init__(self):
        super().__init__()
        self.up, self.first, self.down, self.second = nn.Linear(8, 16), nn.LayerNorm(16), nn.Linear(16, 8), nn.LayerNorm(8)

    def forward(self, x):
        y = self.first(self.up(x))
        return self.second(x + self.down(y.flatten(0, 1)).view(x.shape))


def test_a_product_does_not_wait_for_what_its_bias_is_added_to(monkeypatch):
    """A GPU's compiler adds the bias with the residual: the product alone is an operator."""
    monkeypatch.setattr(inductor, "kernels_of", refuses)
    module, x = Residual().eval(), torch.randn(2, 3, 8)
    captured = mt.capture(module, (x,), fuse="inductor", fuse_for="cuda", cache=None)
    made = {op.name: op for op in captured.graph.ops}
    products = [op for op in made.values() if "linear" in op.type]
    assert [(op.name, op.type) for op in products] == [("up", "linear"), ("down", "linear")]
    assert products[0].weight_bytes == 4 * (8 * 16 + 16) and products[1].weight_bytes == 4 * 8 * 16
    assert any("down (bias)" in (op.members or (op.name,)) for op in made.values())
    with torch.no_grad():
        assert torch.allclose(mt.whole(captured, (x,)), module(x), atol=1e-6)


def test_pieces_of_products_do_not_wait_for_each_other(monkeypatch):
    monkeypatch.setattr(inductor, "kernels_of", refuses)
    module, args = tiny_gpt()
    cut = mt.capture(module, args, fuse="inductor", fuse_for="cuda", cache=None, cuts="*attention: 1:1; *mlp: 1:1")
    pieces = {op.name: op for op in cut.graph.ops if " of 2, " in op.name and op.name.split()[0].endswith((".o", ".down"))}
    assert len(pieces) == 8 and all(op.type == "linear" for op in pieces.values())
    for name, op in pieces.items():  # none has the bias: that is with the sum, in whose kernel a compiler adds it
        assert op.weight_bytes == 4 * 16 * (8 if ".o " in name else 16)
    sums = [m for op in cut.graph.ops for m in op.members if "(bias)" in m and (".o " in m or ".down " in m)]
    assert len(sums) == 4
    with torch.no_grad():
        assert torch.allclose(mt.whole(cut, args), module(*args), atol=1e-5)
