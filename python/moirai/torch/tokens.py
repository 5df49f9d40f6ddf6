"""Networks cut by tokens: pieces have whole weights and some tokens of every value (docs/shard.md).

What looks at one token at a time (products with weights, norms, sums) runs in its piece, and nothing is added up
afterwards. Attention of a piece's queries reads keys and values of all tokens, causal attention those up to its own: they
are what pieces take from each other, once a layer. Which axis of a value has the tokens follows from its arguments by the
rules of cut_rules.py, tried for every axis of that length; where none fits, a value is whole, put together from pieces.

A batch is cut in the same way, along the axis that samples have come in on: nothing mixes samples, so that pieces take
nothing from each other. It is offered where nearly all arithmetic can be cut so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping

import torch

from . import flops
from .cut_rules import Layout, Needs, Piece, Refused, _RESHAPES, base_name, needs_of, piece_call
from .cut_text import Cut
from .cuts import Strip, _Writer, match, product, work_of
from .ir import ALIAS, INPUT, OP, Meta, Node, Ref, substitute

_ATTENTION = "scaled_dot_product_attention"
_BEGINS = ("layer_norm", "rms_norm", "embedding")  # and products: what tokens are first cut for
_MIXES = (_ATTENTION, "softmax", "_softmax")  # without attention what is cut is a batch
_FEW = 0.05  # of the products' work: less is not worth a strip
_IMAGES = set("conv1d conv2d conv3d convolution max_pool2d avg_pool2d adaptive_avg_pool2d batch_norm group_norm "
              "upsample_nearest2d upsample_bilinear2d".split())  # sample by sample  # fmt: skip


def token_needs(node: Node, at: Layout, units: int, nodes: Mapping[str, Node]) -> Needs:
    """As needs_of, along an axis of tokens."""
    last, name = len(_shape(node)) - 1, base_name(node.target)
    known = product(node, nodes)
    if known and at.axis < last:
        return {known[0].name: at, **{r.name: None for r in known[1:3] if r is not None}}
    if name == "embedding" and at.axis < last and isinstance(node.args[1], Ref):
        return {node.args[1].name: at, node.args[0].name: None}
    if name == _ATTENTION and at.axis == last - 1 and at.outer == 1:
        return _queries(node, at, nodes)
    return needs_of(node, at, units, nodes)


def _queries(node: Node, at: Layout, nodes: Mapping[str, Node]) -> Needs:
    q, k, v = (a.name for a in node.args[:3])
    if q in (k, v):
        raise Refused("queries that are keys, too")
    needs: Needs = {q: at, k: None, v: None}
    mask = node.args[3] if len(node.args) > 3 else node.kwargs.get("attn_mask")
    if isinstance(mask, Ref):
        shape = nodes[mask.name].meta.shape
        whole = len(shape) < 2 or shape[-2] == 1
        needs[mask.name] = None if whole else Layout(len(shape) - 2, at.outer, at.inner)
    return needs


def sample_needs(node: Node, at: Layout, units: int, nodes: Mapping[str, Node]) -> Needs:
    """As needs_of, along the axis of a batch."""
    name, refs = base_name(node.target), node.refs()
    if name in _IMAGES and at.axis == 0:
        return {refs[0]: at, **{r: None for r in refs[1:]}}
    if name != _ATTENTION:
        return token_needs(node, at, units, nodes)
    if at.axis != 0 or at.outer != 1:
        raise Refused("attention that is not cut by samples")
    needs: Needs = {}
    for a in node.args[:3]:
        if nodes[a.name].meta.shape[0] != at.length(units):
            raise Refused("attention to another batch")
        needs[a.name] = at
    mask = node.args[3] if len(node.args) > 3 else node.kwargs.get("attn_mask")
    if isinstance(mask, Ref):
        shape = nodes[mask.name].meta.shape
        needs[mask.name] = at if len(shape) == len(_shape(node)) and shape[0] == at.length(units) else None
    return needs


def _causal(node: Node) -> bool:
    causal = node.args[5] if len(node.args) > 5 else node.kwargs.get("is_causal")
    return base_name(node.target) == _ATTENTION and bool(causal)


def _shape(node: Node) -> tuple[int, ...]:
    """Of a tensor, or of the first of several."""
    meta = node.meta[0] if isinstance(node.meta, tuple) else node.meta
    return meta.shape if isinstance(meta, Meta) else ()


@dataclass
class TokenStrip:
    name: str
    units: int
    at: dict[str, Layout] = field(default_factory=dict)  # values that pieces have tokens, or samples, of
    kind: str = "tokens"
    unit: str = "tokens"

    def strip(self, nodes: Mapping[str, Node]) -> Strip:
        return Strip(self.name, self.kind, self.unit, self.units, list(self.at)[-1], alike=(self.name, self.units))

    def needs(self, node: Node, nodes: Mapping[str, Node]) -> Needs:
        rule = token_needs if self.kind == "tokens" else sample_needs
        return rule(node, self.at[node.name], self.units, nodes)


def _layouts(shape: tuple[int, ...], units: int) -> list[Layout]:
    return [Layout(a, n // units, 1) for a, n in enumerate(shape) if n >= units and n % units == 0]


class _Finder:
    def __init__(self, nodes: dict[str, Node], units: int, taken: set[str]) -> None:
        self.nodes, self.units, self.taken = nodes, units, taken
        self.at: dict[str, Layout] = {}

    def find(self) -> dict[str, Layout]:
        for name, node in self.nodes.items():
            if node.kind in (OP, ALIAS) and name not in self.taken:
                at = self.of(node)
                if at is not None:
                    self.at[name] = at
        return self.at

    def of(self, node: Node) -> Layout | None:
        """The layout of a value that fits those of its arguments: of several the one that fits most, queries first."""
        best: tuple[Any, Layout] | None = None
        cut = [r for r in dict.fromkeys(node.refs()) if r in self.at]
        for at in _layouts(_shape(node), self.units):
            try:
                needs = token_needs(node, at, self.units, self.nodes)
            except Refused:
                continue
            same = [r for r in cut if needs.get(r) == self.at[r]]
            others = [r for r in cut if needs.get(r) not in (None, self.at[r])]  # put together and cut again
            if (others and node.refs()[0] not in same) or not self.sliceable(needs, others):
                continue
            if not (same or (not cut and self.begins(node, at))):
                continue
            score = (len(same) - len(others), bool(same) and same[0] == node.refs()[0], -at.outer)
            if best is None or score > best[0]:
                best = (score, at)
        return best[1] if best else None

    def sliceable(self, needs: Needs, others: list[str]) -> bool:
        """What is not cut so is sliced: one tensor, or none."""
        cut = [n for n, at in needs.items() if at is not None and (n not in self.at or n in others)]
        return all(isinstance(self.nodes[n].meta, Meta) for n in cut)

    def begins(self, node: Node, at: Layout) -> bool:
        begins = base_name(node.target) in _BEGINS or product(node, self.nodes) is not None
        return begins and at.axis == len(_shape(node)) - 2 and _shape(node)[:-1].count(self.units) == 1


def _tokens_of(name: str, nodes: Mapping[str, Node]) -> int:
    """Tokens of what a product reads; a batch that was made one long sequence by a view still has its own."""
    while len(_shape(nodes[name])) == 2 and base_name(nodes[name].target) in _RESHAPES:
        name = nodes[name].refs()[0]
    shape = _shape(nodes[name])
    return shape[-2] if len(shape) > 1 else 0


def _numbers(nodes: dict[str, Node]) -> list[int]:
    """Of tokens: those that products with weights are computed for, where most is computed first."""
    done: dict[int, float] = {}
    for node in nodes.values():
        known = product(node, nodes) if node.kind == OP else None
        n = _tokens_of(known[0].name, nodes) if known else 0
        if n > 1:
            done[n] = done.get(n, 0.0) + work_of(node, nodes)
    return [n for n, w in sorted(done.items(), key=lambda x: -x[1]) if w > _FEW * sum(done.values())]


def find_tokens(nodes: dict[str, Node]) -> list[TokenStrip]:
    """Strips of classified nodes: an encoder's tokens and a decoder's are strips of their own."""
    found: list[TokenStrip] = []
    taken: set[str] = set()
    place = {n: i for i, n in enumerate(nodes)}
    for units in _numbers(nodes):
        at = _Finder(nodes, units, taken).find()
        if any(product(nodes[n], nodes) for n in at) and any(base_name(nodes[n].target) in _MIXES for n in at):
            found.append(TokenStrip("", units, at))
            taken |= set(at)
    found.sort(key=lambda s: place[next(iter(s.at))])
    for i, s in enumerate(found):
        s.name = f"sequence{i + 1}/tokens"
    return found


def _sampled(nodes: dict[str, Node], units: int) -> dict[str, Layout]:
    """Values that have the samples of arguments in order, and where; outermost in their axis."""
    found = {n: Layout(0, 1, 1) for n, node in nodes.items() if node.kind == INPUT and _shape(node)[:1] == (units,)}
    for name, node in nodes.items():
        cut = [r for r in dict.fromkeys(node.refs()) if r in found] if node.kind in (OP, ALIAS) else []
        for at in [Layout(a, 1, n // units) for a, n in enumerate(_shape(node)) if n % units == 0] if cut else ():
            try:
                needs = sample_needs(node, at, units, nodes)
            except Refused:
                continue
            others = [n for n, layout in needs.items() if layout is not None and n not in found]
            if all(needs.get(r) == found[r] for r in cut) and all(isinstance(nodes[n].meta, Meta) for n in others):
                found[name] = at
                break
    return {n: at for n, at in found.items() if nodes[n].kind != INPUT}


def find_batch(nodes: dict[str, Node]) -> list[TokenStrip]:
    """The samples of all arguments that have as many, or nothing."""
    firsts = [_shape(n)[0] for n in nodes.values() if n.kind == INPUT and _shape(n)]
    if not firsts or len(set(firsts)) > 1 or firsts[0] < 2:
        return []
    at = _sampled(nodes, firsts[0])
    done = {n: flops.of_node(node, nodes) for n, node in nodes.items() if node.kind == OP}
    if not at or sum(w for n, w in done.items() if n in at) < (1 - _FEW) * sum(done.values()):
        return []
    return [TokenStrip("network/batch", firsts[0], at, "batch", "samples")]


class _TokenWriter:
    def __init__(self, nodes: dict[str, Node], strips: Iterable[tuple[TokenStrip, list[int]]], names: Mapping[str, str]) -> None:
        self.nodes, self.w = nodes, _Writer(nodes, names)
        self.cut = {n: (s, sizes) for s, sizes in strips for n in s.at}
        self.products: dict[str, list[str]] = {}  # by what they read, those that are cut between rows
        for n in self.cut:
            known = product(nodes[n], nodes)
            if known and self.cut[n][0].at[n].axis < len(_shape(nodes[n])) - 1:
                self.products.setdefault(known[0].name, []).append(n)

    def write(self, results: Iterable[Any]) -> dict[str, Node]:
        for name, node in self.nodes.items():
            if name in self.cut:
                for k in range(len(self.cut[name][1])):
                    self.piece(node, k)
                continue
            for r in node.refs():
                self.whole(r)
            self.w.out[name] = node
            node.named = self.w.names.get(name, "")
        for leaf in results:
            if isinstance(leaf, Ref):
                self.whole(leaf.name)
        return self.w.out

    @staticmethod
    def suffix(k: int, sizes: list[int]) -> str:
        return f"_t{k + 1}of{len(sizes)}"

    def piece(self, node: Node, k: int) -> None:
        s, sizes = self.cut[node.name]
        p, suffix = Piece(s.units, sum(sizes[:k]), sizes[k]), self.suffix(k, sizes)
        at = s.at[node.name]
        label = f"{k + 1} of {len(sizes)}, {sizes[k]} of {s.units} {s.unit}"
        if f"{node.name}{suffix}" in self.w.out or self.one_product(node, s, suffix, label):
            return
        needs = s.needs(node, self.nodes)
        target, args, kwargs = piece_call(node, at, p, self.nodes)
        causal = _causal(node) and s.kind == "tokens"

        def change(leaf: Any) -> Any:
            if not isinstance(leaf, Ref):
                return leaf
            layout = needs.get(leaf.name)
            if layout is not None and s.at.get(leaf.name) == layout:
                return Ref(f"{leaf.name}{suffix}")
            if layout is not None:
                return self.w.slice_of(self.whole(leaf.name), layout, p, node)
            return self.up_to(leaf.name, p, k, causal and leaf.name in (node.args[1].name, node.args[2].name))

        args, kwargs = substitute(tuple(args), change), substitute(dict(kwargs), change)
        if causal and p.first:
            args, kwargs = args[:3], {**kwargs, "is_causal": False, "attn_mask": self.mask(node, args, p)}
        self.w.add(f"{node.name}{suffix}", target, node, label, *args, **kwargs)

    def one_product(self, node: Node, s: TokenStrip, suffix: str, label: str) -> bool:
        """Products of a piece that read the same are one, where there are several."""
        known = product(node, self.nodes)
        x = known[0].name if known else ""
        like = [n for n in self.products.get(x, ()) if s.at.get(n) == s.at[node.name]] if x in s.at else []
        names = self.w.siblings(node.name, like) if node.name in like else []
        if len(names) < 2 or any(s.needs(self.nodes[n], self.nodes).get(x) != s.at[x] for n in names):
            return False
        parts = [product(self.nodes[n], self.nodes) for n in names]
        weights, biases = [q[1] for q in parts], [q[2] for q in parts if q[2]]  # type: ignore[index]
        if any(r.name not in self.w.out for r in [*weights, *biases]):
            return False
        self.w.joined(names, Ref(f"{x}{suffix}"), weights, biases, f"{names[0]}_and_others", suffix, label)
        return True

    def up_to(self, name: str, p: Piece, k: int, causal: bool) -> Ref:
        """All tokens of a value, for one piece: each puts together its own, so that none waits for another's. Causal:
        those up to its own."""
        if name not in self.cut:
            part = Ref(name)
            axis, end = len(_shape(self.nodes[name])) - 2, p.first + p.size
            if not causal or end >= p.units or self.nodes[name].meta.shape[axis] != p.units:
                return part
            return self.w.add(f"{name}_to_{end}", "aten.slice.Tensor", self.nodes[name], "", part, axis, 0, end)
        s, sizes = self.cut[name]
        pieces = range(k + 1 if causal else len(sizes))
        if len(pieces) == 1:
            return Ref(f"{name}{self.suffix(0, sizes)}")
        return self.join(f"{name}_for{k + 1}of{len(sizes)}", name, pieces, f", {k + 1}")

    def join(self, made: str, name: str, pieces: Iterable[int], label: str) -> Ref:
        (s, sizes), node = self.cut[name], self.nodes[name]
        at, numbers = s.at[name], list(pieces)
        parts = [Ref(f"{name}{self.suffix(k, sizes)}") for k in numbers]
        if at.outer == 1:
            return self.w.add(made, "aten.cat.default", node, f"{len(parts)} joined{label}", parts, at.axis)
        shape = list(_shape(node))
        apart = []
        for part, k in zip(parts, numbers):
            size = [*shape[: at.axis], at.outer, sizes[k] * at.inner, *shape[at.axis + 1 :]]
            apart.append(self.w.add(f"{part.name}_apart", "aten.reshape.default", node, "", part, size))
        whole = self.w.add(f"{made}_apart", "aten.cat.default", node, f"{len(parts)} joined{label}", apart, at.axis + 1)
        shape[at.axis] = at.length(sum(sizes[k] for k in numbers))
        return self.w.add(made, "aten.reshape.default", node, "", whole, shape)

    def whole(self, name: str) -> Ref:
        """For somebody who is in no piece."""
        if name in self.cut and name not in self.w.out:
            s, sizes = self.cut[name]
            if isinstance(self.nodes[name].meta, tuple):
                raise Refused(f"'{name}' is several tensors")
            self.join(name, name, range(len(sizes)), "")
        return Ref(name)

    def mask(self, node: Node, args: Any, p: Piece) -> Ref:
        """What queries of a piece that is not the first may see of the keys up to its end: constant."""
        q, keys = self.w.out[args[0].name].meta, self.w.out[args[1].name].meta.shape[-2]
        name = f"causal_{p.first}_{p.size}_{keys}_{str(q.dtype).rpartition('.')[2]}"
        kind = {"dtype": q.dtype, "device": torch.device("cpu")}  # that of whoever makes it
        full = self.w.add(f"{name}_full", "aten.full.default", node, "", [p.size, keys], float("-inf"), **kind)
        return self.w.add(name, "aten.triu.default", node, "", full, p.first + 1)


def apply_tokens(
    nodes: dict[str, Node], strips: list[TokenStrip], results: list[Any], items: list[Cut], names: Mapping[str, str]
) -> dict[str, Node]:
    """New nodes of the same results, in which these strips are in pieces."""
    chosen = match([s.strip(nodes) for s in strips], items)
    cut = [(s, chosen[s.name].sizes(s.name, s.units, s.unit)) for s in strips if s.name in chosen]
    return _TokenWriter(nodes, [(s, sizes) for s, sizes in cut if len(sizes) > 1], names).write(results)
