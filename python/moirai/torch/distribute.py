"""A module that runs as a plan says, with the same forward."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
from concurrent.futures import Future
from contextlib import nullcontext
from typing import Any, Mapping

import torch
import torch.utils._pytree as pytree

from .._lib import Error, UsageError
from ..cluster import Cluster
from ..plan import Plan
from .cache import chosen_folder
from .capture import Captured, remembered
from .compiler import Counts
from .copies import paces_of, places_of, plans_of
from .flight import Busy, Copy, Flights, Queue, Requests
from .ir import Meta, Ref
from .precision import flags
from .program import Program, build
from .slots_cuda import MOST_SLOTS
from .spmd import SpmdDistributed, launched
from .shared import Tensors, copy_of, create, lay_out, put
from .timeline import Measured, timeline
from .verify import compare
from .workers import Workers

_COMPILE_S = 3600
_HEAD, _FLAG = 1024, 16  # of a pinned file (rank_cuda.py), before the tensors and behind each


def _put(tensors: Tensors, given: Any) -> None:
    for name, tensor in given[0].items():
        put(tensors.tensor["in", name], tensor)


def _get(captured: Captured, verify: bool | torch.nn.Module, tensors: Tensors, given: Any) -> Any:
    leaves = [
        copy_of(tensors.tensor["out", i]) if isinstance(leaf, Ref) else leaf
        for i, leaf in enumerate(captured.out_leaves)
    ]
    result = pytree.tree_unflatten(leaves, captured.out_spec)
    if verify:
        compare(captured, verify, result, *given[1:])
    return result


class _Load:
    """One copy of the network on the ranks."""

    def __init__(self, program: Program, workers: Workers, transport: str) -> None:
        self.program = program
        self.ranks = [r.rank for r in program.ranks if r.segments or r.outputs]
        self.key = workers.key = workers.key + 1
        through = program.transfers if transport == "host" else []
        offsets, self.pinned_bytes = lay_out([t.meta.bytes + _FLAG for t in through], _HEAD)
        self.host_at = {t.index: at for t, at in zip(through, offsets)}


class Distributed(torch.nn.Module):
    """The captured module on several devices. Call it as the module itself, with tensors of the captured shapes.

    Results are on the caller's processor. Weights are those of the moment when it was made.
    """

    def __init__(
        self,
        captured: Captured,
        plan: Plan,
        workers: Workers,
        *,
        transport: str = "auto",
        graphs: bool = True,
        verify: bool | torch.nn.Module = False,
        own_workers: bool = False,
        stall_s: float = 120,
        compile: bool | None = None,
        cache: str | os.PathLike[str] | None | bool = True,
        in_flight: int | None = None,
        lanes: int = 0,
    ) -> None:
        super().__init__()
        if in_flight is None:
            in_flight = plan.rate.in_flight if plan.rate else 4
        if in_flight < 1:
            raise UsageError(f"in_flight {in_flight}: expected 1 or more")
        if lanes < 0 or (lanes and workers.kind != "cuda"):
            raise UsageError(f"lanes {lanes}: " + ("expected 0 or more" if lanes < 0 else "they are for GPUs"))
        if transport not in ("auto", "ipc", "host", "gloo"):
            raise UsageError(f"transport '{transport}': expected auto, ipc, host or gloo")
        if workers.kind != "cuda" and transport in ("ipc", "host"):
            raise UsageError(f"transport '{transport}' is for GPUs: processors exchange tensors by gloo")
        if workers.kind == "cuda" and transport == "gloo":
            raise UsageError("transport 'gloo' is for processors: GPUs of one host exchange tensors by ipc or host")
        names = [d.name for d in workers.devices]
        if plan.problem.devices != names:
            raise UsageError(f"the plan's devices are {plan.problem.devices}, the ranks' {names}")
        self._captured, self._workers, self._own = captured, workers, own_workers
        self._verify = verify
        self._stall_s = stall_s
        self.in_flight, self._lanes = in_flight, lanes
        self._requests: Requests | None = None  # from the first `submit` on
        self._starting = threading.Lock()
        self.transport = "gloo" if workers.kind != "cuda" else "host" if transport == "host" else "ipc"
        self._plan = plan
        self._compile = captured.fuse == "inductor" if compile is None else compile
        how = {"merge": True, "ordered": self.transport != "ipc", "compiled": self._compile}
        self._loads = [_Load(build(captured, p, **how), workers, self.transport) for p in plans_of(plan)]
        self.program: Program = self._loads[0].program
        self._graphs = graphs  # until a rank has none
        self._open = True
        self._files: list[str] = []
        self.why_eager: dict[str, str] = {}
        self.compiled: dict[str, Counts] = {}  # device -> what its compiler did
        folder = chosen_folder(cache)
        self._folder = os.path.abspath(folder) if folder else None
        self._load(graphs)

    # ---- loading

    def _metas(self) -> dict[Any, Meta]:
        nodes = self._captured.nodes
        metas: dict[Any, Meta] = {("in", n): nodes[n].meta for n in self._captured.inputs}
        for i, leaf in enumerate(self._captured.out_leaves):
            if isinstance(leaf, Ref):
                metas["out", i] = nodes[leaf.name].meta
        return metas

    def _load(self, graphs: bool) -> None:
        metas = self._metas()
        shared = create(Tensors.size_of(metas))
        self._files.append(shared)
        self._shared = Tensors(shared, metas)
        for load in self._loads:
            self._load_copy(load, shared, metas, graphs)

    def _pinned(self, load: _Load) -> str:
        """A file for what one request sends through the host; its first word ends all waiting."""
        if self._workers.kind != "cuda":
            return ""
        path = create(load.pinned_bytes)
        self._files.append(path)
        self._workers.aborts.append(path)
        return path

    def _load_copy(self, load: _Load, shared: str, metas: Any, graphs: bool) -> None:
        names = [d.name for d in self._workers.devices]
        more = {"shared": shared, "metas": metas, "pinned": self._pinned(load), "graphs": graphs}
        with tempfile.TemporaryDirectory(prefix="moirai-weights-") as folder:
            jobs = {k: {**self._job(load, k, folder), **more} for k in range(len(names))}
            if self._compile:
                active = {k: job for k, job in jobs.items() if job["program"] is not None}
                counts = self._workers.tell("prepare", active, _COMPILE_S)
                for k, c in counts.items():
                    self.compiled.setdefault(names[k], c)
            answers = self._workers.tell("load", jobs)
        for k, (graph, compiled) in answers.items():
            self._graphs = self._graphs and not graph
            if why := "; ".join(w for w in (graph, compiled) if w):
                self.why_eager.setdefault(names[k], why)

    def _job(self, load: _Load, k: int, folder: str) -> dict[str, Any]:
        program = load.program.ranks[k]
        weights = os.path.join(folder, f"{k}.pt")
        active = k in load.ranks
        keep = self._workers.keep_weights or len(self._loads) > 1  # copies share the weights of a device
        held = self._workers.held.setdefault((k, self._captured.number), set())
        missing = [n for n in program.weights if n not in held] if active else []
        if missing:
            torch.save({n: self._captured.weights[n].cpu().contiguous().clone() for n in missing}, weights)
        if keep:
            held.update(missing)
        return {
            "network": self._captured.number,
            "keep": keep,
            "key": load.key,
            "program": program if active else None,
            "peers": load.ranks,
            "weights": weights if missing else "",
            "host_at": load.host_at,
            "stall_s": self._stall_s,
            "flags": flags(),
            "compile": self._compile,
            "folder": self._folder,
        }

    # ---- running

    @property
    def captured(self) -> Captured:
        """The network that it runs."""
        return self._captured

    def _alone(self, given: Any) -> Any:
        """One request, while there is no other: bound arguments, and the caller's own."""
        _put(self._shared, given)
        first = self._loads[0]
        self._workers.tell("run", {k: {"key": first.key} for k in first.ranks}, self._stall_s + 10)
        return _get(self._captured, self._verify, self._shared, given)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """One request. Raises RankError where a rank fails, VerifyError where results differ (`verify`)."""
        if self._requests is None:
            return self._alone((self._captured.bind(args, kwargs), args, kwargs))
        if self._requests.inside():
            raise UsageError("a future's callback can't wait for a result: use submit")
        return self.submit(*args, **kwargs).result()

    def submit(self, *args: Any, block: bool = True, **kwargs: Any) -> Future[Any]:
        """A request beside others, at most `in_flight` at a time: returns a future of what `forward` gives.

        Where as many are in flight, it waits until one has ended, or raises Busy (`block=False`). Results come in the
        order of requests. What goes wrong with a request, its future raises: UsageError for its arguments, RequestError
        where a device could not compute it, RankError where a rank was lost. May be called by several threads.
        """
        requests = self.requests()
        if self._verify or isinstance(requests, Queue):  # looked at later, when the caller may have changed them
            args, kwargs = pytree.tree_map_only(torch.Tensor, torch.clone, (args, kwargs))
        try:
            bound = self._captured.bind(args, kwargs)
        except Error as error:
            failed: Future[Any] = Future()
            failed.set_exception(error)
            return failed
        return requests.submit((bound, args, kwargs), block)

    async def asubmit(self, *args: Any, **kwargs: Any) -> Any:
        """`submit` for asyncio: waits, without holding up others, for a place and for the result, and returns it."""
        try:
            future = self.submit(*args, block=False, **kwargs)
        except Busy:
            future = await asyncio.to_thread(self.submit, *args, **kwargs)
        return await asyncio.wrap_future(future)

    def requests(self) -> Requests:
        """What `submit` puts requests into."""
        with self._starting:
            if not self._open:
                raise UsageError("the distributed module was closed")
            if self._requests is None:
                # Through the host, copies of several requests share engines of the GPU, and have been seen to wait in a circle:
                # there only one request at a time may be under way on a GPU, and only where that is asked for.
                ways = self.transport == "ipc" or self._lanes == 1
                waits = all(about["waits"] for about in self._workers.about.values() if about["kind"] == "cuda")
                at_once = self._workers.kind == "cpu" or (ways and waits and self._graphs)
                self._requests = self._flights() if at_once else Queue(self.in_flight, self._alone)
            return self._requests

    def _flights(self) -> Flights:
        captured, verify = self._captured, self._verify  # not ourselves: its thread must not keep us alive
        places = places_of(self._plan, self.in_flight)
        paces = paces_of(self._plan, self.in_flight)
        copies = [Copy(x.key, x.ranks, len(x.program.transfers), [], y) for x, y in zip(self._loads, paces)]
        if self._workers.kind == "cuda":
            if len(places.copy_of) > MOST_SLOTS:
                what = f"{len(places.copy_of)} CUDA graphs" if len(copies) > 1 else "a CUDA graph each"
                raise UsageError(f"in_flight {self.in_flight}: {what}; there can be {MOST_SLOTS} on GPUs")
            for c in places.copy_of:
                copies[c].pinned.append(self._pinned(self._loads[c]))
        return Flights(self._workers, copies, self._metas(), places, self.in_flight, _put,
                       lambda tensors, given: _get(captured, verify, tensors, given), self._stall_s, self._lanes)  # fmt: skip

    @property
    def lanes(self) -> int:
        """How many requests may share a GPU at a time; others wait until one before them has ended there. 0: all. Can be
        changed at any time."""
        return self._lanes

    @lanes.setter
    def lanes(self, lanes: int) -> None:
        if lanes < 0 or (lanes and self._workers.kind != "cuda") or (lanes != 1 and self.transport == "host"):
            raise UsageError(f"lanes {lanes}: not with '{self.transport}'")
        self._lanes = lanes
        if isinstance(self._requests, Flights):
            self._requests.lanes = lanes

    def measure(self, *args: Any, warmup: int = 5, runs: int = 50, copy: int = 0, **kwargs: Any) -> Measured:
        """The same request again and again, without the caller in between: latencies, and a timeline of ours. Without
        arguments those of the last call. `copy` says by which copy of the network."""
        with self._requests.paused() if self._requests else nullcontext():
            if args or kwargs:
                _put(self._shared, (self._captured.bind(args, kwargs),))
            load = self._loads[copy]
            job = {"key": load.key, "warmup": warmup, "runs": runs}
            stamps = self._workers.tell("measure", {k: job for k in load.ranks})
        return timeline(load.program, stamps, warmup, queued=self.transport == "host")

    # ---- ending

    def close(self) -> None:
        """Waits for requests in flight and frees what the ranks hold for it; ends the ranks where they were started
        for it alone."""
        if self._requests:
            self._requests.close()
        if self._workers.alive and self._open:
            self._unload()
        self._open = False
        for path in self._files:
            if path in self._workers.aborts:
                self._workers.aborts.remove(path)
            try:
                os.unlink(path)
            except OSError:
                pass
        self._files = []
        if self._own:
            self._workers.close()

    def _unload(self) -> None:
        number = self._captured.number
        forget = len(self._loads) > 1 and not self._workers.keep_weights
        for load in self._loads:
            for step in ("unload", "free"):
                job = {"key": load.key, "forget": number if forget and load is self._loads[-1] else None}
                self._workers.tell(step, dict.fromkeys(range(len(self._workers.devices)) if forget else load.ranks, job))
        if forget:
            for k in range(len(self._workers.devices)):
                self._workers.held.pop((k, number), None)

    def __enter__(self) -> Distributed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            if self._files:
                self.close()
        except Exception:
            pass


