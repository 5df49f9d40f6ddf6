"""Captured modules cut by tokens compute what they do whole."""

from __future__ import annotations

import random

import pytest
from conftest import links, need

torch = need("torch")
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import cut_networks as networks  # noqa: E402

import moirai  # noqa: E402
import moirai.torch as mt  # noqa: E402
from moirai.torch.cut_sizes import even_sizes  # noqa: E402


class Layer(nn.Module):
    def __init__(self, d: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal, self.norm = heads, causal, nn.LayerNorm(d)
        self.kv = nn.Linear(d, 2 * d)  # of what another network has made
        self.qkv, self.out, self.up, self.down = nn.Linear(d, 3 * d), nn.Linear(d, d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x, memory=None):
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        if memory is not None:
            k, v = self.kv(memory).chunk(2, -1)
        q, k, v = (p.unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in (q, k, v))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=self.causal).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(x)))


class Both(nn.Module):
    """An encoder of 16 tokens and a causal decoder of 12 that reads it; a mean over tokens, which needs all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 32)
        self.encoder, self.decoder, self.cross = Layer(32, 4, False), Layer(32, 4, True), Layer(32, 4, False)
        self.head = nn.Linear(32, 5)

    def forward(self, x, words):
        memory = self.encoder(x)
        y = self.cross(self.decoder(self.words(words)), memory)
        return y, self.head(memory.mean(1))


def both(batch):
    torch.manual_seed(1)
    return Both().eval(), (torch.randn(batch, 16, 32), torch.randint(0, 50, (batch, 12)))


@pytest.mark.parametrize("batch", [1, 3])
def test_an_encoder_and_a_causal_decoder_are_cut_by_their_own_tokens(batch):
    module, args = both(batch)
    with torch.no_grad():
        expected = module(*args)
    whole = mt.capture(module, args)
    strips = {s.name: s.units for s in whole.strips if s.kind == "tokens"}
    assert strips == {"sequence1/tokens": 16, "sequence2/tokens": 12}
    pick = random.Random(batch)
    for cut in ("*tokens: 3:2", "sequence1/tokens: 9,4,3", "sequence2/tokens: 1,5,6", f"*tokens: {pick.randint(1, 3)}:1:2:2"):
        made = whole.recut(cut)
        assert not any(op.name.endswith("sum)") for op in made.graph.ops)  # nothing is added up
        for a, b in zip(mt.whole(made, args), expected):
            assert a.shape == b.shape and torch.allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("name", networks.NAMES)
def test_networks_cut_by_tokens_compute_what_they_do_whole(name):
    module, args = networks.make(name)
    with torch.no_grad():
        expected = module(*args)
    whole = mt.capture(module, args)
    assert any(s.kind == "tokens" for s in whole.strips)
    for cut in ("*tokens: 1:1", "*tokens: 4:2:1"):
        made = whole.recut(cut)
        assert len(made.graph) > len(whole.graph)
        assert torch.allclose(mt.whole(made, args), expected, atol=2e-5, rtol=1e-4)
    assert len(whole.recut("*mlp: 2").graph) < len(whole.recut("*tokens: 2").graph)  # patterns leave tokens out


def test_pieces_have_whole_weights_and_their_tokens_of_the_arithmetic():
    module, args = both(1)
    whole = mt.capture(module, args)
    ops = {op.name: op for op in whole.recut("sequence1/tokens: 12,4").graph.ops}
    of = {op.name: op for op in whole.graph.ops}["encoder.up"]
    for k, n in ((1, 12), (2, 4)):
        piece = ops[f"encoder.up ({k} of 2, {n} of 16 tokens)"]
        assert piece.weight_bytes == of.weight_bytes and piece.flops * 16 == of.flops * n


def test_products_of_a_piece_of_tokens_that_read_the_same_are_one():
    module, args = networks.make("llama")
    whole = mt.capture(module, args)
    cut = whole.recut("*tokens: 2:1")
    ops = {op.name: op for op in cut.graph.ops}
    before = {op.name: op for op in whole.graph.ops}
    units = next(s.units for s in whole.strips if s.kind == "tokens")
    for names in (("0.q_proj", "0.k_proj", "0.v_proj"), ("0.gate", "0.up")):
        one = f"{names[0]}+{'+'.join(n.rpartition('.')[2] for n in names[1:])}"
        parts = [op for name, op in ops.items() if name.startswith(f"{one} (") and "tokens" in name]
        assert len(parts) == 2 and sum(op.flops for op in parts) == sum(before[n].flops for n in names), (units, list(ops))
        assert all(op.weight_bytes == sum(before[n].weight_bytes for n in names) for op in parts)
    with torch.no_grad():
        assert torch.allclose(mt.whole(cut, args), module(*args), atol=2e-5)


def test_a_causal_piece_reads_no_token_behind_it():
    module, args = both(1)
    made = mt.capture(module, args, cuts="sequence2/tokens: 4,4,4")
    first = next(op for op in made.graph.ops if op.name == "decoder/scaled_dot_product_attention (1 of 3, 4 of 12 tokens)")
    assert not any("2 of 3" in x or "3 of 3" in x or "joined" in x for x in first.inputs)


@pytest.mark.parametrize(
    "cut, why",
    [("*tokens: 5,5", "add up to 10 tokens, it has"), ("*tokens: 3:2; *mlp: 2", "no other cut goes with it"),
     ("sequence9/tokens: 2", "no strip of that name")],
)  # fmt: skip
def test_bad_cuts_by_tokens_are_refused_in_one_line(cut, why):
    module, args = both(1)
    with pytest.raises(moirai.UsageError, match=why) as error:
        mt.capture(module, args, cuts=cut)
    assert "\n" not in str(error.value)


def test_sizes_are_those_with_which_devices_end_at_the_same_time():
    """A has twice the speed of B for pieces of any size but the smallest, which take as long as twice their size."""
    module, args = both(1)
    whole = mt.capture(module, args)
    strip = next(s for s in whole.strips if s.name == "sequence1/tokens")
    graphs = [whole.recut(f"sequence1/tokens: {sizes}").graph for sizes in ("8,6,2", "12,4")]
    assert even_sizes(strip, ["A", "B"], []) == even_sizes(strip, ["A", "B"], graphs[:0]) == []
    for graph in graphs:
        for d, slow in (("A", 1), ("B", 2)):
            size = {op.name: int(op.name.split(", ")[1].split(" of")[0]) for op in graph.ops if " of 16 tokens)" in op.name}
            graph.set_times(d, {n: 1000 * slow * max(k, 4) for n, k in size.items()})
    assert even_sizes(strip, ["A", "B"], graphs) == [11, 5]


def test_tokens_are_among_the_cuts_that_are_worth_a_run_and_run_over_two_ranks():
    module, args = both(1)
    whole = mt.capture(module, args)
    for d in "AB":
        times = {op.name: op.flops * 10 if op.type in ("linear", "scaled_dot_product_attention") else 1000 for op in whole.graph.ops}
        whole.graph.set_times(d, times)
    devices = [{"name": d, "type": "cpu", "memory": "1GB"} for d in "AB"]
    cluster = {"name": "two", "devices": devices, "links": links("AB")}
    found = mt.choose(whole, cluster)
    cut = next(c for c in found.finalists if "tokens" in c)
    assert found.cut_ns < 0.85 * found.whole_ns and any("mlp" in c for c in found.finalists)
    made = whole.recut(cut)
    mt.piece_times(made.graph, [whole.graph])
    plan = moirai.place(moirai.Problem(made.graph, cluster), "heft")
    with mt.distribute(made, plan, cluster=cluster, verify=module) as run:
        run(*args)
