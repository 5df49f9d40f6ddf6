"""What ranks measured, in the format of `moirai run` (docs/run.md, moirai-timeline)."""

from __future__ import annotations

import json
import os
import statistics
from dataclasses import dataclass
from typing import Any

from .program import Program, Segment
from .rank import Stamps


@dataclass(frozen=True)
class Measured:
    """Latencies of a distributed module, in nanoseconds, and the timeline they came with."""

    latency_ns: list[int]
    timeline: dict[str, Any]

    @property
    def median_ns(self) -> int:
        return int(statistics.median(self.latency_ns))

    @property
    def least_ns(self) -> int:
        return min(self.latency_ns)

    def save(self, path: str | os.PathLike[str]) -> None:
        with open(path, "w") as file:
            json.dump(self.timeline, file)
            file.write("\n")

    def __repr__(self) -> str:
        planned = self.timeline["planned_ns"]
        off = "" if not planned else f", planned {planned / 1e6:.3f} ms ({100 * (planned / self.median_ns - 1):+.1f} %)"
        return f"<measured {self.median_ns / 1e6:.3f} ms over {len(self.latency_ns)} runs{off}>"


def _queue(program: Program, stamps: dict[int, list[Stamps]]) -> None:
    """Copies through the host leave one after the other, in the plan's order; what a rank notes is when a tensor was
    ready. So a copy starts when the one before it, taken to last as planned, has left."""
    for k, runs in stamps.items():
        mine = [t for t in program.transfers if t.source == k]
        for s in runs:
            free = 0
            for t in mine:
                s.sent[t.index] = max(s.sent[t.index], free)
                free = s.sent[t.index] + t.finish_ns - t.start_ns


def timeline(program: Program, stamps: dict[int, list[Stamps]], warmup: int, queued: bool = False) -> Measured:
    """A run's latency is from the moment when all ranks have begun to the end of the last segment. `queued`: tensors
    leave a device one at a time."""
    if queued:
        _queue(program, stamps)
    runs = len(next(iter(stamps.values())))
    start = [max(s[i].start for s in stamps.values()) for i in range(runs)]
    latency = [max(s[i].end for s in stamps.values()) - start[i] for i in range(runs)]
    middle = sorted(range(runs), key=lambda i: latency[i])[runs // 2]
    devices = [_device(program, k, stamps, start, middle) for k in sorted(stamps)]
    transfers = [_transfer(program, t, stamps, start, middle) for t in program.transfers]
    ordered = sorted(latency)
    whole = {
        "format": "moirai-timeline",
        "version": 1,
        "model": program.name,
        "warmup": warmup,
        "runs": runs,
        "planned_ns": program.planned_ns,
        "least_ns": ordered[0],
        "median_ns": int(statistics.median(ordered)),
        "mean_ns": int(statistics.fmean(ordered)),
        "p90_ns": ordered[min(int(0.9 * runs), runs - 1)],
        "p99_ns": ordered[min(int(0.99 * runs), runs - 1)],
        "most_ns": ordered[-1],
        "latency_ns": latency,
        "devices": devices,
        "transfers": transfers,
        "outputs": [],
    }
    return Measured(latency, whole)


def _held(segments: list[Segment], i: int, k: int, stamps: dict[int, list[Stamps]]) -> int:
    """What passes between a segment and the next although all that this one reads had left before: the device can
    neither compute then nor is there anything to wait for."""
    found = []
    for run, s in enumerate(stamps[k]):
        end = s.segments[i][1]
        there = all(stamps[w.source][run].sent[w.index] <= end for w in segments[i + 1].waits)
        found.append(max(s.segments[i + 1][0] - end, 0) if there else 0)
    return int(statistics.median(found))


def _device(program: Program, k: int, stamps: dict[int, list[Stamps]], start: list[int], middle: int) -> dict[str, Any]:
    rank = program.ranks[k]
    segments = []
    for i, g in enumerate(rank.segments):
        lengths = [s.segments[i][1] - s.segments[i][0] for s in stamps[k]]
        begin, end = stamps[k][middle].segments[i]
        segments.append(
            {
                "file": f"{k}-{rank.device}-{i}",
                "planned_start_ns": g.start_ns,
                "planned_finish_ns": g.finish_ns,
                "planned_work_ns": g.work_ns,
                "start_ns": begin - start[middle],
                "finish_ns": end - start[middle],
                "median_ns": int(statistics.median(lengths)),
                "held_ns": _held(rank.segments, i, k, stamps) if i + 1 < len(rank.segments) else 0,
                "ops": [s.op for s in g.steps],
            }
        )
    return {"name": rank.device, "segments": segments}


def _transfer(
    program: Program, t: Any, stamps: dict[int, list[Stamps]], start: list[int], middle: int
) -> dict[str, Any]:
    sent = [s.sent[t.index] for s in stamps[t.source]]
    arrived = [s.arrived[t.index] for s in stamps[t.target]]
    lengths = [max(b - a, 0) for a, b in zip(sent, arrived)]
    return {
        "tensor": t.tensor,
        "from": program.ranks[t.source].device,
        "to": program.ranks[t.target].device,
        "bytes": t.meta.bytes,
        "planned_start_ns": t.start_ns,
        "planned_finish_ns": t.finish_ns,
        "start_ns": sent[middle] - start[middle],
        "finish_ns": max(arrived[middle], sent[middle]) - start[middle],
        "median_ns": int(statistics.median(lengths)),
    }
