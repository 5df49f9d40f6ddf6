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
from .cache import chosen_folder, digest, read_json, write_json
from .capture import Captured
from .distribute import distribute
from .ir import CONST, INPUT, OP, WEIGHT, Meta, Node, Ref
from .measure import OpTime, Options, OpToMeasure
from .precision import flags
from .workers import Workers


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

    def __init__(self, folder: Path | None, identity: str) -> None:
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
) -> Profile:
    """Measures every distinct operator on every device and puts the times into `captured.graph`.

    Times are kept on disk (`cache`: a folder, True for the usual one, None for nowhere) under the operator and all that
    they depend on; `fresh` measures anew. Operators of a network with fuse="inductor" are measured as compiled code.
    Ranks of processors take `turns`; shares of a GPU are measured side by side, since they run side by side, too.
    Operators that can't run alone (`failed`) are estimated from their traffic.
    """
    if workers is None:
        if cluster is None:
            raise ValueError("profile needs a cluster or workers")
        with Workers(cluster) as started:
            return profile(captured, workers=started, cache=cache, fresh=fresh, options=options, turns=turns)
    options = options or Options()
    if workers.kind == "mixed":  # GPUs run operator by operator there
        options = replace(options, graphs=False)
    if options.cold is None:
        options = replace(options, cold=_cold(captured, workers))
    folder, compiled = chosen_folder(cache), captured.fuse == "inductor"
    by_signature: dict[str, list[str]] = {}
    outside = _read_outside(captured)
    ops = {name: to_measure(captured, name, outside.get(name, [])) for name in captured.ops}
    for name, op in ops.items():
        by_signature.setdefault(signature(op), []).append(name)
    report = Profile(len(captured.ops), len(by_signature), 0)
    caches: dict[int, _Cache] = {}
    todo: dict[int, list[str]] = {}
    leader: dict[str, int] = {}  # equal devices are measured once
    for k, device in enumerate(workers.devices):
        identity = json.dumps(
            [workers.about[k], device.share, device.threads, device.ep, vars(options), flags(), compiled],
            sort_keys=True,
        )
        first = leader.setdefault(identity, k)
        caches[k] = caches[first] if first != k else _Cache(folder, identity)
        if first == k:
            todo[k] = [s for s in by_signature if fresh or s not in caches[k].times]
    for batch in [[k] for k in todo] if (workers.kind != "cuda" if turns is None else turns) else [list(todo)]:
        jobs = {
            k: {
                "ops": [ops[by_signature[s][0]] for s in todo[k]],
                "options": options,
                "flags": flags(),
                "compile": compiled,
                "folder": os.path.abspath(folder) if folder else None,
            }
            for k in batch
            if todo[k]
        }
        for k, times in workers.tell("profile", jobs, 3600).items():
            caches[k].times.update({s: vars(t) for s, t in zip(todo[k], times)})
            caches[k].save()
            report.measured += len(times)
    for k, device in enumerate(workers.devices):
        _put(captured, device.name, by_signature, caches[k].times, report)
    return report


def _cold(captured: Captured, workers: Workers) -> bool:
    """Whether a request finds weights where the last one left them: parts of a GPU share its cache."""
    caches = [about.get("cache", 0) for about in workers.about.values()]
    return sum(w.numel() * w.element_size() for w in captured.weights.values()) > max(caches, default=0) // 2


def _put(
    captured: Captured, device: str, by_signature: dict[str, list[str]], times: dict[str, Any], report: Profile
) -> None:
    known: dict[str, int] = {}
    for signature, names in by_signature.items():
        t = OpTime(**times[signature])
        for name in names:
            if t.time_ns is None:
                report.failed[name] = t.reason
            else:
                known[name] = t.time_ns
                if t.not_compiled:
                    report.not_compiled[name] = t.not_compiled
                if t.instead:
                    report.instead[name] = t.instead
                report.eager_ns.setdefault(device, {})[name] = t.eager_ns or t.time_ns
    _estimate(captured, known, report)
    captured.graph.set_times(device, known)


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
    sizes: tuple[int, int] = (4096, 4 << 20),
    runs: int = 20,
) -> Cluster:
    """The workers' cluster with measured links: what a plan's cut costs, end to end.

    A chain of small operators goes back and forth between two devices; what that takes beyond the same chain on one of
    each, per cut, is the time of a transfer, in the mean of both directions. The smaller size gives the latency, both
    the bandwidth.
    """
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
