"""What no cut of a network by heads (of strips) and columns can beat, by the times of its profile.

Every device has to do its part within the makespan. So for any prices of the devices that add up to one, the makespan is
at least the sum over all operators of the least priced time; work may even be shared out at will. A strip that is cut
into pieces has at least the priced time of its pieces, and those, whatever their number and sizes, at least their units
times the least priced time per unit over all sizes. Sums of partial results and messages are left out, which makes the
bound smaller and no less true. The prices are found by a few steps towards the largest bound; any would do.
A chain of layers has no such work to share out: what its longest path takes is the other bound (all_cuts_path.py).

It holds for the sizes that the choice of cuts looks at (whole tiles), of all strips but the alternatives (heads, rows,
tokens, batch), and for pieces as times were measured or interpolated for them (docs/shard.md). Where heads are the only
way to cut an attention, what that takes apart counts as nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable, Mapping

from .._lib import UsageError
from ..graph import Graph
from ..problem import Problem
from ..search import refuse_unknown
from .all_cuts_path import Made, by_tiles, cut_ns, edges_of, made_of, most_of, path_ns, whole_ns
from .capture import Captured
from .choose import _Chooser, piece_times
from .cut_sizes import step_of

_STEPS = 200
_PIECE_OF_TWO = (" (1 of 2, ", " (2 of 2, ")
Times = list[dict[str, int]]  # of operators: device -> ns


@dataclass
class _Class:
    """Strips that are alike: how many, the operators of one as it is, and those of a piece by its size."""

    count: int
    units: int
    whole: Times
    cut: int  # strips whose operators `whole` has
    pieces: dict[int, list[Made]]


def _times(problem: Problem, names: Iterable[str]) -> Times:
    return [{d: ns for d, ns in problem.time_ns(n).items() if ns is not None} for n in names]


def _class(c: _Chooser, key: Any, whole: Problem, every: dict[str, dict[str, int]]) -> _Class:
    """`every` are the times of all operators of the whole network: those that a cut leaves get the lesser one."""
    strips, step = c.classes[key], step_of(c.classes[key][0])
    units, known = strips[0].units, set(whole.op_names)
    found = _Class(len(strips), units, [], 0, {})
    sizes = list(range(step, units, step))
    for first in range(0, len(sizes), len(strips)):
        some = dict(zip((s.name for s in strips), sizes[first : first + len(strips)]))
        graph = c.whole.recut("; ".join(f"{name}: {n},{units - n}" for name, n in some.items()), quick=True).graph
        if c.measured:
            piece_times(graph, c.measured)
        problem = Problem(graph, c.cluster, **c.options)
        names, reads = set(problem.op_names), edges_of(graph)
        for name in sorted(known & names):
            now = problem.time_ns(name)
            every[name] = {d: min(ns, now.get(d) or ns) for d, ns in every[name].items()}
        if not found.cut:
            found.whole, found.cut = _times(whole, sorted(known - names)), len(some)
        for n in some.values():
            for label, size in zip(_PIECE_OF_TWO, (n, units - n)):
                of = f"{label}{size} of {units} "
                ops = [op for op in problem.op_names if of in op]
                found.pieces.setdefault(size, []).append(made_of(ops, dict(zip(ops, _times(problem, ops))), reads))
    return found


def _priced(times: Times, price: Mapping[str, float], loads: dict[str, float], factor: float = 1.0) -> float:
    """The least sum; `loads` get what that has of each device."""
    total = 0.0
    for t in times:
        device = min(t, key=lambda d: price[d] * t[d], default=None)
        if device is not None:
            total += factor * price[device] * t[device]
            loads[device] = loads.get(device, 0.0) + factor * t[device]
    return total


def _bound(every: Times, classes: Iterable[_Class], price: Mapping[str, float]) -> tuple[float, dict[str, float]]:
    loads: dict[str, float] = {}
    total = _priced(every, price, loads)
    for c in classes:
        scale = c.count / c.cut
        whole = _priced(c.whole, price, {}, scale)
        tries = [(whole, c.whole, scale)]
        for size, some in c.pieces.items():
            for piece in some:
                if piece.times:
                    factor = c.count * c.units / size
                    tries.append((_priced(piece.times, price, {}, factor), piece.times, factor))
        least, times, factor = min(tries, key=lambda t: t[0])
        if least < whole:
            total += least - whole
            _priced(c.whole, price, loads, -scale)
            _priced(times, price, loads, factor)
    return total, loads


def _owners(c: _Chooser, names: list[str]) -> tuple[dict[str, str], set[str]]:
    """Operator of the whole network -> the strip that it is a part of, as it goes when that is cut; others that go then,
    since calls are grouped otherwise."""
    strips = [s for key in c.order for s in c.classes[key] if step_of(s) < s.units]
    cut = "; ".join(f"{s.name}: {step_of(s)},{s.units - step_of(s)}" for s in strips)
    left = {op.name for op in c.whole.recut(cut, quick=True).graph.ops} if cut else set(names)
    strip_of = {n: s.name for s in strips for n in (*s.cut, s.end, f"{s.end}_product")}
    owned: dict[str, str] = {}
    for name in (n for n in names if n not in left):
        owners = {strip_of[call] for call in c.whole.ops[name] if call in strip_of}
        if len(owners) == 1:
            owned[name] = owners.pop()
    return owned, set(names) - left - set(owned)


def _of_heads(c: _Chooser, names: list[str]) -> set[str]:
    """Operators that are others when attention is cut by heads where no strip but that has it: nobody has measured what
    they become, and heads need no projection whole, so that they count as nothing."""
    inside = {n for key in c.order for s in c.classes[key] for n in s.cut}
    alone = [s for s in c.whole.strips if s.kind == "heads" and s.end not in inside]
    if not alone:
        return set()
    after = c.whole.recut("; ".join(f"{s.name}: 1,{s.units - 1}" for s in alone), quick=True).graph
    left = {(op.name, op.type, op.flops) for op in after.ops}
    return {op.name for op in c.whole.graph.ops if (op.name, op.type, op.flops) not in left}.intersection(names)


def _by_path(c: _Chooser, devices: list[str], classes: Mapping[Any, _Class], every: Mapping[str, dict[str, int]],
             meeting_ns: int) -> int:  # fmt: skip
    """The other bound: what the longest path takes."""
    reads = edges_of(c.measured[0] if c.measured else c.whole.graph)
    owned, gone = _owners(c, list(every))
    inside: dict[str, list[str]] = {}
    for name, strip in owned.items():
        inside.setdefault(strip, []).append(name)
    message_ns, took = min((x.latency_ns for x in c.cluster.links), default=0), {}
    for key, known in classes.items():
        tile = step_of(c.classes[key][0])
        cut = cut_ns(by_tiles(known.pieces, tile), -(-known.units // tile), devices, message_ns, meeting_ns)
        for s in (s for s in c.classes[key] if s.name in inside and all(every[n] for n in inside[s.name])):
            took[s.name] = min(whole_ns(made_of(inside[s.name], every, reads), devices), cut)
    owned = {name: strip for name, strip in owned.items() if strip in took}
    least = {name: min(times.values(), default=0) for name, times in every.items() if name not in gone}
    return path_ns(reads, least, owned, took)


def all_cuts_bound(captured: Captured, cluster: Any, *, measured: Iterable[Graph] = (), meeting_ns: int = 0,
                   **problem: Any) -> int:  # fmt: skip
    """Nanoseconds that no plan of any cut of the captured module by its strips takes less than, those of heads, rows, tokens
    and a batch aside. `measured` are graphs with times: the whole network's first (by default the captured one's), then those
    of cut ones (`captured.recut(cut).graph`, after `profile` of it), of devices that work alone, if the bound is to hold
    whatever the others do. `meeting_ns` is what a segment that waits for a message takes longer, on the device where that
    is least (`meetings`)."""
    if not (isinstance(captured, Captured) and isinstance(meeting_ns, int) and meeting_ns >= 0):
        raise UsageError(f"all_cuts_bound: a captured module, and whole nanoseconds from 0 on, not {captured!r:.60} and {meeting_ns!r}")
    refuse_unknown("all_cuts_bound", problem, Problem.__init__, ("self", "graph", "cluster"))
    graphs = [measured] if isinstance(measured, Graph) else list(measured)
    c = _Chooser(captured, cluster, problem, {}, graphs, 0, least=0.0)  # no class is too small to be cut
    if graphs and {op.name for op in graphs[0].ops} != {op.name for op in c.whole.graph.ops}:
        raise UsageError("all_cuts_bound: the first measured graph is not that of the captured module, whole")
    whole = Problem(c.measured[0] if c.measured else c.whole.graph, c.cluster, **c.options)
    names = list(whole.op_names)
    known = {**dict(zip(names, _times(whole, names))), **dict.fromkeys(_of_heads(c, names), {})}
    by_key = {key: found for key in c.order if (found := _class(c, key, whole, known)).cut}
    classes, every = list(by_key.values()), list(known.values())
    best = max(most_of(lambda price: _bound(every, classes, price), whole.devices, _STEPS),
               _by_path(c, whole.devices, by_key, known, meeting_ns))  # fmt: skip
    return int(best * (1 - 1e-9))
