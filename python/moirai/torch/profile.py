"""Measured times: every distinct operator on every device, and what a cut between two devices costs."""

from __future__ import annotations

import json
import os
import statistics
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Mapping, Sequence

import torch

from ..cluster import Cluster, Link
from ..graph import Graph, Op, Tensor
from ..plan import Plan
from ..problem import Problem
from .busy import graph_with
from .cache import chosen_folder, digest, read_json, write_json
from .capture import Captured
from .compiler import Compiler
from .distribute import distribute
from .ir import CONST, INPUT, OP, WEIGHT, Meta, Node, Ref
from .measure import OpTime, Options, OpToMeasure, bytes_of
from .precision import flags
from .workers import Workers

_PART_OF_MEMORY = 8  # of a GPU, for operators that are kept ready
_HOST_BYTES = 1 << 29


@dataclass
class Profile:
    """How a profile went: operators, how many of them are distinct, how many were measured now, and which could not
    be."""

    ops: int
    distinct: int
    measured: int
    failed: dict[str, str] = field(default_factory=dict)
    not_compiled: dict[str, str] = field(default_factory=dict)  # measured eagerly although it was to be compiled: why
    instead: dict[str, str] = field(default_factory=dict)  # products that cuBLAS gets wrong on a part -> what is taken
    eager_ns: dict[str, dict[str, int]] = field(default_factory=dict)  # device -> operator -> time with its launch


def _read_outside(captured: Captured) -> dict[str, list[str]]:
    """Operator -> what others read of it, or the caller: tensors as they were computed, parts of tuples."""
    home = {call: name for name, calls in captured.ops.items() for call in calls}
    reads = [(home[n.name], r) for n in captured.nodes.values() if n.kind == OP for r in n.refs()]
    reads += [("", leaf.name) for leaf in captured.out_leaves if isinstance(leaf, Ref)]
    found: dict[str, dict[str, None]] = {}
    for reader, ref in reads:
        path = captured.path_to(ref)
        maker = home.get(path[0])
        if maker is not None and maker != reader:
            tensor = path[0] if isinstance(captured.nodes[path[0]].meta, Meta) else path[1]
            found.setdefault(maker, {})[tensor] = None
    return {name: list(values) for name, values in found.items()}


def to_measure(captured: Captured, name: str, results: Sequence[str]) -> OpToMeasure:
    """Calls with the aliases between them; what they read from elsewhere is given in the view that they read."""
    nodes: dict[str, Node] = {}
    reads: dict[str, None] = {}
    calls = captured.ops[name]
    for call in calls:
        for ref in captured.nodes[call].refs():
            path = captured.path_to(ref)
            if path[0] in calls:
                nodes.update((n, captured.nodes[n]) for n in path[1:])
            else:
                reads[ref] = None
        nodes[call] = captured.nodes[call]
    for value in results:
        nodes.update((n, captured.nodes[n]) for n in captured.path_to(value))
    constant = {r for r in reads if captured.nodes[captured.path_to(r)[0]].kind in (WEIGHT, CONST)}
    metas = {r: captured.nodes[r].meta for r in reads}
    return OpToMeasure(tuple(nodes.values()), metas, frozenset(constant), tuple(results))


def signature(op: OpToMeasure) -> str:
    """What makes two operators equal: all but names."""
    return op.piece.text(op.metas) + repr([r in op.weights for r in op.metas])


class _Cache:
    """One file per kind of device; {} where it can't be read."""

    def __init__(self, folder: Path | None, identity: str, first: int) -> None:
        self.first = first  # of equal devices
        self.path = folder / (digest(identity) + ".json") if folder else None
        self.times: dict[str, Any] = read_json(self.path, {})

    def save(self) -> None:
        write_json(self.path, self.times)