def distribute(
    module: torch.nn.Module | Captured,
    plan: Plan,
    *,
    cluster: Cluster | str | Mapping[str, Any] | None = None,
    workers: Workers | None = None,
    verify: bool | torch.nn.Module = False,
    transport: str = "auto",
    graphs: bool = True,
    stall_s: float = 120,
    device: torch.device | str | None = None,
    compile: bool | None = None,
    cache: str | os.PathLike[str] | None | bool = True,
    in_flight: int | None = None,
    lanes: int = 0,
) -> Distributed | SpmdDistributed:
    """A module with the same forward that runs as the plan says, one process per device.

    In a process that torchrun started, and without `cluster` or `workers`, this process is the device of its rank
    (spmd.py): `device`, or the GPU of its number on its host where there is one for each process, else the processor.
    `transport` is then "nccl" or "gloo"; "auto" takes the first where every rank has a GPU of its own.

    `module` is what `capture` was given, or what it returned. `cluster` starts the processes; `workers` that are there
    already serve any number of modules. `transport` is "ipc" (readers look at tensors where they are), "host" (through
    pinned memory) or "gloo"; "auto" takes the first for GPUs and the last for processors. `verify` compares every
    result with the whole network's, or with that of the module given. A request that takes longer than `stall_s` ends
    all ranks. `compile` says whether segments run as code of PyTorch's compiler; None: where the network was captured
    with fuse="inductor". That code is kept in `cache` (as in `profile`). Products are computed in the number types of
    this process (`torch.set_float32_matmul_precision`). `in_flight` is how many requests of `submit` may be under way
    at a time (None: as many as the plan was made for, else 4); all copies of the network that the plan has take part. On
    GPUs at most `lanes` of them share a device (0: all; 1: a pipeline that keeps its order; `tune_rate` says which is
    faster). A call beside them, `measure`, and torchrun, where there is no `submit`, use the first copy.
    """
    captured = module if isinstance(module, Captured) else remembered.get(module)
    if captured is None:
        raise UsageError(f"{type(module).__name__} was not captured: call moirai.torch.capture first")
    if cluster is None and workers is None and launched():
        return SpmdDistributed(captured, plan, device=device, transport=transport, graphs=graphs, verify=verify,
                               compile=compile, cache=cache)  # fmt: skip
    if (cluster is None) == (workers is None):
        raise UsageError("either cluster or workers says where to run")
    own = workers is None
    ranks = workers if workers is not None else Workers(cluster)  # type: ignore[arg-type]
    try:
        return Distributed(
            captured, plan, ranks, transport=transport, graphs=graphs, verify=verify, own_workers=own,
            stall_s=stall_s, compile=compile, cache=cache, in_flight=in_flight, lanes=lanes,
        )  # fmt: skip
    except BaseException:
        if own:
            ranks.close()
        raise
