"""Operators of a captured network cut into unequal pieces: strips, and the network that pieces make (docs/shard.md).

A strip ends in a product whose rows are cut, and a sum. From there rules (cut_rules.py) lead back to products whose
columns are cut: queries, keys and values, the first product of a feed-forward block and its gate. Inside no tensor
crosses between pieces. The units are the largest number that carries through: columns, else heads, else groups of heads
that share keys and values. What others read, too, stays outside of the strip: pieces read slices of it, which are views.
Products in no strip are strips of their own, whose columns are put together.
"""

from __future__ import annotations

import fnmatch
import math
from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping

import torch

from .._lib import UsageError
from .cut_rules import Layout, Piece, Refused, base_name, needs_of, piece_call
from .cut_text import Cut
from .ir import CONST, INPUT, WEIGHT, Meta, Node, Ref, call, substitute
from .rows import RowStrip, RowWriter, find_rows

# Where a product has its weight and bias, and which axes of the weight are columns and rows of the product.
_PRODUCTS = {
    "aten.linear.default": (0, 1, 2, 0, 1),
    "aten.addmm.default": (1, 2, 0, 1, 0),
    "aten.mm.default": (0, 1, None, 1, 0),
    "aten.matmul.default": (0, 1, None, 1, 0),
}
_OPTIONAL = "add sub mul div where masked_fill maximum minimum pow scaled_dot_product_attention".split()
ALTERNATIVES = ("heads", "rows", "tokens", "batch")  # kinds that overlap others: cut where they are asked for by name
_MOST = 400  # operators of a strip: more is no layer
_MOST_SHAPES = 20_000
_shapes: dict[str, Any] = {}  # call -> what its results are like


@dataclass
class Strip:
    """Operators that are cut the same way; `units` are what sizes count."""

    name: str
    kind: str
    unit: str
    units: int
    end: str  # the product whose rows are cut, or (linear) the one whose columns are
    cut: dict[str, Layout] = field(default_factory=dict)  # values that pieces have of their own
    sources: list[str] = field(default_factory=list)  # of these, products whose columns are cut
    sliced: dict[str, Layout] = field(default_factory=dict)  # values that pieces read slices of
    alike: Any = None  # equal for strips that are alike


def product(node: Node, nodes: Mapping[str, Node]) -> tuple[Ref, Ref, Ref | None, int, int] | None:
    """Input, weight, bias, and the weight's axes of columns and rows; None: no product with weights."""
    where = _PRODUCTS.get(node.target)
    if where is None or node.kwargs:
        return None
    args: list[Any] = [None if i is None or i >= len(node.args) else node.args[i] for i in where[:3]]
    x, weight, bias = args
    if not isinstance(x, Ref) or not isinstance(weight, Ref) or not (bias is None or isinstance(bias, Ref)):
        return None
    constant = all(nodes[r.name].kind in (WEIGHT, CONST) for r in (weight, bias) if r is not None)
    if not constant or nodes[x.name].kind in (WEIGHT, CONST) or len(nodes[weight.name].meta.shape) != 2:
        return None
    return x, weight, bias, where[3], where[4]


def unique_name(path: str, kind: str, used: dict[str, int]) -> str:
    """The kind comes last, so that patterns find it."""
    plain = f"{path}/{kind}" if path else kind
    used[plain] = used.get(plain, 0) + 1
    return plain if used[plain] == 1 else f"{path or 'network'}#{used[plain]}/{kind}"


