"""The process of one device: `python -m moirai.torch.worker ADDRESS RANK`, started by Workers. It does what its caller
says and ends with it."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import traceback
from dataclasses import replace
from datetime import timedelta
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from .compiler import Compiler, settle
from .precision import adopt
from .products import Judge, in_part
from .rank import ExchangeRank, Rank
from .shared import Tensors
from .stream import Slot, Stream, one_line


def _end_with(parent: int) -> None:
    """A rank that computes or waits does not read from its caller: look whether that is still there."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


_NOT_YET = ("busy or unavailable", "not ready to accept")  # of the GPU, and of MPS


def begin_cuda(limit_s: float, pause_s: float = 0.5) -> None:
    """A context on the GPU. For some seconds after a process that used it was killed there is none to be had: waits for it."""
    end = time.monotonic() + limit_s
    while True:
        try:
            torch.cuda.init()
            torch.zeros(1, device="cuda")
            return
        except RuntimeError as error:
            if time.monotonic() > end or not any(words in str(error) for words in _NOT_YET):
                raise
        time.sleep(pause_s)


class Worker:
    def __init__(self, connection: Connection, hello: dict[str, Any]) -> None:
        self.connection = connection
        self.rank, self.world = hello["rank"], hello["world"]
        self.kind = hello["kind"]
        if hello["cores"]:
            os.sched_setaffinity(0, hello["cores"])
        torch.set_num_threads(hello["threads"])
        torch.set_grad_enabled(False)
        self.device = torch.device(hello["kind"])
        limit = timedelta(seconds=hello["start_limit_s"])
        self.store = dist.TCPStore("127.0.0.1", hello["port"], is_master=False, timeout=limit)
        self.loaded: dict[int, tuple[Rank, dict[str, Any], dict[int, Any]]] = {}
        self.weights: dict[int, dict[str, torch.Tensor]] = {}  # of networks, where they are kept
        self.prepared: dict[int, dict[str, torch.Tensor]] = {}  # of plans that are about to be loaded
        self.compilers: dict[str | None, Compiler] = {}
        self.judge = Judge(self.device) if self.kind == "cuda" and in_part() else None
        self.gloo = hello["gloo"]
        if self.kind == "cuda":
            begin_cuda(hello["start_limit_s"] / 4)
        if not self.gloo:
            from .driver import Driver

            self.driver = Driver()
        else:
            dist.init_process_group(
                "gloo", store=dist.PrefixStore("gloo", self.store), rank=self.rank, world_size=self.world, timeout=limit
            )

    # ---- what it can be told

    def about(self) -> dict[str, Any]:
        found: dict[str, Any] = {"torch": torch.__version__, "kind": self.kind}
        if self.kind == "cuda":
            p = torch.cuda.get_device_properties(0)
            found.update(name=p.name, sm=p.multi_processor_count, cuda=torch.version.cuda, memory=p.total_memory)
            found["cache"] = getattr(p, "L2_cache_size", 0)
            found["waits"] = not self.gloo and self.driver.can_await()
        else:
            found.update(name=_processor(), threads=torch.get_num_threads())
        return found

    def _compiler(self, folder: str | None) -> Compiler:
        """One per folder: what it has compiled serves all plans."""
        known = self.compilers.get(folder)
        if known is None:
            path = Path(folder) if folder else None
            settle(path, self.device, 4 if self.kind == "cuda" else 1)
            known = self.compilers[folder] = Compiler(self.device, path)
        return known

    def _take_weights(self, job: dict[str, Any]) -> dict[str, torch.Tensor]:
        """Those that came with `prepare`, or come with this job."""
        if job["key"] in self.prepared:
            return self.prepared.pop(job["key"])
        weights = self.weights.setdefault(job["network"], {}) if job["keep"] else {}
        if job["weights"]:
            given = torch.load(job["weights"], map_location="cpu", mmap=True)
            weights.update({n: w.to(self.device) for n, w in given.items()})
        return weights

    def _settle(self, job: dict[str, Any], weights: dict[str, torch.Tensor]) -> None:
        """Products in half precision by kernels that are right in this part."""
        if self.judge:
            for name, other in list(self.judge.settle(job["program"], weights, job["host_at"]).items())[:1]:
                print(f"products in half precision such as '{name}' would be wrong by cuBLAS here: {other} instead")

    def prepare(self, job: dict[str, Any]) -> Any:
        """Compiles the segments of a plan, while nobody waits for this rank yet. `load` finds them."""
        adopt(job["flags"])
        weights = self._take_weights(job)
        self._settle(job, weights)
        made = Rank(job["program"], weights, self.device, self._compiler(job["folder"]), job["host_at"])
        self.prepared[job["key"]] = weights
        return made.counts

    def load(self, job: dict[str, Any]) -> tuple[str, str]:
        """Returns why its segments are no CUDA graph, and why some are not compiled; "" where they are, or where the device
        has none."""
        program, key = job["program"], job["key"]
        adopt(job["flags"])
        group = dist.new_group(job["peers"]) if self.gloo else None  # by all, also those without work
        if program is None:
            return "", ""
        weights = self._take_weights(job)
        self._settle(job, weights)
        compiler = self._compiler(job["folder"]) if job["compile"] else None
        shared = Tensors(job["shared"], job["metas"])
        inputs = {name: shared.tensor["in", name] for name in program.all_inputs}
        outputs = {p: shared.tensor["out", p] for p, _, _ in program.outputs}
        rank: Rank
        if self.gloo:
            pairs = dict.fromkeys(job["peers"], group)
            rank = ExchangeRank(program, weights, pairs, group, self.device, compiler=compiler)
        else:
            from .rank_cuda import CudaRank, PinnedFile

            pinned = PinnedFile(job["pinned"], self.driver)
            rank = CudaRank(
                program, weights, self.device, self.store, f"load{key}", job["peers"], pinned, job["host_at"],
                job["graphs"], job["stall_s"], compiler,
            )  # fmt: skip
        self.loaded[key] = (rank, inputs, outputs)
        if converted := getattr(rank, "converted", None):
            some = f"{len(converted)} tensors arrive in other strides than planned, such as {min(converted)}"
            print(f"load {key}: {some}: they are copied")
        graph = getattr(rank, "why_eager", "tensors go through the host" if self.kind == "cuda" else "")
        return graph, rank.not_compiled()

    def run(self, job: dict[str, Any]) -> None:
        rank, inputs, outputs = self.loaded[job["key"]]
        for position, tensor in rank.run(inputs):
            outputs[position].copy_(tensor)

    def stream(self, job: dict[str, Any]) -> None:
        """From now on, requests come and go by a connection of their own, each to a slot of a plan that is loaded."""
        connection = Client(job["address"], authkey=job["authkey"])
        connection.send(self.rank)
        if not self.gloo:
            from .slots_cuda import CudaSlot, CudaStream

            on_gpu = {x["slot"]: CudaSlot(self.loaded[x["key"]][0], x, job["metas"]) for x in job["slots"]}
            CudaStream(connection, on_gpu, min(slot.stall_s for slot in on_gpu.values()))
            return
        slots = {}
        for x in job["slots"]:
            rank: Any = self.loaded[x["key"]][0]
            tensors = Tensors(x["shared"], job["metas"]).tensor
            inputs = {name: tensors["in", name] for name in rank.program.all_inputs}
            outputs = {p: tensors["out", p] for p, _, _ in rank.program.outputs}
            slots[x["slot"]] = Slot(rank, inputs, outputs, x["first_tag"], x["pace_per_ns"])
        Stream(connection, slots)  # its threads end with the connection

    def measure(self, job: dict[str, Any]) -> Any:
        rank, inputs, _ = self.loaded[job["key"]]
        return rank.measure(inputs, job["warmup"], job["runs"])

    def unload(self, job: dict[str, Any]) -> None:
        """First step of two: what other ranks own is let go of."""
        if job["key"] in self.loaded and not self.gloo:
            rank: Any = self.loaded[job["key"]][0]
            rank.close()

    def free(self, job: dict[str, Any]) -> None:
        """Second step: memory that nobody else looks at any more, and the group, whose thread would wake for ever."""
        rank: Any = self.loaded.pop(job["key"], (None,))[0]
        if isinstance(rank, ExchangeRank):
            dist.destroy_process_group(rank.everybody)
        del rank
        self.weights.pop(job["forget"], None)
        gc.collect()
        if self.kind == "cuda":
            torch.cuda.empty_cache()

    def profile(self, job: dict[str, Any]) -> Any:
        from .busy import Meeting, both_times
        from .measure import measure_ops

        adopt(job["flags"])
        compiler = self._compiler(job["folder"]) if job["compile"] else None
        busy = job["busy"]  # its key and how many equal operators the network has of each, where all are to be busy
        ready = measure_ops(job["ops"], self.device, job["options"], self.judge, compiler, bool(busy))
        times = [r.time for r in ready]
        if busy:
            meeting = Meeting(self.store, busy["key"], self.rank, self.world)
            for i, both in enumerate(both_times(ready, busy["counts"], meeting, self.device)):
                if both:
                    times[i] = replace(times[i], time_ns=max(int(both[0]), 1), busy_ns=max(int(both[1]), 1))
            del ready
            gc.collect()
            if self.kind == "cuda":
                torch.cuda.empty_cache()
        return times

    def call(self, job: dict[str, Any]) -> Any:
        """A function of the caller's, by module and name: for measurements that only this process can make."""
        import importlib

        return getattr(importlib.import_module(job["module"]), job["function"])(*job["args"])

    def serve(self) -> None:
        while True:
            try:
                what, job = self.connection.recv()
            except EOFError:
                return
            if what == "exit":
                return
            try:
                answer = ("ok", getattr(self, what)(job) if job is not None else getattr(self, what)())
            except Exception as error:
                traceback.print_exc()
                answer = ("error", one_line(error))
            self.connection.send(answer)


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":")[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return os.uname().machine


def main() -> None:
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    key = bytes.fromhex(os.environ.pop("MOIRAI_WORKER_KEY"))
    with Client(sys.argv[1], authkey=key) as connection:
        connection.send(int(sys.argv[2]))
        hello = connection.recv()
        try:
            worker = Worker(connection, hello)
        except Exception as error:
            traceback.print_exc()
            connection.send(("error", one_line(error)))
            return
        connection.send(("ok", worker.about()))
        worker.serve()
    sys.stdout.flush()
    os._exit(0)  # gloo and CUDA take their time to end, and have nothing left to do


if __name__ == "__main__":
    main()
