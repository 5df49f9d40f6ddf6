"""The graph that plans are made of: operators with names that lead back to the module, tensors, and what they cost.

An operator is a call of ATen, or a group of calls that a compiler makes one kernel of (groups.py); `members` are its
calls then. What a group reads of itself is nobody's business; what others read of it, in whatever view, is its outputs.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ..graph import Graph, Op, Tensor
from . import flops
from .ir import CONST, INPUT, OP, WEIGHT, Meta, Node, Ref
from .kinds import is_alias

if TYPE_CHECKING:
    from .capture import Captured

_SHARED_BYTES = 1024  # less than that may as well be counted at each reader, as in src/onnx/onnx_build.c


def operator_names(nodes: dict[str, Node]) -> dict[str, str]:
    """Node -> operator name: the module's path where it makes one operator, else path/operator."""
    ops = [n for n in nodes.values() if n.kind == OP]
    per_path = Counter(n.path for n in ops)
    used: Counter[str] = Counter()
    names: dict[str, str] = {}
    for node in ops:
        if node.named:
            names[node.name] = node.named
            continue
        kind = flops.base_name(node.target)
        label = node.path if node.path and per_path[node.path] == 1 else f"{node.path}/{kind}" if node.path else kind
        used[label] += 1
        names[node.name] = label if used[label] == 1 else f"{label}.{used[label]}"
    taken = Counter(names.values())
    for key, label in names.items():  # a path/op.2 that meets a module of that very name
        if taken[label] > 1:
            names[key] = f"{label}#{key}"
    return names


def make_graph(captured: Captured, title: str, groups: list[list[str]] | None = None) -> Graph:
    """Fills `captured.ops` and `captured.tensors`; `groups` has every call once, in the nodes' order, else each call is
    an operator."""
    return _Builder(captured, groups).build(title)


class _Builder:
    def __init__(self, captured: Captured, groups: list[list[str]] | None) -> None:
        self.c, self.nodes = captured, captured.nodes
        self.names = operator_names(captured.nodes)
        self.groups = groups or [[n] for n in self.names]
        self.home = {call: k for k, group in enumerate(self.groups) for call in group}
        self.taken = set(self.names.values())
        self.written: dict[str, list[str]] = {n: [] for n in self.names}
        self.tensor_name: dict[str, str] = {}

    def build(self, title: str) -> Graph:
        reads = [[self._read(r, k) for call in g for r in self.nodes[call].refs()] for k, g in enumerate(self.groups)]
        for leaf in self.c.out_leaves:
            if isinstance(leaf, Ref):
                self._read(leaf.name, None)
        self.readers = Counter(held for group in self.groups for held in self._held(group))
        ops = [self._op(group, read) for group, read in zip(self.groups, reads)]
        self.c.ops = {op.name: tuple(group) for op, group in zip(ops, self.groups)}
        self.c.tensors = {name: source for source, name in self.tensor_name.items()}
        metas = [m for n in self.nodes.values() for m in flops.metas(n.meta) if m.dtype.is_floating_point]
        sizes = Counter(m.dtype.itemsize for m in metas)
        element = sizes.most_common(1)[0][0] if sizes else 4
        return Graph.build(title, ops, element_bytes=element if element in (2, 4) else 4)

    def _outer(self, kind: str, plain: str) -> str:
        """The name of what nobody computes: its own, unless an operator has it."""
        return plain if plain and plain not in self.taken else f"{kind}:{plain}"

    def _read(self, ref: str, group: int | None) -> str | None:
        """The graph's name of what is read; None within a group."""
        base = self.c.path_to(ref)[0]
        kind = self.nodes[base].kind
        if kind == INPUT:
            return self._outer("input", base)
        if kind == WEIGHT:
            return self._outer("weight", self.nodes[base].path)
        if kind != OP:
            return f"const:{base}"
        if self.home[base] == group:
            return None
        source = self.c.source(ref)
        if source not in self.written[base]:
            self.written[base].append(source)
            self.tensor_name[source] = self.names[base] if source == base else f"{self.names[base]}:{source}"
        return self.tensor_name[source]

    def _op(self, group: list[str], reads: list[str | None]) -> Op:
        calls = [self.nodes[call] for call in group]
        sources = [s for call in group for s in self.written[call]]
        kinds = list(dict.fromkeys(flops.base_name(n.target) for n in calls))
        labels = tuple(self.names[call] for call in group)
        members = tuple(m for n, label in zip(calls, labels) for m in n.members or (label,)) if len(group) > 1 else calls[0].members
        return Op(
            name=labels[-1],
            type="+".join(kinds),
            inputs=tuple(dict.fromkeys(r for r in reads if r is not None)),
            outputs=tuple(Tensor(self.tensor_name[s], self.nodes[s].meta.bytes) for s in sources),
            weight_bytes=sum(self._bytes(held) for held in self._held(group)),
            shared_weights=self._shared(group),
            flops=sum(flops.of_node(n, self.nodes) for n in calls),
            traffic_bytes=self._traffic_bytes(calls),
            members=members,
        )

    def _ins(self, node: Node) -> list[Meta]:
        return [m for r in node.refs() if isinstance(m := self.nodes[r].meta, Meta)]

    def _held(self, group: list[str]) -> list[str]:
        """Every weight and constant that they read, once. What a constant was made of need not stay."""
        held = dict.fromkeys(self._memory_of(self.c.path_to(r)[0]) for call in group for r in self.nodes[call].refs())
        return [h for h in held if self.nodes[h].kind in (WEIGHT, CONST)]

    def _memory_of(self, name: str) -> str:
        """Whose bytes they are: a constant that is a view of a whole weight has none of its own. A slice does: a rank
        copies what it holds of a weight."""
        while self.nodes[name].kind == CONST:
            node, refs = self.nodes[name], set(self.nodes[name].refs())
            of = refs.pop() if len(refs) == 1 else ""
            if not of or not is_alias(node, self.nodes[of].meta) or self._bytes(name) < self._bytes(of):
                break
            name = of
        return name

    def _bytes(self, node: str) -> int:
        return sum(m.bytes for m in flops.metas(self.nodes[node].meta))

    def _shared(self, group: list[str]) -> tuple[Tensor, ...]:
        """Masks, tables and tied weights, which a device holds once for all of its operators. A constant's path is that of
        whoever it was made for, slices of one weight have the same: their own names tell them apart."""
        shared = [h for h in self._held(group) if self.readers[h] > 1 and self._bytes(h) >= _SHARED_BYTES]
        return tuple(Tensor((self.nodes[h].kind == WEIGHT and self.nodes[h].path) or h, self._bytes(h)) for h in shared)

    def _traffic_bytes(self, calls: list[Node]) -> int:
        """What is handed on within a group is neither written nor read."""
        total, own = 0, {n.name for n in calls}
        for node in calls:
            total += flops.traffic_bytes(node, self._ins(node), flops.metas(node.meta))
            if len(calls) > 1:
                inner = [r for r in node.refs() if self.c.path_to(r)[0] in own]
                total -= sum(self.nodes[r].meta.bytes for r in inner if isinstance(self.nodes[r].meta, Meta))
                total -= 0 if self.written[node.name] else sum(m.bytes for m in flops.metas(node.meta))
        return max(total, 1)
