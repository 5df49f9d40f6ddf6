"""Networks for bench/gpu.py and the tests, from code, with random weights: `make(name, small)` gives a module and
arguments.

They are the published architectures with their published sizes (Inception-v3's blocks, NASNet-A's cell, GPT-2 small, T5
base, CLIP ViT-B/32, Swin-T) in as few lines as say what is computed, so that nothing but PyTorch is needed. `small`
shrinks them for tests on a processor.
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def conv(c_in: int, c_out: int, kernel: Any, stride: int = 1, padding: Any = 0, groups: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(c_in, c_out, kernel, stride, padding, groups=groups, bias=False),
        nn.BatchNorm2d(c_out),
        nn.ReLU(inplace=True),
    )


# ---- Inception-v3: four branches a block


class InceptionA(nn.Module):
    def __init__(self, c: int, pool: int, w: float) -> None:
        super().__init__()
        n = lambda x: max(int(x * w), 4)  # noqa: E731
        self.one = conv(c, n(64), 1)
        self.five = nn.Sequential(conv(c, n(48), 1), conv(n(48), n(64), 5, padding=2))
        self.three = nn.Sequential(
            conv(c, n(64), 1), conv(n(64), n(96), 3, padding=1), conv(n(96), n(96), 3, padding=1)
        )
        self.pool = conv(c, n(pool), 1)
        self.out = n(64) + n(64) + n(96) + n(pool)

    def forward(self, x: Tensor) -> Tensor:
        pooled = self.pool(F.avg_pool2d(x, 3, 1, 1))
        return torch.cat([self.one(x), self.five(x), self.three(x), pooled], 1)


class InceptionC(nn.Module):
    def __init__(self, c: int, mid: int, w: float) -> None:
        super().__init__()
        n = lambda x: max(int(x * w), 4)  # noqa: E731
        m, o = n(mid), n(192)
        self.one = conv(c, o, 1)
        self.seven = nn.Sequential(
            conv(c, m, 1), conv(m, m, (1, 7), padding=(0, 3)), conv(m, o, (7, 1), padding=(3, 0))
        )
        self.twice = nn.Sequential(
            conv(c, m, 1), conv(m, m, (7, 1), padding=(3, 0)), conv(m, m, (1, 7), padding=(0, 3)),
            conv(m, m, (7, 1), padding=(3, 0)), conv(m, o, (1, 7), padding=(0, 3)),
        )  # fmt: skip
        self.pool = conv(c, o, 1)
        self.out = 4 * o

    def forward(self, x: Tensor) -> Tensor:
        pooled = self.pool(F.avg_pool2d(x, 3, 1, 1))
        return torch.cat([self.one(x), self.seven(x), self.twice(x), pooled], 1)


class InceptionE(nn.Module):
    def __init__(self, c: int, w: float) -> None:
        super().__init__()
        n = lambda x: max(int(x * w), 4)  # noqa: E731
        self.one = conv(c, n(320), 1)
        self.three = conv(c, n(384), 1)
        self.three_a = conv(n(384), n(384), (1, 3), padding=(0, 1))
        self.three_b = conv(n(384), n(384), (3, 1), padding=(1, 0))
        self.twice = nn.Sequential(conv(c, n(448), 1), conv(n(448), n(384), 3, padding=1))
        self.twice_a = conv(n(384), n(384), (1, 3), padding=(0, 1))
        self.twice_b = conv(n(384), n(384), (3, 1), padding=(1, 0))
        self.pool = conv(c, n(192), 1)
        self.out = n(320) + 4 * n(384) + n(192)

    def forward(self, x: Tensor) -> Tensor:
        three, twice = self.three(x), self.twice(x)
        pooled = self.pool(F.avg_pool2d(x, 3, 1, 1))
        parts = [
            self.one(x),
            self.three_a(three),
            self.three_b(three),
            self.twice_a(twice),
            self.twice_b(twice),
            pooled,
        ]
        return torch.cat(parts, 1)


class Inception(nn.Module):
    def __init__(self, w: float = 1.0, classes: int = 1000) -> None:
        super().__init__()
        n = lambda x: max(int(x * w), 4)  # noqa: E731
        self.stem = nn.Sequential(
            conv(3, n(32), 3, 2), conv(n(32), n(32), 3), conv(n(32), n(64), 3, padding=1), nn.MaxPool2d(3, 2),
            conv(n(64), n(80), 1), conv(n(80), n(192), 3), nn.MaxPool2d(3, 2),
        )  # fmt: skip
        c = n(192)
        blocks: list[nn.Module] = []
        for pool in (32, 64, 64):
            blocks.append(InceptionA(c, pool, w))
            c = blocks[-1].out  # type: ignore[assignment]
        blocks.append(conv(c, n(768), 3, 2))
        c = n(768)
        for mid in (128, 160, 160, 192):
            blocks.append(InceptionC(c, mid, w))
            c = blocks[-1].out  # type: ignore[assignment]
        blocks.append(conv(c, n(1280), 3, 2))
        c = n(1280)
        for _ in range(2):
            blocks.append(InceptionE(c, w))
            c = blocks[-1].out  # type: ignore[assignment]
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(c, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


# ---- NASNet-A: five pairs of branches a cell, each reading one of the two cells before


class Separable(nn.Module):
    def __init__(self, c: int, kernel: int) -> None:
        super().__init__()
        half = kernel // 2
        self.steps = nn.Sequential(
            nn.Conv2d(c, c, kernel, padding=half, groups=c, bias=False), nn.Conv2d(c, c, 1, bias=False),
            nn.BatchNorm2d(c), nn.ReLU(),
            nn.Conv2d(c, c, kernel, padding=half, groups=c, bias=False), nn.Conv2d(c, c, 1, bias=False),
            nn.BatchNorm2d(c),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        return self.steps(F.relu(x))


class Cell(nn.Module):
    def __init__(self, c_before: int, c_last: int, c: int) -> None:
        super().__init__()
        self.before, self.last = conv(c_before, c, 1), conv(c_last, c, 1)
        self.a5, self.a3 = Separable(c, 5), Separable(c, 3)
        self.b5, self.b3 = Separable(c, 5), Separable(c, 3)
        self.e3 = Separable(c, 3)

    def forward(self, before: Tensor, last: Tensor) -> Tensor:
        p, h = self.before(before), self.last(last)
        pool = F.avg_pool2d(p, 3, 1, 1)
        parts = [
            self.e3(h) + h,
            self.a3(p) + self.a5(h),
            F.avg_pool2d(h, 3, 1, 1) + p,
            pool + pool,
            self.b5(p) + self.b3(p),
        ]
        return torch.cat([p, *parts], 1)


class Nasnet(nn.Module):
    def __init__(self, c: int, cells: int, classes: int = 1000) -> None:
        super().__init__()
        self.stem = conv(3, 2 * c, 3, 2, 1)
        self.pool = nn.MaxPool2d(3, 2, 1)
        made, widths = [], [2 * c, 2 * c]
        for stage in range(3):
            for _ in range(cells):
                made.append(Cell(widths[-2], widths[-1], c << stage))
                widths.append(6 * (c << stage))
        self.cells, self.per_stage = nn.ModuleList(made), cells
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, x: Tensor) -> Tensor:
        last = self.pool(self.stem(x))
        before = last
        for i, cell in enumerate(self.cells):
            if i and i % self.per_stage == 0:
                before, last = F.max_pool2d(before, 2), F.max_pool2d(last, 2)
            before, last = last, cell(before, last)
        return self.head(F.relu(last).mean((2, 3)))


# ---- transformers


class Attention(nn.Module):
    def __init__(self, d: int, heads: int, causal: bool = False, inner: int | None = None, bias: bool = True) -> None:
        super().__init__()
        inner = inner or d
        self.q, self.k, self.v = (nn.Linear(d, inner, bias=bias) for _ in range(3))
        self.o = nn.Linear(inner, d, bias=bias)
        self.heads, self.causal = heads, causal

    def forward(self, x: Tensor, memory: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        memory = x if memory is None else memory
        b, s, _ = x.shape
        q, k, v = (p(t).view(b, t.shape[1], self.heads, -1).transpose(1, 2)
                   for p, t in ((self.q, x), (self.k, memory), (self.v, memory)))  # fmt: skip
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=self.causal and mask is None)
        return self.o(y.transpose(1, 2).reshape(b, s, -1))


class Feed(nn.Module):
    def __init__(self, d: int, hidden: int, activation: Callable[[Tensor], Tensor] = F.gelu, bias: bool = True) -> None:
        super().__init__()
        self.up, self.down, self.activation = (
            nn.Linear(d, hidden, bias=bias),
            nn.Linear(hidden, d, bias=bias),
            activation,
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.activation(self.up(x)))


class Layer(nn.Module):
    def __init__(self, d: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(d), Attention(d, heads, causal)
        self.norm2, self.feed = nn.LayerNorm(d), Feed(d, 4 * d)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.feed(self.norm2(x))


class Gpt2(nn.Module):
    def __init__(self, d: int, heads: int, layers: int, words: int, positions: int) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(words, d), nn.Embedding(positions, d)
        self.layers = nn.ModuleList(Layer(d, heads, True) for _ in range(layers))
        self.norm = nn.LayerNorm(d)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for layer in self.layers:
            x = layer(x)
        return self.norm(x[:, -1:]) @ self.words.weight.t()


class Experts(nn.Module):
    """All experts on all tokens, weighed by a softmax: the dense form, whose graph does not depend on the numbers."""

    def __init__(self, d: int, hidden: int, experts: int) -> None:
        super().__init__()
        self.gate = nn.Linear(d, experts)
        self.experts = nn.ModuleList(Feed(d, hidden) for _ in range(experts))

    def forward(self, x: Tensor) -> Tensor:
        weight = self.gate(x).softmax(-1)
        parts = [expert(x) * weight[..., i : i + 1] for i, expert in enumerate(self.experts)]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total


class Mixture(nn.Module):
    def __init__(self, d: int, heads: int, hidden: int, layers: int, experts: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ModuleDict(
                {
                    "norm1": nn.LayerNorm(d),
                    "attn": Attention(d, heads),
                    "norm2": nn.LayerNorm(d),
                    "moe": Experts(d, hidden, experts),
                }
            )  # fmt: skip
            for _ in range(layers)
        )

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + layer["attn"](layer["norm1"](x))
            x = x + layer["moe"](layer["norm2"](x))
        return x


class T5(nn.Module):
    """Encoder and decoder; RMS norms, no biases, learnt positions between tokens."""

    class Norm(nn.Module):
        def __init__(self, d: int) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(d))

        def forward(self, x: Tensor) -> Tensor:
            return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)

    class Block(nn.Module):
        def __init__(self, d: int, heads: int, cross: bool) -> None:
            super().__init__()
            self.norm1, self.attn = T5.Norm(d), Attention(d, heads, bias=False)
            self.norm2, self.cross = (T5.Norm(d), Attention(d, heads, bias=False)) if cross else (None, None)
            self.norm3, self.feed = T5.Norm(d), Feed(d, 4 * d, F.relu, bias=False)

        def forward(self, x: Tensor, bias: Tensor, memory: Tensor | None = None) -> Tensor:
            x = x + self.attn(self.norm1(x), mask=bias)
            if self.cross is not None and self.norm2 is not None:
                x = x + self.cross(self.norm2(x), memory)
            return x + self.feed(self.norm3(x))

    def __init__(self, d: int, heads: int, layers: int, words: int, n_in: int, n_out: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, d)
        self.encoder = nn.ModuleList(T5.Block(d, heads, False) for _ in range(layers))
        self.decoder = nn.ModuleList(T5.Block(d, heads, True) for _ in range(layers))
        self.bias_in = nn.Parameter(0.1 * torch.randn(1, heads, n_in, n_in))
        self.bias_out = nn.Parameter(0.1 * torch.randn(1, heads, n_out, n_out))
        self.register_buffer("past", torch.full((n_out, n_out), float("-inf")).triu(1))
        self.norm_in, self.norm_out = T5.Norm(d), T5.Norm(d)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        memory, x = self.words(source), self.words(target)
        for block in self.encoder:
            memory = block(memory, self.bias_in)
        memory = self.norm_in(memory)
        for block in self.decoder:
            x = block(x, self.bias_out + self.past, memory)
        return self.norm_out(x)


class Clip(nn.Module):
    """Two towers that share nothing until the end."""

    def __init__(self, d: int, heads: int, layers: int, patch: int, pixels: int, d_text: int, heads_text: int,
                 words: int, length: int, joint: int) -> None:  # fmt: skip
        super().__init__()
        self.patch = nn.Conv2d(3, d, patch, patch, bias=False)
        self.first = nn.Parameter(torch.randn(1, 1, d))
        self.places = nn.Parameter(0.1 * torch.randn(1, 1 + (pixels // patch) ** 2, d))
        self.image = nn.ModuleList(Layer(d, heads, False) for _ in range(layers))
        self.words, self.positions = nn.Embedding(words, d_text), nn.Parameter(0.1 * torch.randn(1, length, d_text))
        self.text = nn.ModuleList(Layer(d_text, heads_text, True) for _ in range(layers))
        self.norm_image, self.norm_text = nn.LayerNorm(d), nn.LayerNorm(d_text)
        self.to_image, self.to_text = nn.Linear(d, joint, bias=False), nn.Linear(d_text, joint, bias=False)

    def forward(self, image: Tensor, text: Tensor) -> Tensor:
        x = self.patch(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1) + self.places
        for layer in self.image:
            x = layer(x)
        y = self.words(text) + self.positions
        for layer in self.text:
            y = layer(y)
        a = F.normalize(self.to_image(self.norm_image(x[:, 0])), dim=-1)
        b = F.normalize(self.to_text(self.norm_text(y[:, -1])), dim=-1)
        return a @ b.t()


class Swin(nn.Module):
    """Windows that attend within themselves, shifted in every other layer."""

    class Block(nn.Module):
        def __init__(self, d: int, heads: int, window: int, shift: int) -> None:
            super().__init__()
            self.norm1, self.attn = nn.LayerNorm(d), Attention(d, heads)
            self.norm2, self.feed = nn.LayerNorm(d), Feed(d, 4 * d)
            self.bias = nn.Parameter(0.1 * torch.randn(1, heads, window**2, window**2))
            self.window, self.shift = window, shift

        def forward(self, x: Tensor) -> Tensor:
            b, h, w, c = x.shape
            n = self.window
            y = self.norm1(x)
            if self.shift:
                y = torch.roll(y, (-self.shift, -self.shift), (1, 2))
            y = y.view(b, h // n, n, w // n, n, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, n * n, c)
            y = self.attn(y, mask=self.bias)
            y = y.view(b, h // n, w // n, n, n, c).permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)
            if self.shift:
                y = torch.roll(y, (self.shift, self.shift), (1, 2))
            x = x + y
            return x + self.feed(self.norm2(x))

    def __init__(self, d: int, depths: tuple[int, ...], heads: int, window: int, classes: int = 1000) -> None:
        super().__init__()
        self.patch, self.norm = nn.Conv2d(3, d, 4, 4), nn.LayerNorm(d)
        stages = []
        for i, depth in enumerate(depths):
            stage = [Swin.Block(d << i, heads << i, window, window // 2 if k % 2 else 0) for k in range(depth)]
            stages.append(nn.ModuleList(stage))
        self.stages = nn.ModuleList(stages)
        self.merge = nn.ModuleList(nn.Linear(4 * (d << i), 2 * (d << i), bias=False) for i in range(len(depths) - 1))
        self.norms = nn.ModuleList(nn.LayerNorm(4 * (d << i)) for i in range(len(depths) - 1))
        self.last, self.head = nn.LayerNorm(d << (len(depths) - 1)), nn.Linear(d << (len(depths) - 1), classes)

    def forward(self, image: Tensor) -> Tensor:
        x = self.norm(self.patch(image).permute(0, 2, 3, 1))
        for i, stage in enumerate(self.stages):
            for block in stage:  # type: ignore[union-attr]
                x = block(x)
            if i < len(self.merge):
                x = torch.cat([x[:, a::2, b::2] for b in (0, 1) for a in (0, 1)], -1)
                x = self.merge[i](self.norms[i](x))
        return self.head(self.last(x).mean((1, 2)))


class Recommender(nn.Module):
    """Towers per group of features (numbers, embeddings, history), then experts and tasks that mix them: MMoE over
    DLRM's bottom."""

    def __init__(
        self, tables: int, rows: int, d: int, numbers: int, history: int, hidden: int, experts: int, tasks: int
    ) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, d) for _ in range(tables))
        self.numbers = nn.Sequential(nn.Linear(numbers, hidden), nn.ReLU(), nn.Linear(hidden, d))
        self.history, self.seen = nn.Embedding(rows, d), Layer(d, 4, False)
        n = tables + 2
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(n * d, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
            for _ in range(experts)
        )
        self.cross = nn.Sequential(nn.Linear(n * n, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.gates = nn.ModuleList(nn.Linear(n * d, experts) for _ in range(tasks))
        self.tasks = nn.ModuleList(
            nn.Sequential(nn.Linear(2 * hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1)) for _ in range(tasks)
        )

    def forward(self, numbers: Tensor, ids: Tensor, history: Tensor) -> Tensor:
        parts = [table(ids[:, i]) for i, table in enumerate(self.tables)]
        parts += [self.numbers(numbers), self.seen(self.history(history)).mean(1)]
        stacked = torch.stack(parts, 1)
        flat = stacked.flatten(1)
        crossed = self.cross((stacked @ stacked.transpose(1, 2)).flatten(1))
        found = [expert(flat) for expert in self.experts]
        results = []
        for gate, task in zip(self.gates, self.tasks):
            weight = gate(flat).softmax(-1)
            mixed = found[0] * weight[:, :1]
            for i, one in enumerate(found[1:], 1):
                mixed = mixed + one * weight[:, i : i + 1]
            results.append(task(torch.cat([mixed, crossed], 1)))
        return torch.cat(results, 1).sigmoid()


# ---- by name


def _tokens(n: int, words: int, batch: int = 1) -> Tensor:
    return torch.randint(0, words, (batch, n))


def _inception(small: bool) -> Any:
    return (
        (Inception(0.125, 10), (torch.randn(1, 3, 107, 107),))
        if small
        else (Inception(), (torch.randn(8, 3, 299, 299),))
    )


def _nasnet(small: bool) -> Any:
    return (
        (Nasnet(4, 1, 10), (torch.randn(1, 3, 32, 32),)) if small else (Nasnet(84, 2), (torch.randn(4, 3, 224, 224),))
    )


def _moe(small: bool) -> Any:
    if small:
        return Mixture(16, 2, 32, 2, 4), (torch.randn(1, 8, 16),)
    return Mixture(768, 12, 3072, 12, 8), (torch.randn(1, 256, 768),)


def _gpt2(small: bool) -> Any:
    if small:
        return Gpt2(16, 4, 2, 50, 12), (_tokens(12, 50),)
    return Gpt2(768, 12, 12, 50257, 1024), (_tokens(1024, 50257),)


def _t5(small: bool) -> Any:
    if small:
        return T5(16, 2, 2, 50, 12, 8), (_tokens(12, 50), _tokens(8, 50))
    return T5(768, 12, 12, 32128, 512, 512), (_tokens(512, 32128), _tokens(512, 32128))


def _clip(small: bool) -> Any:
    if small:
        return Clip(16, 2, 2, 8, 32, 8, 2, 50, 7, 8), (torch.randn(2, 3, 32, 32), _tokens(7, 50, 3))
    return Clip(768, 12, 12, 32, 224, 512, 8, 49408, 77, 512), (torch.randn(16, 3, 224, 224), _tokens(77, 49408, 16))


def _swin(small: bool) -> Any:
    if small:
        return Swin(8, (2, 2), 2, 4, 10), (torch.randn(1, 3, 32, 32),)
    return Swin(96, (2, 2, 6, 2), 3, 7), (torch.randn(8, 3, 224, 224),)


def _recommender(small: bool) -> Any:
    if small:
        return Recommender(3, 20, 8, 5, 6, 16, 3, 2), (
            torch.randn(4, 5),
            torch.randint(0, 20, (4, 3)),
            torch.randint(0, 20, (4, 6)),
        )
    ids, history = torch.randint(0, 100000, (1024, 26)), torch.randint(0, 100000, (1024, 50))
    return Recommender(26, 100000, 64, 13, 50, 1024, 8, 4), (torch.randn(1024, 13), ids, history)


NETWORKS: dict[str, Callable[[bool], Any]] = {
    "inception": _inception,
    "nasnet": _nasnet,
    "moe": _moe,
    "gpt2": _gpt2,
    "t5": _t5,
    "clip": _clip,
    "swin": _swin,
    "recommender": _recommender,
}
HEADS = {"gpt2": 4}  # captured with attention taken apart, into so many groups of heads


def make(
    name: str, small: bool = False, seed: int = 1, dtype: torch.dtype = torch.float32
) -> tuple[nn.Module, tuple[Any, ...]]:
    """A network in eval mode, weights and arguments of this number type (whole numbers stay), and its arguments."""
    torch.manual_seed(seed)
    module, args = NETWORKS[name](small)
    for part in module.modules():
        if isinstance(part, nn.Conv2d):  # so that what goes in still shows in what comes out
            nn.init.kaiming_normal_(part.weight, nonlinearity="relu")
    return module.eval().to(dtype), tuple(a.to(dtype) if a.is_floating_point() else a for a in args)
