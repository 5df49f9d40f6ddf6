"""What no cut of a network by heads, columns and channels can beat, by the times of its profile.

Every device has to do its part within the makespan. So for any prices of the devices that add up to one, the makespan is
at least the sum over all operators of the least priced time; work may even be shared out at will. A strip that is cut
into pieces has at least the priced time of its pieces, and those, whatever their number and sizes, at least their units
times the least priced time per unit over all sizes. Sums of partial results and messages are left out, which makes the
bound smaller and no less true. The prices are found by a few steps towards the largest bound; any would do.

It holds for the sizes that the choice of cuts looks at (whole tiles), of strips that it looks at, and for pieces as times
were measured or interpolated for them (docs/shard.md). Images by rows and sequences by tokens are not among these cuts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Iterable, Mapping

from ..graph import Graph
from ..problem import Problem
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
    pieces: dict[int, list[Times]]


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
        names = set(problem.op_names)
        for name in sorted(known & names):
            now = problem.time_ns(name)
            every[name] = {d: min(ns, now.get(d) or ns) for d, ns in every[name].items()}
        if not found.cut:
            found.whole, found.cut = _times(whole, sorted(known - names)), len(some)
        for n in some.values():
            for label, size in zip(_PIECE_OF_TWO, (n, units - n)):
                of = f"{label}{size} of {units} "
                found.pieces.setdefault(size, []).append(_times(problem, (op for op in problem.op_names if of in op)))
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
            for times in some:
                if times:
                    factor = c.count * c.units / size
                    tries.append((_priced(times, price, {}, factor), times, factor))
        least, times, factor = min(tries, key=lambda t: t[0])
        if least < whole:
            total += least - whole
            _priced(c.whole, price, loads, -scale)
            _priced(times, price, loads, factor)
    return total, loads


def all_cuts_bound(captured: Captured, cluster: Any, *, measured: Iterable[Graph] = (), **problem: Any) -> int:
    """Nanoseconds that no plan of any cut of the captured module takes less than. `measured` are graphs with times, the
    whole network's first, as in `choose`: of devices that work alone, if the bound is to hold whatever the others do."""
    c = _Chooser(captured, cluster, problem, {}, list(measured), 0)
    whole = Problem(c.measured[0] if c.measured else c.whole.graph, c.cluster, **c.options)
    names = list(whole.op_names)
    known = dict(zip(names, _times(whole, names)))
    classes = [found for key in c.order if (found := _class(c, key, whole, known)).cut]
    every = list(known.values())
    price = dict.fromkeys(whole.devices, 1.0 / len(whole.devices))
    best = 0.0
    for step in range(_STEPS):
        bound, loads = _bound(every, classes, price)
        best = max(best, bound)
        most = max(loads.values(), default=0.0) or 1.0
        raised = {d: p * math.exp(loads.get(d, 0.0) / most / math.sqrt(step + 4)) for d, p in price.items()}
        price = {d: p / sum(raised.values()) for d, p in raised.items()}
    return int(best * (1 - 1e-9))
