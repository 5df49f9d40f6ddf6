"""The rank of a GPU, or of a share of one: a whole request is one CUDA graph, and ranks meet on the GPU, not on their
hosts.

Tensors that another rank on the same host reads stay where they were computed, and the reader looks at them through
CUDA IPC ("ipc"); or they go through pinned host memory ("host"): a stream of the sender's copies out and then into the
reader's memory, while both devices go on computing. Where the sender can't reach that memory (GPUs without peer
access), the reader copies in itself, when it needs the tensor. A flag is set when a tensor is there, a kernel of the
reader polls it (kernels.cu). Kernels are on the main stream alone: branches of a graph may share a queue of the GPU,
where a kernel that polls would hold up those behind it that others poll for. What goes through the host is copies, flag
and all, for which the GPU has engines of their own. Three copies take 17 us before the first byte counts:
what is short (`DIRECT_BYTES`) is put into the host's memory by the kernel that meets, its flag behind it, and the kernel
of the reader gets it from there, which takes 6 us for 4 kB and 13 for 128; neither device computes while it copies.

Addresses are part of a CUDA graph. So ranks capture at the same time, in the plan's order: a rank that comes to a
tensor from elsewhere waits until the other has captured the operator that makes it and has published the address.
Tensors that leave are freed, for the graph to use their memory again, where what arrived tells that all readers are
done with them (reuse.py). A request begins when all ranks have ended the one before (moirai_start).

Where an operator can't be captured, the rank runs its steps eagerly with the same kernels, and copies what leaves to a
buffer of its own, whose address stays.
"""

from __future__ import annotations

import mmap
import os
import pickle
import time
from ctypes import addressof, c_char, c_uint
from typing import Any, Callable

import torch

from .compiler import Compiler
from .driver import Driver, DriverError, foreign_tensor, span_of
from .ir import Meta
from .program import RankProgram, Segment, Send
from .rank import Rank, Stamps

THREADS = 64
THREADS_COPYING = 512
DIRECT_BYTES = 1 << 17  # beyond it what is gained is lost by both devices, which compute nothing meanwhile
COUNTS, HEAD = 64, 1024  # of a pinned file: the word that ends all waiting, numbers of requests; then room for tensors


class PinnedFile:
    """A file in memory, mapped by all ranks and by their GPUs."""

    def __init__(self, path: str, driver: Driver) -> None:
        self._driver = driver
        descriptor = os.open(path, os.O_RDWR)
        try:
            self.size = os.fstat(descriptor).st_size
            self._map = mmap.mmap(descriptor, self.size)
        finally:
            os.close(descriptor)
        self._first = c_char.from_buffer(self._map)
        self.address = addressof(self._first)
        self.gpu_address = driver.pin(self.address, self.size)

    def write(self, at: int, value: int) -> None:
        self._map[at : at + 8] = value.to_bytes(8, "little")

    @property
    def aborted(self) -> bool:
        return self._map[0] != 0

    def close(self) -> None:
        self._driver.unpin(self.address)
        del self._first
        self._map.close()


