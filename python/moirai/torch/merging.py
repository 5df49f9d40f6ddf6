"""What it costs a device to meet others, and segments merged where that is more than a delay costs.

Between two segments a device computes nothing: it says what is there and looks for what it needs. A model of messages
knows the delay of a message alone, so that its plans have too many cuts and are predicted to be too short. Here a plan
is played through as the runtime runs it: a segment begins when all that it reads has arrived, and no sooner than the
meeting behind the one before it. Neighbours on a device are merged as long as that ends no later (src/split/split_merge.c
does so for ONNX models): what the first sends leaves later then, and what the second reads is awaited sooner. The library
plays and merges (moirai/segments.h).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Sequence

from .._lib import check, ffi, lib
from ..plan import Plan
from .capture import Captured
from .program import Segment, Send, build


@dataclass
class Item:
    """A segment as it is played through: messages are numbers of transfers."""

    work_ns: int
    waits: list[int]
    sends: list[int]


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


def _offsets(lengths: Sequence[int]) -> list[int]:
    found = [0]
    for n in lengths:
        found.append(found[-1] + n)
    return found


def _segments(game: Game, ranks: Sequence[Sequence[Item]]) -> tuple[Any, list[Any]]:
    """A `moirai_segments`, and what keeps its arrays alive."""
    kept: list[Any] = []

    def array(of: str, values: Sequence[int]) -> Any:
        kept.append(ffi.new(of, values or [0]))
        return kept[-1]

    items = [i for r in ranks for i in r]
    s = ffi.new("moirai_segments *")
    s.n_devices, s.n_messages, s.ports, s.ordered = len(ranks), len(game.took_ns), game.ports, game.ordered
    s.device_off = array("int32_t[]", _offsets([len(r) for r in ranks]))
    s.work_ns = array("int64_t[]", [i.work_ns for i in items])
    s.meeting_ns = array("int64_t[]", game.meeting_ns)
    s.wait_off = array("int32_t[]", _offsets([len(i.waits) for i in items]))
    s.wait = array("int32_t[]", [w for i in items for w in i.waits])
    s.send_off = array("int32_t[]", _offsets([len(i.sends) for i in items]))
    s.send = array("int32_t[]", [x for i in items for x in i.sends])
    s.took_ns = array("int64_t[]", game.took_ns)
    s.source, s.target = array("int32_t[]", game.source), array("int32_t[]", game.target)
    return s, kept


def play(game: Game, ranks: Sequence[Sequence[Item]]) -> int | None:
    """When a run ends, in nanoseconds; None: segments wait for each other in a circle."""
    s, _kept = _segments(game, ranks)
    end = ffi.new("int64_t *")
    check(lib.moirai_segments_play(end, s, ffi.NULL))
    return None if end[0] < 0 else int(end[0])


def merge(game: Game, ranks: Sequence[Sequence[Item]]) -> tuple[list[list[int]], int | None]:
    """How many segments each of the merged ones is made of, and when that ends."""
    s, _kept = _segments(game, ranks)
    begins, end = ffi.new("bool[]", sum(map(len, ranks)) + 1), ffi.new("int64_t *")
    check(lib.moirai_segments_merge(begins, end, s))
    sizes: list[list[int]] = []
    at = 0
    for r in ranks:
        sizes.append([])
        for b in begins[at : at + len(r)]:
            sizes[-1] += [1] if b else []
            sizes[-1][-1] += not b
        at += len(r)
    return sizes, None if end[0] < 0 else int(end[0])


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
    """When a run is expected to end, in nanoseconds, and the segments of which that holds. What a meeting takes once its
    messages are there (held.py) is as if these took longer, unless they are copies, one at a time."""
    begin_ns = [0 if ports else getattr(meetings.get(d, 0), "begin_ns", 0) for d in devices]
    took = [t.finish_ns - t.start_ns + begin_ns[t.target] for t in sends]
    game = Game(took, [t.source for t in sends], [t.target for t in sends], [meetings.get(d, 0) for d in devices],
                ports, ordered)  # fmt: skip
    sizes, end_ns = merge(game, [[_item(g) for g in r] for r in ranks])
    if end_ns is None:  # messages in this order would wait for each other: nothing is known of such a run
        return max((g.finish_ns for r in ranks for g in r), default=0), [list(r) for r in ranks]
    found: list[list[Segment]] = []
    for segments, counts in zip(ranks, sizes):
        ends = [sum(counts[: i + 1]) for i in range(len(counts))]
        found.append([_segment(segments[end - n : end]) for n, end in zip(counts, ends)])
    return end_ns, found
