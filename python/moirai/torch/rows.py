"""Runs of convolutions cut by rows of the image (docs/shard.md).

Pieces have whole weights and some rows of every image. From what leaves a strip each piece goes back to the rows that
its own need, those under its windows included: rows near a cut are made on both sides of it, and no piece waits for
another inside of a strip. A window's operator runs with the padding that it has; what it makes of padding that is not the
image's end is left out by a view. A strip ends where that would be too much twice, and where somebody needs all rows; the
next one takes rows from the pieces before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping

from .cut_rules import _ELEMENTWISE, base_name
from .ir import ALIAS, OP, Meta, Node, Ref, substitute

_REACH = 1 / 12  # of the image's height that windows may reach to one side: in four pieces a quarter is made twice


@dataclass(frozen=True)
class Window:
    """Rows of a result from rows of the first argument."""

    size: int = 1
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    up: int = 1  # rows of the result from one of the argument

    def reads(self, first: int, last: int, height: int) -> tuple[int, int, int]:
        """For rows [first, last) of the result: rows of the argument that are given, and the result's first row then."""
        if self.up > 1:
            return first // self.up, -(-last // self.up), first // self.up * self.up
        begin = max(first * self.stride - self.padding, 0) // self.stride * self.stride
        end = (last - 1) * self.stride - self.padding + self.dilation * (self.size - 1) + 1
        return begin, min(max(end, begin + 1), height), begin // self.stride


@dataclass
class RowStrip:
    name: str
    nodes: list[str]
    leaving: list[str]  # read outside of it
    units: int
    alike: Any = None


@dataclass
class Rows:
    """Some rows of a value, as they are there."""

    ref: Ref
    first: int
    last: int


def _pair(value: Any, at: int = 0) -> int:
    return int(value[at] if isinstance(value, (list, tuple)) and value else value if isinstance(value, int) else 0)


def _arg(node: Node, place: int, default: Any) -> Any:
    return node.args[place] if len(node.args) > place else default


def _height(node: Node) -> int:
    """0: no image."""
    return node.meta.shape[2] if isinstance(node.meta, Meta) and len(node.meta.shape) == 4 else 0


