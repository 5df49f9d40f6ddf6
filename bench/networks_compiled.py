"""Networks of bench/gpu_compiled.py beside those of networks.py: published sizes, random weights."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import networks
import networks_public


class Conv(nn.Module):
    def __init__(self, c_in: int, c_out: int, kernel: int = 3, stride: int = 1, relu: bool = True) -> None:
        super().__init__()
        self.conv = nn.Conv2d(c_in, c_out, kernel, stride, kernel // 2, bias=False)
        self.norm, self.relu = nn.BatchNorm2d(c_out), relu

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.conv(x))
        return F.relu(x) if self.relu else x


class Basic(nn.Module):
    def __init__(self, c: int) -> None:
        super().__init__()
        self.first, self.second = Conv(c, c), Conv(c, c, relu=False)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x + self.second(self.first(x)))


class Bottleneck(nn.Module):
    def __init__(self, c_in: int, c: int) -> None:
        super().__init__()
        self.body = nn.Sequential(Conv(c_in, c, 1), Conv(c, c), Conv(c, 4 * c, 1, relu=False))
        self.short = Conv(c_in, 4 * c, 1, relu=False) if c_in != 4 * c else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.short(x) + self.body(x))


class Exchange(nn.Module):
    """Every resolution gets the sum of all."""

    def __init__(self, widths: list[int]) -> None:
        super().__init__()
        n = len(widths)
        self.ways = nn.ModuleList(nn.ModuleList(self.way(widths, i, j) for j in range(n)) for i in range(n))

    @staticmethod
    def way(widths: list[int], i: int, j: int) -> nn.Module:
        """From resolution j to i."""
        if i == j:
            return nn.Identity()
        if j > i:
            return nn.Sequential(Conv(widths[j], widths[i], 1, relu=False), nn.Upsample(scale_factor=2 ** (j - i)))
        steps = [Conv(widths[j], widths[j], 3, 2) for _ in range(i - j - 1)]
        return nn.Sequential(*steps, Conv(widths[j], widths[i], 3, 2, relu=False))

    def forward(self, xs: list[Tensor]) -> list[Tensor]:
        found = []
        for ways in self.ways:
            parts = [way(x) for way, x in zip(ways, xs)]
            total = parts[0]
            for p in parts[1:]:
                total = total + p
            found.append(F.relu(total))
        return found


class Module(nn.Module):
    def __init__(self, widths: list[int], blocks: int) -> None:
        super().__init__()
        self.branches = nn.ModuleList(nn.Sequential(*(Basic(c) for _ in range(blocks))) for c in widths)
        self.exchange = Exchange(widths)

    def forward(self, xs: list[Tensor]) -> list[Tensor]:
        return self.exchange([branch(x) for branch, x in zip(self.branches, xs)])


class Hrnet(nn.Module):
    """HRNet's stages: a resolution more in each, residual blocks side by side, exchanges; W32 has c = 32."""

    def __init__(self, c: int = 32, modules: tuple[int, ...] = (1, 4, 3), blocks: int = 4, classes: int = 1000) -> None:
        super().__init__()
        self.stem = nn.Sequential(Conv(3, 64, 3, 2), Conv(64, 64, 3, 2), Bottleneck(64, 64),
                                  *(Bottleneck(256, 64) for _ in range(3)))  # fmt: skip
        before, self.more, self.stages = [256], nn.ModuleList(), nn.ModuleList()
        for stage, n in enumerate(modules):
            widths = [c << i for i in range(stage + 2)]
            keep = [Conv(b, w) if b != w else nn.Identity() for b, w in zip(before, widths)]
            self.more.append(nn.ModuleList([*keep, Conv(before[-1], widths[-1], 3, 2)]))
            self.stages.append(nn.ModuleList(Module(widths, blocks) for _ in range(n)))
            before = widths
        self.head = nn.Linear(sum(before), classes)

    def forward(self, x: Tensor) -> Tensor:
        xs = [self.stem(x)]
        for more, stage in zip(self.more, self.stages):
            xs = [way(x) for way, x in zip(more, [*xs, xs[-1]])]
            for module in stage:
                xs = module(xs)
        return self.head(torch.cat([x.mean((2, 3)) for x in xs], 1))


