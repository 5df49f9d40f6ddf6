"""Segments of a rank as pieces that can be compiled.

A piece has the segment's calls, functional ones: buffers are the compiler's business. What it reads from earlier
segments is handed over as it was computed, and looked at inside: views are repeated, not handed over. What others read
of it are its results; views of those that leave the device, or are the caller's, are made afterwards and cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from .ir import ALIAS, OP, Meta, Node
from .piece import Piece
from .program import FUNCTIONAL, RankProgram


@dataclass
class Part:
    """What runs a segment."""

    piece: Piece
    views: list[Node] = field(default_factory=list)  # of its results, and of what was there before: for others
    frees: list[str] = field(default_factory=list)  # what nobody on this device reads afterwards


def parts_of(program: RankProgram) -> list[Part]:
    return _Cutter(program).parts()


class _Cutter:
    def __init__(self, program: RankProgram) -> None:
        self.program = program
        inner = [[n for s in g.steps for n in s.nodes] for g in program.segments]
        self.made = {n.name: n for nodes in inner for n in nodes}
        self.made.update((n.name, n) for _, _, nodes in program.outputs for n in nodes)
        self.place = {name: i for i, name in enumerate(self.made)}  # not by name: equal layers are equal pieces
        self.home = {n.name: i for i, nodes in enumerate(inner) for n in nodes if n.kind == OP}
        self.calls = [[n for n in nodes if n.kind == OP] for nodes in inner]

    def chain(self, name: str) -> list[str]:
        """From what is handed over to this value: whatever was computed or given, then aliases. A part of a tuple is
        handed over, tuples are not."""
        found = [name]
        while (node := self.made.get(found[0])) is not None and node.kind == ALIAS:
            found.insert(0, node.refs()[0])
        base = self.made.get(found[0])
        return found[1:] if base is not None and not isinstance(base.meta, Meta) and len(found) > 1 else found

    def owner(self, name: str) -> int | None:
        """The segment that computes it; None for what is given or arrives."""
        node = self.made.get(name)
        while node is not None and node.kind == ALIAS:
            name = node.refs()[0]
            node = self.made.get(name)
        return self.home.get(name)

    def parts(self) -> list[Part]:
        leaving = [s.value for g in self.program.segments for s in g.sends]
        leaving += [value for _, value, _ in self.program.outputs]
        bodies = [self._body(i) for i in range(len(self.calls))]
        wanted = {a for _, args in bodies for a in args} | {self.chain(v)[0] for v in leaving}
        parts = []
        for i, (nodes, args) in enumerate(bodies):
            results = sorted((w for w in wanted if self.owner(w) == i), key=self.place.__getitem__)
            for name in results:  # a part of a tuple that nobody here reads
                self._add(nodes, self._up_to(name))
            parts.append(Part(Piece(tuple(nodes), tuple(args), tuple(results), self.program.alone)))
        self._views(parts, leaving)
        self._frees(parts, {self.chain(v)[0] for v in leaving})
        return parts

    def _up_to(self, name: str) -> list[str]:
        """A value's aliases from its call on."""
        found = [name]
        while (node := self.made.get(found[0])) is not None and node.kind == ALIAS:
            found.insert(0, node.refs()[0])
        return found[1:]

    def _add(self, nodes: list[Node], names: list[str]) -> None:
        there = {n.name for n in nodes}
        nodes += [self.made[n] for n in names if n not in there]

    def _body(self, i: int) -> tuple[list[Node], list[str]]:
        nodes: list[Node] = []
        args: dict[str, None] = {}
        for call in self.calls[i]:
            for ref in call.refs():
                if self.owner(ref) == i:
                    self._add(nodes, self._up_to(ref))
                else:
                    path = self.chain(ref)
                    args[path[0]] = None
                    self._add(nodes, path[1:])
            nodes.append(replace(call, target=FUNCTIONAL.get(call.target, call.target)))
        return nodes, list(args)

    def _views(self, parts: list[Part], leaving: list[str]) -> None:
        for value in dict.fromkeys(leaving):
            path = self.chain(value)
            if len(path) > 1 and parts:
                owner = self.owner(path[0])
                self._add(parts[owner if owner is not None else -1].views, path[1:])

    def _frees(self, parts: list[Part], held: set[str]) -> None:
        given = {*self.program.inputs, *self.program.kept_weights}
        last: dict[str, Part] = {}
        for part in parts:
            last.update(dict.fromkeys([*part.piece.args, *part.piece.results], part))
        for name, part in last.items():
            if name not in held and name not in given:
                part.frees.append(name)

