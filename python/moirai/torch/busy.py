"""What operators take while the other devices compute, too.

Parts of one GPU have multiprocessors of their own and share its memory, caches, power and the way that kernels are
launched; cores of one processor share as much. So an operator has two times: alone, and while all others are busy. Both
are measured with what is ready to run on every rank: first each rank runs its operators while the others wait for their
turn, then all run theirs in rounds, each in an order of its own, until the last one has enough. In a round an operator
runs about as often as the network's time is spent in its like, so that neighbours are those of a request.

A plan keeps some devices waiting for some of the time. `Corrected` puts that right after a search: an operator's time lies
between its two by how much of the other devices computes meanwhile, weighed by their shares.
"""

from __future__ import annotations

import random
import statistics
import time
from bisect import bisect_right
from typing import Any, Callable, Iterable, Mapping, Sequence

import torch

from ..graph import Graph
from ..plan import Plan
from .measure import Ready, begun

_ROUNDS = 8  # of the rank that has the longest ones
_ALONE = 4  # rounds of a rank by itself, the first of which does not count
_MOST_TURNS = 40  # of an operator in a round
_LIMIT_S = 3600


# ---- in a rank's process


class Meeting:
    """All ranks of a job, by counters of their store: others may take long to compile, so that nobody's patience ends."""

    def __init__(self, store: Any, key: str, rank: int, world: int) -> None:
        self.store, self.key, self.rank, self.world = store, key, rank, world

    def count(self, what: str, add: int = 0) -> int:
        return int(self.store.add(f"{self.key}/{what}", add))

    def wait(self, what: str, ranks: int) -> None:
        limit = time.monotonic() + _LIMIT_S
        while self.count(what) < ranks:
            if time.monotonic() > limit:
                raise RuntimeError(f"rank {self.rank}: others are not there within {_LIMIT_S} s")
            time.sleep(0.002)


def _on_processor(work: Callable[[], Any]) -> Callable[[], float]:
    """As `begun` of a GPU: it is done at once."""
    began = time.perf_counter_ns()
    work()
    took = float(time.perf_counter_ns() - began)
    return lambda: took


def turns(lengths: Sequence[float], counts: Sequence[int], calls: Sequence[int]) -> list[int]:
    """How often each operator runs in a round: at least once, and in all about as long as the network spends on its like.
    `lengths` are of one turn, which has so many `calls`; `counts` are of equal operators in the network."""
    own = [n * t / max(c, 1) for n, t, c in zip(counts, lengths, calls)]
    whole, total = sum(lengths), max(sum(own), 1e-9)
    return [max(1, min(round(whole * o / total / max(t, 1.0)), _MOST_TURNS)) for o, t in zip(own, lengths)]


def both_times(
    ready: Sequence[Ready], counts: Sequence[int], meeting: Meeting, device: torch.device
) -> list[tuple[float, float] | None]:
    """Nanoseconds of a call alone and with all ranks busy; None for what can't run."""
    runs = [(i, r) for i, r in enumerate(ready) if r.again is not None]
    begin = begun if device.type == "cuda" else _on_processor
    meeting.count("ready", 1)
    meeting.wait("ready", meeting.world)
    meeting.wait("alone", meeting.rank)
    passes = [[begin(r.again) for _, r in runs] for _ in range(_ALONE)]  # all others between two turns: weights are cold
    alone = {i: statistics.median([p[n]() for p in passes][1:]) for n, (i, _) in enumerate(runs)}
    meeting.count("alone", 1)
    meeting.wait("alone", meeting.world)
    often = turns([alone[i] for i, _ in runs], [counts[i] for i, _ in runs], [r.calls for _, r in runs])
    busy = _rounds([(i, r.again, n) for (i, r), n in zip(runs, often)], meeting, begin)
    found: list[tuple[float, float] | None] = [None] * len(ready)
    for i, r in runs:
        found[i] = alone[i] / r.calls, statistics.median(busy[i]) / r.calls
    return found


