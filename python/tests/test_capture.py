"""Modules as graphs."""

from __future__ import annotations

import warnings

import pytest
from conftest import need

torch = need("torch")

import networks  # noqa: E402
from torch import nn  # noqa: E402

import moirai  # noqa: E402
import moirai.torch as mt  # noqa: E402
from moirai.torch.ir import ALIAS, CONST, OP  # noqa: E402
from moirai.torch.verify import compare  # noqa: E402

ALL = list(networks.NETWORKS)


@pytest.mark.parametrize("name", ALL)
def test_capture_computes_what_the_module_computes(name, captured):
    module, args, network = captured(name)
    with torch.no_grad():
        expected = module(*args)
        other = module(*(torch.roll(a, 1, -1) if a.is_floating_point() else (a + 1) % 7 for a in args))
    assert torch.allclose(mt.whole(network, args), expected, atol=1e-5 * float(expected.abs().max()), rtol=1e-4)
    assert not torch.allclose(other, expected, rtol=1e-2, atol=0)  # its result says something of its input
    graph = network.graph
    assert graph.name == name and len(graph) == sum(n.kind == OP for n in network.nodes.values())
    assert all(op.flops is not None and op.traffic_bytes > 0 for op in graph.ops)


class OneMask(nn.Module):
    """Three operators read one mask, one of them a view of it; a device that runs all holds it once."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.randn(32, 32))
        self.first, self.second = nn.Linear(32, 32), nn.Linear(32, 32)

    def forward(self, x):
        y = self.first(x) + self.mask
        return self.second(y) * self.mask[None] + y @ self.mask


def test_a_weight_that_several_operators_read_counts_once():
    module, args = OneMask().eval(), (torch.randn(32, 32),)
    captured = mt.capture(module, args)
    held = 4 * (2 * (32 * 32 + 32) + 32 * 32)
    readers = [op for op in captured.graph.ops if op.shared_weights]
    assert len(readers) == 3 and {w for op in readers for w in op.shared_weights} == {moirai.Tensor("mask", 4 * 32 * 32)}
    assert captured.graph.stats()["weight_bytes"] == held
    cluster = moirai.Cluster.open({"name": "one", "devices": [{"name": "a", "type": "cpu", "memory": f"{held}B"}]})
    plan = moirai.place(moirai.Problem(captured.graph, cluster), "single")
    assert plan.peak_bytes["a"] == held + 3 * 4 * 32 * 32  # and three tensors that live at once


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 12)
        self.second = nn.Linear(12, 8)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


def test_names_lead_back_to_the_module_and_numbers_are_right():
    captured = mt.capture(Small().eval(), (torch.randn(4, 8),))
    ops = {op.name: op for op in captured.graph.ops}
    assert list(ops) == ["first", "relu", "second"]
    assert ops["first"].weight_bytes == (8 * 12 + 12) * 4
    assert ops["first"].flops == 2 * 4 * 8 * 12 + 4 * 12
    assert ops["first"].outputs[0].bytes == 4 * 12 * 4
    assert ops["first"].traffic_bytes == 4 * (4 * 8 + 8 * 12 + 12 + 4 * 12)
    assert ops["second"].inputs[0] == "relu" and "second.weight" in ops["second"].inputs


class Views(nn.Module):
    def __init__(self):
        super().__init__()
        self.big, self.tail = nn.Linear(4, 40), nn.Linear(10, 2)

    def forward(self, x):
        y = self.big(x)
        part = y.view(x.shape[0], 4, 10)[:, 1]
        wide = self.tail(part).unsqueeze(1).expand(-1, 5, -1)
        return (wide + 1) * 2, y.transpose(0, 1)


def test_views_are_free_and_the_least_travels():
    captured = mt.capture(Views().eval(), (torch.randn(3, 4),))
    ops = {op.name: op for op in captured.graph.ops}
    assert [op.type for op in ops.values()] == ["linear", "linear", "add", "mul"]
    sent = {t.name: t.bytes for t in ops["big"].outputs}
    assert sorted(sent.values()) == [3 * 10 * 4, 3 * 40 * 4]  # the slice that tail reads, and the whole, a result
    assert [t.bytes for t in ops["tail"].outputs] == [3 * 2 * 4]  # not what it is expanded to


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 6)

    def forward(self, tokens):
        return self.words(tokens) @ self.words.weight.t()


def test_shared_weights_count_for_each_reader_and_are_one():
    captured = mt.capture(Tied().eval(), (torch.tensor([[1, 2, 3]]),))
    assert [op.weight_bytes for op in captured.graph.ops] == [20 * 6 * 4] * 2
    assert len(captured.weights) == 1


class Masked(nn.Module):
    def forward(self, x):
        mask = torch.full((6, 6), float("-inf")).triu(1)
        return torch.softmax(x @ x.transpose(-1, -2) + mask, -1)


def test_what_depends_on_no_input_is_a_constant():
    captured = mt.capture(Masked().eval(), (torch.randn(2, 6, 3),))
    kinds = [n.kind for n in captured.nodes.values()]
    assert kinds.count(CONST) >= 2 and [op.type for op in captured.graph.ops] == ["matmul", "add", "softmax"]


class InPlace(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.ReLU(inplace=True)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        y = x * 2
        y += 1
        return self.drop(self.act(y))


def test_in_place_becomes_values_and_dropout_disappears():
    module, x = InPlace().eval(), torch.randn(5)
    captured = mt.capture(module, (x,))
    assert [op.type for op in captured.graph.ops] == ["mul", "add", "relu"]
    assert torch.equal(mt.whole(captured, (x,)), module(x))


@pytest.mark.parametrize("heads", [True, 2])
def test_heads_are_taken_apart_with_their_projections(heads):
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(24, 4, 48, batch_first=True).eval()
    x = torch.randn(2, 5, 24)
    plain, apart = mt.capture(layer, (x,)), mt.capture(layer, (x,), heads=heads)
    groups = 4 if heads is True else 2
    types = [op.type for op in apart.graph.ops]
    assert types.count("scaled_dot_product_attention") == groups
    assert types.count("linear") == [op.type for op in plain.graph.ops].count("linear") - 1 + 3 * groups
    weights = [op.weight_bytes for op in apart.graph.ops if op.type == "linear"]
    assert sum(weights) == sum(op.weight_bytes for op in plain.graph.ops if op.type == "linear")
    with torch.no_grad():
        torch.backends.mha.set_fastpath_enabled(False)
        assert torch.allclose(mt.whole(apart, (x,)), layer(x), atol=1e-5)
        torch.backends.mha.set_fastpath_enabled(True)


def test_core_aten_is_finer():
    module, args = networks.make("gpt2", small=True)
    assert len(mt.capture(module, args, core=True).graph) > len(mt.capture(module, args).graph)


class Branches(nn.Module):
    def forward(self, x):
        return x + 1 if float(x.sum()) > 0 else x


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        self.seen += 1
        return x * self.seen


def test_what_can_t_be_captured_says_why_in_one_line():
    for module, words in ((Branches(), "can't be exported"), (Counts(), "seen"), (Small(), "training mode")):
        if words != "training mode":
            module.eval()
        with pytest.raises(mt.CaptureError, match=words) as found:
            mt.capture(module, (torch.randn(4, 8),))
        assert "\n" not in str(found.value)


class Autocast(nn.Module):
    """In half precision on the way, with a result in float32."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.layers = nn.Sequential(*(nn.Linear(64, 64) for _ in range(6)))
        for layer in self.layers:
            nn.init.orthogonal_(layer.weight)  # so that numbers stay as large as they were

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.layers(x).float()


