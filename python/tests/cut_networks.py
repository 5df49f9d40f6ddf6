"""Small transformers as they are written: one product for queries, keys and values or three, gates, shared keys, rotary
positions, a bias that layers share."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Conv1D(nn.Module):
    """GPT-2's linear: a weight of (inputs, outputs), by addmm."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(inputs, outputs) / inputs**0.5), nn.Parameter(torch.randn(outputs))

    def forward(self, x: Tensor) -> Tensor:
        return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(*x.shape[:-1], -1)


class Gpt2(nn.Module):
    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads, self.ln_1, self.ln_2 = heads, nn.LayerNorm(d), nn.LayerNorm(d)
        self.c_attn, self.c_proj = Conv1D(d, 3 * d), Conv1D(d, d)
        self.c_fc, self.c_out = Conv1D(d, 4 * d), Conv1D(4 * d, d)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.c_attn(self.ln_1(x)).split(x.shape[-1], dim=2)
        q, k, v = (t.view(*x.shape[:2], self.heads, -1).transpose(1, 2) for t in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).contiguous().view(x.shape))
        y = self.c_fc(self.ln_2(x))
        y = 0.5 * y * (1 + torch.tanh(0.8 * (y + 0.04 * torch.pow(y, 3))))
        return x + self.c_out(y)


class Vit(nn.Module):
    """timm's way: (3, batch, heads, tokens, size), and attention spelt out."""

    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj, self.fc1, self.fc2 = nn.Linear(d, 3 * d), nn.Linear(d, d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        qkv = self.qkv(self.norm1(x)).reshape(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        y = (q * (d // self.heads) ** -0.5 @ k.transpose(-2, -1)).softmax(dim=-1) @ v
        x = x + self.proj(y.transpose(1, 2).reshape(b, n, d))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


def turned(x: Tensor) -> Tensor:
    a, b = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat((-b, a), dim=-1)


class Llama(nn.Module):
    """Grouped keys and values, rotary positions, RMS norms, a gate. `native`: the kernel shares keys by itself."""

    def __init__(self, d: int, heads: int, groups: int, native: bool = False) -> None:
        super().__init__()
        each = d // heads
        self.heads, self.groups, self.native = heads, groups, native
        self.norm1, self.norm2, self.q_norm = nn.RMSNorm(d), nn.RMSNorm(d), nn.RMSNorm(each)
        self.q_proj, self.o_proj = nn.Linear(d, d, bias=False), nn.Linear(d, d, bias=False)
        self.k_proj, self.v_proj = nn.Linear(d, groups * each, bias=False), nn.Linear(d, groups * each, bias=False)
        self.gate, self.up, self.down = (nn.Linear(*s, bias=False) for s in ((d, 3 * d), (d, 3 * d), (3 * d, d)))
        angle = torch.outer(torch.arange(64), torch.arange(1, each // 2 + 1) / each).repeat(1, 2)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def forward(self, x: Tensor) -> Tensor:
        b, n, d = x.shape
        y = self.norm1(x)
        q = self.q_norm(self.q_proj(y).view(b, n, self.heads, -1)).transpose(1, 2)
        k, v = (p(y).view(b, n, self.groups, -1).transpose(1, 2) for p in (self.k_proj, self.v_proj))
        cos, sin = self.cos[:n], self.sin[:n]
        q, k = q * cos + turned(q) * sin, k * cos + turned(k) * sin
        if self.native:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        else:
            times = self.heads // self.groups
            k, v = (t[:, :, None].expand(b, self.groups, times, n, d // self.heads).reshape(b, self.heads, n, -1) for t in (k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o_proj(y.transpose(1, 2).reshape(b, n, d))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Biased(nn.Module):
    """T5's way: a bias of every head, computed once and read by all layers; a mask that is an argument; a fused gate."""

    def __init__(self, d: int, heads: int, layers: int = 2) -> None:
        super().__init__()
        self.heads, self.table = heads, nn.Embedding(16, heads)
        self.qkv = nn.ModuleList(nn.ModuleList(nn.Linear(d, d, bias=False) for _ in range(4)) for _ in range(layers))
        self.wi = nn.ModuleList(nn.Linear(d, 4 * d) for _ in range(layers))
        self.wo = nn.ModuleList(nn.Linear(2 * d, d) for _ in range(layers))
        self.norm = nn.LayerNorm(d)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        b, n, d = x.shape
        far = (torch.arange(n)[:, None] - torch.arange(n)[None]).clamp(0, 15)
        bias = self.table(far + (mask[0, 0] > 9).long()).permute(2, 0, 1)[None] + mask
        for (q, k, v, o), wi, wo in zip(self.qkv, self.wi, self.wo):
            y = self.norm(x)
            q, k, v = (p(y).view(b, n, self.heads, -1).transpose(1, 2) for p in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
            x = x + o(y.transpose(1, 2).reshape(b, n, d))
            a, gate = wi(self.norm(x)).chunk(2, dim=-1)
            x = x + wo(a * gate.sigmoid())
        return x


def make(name: str) -> tuple[nn.Module, tuple[Tensor, ...]]:
    torch.manual_seed(0)
    x = torch.randn(2, 6, 24)
    layers = {
        "gpt2": lambda: [Gpt2(24, 4)],
        "vit": lambda: [Vit(24, 6)],
        "llama": lambda: [Llama(24, 6, 2), Llama(24, 6, 2)],
        "llama-native": lambda: [Llama(24, 6, 3, True)],
        "encoder": lambda: [nn.TransformerEncoderLayer(24, 4, 48, batch_first=True, norm_first=True)],
    }
    if name == "biased":
        return Biased(24, 4).eval(), (x, torch.randn(2, 4, 6, 6))
    return nn.Sequential(*layers[name](), nn.Linear(24, 10)).eval(), (x,)


NAMES = ("gpt2", "vit", "llama", "llama-native", "biased", "encoder")
