"""How long the longest path of a network is, however its strips are cut: what all_cuts.py knows of times, by paths.

A strip whose products read one value begins when that is there, and what reads its sum waits for all of its pieces. So
between the two lies at least

- what the strip takes whole: its longest path, each operator where it is fastest, and its load, shared out at will; or
- in pieces, all of them on one device: their sum; or
- on several: the longest path of the largest piece, and, for any prices of the devices that add up to one, the least
  priced sum of pieces that make up the strip. All devices but the one whose sum is there first have a message less
  time for that, and what reads pieces of several devices begins with a meeting.

Operators in no strip take what they do where they are fastest. Of a sum that every piece makes for itself the copy that
is there first is meant. Fewer sizes are asked for than there are: pieces cover whole tiles, the last one perhaps half of one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Callable, Iterable, Mapping, Sequence

from ..graph import Graph

Times = Mapping[str, Mapping[str, int]]  # operator -> device -> ns
Loads = dict[str, float]
_STEPS = 60  # towards prices of a strip, of which there are many kinds


@dataclass
class Made:
    """A strip, or a piece of one: its operators' times, and the least that its longest path takes."""

    times: list[Mapping[str, int]]
    path_ns: int

    def priced(self, price: Mapping[str, float]) -> tuple[float, Loads]:
        loads: Loads = {}
        for t in self.times:
            d = min(t, key=lambda k: price[k] * t[k])
            loads[d] = loads.get(d, 0.0) + t[d]
        return sum(price[d] * ns for d, ns in loads.items()), loads


def edges_of(graph: Graph) -> dict[str, set[str]]:
    """Operator -> those that it reads, in the graph's order."""
    maker: dict[str, str] = {}
    found: dict[str, set[str]] = {}
    ops = graph.ops
    for op in ops:
        maker.update((t.name, op.name) for t in op.outputs)
    for op in ops:
        found[op.name] = {maker[t] for t in op.inputs if t in maker}
    return found


def sorted_by(reads: Mapping[str, Iterable[str]]) -> list[str]:
    """Each after all that it reads."""
    order: list[str] = []
    state: dict[str, bool] = {}
    for root in reads:
        todo = [root]
        while todo:
            name = todo[-1]
            if name in state:
                todo.pop()
                if not state[name]:
                    state[name] = True
                    order.append(name)
                continue
            state[name] = False
            todo += [r for r in reads[name] if r not in state]
    return order


def made_of(names: Sequence[str], times: Times, reads: Mapping[str, set[str]]) -> Made:
    """Of these operators of a graph."""
    ends: dict[str, int] = {}
    inside = {n: reads[n] & set(names) for n in names}
    for n in sorted_by(inside):
        ends[n] = min(times[n].values(), default=0) + max((ends[r] for r in inside[n]), default=0)
    return Made([times[n] for n in names], max(ends.values(), default=0))


def most_of(price_it: Callable[[Mapping[str, float]], tuple[float, Loads]], devices: Sequence[str], steps: int = _STEPS) -> float:
    """The largest value over prices of devices that add up to one, found by steps towards it: any price would do."""
    price, best = dict.fromkeys(devices, 1.0 / len(devices)), 0.0
    for step in range(steps):
        value, loads = price_it(price)
        best = max(best, value)
        top = max(loads.values(), default=0.0) or 1.0
        raised = {d: p * math.exp(loads.get(d, 0.0) / top / math.sqrt(step + 4)) for d, p in price.items()}
        price = {d: p / sum(raised.values()) for d, p in raised.items()}
    return best


