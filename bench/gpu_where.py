"""Where a plan's prediction and its run part: in its segments, in its messages, or in meetings."""

from __future__ import annotations

import statistics
from typing import Any, Mapping

from moirai.torch import merging
from moirai.torch.merging import Game, Item
from moirai.torch.program import Program


def waited(program: Program, timeline: Mapping[str, Any]) -> list[int]:
    """What messages took for which the receiver had nothing else to do: it looks for others only when it needs them."""
    found = []
    for k, rank in enumerate(program.ranks):
        segments = next((d["segments"] for d in timeline["devices"] if d["name"] == rank.device), [])
        for i, g in enumerate(rank.segments):
            last = segments[i - 1]["finish_ns"] if i else 0
            for w in g.waits:
                t = timeline["transfers"][w.index]
                if t["start_ns"] > last and t["finish_ns"] >= segments[i]["start_ns"] - 500:
                    found.append(t["finish_ns"] - t["start_ns"])
    return found


def play(program: Program, works: list[list[int]], took: list[int], meetings: Mapping[str, int]) -> float:
    """In milliseconds: the runtime's rules with these times."""
    ranks = [[Item(w, [x.index for x in g.waits], [s.index for s in g.sends]) for g, w in zip(r.segments, work)]
             for r, work in zip(program.ranks, works)]  # fmt: skip
    ends = [(t.source, t.target) for t in program.transfers]
    game = Game(took, [a for a, _ in ends], [b for _, b in ends], [meetings.get(r.device, 0) for r in program.ranks])
    return (merging.play(game, ranks) or 0) / 1e6


def where(program: Program, timeline: Mapping[str, Any], meetings: Mapping[str, int]) -> dict[str, Any]:
    """The makespan by the plan's times, with segments as they were measured, and with messages, too; busy devices."""
    by_name = {d["name"]: d["segments"] for d in timeline["devices"]}
    planned = [[g.work_ns for g in r.segments] for r in program.ranks]
    measured = [[s["median_ns"] for s in by_name.get(r.device, [])] for r in program.ranks]
    took = [t.finish_ns - t.start_ns for t in program.transfers]
    begins = [getattr(meetings.get(r.device, 0), "begin_ns", 0) for r in program.ranks]
    late = waited(program, timeline)
    usual = int(statistics.median(late)) if late else 0
    found: dict[str, Any] = {
        "planned_ms": play(program, planned, [ns + begins[t.target] for ns, t in zip(took, program.transfers)], meetings),
        "segments_ms": play(program, measured, took, meetings),
        "messages_ms": play(program, measured, [max(usual, x) for x in took] if usual else took, meetings),
        "message_us": usual / 1000,
    }
    for r, p, m in zip(program.ranks, planned, measured):
        held = sum(s["held_ns"] for s in by_name.get(r.device, []))
        found[r.device] = f"{len(p)} segments, planned {sum(p) / 1e6:.3f}, took {sum(m) / 1e6:.3f}, held {held / 1e6:.3f} ms"
    return found
