"""The rank of a whole GPU among others, here or on other hosts: tensors travel by NCCL.

A request is one CUDA graph, messages and all, where everything in it can be captured; else it runs eagerly, with the
same order of work. NCCL's kernels wait on streams of their own while the rank computes; the main stream waits for a
message where the program does. Every two ranks have a communicator of their own, so that messages of other pairs do not
stand in their way, and the order within a pair is the plan's (rank.py).

Stamps are a GPU's own clock, read by a kernel of ours between segments; what that clock and the host's are apart is
found anew before every measurement, to within half of a launch.
"""

from __future__ import annotations

import time
from ctypes import c_uint
from typing import Any, Mapping

import torch
import torch.distributed as dist

from .compiler import Compiler
from .driver import Driver
from .program import RankProgram, Send
from .rank import ExchangeRank

_LOOKS = 16  # at both clocks


class NcclRank(ExchangeRank):
    early = False  # a receive is a kernel that polls: not before its time

    def __init__(
        self,
        program: RankProgram,
        weights: dict[str, torch.Tensor],
        groups: Mapping[int, Any],
        everybody: Any,
        device: torch.device,
        clock_offset_ns: int = 0,
        graphs: bool = True,
        compiler: Compiler | None = None,
    ) -> None:
        super().__init__(program, weights, groups, everybody, device, clock_offset_ns, compiler)
        self.wire = device
        self.driver = Driver()
        self.given = {n: m.zeros(device) for n, m in program.inputs.items()}
        self.buffers: dict[int, torch.Tensor] = {}
        self.slot: dict[Any, int] = {}
        self.stamp = torch.zeros(2 * (2 + 2 * len(program.segments)), dtype=torch.int64, device=device)
        self.nothing = torch.zeros(1, dtype=torch.int64, device=device)
        self.graph: torch.cuda.CUDAGraph | None = None
        self.made: list[tuple[int, torch.Tensor]] = []
        self.why_eager = "" if graphs else "asked for"
        self._eagerly()  # libraries choose their kernels at the first call, not while a graph is captured
        self._eagerly()
        if graphs:
            self._capture()

    def _capture(self) -> None:
        graph = torch.cuda.CUDAGraph()
        dist.barrier(self.everybody)
        try:
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                self.made = self._request()
            self.graph = graph
        except RuntimeError as error:  # only this rank: a message does not care how the other end was launched
            torch.cuda.synchronize(self.device)
            self.why_eager = str(error).splitlines()[0]

    def _request(self) -> list[tuple[int, torch.Tensor]]:
        self._mark("start")
        return [(p, t.contiguous()) for p, t in self._once(self.given, self._mark)]

    def _eagerly(self) -> None:
        self.made = self._request()
        torch.cuda.synchronize(self.device)

    def _go(self) -> None:
        if self.graph is None:
            self._eagerly()
        else:
            self.graph.replay()
            torch.cuda.synchronize(self.device)

    def _take(self, inputs: dict[str, torch.Tensor]) -> None:
        for name, tensor in self.given.items():
            tensor.copy_(inputs[name])

    def run(self, inputs: dict[str, torch.Tensor]) -> list[tuple[int, torch.Tensor]]:
        self._take(inputs)
        self._go()
        return self.made

    def buffer(self, s: Send) -> torch.Tensor:
        """One for all requests: a graph knows its address."""
        if s.index not in self.buffers:
            self.buffers[s.index] = s.meta.empty(self.device)
        return self.buffers[s.index]

    # ---- measuring

    def here(self, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        self._take(inputs)
        self._look()
        return self.given

    def _mark(self, what: Any) -> None:
        if what == "start" or what[0] in ("begin", "end"):
            at = self.slot.setdefault(what, len(self.slot))
            self._read_clock(self.stamp.data_ptr() + 16 * at)

    def _read_clock(self, where: int) -> None:
        """Our kernel between segments, with nobody to tell and no flags to free."""
        nobody, stream = c_uint(0), torch.cuda.current_stream(self.device)
        self.driver.launch("moirai_pass", stream, 1, self.nothing.data_ptr(), 0, nobody, 0, nobody, where)

    def _look(self) -> None:
        """How far the GPU's clock and ours are apart: the best of some looks at both."""
        best = (1 << 62, 0)
        at = self.stamp.data_ptr() + 8 * (self.stamp.numel() - 2)
        for _ in range(_LOOKS):
            torch.cuda.synchronize(self.device)
            before = time.monotonic_ns()
            self._read_clock(at)
            torch.cuda.synchronize(self.device)
            after = time.monotonic_ns()
            best = min(best, (after - before, (before + after) // 2 - int(self.stamp[-2].item())))
        self.apart_ns = best[1] + self.offset_ns

    def _moments(self, inputs: dict[str, torch.Tensor]) -> dict[Any, int]:
        self._go()
        raw = self.stamp.tolist()
        return {what: raw[2 * at] + self.apart_ns for what, at in self.slot.items()}
