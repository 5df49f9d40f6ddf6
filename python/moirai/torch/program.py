"""What each device does: a plan's operators, in the plan's order, as nodes to call, with what to wait for and what to
send.

Operators follow each other on a device as the plan has them. Before an operator the rank waits for the tensors that it
reads from elsewhere and has not waited for yet; after one it sends, in the plan's order, what others wait for. A run of
operators without a wait before, or a send after, any but its ends is a segment: the unit of timelines. Waiting as late
and sending as early as that can't make ranks wait in a circle, whatever the times turn out to be: the order on every
device is that of one schedule.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from .._lib import UsageError
from ..plan import Plan
from .capture import Captured
from .ir import ALIAS, CONST, INPUT, OP, WEIGHT, Meta, Node, Ref
from .reuse import mark_released


# Elementwise operators and what writes their result over their first input.
IN_PLACE = {
    f"aten.{name}": f"aten.{name.replace('.', '_.', 1)}"
    for name in ("relu.default", "silu.default", "sigmoid.default", "tanh.default", "hardswish.default", "neg.default",
                 "add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor")
}  # fmt: skip
FUNCTIONAL = {there: here for here, there in IN_PLACE.items()}


def _dense(meta: Meta) -> bool:
    """Every element once: not an expanded tensor."""
    return all(s > 0 or d <= 1 for d, s in zip(meta.shape, meta.stride))


@dataclass(frozen=True)
class Send:
    """A tensor from a device to another; `index` is its number among all of the plan's transfers, in the plan's
    order."""

    index: int
    value: str  # node whose value travels
    tensor: str  # the graph's name
    source: int
    target: int
    meta: Meta  # as a message has it: without gaps
    seen: Meta  # as its reader sees it where it was computed
    start_ns: int
    finish_ns: int


@dataclass
class Step:
    """One operator with the aliases that it needs first and those of its results that travel or stay."""

    op: str  # the plan's name
    nodes: list[Node]
    frees: list[str]  # values that nobody on this device reads afterwards
    start_ns: int = 0
    finish_ns: int = 0


@dataclass
class Segment:
    """Steps between two meetings with other devices."""

    waits: list[Send] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    sends: list[Send] = field(default_factory=list)
    released: list[str] = field(default_factory=list)  # what left and nobody reads any more when it begins (reuse.py)

    @property
    def start_ns(self) -> int:
        return self.steps[0].start_ns

    @property
    def finish_ns(self) -> int:
        return max(s.finish_ns for s in self.steps)

    @property
    def work_ns(self) -> int:
        return sum(s.finish_ns - s.start_ns for s in self.steps)


@dataclass
class RankProgram:
    """All that one device needs to know."""

    rank: int
    device: str
    inputs: dict[str, Meta]
    weights: list[str]
    constants: list[Node]  # in order
    kept_weights: list[str]  # weights that steps read; others only made constants
    segments: list[Segment]
    outputs: list[tuple[int, str, list[Node]]]  # (position among the results, value, aliases that lead there)
    all_inputs: list[str] = field(default_factory=list)
    looks: set[str] = field(default_factory=set)  # values that are, or are views of, what arrives
    alone: bool = False  # one device runs all, as it would be compiled (alone.py)


@dataclass
class Program:
    """The ranks that have something to do, by device number, and the transfers between them."""

    name: str
    ranks: list[RankProgram]
    transfers: list[Send]
    planned_ns: int
    placer: str


def build(
    captured: Captured, plan: Plan, merge: bool = False, ordered: bool = False, compiled: bool = False
) -> Program:
    """Raises UsageError where the plan is not one of this network. `merge`: where the plan knows what meetings cost,
    segments are merged as far as that ends no later (merging.py); `ordered`: messages keep to the plan's order;
    `compiled`: for a compiler, which gets the network as it is where one device runs all of it (alone.py)."""
    builder = _Builder(captured, plan)
    if compiled and captured.alone and len(set(builder.where.values())) == 1:
        return builder.build_alone(captured.alone())
    return builder.build(merge, ordered)


class _Builder:
    def __init__(self, captured: Captured, plan: Plan) -> None:
        self.c = captured
        self.plan = plan
        self.devices = plan.problem.devices
        self.steps = plan.steps
        strangers = [s.name for s in self.steps if s.name not in captured.ops]
        if strangers or len(self.steps) != len(captured.ops):
            what = (
                f"it has no operator '{strangers[0]}'"
                if strangers
                else f"it has {len(captured.ops)} operators, not {len(self.steps)}"
            )
            raise UsageError(f"the plan does not belong to '{captured.graph.name}': {what}")
        number = {d: k for k, d in enumerate(self.devices)}
        self.where = {call: number[s.device] for s in self.steps for call in captured.ops[s.name]}
        self.position = {name: i for i, name in enumerate(captured.nodes)}
        self.sends = self._sends(number)

    def _sends(self, number: dict[str, int]) -> list[Send]:
        sends: list[Send] = []
        seen = set()
        for t in self.plan.transfers:
            value = self.c.tensors.get(t.tensor)
            if value is None:
                raise UsageError(f"the plan does not belong to '{self.c.graph.name}': it has no tensor '{t.tensor}'")
            key = (value, number[t.target])
            if key in seen:  # flow edge: one message serves all readers there
                continue
            seen.add(key)
            meta = self.c.nodes[value].meta
            ends = number[t.source], number[t.target]
            sends.append(Send(len(sends), value, t.tensor, *ends, meta.packed, meta, t.start_ns, t.finish_ns))
        return sends

    def build(self, merge: bool, ordered: bool) -> Program:
        drafts = [self._segments(k) for k in range(len(self.devices))]
        planned_ns = self.plan.makespan_ns
        if merge and self.plan.meetings:
            from .merging import merged

            how = self.plan.meetings, self.plan.ports, ordered
            planned_ns, better = merged([segments for segments, _ in drafts], self.sends, self.devices, *how)
            drafts = [(segments, made) for segments, (_, made) in zip(better, drafts)]
        ranks = [self._rank(k, *draft) for k, draft in enumerate(drafts)]
        mark_released(ranks, lambda name: self.c.path_to(name)[0])
        return Program(self.c.graph.name, ranks, self.sends, planned_ns, self.plan.placer)

    def build_alone(self, nodes: dict[str, Node]) -> Program:
        """One segment of these nodes, in their order, in which the plan's operators are names."""
        (owner,) = set(self.where.values())
        inner = [n for n in nodes.values() if n.kind in (OP, ALIAS)]
        steps = [Step(s.name, [], [], s.start_ns, s.finish_ns) for s in self.steps]
        steps[0].nodes.extend(inner)
        self.c = replace(self.c, nodes=nodes, path_of={})
        self.where = {n.name: owner for n in inner if n.kind == OP}
        ranks = []
        for k in range(len(self.devices)):
            mine = [Segment(steps=steps)] if k == owner else []
            ranks.append(self._rank(k, mine, {n.name for n in inner} if mine else set()))
            ranks[-1].alone = bool(mine)
        return Program(self.c.graph.name, ranks, [], self.plan.makespan_ns, self.plan.placer)

    # ---- one rank

    def _segments(self, k: int) -> tuple[list[Segment], set[str]]:
        """A device's work, and the values that it has then."""
        mine = sorted(
            (s for s in self.steps if self.where[self.c.ops[s.name][0]] == k),
            key=lambda s: (s.start_ns, s.finish_ns, self.position[self.c.ops[s.name][0]]),
        )
        arriving = {s.value: s for s in self.sends if s.target == k}
        leaving: dict[str, list[Send]] = {}
        for x in self.sends:
            if x.source == k:
                leaving.setdefault(self.c.path_to(x.value)[0], []).append(x)
        kept: dict[str, list[str]] = {}  # operator -> values of it that someone reads: here, elsewhere, or the caller
        for name in [r for s in mine for call in self.c.ops[s.name] for r in self.c.nodes[call].refs()]:
            self._keep(kept, name, k)
        for x in self.sends:
            if x.source == k:
                kept.setdefault(self.c.path_to(x.value)[0], []).append(x.value)
        made: set[str] = set(arriving)
        segments: list[Segment] = []
        waited: set[str] = set()
        for s in mine:
            step, needs = self._step(s, made, kept, arriving)
            waits = [arriving[v] for v in needs if v not in waited]
            waited.update(w.value for w in waits)
            sends = [x for call in self.c.ops[s.name] for x in leaving.get(call, [])]
            if waits or not segments or segments[-1].sends:
                segments.append(Segment(waits=sorted(waits, key=lambda w: w.index)))
            segments[-1].steps.append(step)
            segments[-1].sends += sorted(sends, key=lambda x: x.index)
        return segments, made

    def _rank(self, k: int, segments: list[Segment], made: set[str]) -> RankProgram:
        arriving = {s.value for s in self.sends if s.target == k}
        outputs = self._outputs(k, made)
        held = {s.value for s in self.sends if s.source == k}
        held.update(n for _, value, nodes in outputs for n in [value, *_reads(value, nodes)])
        held.update(n for n, node in self.c.nodes.items() if node.kind not in (OP, ALIAS))
        _free(segments, held)
        self._in_place(segments, arriving, held)
        return self._finish(k, segments, outputs)

    def _keep(self, kept: dict[str, list[str]], name: str, k: int) -> None:
        base = self.c.path_to(name)[0]
        if self.c.nodes[base].kind == OP and self.where[base] == k:
            kept.setdefault(base, []).append(name)

    def _step(self, s: Any, made: set[str], kept: dict[str, list[str]], arriving: dict[str, Send]
              ) -> tuple[Step, list[str]]:  # fmt: skip
        """The operator's own calls, the aliases before each that were not made yet, and those of its results that are
        kept; and what has to be there first."""
        nodes: list[Node] = []
        needs: list[str] = []
        for node in (self.c.nodes[call] for call in self.c.ops[s.name]):
            for ref in node.refs():
                path = self.c.path_to(ref)
                base = self.c.nodes[path[0]]
                if base.kind == OP and self.where[path[0]] != self.where[node.name]:
                    source = self.c.source(ref)
                    if source not in arriving:
                        raise UsageError(f"the plan never sends '{source}' to '{s.device}', where '{s.name}' reads it")
                    needs.append(source)
                    path = path[path.index(source) :]
                self._extend(nodes, path[1:], made)
            nodes.append(node)
            made.add(node.name)
            for name in kept.get(node.name, []):
                # Readers here take the whole path; what leaves is on it.
                self._extend(nodes, self.c.path_to(name)[1:], made)
        return Step(s.name, nodes, [], s.start_ns, s.finish_ns), list(dict.fromkeys(needs))

    def _extend(self, nodes: list[Node], path: list[str], made: set[str]) -> None:
        for name in path:
            node = self.c.nodes[name]
            if name not in made and node.kind == ALIAS:
                made.add(name)
                nodes.append(node)

    def _in_place(self, segments: list[Segment], arriving: set[str], held: set[str]) -> None:
        """Elementwise operators write over their first input where nobody reads that afterwards: half the memory, warm
        cache."""
        places = [(s, at) for g in segments for s in g.steps for at in range(len(s.nodes))]
        last: dict[str, int] = {}  # what was computed -> the last node that looks at it, through whatever view
        made_by: dict[str, int] = {}
        for i, (step, at) in enumerate(places):
            made_by.setdefault(step.nodes[at].name, i)
            for ref in step.nodes[at].refs():
                last[self.c.path_to(ref)[0]] = i
        kept = {self.c.path_to(h)[0] for h in held | arriving}
        for i, (step, at) in enumerate(places):
            node = step.nodes[at]
            first = node.args[0] if node.args else None
            if node.kind != OP or node.target not in IN_PLACE or not isinstance(first, Ref):
                continue
            base = self.c.path_to(first.name)[0]
            meta = self.c.nodes[first.name].meta
            through = [r for r in node.refs() if self.c.path_to(r)[0] == base]
            unread = base in made_by and base not in kept and made_by[base] < i == last[base]
            if unread and through == [first.name] and isinstance(meta, Meta) and _dense(meta) and meta == node.meta:
                step.nodes[at] = replace(node, target=IN_PLACE[node.target])

    def _outputs(self, k: int, made: set[str]) -> list[tuple[int, str, list[Node]]]:
        """Results whose operator is here; those that no operator makes are rank 0's."""
        found = []
        first = min(self.where.values(), default=0)
        for i, leaf in enumerate(self.c.out_leaves):
            if not isinstance(leaf, Ref):
                continue
            path = self.c.path_to(leaf.name)
            base = self.c.nodes[path[0]]
            owner = self.where[path[0]] if base.kind == OP else first
            if owner == k:
                found.append((i, leaf.name, [self.c.nodes[n] for n in path[1:] if n not in made]))
        return found

    def _finish(self, k: int, segments: list[Segment], outputs: list[tuple[int, str, list[Node]]]) -> RankProgram:
        """Which inputs, weights and constants that needs."""
        read = [r for g in segments for s in g.steps for n in s.nodes for r in n.refs()]
        read += [r for _, value, nodes in outputs for r in _reads(value, nodes)]
        bases = {r for r in read if self.c.nodes[r].kind in (INPUT, WEIGHT, CONST)}
        constants: list[Node] = []
        needed = {b for b in bases if self.c.nodes[b].kind == CONST}
        for name in reversed(list(self.c.nodes)):
            if name in needed:
                constants.insert(0, self.c.nodes[name])
                needed.update(r for r in self.c.nodes[name].refs() if self.c.nodes[r].kind == CONST)
        weights = {b for b in bases if self.c.nodes[b].kind == WEIGHT}
        more = {r for n in constants for r in n.refs() if self.c.nodes[r].kind == WEIGHT}
        return RankProgram(
            rank=k,
            device=self.devices[k],
            inputs={n: self.c.nodes[n].meta for n in self.c.inputs if n in bases},
            weights=sorted(weights | more),
            constants=constants,
            kept_weights=sorted(weights | {b for b in bases if self.c.nodes[b].kind == CONST}),
            segments=segments,
            outputs=outputs,
            all_inputs=list(self.c.inputs),
        )


def _reads(value: str, nodes: list[Node]) -> list[str]:
    return [r for n in nodes for r in n.refs()] or [value]


def _free(segments: list[Segment], held: set[str]) -> None:
    """Marks where values are read for the last time; those that leave (reuse.py), and results, stay."""
    last: dict[str, Step] = {}
    for segment in segments:
        for wait in segment.waits:
            last.setdefault(wait.value, segment.steps[0])
        for step in segment.steps:
            for node in step.nodes:
                last[node.name] = step
                for ref in node.refs():
                    last[ref] = step
    for name, step in last.items():
        if name not in held:
            step.frees.append(name)