class CudaRank(Rank):
    """`store` is where ranks publish addresses under `prefix`; `peers` are the ranks that take part; `host_at` maps
    transfers to offsets in the pinned file, for transfers that go through the host (the others go by IPC)."""

    direct_bytes = DIRECT_BYTES

    def __init__(
        self,
        program: RankProgram,
        weights: dict[str, torch.Tensor],
        device: torch.device,
        store: Any,
        prefix: str,
        peers: list[int],
        pinned: PinnedFile,
        host_at: dict[int, int],
        graphs: bool = True,
        stall_s: float = 120,
        compiler: Compiler | None = None,
    ) -> None:
        super().__init__(program, weights, device, compiler, host_at)
        self.store, self.peers = store, [p for p in peers if p != program.rank]
        self.host_at, self.stall_s = host_at, stall_s
        self.slots: list[CudaRank] = []  # of requests in flight (slots_cuda.py)
        self._fresh(prefix, pinned)
        self.eager = not graphs
        self.why_eager = "" if graphs else "asked for"
        self._lay_out()
        self._warm_up()
        if graphs:
            try:
                self._capture()
            except RuntimeError as error:
                if self.published:  # others may have taken addresses that are gone now
                    raise
                self.eager, self.why_eager = True, str(error).splitlines()[0]
        if self.eager:
            self._buffers()
        self._tell_where()

    def _fresh(self, prefix: str, pinned: PinnedFile) -> None:
        """What a request has for itself; flags and stamps follow."""
        self.prefix, self.pinned, self.driver = prefix, pinned, pinned._driver
        self.count_at = COUNTS + 8 * self.program.rank  # where the host has its number, for copies to take it from
        self.count = 0
        self.opened: list[bytes] = []
        self.graph: torch.cuda.CUDAGraph | None = None
        self.inputs = {n: m.zeros(self.device) for n, m in self.program.inputs.items()}
        self.kept: dict[str, torch.Tensor] = {}  # what leaves
        self.foreign: dict[int, torch.Tensor] = {}  # what arrives: looked at, or copied in
        self.foreign_at: set[int] = set()  # addresses of what is looked at
        self.outputs: list[tuple[int, torch.Tensor]] = []
        self.converted: set[str] = set()  # what arrived in other strides than agreed on, and is copied

    # ---- flags, stamps

    def _lay_out(self) -> None:
        """Flags that others set here (one per transfer, one per peer), addresses of those that we set, stamps."""
        arriving = [w for g in self.program.segments for w in g.waits]
        leaving = [s for g in self.program.segments for s in g.sends]
        self.published = False
        self._lay_out_host(arriving, leaving)
        self.request = torch.zeros(1, dtype=torch.int64, device=self.device)
        self.flag_at = {w.index: i for i, w in enumerate(arriving)}
        here = len(arriving)
        self.flags = torch.zeros(max(here + len(self.peers), 1), dtype=torch.int64, device=self.device)
        base = self.flags.data_ptr()
        own = {w.index: base + 8 * self.flag_at[w.index] for w in arriving}
        meet = {p: base + 8 * (here + i) for i, p in enumerate(self.peers)}
        torch.cuda.synchronize()
        self._publish(
            "flags", (self.driver.export(base), self.flag_at, {p: here + i for i, p in enumerate(self.peers)})
        )
        others = {p: self._find(f"flags/{p}") for p in self.peers}
        opened = {p: self._open(handle) + offset for p, ((handle, offset), _, _) in others.items()}
        theirs = self.theirs = {s.index: opened[s.target] + 8 * others[s.target][1][s.index] for s in leaving}
        self.n_stamps = 0
        self.lists: dict[Any, tuple[int, int]] = {}
        addresses: list[int] = []

        def add(key: Any, values: list[int]) -> None:
            self.lists[key] = (len(addresses), len(values))
            addresses.extend(values)

        add("meet-out", [opened[p] + 8 * others[p][2][self.program.rank] for p in self.peers])
        add("meet-in", [meet[p] for p in self.peers])
        self.put: dict[int, int] = {}  # transfer -> address of what is put, known when it has been captured
        self.put_from: dict[int, int] = {}  # transfer -> where among `addresses` that stands
        for i, g in enumerate(self.program.segments):
            add(("in", i), [self._direct_flag(w) if self._is_direct(w) else own[w.index] for w in g.waits])
            direct = [s for s in g.sends if self._is_direct(s)]
            add(("out", i), [theirs[s.index] for s in g.sends if s.index not in self.host_at] + list(map(self._direct_flag, direct)))
            self.put_from.update((s.index, len(addresses) + 3 * n) for n, s in enumerate(direct))
            add(("put", i), [x for s in direct for x in (0, self._direct_at(s), s.meta.bytes // 16)])
            add(("get", i), [x for w in g.waits if self._is_direct(w)
                             for x in (self._direct_at(w), self.foreign[w.index].data_ptr(), w.meta.bytes // 16)])  # fmt: skip
        self.addresses = torch.tensor(addresses or [0], dtype=torch.int64, device=self.device)
        n = 3 + 2 * len(self.program.segments) + len(arriving)
        self.stamp = torch.zeros(n, dtype=torch.int64, device=self.device)
        self.slot: dict[Any, int] = {}

    def _lay_out_host(self, arriving: list[Send], leaving: list[Send]) -> None:
        """Buffers for what arrives through the host, and whether senders reach them."""
        self.push: dict[int, int] = {}  # transfer -> address of the reader's buffer, as seen from here
        self.pull: set[int] = set()
        for w in arriving:
            if w.index in self.host_at:
                buffer = torch.empty(max(w.meta.bytes, 1), dtype=torch.uint8, device=self.device)
                numbers = buffer[: w.meta.bytes].view(w.meta.dtype)
                self.foreign[w.index] = numbers.as_strided(w.meta.shape, w.meta.stride)
                if self._is_direct(w):
                    continue
                place = self.driver.export(buffer.data_ptr())
                self.store.set(f"{self.prefix}/buffer/{w.index}", pickle.dumps((buffer.numel(), place)))
        for s in leaving:
            if self._is_copied(s):
                _, (handle, offset) = self._find(f"buffer/{s.index}")
                try:
                    self.push[s.index] = self._open(handle) + offset
                except DriverError:
                    pass
                self.store.set(f"{self.prefix}/pushed/{s.index}", pickle.dumps(s.index in self.push))
        for w in arriving:
            if self._is_copied(w) and not self._find(f"pushed/{w.index}"):
                self.pull.add(w.index)

    def _is_direct(self, s: Send) -> bool:
        """Whether kernels that meet put it into the host's memory and get it from there; both ends say the same."""
        return s.index in self.host_at and 0 < s.meta.bytes <= self.direct_bytes and s.meta.bytes % 16 == 0

    def _is_copied(self, s: Send) -> bool:
        return s.index in self.host_at and not self._is_direct(s)

    def _direct_at(self, s: Send) -> int:
        return self.pinned.gpu_address + self.host_at[s.index]

    def _direct_flag(self, s: Send) -> int:
        return self._direct_at(s) + s.meta.bytes

    def _open(self, handle: bytes) -> int:
        address = self.driver.open(handle)
        self.opened.append(handle)
        return address

    def _publish(self, key: str, value: Any) -> None:
        self.store.set(f"{self.prefix}/{key}/{self.program.rank}", pickle.dumps(value))

    def _find(self, key: str) -> Any:
        return pickle.loads(self.store.get(f"{self.prefix}/{key}"))

    def _list(self, key: Any, each: int = 1) -> tuple[int, c_uint]:
        """Where the addresses of a list are, and how many entries of so many numbers it has; none is empty."""
        first, n = self.lists.get(key, (0, 0))
        return self.addresses.data_ptr() + 8 * first, c_uint(n // each)

    def _stamp_at(self, key: Any, n: int = 1) -> int:
        if key not in self.slot:
            self.slot[key] = self.n_stamps
            self.n_stamps += n
        return self.stamp.data_ptr() + 8 * self.slot[key]

    def _start(self, stream: torch.cuda.Stream) -> None:
        out, n = self._list("meet-out")
        arrive, _ = self._list("meet-in")
        self.driver.launch("moirai_start", stream, THREADS, self.request.data_ptr(), out, arrive, n,
                           self.pinned.gpu_address, self._stamp_at("start"))  # fmt: skip

    def _meet(self, after: int, stream: torch.cuda.Stream) -> None:
        """Between segment `after` and the next: -1 before the first."""
        out, n_out = self._list(("out", after))
        arrive, n_in = self._list(("in", after + 1))
        put, n_put = self._list(("put", after), 3)
        get, n_get = self._list(("get", after + 1), 3)
        threads = THREADS_COPYING if n_put.value or n_get.value else THREADS
        self.driver.launch("moirai_meet", stream, threads, self.request.data_ptr(), out, n_out, arrive, n_in,
                           self.pinned.gpu_address, self._stamp_at(after, 2 + n_in.value), put, n_put, get, n_get)  # fmt: skip

    # ---- a request, captured or eager

    def _warm_up(self) -> None:
        """Libraries choose kernels and take workspace at their first call: not while a graph is captured."""
        for _ in range(2):
            env: dict[str, Any] = {**self.fixed, **self.inputs}
            for _, env in self.rehearse(self.inputs):
                pass
            self.results(env)
        torch.cuda.synchronize()

    def _capture(self, stream: torch.cuda.Stream | None = None) -> None:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="relaxed"):
            self._steps(self._keep)
        self.graph = graph

    def _keep(self, s: Send, env: dict[str, Any]) -> torch.Tensor:
        """While capturing: the tensor itself is what others read."""
        known = self.kept.get(s.value)
        if known is None:
            there = env[s.value]
            if s.index in self.host_at:
                there = s.meta.lay_out(there)
                if self._is_direct(s) and there.data_ptr() % 16:
                    there = there.clone()
            elif self._is_foreign(there):
                there = there.clone()  # a view of what arrived: only its owner can hand out that memory
            known = self.kept[s.value] = there
        if s.index not in self.host_at:
            self._announce(s, known)
        if self._is_direct(s):
            self.put[s.index] = known.data_ptr()
        return known

    def _is_foreign(self, tensor: torch.Tensor) -> bool:
        return tensor.untyped_storage().data_ptr() in self.foreign_at

    def _own(self, g: Segment, env: dict[str, Any]) -> None:
        """What a segment made is its own, though a library or a compiler may have found that it can be looked at where it
        was: its owner goes by the plan, and lets it go when the operator that reads it has ended."""
        for name in (n.name for step in g.steps for n in step.nodes if n.name not in self.program.looks):
            made = env.get(name)
            if isinstance(made, torch.Tensor) and self._is_foreign(made):
                env[name] = made.clone()
            elif isinstance(made, (tuple, list)):
                env[name] = tuple(t.clone() if isinstance(t, torch.Tensor) and self._is_foreign(t) else t for t in made)

    def _announce(self, s: Send, tensor: torch.Tensor) -> None:
        place = (self.driver.export(tensor.data_ptr()) if tensor.numel() else None, span_of(tensor), Meta.of(tensor))
        self.published = True
        self.store.set(f"{self.prefix}/tensor/{s.index}", pickle.dumps(place))

    def _arrival(self, w: Send) -> torch.Tensor:
        known = self.foreign.get(w.index)
        if known is not None:
            return known
        place, span, meta = self._find(f"tensor/{w.index}")
        if place is None:
            known = meta.empty(self.device)
        else:
            handle, offset = place
            known = foreign_tensor(self._open(handle) + offset, span, meta.shape, meta.stride, meta.dtype)
            self.foreign_at.add(known.untyped_storage().data_ptr())
        self.foreign[w.index] = known
        return known

    def _buffers(self) -> None:
        """For eager runs: buffers are published before anybody waits for them."""
        for s in [s for g in self.program.segments for s in g.sends]:
            if s.value not in self.kept:
                self.kept[s.value] = s.meta.empty(self.device)
            if s.index not in self.host_at:
                self._announce(s, self.kept[s.value])
            self.put[s.index] = self.kept[s.value].data_ptr()
        torch.cuda.synchronize()

    def _tell_where(self) -> None:
        """Kernels that meet, where that lies which they put."""
        for index, at in self.put_from.items():
            self.addresses[at] = self.put[index]
        torch.cuda.synchronize()

    def _copy_out(self, s: Send, env: dict[str, Any]) -> torch.Tensor:
        buffer = self.kept[s.value]
        buffer.copy_(env[s.value])
        return buffer

    def _steps(self, outgoing: Callable[[Send, dict[str, Any]], torch.Tensor]) -> None:
        main = torch.cuda.current_stream()
        self._start(main)
        through = [s for g in self.program.segments for s in g.sends if self._is_copied(s)]
        sending = torch.cuda.Stream() if through else None
        queue = sorted(through, key=lambda s: s.index)
        ready: dict[int, tuple[torch.Tensor, torch.cuda.Event]] = {}
        env: dict[str, Any] = {**self.fixed, **self.inputs}
        if self.program.segments and self.program.segments[0].waits:
            self._meet(-1, main)
        for i, g in enumerate(self.program.segments):
            for w in g.waits:
                env[w.value] = self._arrival(w)
                if self.parts and w.index not in self.host_at and not w.seen.fits(env[w.value]):
                    self.converted.add(w.value)  # compiled for strides that its maker did not keep to
                    env[w.value] = w.seen.lay_out(env[w.value])
                if w.index in self.pull:
                    host = self.pinned.address + self.host_at[w.index]
                    self.driver.to_device(env[w.value].data_ptr(), host, w.meta.bytes, main)
            self.release(g, env)
            self.run_segment(env, i)
            self._own(g, env)
            for s in g.sends:
                tensor = outgoing(s, env)
                if self._is_copied(s):
                    event = torch.cuda.Event()
                    event.record(main)  # before we meet: others may wait for this before we get what we wait for
                    ready[s.index] = (tensor, event)
            while sending is not None and queue and queue[0].index in ready:
                self._send_host(queue.pop(0), ready, sending)
            self._meet(i, main)
        self.outputs = [(p, t.contiguous()) for p, t in self.results(env)]
        self._hand_over(main)
        if sending is not None:
            main.wait_stream(sending)

    def release(self, g: Segment, env: dict[str, Any]) -> None:
        super().release(g, env)
        if not self.eager:  # buffers of eager runs have their addresses for good
            for name in g.released:
                self.kept.pop(name, None)

    def _hand_over(self, stream: torch.cuda.Stream) -> None:
        """Results of a request alone are copied by whoever asked for it."""

    def _send_host(self, s: Send, ready: dict[int, Any], stream: torch.cuda.Stream) -> None:
        tensor, event = ready.pop(s.index)
        host = self.pinned.address + self.host_at[s.index]
        stream.wait_event(event)
        self.driver.to_host(host, tensor.data_ptr(), s.meta.bytes, stream)
        if s.index in self.push:
            self.driver.to_device(self.push[s.index], host, s.meta.bytes, stream)
        self.driver.to_device(self.theirs[s.index], self.pinned.address + self.count_at, 8, stream)

    # ---- for the worker

    def _go(self) -> None:
        self.count += 1
        self.pinned.write(self.count_at, self.count)
        if self.graph is not None:
            self.graph.replay()
        else:
            self._steps(self._copy_out)

    def _finish(self) -> None:
        """Waits for the GPU without giving up the chance to notice that others are gone."""
        done = torch.cuda.Event()
        done.record()
        limit = time.monotonic() + self.stall_s
        while not done.query():
            if self.pinned.aborted:
                raise RuntimeError("another rank is gone")
            if time.monotonic() > limit:
                raise RuntimeError(f"the GPU did not finish a request within {self.stall_s:g} s")

    def _take(self, inputs: dict[str, torch.Tensor]) -> None:
        for name, tensor in self.inputs.items():
            tensor.copy_(inputs[name], non_blocking=True)

    def run(self, inputs: dict[str, torch.Tensor]) -> list[tuple[int, torch.Tensor]]:
        self._take(inputs)
        self._go()
        self._finish()
        return self.outputs

    def measure(self, inputs: dict[str, torch.Tensor], warmup: int, runs: int) -> list[Stamps]:
        self._take(inputs)
        found = []
        for i in range(warmup + runs):
            self._go()
            self._finish()
            if i >= warmup:
                found.append(self._read_stamps())
        return found

    def _read_stamps(self) -> Stamps:
        raw = self.stamp.tolist()
        s = Stamps(start=raw[self.slot["start"]])
        before = s.end = s.start
        for i, g in enumerate(self.program.segments):
            if i - 1 in self.slot:
                at = self.slot[i - 1]
                before = raw[at + 1]
                s.arrived.update((w.index, raw[at + 2 + k]) for k, w in enumerate(g.waits))
            s.end = raw[self.slot[i]]
            s.segments.append((before, s.end))
            s.sent.update((x.index, s.end) for x in g.sends)
        return s

    def close(self) -> None:
        """Lets go of what other ranks own. They free it once all ranks have done this."""
        for slot in self.slots:
            slot.close()
        if self.graph is not None:
            self.graph.reset()
            self.graph = None
        self.foreign.clear()
        torch.cuda.synchronize()
        for handle in self.opened:
            self.driver.close(handle)
        self.opened.clear()
        self.pinned.close()