def window(node: Node, nodes: Mapping[str, Node]) -> Window | None:
    """What rows of its result need of its first argument; None: it can't be cut by rows. What works element by element
    needs the same rows of everything."""
    if node.kind not in (OP, ALIAS) or _height(node) < 2 or node.kwargs or not node.refs():
        return None
    kind, x = base_name(node.target), nodes[node.refs()[0]]
    if kind in _ELEMENTWISE and all(_same(nodes[r], node) for r in node.refs()):
        return Window()
    if not _height(x):
        return None
    if node.target in ("aten.conv2d.default", "aten.convolution.default"):
        if node.target == "aten.convolution.default" and _arg(node, 6, False):
            return None
        size = nodes[node.args[1].name].meta.shape[2]
        return Window(size, *(_pair(_arg(node, i, d)) for i, d in ((3, 1), (4, 0), (5, 1))))
    if kind == "max_pool2d" and not _arg(node, 5, False):
        size = _pair(node.args[1])
        return Window(size, _pair(_arg(node, 2, 0)) or size, _pair(_arg(node, 3, 0)), _pair(_arg(node, 4, 1)))
    if kind == "avg_pool2d" and not _arg(node, 4, False):
        size = _pair(node.args[1])
        return Window(size, _pair(_arg(node, 2, 0)) or size, _pair(_arg(node, 3, 0)))
    if kind == "batch_norm" or (kind == "cat" and _arg(node, 1, 0) in (1, -3)):
        return Window()
    if node.target == "aten.upsample_nearest2d.vec" and _arg(node, 2, None) and _height(node) % _height(x) == 0:
        return Window(up=_height(node) // _height(x))
    return None


def _same(given: Node, node: Node) -> bool:
    """Rows of it are rows of the result, or all of them see the same."""
    shape = given.meta.shape if isinstance(given.meta, Meta) else (0, 0, 0, 0, 0)
    return len(shape) <= 4 and (len(shape) < 2 or shape[-2] == 1 or (len(shape) == 4 and shape[2] == node.meta.shape[2]))


def cut_arguments(node: Node, nodes: Mapping[str, Node]) -> list[str]:
    """Arguments of which a piece reads rows; others are read whole."""
    if base_name(node.target) in _ELEMENTWISE:
        return [r for r in dict.fromkeys(node.refs()) if _height(nodes[r]) == _height(node)]
    return list(dict.fromkeys(node.refs() if base_name(node.target) == "cat" else node.refs()[:1]))


@dataclass
class _Finder:
    nodes: dict[str, Node]
    stage: dict[str, int] = field(default_factory=dict)
    reach: dict[str, float] = field(default_factory=dict)

    def look(self) -> None:
        """Stages: a node is in that of what it reads, or the one after it where that is no image any more, or where
        windows would reach too far."""
        for name, node in self.nodes.items():
            found = window(node, self.nodes)
            before = [r for r in node.refs() if r in self.stage]
            stage = max((self.stage[r] + (found is not None and r not in self.reach) for r in before), default=0)
            self.stage[name] = stage
            if found is None:
                continue
            inner = [r for r in before if r in self.reach and self.stage[r] == stage]
            own = found.dilation * (found.size - 1) / 2 / max(_height(self.nodes[node.refs()[0]]), 1)
            reach = max((self.reach[r] for r in inner), default=0.0) + own
            if reach > _REACH and inner:
                self.stage[name], reach = stage + 1, own
            self.reach[name] = reach


def _parts(finder: _Finder) -> list[list[str]]:
    """Nodes of a stage that hang together, in order."""
    home: dict[str, int] = {}
    groups: dict[int, list[str]] = {}
    for i, name in enumerate(finder.nodes):
        if name not in finder.reach:
            continue
        near = {home[r] for r in finder.nodes[name].refs() if r in home and finder.stage[r] == finder.stage[name]}
        keep = min(near, default=i)
        for other in near - {keep}:
            groups[keep] += groups.pop(other)
            home.update(dict.fromkeys(groups[keep], keep))
        groups.setdefault(keep, []).append(name)
        home[name] = keep
    place = {n: i for i, n in enumerate(finder.nodes)}
    return [sorted(g, key=place.__getitem__) for _, g in sorted(groups.items())]


def find_rows(nodes: dict[str, Node], results: Iterable[Any]) -> list[RowStrip]:
    """Strips of classified nodes that have convolutions, in order."""
    finder = _Finder(nodes)
    finder.look()
    readers: dict[str, list[str]] = {n: [] for n in nodes}
    for node in nodes.values():
        for r in node.refs():
            readers[r].append(node.name)
    wanted = {r.name for r in results if isinstance(r, Ref)}
    found: list[RowStrip] = []
    for names in _parts(finder):
        inside = set(names)
        leaving = [n for n in names if n in wanted or any(r not in inside for r in readers[n])]
        units = min((_height(nodes[n]) for n in leaving), default=0)
        if units > 1 and any("conv" in nodes[n].target for n in names):
            alike = tuple((nodes[n].target, repr(nodes[n].meta)) for n in names)
            found.append(RowStrip(f"image{len(found) + 1}/rows", names, leaving, units, alike))
    return found


class RowWriter:
    """Writes the network in which strips are in pieces. `writer` makes nodes (cuts.py)."""

    def __init__(self, nodes: dict[str, Node], writer: Any) -> None:
        self.nodes, self.w = nodes, writer
        self.there: dict[str, list[Rows]] = {}  # values of strips that were cut, by piece

    def slice(self, rows: Rows, first: int, last: int, like: Node) -> Ref:
        if (first, last) == (rows.first, rows.last):
            return rows.ref
        name, begin = f"{rows.ref.name}_{first}_{last}", first - rows.first
        return self.w.add(name, "aten.slice.Tensor", like, "", rows.ref, 2, begin, begin + last - first)  # type: ignore[no-any-return]

    def rows(self, name: str, first: int, last: int, like: Node, k: int) -> Rows:
        """Rows of what a piece reads: of the pieces of a strip before it, or of a whole value. The piece of the same
        number has them all, or most of them."""
        pieces = self.there.get(name)
        if pieces is None or name in self.w.out:
            return Rows(self.slice(Rows(Ref(name), 0, _height(self.nodes[name])), first, last, like), first, last)
        for piece in [*pieces[k : k + 1], *pieces]:
            if piece.first <= first and last <= piece.last:
                return Rows(self.slice(piece, first, last, like), first, last)
        parts, at = [], first
        while at < last:
            piece = max((p for p in pieces if p.first <= at < p.last), key=lambda p: p.last)
            end = min(piece.last, last)
            parts.append(self.slice(piece, at, end, like))
            at = end
        made = f"{name}_rows_{first}_{last}"
        return Rows(self.w.add(made, "aten.cat.default", like, f"rows {first} to {last}", parts, 2), first, last)

    def whole(self, name: str) -> None:
        """For somebody who needs all rows."""
        if name in self.there and name not in self.w.out:
            node, pieces = self.nodes[name], self.there[name]
            parts, at = [], 0
            for p in pieces:
                if p.last > at:
                    parts.append(self.slice(p, at, p.last, node))
                    at = p.last
            self.w.add(name, "aten.cat.default", node, f"{len(parts)} joined", parts, 2)

    def strip(self, s: RowStrip, sizes: list[int]) -> None:
        made: dict[str, list[Rows]] = {n: [] for n in s.leaving}
        for k, size in enumerate(sizes):
            first = sum(sizes[:k])
            own = {n: (first * h // s.units, (first + size) * h // s.units) for n in s.leaving for h in [_height(self.nodes[n])]}
            label = f"{k + 1} of {len(sizes)}, {size} of {s.units} rows"
            there = self.piece(s, self.needs(s, own), f"_{k + 1}of{len(sizes)}", label, k)
            for n, (a, b) in own.items():
                made[n].append(Rows(self.slice(there[n], a, b, self.nodes[n]), a, b))
        self.there.update(made)

    def needs(self, s: RowStrip, own: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
        """Rows of every value of the strip that a piece makes."""
        inside, found = set(s.nodes), dict(own)
        for name in reversed(s.nodes):
            node = self.nodes[name]
            if name not in found:
                continue
            for r in cut_arguments(node, self.nodes):
                if r in inside:
                    a, b, _ = window(node, self.nodes).reads(*found[name], _height(self.nodes[r]))  # type: ignore[union-attr]
                    known = found.get(r, (a, b))
                    found[r] = (min(a, known[0]), max(b, known[1]))
        return found

    def piece(self, s: RowStrip, needs: Mapping[str, tuple[int, int]], suffix: str, label: str, k: int) -> dict[str, Rows]:
        made: dict[str, Rows] = {}
        for name in (n for n in s.nodes if n in needs):
            node, look = self.nodes[name], window(self.nodes[name], self.nodes)
            assert look is not None
            given, begin = {}, 0
            for r in cut_arguments(node, self.nodes):
                a, b, begin = look.reads(*needs[name], _height(self.nodes[r]))
                there = made[r] if r in made else self.rows(r, a, b, node, k)
                given[r] = self.slice(there, a, b, node)
            for r in node.refs():
                if r not in given:
                    self.whole(r)
            args = substitute(node.args, lambda x: given.get(x.name, x) if isinstance(x, Ref) else x)
            ref = self.w.add(f"{name}{suffix}", node.target, node, label, *args)
            first, last = needs[name]
            there = Rows(ref, begin, begin + self.w.out[ref.name].meta.shape[2])
            made[name] = Rows(self.slice(there, first, last, node), first, last)
        return made
