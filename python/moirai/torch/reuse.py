"""When what left a device may go: memory of tensors that others read where they were computed.

Readers look at a tensor in its owner's memory, and nothing tells the owner that they are done. But whatever arrives
from a reader later tells it: its segments run one after the other, so a tensor that one of them sent was sent after all
that it had read before. What a device knows of the others' progress is carried from message to message, as clocks of
vectors are in distributed systems: the segments of each rank that are known to have ended.

This goes by the plan's operators: what one of them made is taken to be its own. Where a kernel hands back a view of
what it read (a reshape that need not copy), the rank makes it so (rank_cuda.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

if TYPE_CHECKING:
    from .program import RankProgram, Segment

Clock = list[int]  # segments of each rank that are known to have ended


def mark_released(ranks: list[RankProgram], base: Callable[[str], str]) -> None:
    """Gives each segment the values (`released`) that nobody reads any more when it begins, here or elsewhere, of those
    that left the device. `base` of a value is what it is a view of: views go together."""
    clocks = known_ended(ranks)
    sent: list[dict[str, set[int]]] = [{} for _ in ranks]  # by rank: what leaves, and who reads it
    for k, rank in enumerate(ranks):
        for s in (s for g in rank.segments for s in g.sends):
            sent[k].setdefault(base(s.value), set()).add(s.target)
    last = [_last_reads(rank, base) for rank in ranks]
    for k, rank in enumerate(ranks):
        arrives = {base(w.value) for g in rank.segments for w in g.waits}
        rank.looks = {n.name for g in rank.segments for s in g.steps for n in s.nodes if base(n.name) in arrives}
        names: dict[str, list[str]] = {b: [] for b in sent[k]}
        for node in (n for g in rank.segments for step in g.steps for n in step.nodes):
            if base(node.name) in names:
                names[base(node.name)].append(node.name)
        for what, readers in sent[k].items():
            needed = {r: last[r].get(what, -1) for r in readers}
            begin = last[k].get(what, -1) + 1
            for i in range(begin, len(rank.segments)):
                if all(clocks[k][i][r] > at for r, at in needed.items()):
                    rank.segments[i].released += names[what]
                    break


def known_ended(ranks: list[RankProgram]) -> list[list[Clock]]:
    """By rank and segment: how many segments of each rank have ended for certain when that one has begun."""
    maker = {s.index: (k, i) for k, r in enumerate(ranks) for i, g in enumerate(r.segments) for s in g.sends}
    clocks: list[list[Clock]] = [[] for _ in ranks]
    moved = True
    while moved:
        moved = False
        for k, rank in enumerate(ranks):
            while len(clocks[k]) < len(rank.segments):
                found = _clock(k, rank.segments[len(clocks[k])], clocks, maker)
                if found is None:
                    break
                clocks[k].append(found)
                moved = True
    return clocks


def _clock(k: int, segment: Segment, clocks: list[list[Clock]], maker: dict[int, tuple[int, int]]) -> Clock | None:
    """None: a rank that it waits for has not come that far."""
    i = len(clocks[k])
    clock = [*clocks[k][-1]] if i else [0] * len(clocks)
    clock[k] = i
    for w in segment.waits:
        r, j = maker[w.index]
        if j >= len(clocks[r]):
            return None
        theirs = clocks[r][j]
        clock = [max(a, b) for a, b in zip(clock, theirs)]
        clock[r] = max(clock[r], j + 1)
    return clock


def _last_reads(rank: RankProgram, base: Callable[[str], str]) -> dict[str, int]:
    """The last segment that makes, reads or sends it; one past the last for the caller's results."""
    last: dict[str, int] = {}
    for i, g in enumerate(rank.segments):
        for node in (n for step in g.steps for n in step.nodes):
            last.update(dict.fromkeys([base(node.name), *map(base, node.refs())], i))
        last.update((base(x.value), i) for x in [*g.waits, *g.sends])
    for _, value, nodes in rank.outputs:
        read = [value, *(n.name for n in nodes), *(r for n in nodes for r in n.refs())]
        last.update(dict.fromkeys(map(base, read), len(rank.segments)))
    return last