class _Finder:
    def __init__(self, nodes: dict[str, Node], results: Iterable[Any]) -> None:
        self.nodes = nodes
        self.readers: dict[str, list[str]] = {n: [] for n in nodes}
        for node in nodes.values():
            for r in node.refs():
                self.readers[r].append(node.name)
        self.wanted = {r.name for r in results if isinstance(r, Ref)}
        self.taken: set[str] = set()
        self.names: dict[str, int] = {}

    def find(self) -> list[Strip]:
        ends = [n for n in self.nodes.values() if product(n, self.nodes)]
        found = []
        for node in ends:
            strip = None if node.name in self.taken else self.strip_of(node)
            if strip:
                self.taken |= {*strip.cut, strip.end}
                found.append(strip)
        for node in ends:
            columns = node.meta.shape[-1]
            if node.name not in self.taken and columns > 1:
                at = Layout(len(node.meta.shape) - 1, 1, 1)
                alike = ("linear", node.target, node.meta.shape, tuple(self.nodes[r].meta.shape for r in node.refs()))
                found.append(Strip(self.name("linear", [node.path]), "linear", "columns", columns, node.name,
                                   {node.name: at}, [node.name], {}, alike))  # fmt: skip
        place = {n: i for i, n in enumerate(self.nodes)}
        return sorted(found, key=lambda s: place[s.end])

    def name(self, kind: str, paths: list[str]) -> str:
        parts = [p.split(".") for p in paths]
        shared = []
        for words in zip(*parts):
            if len(set(words)) > 1:
                break
            shared.append(words[0])
        return unique_name(".".join(shared), kind, self.names)

    def sizes(self, name: str, features: int) -> list[int]:
        """Numbers of units worth a try, the largest first: all features, else an axis on the way to the products."""
        seen, todo, found = set(), [name], {features}
        while todo and len(seen) < _MOST:
            node = self.nodes[todo.pop()]
            if node.name in seen or node.kind in (WEIGHT, CONST, INPUT):
                continue
            seen.add(node.name)
            for meta in node.meta if isinstance(node.meta, tuple) else (node.meta,):
                found |= {d for d in meta.shape if 1 < d < features and features % d == 0} if meta else set()
            if not product(node, self.nodes):
                todo += node.refs()
        return sorted(found, reverse=True)

    def strip_of(self, end: Node) -> Strip | None:
        x = product(end, self.nodes)[0]  # type: ignore[index]
        shape = self.nodes[x.name].meta.shape
        for units in self.sizes(x.name, shape[-1]):
            blocked: set[str] = set()
            while units > 1:
                grown = _Growth(self, units, blocked)
                try:
                    grown.need(x.name, Layout(len(shape) - 1, 1, shape[-1] // units))
                except Refused:
                    break
                outside = self.read_outside(grown.cut, end.name)
                if not outside:
                    return self.made(end, units, grown) if grown.sources else None
                blocked |= outside
        return None

    def read_outside(self, cut: Mapping[str, Layout], end: str) -> set[str]:
        return {n for n in cut if n in self.wanted or any(r not in cut and r != end for r in self.readers[n])}

    def made(self, end: Node, units: int, grown: _Growth) -> Strip:
        order = [n for n in self.nodes if n in grown.cut]
        kinds = {base_name(self.nodes[n].target) for n in order}
        attends = bool(kinds & {"scaled_dot_product_attention", "softmax", "_softmax"})
        inner = [grown.cut[n].inner for n in order if base_name(self.nodes[n].target) == "scaled_dot_product_attention"]
        unit = "columns" if not attends else "head groups" if any(i > 1 for i in inner) else "heads"
        kind = "attention" if attends else "mlp"
        paths = [self.nodes[n].path for n in [*grown.sources, end.name]]
        metas = tuple((self.nodes[n].target, repr(self.nodes[n].meta)) for n in [*order, end.name])
        cut = {n: grown.cut[n] for n in order}
        name = self.name(kind, paths)
        return Strip(name, kind, unit, units, end.name, cut, grown.sources, grown.sliced, (units, metas))


class _Growth:
    """One try: from the input of the last product back."""

    def __init__(self, finder: _Finder, units: int, blocked: set[str]) -> None:
        self.f, self.units, self.blocked = finder, units, blocked
        self.cut: dict[str, Layout] = {}
        self.sources: list[str] = []
        self.sliced: dict[str, Layout] = {}

    def need(self, name: str, at: Layout) -> None:
        node = self.f.nodes[name]
        if node.kind in (WEIGHT, CONST):
            if self.sliced.setdefault(name, at) != at:
                raise Refused(f"'{name}' is cut in two ways")
            return
        if self.cut.get(name, at) != at:
            raise Refused(f"'{name}' is cut in two ways")
        if name in self.cut:
            return
        if node.kind == INPUT or name in self.blocked or name in self.f.taken or len(self.cut) > _MOST:
            raise Refused(f"'{name}' is needed whole")
        self.cut[name] = at
        if product(node, self.f.nodes) and at.axis == len(node.meta.shape) - 1:
            self.sources.append(name)
            return
        self.arguments(node, at)

    def arguments(self, node: Node, at: Layout) -> None:
        """Of what works element by element one argument has to be cut all the way; others may be sliced."""
        needs = {n: a for n, a in needs_of(node, at, self.units, self.f.nodes).items() if a is not None}
        optional = set(needs) if base_name(node.target) in _OPTIONAL and len(needs) > 1 else set()
        if base_name(node.target) == "scaled_dot_product_attention":
            optional -= {a.name for a in node.args[:3]}
        reached = 0
        for name, layout in needs.items():
            before = dict(self.cut), list(self.sources), dict(self.sliced)
            try:
                self.need(name, layout)
                reached += 1
            except Refused:
                if name not in optional or layout.outer != 1 or isinstance(self.f.nodes[name].meta, tuple):
                    raise
                self.cut, self.sources, self.sliced = before
                self.sliced[name] = layout
        if needs and not reached:
            raise Refused(f"nothing that '{node.name}' reads can be cut")


def find_strips(nodes: dict[str, Node], results: Iterable[Any]) -> list[Strip]:
    """All strips of classified nodes, in the order in which they end."""
    return _Finder(nodes, results).find()


def match(strips: list[Strip], items: Iterable[Cut]) -> dict[str, Cut]:
    """Strip -> its cut: the last item that matches counts. UsageError for a pattern that matches nothing."""
    found: dict[str, Cut] = {}
    for item in items:
        hit = [s for s in strips if fnmatch.fnmatchcase(s.name, item.pattern)]
        if not hit:
            known = ", ".join(s.name for s in strips[:6]) or "none"
            raise UsageError(f'cut "{item.pattern}": no strip of that name; there are {known}')
        for s in hit:
            found[s.name] = item
    return found


def apply_cuts(
    nodes: dict[str, Node], strips: list[Strip], items: Iterable[Cut], names: Mapping[str, str]
) -> tuple[dict[str, Node], dict[str, int]]:
    """New nodes of the same results; `strips` are what there is to cut, `names` those of the operators whole, by node. Of
    strips whose sums every piece makes for itself, also which nodes are of which piece."""
    chosen = match(strips, items)
    sizes = {s.name: chosen[s.name].sizes(s.name, s.units, s.unit) for s in strips if s.name in chosen}
    writer = _Writer(nodes, names)
    ends = {s.end: s for s in strips if len(sizes.get(s.name, ())) > 1}
    gone = {n for s in ends.values() for n in s.cut}
    for node in nodes.values():
        if node.name in ends:
            strip = ends[node.name]
            writer.strip(strip, sizes[strip.name], chosen[strip.name].sum)
        elif node.name not in gone:
            writer.out[node.name] = node
            node.named = names.get(node.name, "")
    return writer.out, writer.piece_of


def apply_rows(
    nodes: dict[str, Node], results: list[Any], items: list[Cut], names: Mapping[str, str]
) -> dict[str, Node]:
    """New nodes of the same results, in which strips of rows are in pieces."""
    strips = row_strips(nodes, results)
    chosen = match([s for s, _ in strips], items)
    writer = _Writer(nodes, names)
    rows = RowWriter(nodes, writer)
    cut = {r.nodes[-1]: (s, r) for s, r in strips if s.name in chosen}
    gone = {n for _, r in cut.values() for n in r.nodes}
    todo = [n for n in nodes if n not in gone or n in cut]
    while todo:  # what reads a strip may come before the strip's end
        later = []
        for name in todo:
            inside = cut[name][1].nodes if name in cut else [name]
            if any(r not in writer.out and r not in rows.there and r not in inside for n in inside for r in nodes[n].refs()):
                later.append(name)
            elif name in cut:
                strip, run = cut[name]
                rows.strip(run, chosen[strip.name].sizes(strip.name, strip.units, strip.unit))
            else:
                for r in nodes[name].refs():
                    rows.whole(r)
                writer.out[name] = nodes[name]
                nodes[name].named = names.get(name, "")
        assert len(later) < len(todo)
        todo = later
    for leaf in results:
        if isinstance(leaf, Ref):
            rows.whole(leaf.name)
    return writer.out


def row_strips(nodes: dict[str, Node], results: Iterable[Any]) -> list[tuple[Strip, RowStrip]]:
    found = find_rows(nodes, results)
    return [(Strip(r.name, "rows", "rows", r.units, r.nodes[-1], alike=r.alike), r) for r in found]


class _Writer:
    def __init__(self, nodes: dict[str, Node], names: Mapping[str, str]) -> None:
        self.nodes, self.names = nodes, names
        self.out: dict[str, Node] = {}
        self.piece_of: dict[str, int] = {}  # of strips with sums of the kind "every"

    def add(self, name: str, target: str, like: Node, label: str, *args: Any, **kwargs: Any) -> Ref:
        """A node, unless it was made before; its shape is found by running it on tensors without content."""
        if name not in self.out:
            plain = self.names.get(like.name) or f"{like.path}/{base_name(target)}"
            node = Node(name, "op", target, args, kwargs, path=like.path, named=f"{plain} ({label})" if label else "")
            node.meta = self.meta_of(node)
            self.out[name] = node
        return Ref(name)

    def meta_of(self, node: Node) -> Any:
        """Layers are alike, and a network is cut many times: equal calls are looked at once."""

        def change(leaf: Any) -> Any:
            return ("ref", self.out[leaf.name].meta) if isinstance(leaf, Ref) else leaf

        key = repr((node.target, substitute(node.args, change), substitute(node.kwargs, change)))
        if key not in _shapes:
            env: dict[str, Any] = {}
            for r in node.refs():
                meta = self.out[r].meta
                env[r] = tuple(m.empty("meta") for m in meta) if isinstance(meta, tuple) else meta.empty("meta")
            made = call(node, env, torch.device("meta"))
            if len(_shapes) >= _MOST_SHAPES:
                _shapes.clear()
            _shapes[key] = Meta.of(made) if isinstance(made, torch.Tensor) else tuple(Meta.of(t) for t in made)
        return _shapes[key]

    def slice_of(self, ref: Ref, at: Layout, p: Piece, like: Node) -> Ref:
        """Some units of a value: a view, and of a weight memory of its own, so that the rest of it is not held."""
        name = f"{ref.name}_{at.axis}_{at.outer}_{p.first * at.inner}_{p.size * at.inner}"
        shape = list(self.out[ref.name].meta.shape)
        whole, axis = ref, at.axis
        if at.outer > 1:
            apart = [*shape[:axis], at.outer, p.units, at.inner, *shape[axis + 1 :]]
            whole = self.add(f"{ref.name}_{axis}_{at.outer}_apart", "aten.reshape.default", like, "", ref, apart)
            part = self.add(f"{name}_cut", "aten.slice.Tensor", like, "", whole, axis + 1, p.first, p.first + p.size)
            shape[axis] = at.length(p.size)
            part = self.add(f"{name}_flat", "aten.reshape.default", like, "", part, shape)
        else:
            first = p.first * at.inner
            part = self.add(f"{name}_cut", "aten.slice.Tensor", like, "", ref, axis, first, first + p.size * at.inner)
        if self.nodes[ref.name].kind not in (WEIGHT, CONST):
            return part
        return self.add(name, "aten.clone.default", like, "", part, memory_format=torch.contiguous_format)

    def strip(self, s: Strip, sizes: list[int], how: str) -> None:
        firsts = [sum(sizes[:k]) for k in range(len(sizes))]
        end, results = self.nodes[s.end], []
        for k, (first, size) in enumerate(zip(firsts, sizes)):
            p = Piece(s.units, first, size)
            label, suffix = f"{k + 1} of {len(sizes)}, {size} of {s.units} {s.unit}", f"_{k + 1}of{len(sizes)}"
            before = len(self.out)
            made = self.piece(s, p, suffix, label)
            results.append(made[s.end] if s.kind == "linear" else self.rows(s, p, made, suffix, label, k))
            if how == "every":
                self.piece_of.update(dict.fromkeys(list(self.out)[before:], k))
        whole = self.names.get(s.end, "")
        if s.kind == "linear":
            self.add(s.end, "aten.cat.default", end, f"{len(sizes)} joined", results, -1)
        else:
            self.sum(end, results, how)
        self.out[s.end].named = self.out[s.end].named or whole

    def sum(self, end: Node, parts: list[Ref], how: str) -> None:
        number = 0
        while len(parts) > 1:
            last = len(parts) == 2
            number += 1
            name, label = (end.name, "sum") if last else (f"{end.name}_sum{number}", f"sum {number}")
            made = self.add(name, "aten.add.Tensor", end, label, parts[0], parts[1])
            parts = [*parts[2:], made] if how == "tree" else [made, *parts[2:]]

    def piece(self, s: Strip, p: Piece, suffix: str, label: str) -> dict[str, Ref]:
        """Everything before the last product."""
        made: dict[str, Ref] = {}
        for name, at in s.cut.items():
            node = self.nodes[name]
            if name in s.sources:
                if name not in made:
                    made.update(self.columns(s, self.siblings(name, s.sources), p, suffix, label))
                continue
            needs = needs_of(node, at, s.units, self.nodes)
            target, args, kwargs = piece_call(node, at, p, self.nodes)

            def change(leaf: Any) -> Any:
                if not isinstance(leaf, Ref):
                    return leaf
                if leaf.name in made:
                    return made[leaf.name]
                layout = needs.get(leaf.name)
                return leaf if layout is None else self.slice_of(leaf, layout, p, node)

            args, kwargs = substitute(args, change), substitute(dict(kwargs), change)
            made[name] = self.add(f"{name}{suffix}", target, node, label, *args, **kwargs)
        return made

    def siblings(self, name: str, among: Iterable[str]) -> list[str]:
        """Products that read the same: queries, keys and values, a gate and what it gates."""

        def reads(other: str) -> Any:
            x, weight, bias, out_axis, _ = product(self.nodes[other], self.nodes)  # type: ignore[misc]
            return x, self.nodes[other].target, out_axis, bias is None, self.nodes[weight.name].meta.dtype

        own = reads(name)
        return [n for n in among if reads(n) == own]

    def columns(self, s: Strip, names: list[str], p: Piece, suffix: str, label: str) -> dict[str, Ref]:
        """Columns of products that read the same."""
        weights, biases = [], []
        for name in names:
            _, weight, bias, out_axis, _ = product(self.nodes[name], self.nodes)  # type: ignore[misc]
            at = s.cut[name]
            weights.append(self.slice_of(weight, Layout(out_axis, at.outer, at.inner), p, self.nodes[name]))
            biases += [] if bias is None else [self.slice_of(bias, Layout(0, at.outer, at.inner), p, self.nodes[name])]
        x = product(self.nodes[names[0]], self.nodes)[0]  # type: ignore[index]
        return self.joined(names, x, weights, biases, f"{names[0]}{suffix}", suffix, label)

    def joined(self, names: list[str], x: Ref, weights: list[Ref], biases: list[Ref], made_as: str, suffix: str,
               label: str) -> dict[str, Ref]:  # fmt: skip
        """Products that read the same as one product, and views of its result: few columns, or few rows, are too few
        tiles for a device to be busy with, three times as many are not. `made_as` is what their weights are called."""
        first = self.nodes[names[0]]
        out_axis = product(first, self.nodes)[3]  # type: ignore[index]
        if len(names) == 1:
            return {names[0]: self.product(first, x, weights[0], biases[0] if biases else None, suffix, label)}
        sizes = [self.out[w.name].meta.shape[out_axis] for w in weights]
        weight = self.add(f"{made_as}_weights", "aten.cat.default", first, "", weights, out_axis)
        own = self.add(f"{made_as}_biases", "aten.cat.default", first, "", biases, 0) if biases else None
        whole = self.product(first, x, weight, own, f"{suffix}_joined", label)
        called = [self.names.get(n, n) for n in names]
        self.out[whole.name].named = f"{called[0]}+{'+'.join(c.rpartition('.')[2] for c in called[1:])} ({label})"
        self.out[whole.name].members = tuple(f"{c} ({label})" for c in called)
        last, made = len(first.meta.shape) - 1, {}
        for name, begin, size in zip(names, (sum(sizes[:k]) for k in range(len(sizes))), sizes):
            made[name] = self.add(f"{name}{suffix}", "aten.slice.Tensor", first, "", whole, last, begin, begin + size)
        return made

    def rows(self, s: Strip, p: Piece, made: dict[str, Ref], suffix: str, label: str, k: int) -> Ref:
        """A summand of the last product; the first one has the bias."""
        node = self.nodes[s.end]
        x, weight, bias, _, in_axis = product(node, self.nodes)  # type: ignore[misc]
        inner = self.nodes[x.name].meta.shape[-1] // s.units
        part = self.slice_of(weight, Layout(in_axis, 1, inner), p, node)
        return self.product(node, made[x.name], part, bias if k == 0 else None, suffix, label)

    def product(self, node: Node, x: Ref, weight: Ref, bias: Ref | None, suffix: str, label: str) -> Ref:
        name, target = f"{node.name}{suffix}", node.target
        if target == "aten.addmm.default" and bias is None:
            return self.add(name, "aten.mm.default", node, label, x, weight)
        if target == "aten.addmm.default":
            return self.add(name, target, node, label, bias, x, weight)
        return self.add(name, target, node, label, x, weight, *([] if bias is None else [bias]))


def work(strip: Strip, nodes: Mapping[str, Node]) -> float:
    """Products of a strip, in multiplications: what makes one worth a cut. Where biases are sums of their own, the product
    has another name (fold.py)."""
    return sum(work_of(nodes.get(f"{name}_product", nodes[name]), nodes) for name in {*strip.sources, strip.end})


def work_of(node: Node, nodes: Mapping[str, Node]) -> float:
    """Of one product."""
    weight = product(node, nodes)[1]  # type: ignore[index]
    return float(math.prod(node.meta.shape[:-1]) * math.prod(nodes[weight.name].meta.shape))