class Layer(nn.Module):
    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads, self.first, self.second = heads, nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.qkv(self.first(x)).chunk(3, -1)
        q, k, v = (p.unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in parts)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.second(x)), approximate="tanh"))


class ByTokens(nn.Module):
    """The same layers with tokens in pieces, by hand: all that looks at one token runs in its piece, attention of a
    piece's queries reads keys and values of all pieces up to it."""

    def __init__(self, layers: nn.Sequential, sizes: list[int]) -> None:
        super().__init__()
        self.layers, self.sizes = layers, sizes
        ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
        for i, (n, end) in enumerate(zip(sizes, ends)):
            late = torch.ones(n, end).tril(end - n) == 0
            self.register_buffer(f"mask{i}", torch.zeros(n, end).masked_fill(late, float("-inf")))

    def forward(self, x: Tensor) -> Tensor:
        xs = list(x.split(self.sizes, 1))
        for layer in list(self.layers)[:-1]:
            each = [layer.qkv(layer.first(p)).chunk(3, -1) for p in xs]
            for i in range(len(xs)):
                q = each[i][0]
                k, v = (torch.cat([e[j] for e in each[: i + 1]], 1) for j in (1, 2))
                q, k, v = (p.unflatten(-1, (layer.heads, -1)).transpose(1, 2) for p in (q, k, v))
                a = F.scaled_dot_product_attention(q, k, v, attn_mask=getattr(self, f"mask{i}")).transpose(1, 2).flatten(2)
                y = xs[i] + layer.out(a)
                xs[i] = y + layer.down(F.gelu(layer.up(layer.second(y)), approximate="tanh"))
        return torch.cat([self.layers[-1](p) for p in xs], 1)


# layers, width, heads, batch, tokens: "layers" are GPT-2 small's
LAYERS = {"layers": (12, 768, 12, 1, 1024), "layers-batch": (12, 1024, 16, 4, 512), "layers-short": (12, 1024, 16, 1, 128)}


def whole(name: str) -> str:
    """The network that one of ours in pieces by hand has to beat."""
    return name.split(":")[1] if name.startswith("tokens:") else name


def make(name: str, small: bool, dtype: torch.dtype = torch.float32, seed: int = 1) -> tuple[nn.Module, Any]:
    """A module in eval mode and its arguments; names that are not here are those of networks.py and
    networks_public.py, or with `timm:` before
    them those of PyPI's package (its sizes of images, random weights)."""
    if name.startswith("timm:"):
        import timm  # what only these names need

        torch.manual_seed(seed)
        module = timm.create_model(name[5:], pretrained=False)
        size = module.default_cfg["input_size"]
        return module.eval().to(dtype), (torch.randn(1, *size).to(dtype),)
    if name.startswith("tokens:"):  # tokens:layers:448-320-256
        _, inner, sizes = name.split(":")
        module, args = make(inner, small, torch.float32, seed)
        return ByTokens(module, [int(n) for n in sizes.split("-")]).eval().to(dtype), tuple(a.to(dtype) for a in args)
    if name in networks_public.NAMES:
        module, args = networks_public.make(name, small)
        return module.to(dtype), tuple(a.to(dtype) if a.is_floating_point() else a for a in args)
    if name != "hrnet" and name not in LAYERS:
        return networks.make(name, small, dtype=dtype)
    torch.manual_seed(seed)
    module: nn.Module
    if name == "hrnet":
        module = Hrnet(8, (1, 1), 1, 10) if small else Hrnet()
        x = torch.randn(1, 3, 64, 64) if small else torch.randn(1, 3, 224, 224)
    else:
        n, d, heads, batch, tokens = (2, 32, 2, 1, 16) if small else LAYERS[name]
        module, x = nn.Sequential(*(Layer(d, heads) for _ in range(n)), nn.LayerNorm(d)), torch.randn(batch, tokens, d)
    return module.eval().to(dtype), (x.to(dtype),)
