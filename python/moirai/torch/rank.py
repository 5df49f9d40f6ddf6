"""One device of a running plan: what every kind of rank shares, and the rank of a processor, whose tensors travel by
gloo."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist

from .ir import call
from .program import RankProgram, Send


@dataclass
class Stamps:
    """When things happened in one run, in nanoseconds of a clock that all ranks share."""

    start: int = 0
    end: int = 0
    segments: list[tuple[int, int]] = field(default_factory=list)
    sent: dict[int, int] = field(default_factory=dict)  # transfer -> moment
    arrived: dict[int, int] = field(default_factory=dict)


class Rank:
    """Weights, constants and the order of work. Subclasses run it."""

    def __init__(self, program: RankProgram, weights: dict[str, torch.Tensor], device: torch.device) -> None:
        self.program = program
        self.device = device
        env: dict[str, Any] = {n: weights[n].to(device) for n in program.weights}
        for node in program.constants:
            env[node.name] = call(node, env, device)
        self.fixed = {n: env[n] for n in program.kept_weights}

    def run_steps(self, env: dict[str, Any], steps: list[Any]) -> None:
        for step in steps:
            for node in step.nodes:
                env[node.name] = call(node, env, self.device)
            for name in step.frees:
                env.pop(name, None)

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
    """A contiguous tensor as what gloo moves whatever its type."""
    return tensor.reshape(-1).view(torch.uint8)


class CpuRank(Rank):
    """All receives are posted when a request begins; sends leave when their segment is done, in the plan's order."""

    def __init__(
        self, program: RankProgram, weights: dict[str, torch.Tensor], group: Any, clock_offset_ns: int = 0
    ) -> None:
        super().__init__(program, weights, torch.device("cpu"))
        self.group = group
        self.offset_ns = clock_offset_ns

    def now(self) -> int:
        return time.monotonic_ns() + self.offset_ns

    def run(self, inputs: dict[str, torch.Tensor]) -> list[tuple[int, torch.Tensor]]:
        return self._once(inputs, None)

    def _once(self, inputs: dict[str, torch.Tensor], stamps: Stamps | None) -> list[tuple[int, torch.Tensor]]:
        env: dict[str, Any] = {**self.fixed, **inputs}
        arriving = self._post()
        leaving: list[tuple[Any, torch.Tensor]] = []
        queue = sorted((s for g in self.program.segments for s in g.sends), key=lambda s: s.index)
        for segment in self.program.segments:
            for wait in segment.waits:
                work, buffer = arriving.pop(wait.index)
                work.wait()
                env[wait.value] = buffer
                if stamps:
                    stamps.arrived[wait.index] = self.now()
            began = self.now()
            self.run_steps(env, segment.steps)
            if stamps:
                stamps.segments.append((began, self.now()))
            while queue and queue[0].value in env:
                leaving.append(self._send(queue.pop(0), env, stamps))
        results = self.results(env)
        for work, _ in leaving:
            work.wait()
        if stamps:
            stamps.end = stamps.segments[-1][1] if stamps.segments else self.now()
        return results

    def _post(self) -> dict[int, tuple[Any, torch.Tensor]]:
        posted = {}
        for segment in self.program.segments:
            for w in segment.waits:
                buffer = torch.empty(w.meta.shape, dtype=w.meta.dtype)
                posted[w.index] = (dist.irecv(as_bytes(buffer), w.source, self.group, tag=w.index), buffer)
        return posted

    def _send(self, s: Send, env: dict[str, Any], stamps: Stamps | None) -> tuple[Any, torch.Tensor]:
        tensor = env[s.value].contiguous()
        if stamps:
            stamps.sent[s.index] = self.now()
        return dist.isend(as_bytes(tensor), s.target, self.group, tag=s.index), tensor

    def measure(self, inputs: dict[str, torch.Tensor], warmup: int, runs: int) -> list[Stamps]:
        found = []
        for i in range(warmup + runs):
            stamps = Stamps(start=self._meet())
            while self.now() < stamps.start:
                pass
            self._once(inputs, stamps)
            if i >= warmup:
                found.append(stamps)
        return found

    def _meet(self) -> int:
        """A moment, a little ahead, at which all begin; the group's first rank says when."""
        dist.barrier(self.group)
        moment = torch.tensor([self.now() + 500_000])
        dist.broadcast(moment, dist.get_global_rank(self.group, 0), self.group)
        return int(moment.item())
