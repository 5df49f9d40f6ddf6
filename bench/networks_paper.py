"""The paper's smallest networks as PyTorch modules with random weights: `make(name, style)` gives a module and arguments.

The layers are those of the zoo (docs/zoo.md), in three styles with the same weights and, but for rounding, the same
results:

apart   every operator of the paper's graph is a call of ATen, heads and biases apart: 12 a head, 11 a layer
fused   what a backend fuses is one call: products with their biases, the attention of a head; heads are still apart
whole   attention of all heads in one call, as people write it: what torch.compile is given
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

STYLES = ("apart", "fused", "whole")


@dataclass(frozen=True)
class Sizes:
    """A network of the zoo. `depths`, `channels`: layers and width of each stage (one but for Swin)."""

    family: str
    depths: tuple[int, ...]
    channels: int
    heads: int
    feed: int  # times the width
    rows: tuple[int, ...]  # tokens; sequences and residues; tokens of a side
    window: int = 0
    whole: bool = True  # has the layers of the paper's

    @property
    def layers(self) -> int:
        return sum(self.depths)

    @property
    def operators(self) -> int:
        """In the paper's table."""
        return self.layers * (11 + 12 * self.heads)


SIZES = {
    "gpt3-330M": Sizes("gpt3", (24,), 1024, 16, 4, (2048,)),
    "alphafold2-87M": Sizes("alphafold2", (48,), 256, 8, 12, (128, 256)),
    "swin-1.8B": Sizes("swin", (2, 2, 26, 2), 512, 16, 4, (275,), 7),
}
SMALL = {
    "gpt3": Sizes("gpt3", (2,), 32, 4, 4, (16,)),
    "alphafold2": Sizes("alphafold2", (2,), 16, 2, 3, (3, 8)),
    "swin": Sizes("swin", (2, 2), 8, 2, 4, (7,), 4),
}


def sizes_of(name: str, small: bool = False) -> Sizes:
    """`NAME` or `NAME:N`, whose longest stage has N layers."""
    known, _, layers = name.partition(":")
    if known not in SIZES:
        raise ValueError(f"no network '{known}': {', '.join(SIZES)}")
    sizes = SMALL[SIZES[known].family] if small else SIZES[known]
    if layers:
        longest = sizes.depths.index(max(sizes.depths))
        depths = tuple(int(layers) if i == longest else n for i, n in enumerate(sizes.depths))
        sizes = replace(sizes, depths=depths, whole=depths == sizes.depths)
    return sizes


def draw(*shape: int, scale: float) -> nn.Parameter:
    """Random weights. Large ones repeat a million numbers (no row has the length of the period): a billion of their own
    would take longer to draw than all that is measured."""
    count = 1
    for n in shape:
        count *= n
    block = torch.randn(min(count, 1000003)) * scale
    full = block if block.numel() == count else block.repeat(-(-count // block.numel()))[:count]
    return nn.Parameter(full.reshape(shape).contiguous(), requires_grad=False)


class Product(nn.Module):
    """x W + b: two calls where operators are apart, else one."""

    def __init__(self, style: str, n_in: int, n_out: int, bias: bool = True) -> None:
        super().__init__()
        weight = draw(n_in, n_out, scale=n_in**-0.5)
        self.apart = style == "apart"
        self.weight = weight if self.apart else nn.Parameter(weight.t().contiguous(), requires_grad=False)
        self.bias = draw(n_out, scale=0.1) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        if not self.apart:
            return F.linear(x, self.weight, self.bias)
        y = x @ self.weight
        return y if self.bias is None else y + self.bias


class Norm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight, self.bias, self.width = nn.Parameter(1 + draw(width, scale=0.1)), draw(width, scale=0.1), width
        self.weight.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, (self.width,), self.weight, self.bias)


class Head(nn.Module):
    def __init__(self, style: str, width: int, head: int) -> None:
        super().__init__()
        self.q, self.k, self.v = (Product(style, width, head) for _ in range(3))
        self.apart, self.scale = style == "apart", head**-0.5

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        q, k, v = self.q(x), self.k(x), self.v(x)
        if not self.apart:
            found = F.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None], attn_mask=mask[:, None])
            return found[:, 0]
        scores = q @ k.transpose(-2, -1).contiguous() * self.scale + mask
        return scores.softmax(-1) @ v