def profile(
    captured: Captured,
    cluster: Cluster | str | Mapping[str, Any] | None = None,
    *,
    workers: Workers | None = None,
    cache: str | os.PathLike[str] | None | bool = True,
    fresh: bool = False,
    options: Options | None = None,
    turns: bool | None = None,
    busy: bool | None = None,
    code: bool = True,
) -> Profile:
    """Measures every distinct operator on every device and puts the times into `captured.graph`.

    `busy` measures each twice, alone and while all other devices compute (busy.py), and `captured.busy` is the graph with
    the latter; None: where there are several parts of GPUs. `Times`, `tune` and `plan` take both.

    Times are kept on disk (`cache`: a folder, True for the usual one, None for nowhere) under the operator and all that
    they depend on; `fresh` measures anew. Operators of a network with fuse="inductor" are measured as compiled code.
    Ranks of processors take `turns`; shares of a GPU are measured side by side, since they run side by side, too.
    Without `code` nothing is compiled: operators that are no library's get no time (products of a piece depend on its
    size by tiles, all else nearly by its bytes: `piece_times`).
    Operators that can't run alone (`failed`) are estimated from their traffic.
    """
    if workers is None:
        if cluster is None:
            raise ValueError("profile needs a cluster or workers")
        with Workers(cluster) as started:
            return profile(captured, workers=started, cache=cache, fresh=fresh, options=options, turns=turns, busy=busy,
                           code=code)  # fmt: skip
    options = options or Options()
    if workers.kind == "mixed":  # GPUs run operator by operator there
        options = replace(options, graphs=False)
    if options.cold is None:
        options = replace(options, cold=_cold(captured, workers))
    busy = bool(options.runs) and len(workers.devices) > 1 and (workers.kind == "cuda" if busy is None else busy)
    folder = chosen_folder(cache)
    outside = _read_outside(captured)
    todo = _Todo({}, {})
    for name in captured.ops:
        op = to_measure(captured, name, outside.get(name, []))
        if not code and captured.fuse == "inductor" and Compiler.worth(op.piece):
            continue
        todo.ops.setdefault(signature(op), op)
        todo.names.setdefault(signature(op), []).append(name)
    report = Profile(len(captured.ops), len(todo.ops), 0)
    job = {"options": options, "flags": flags(), "compile": captured.fuse == "inductor",
           "folder": os.path.abspath(folder) if folder else None}  # fmt: skip
    caches = _caches(workers, job, folder, busy)
    missing = {k: [s for s in todo.ops if fresh or s not in c.times] for k, c in caches.items() if c.first == k}
    if busy:
        together = [s for s in todo.ops if any(s in some for some in missing.values())]
        batches = [dict.fromkeys(missing, some) for some in todo.batches(together, workers, options)]
    elif workers.kind != "cuda" if turns is None else turns:
        batches = [{k: some} for k, some in missing.items()]
    else:
        batches = [missing]
    for batch in batches:
        workers.key += 1
        meet = f"profile{workers.key}" if busy else None
        jobs = {k: {**job, **todo.job(some, meet)} for k, some in batch.items() if some}
        for k, times in workers.tell("profile", jobs, 3600).items():
            caches[k].times.update({s: vars(t) for s, t in zip(batch[k], times)})
            caches[k].save()
            report.measured += len(times)
    slower: dict[str, dict[str, int]] = {}
    for k, device in enumerate(workers.devices):
        slower[device.name] = _put(captured, device.name, todo.names, caches[k].times, report)
    captured.busy = graph_with(captured.graph, slower) if busy else None
    return report


