"""What is done to a network before any compiler: norms folded, one layout, calls that ATen has one kernel for."""

from __future__ import annotations

import pytest
from conftest import need

torch = need("torch")

import torch.nn.functional as F  # noqa: E402
from test_distribute import problem_of  # noqa: E402
from torch import nn  # noqa: E402

import moirai  # noqa: E402
import moirai.torch as mt  # noqa: E402
from moirai.torch import fused  # noqa: E402
from moirai.torch.ir import INPUT, OP, WEIGHT, Meta, Node, Ref, call  # noqa: E402
from moirai.torch.layout import follow  # noqa: E402


class NormAct(nn.BatchNorm2d):
    """A norm and its activation in one module, as some libraries have them."""

    def forward(self, x):
        norm = F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, False, 0.1, self.eps)
        return F.relu(norm)


class Net(nn.Module):
    """Two convolutions whose norms fold, one with a bias, a residual sum, a norm that has another reader before it."""

    def __init__(self, groups=1):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, padding=1, bias=False), NormAct(8)
        self.second, self.plain = nn.Conv2d(8, 8, 3, padding=1, groups=groups), nn.BatchNorm2d(8)
        self.third, self.kept = nn.Conv2d(8, 8, 1, bias=False), nn.BatchNorm2d(8, affine=False)
        self.head = nn.Linear(8, 5)
        for m in self.modules():
            if isinstance(m, nn.BatchNorm2d):
                m.running_mean.normal_()
                m.running_var.uniform_(0.5, 2)
                if m.affine:
                    nn.init.normal_(m.weight), nn.init.normal_(m.bias)

    def forward(self, x):
        a = self.norm(self.first(x))
        b = F.relu(a + self.plain(self.second(a)))
        c = self.third(b)
        return self.head((self.kept(c) + c).mean((2, 3)))


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(4)
    module, x = Net().eval(), torch.randn(2, 3, 16, 16)
    with torch.no_grad():
        return module, x, module(x)


def types(captured):
    return [op.type for op in captured.graph.ops]


def close(captured, x, expected):
    return torch.allclose(mt.whole(captured, (x,)), expected, atol=1e-5 * float(expected.abs().max()), rtol=1e-4)


def test_norms_are_folded_unless_somebody_reads_what_is_before_them(net):
    module, x, expected = net
    plain, folded = mt.capture(module, (x,), fold=False), mt.capture(module, (x,))
    assert types(plain).count("batch_norm") == 3 and types(folded).count("batch_norm") == 1
    assert close(plain, x, expected) and close(folded, x, expected)
    first = folded.graph.ops[0]
    assert first.type == "conv2d" and len(first.members) == 2  # a convolution without a bias has one now
    assert first.weight_bytes == (8 * 3 * 9 + 8) * 4


def test_weights_of_half_precision_are_folded_in_single(net):
    module, x, _ = net
    half = Net().eval().to(torch.bfloat16)
    x = x.to(torch.bfloat16)
    folded = mt.capture(half, (x,))
    weights = {n.meta.dtype for n in folded.nodes.values() if n.target == "moirai.folded_weight"}
    assert weights == {torch.bfloat16}
    with torch.no_grad():
        off = (mt.whole(folded, (x,)) - half(x)).float().abs().max() / half(x).float().abs().max()
    assert float(off) < 0.05


def test_folded_networks_run_as_plans(net, cpu_workers, cpu_cluster):
    module, x, _ = net
    network = mt.capture(module, (x,))
    problem = problem_of(network, cpu_cluster)
    spread = {n: problem.devices[i % 4] for i, n in enumerate(problem.op_names)}
    with mt.distribute(network, moirai.Plan.by_devices(problem, spread), workers=cpu_workers, verify=module) as run:
        run(x)


def test_channels_last_is_decided_by_the_work_of_grouped_convolutions():
    x = torch.randn(1, 3, 16, 16)
    few, many = Net(groups=2).eval(), Net(groups=2).eval()
    few.second = nn.Conv2d(8, 8, 1, groups=2)
    many.second = nn.Conv2d(8, 8, 11, padding=5, groups=2)
    last = [mt.capture(m, (x,)).nodes["x"].meta.stride == (768, 1, 48, 3) for m in (Net().eval(), few, many)]
    assert last == [True, True, False]
    assert mt.capture(many, (x,), channels_last=True).nodes["x"].meta.stride == (768, 1, 48, 3)
    assert mt.capture(few, (x,), channels_last=False).nodes["x"].meta.stride == (768, 256, 16, 1)