class Attention(nn.Module):
    """Of [sequences, tokens, width]. Masks are added to scores: [1 or sequences, tokens, tokens]; one for all heads, or
    one each, which are weights."""

    def __init__(self, style: str, width: int, heads: int, own: Tensor | None, causal: bool) -> None:
        super().__init__()
        self.n, self.causal, self.whole = heads, causal, style == "whole"
        self.heads = nn.ModuleList(Head("fused" if self.whole else style, width, width // heads) for _ in range(heads))
        self.out = Product(style, width, width)
        self.own = own is not None
        if own is not None:  # a learnt bias per head, and the mask of shifted windows
            tokens = own.shape[-1]
            bias = draw(heads, tokens, tokens, scale=0.1)
            for h in range(0 if self.whole else heads):
                self.register_buffer(f"mask{h}", (own + bias[h]).contiguous())
            if self.whole:
                self.register_buffer("masks", (own[:, None] + bias[None]).contiguous())
        if self.whole:
            self.pack()

    def pack(self) -> None:
        parts = [p for name in ("q", "k", "v") for p in (getattr(h, name) for h in self.heads)]
        self.weight = nn.Parameter(torch.cat([p.weight for p in parts]), requires_grad=False)
        self.bias = nn.Parameter(torch.cat([p.bias for p in parts]), requires_grad=False)
        self.heads = nn.ModuleList()

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        if self.whole:
            packed = F.linear(x, self.weight, self.bias)
            q, k, v = (p.unflatten(-1, (self.n, -1)).transpose(1, 2) for p in packed.chunk(3, -1))
            given = None if self.causal else self.masks if self.own else mask[:, None]  # type: ignore[index]
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=given, is_causal=self.causal)
            return self.out(y.transpose(1, 2).flatten(2))
        masks = [getattr(self, f"mask{h}") if self.own else mask for h in range(self.n)]
        return self.out(torch.cat([head(x, m) for head, m in zip(self.heads, masks)], -1))


class Feed(nn.Module):
    def __init__(self, style: str, width: int, times: int) -> None:
        super().__init__()
        self.up, self.down = Product(style, width, times * width), Product(style, times * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.gelu(self.up(x), approximate="tanh"))


class Layer(nn.Module):
    """Of GPT-3, and of AlphaFold2 as the paper counts it."""

    def __init__(self, style: str, s: Sizes) -> None:
        super().__init__()
        self.norm1, self.norm2 = Norm(s.channels), Norm(s.channels)
        self.attn = Attention(style, s.channels, s.heads, None, s.family == "gpt3")
        self.feed = Feed(style, s.channels, s.feed)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x), mask)
        return x + self.feed(self.norm2(x))


class Stack(nn.Module):
    """GPT-3 (a causal mask) or AlphaFold2 (attention along each sequence, biased by a second argument)."""

    def __init__(self, style: str, s: Sizes) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(style, s) for _ in range(s.layers))
        self.causal = s.family == "gpt3"
        if self.causal:
            n = s.rows[0]
            self.register_buffer("past", torch.full((1, n, n), float("-inf")).triu(1))

    def forward(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        for layer in self.layers:
            x = layer(x, self.past if bias is None else bias)
        return x


class WindowLayer(nn.Module):
    """Of Swin: attention within windows, shifted by half a window in every second layer. [side, side, width]."""

    def __init__(self, style: str, width: int, s: Sizes, side: int, shift: int) -> None:
        super().__init__()
        n = s.window
        self.window, self.shift, self.side, self.pad = n, shift, side, -side % n
        self.norm1, self.norm2 = Norm(width), Norm(width)
        self.attn = Attention(style, width, s.heads, self.mask(), False)
        self.feed = Feed(style, width, s.feed)

    def mask(self) -> Tensor:
        """Tokens that a shift has brought together from opposite sides do not see each other."""
        n, full = self.window, self.side + self.pad
        if not self.shift:
            return torch.zeros(1, n * n, n * n)
        zone = torch.zeros(full)
        zone[-n : -self.shift], zone[-self.shift :] = 1, 2
        zones = (3 * zone[:, None] + zone[None]).view(full // n, n, full // n, n)
        zones = zones.permute(0, 2, 1, 3).reshape(-1, n * n)
        return torch.where(zones[:, :, None] == zones[:, None], 0.0, -100.0)

    def forward(self, x: Tensor) -> Tensor:
        n, side, width = self.window, self.side, x.shape[-1]
        y = self.norm1(x)
        if self.pad:
            y = F.pad(y, (0, 0, 0, self.pad, 0, self.pad))
        if self.shift:
            y = torch.roll(y, (-self.shift, -self.shift), (0, 1))
        count = (side + self.pad) // n
        y = y.view(count, n, count, n, width).permute(0, 2, 1, 3, 4).reshape(-1, n * n, width)
        y = self.attn(y, None)
        y = y.view(count, count, n, n, width).permute(0, 2, 1, 3, 4).reshape(count * n, count * n, width)
        if self.shift:
            y = torch.roll(y, (self.shift, self.shift), (0, 1))
        x = x + y[:side, :side]
        return x + self.feed(self.norm2(x))


class Merge(nn.Module):
    """Four neighbours of c channels to one of 2 c."""

    def __init__(self, style: str, width: int) -> None:
        super().__init__()
        self.norm, self.product = Norm(4 * width), Product(style, 4 * width, 2 * width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        odd = x.shape[0] % 2
        x = F.pad(x, (0, 0, 0, odd, 0, odd)) if odd else x
        return self.product(self.norm(torch.cat([x[a::2, b::2] for b in (0, 1) for a in (0, 1)], -1)))


class Swin(nn.Module):
    def __init__(self, style: str, s: Sizes) -> None:
        super().__init__()
        self.layers = nn.ModuleList()
        side, width = s.rows[0], s.channels
        for stage, depth in enumerate(s.depths):
            if stage > 0:
                self.layers.append(Merge(style, width))
                side, width = (side + 1) // 2, 2 * width
            for i in range(depth):
                self.layers.append(WindowLayer(style, width, s, side, s.window // 2 if i % 2 else 0))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def make(name: str, style: str, small: bool = False, seed: int = 1) -> tuple[nn.Module, tuple[Any, ...]]:
    """A module in eval mode and its arguments."""
    s = sizes_of(name, small)
    torch.manual_seed(seed)
    module = Swin(style, s) if s.family == "swin" else Stack(style, s)
    torch.manual_seed(seed + 1)
    if s.family == "gpt3":
        args: tuple[Any, ...] = (torch.randn(1, s.rows[0], s.channels),)
    elif s.family == "alphafold2":
        args = (torch.randn(*s.rows, s.channels), torch.randn(1, s.rows[1], s.rows[1]))
    else:
        args = (torch.randn(s.rows[0], s.rows[0], s.channels),)
    return module.eval(), args
