"""One device of a running plan: what every kind of rank shares, and ranks that exchange tensors by torch.distributed:
processors by gloo, GPUs by NCCL (rank_nccl.py), or GPUs through their host by gloo, where a plan has processors, too.

Messages between two ranks are matched by their order alone, and NCCL runs them one after the other. So both ends issue
them in the plan's order, which is the same for both; what ranks wait for is then always earlier in the plan than what
waits for it, and no circle can arise.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, Mapping

import torch
import torch.distributed as dist

from .._lib import UsageError
from .compiler import Compiler, Counts
from .ir import Meta, Node, call
from .program import RankProgram, Segment, Send
from .segments import parts_of


@dataclass
class Stamps:
    """When things happened in one run, in nanoseconds of a clock that all ranks share."""

    start: int = 0
    end: int = 0
    segments: list[tuple[int, int]] = field(default_factory=list)
    sent: dict[int, int] = field(default_factory=dict)  # transfer -> moment
    arrived: dict[int, int] = field(default_factory=dict)


class Rank:
    """Weights, constants and the order of work. Subclasses run it.

    With a compiler, segments are compiled: here, before other ranks wait for anything. `host_at` has the transfers that
    go through the host, where others are looked at where they were computed (rank_cuda.py); None: all are messages.
    """

    def __init__(
        self,
        program: RankProgram,
        weights: dict[str, torch.Tensor],
        device: torch.device,
        compiler: Compiler | None = None,
        host_at: Mapping[int, int] | None = None,
    ) -> None:
        self.program = program
        self.device = device
        self.messages = host_at
        env: dict[str, Any] = {n: weights[n].to(device) for n in program.weights}
        for node in program.constants:
            env[node.name] = call(node, env, device)
        self.fixed = {n: env[n] for n in program.kept_weights}
        self.counts = Counts()
        self.parts = parts_of(program) if compiler else []
        self.code: list[Callable[..., Any] | None] = []
        if compiler:
            self._compile(compiler)

    def _compile(self, compiler: Compiler) -> None:
        """Segment by segment, on what the one before it gave: strides are then those of the run."""
        env: dict[str, Any] = {**self.fixed, **{n: m.zeros(self.device) for n, m in self.program.inputs.items()}}
        for i, segment in enumerate(self.program.segments):
            for w in segment.waits:
                env[w.value] = self.arrives_as(w).zeros(self.device)
            piece = self.parts[i].piece
            self.code.append(compiler.get(piece, [env[a] for a in piece.args], self.counts))
            self.run_segment(env, i)

    def arrives_as(self, w: Send) -> Meta:
        """What all ranks agree on."""
        return w.meta if self.messages is None or w.index in self.messages else w.seen

    def run_segment(
        self, env: dict[str, Any], i: int, before: Callable[[Node, dict[str, Any]], None] | None = None
    ) -> None:
        """`before` is told of each node that is about to run: call by call, then."""
        if not self.parts:
            self._run_steps(env, self.program.segments[i].steps, before)
            return
        part, code = self.parts[i], self.code[i]
        if code is None or before:
            values = part.piece.run(env, self.device, before)
        else:
            values = code(*[env[a] for a in part.piece.args])
        env.update(zip(part.piece.results, values))
        for node in part.views:
            env[node.name] = call(node, env, self.device)
        for name in part.frees:
            env.pop(name, None)

    def _run_steps(
        self, env: dict[str, Any], steps: list[Any], before: Callable[[Node, dict[str, Any]], None] | None = None
    ) -> None:
        for step in steps:
            for node in step.nodes:
                if before:
                    before(node, env)
                env[node.name] = call(node, env, self.device)
            for name in step.frees:
                env.pop(name, None)

    def rehearse(
        self, inputs: dict[str, Any], before: Callable[[Node, dict[str, Any]], None] | None = None
    ) -> Iterator[tuple[Segment, dict[str, Any]]]:
        """A request without the others, segment by segment: zeros are what arrives."""
        env: dict[str, Any] = {**self.fixed, **inputs}
        for i, segment in enumerate(self.program.segments):
            for w in segment.waits:
                env[w.value] = self.arrives_as(w).zeros(self.device)
            self.release(segment, env)
            self.run_segment(env, i, before)
            yield segment, env

    def release(self, segment: Segment, env: dict[str, Any]) -> None:
        """Lets go of what left and nobody reads any more when this segment begins."""
        for name in segment.released:
            env.pop(name, None)

    def not_compiled(self) -> str:
        """Segments that run eagerly although they were to be compiled, and why; "" where there are none."""
        failed = self.counts.failed
        return "; ".join(f"segment with '{name}' is not compiled: {why}" for name, why in failed.items())

    def results(self, env: dict[str, Any]) -> list[tuple[int, torch.Tensor]]:
        found = []
        for position, value, nodes in self.program.outputs:
            for node in nodes:
                if node.name not in env:
                    env[node.name] = call(node, env, self.device)
            found.append((position, env[value]))
        return found

    def run(self, inputs: dict[str, torch.Tensor]) -> list[tuple[int, torch.Tensor]]:
        """One request: results as (position, tensor)."""
        raise NotImplementedError

    def measure(self, inputs: dict[str, torch.Tensor], warmup: int, runs: int) -> list[Stamps]:
        """The same request again and again."""
        raise NotImplementedError


def as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """A dense tensor, in whatever order of its dimensions, as what gloo moves whatever its type."""
    return tensor.as_strided((tensor.numel(),), (1,)).view(torch.uint8)


def issue_order(program: RankProgram, early: bool) -> list[list[Send]]:
    """What to send and to receive before each segment, and after the last: for every other rank in the plan's order.

    A send is issued when its segment is done. A receive is issued at the start (`early`: it costs nothing to wait), or
    before the segment that runs when the transfer is planned to begin: a receive of NCCL is a kernel that polls.
    """
    segments = program.segments
    made = {s.index: i + 1 for i, g in enumerate(segments) for s in g.sends}
    needed = {w.index: (i, w) for i, g in enumerate(segments) for w in g.waits}
    queues: dict[int, list[tuple[int, Send]]] = {}
    for g in segments:
        for s in g.sends:
            queues.setdefault(s.target, []).append((made[s.index], s))
    for i, w in needed.values():
        planned = next((k for k, g in enumerate(segments) if g.finish_ns > w.start_ns), i)
        queues.setdefault(w.source, []).append((0 if early else min(planned, i), w))
    order: list[list[Send]] = [[] for _ in range(len(segments) + 1)]
    for queue in queues.values():
        queue.sort(key=lambda x: x[1].index)
        for k in range(len(queue) - 2, -1, -1):  # a receive does not hold up the send behind it
            at, s = queue[k]
            queue[k] = (min(at, queue[k + 1][0]) if s.index in needed else at, s)
        last = 0
        for at, s in queue:
            last = max(at, last)
            if s.index in needed and last > needed[s.index][0]:
                raise UsageError(f"the plan sends '{s.tensor}' after it is read on '{program.device}'")
            order[last].append(s)
    for at_once in order:
        at_once.sort(key=lambda s: s.index)
    return order


class ExchangeRank(Rank):
    """A device whose tensors travel by torch.distributed: `groups` has one of two ranks for each that it exchanges
    tensors with, `everybody` one of all, by gloo. Tensors of a GPU go through its host."""

    early = True  # receives are posted when a request begins

    def __init__(
        self,
        program: RankProgram,
        weights: dict[str, torch.Tensor],
        groups: Mapping[int, Any],
        everybody: Any,
        device: torch.device | None = None,
        clock_offset_ns: int = 0,
        compiler: Compiler | None = None,
    ) -> None:
        super().__init__(program, weights, device or torch.device("cpu"), compiler)
        self.groups, self.everybody = groups, everybody
        self.offset_ns = clock_offset_ns
        self.order = issue_order(program, self.early)
        self.wire = torch.device("cpu")  # where a tensor must lie to be sent

    def now(self) -> int:
        return time.monotonic_ns() + self.offset_ns

    def run(self, inputs: dict[str, torch.Tensor]) -> list[tuple[int, torch.Tensor]]:
        return self._once(self.here(inputs), lambda _: None)

    def here(self, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {n: m.lay_out(inputs[n].to(self.device)) for n, m in self.program.inputs.items()}

    def _once(self, inputs: dict[str, torch.Tensor], mark: Callable[[Any], None]) -> list[tuple[int, torch.Tensor]]:
        """`mark` is told when something happens: ("begin" or "end", segment), ("sent" or "arrived", transfer)."""
        env: dict[str, Any] = {**self.fixed, **inputs}
        arriving: dict[int, tuple[Any, torch.Tensor]] = {}
        leaving: list[tuple[Any, torch.Tensor]] = []
        self._issue(self.order[0], env, arriving, leaving, mark)
        for i, segment in enumerate(self.program.segments):
            for wait in segment.waits:
                work, buffer = arriving.pop(wait.index)
                work.wait()
                env[wait.value] = buffer.to(self.device)
                mark(("arrived", wait.index))
            mark(("begin", i))
            self.run_segment(env, i)
            mark(("end", i))
            self._issue(self.order[i + 1], env, arriving, leaving, mark)
        results = self.results(env)
        for work, _ in leaving:
            work.wait()
        return results

    def _issue(self, batch: list[Send], env: dict[str, Any], arriving: dict[int, Any], leaving: list[Any],
               mark: Callable[[Any], None]) -> None:  # fmt: skip
        for s in batch:
            if s.target == self.program.rank:
                buffer = self.buffer(s)
                arriving[s.index] = (dist.irecv(as_bytes(buffer), s.source, self.groups[s.source]), buffer)
            else:
                tensor = s.meta.lay_out(env[s.value]).to(self.wire)
                mark(("sent", s.index))
                leaving.append((dist.isend(as_bytes(tensor), s.target, self.groups[s.target]), tensor))

    def buffer(self, s: Send) -> torch.Tensor:
        pinned = self.device != self.wire
        return torch.empty_strided(s.meta.shape, s.meta.stride, dtype=s.meta.dtype, device=self.wire, pin_memory=pinned)

    # ---- measuring

    def measure(self, inputs: dict[str, torch.Tensor], warmup: int, runs: int) -> list[Stamps]:
        given = self.here(inputs)
        found = []
        for i in range(warmup + runs):
            start = self._meet()
            while self.now() < start:
                pass
            moments = self._moments(given)
            if i >= warmup:
                found.append(self._stamps(start, moments))
        return found

    def _moments(self, inputs: dict[str, torch.Tensor]) -> dict[Any, int]:
        """One request, and when things happened in it."""
        moments: dict[Any, int] = {}

        def mark(what: Any) -> None:
            if self.device.type == "cuda":
                torch.cuda.synchronize(self.device)
            moments[what] = self.now()

        self._once(inputs, mark)
        return moments

    def _stamps(self, start: int, moments: dict[Any, int]) -> Stamps:
        s = Stamps(start=moments.get("start", start))
        for i, segment in enumerate(self.program.segments):
            begin, s.end = moments["begin", i], moments["end", i]
            s.segments.append((begin, s.end))
            s.arrived.update((w.index, moments.get(("arrived", w.index), begin)) for w in segment.waits)
            s.sent.update((x.index, moments.get(("sent", x.index), s.end)) for x in segment.sends)
        s.end = s.end or self.now()
        return s

    def _meet(self) -> int:
        """A moment, a little ahead, at which all begin; the group's first rank says when."""
        dist.barrier(self.everybody)
        moment = torch.tensor([self.now() + 500_000])
        dist.broadcast(moment, dist.get_global_rank(self.everybody, 0), self.everybody)
        return int(moment.item())
