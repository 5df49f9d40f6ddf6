"""Attention spelled out head by head, as the paper's graphs are, or in groups of heads.

An attention over H heads becomes several over some of them each, whose results are put together again. The projections
before it are taken apart, too: which features of a product x W + b a head reads is found by sending numbered features
through the views between them, so that it does not matter how a model arranges its heads (three projections, one for
all, interleaved or not). Where the views mix features in a way that is no choice of columns, the projection stays whole
and heads read their slices of it.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any, Mapping

import torch

from .cuts import Strip, unique_name
from .ir import Meta, Node, Ref, call

_ATTENTION = "aten.scaled_dot_product_attention.default"
_PROJECTIONS = ("aten.linear.default", "aten.addmm.default", "aten.mm.default")
_VIEWS = (
    "view _unsafe_view reshape transpose permute select slice split split_with_sizes chunk unsqueeze squeeze getitem "
    "clone contiguous flatten unflatten alias"
).split()


def head_strips(nodes: dict[str, Node]) -> list[Strip]:
    """Every attention of several heads as a strip whose results are put together: an alternative to the strip that ends
    in the product behind it, for where that one can't be cut."""
    used: dict[str, int] = {}
    found = []
    for node in nodes.values():
        if node.target == _ATTENTION and _splittable(node, nodes):
            name, heads = unique_name(node.path, "heads", used), nodes[node.args[0].name].meta.shape[1]
            found.append(Strip(name, "heads", "heads", heads, node.name, alike=("heads", repr(node.meta))))
    return found


def split_heads(nodes: dict[str, Node], sizes: Mapping[str, list[int]], names: Mapping[str, str]) -> dict[str, Node]:
    """New nodes with these attentions taken apart into groups of so many heads; `names` are the operators whole, by node:
    pieces are called after them, and get their shares of what these take."""
    out: dict[str, Node] = {}
    writer = _Writer(nodes, out, names)
    for node in nodes.values():
        if len(sizes.get(node.name, ())) > 1:
            writer.attention(node, sizes[node.name])
        else:
            out[node.name] = node
    return out


def _splittable(node: Node, nodes: dict[str, Node]) -> bool:
    metas = [nodes[a.name].meta for a in node.args[:3] if isinstance(a, Ref)]
    if len(metas) != 3 or node.kwargs.get("enable_gqa"):
        return False
    q, k, v = metas
    return len(q.shape) == 4 and q.shape[1] > 1 and q.shape[1] == k.shape[1] == v.shape[1]