@pytest.mark.parametrize("fuse", ["none", "aten"])
def test_strides_are_those_that_kernels_give(net, fuse):
    module, x, expected = net
    captured = mt.capture(module, (x,), fuse=fuse)
    env, cpu = dict(captured.weights), torch.device("cpu")
    with torch.no_grad():
        for node in captured.nodes.values():
            if node.kind != WEIGHT:
                env[node.name] = node.meta.lay_out(x) if node.kind == INPUT else call(node, env, cpu)
                assert not isinstance(node.meta, Meta) or node.meta.fits(env[node.name]), node
    convs = [n for n in captured.nodes.values() if "conv" in n.target and n.kind == OP]
    assert len(convs) == 3 and all(n.meta.stride[1] == 1 for n in convs)
    assert close(captured, x, expected)


class Tokens(nn.Module):
    """An image as tokens: a view in the usual order, a copy in channels last."""

    def __init__(self):
        super().__init__()
        self.patch, self.mix = nn.Conv2d(3, 8, 4, 4), nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x):
        y = self.mix(self.patch(x))
        return y.flatten(1).softmax(-1)


def test_views_that_must_copy_in_another_layout_are_operators():
    x = torch.randn(1, 3, 16, 16)
    module = Tokens().eval()
    plain, last = (mt.capture(module, (x,), channels_last=c) for c in (False, True))
    assert types(plain) == ["conv2d", "conv2d", "softmax"] and len(types(last)) == 4
    with torch.no_grad():
        assert close(last, x, module(x))


def test_layouts_follow_strides_and_numbers_whatever_was_called_before():
    """1 and 1.0, and a matrix and its transpose, are not the same call."""
    x, y = Meta((4, 6), torch.int64, (6, 1)), Meta((4, 6), torch.int64, (1, 4))
    given = {"x": Node("x", INPUT, "", (), {}, x), "y": Node("y", INPUT, "", (), {}, y)}
    calls = {f"{n}{by!r}": Node(f"{n}{by!r}", OP, "aten.add.Tensor", (Ref(n), by), {}, x) for n in given for by in (1, 1.0)}
    for _ in range(2):
        follow(nodes := {**given, **calls})
        assert [(nodes[n].meta.dtype, nodes[n].meta.stride) for n in calls] == [
            (torch.int64, (6, 1)), (torch.float32, (6, 1)), (torch.int64, (1, 4)), (torch.float32, (1, 4))]  # fmt: skip


def test_tensors_travel_in_their_layout(net, cpu_workers, cpu_cluster):
    module, x, _ = net
    network = mt.capture(module, (x,))
    problem = problem_of(network, cpu_cluster)
    spread = {n: problem.devices[i % 2] for i, n in enumerate(problem.op_names)}
    with mt.distribute(network, moirai.Plan.by_devices(problem, spread), workers=cpu_workers, verify=module) as run:
        run(x)
        assert any(len(t.meta.shape) == 4 and t.meta.stride[1] == 1 for t in run.program.transfers)


def test_dense_is_every_element_once():
    def meta(shape, stride):
        return Meta(shape, torch.float32, stride)

    assert meta((2, 3), (3, 1)).dense and meta((2, 3), (1, 2)).dense and meta((2, 1, 3), (3, 99, 1)).dense
    assert not meta((2, 3), (0, 1)).dense and not meta((2, 3), (4, 1)).dense
    assert meta((2, 3), (4, 1)).packed.stride == (3, 1) and meta((2, 3), (1, 2)).packed.stride == (1, 2)
    assert meta((), ()).packed.stride == () and meta((0, 3), (3, 1)).packed.numel == 0


class Dense(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(8, 12), nn.Linear(12, 12), nn.Linear(12, 4)

    def forward(self, x):
        y = F.gelu(self.b(torch.relu(self.a(x))), approximate="tanh")
        return F.gelu(self.c(y))  # exact: cuBLASLt has no kernel for it


def test_calls_that_aten_has_one_kernel_for_are_one_operator(net):
    module, x, expected = net
    captured = mt.capture(module, (x,), fuse="aten")
    assert types(captured)[:2] == ["conv_relu", "conv_add_relu"] and close(captured, x, expected)
    assert [len(op.members) for op in captured.graph.ops[:2]] == [3, 4]
    dense, y = Dense().eval(), torch.randn(3, 8)
    captured = mt.capture(dense, (y,), fuse="aten")
    assert types(captured) == ["linear_act", "linear_act", "linear", "gelu"]
    with torch.no_grad():
        assert close(captured, y, dense(y))
    with pytest.raises(moirai.UsageError, match="fuse 'some'"):
        mt.capture(dense, (y,), fuse="some")


def test_one_kernel_is_taken_where_it_is_right_and_faster(monkeypatch):
    clock = {"fast": 1.0, "slow": 2.0}
    monkeypatch.setattr(fused, "_seconds", lambda work: clock[work.__name__])

    def fast():
        return torch.ones(3)

    def slow():
        return torch.ones(3)

    assert fused._try(fast, slow) and not fused._try(slow, fast)

    def fast():  # wrong
        return torch.zeros(3)

    assert not fused._try(fast, slow)

    def fast():
        raise RuntimeError("no kernel of cuDNN's does this")

    assert not fused._try(fast, slow)
