"""Ranks that somebody else started: every process of a torchrun calls `distribute` and then the module, all at the same
time.

Devices are the plan's, by rank. Tensors travel by gloo, so ranks may be on several hosts; for GPUs of one host let
`distribute` start the ranks. Results are sent to all.
"""

from __future__ import annotations

import os
import time
from typing import Any

import torch
import torch.distributed as dist
import torch.utils._pytree as pytree

from .._lib import UsageError
from ..plan import Plan
from .capture import Captured
from .ir import Ref
from .program import build
from .rank import CpuRank, Stamps
from .timeline import Measured, timeline

_PINGS = 24


def launched() -> bool:
    """Whether torchrun, or something like it, started this process as one of several."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ


def clock_offset_ns(group: Any) -> int:
    """What to add to this host's clock to get that of rank 0: the best of some pings, off by half its round trip at
    most."""
    rank, best = dist.get_rank(), (1 << 62, 0)
    moment = torch.zeros(1, dtype=torch.int64)
    for other in range(1, dist.get_world_size()):
        for _ in range(_PINGS):
            if rank == 0:
                dist.recv(moment, other, group)
                dist.send(torch.tensor([time.monotonic_ns()]), other, group)
            elif rank == other:
                asked = time.monotonic_ns()
                dist.send(moment, 0, group)
                dist.recv(moment, 0, group)
                answered = time.monotonic_ns()
                best = min(best, (answered - asked, int(moment.item()) - (asked + answered) // 2))
    return best[1]


class SpmdDistributed(torch.nn.Module):
    """The module in a process of a torchrun: same forward, called by all ranks with the same arguments."""

    def __init__(self, captured: Captured, plan: Plan) -> None:
        super().__init__()
        if not dist.is_initialized():
            dist.init_process_group("gloo")
        if dist.get_world_size() != len(plan.problem.devices):
            raise UsageError(f"{dist.get_world_size()} ranks for the plan's {len(plan.problem.devices)} devices")
        group = dist.group.WORLD if dist.get_backend() == "gloo" else dist.new_group(backend="gloo")
        self._captured, self._group = captured, group
        self.program = build(captured, plan)
        mine = self.program.ranks[dist.get_rank()]
        self._owner = {p: r.rank for r in self.program.ranks for p, _, _ in r.outputs}
        with torch.no_grad():
            weights = {n: captured.weights[n] for n in mine.weights}
            self._rank = CpuRank(mine, weights, group, clock_offset_ns(group))

    def _inputs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, torch.Tensor]:
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if spec != self._captured.in_spec:
            raise UsageError(f"arguments are not laid out as those captured: {spec}, expected {self._captured.in_spec}")
        return {known.name: given for given, known in zip(leaves, self._captured.in_leaves) if isinstance(known, Ref)}

    @torch.no_grad()
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        made = dict(self._rank.run(self._inputs(args, kwargs)))
        leaves: list[Any] = []
        for i, leaf in enumerate(self._captured.out_leaves):
            if not isinstance(leaf, Ref):
                leaves.append(leaf)
                continue
            meta = self._captured.nodes[leaf.name].meta
            tensor = made[i].contiguous() if i in made else torch.empty(meta.shape, dtype=meta.dtype)
            dist.broadcast(tensor, self._owner[i], self._group)
            leaves.append(tensor)
        return pytree.tree_unflatten(leaves, self._captured.out_spec)

    @torch.no_grad()
    def measure(self, *args: Any, warmup: int = 5, runs: int = 50, **kwargs: Any) -> Measured:
        """As Distributed.measure, on all ranks at once; every rank gets the result."""
        own = self._rank.measure(self._inputs(args, kwargs), warmup, runs)
        everybody: list[list[Stamps]] = [[] for _ in range(dist.get_world_size())]
        dist.all_gather_object(everybody, own, self._group)
        used = {r.rank for r in self.program.ranks if r.segments}
        return timeline(self.program, {k: s for k, s in enumerate(everybody) if k in used}, warmup)

    def __enter__(self) -> SpmdDistributed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing to do: the processes are not ours."""