def test_autocast_is_captured_as_the_casts_that_it_makes():
    x = torch.randn(4, 64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        captured = mt.capture(Autocast().eval(), (x,))
    assert [n.meta.dtype for n in captured.nodes.values() if n.kind == OP].count(torch.bfloat16) > 6


class Shifted(torch.nn.Module):
    """Gives what it was told, whatever it is asked."""

    def __init__(self, result):
        super().__init__()
        self.result = result

    def forward(self, x):
        return self.result


def test_results_are_compared_by_the_least_precision_on_the_way():
    x = torch.randn(4, 64)
    captured = mt.capture(Autocast().eval(), (x,))
    expected = mt.whole(captured, (x,))
    rounded = expected + 4e-3 * expected.abs().max()  # of bfloat16, whose numbers are 2^-8 apart
    compare(captured, True, rounded, (x,), {})
    with pytest.raises(moirai.VerifyError, match="result 0 is off"):
        compare(captured, True, expected + 4e-2 * expected.abs().max(), (x,), {})
    # Farther, but no farther from float32 than the whole itself is: right; elsewhere: wrong.
    right = mt.whole(captured, (x,), single=True)
    far = expected - right
    far = far / far.abs().max() * 2e-2 * expected.abs().max()
    compare(captured, Shifted(right + far), right - far, (x,), {})
    with pytest.raises(moirai.VerifyError, match="result 0 is off"):
        compare(captured, Shifted(right + far / 8), right - far, (x,), {})
    single = mt.capture(Autocast().layers.eval(), (x,))
    with pytest.raises(moirai.VerifyError, match="result 0 is off"):
        compare(single, True, mt.whole(single, (x,)) + 4e-3, (x,), {})


class Nested(nn.Module):
    def forward(self, x, *, scale, more):
        return {"y": x * scale, "z": [more["a"] + 1, 7]}


def test_arguments_and_results_keep_their_layout():
    args, kwargs = (torch.randn(3),), {"scale": 2.5, "more": {"a": torch.randn(2)}}
    captured = mt.capture(Nested().eval(), args, kwargs)
    got = mt.whole(captured, args, kwargs)
    assert set(got) == {"y", "z"} and got["z"][1] == 7 and torch.equal(got["y"], args[0] * 2.5)
    assert sum(n.kind == ALIAS for n in captured.nodes.values()) == 0


@pytest.mark.parametrize("given", [{"heads": -1}, {"heads": "a"}, {"heads": 1.5}])
def test_heads_that_are_no_number_are_refused(given):
    with pytest.raises(moirai.UsageError, match="^heads="):
        mt.capture(torch.nn.Linear(2, 2).eval(), (torch.randn(1, 2),), **given)


def test_what_is_no_module_is_refused():
    with pytest.raises(moirai.UsageError, match="torch.nn.Module is needed, not str"):
        mt.capture("m", (torch.randn(1, 2),))
