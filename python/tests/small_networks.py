"""Two networks that are small enough to compile in a test: branches that exchange tensors, and a transformer."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


class Conv(nn.Module):
    def __init__(self, c_in: int, c_out: int, kernel: int = 3, stride: int = 1, relu: bool = True) -> None:
        super().__init__()
        self.conv = nn.Conv2d(c_in, c_out, kernel, stride, kernel // 2, bias=False)
        self.norm, self.relu = nn.BatchNorm2d(c_out), relu

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.conv(x))
        return F.relu(x) if self.relu else x


class Branches(nn.Module):
    """Two resolutions, as in HRNet: residual blocks, then each gets the sum of both."""

    def __init__(self, c: int = 4) -> None:
        super().__init__()
        self.stem, self.down, self.head = Conv(3, c, 3, 2), Conv(c, 2 * c, 3, 2), nn.Linear(3 * c, 5)
        self.high, self.low = Conv(c, c, relu=False), Conv(2 * c, 2 * c, relu=False)
        self.up, self.lower = Conv(2 * c, c, 1, relu=False), Conv(c, 2 * c, 3, 2, relu=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.stem(x)
        b = self.down(a)
        a, b = F.relu(a + self.high(a)), F.relu(b + self.low(b))
        a, b = F.relu(a + F.interpolate(self.up(b), scale_factor=2)), F.relu(b + self.lower(a))
        return self.head(torch.cat([a.mean((2, 3)), b.mean((2, 3))], 1))


class Layer(nn.Module):
    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads, self.first, self.second = heads, nn.LayerNorm(d), nn.LayerNorm(d)
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
        self.up, self.down = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x)
        q, k, v = (p(y).unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in (self.q, self.k, self.v))
        x = x + self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.second(x))))


def tiny_gpt(layers: int = 2, d: int = 16) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    parts = [nn.Embedding(20, d), *(Layer(d, 2) for _ in range(layers)), nn.LayerNorm(d), nn.Linear(d, 20)]
    return nn.Sequential(*parts).eval(), (torch.randint(0, 20, (1, 8)),)
