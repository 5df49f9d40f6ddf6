"""Ranks that somebody else started: every process of a torchrun calls `distribute` and then the module, all at the same
time.

Devices are the plan's, by rank, on one host or on several. Where every rank has a GPU of its own, tensors travel by
NCCL; else by gloo, those of a GPU through its host. For parts of one GPU let `distribute` start the ranks: NCCL takes
several on one only where it is told to, from 2.31 on. Results are sent to all.
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
from .cache import chosen_folder
from .capture import Captured
from .compiler import Compiler, settle
from .ir import Ref
from .program import Program, build
from .rank import ExchangeRank, Rank, Stamps
from .timeline import Measured, timeline
from .verify import compare

_PINGS = 24


def launched() -> bool:
    """Whether torchrun, or something like it, started this process."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


def own_device(given: torch.device | str | None) -> torch.device:
    """What was asked for; else the GPU of this process' number on its host, where there is one for each."""
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if given is None:
        everybody = int(os.environ.get("LOCAL_WORLD_SIZE", os.environ.get("WORLD_SIZE", "1")))
        given = "cuda" if torch.cuda.is_available() and torch.cuda.device_count() >= everybody else "cpu"
    device = torch.device(given)
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", local % torch.cuda.device_count())
    return device


def choose_transport(asked: str, devices: list[tuple[str, str, str]]) -> str:
    """`devices` are (kind, host, identity) of all ranks. NCCL takes GPUs only, and one rank per GPU unless its user says
    otherwise: then it is taken where it is asked for, not by itself."""
    gpus = len([d for d in devices if d[0] == "cuda"]) == len(devices)
    apart = gpus and len(set(devices)) == len(devices)
    if asked == "nccl" and not gpus:
        raise UsageError("transport 'nccl' needs a GPU for every rank: some ranks are processors")
    if asked == "nccl" and not apart and os.environ.get("NCCL_MULTI_RANK_GPU_ENABLE") != "1":
        raise UsageError(
            "transport 'nccl' needs a GPU for every rank: several ranks share one (NCCL from 2.31 on takes them with NCCL_MULTI_RANK_GPU_ENABLE=1)"
        )
    if asked not in ("auto", "nccl", "gloo"):
        raise UsageError(f"transport '{asked}': expected auto, nccl or gloo under torchrun")
    return "nccl" if asked == "nccl" or (asked == "auto" and apart) else "gloo"


def _identity(device: torch.device) -> tuple[str, str, str]:
    host = os.environ.get("NCCL_HOSTID") or os.uname().nodename
    if device.type != "cuda":
        return ("cpu", host, str(os.getpid()))
    return ("cuda", host, str(torch.cuda.get_device_properties(device).uuid))


def pair_groups(program: Program, backend: str) -> dict[int, Any]:
    """A group of two for every two ranks that exchange tensors. All ranks make all of them, in one order; the first
    message makes the connection, which would otherwise be made in whatever order the plan has."""
    rank, found = dist.get_rank(), {}
    for a, b in sorted({(min(t.source, t.target), max(t.source, t.target)) for t in program.transfers}):
        group = dist.new_group([a, b], backend=backend)
        if rank in (a, b):
            other = b if rank == a else a
            found[other] = group
            hello = torch.zeros(1, dtype=torch.uint8, device="cuda" if backend == "nccl" else "cpu")
            if rank == a:
                dist.send(hello, other, group)
            else:
                dist.recv(hello, other, group)
    return found


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

    def __init__(
        self,
        captured: Captured,
        plan: Plan,
        *,
        device: torch.device | str | None = None,
        transport: str = "auto",
        graphs: bool = True,
        verify: bool | torch.nn.Module = False,
        compile: bool | None = None,
        cache: str | os.PathLike[str] | None | bool = True,
    ) -> None:
        super().__init__()
        self._verify = verify
        here = own_device(device)
        if here.type == "cuda":
            os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")  # a queue for every stream that may wait
            torch.cuda.set_device(here)
        if not dist.is_initialized():
            dist.init_process_group("gloo")
        if dist.get_world_size() != len(plan.problem.devices):
            raise UsageError(f"{dist.get_world_size()} ranks for the plan's {len(plan.problem.devices)} devices")
        group = dist.group.WORLD if dist.get_backend() == "gloo" else dist.new_group(backend="gloo")
        self._captured, self._group = captured, group
        devices: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(devices, _identity(here), group)
        self.transport = choose_transport(transport, devices)
        compiles = captured.fuse == "inductor" if compile is None else compile
        self.program = build(captured, plan, compiled=compiles)
        self._owner = {p: r.rank for r in self.program.ranks for p, _, _ in r.outputs}
        mine = self.program.ranks[dist.get_rank()]
        weights = {n: captured.weights[n] for n in mine.weights}
        compiler = None
        if compiles:
            folder = chosen_folder(cache)
            settle(folder, here, 4)
            compiler = Compiler(here, folder)
            with torch.no_grad():
                Rank(mine, weights, here, compiler)  # while nobody waits for messages
            dist.barrier(group)
        pairs, offset_ns = pair_groups(self.program, self.transport), clock_offset_ns(group)
        with torch.no_grad():
            if self.transport == "nccl":
                from .rank_nccl import NcclRank

                self._rank: Any = NcclRank(mine, weights, pairs, group, here, offset_ns, graphs, compiler)
            else:
                self._rank = ExchangeRank(mine, weights, pairs, group, here, offset_ns, compiler)

    @property
    def why_eager(self) -> str:
        """Why this rank does not run as a CUDA graph, or segments of it are not compiled; "" where all is as it was
        to be."""
        eager = "tensors go through the host" if self._rank.device.type == "cuda" else ""
        return "; ".join(w for w in (getattr(self._rank, "why_eager", eager), self._rank.not_compiled()) if w)

    @torch.no_grad()
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        made = dict(self._rank.run(self._captured.bind(args, kwargs)))
        leaves: list[Any] = []
        for i, leaf in enumerate(self._captured.out_leaves):
            if not isinstance(leaf, Ref):
                leaves.append(leaf)
                continue
            meta = self._captured.nodes[leaf.name].meta
            tensor = made[i].contiguous().cpu() if i in made else torch.empty(meta.shape, dtype=meta.dtype)
            dist.broadcast(tensor, self._owner[i], self._group)
            leaves.append(tensor)
        result = pytree.tree_unflatten(leaves, self._captured.out_spec)
        if self._verify:
            compare(self._captured, self._verify, result, args, kwargs)
        return result

    @torch.no_grad()
    def measure(self, *args: Any, warmup: int = 5, runs: int = 50, **kwargs: Any) -> Measured:
        """As Distributed.measure, on all ranks at once; every rank gets the result."""
        own = self._rank.measure(self._captured.bind(args, kwargs), warmup, runs)
        everybody: list[list[Stamps]] = [[] for _ in range(dist.get_world_size())]
        dist.all_gather_object(everybody, own, self._group)
        used = {r.rank for r in self.program.ranks if r.segments}
        return timeline(self.program, {k: s for k, s in enumerate(everybody) if k in used}, warmup)

    def __enter__(self) -> SpmdDistributed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of what was made for it; the processes are not ours."""
        groups = list(self._rank.groups.values()) if self._rank is not None else []
        self._rank = None  # a CUDA graph first, then the communicators in it
        for group in groups:
            dist.destroy_process_group(group)
