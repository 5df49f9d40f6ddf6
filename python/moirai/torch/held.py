"""What a meeting with others holds a device up for, measured once per machine through the runtime itself.

Every device has a chain of operators, all of them at once. Once each reads what it has computed itself, and the chain is
one segment; once some read what their neighbour has computed a segment earlier, with a meeting on both sides of every
segment, for which nobody should have to wait. What a device is busy for longer then, per segment, is a meeting:
flags, kernels that can't follow each other as closely, memory that another device has written. What segments themselves
take longer comes after what they wait for, so that a device that waits pays for it as well (`Meeting.begin_ns`). Where readers look at what
was computed where it is, a segment is one operator; where it is copied through the host, segments are longer than the
copies, which are messages and no meetings.
"""

from __future__ import annotations

import json
import os
import statistics
from typing import Any

import torch

from ..cluster import Link
from ..graph import Graph, Op, Tensor
from ..plan import Plan
from ..problem import Problem
from .cache import chosen_folder, digest, read_json, write_json
from .capture import Captured
from .distribute import distribute
from .ir import INPUT, OP, Meta, Node, Ref
from .workers import Workers

_FORMAT = {"format": "moirai-meetings", "version": 4}
_SIZES = {"ipc": (16, 1 << 20, 1), "host": (96, 1 << 16, 16)}  # operators of a device, bytes of each, operators of a segment


class Meeting(int):
    """Nanoseconds that a meeting holds a device up, `begin_ns` of them once all that it waits for is there."""

    begin_ns: int

    def __new__(cls, all_ns: int, begin_ns: int = 0) -> Meeting:
        made = super().__new__(cls, all_ns)
        made.begin_ns = begin_ns
        return made


def ring(devices: int, steps: int, n_bytes: int, apart: bool, long: int = 1) -> tuple[Captured, dict[str, int]]:
    """The network, and the device of every operator; `apart`: no device reads what another has computed. The first of
    `long` operators reads the last of the neighbour's segment before its last one."""
    meta = Meta((max(n_bytes // 4, 1),), torch.float32, (1,))
    nodes = {"x": Node("x", INPUT, meta=meta)}
    ops, where = [], {}
    for i in range(steps):
        for d in range(devices):
            name, other = f"d{d}_{i}", d if apart else (d - 1) % devices
            own, theirs = f"d{d}_{i - 1}", f"d{other}_{i - long - 1}"
            reads = ["x", "x"] if i == 0 else [own, theirs if i > long and i % long == 0 else own]
            nodes[name] = Node(name, OP, "aten.add.Tensor", tuple(Ref(r) for r in reads), {}, meta)
            ops.append(Op(name, "add", tuple(dict.fromkeys(reads)), (Tensor(name, meta.bytes),), flops=meta.numel,
                          traffic_bytes=3 * meta.bytes))  # fmt: skip
            where[name] = d
    spec = torch.utils._pytree.tree_flatten(((torch.empty(0),), {}))[1]
    last = [Ref(f"d{d}_{steps - 1}") for d in range(devices)]
    out = torch.utils._pytree.tree_flatten(tuple(torch.empty(0) for _ in last))[1]
    names = {n: n for n in where}
    found = Captured(Graph.build("ring", ops), nodes, {}, ["x"], spec, [Ref("x")], out, last,
                     {n: (n,) for n in names}, dict(names))  # fmt: skip
    return found, where


def _busy(
    workers: Workers, transport: str, size: tuple[int, int, int], apart: bool, runs: int
) -> list[dict[str, Any]]:
    """The timeline's devices."""
    names = [d.name for d in workers.devices]
    steps, n_bytes, long = size
    captured, where = ring(len(names), steps, n_bytes, apart, long)
    for name in names:
        captured.graph.set_times(name, [100_000] * len(captured.graph))
    every = [Link(a, b, 10**12, 1000) for a in names for b in names if a != b]
    problem = Problem(captured.graph, workers.cluster.with_links(every))
    plan = Plan.by_devices(problem, {op: names[d] for op, d in where.items()})
    with distribute(captured, plan, workers=workers, transport=transport, stall_s=20) as run:
        return run.measure(warmup=5, runs=runs).timeline["devices"]  # type: ignore[no-any-return]


def meeting_ns(apart: list[dict[str, Any]], ring: list[dict[str, Any]]) -> dict[str, Meeting]:
    """Device -> a meeting: what its segments took longer, and what passed between them although nothing was missing,
    medians of all. A device that had to wait each time is taken to be like the others."""
    op = {d["name"]: sum(g["median_ns"] for g in d["segments"]) / sum(len(g["ops"]) for g in d["segments"]) for d in apart}
    longer: dict[str, float] = {}
    held: dict[str, float] = {}
    for d in ring:
        each = statistics.median(g["median_ns"] - len(g["ops"]) * op[d["name"]] for g in d["segments"])
        longer[d["name"]] = max(each, 0.0)
        idle = [g["held_ns"] for g in d["segments"] if g["held_ns"] > 0]
        if idle:
            held[d["name"]] = statistics.median(idle)
    usual = statistics.median(held.values()) if held else 0.0
    return {name: Meeting(max(int(ns + held.get(name, usual)), 1), int(ns)) for name, ns in longer.items()}


def meetings(
    workers: Workers,
    *,
    transport: str = "auto",
    cache: str | os.PathLike[str] | None | bool = True,
    fresh: bool = False,
    steps: int | None = None,
    n_bytes: int | None = None,
    runs: int = 20,
) -> dict[str, Meeting]:
    """Device -> nanoseconds that a meeting with others holds it up, for `Times`. {} for one device.

    Kept in `cache`, as times of operators are (`profile`), under the machine's devices and the transport."""
    if len(workers.devices) < 2:
        return {}
    about = [[workers.about[k], d.share, d.threads, d.ep] for k, d in enumerate(workers.devices)]
    size = _SIZES.get(transport, _SIZES["ipc"])
    size = steps or size[0], n_bytes or size[1], size[2]
    identity = json.dumps([_FORMAT, about, transport, size], sort_keys=True)
    folder = chosen_folder(cache)
    path = folder / f"meetings-{digest(identity)}.json" if folder else None
    known = {} if fresh else read_json(path, {})
    names = [d.name for d in workers.devices]
    if known.get("format") == _FORMAT["format"] and all(len(known.get(k, ())) == len(names) for k in ("meeting_ns", "begin_ns")):
        return {d: Meeting(int(ns), int(begin)) for d, ns, begin in zip(names, known["meeting_ns"], known["begin_ns"])}
    measured = [_busy(workers, transport, size, apart, runs) for apart in (True, False)]
    found = meeting_ns(*measured)
    times = {"meeting_ns": [int(found[n]) for n in names], "begin_ns": [found[n].begin_ns for n in names]}
    write_json(path, {**_FORMAT, "transport": transport, **times})
    return found
