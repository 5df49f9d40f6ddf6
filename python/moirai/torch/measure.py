"""The time of single operators on this process' device: run by a worker for `profile`.

Weights go through the cache once a request and are cold when their operator comes, unless all of a network's fit into
the cache; activations have just been written. So copies of the weights take turns until they exceed the cache,
activations stay the same.

On a GPU two times are found: as a CUDA graph of many calls in a row (what an operator takes when its launch does not
count), and eagerly.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Callable

import torch

from .compiler import Compiler, Counts
from .ir import Meta, Node, call
from .piece import Piece
from .products import Judge, WrongProduct

_COLD_BYTES = 160 << 20  # more than any cache
_MOST_COPIES = {"cpu": 16, "cuda": 512}  # a GPU's convolutions have small weights: 16 of them would stay in its cache
_MOST_CALLS = 64  # in a row, and copies of what is kept ready: all other operators run before it does again
_REPLAY_NS = 20_000_000  # of calls in a row: where an operator takes long, its few weights are none of the reason
_LEAST_COLD = {"cpu": 1 << 16, "cuda": 1 << 12}


@dataclass(frozen=True)
class OpToMeasure:
    nodes: tuple[Node, ...]  # its calls, and aliases between them
    metas: dict[str, Meta]  # of what it reads
    weights: frozenset[str]  # those that are weights or constants
    results: tuple[str, ...] = ()  # what others read of it

    @property
    def piece(self) -> Piece:
        return Piece(self.nodes, tuple(self.metas), self.results)


@dataclass(frozen=True)
class Options:
    warmup: int = 3
    runs: int = 20  # 0: nothing is timed, code is compiled and kept
    seconds: float = 0.25
    graphs: bool = True
    cold: bool | None = None  # whether weights are out of the cache when they are read; None: by the network's size


@dataclass(frozen=True)
class OpTime:
    """None where it could not be run; `reason` says why."""

    time_ns: int | None
    eager_ns: int | None = None
    spread: float = 0.0  # interquartile range over median
    reason: str = ""
    not_compiled: str = ""  # why it was measured eagerly although it was to be compiled
    instead: str = ""  # what computes its product, where the module's own kernel is wrong on this part
    busy_ns: int | None = None  # while all other devices compute, too (busy.py)


@dataclass(frozen=True)
class Ready:
    """What was measured, and, where that is kept, how it is run again: `calls` of it at a time."""

    time: OpTime
    again: Callable[[], Any] | None = None
    calls: int = 1


def _fill(meta: Meta, device: torch.device) -> torch.Tensor:
    """Reals in [0.05, 1); whole numbers 0, which index everything; booleans true."""
    once = tuple(1 if s == 0 else d for d, s in zip(meta.shape, meta.stride))  # an expanded tensor repeats its elements
    tensor = torch.empty_strided(once, meta.stride, dtype=meta.dtype, device=device)
    if meta.dtype.is_floating_point:
        tensor.uniform_(0.05, 1.0)
    else:
        tensor.fill_(1 if meta.dtype == torch.bool else 0)
    return tensor.expand(meta.shape)


def _copies(op: OpToMeasure, kind: str, cold: bool, keep: bool) -> int:
    """Of its weights."""
    size, most = sum(op.metas[w].bytes for w in op.weights), _MOST_COPIES[kind]
    most = min(most, _MOST_CALLS) if keep else most
    return min(max(-(-_COLD_BYTES // size), 1), most) if cold and size >= _LEAST_COLD[kind] else 1


def bytes_of(op: OpToMeasure, kind: str, cold: bool) -> int:
    """What it takes to keep an operator ready."""
    weights = sum(op.metas[w].bytes for w in op.weights)
    return sum(m.bytes for m in op.metas.values()) + weights * (_copies(op, kind, cold, True) - 1)


def _environments(
    op: OpToMeasure, device: torch.device, cold: bool = True, keep: bool = False
) -> list[dict[str, Any]]:
    copies = _copies(op, device.type, cold, keep)
    warm = {n: _fill(m, device) for n, m in op.metas.items() if n not in op.weights}
    return [{**warm, **{w: _fill(op.metas[w], device) for w in op.weights}} for _ in range(copies)]


def _eager(op: OpToMeasure, device: torch.device) -> Callable[[dict[str, Any]], Any]:
    """Its calls one after the other."""
    if len(op.nodes) == 1:
        only = op.nodes[0]
        return lambda env: call(only, env, device)

    def run(env: dict[str, Any]) -> None:
        own = dict(env)
        for node in op.nodes:
            own[node.name] = call(node, own, device)

    return run


def _runner(
    op: OpToMeasure, env: dict[str, Any], device: torch.device, compiler: Compiler | None
) -> tuple[Callable[[dict[str, Any]], Any], str]:
    """What runs it, and why that is not compiled code, if it was to be."""
    counts = Counts()
    code = compiler.get(op.piece, [env[a] for a in op.metas], counts) if compiler else None
    if code is None:
        return _eager(op, device), next(iter(counts.failed.values()), "")
    return lambda env: code(*[env[a] for a in op.metas]), ""


def _look(op: OpToMeasure, env: dict[str, Any], device: torch.device, judge: Judge) -> tuple[OpToMeasure, str]:
    """The operator with products that are right here, and what computes them if that is not the module's own."""
    own, nodes, other = dict(env), [], ""
    for node in op.nodes:
        target = judge.node(node, own)
        other = other if target == node.target else target
        nodes.append(replace(node, target=target))
        own[node.name] = call(nodes[-1], own, device)
    return replace(op, nodes=tuple(nodes)), other


