"""What it costs a device to meet others, and segments merged where that is more than a delay costs.

Between two segments a device computes nothing: it says what is there and looks for what it needs. A model of messages
knows the delay of a message alone, so that its plans have too many cuts and are predicted to be too short. Here a plan
is played through as the runtime runs it: a segment begins when all that it reads has arrived, and no sooner than the
meeting behind the one before it. Neighbours on a device are merged as long as that ends no later (src/split/split_merge.c
does so for ONNX models): what the first sends leaves later then, and what the second reads is awaited sooner.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Any, Mapping, Sequence

from ..plan import Plan
from .capture import Captured
from .program import Segment, Send, build

_MOST_STEPS = 500_000  # segments and messages played through, in all: beyond that a merge is worth nothing
_MOST_PASSES = 4


@dataclass
class Item:
    """A segment as it is played through: messages are numbers of transfers."""

    work_ns: int
    waits: list[int]
    sends: list[int]


@dataclass
class Score:
    makespan_ns: int
    sum_ns: int = 0  # of all arrivals, and of the devices' ends

    def no_later(self, other: Score) -> bool:
        return (self.makespan_ns, self.sum_ns) <= (other.makespan_ns, other.sum_ns)


@dataclass
class Game:
    """All that a run depends on but the segments. `took_ns` is of messages; `ports`: a device sends, and receives, one
    at a time."""

    took_ns: Sequence[int]
    source: Sequence[int]
    target: Sequence[int]
    meeting_ns: Sequence[int]  # by device
    ports: bool = False
    ordered: bool = False  # messages leave a device, and pass between two, in the plan's order
    before: list[list[int]] = field(default_factory=list)  # message -> those that leave before it

    def __post_init__(self) -> None:
        last: dict[Any, int] = {}
        for i, (a, b) in enumerate(zip(self.source, self.target)):
            ways = [a, (min(a, b), max(a, b))] if self.ordered or self.ports else []
            self.before.append([last[w] for w in ways if w in last])
            last.update(dict.fromkeys(ways, i))

    def play(self, ranks: Sequence[Sequence[Item]]) -> Score | None:
        """None: segments wait for each other in a circle."""
        there_ns: dict[int, int] = {}
        at, free_ns = [0] * len(ranks), [0] * len(ranks)
        out_ns, in_ns = [0] * len(ranks), [0] * len(ranks)
        ready: list[tuple[int, int]] = []  # (end, device) of segments that run
        held: dict[int, int] = {}  # message that is done -> when, while one before it is not

        def begin(k: int) -> None:
            if at[k] < len(ranks[k]) and all(w in there_ns for w in ranks[k][at[k]].waits):
                start = max([free_ns[k], *(there_ns[w] for w in ranks[k][at[k]].waits)])
                heapq.heappush(ready, (start + ranks[k][at[k]].work_ns, k))

        def send(now: int) -> set[int]:
            """Whatever may leave; returns who gets something."""
            told: set[int] = set()
            for m in sorted(held):
                if all(x in there_ns for x in self.before[m]):
                    start, a, b = max(held.pop(m), now), self.source[m], self.target[m]
                    if self.ports:
                        start = max(start, out_ns[a], in_ns[b])
                    there_ns[m] = out_ns[a] = in_ns[b] = start + self.took_ns[m]
                    told.add(b)
            return told

        for k in range(len(ranks)):
            begin(k)
        ends = [0] * len(ranks)
        while ready:
            now, k = heapq.heappop(ready)
            done = ranks[k][at[k]]
            at[k] += 1
            ends[k] = now
            free_ns[k] = now + self.meeting_ns[k]
            held.update(dict.fromkeys(done.sends, now))
            for x in sorted(({*send(now), k} if held else {k}) - {x for _, x in ready}):
                begin(x)
        if any(at[k] < len(ranks[k]) for k in range(len(ranks))):
            return None
        return Score(max(ends, default=0), sum(there_ns.values()) + sum(ends))


def _joined(a: Item, b: Item) -> Item:
    return Item(a.work_ns + b.work_ns, [*a.waits, *b.waits], [*a.sends, *b.sends])


def merge(game: Game, ranks: list[list[Item]]) -> tuple[list[list[int]], Score | None]:
    """How many segments each of the merged ones is made of, and how that ends. Greedy, until nothing changes."""
    sizes = [[1] * len(r) for r in ranks]
    best = game.play(ranks)
    size = sum(map(len, ranks)) + len(game.took_ns)
    left = _MOST_STEPS // max(size, 1)
    for _ in range(_MOST_PASSES):
        merged = False
        for k, items in enumerate(ranks):
            i = 0
            while i + 1 < len(items) and left > 0 and best:
                left -= 1
                tried = [*items[:i], _joined(items[i], items[i + 1]), *items[i + 2 :]]
                found = game.play([*ranks[:k], tried, *ranks[k + 1 :]])
                if found and found.no_later(best):
                    items[:], best, merged = tried, found, True
                    sizes[k][i : i + 2] = [sizes[k][i] + sizes[k][i + 1]]
                else:
                    i += 1
        if not merged:
            break
    return sizes, best


def expect(captured: Captured, plan: Plan, meetings: Mapping[str, int], ports: bool) -> Plan:
    """The plan, which knows what meetings cost and when it ends with them. Its problem's latencies are those of messages
    alone."""
    plan.meetings, plan.ports = dict(meetings), ports
    plan.expected_ns = build(captured, plan, merge=True).planned_ns
    return plan


def expected_ns(plan: Plan) -> int:
    return plan.makespan_ns if plan.expected_ns is None else plan.expected_ns


def _item(g: Segment) -> Item:
    return Item(g.work_ns, [w.index for w in g.waits], [s.index for s in g.sends])


def _segment(some: Sequence[Segment]) -> Segment:
    """Of several one, that waits for all they read, and sends when all is done."""
    waits = sorted((w for g in some for w in g.waits), key=lambda w: w.index)
    sends = sorted((s for g in some for s in g.sends), key=lambda s: s.index)
    return Segment(waits, [s for g in some for s in g.steps], sends)


def merged(
    ranks: Sequence[Sequence[Segment]], sends: Sequence[Send], devices: Sequence[str], meetings: Mapping[str, int],
    ports: bool = False, ordered: bool = False,
) -> tuple[int, list[list[Segment]]]:  # fmt: skip
    """When a run is expected to end, in nanoseconds, and the segments of which that holds."""
    took = [t.finish_ns - t.start_ns for t in sends]
    game = Game(took, [t.source for t in sends], [t.target for t in sends], [meetings.get(d, 0) for d in devices],
                ports, ordered)  # fmt: skip
    sizes, score = merge(game, [[_item(g) for g in r] for r in ranks])
    if score is None:  # messages in this order would wait for each other: nothing is known of such a run
        return max((g.finish_ns for r in ranks for g in r), default=0), [list(r) for r in ranks]
    found: list[list[Segment]] = []
    for segments, counts in zip(ranks, sizes):
        ends = [sum(counts[: i + 1]) for i in range(len(counts))]
        found.append([_segment(segments[end - n : end]) for n, end in zip(counts, ends)])
    return score.makespan_ns, found