def _rounds(
    work: Sequence[tuple[int, Any, int]], meeting: Meeting, begin: Callable[[Any], Callable[[], float]]
) -> dict[int, list[float]]:
    """Times of all turns. A round begins before the one before it has ended, so that nobody idles; the last two are not
    counted, since others may have ended meanwhile."""
    if not work:
        meeting.count("done", 1)
        return {}
    order = [(i, again) for i, again, n in work for _ in range(n)]
    choose = random.Random(meeting.rank)
    rounds: list[dict[int, list[float]]] = []
    before: list[tuple[int, Callable[[], float]]] = []
    while True:
        choose.shuffle(order)
        now = [(i, begin(again)) for i, again in order]
        took: dict[int, list[float]] = {}
        for i, end in before:
            took.setdefault(i, []).append(end())
        rounds += [took] if before else []
        before = now
        if len(rounds) == _ROUNDS:
            meeting.count("done", 1)
        if len(rounds) >= _ROUNDS and meeting.count("done") >= meeting.world:
            break
    for _, end in before:
        end()
    found: dict[int, list[float]] = {}
    for each in rounds[: max(len(rounds) - 1, _ROUNDS)]:
        for i, times in each.items():
            found.setdefault(i, []).extend(times)
    return found


# ---- in the caller's process


def graph_with(graph: Graph, times: Mapping[str, Mapping[str, int]]) -> Graph:
    """A copy with other times: device -> operator -> ns."""
    made = graph.copy()
    for device, known in times.items():
        made.set_times(device, known)
    return made


def times_of(graph: Graph) -> dict[str, dict[str, int]]:
    """Device -> operator -> ns."""
    found: dict[str, dict[str, int]] = {d: {} for d in graph.devices}
    for op in graph.ops:
        for device, ns in (op.time_ns or {}).items():
            found[device][op.name] = ns
    return found


def beside(plan: Plan, shares: Mapping[str, float]) -> dict[str, float]:
    """Operator -> how much of the other devices computes while it does, by their shares: 0 to 1."""
    steps: dict[str, list[tuple[int, int]]] = {d: [] for d in shares}
    for s in plan.steps:
        steps[s.device].append((s.start_ns, s.finish_ns))
    before: dict[str, tuple[list[int], list[int], list[tuple[int, int]]]] = {}
    for d, some in steps.items():
        some.sort()
        sums = [0]
        for a, b in some:
            sums.append(sums[-1] + b - a)
        before[d] = [a for a, _ in some], sums, some

    def computed(d: str, at: int) -> int:
        """Until then."""
        begins, sums, some = before[d]
        n = bisect_right(begins, at)
        return sums[n] - (max(some[n - 1][1] - at, 0) if n else 0)

    found = {}
    for s in plan.steps:
        others = [d for d in shares if d != s.device]
        long, all_of = s.finish_ns - s.start_ns, sum(shares[d] for d in others)
        some_of = sum(shares[d] * (computed(d, s.finish_ns) - computed(d, s.start_ns)) for d in others)
        found[s.name] = some_of / (long * all_of) if long > 0 and all_of > 0 else 0.0
    return found


class Corrected:
    """Times of a network alone and with all devices busy, and what lies between."""

    def __init__(self, alone: Graph, busy: Graph, shares: Mapping[str, float]) -> None:
        self.graph, self.shares = alone, dict(shares)
        self.alone, self.busy = times_of(alone), times_of(busy)

    def _times(self, device: str, weight: Callable[[str], float]) -> dict[str, int]:
        alone = self.alone[device]
        busy = self.busy.get(device, alone)
        return {op: max(int(t + weight(op) * (busy.get(op, t) - t)), 1) for op, t in alone.items()}

    def before(self) -> Graph:
        """For a first search: all devices busy."""
        return graph_with(self.graph, {d: self._times(d, lambda _: 1.0) for d in self.alone})

    def after(self, plan: Plan) -> Graph:
        """For a plan that was found. Operators of other devices are taken to be like a device's own, in the mean."""
        weights, where = beside(plan, self.shares), plan.placement
        made = {}
        for d in self.alone:
            own = {op for op, at in where.items() if at == d}
            usual = _mean(weights[op] for op in own) if own else 1.0
            made[d] = self._times(d, lambda op: weights[op] if op in own else usual)  # noqa: B023
        return graph_with(self.graph, made)


def _mean(values: Iterable[float]) -> float:
    some = list(values)
    return sum(some) / len(some)