@dataclass
class _Todo:
    """Distinct operators by their signatures, and the names of those that are equal."""

    ops: dict[str, OpToMeasure]
    names: dict[str, list[str]]

    def job(self, some: Sequence[str], meet: str | None) -> dict[str, Any]:
        busy = {"key": meet, "counts": [len(self.names[s]) for s in some]} if meet else None
        return {"ops": [self.ops[s] for s in some], "busy": busy}

    def batches(self, some: Sequence[str], workers: Workers, options: Options) -> list[list[str]]:
        """As many at a time as ranks have memory for, since all stay ready until the last is; each batch has some of all."""
        gpus = [about["memory"] for about in workers.about.values() if about.get("memory")]
        most = min(gpus) // (_PART_OF_MEMORY * len(workers.devices)) if gpus else _HOST_BYTES
        kind, cold = "cuda" if gpus else "cpu", options.cold is not False
        n = -(-sum(bytes_of(self.ops[s], kind, cold) for s in some) // max(most, 1))
        return [list(some[k::n]) for k in range(min(n, len(some)))]


def _caches(workers: Workers, job: Mapping[str, Any], folder: Path | None, busy: bool) -> dict[int, _Cache]:
    """By device. Equal ones are measured once, unless all are to be busy: then a time depends on all of them."""
    found: dict[int, _Cache] = {}
    known: dict[str, _Cache] = {}
    about = [[workers.about[k], d.share, d.threads, d.ep] for k, d in enumerate(workers.devices)]
    for k, own in enumerate(about):
        what = [*own, vars(job["options"]), job["flags"], job["compile"], *([about, k] if busy else [])]
        identity = json.dumps(what, sort_keys=True)
        if identity not in known:
            known[identity] = _Cache(folder, identity, k)
        found[k] = known[identity]
    return found


def _cold(captured: Captured, workers: Workers) -> bool:
    """Whether a request finds weights where the last one left them: parts of a GPU share its cache."""
    caches = [about.get("cache", 0) for about in workers.about.values()]
    return sum(w.numel() * w.element_size() for w in captured.weights.values()) > max(caches, default=0) // 2


def _put(
    captured: Captured, device: str, by_signature: dict[str, list[str]], times: dict[str, Any], report: Profile
) -> dict[str, int]:
    """Returns the times with all devices busy, where these were measured."""
    known: dict[str, int] = {}
    busy: dict[str, int] = {}
    for signature, names in by_signature.items():
        t = OpTime(**times[signature])
        for name in names:
            if t.time_ns is None:
                report.failed[name] = t.reason
            else:
                known[name] = t.time_ns
                busy[name] = t.busy_ns or t.time_ns
                if t.not_compiled:
                    report.not_compiled[name] = t.not_compiled
                if t.instead:
                    report.instead[name] = t.instead
                report.eager_ns.setdefault(device, {})[name] = t.eager_ns or t.time_ns
    for some in (known, busy):
        _estimate(captured, some, report)
    captured.graph.set_times(device, known)
    return busy


def _estimate(captured: Captured, known: dict[str, int], report: Profile) -> None:
    """What could not be measured takes the device's median time per byte of traffic."""
    ops = {op.name: op for op in captured.graph.ops}
    rates = [ns / t for name, ns in known.items() if (t := ops[name].traffic_bytes)]
    rate = statistics.median(rates) if rates else 0.0
    for name in report.failed:
        known.setdefault(name, max(int(rate * (ops[name].traffic_bytes or 0)), 1))


# ---- links


def chain(length: int, n_bytes: int) -> Captured:
    """`length` operators in a row on a tensor of that size."""
    meta = Meta((max(n_bytes // 4, 1),), torch.float32, (1,))
    nodes = {"x": Node("x", INPUT, meta=meta)}
    ops = []
    before = "x"
    for i in range(length):
        name = f"relu{i}"
        nodes[name] = Node(name, OP, "aten.relu.default", (Ref(before),), {}, meta)
        ops.append(
            Op(name, "relu", (before,), (Tensor(name, meta.bytes),), flops=meta.numel, traffic_bytes=2 * meta.bytes)
        )
        before = name
    spec = torch.utils._pytree.tree_flatten(((torch.empty(0),), {}))[1]
    out = torch.utils._pytree.tree_flatten(torch.empty(0))[1]
    names = {n: n for n in nodes if n != "x"}
    return Captured(
        Graph.build("chain", ops), nodes, {}, ["x"], spec, [Ref("x")], out, [Ref(before)],
        {n: (n,) for n in names}, dict(names),
    )  # fmt: skip


def probe(
    workers: Workers,
    *,
    transport: str = "auto",
    length: int = 16,
    sizes: tuple[int, int] | None = None,
    runs: int = 20,
) -> Cluster:
    """The workers' cluster with measured links: what a plan's cut costs, end to end.

    A chain of small operators goes back and forth between two devices; what that takes beyond the same chain on one of
    each, per cut, is the time of a transfer, in the mean of both directions. The smaller size gives the latency, both
    the bandwidth: 4 kB and 4 MB, through the host 512 kB, since short messages have another way than long ones.
    """
    sizes = sizes or (4096, 1 << 19 if transport == "host" else 4 << 20)
    devices = workers.devices
    hop: dict[tuple[int, int, int], float] = {}
    for size in sizes:
        captured = chain(length, size)
        for d in devices:
            captured.graph.set_times(d.name, [1000] * length)
        every = [Link(a.name, b.name, 10**9, 1000) for a in devices for b in devices if a.name != b.name]
        problem = Problem(captured.graph, workers.cluster.with_links(every))
        names = list(captured.ops)

        def latency(places: list[str]) -> float:
            plan = Plan.by_devices(problem, dict(zip(names, places)))
            with distribute(captured, plan, workers=workers, transport=transport, stall_s=20) as module:
                return float(statistics.median(module.measure(warmup=5, runs=runs).latency_ns))

        alone = {d.name: latency([d.name] * length) for d in devices}
        for i, a in enumerate(devices):
            for j, b in enumerate(devices[:i]):
                both = latency([(a, b)[x % 2].name for x in range(length)])
                hop[i, j, size] = max((both - (alone[a.name] + alone[b.name]) / 2) / (length - 1), 0.0)
    links = []
    for i, a in enumerate(devices):
        for j, b in enumerate(devices[:i]):
            small, large = hop[i, j, sizes[0]], hop[i, j, sizes[1]]
            per_byte = max(large - small, 0.0) / (sizes[1] - sizes[0])
            rate = int(min(1e9 / per_byte, 1e13)) if per_byte > 1e-4 else 10**13
            for x, y in ((a, b), (b, a)):
                links.append(Link(x.name, y.name, rate, int(small)))
    return workers.cluster.with_links(links, name=f"{workers.cluster.name}-{transport}")