def measure_ops(
    ops: list[OpToMeasure], device: torch.device, options: Options, judge: Judge | None = None,
    compiler: Compiler | None = None, keep: bool = False,
) -> list[Ready]:  # fmt: skip
    """`judge` looks at results; WrongProduct where one is wrong. With a compiler, what is run compiled is measured
    so. `keep`: it can run again, and its time within a CUDA graph is left to that."""
    found = []
    for op in ops:
        try:
            cold = bool(options.runs) and options.cold is not False
            environments, other = _environments(op, device, cold, keep), ""
            if judge:
                op, other = _look(op, environments[0], device, judge)
            measure = _measure_cuda if device.type == "cuda" else _measure_cpu
            run, why = _runner(op, environments[0], device, compiler)
            if not options.runs:
                found.append(Ready(OpTime(1, not_compiled=why)))
                continue
            ready = measure(run, environments, options, keep)
            ready = replace(ready, time=replace(ready.time, not_compiled=why, instead=other))
            found.append(ready if keep else Ready(ready.time))
        except WrongProduct:
            raise
        except Exception as error:
            why = str(error).splitlines()[0] if str(error) else type(error).__name__
            found.append(Ready(OpTime(None, reason=why)))
    return found


def _calmest(batch: Callable[[], list[float]], most: int = 3) -> tuple[float, float]:
    """The median and its spread; up to so many batches where the interquartile range is above a tenth, the calmest
    counts."""
    best = (float("inf"), 0.0)
    for _ in range(most):
        times = sorted(batch())
        middle = statistics.median(times)
        spread = (times[(3 * len(times)) // 4] - times[len(times) // 4]) / max(middle, 1e-9)
        if spread < best[0]:
            best = (spread, middle)
        if spread <= 0.1:
            break
    return best[1], best[0]


def _limited(once: Callable[[], float], options: Options) -> list[float]:
    times: list[float] = []
    limit = time.monotonic() + options.seconds
    while len(times) < options.runs and (len(times) < 5 or time.monotonic() < limit):
        times.append(once())
    return times


# ---- processors


def _measure_cpu(
    run: Callable[[dict[str, Any]], Any], environments: list[dict[str, Any]], options: Options, keep: bool
) -> Ready:
    turn = 0

    def next_call() -> None:
        nonlocal turn
        turn += 1
        run(environments[turn % len(environments)])

    def once() -> float:
        began = time.perf_counter_ns()
        next_call()
        return time.perf_counter_ns() - began

    for _ in range(options.warmup):
        once()
    middle, spread = _calmest(lambda: _limited(once, options))
    return Ready(OpTime(max(int(middle), 1), max(int(middle), 1), spread), next_call)


# ---- GPUs


def begun(work: Callable[[], Any]) -> Callable[[], float]:
    """Queues some work; what it returns says, when that is done, how many nanoseconds it took."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    work()
    end.record()

    def took() -> float:
        end.synchronize()
        return float(begin.elapsed_time(end) * 1e6)

    return took


def _measure_cuda(
    run: Callable[[dict[str, Any]], Any], environments: list[dict[str, Any]], options: Options, keep: bool
) -> Ready:
    def calls(n: int) -> None:
        for i in range(n):
            run(environments[i % len(environments)])

    for _ in range(options.warmup):
        calls(1)
    rough = max(min(begun(lambda: calls(4))() / 4 for _ in range(2)), 500.0)
    repeats = int(min(max(400_000 / rough, 4), _MOST_CALLS))
    eager, spread = _calmest(
        lambda: [t / repeats for t in _limited(lambda: begun(lambda: calls(repeats))(), options)], 1 if keep else 3
    )
    eagerly = OpTime(max(int(eager), 1), max(int(eager), 1), spread)
    if not options.graphs:
        return Ready(eagerly, lambda: calls(repeats), repeats)
    if not keep:  # each copy once a replay, or as many as fit
        repeats = max(repeats, min(len(environments), int(_REPLAY_NS / rough)))
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            calls(repeats)
    except RuntimeError as error:
        torch.cuda.synchronize()
        return Ready(replace(eagerly, reason=str(error).splitlines()[0]), lambda: calls(repeats), repeats)
    for _ in range(options.warmup):
        graph.replay()
    torch.cuda.synchronize()
    ready = Ready(eagerly, partial(_replay, graph, run, environments), repeats)
    if keep:
        return ready
    inside, spread = _calmest(lambda: [t / repeats for t in _limited(lambda: begun(graph.replay)(), options)])
    return replace(ready, time=replace(eagerly, time_ns=max(int(inside), 1), spread=spread))


def _replay(graph: Any, *_: Any) -> None:
    """A graph keeps nothing of what it reads alive: that goes with it."""
    graph.replay()
