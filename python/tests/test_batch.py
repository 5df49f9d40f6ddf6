"""Captured modules whose batch is cut compute what they do whole, and pieces take nothing from each other."""

from __future__ import annotations

import pytest
from conftest import links, need

torch = need("torch")

import networks_compiled  # noqa: E402

import moirai  # noqa: E402
import moirai.torch as mt  # noqa: E402
from moirai.torch.cut_sizes import batch_samples  # noqa: E402


class Classes(torch.nn.Module):
    """A token that all samples share, a mask for each, keys that are cut out of one product; the batch is not the first
    axis in between."""

    def __init__(self, d=16, heads=4):
        super().__init__()
        self.heads, self.qkv, self.out = heads, torch.nn.Linear(d, 3 * d), torch.nn.Linear(d, d)
        self.first = torch.nn.Parameter(torch.randn(1, 1, d))

    def forward(self, x, mask):
        x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1)
        q, k, v = self.qkv(x).reshape(*x.shape[:2], 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
        return self.out(y.transpose(1, 2).flatten(2))[:, 0] + x.mean(1)


def make(name):
    torch.manual_seed(2)
    if name == "layers":
        layers = [networks_compiled.Layer(32, 4) for _ in range(2)]
        return torch.nn.Sequential(*layers, torch.nn.LayerNorm(32)).eval(), (torch.randn(4, 8, 32),)
    if name == "images":
        conv = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
                                   torch.nn.Flatten(), torch.nn.Linear(8 * 9, 5))  # fmt: skip
        return conv.eval(), (torch.randn(4, 3, 8, 8),)
    return Classes().eval(), (torch.randn(4, 7, 16), torch.randn(4, 8) > -1)


@pytest.mark.parametrize("name", ["layers", "images", "classes"])
def test_networks_whose_batch_is_cut_compute_what_they_do_whole(name):
    module, args = make(name)
    whole = mt.capture(module, args)
    (strip,) = [s for s in whole.strips if s.kind == "batch"]
    assert (strip.name, strip.units, strip.unit) == ("network/batch", 4, "samples")
    for cut in ("*batch: 1,3", "*batch: 2:1:1", "network/batch: 4"):
        made = whole.recut(cut)
        with torch.no_grad():
            assert torch.allclose(mt.whole(made, args), module(*args), atol=1e-5)
        pieces = {op.name.split(" (")[1].split(" of ")[0] for op in made.graph.ops if op.name.endswith("samples)")}
        assert len(pieces) == {"*batch: 1,3": 2, "*batch: 2:1:1": 3, "network/batch: 4": 4}[cut]
    heavy = [op for op in whole.recut("*batch: 1,3").graph.ops if "1 of 2, 1 of 4 samples" in op.name and "out" in op.name]
    assert all(op.flops * 4 == whole.graph[op.name.split(" (")[0]].flops for op in heavy)


def test_no_batch_where_samples_are_one_or_differ_and_bad_cuts_are_refused():
    one = mt.capture(torch.nn.Linear(4, 4).eval(), (torch.randn(1, 4),))
    assert not any(s.kind == "batch" for s in one.strips)

    class Mixes(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up = torch.nn.Linear(4, 4)

        def forward(self, x):
            return self.up(torch.cumsum(x, 0))  # of all samples before it

    assert not any(s.kind == "batch" for s in mt.capture(Mixes().eval(), (torch.randn(3, 4),)).strips)
    module, args = make("layers")
    for cut, why in (("*batch: 2,3", "add up to 5 samples, it has 4"), ("*batch: 2; *mlp: 2", "no other cut goes with it"),
                     ("*batch: 2; *tokens: 2", "no other cut goes with it"), ("*batch: 5", "5 pieces, it has 4")):  # fmt: skip
        with pytest.raises(moirai.UsageError, match=why):
            mt.capture(module, args, cuts=cut)


def test_a_batch_is_cut_where_messages_are_dear_and_runs_over_two_ranks():
    module, args = make("layers")
    whole = mt.capture(module, args)
    devices = [{"name": n, "type": "cpu", "memory": "2GB"} for n in "AB"]
    slow = moirai.Cluster.open({"name": "two", "devices": devices, "links": links("AB", "10GB/s", "200us")})
    for device, factor in (("A", 1), ("B", 3)):
        whole.graph.set_times(device, {op.name: factor * (op.flops + 1) * 20 for op in whole.graph.ops})
    found = mt.choose(whole, slow, congestion="none", threads=1)
    assert found.cut == "network/batch: 3,1" and found.cut_ns < 0.85 * found.whole_ns
    assert batch_samples(s for s in whole.strips if s.kind == "batch") == ["network/batch: 1,3", "network/batch: 2,2"]
    plan = mt.plan(whole, slow, split_operators=found.cut, effort=0.01, problem={"congestion": "none"})
    assert len(set(plan.placement.values())) == 2 and len(plan.transfers) <= 2
    with mt.distribute(plan.captured, plan, cluster=slow, verify=module) as run:
        run(*args)
