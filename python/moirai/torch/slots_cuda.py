"""Several requests at a time on the rank of a GPU: a CUDA graph for each that may be in flight.

A graph has the addresses of one request. So every slot has arguments, results, tensors that leave and flags of its own,
and a graph captured with these; weights and compiled code are those of the rank. A slot's graph begins with the copy of
its arguments from pinned memory, which the caller has mapped, and ends with the copy of its results. Each has a stream
of its own: while one waits for what others compute, kernels of the next run.

Streams wait for flags by themselves (memory operations of the driver, as nodes of the graph): no kernel polls. One that
polls holds a multiprocessor, and kernels that want to have all of their blocks at work at once, as some of cuDNN's in TF32,
wait for it: two requests on two parts of a GPU then wait for each other for ever.

Streams share a GPU evenly. Two requests that begin together then end every stage of a plan together, and never are in
different ones: a row of stages serves them no faster than one after the other. So requests can be launched on fewer
`lanes` than there are slots: in a lane, a request begins when the one before it has ended on this GPU. One lane is
what a pipeline wants; a lane for each fills a GPU that one request leaves half idle. Which is faster is measured
(tune_rate.py).

Nobody meets at the start: a slot is used again when all ranks have ended the request that had it, which their hosts
know. All ranks launch requests in the same order. In a lane, and where the GPU has fewer queues than there are streams,
a request waits behind earlier ones, which never wait for later ones: no circle can arise.

cuBLAS has a workspace per stream, as PyTorch uses it: graphs that were captured on one stream would share it, and
requests at the same time would spoil each other's products. So no two slots of a process share a stream.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
import traceback
from ctypes import c_uint
from multiprocessing.connection import Connection
from typing import Any

import torch

from .ir import Meta
from .rank_cuda import THREADS, CudaRank, PinnedFile
from .shared import Tensors
from .stream import one_line

MOST_SLOTS = 24  # PyTorch has 32 streams to give

_LOOK_S = 2

_taken: set[int] = set()  # streams of slots


def _own_stream() -> Any:
    for _ in range(64):
        stream = torch.cuda.Stream()
        if stream.cuda_stream not in _taken:
            _taken.add(stream.cuda_stream)
            return stream
    raise RuntimeError(f"more than {len(_taken)} requests in flight: PyTorch has no more streams")


class CudaSlot(CudaRank):
    """One request in flight on a rank that is loaded. `about` has its number, its file of arguments and results, and the
    pinned file that its transfers use; `metas` what lies in the former."""

    direct_bytes = 0  # its stream waits for flags on the GPU

    def __init__(self, of: CudaRank, about: dict[str, Any], metas: dict[Any, Meta]) -> None:
        self.__dict__.update(of.__dict__)  # program, weights, code
        self._fresh(f"{of.prefix}/slot{about['nth']}", PinnedFile(about["pinned"], of.driver))
        self.slots = []
        self.tensors = Tensors(about["shared"], metas)
        self.driver.pin(self.tensors.address, self.tensors.size)
        self.given = {n: t if t.is_contiguous() else torch.empty_like(t, memory_format=torch.contiguous_format)
                      for n, t in self.inputs.items()}  # fmt: skip
        self.stream, self.done = _own_stream(), torch.cuda.Event()
        of.slots.append(self)
        self._lay_out()
        self._capture(self.stream)

    # ---- what the graph has beside the request's steps

    def _start(self, stream: torch.cuda.Stream) -> None:
        for name, tensor in self.given.items():
            if tensor.numel():
                host = self.tensors.tensor["in", name]
                self.driver.to_device(tensor.data_ptr(), host.data_ptr(), host.nbytes, stream)
            if tensor is not self.inputs[name]:
                self.inputs[name].copy_(tensor)
        self.driver.launch("moirai_start", stream, THREADS, self.request.data_ptr(), 0, 0, c_uint(0),
                           self.pinned.gpu_address, self._stamp_at("start"))  # fmt: skip

    def _meet(self, after: int, stream: torch.cuda.Stream) -> None:
        out, n_out = self._list(("out", after))
        past, n_past = self._list(("in", after))
        self.driver.launch("moirai_pass", stream, THREADS, self.request.data_ptr(), out, n_out, past, n_past, self._stamp_at(after))
        segments = self.program.segments
        if after + 1 < len(segments) and segments[after + 1].waits:
            base = self.flags.data_ptr()
            self.driver.await_flags(stream, [base + 8 * self.flag_at[w.index] for w in segments[after + 1].waits])

    def _hand_over(self, stream: torch.cuda.Stream) -> None:
        for position, tensor in self.outputs:
            host = self.tensors.tensor["out", position]
            if (tensor.dtype, tensor.nbytes) != (host.dtype, host.nbytes):
                raise RuntimeError(f"result {position} is {Meta.of(tensor)}, expected {Meta.of(host)}")
            if tensor.numel():
                self.driver.to_host(host.data_ptr(), tensor.data_ptr(), host.nbytes, stream)

    # ---- running

    def go(self, lane: Any = None) -> None:
        with torch.cuda.stream(lane or self.stream):
            self._go()
            self.done.record()

    def ended(self) -> bool:
        """Whether the request has; raises where it never will."""
        if self.pinned.aborted:
            raise RuntimeError("another rank is gone")
        return bool(self.done.query())

    def where(self) -> str:
        """How far a request that takes too long has come, by what the GPU has written."""
        found: list[list[int]] = []

        def look() -> None:
            with torch.cuda.stream(torch.cuda.Stream()):
                for tensor in (self.request, self.flags, self.stamp):
                    found.append(tensor.tolist())

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        thread.join(_LOOK_S)
        if len(found) < 3:
            return "the GPU does not even copy what tells how far it has come"
        (mine,), flags, stamp = found
        parts = self.program.segments
        if mine < self.count:
            return f"request {self.count} of this slot has not begun"
        begun = stamp[self.slot["start"]]
        done = sum(1 for i in range(len(parts)) if stamp[self.slot[i]] >= begun)
        late = [w for w in parts[done].waits if not flags[self.flag_at[w.index]]] if done < len(parts) else []
        waits = "".join(f", '{w.tensor}' of rank {w.source} is not here" for w in late)
        return f"request {mine} of this slot: {done} of {len(parts)} segments have ended{waits}"

    def close(self) -> None:
        super().close()
        self.driver.unpin(self.tensors.address)
        _taken.discard(self.stream.cuda_stream)


class CudaStream:
    """Reads (number, slot, lanes) from its connection, launches the slot's graph, and answers (slot, error or None, spans, lost)
    when it has ended. A request that fails on a GPU takes its process with it: there are no errors of one request."""

    def __init__(self, connection: Connection, slots: dict[int, Any], stall_s: float = 120) -> None:
        self.connection, self.slots, self.stall_s = connection, slots, stall_s
        self.begun: queue.SimpleQueue[tuple[int, str] | None] = queue.SimpleQueue()
        self.streams = [slot.stream for slot in slots.values()]
        self.launched = 0
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=self._watch, daemon=True).start()

    def _lane(self, lanes: int) -> Any:
        """Lanes are streams of slots, in turns; None: the slot's own. A graph keeps the workspace it was captured with."""
        self.launched += 1
        return self.streams[self.launched % min(lanes, len(self.streams))] if lanes else None

    def _listen(self) -> None:
        try:
            while True:
                _, slot, lanes = self.connection.recv()
                why = ""
                try:
                    self.slots[slot].go(self._lane(lanes))
                except Exception as error:
                    traceback.print_exc()
                    why = one_line(error)
                self.begun.put((slot, why))
        except (EOFError, OSError):
            pass
        self.begun.put(None)

    def _watch(self) -> None:
        """Ends with the connection; what is under way then, nobody waits for."""
        under_way: dict[int, float] = {}  # slot -> until when it may take
        told: set[int] = set()  # of these, in the log
        while True:
            try:
                found = self.begun.get(block=not under_way)
            except queue.Empty:
                pass
            else:
                if found is None:
                    return
                slot, why = found
                under_way[slot] = time.monotonic() + self.stall_s
                told.discard(slot)
                if why and not self._answer(slot, why):
                    return
            for slot, limit in list(under_way.items()):
                try:
                    ended, why = self.slots[slot].ended(), ""
                except Exception as error:
                    ended, why = True, one_line(error)
                if not ended and time.monotonic() > limit - self.stall_s / 2 and slot not in told:
                    told.add(slot)
                    print(f"slow: slot {slot}: {self.slots[slot].where()}", file=sys.stderr, flush=True)
                if not ended and time.monotonic() > limit:
                    ended, why = True, f"the GPU did not finish a request within {self.stall_s:g} s"
                if ended:
                    del under_way[slot]
                    if not self._answer(slot, why):
                        return
            time.sleep(0)  # the thread that launches has its turn

    def _answer(self, slot: int, why: str) -> bool:
        try:
            self.connection.send((slot, (time.monotonic_ns(), why) if why else None, [], bool(why)))
        except OSError:
            return False
        return not why