class _Writer:
    def __init__(self, nodes: dict[str, Node], out: dict[str, Node], names: Mapping[str, str]) -> None:
        self.nodes = nodes
        self.out = out
        self.names = names
        self.label = ""  # of the group of heads at hand
        self.memo: dict[tuple[Any, ...], str] = {}  # what is made once: (kind, source, ...) -> name

    def add(self, key: tuple[Any, ...], name: str, target: str, path: str, *args: Any, **kwargs: Any) -> str:
        """A node, unless it was made before; its shape is found by running it on tensors without content."""
        known = self.memo.get(key)
        if known is not None:
            return known
        node = Node(name, "op", target, args, kwargs, path=path)
        env = {r: self.out[r].meta.empty("meta") for r in node.refs()}
        node.meta = Meta.of(call(node, env, torch.device("meta")))
        self.out[name] = node
        self.memo[key] = name
        return name

    def attention(self, node: Node, sizes: list[int]) -> None:
        results = []
        for g, size in enumerate(sizes):
            span = (sum(sizes[:g]), sum(sizes[:g]) + size)
            self.label = f" ({g + 1} of {len(sizes)}, {size} of {sum(sizes)} heads)"
            parts = [self.head(ref.name, span, node, letter) for ref, letter in zip(node.args[:3], "qkv")]
            mask = self.mask(node, span)
            name = f"{node.name}_h{g}"
            kwargs = {k: v for k, v in node.kwargs.items() if k not in ("attn_mask",)}
            done = self.add(
                (name,), name, _ATTENTION, node.path, *(Ref(p) for p in parts), mask, *node.args[4:], **kwargs
            )
            self.call(done, node)
            results.append(self.add((done, "turn"), f"{done}_turn", "aten.transpose.int", node.path, Ref(done), 1, 2))
        # One copy that gathers the groups, laid out as what follows wants it: (batch, positions, heads, size).
        gathered = self.add((node.name, "cat"), f"{node.name}_cat", "aten.cat.default", node.path,
                            [Ref(r) for r in results], 2)  # fmt: skip
        final = Node(node.name, "op", "aten.transpose.int", (Ref(gathered), 1, 2), {}, path=node.path)
        final.meta = Meta.of(self.out[gathered].meta.empty("meta").transpose(1, 2))
        self.out[node.name] = final

    def call(self, made: str, like: Node, more: str = "") -> str:
        """A piece by its whole operator's name."""
        if like.name in self.names and not self.out[made].named:
            self.out[made].named = f"{self.names[like.name]}{self.label}{more}"
        return made

    def mask(self, node: Node, span: tuple[int, int]) -> Any:
        mask = node.args[3] if len(node.args) > 3 else node.kwargs.get("attn_mask")
        if not isinstance(mask, Ref):
            return mask
        meta = self.nodes[mask.name].meta
        if len(meta.shape) < 4 or meta.shape[1] == 1:
            return mask
        name = f"{mask.name}_h{span[0]}_{span[1]}"
        return Ref(self.add((mask.name, span), name, "aten.slice.Tensor", node.path, mask, 1, *span))

    def head(self, value: str, span: tuple[int, int], node: Node, letter: str) -> str:
        """Some heads of (batch, heads, positions, size)."""
        key = (value, "head", span)
        known = self.memo.get(key)
        if known is not None:
            return known
        found = self.projection(value, span, node, letter)
        if found is None:
            name = f"{value}_h{span[0]}_{span[1]}"
            return self.add(key, name, "aten.slice.Tensor", node.path, Ref(value), 1, *span)
        self.memo[key] = found
        return found

    def projection(self, value: str, span: tuple[int, int], node: Node, letter: str) -> str | None:
        """The same from a projection's own columns, or None where that can't be."""
        chain = [value]
        while self.nodes[chain[-1]].target.split(".")[-2 if "." in self.nodes[chain[-1]].target else -1] in _VIEWS:
            refs = self.nodes[chain[-1]].refs()
            if len(refs) != 1:
                return None
            chain.append(refs[0])
        base = self.nodes[chain[-1]]
        if base.target not in _PROJECTIONS:
            return None
        found = self.columns(base, chain[-2::-1], span)
        product = self.part(base, found[0], span[0], letter) if found is not None else None
        if found is None or product is None:
            return None
        b, _, s, d = self.nodes[value].meta.shape
        n, lead = span[1] - span[0], base.meta.shape[:-1]
        name = f"{value}_h{span[0]}_{span[1]}"
        made = self.add((name, "apart"), f"{name}_apart", "aten.view.default", node.path, Ref(product), [*lead, n, d])
        if list(found[1]) != sorted(found[1]):
            order = [*found[1], len(lead), len(lead) + 1]
            made = self.add((name, "order"), f"{name}_order", "aten.permute.default", node.path, Ref(made), order)
        if self.out[made].meta.shape != (b, s, n, d):
            made = self.add((name, "view"), f"{name}_view", "aten.view.default", node.path, Ref(made), [b, s, n, d])
        return self.add((name, "turn"), f"{name}_turn", "aten.transpose.int", node.path, Ref(made), 1, 2)

    def columns(
        self, base: Node, chain: list[str], span: tuple[int, int]
    ) -> tuple[torch.Tensor, tuple[int, ...]] | None:
        """Which features these heads read, in order, and in which order of the other dimensions; None unless it is
        that."""
        shape = base.meta.shape
        features, rows = shape[-1], base.meta.numel // shape[-1]
        marks = torch.arange(rows * features).view(shape)
        env: dict[str, Any] = {base.name: marks}
        for name in chain:
            env[name] = call(self.nodes[name], env, torch.device("cpu"))
        if not chain:
            return None
        seen = env[chain[-1]][:, span[0] : span[1]]  # (batch, heads, positions, size)
        got = seen.transpose(1, 2).reshape(-1, seen.shape[1] * seen.shape[3])
        if got.shape[0] != rows:
            return None
        columns = got[0] % features
        numbers = torch.arange(rows).view(shape[:-1])
        for order in permutations(range(len(shape) - 1)):
            row = numbers.permute(order).reshape(-1)
            if torch.equal(got, row[:, None] * features + columns[None, :]):
                return columns, order
        return None

    def part(self, base: Node, columns: torch.Tensor, h: int, letter: str) -> str | None:
        """x W + b for some columns. Slices of weights are constants: made once, when a rank is loaded."""
        first, n = int(columns[0]), len(columns)
        if not torch.equal(columns, torch.arange(first, first + n)):
            return None
        linear = base.target == "aten.linear.default"
        x, weight, bias = {
            "aten.linear.default": lambda a: (a[0], a[1], a[2] if len(a) > 2 else None),
            "aten.addmm.default": lambda a: (a[1], a[2], a[0]),
            "aten.mm.default": lambda a: (a[0], a[1], None),
        }[base.target](base.args)
        if base.kwargs or not all(isinstance(v, Ref) or v is None for v in (x, weight, bias)):
            return None
        path, name = base.path, f"{base.name}_{letter}{h}"
        made = self.piece(weight, 0 if linear else 1, first, n, path)
        piece = self.piece(bias, 0, first, n, path) if bias is not None else None
        if linear:
            args = (x, made) if piece is None else (x, made, piece)
        else:
            args = (x, made) if piece is None else (piece, x, made)
        return self.call(self.add((base.name, "part", first, n), name, base.target, path, *args), base, f" ({letter})")

    def piece(self, weight: Ref, dim: int, first: int, n: int, path: str) -> Ref:
        """A slice of a weight, in memory of its own: what the rest of the weight took is not held."""
        key = (weight.name, "piece", dim, first, n)
        name = f"{weight.name}_{first}_{n}"
        cut = self.add((*key, "cut"), f"{name}_cut", "aten.slice.Tensor", path, weight, dim, first, first + n)
        return Ref(self.add(key, name, "aten.clone.default", path, Ref(cut), memory_format=torch.contiguous_format))
