"""Captured convolutional networks cut by rows of the image compute what they do whole."""

from __future__ import annotations

import random

import pytest
from conftest import links, need

torch = need("torch")
from torch import nn  # noqa: E402

import moirai  # noqa: E402
import moirai.torch as mt  # noqa: E402
from moirai.torch.rows import Window  # noqa: E402


class Net(nn.Module):
    """A random run of what can be cut, with residual sums, a branch that is put together again, and a head."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        pick = random.Random(seed)
        c, steps, self.kinds = 4, [], []
        for _ in range(pick.randint(5, 9)):
            kind = pick.choice(["conv", "conv", "residual", "pool", "mean", "up", "cat", "scale"])
            k, d = pick.choice([(1, 1), (3, 1), (3, 2), (5, 1)])
            step: nn.Module = nn.Identity()
            if kind == "conv":
                padding = pick.choice([0, d * (k - 1) // 2])
                step = nn.Sequential(nn.Conv2d(c, c, k, pick.choice([1, 1, 2, 3]), padding, d), nn.BatchNorm2d(c), nn.ReLU())
            elif kind in ("residual", "cat"):
                step = nn.Conv2d(c, c, k, 1, d * (k - 1) // 2, d, groups=pick.choice([1, 2, 4]))
            elif kind == "pool":
                step = nn.MaxPool2d(3, 2, 1)
            elif kind == "mean":
                step = nn.AvgPool2d(3, pick.choice([1, 2]), 1, count_include_pad=pick.choice([True, False]))
            elif kind == "up":
                step = nn.Upsample(scale_factor=2)
            steps.append(step)
            self.kinds.append(kind)
        self.steps, self.narrow = nn.ModuleList(steps), nn.Conv2d(2 * c, c, 1)
        self.head = nn.Linear(c, 3)

    def forward(self, x):
        for kind, step in zip(self.kinds, self.steps):
            if kind == "residual":
                x = torch.relu(x + step(x))
            elif kind == "cat":
                x = self.narrow(torch.cat([x, torch.sigmoid(step(x))], 1))
            elif kind == "scale":  # needs all rows, then rows again
                x = x * torch.sigmoid(x.mean((2, 3), keepdim=True))
            else:
                x = step(x)
        return self.head(x.mean((2, 3))), x


@pytest.mark.parametrize("seed", range(8))
def test_networks_cut_by_rows_compute_what_they_do_whole(seed):
    torch.manual_seed(seed)
    pick, module, x = random.Random(seed), Net(seed).eval(), torch.randn(1, 4, 40, 24)
    with torch.no_grad():
        for norm in (m for m in module.modules() if isinstance(m, nn.BatchNorm2d)):
            norm.running_mean.normal_()
        expected = module(x)
    whole = mt.capture(module, (x,))
    strips = [s for s in whole.strips if s.kind == "rows"]
    assert strips and all(s.unit == "rows" and s.units > 1 for s in strips)
    fewest = min(s.units for s in strips)
    for _ in range(3):
        sizes = [str(pick.randint(1, 5)) for _ in range(pick.randint(2, min(4, fewest)))]
        cut = whole.recut(f"*rows: {':'.join(sizes)}")
        assert len(cut.graph) > len(whole.graph)
        for a, b in zip(mt.whole(cut, (x,)), expected):
            assert a.shape == b.shape and torch.allclose(a, b, atol=1e-5)
    assert len(whole.recut("*linear: 2").graph) == len(whole.graph) + 2  # patterns leave rows out


def test_a_window_is_given_the_rows_under_it():
    assert Window(3, 1, 1).reads(0, 4, 10) == (0, 5, 0)
    assert Window(3, 1, 1).reads(4, 8, 10) == (3, 9, 3)  # its first row is made of padding, and left out
    assert Window(3, 2, 1).reads(2, 5, 10) == (2, 10, 1)
    assert Window(5, 1, 4, 2).reads(6, 10, 10) == (2, 10, 2)
    assert Window(up=2).reads(3, 8, 5) == (1, 4, 2)


class Deep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.steps = nn.Sequential(*(nn.Conv2d(4, 4, 3, padding=1) for _ in range(12)))

    def forward(self, x):
        return self.steps(x)


def test_a_strip_ends_where_too_much_would_be_made_twice():
    """Between strips pieces take rows from their neighbours, and nobody puts the image together but for the caller."""
    module, x = Deep().eval(), torch.randn(1, 4, 48, 16)
    whole = mt.capture(module, (x,))
    strips = [s for s in whole.strips if s.kind == "rows"]
    assert [s.name for s in strips] == ["image1/rows", "image2/rows", "image3/rows"]
    cut = whole.recut("*rows: 2")
    joins = [op.name for op in cut.graph.ops if op.type == "cat"]
    assert len(joins) == 5 and sum("joined" in n for n in joins) == 1
    assert torch.allclose(mt.whole(cut, (x,)), module(x), atol=1e-5)


def test_rows_are_chosen_where_they_pay():
    """Unequal devices get unequal shares of the image; far from each other no cut pays."""
    module, x = Deep().eval(), torch.randn(1, 4, 480, 480)
    captured = mt.capture(module, (x,))
    devices = [{"name": "A", "type": "cpu-8-neon", "memory": "1GB"}, {"name": "B", "type": "cpu-4-neon", "memory": "1GB"}]
    near = {"name": "near", "devices": devices, "links": links("AB", "100GB/s", "1us")}
    far = {"name": "far", "devices": devices, "links": links("AB", "1MB/s", "1s")}
    found = mt.choose(captured, near)
    assert found.cut.startswith("image1/rows: 1000:") and found.cut_ns < 0.8 * found.whole_ns
    assert 250 < int(found.cut.split(";")[0].split(":")[2]) < 1000
    assert mt.choose(captured, far).cut == ""


def test_pieces_run_on_two_devices():
    module, x = Net(3).eval(), torch.randn(1, 4, 40, 24)
    captured = mt.capture(module, (x,), cuts="*rows: 2")
    cluster = moirai.Cluster.open({"name": "two", "devices": [{"name": n, "type": "cpu", "memory": "1GB"} for n in "AB"],
                                   "links": links("AB")})  # fmt: skip
    problem = moirai.Problem(captured.graph, cluster)
    plan = moirai.Plan.by_devices(problem, {n: "B" if "(2 of 2" in n else "A" for n in problem.op_names})
    assert plan.transfers
    with mt.distribute(captured, plan, cluster=cluster, verify=module) as run:
        run(x)