class Cover:
    """The pieces of a strip that cost least, of at most some size, and together all of it."""

    def __init__(self, pieces: Mapping[int, Sequence[Made]], steps: int) -> None:
        self.pieces, self.steps = pieces, steps

    def least(self, most: int, price: Mapping[str, float]) -> tuple[float, Loads]:
        each = {k: min((m.priced(price) for m in some), key=lambda x: x[0]) for k, some in self.pieces.items() if k <= most}
        cost, taken = [0.0], [0]
        for n in range(1, self.steps + 1):
            value, k = min((each[k][0] + cost[max(n - k, 0)], k) for k in each)
            cost.append(value)
            taken.append(k)
        loads: Loads = {}
        n = self.steps
        while n > 0:
            for d, ns in each[taken[n]][1].items():
                loads[d] = loads.get(d, 0.0) + ns
            n -= taken[n]
        return cost[-1], loads

    def several(self, devices: Sequence[str], message_ns: float) -> float:
        """Pieces on several devices: a larger piece has a longer path, and all of them together a lesser load."""
        sizes = sorted(self.pieces)
        path = {k: min(m.path_ns for m in self.pieces[k]) for k in sizes}
        least = math.inf
        low, high = 0, len(sizes) - 1
        while low <= high:  # the load falls with the largest size, the path rises
            at = (low + high) // 2
            load = most_of(lambda p: self.later(sizes[at], p, message_ns), devices)
            longest = min(path[k] for k in sizes[at:])
            least = min(least, max(load, longest))
            if load > longest:
                low = at + 1
            else:
                high = at - 1
        return least

    def later(self, most: int, price: Mapping[str, float], message_ns: float) -> tuple[float, Loads]:
        value, loads = self.least(most, price)
        return value + message_ns * (1 - max(price.values())), loads

    def alone(self, devices: Sequence[str]) -> float:
        """All pieces on one device."""
        return min(self.on(d) for d in devices)

    def on(self, device: str) -> float:
        here = {k: [Made([{device: t[device]} for t in m.times], 0) for m in some if all(device in t for t in m.times)]
                for k, some in self.pieces.items()}  # fmt: skip
        some = {k: v for k, v in here.items() if v}
        return Cover(some, self.steps).least(self.steps, {device: 1.0})[0] if some else math.inf


def by_tiles(pieces: Mapping[int, Sequence[Made]], tile: int) -> dict[int, list[Made]]:
    """Pieces by how many tiles they take a part of: the last one may have less of it, beside one that has all."""
    found: dict[int, list[Made]] = {}
    for size, some in pieces.items():
        found.setdefault(-(-size // tile), []).extend(m for m in some if m.times)
    return {k: v for k, v in found.items() if v}


def whole_ns(whole: Made, devices: Sequence[str]) -> int:
    """The least that a strip takes whole."""
    return max(whole.path_ns, int(most_of(whole.priced, devices) * (1 - 1e-9)))


def cut_ns(pieces: Mapping[int, Sequence[Made]], steps: int, devices: Sequence[str], message_ns: float, meeting_ns: float) -> float:
    """And in pieces, of so many tiles each."""
    if not pieces:
        return math.inf
    cover = Cover(pieces, steps)
    return min(cover.several(devices, message_ns) + meeting_ns, cover.alone(devices)) * (1 - 1e-9)


def path_ns(reads: Mapping[str, set[str]], least: Mapping[str, int], strip_of: Mapping[str, str], took: Mapping[str, float]) -> int:
    """The longest path: operators of a strip are one, which begins after those values that all of it hangs on."""
    inside: dict[str, list[str]] = {}
    for name, strip in strip_of.items():
        inside.setdefault(strip, []).append(name)
    joined: dict[str, set[str]] = {}
    for name, from_ in reads.items():
        own = strip_of.get(name, name)
        joined.setdefault(own, set()).update(strip_of.get(r, r) for r in from_)
        joined[own].discard(own)
    ends: dict[str, float] = {}
    for name in sorted_by(joined):
        if name in inside:
            all_hang = [r for r in joined[name] if hangs_on(set(inside.get(r, [r])), inside[name], reads)]
            begin = max((ends[r] for r in all_hang), default=0)
            ends[name] = max(begin + took[name], max((ends[r] for r in joined[name]), default=0))
        else:
            ends[name] = max((ends[r] for r in joined[name]), default=0) + least.get(name, 0)
    return int(max(ends.values(), default=0))


def hangs_on(before: set[str], strip: Sequence[str], reads: Mapping[str, set[str]]) -> bool:
    """Whether all of a strip's operators read what these make, or one another that do."""
    own = set(strip)
    reached: set[str] = set()
    for n in sorted_by({n: reads[n] & own for n in strip}):
        if reads[n] & (before | reached):
            reached.add(n)
    return reached == own
