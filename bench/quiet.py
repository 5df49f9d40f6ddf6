"""torch.compile against a plan while nothing else has the GPU: bench/gpu_compiled.py and bench/shard.py.

Processes that share a folder compile and plan side by side, one at a time of them measures (`Turns.turn`). When all are
there (`Turns.meet`), one after the other takes what torch makes of the whole module on the largest part, in every layout
and with frozen weights, and what its fastest plans take, in turns: what changes with time changes for both.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import statistics
import time
from functools import partial
from pathlib import Path
from typing import Any, Callable, Iterator

import torch

import networks_compiled
from moirai.torch.compiler import settle
from moirai.torch.precision import adopt, flags

_TURNS = 5  # of each
_TRIES = 3
_CALM = 0.02  # medians that differ by less were not disturbed

# ---- in a rank's process


def timed(work: Callable[[], Any], runs: int, cuda: bool) -> float:
    """Milliseconds, the median."""
    times = []
    for _ in range(runs + 3):
        if cuda:
            a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda._sleep(1_000_000)  # while all is queued: what a launch takes is in no time of ours, either
            a.record()
            work()
            b.record()
            b.synchronize()
            times.append(a.elapsed_time(b))
        else:
            start = time.perf_counter_ns()
            work()
            times.append((time.perf_counter_ns() - start) / 1e6)
    return statistics.median(times[3:])


held: dict[str, Callable[[], Any]] = {}  # this process' networks, by how they were made


def prepare(name: str, small: bool, dtype: str, how: str, given: Any, folder: str) -> None:
    """The module itself in this process, on a GPU as a CUDA graph: ready to be timed. `how` has "plain", "compiled" or
    "frozen" in it, and "channels last"."""
    adopt(given)
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    settle(Path(folder), device, 4)
    module, args = networks_compiled.make(name, small, getattr(torch, dtype))
    module, args = module.to(device), tuple(a.to(device) for a in args)
    if "channels last" in how:
        module = module.to(memory_format=torch.channels_last)
        args = tuple(a.to(memory_format=torch.channels_last) if a.dim() == 4 else a for a in args)
    run = module
    if "plain" not in how:
        torch._dynamo.reset()  # another layout would be another entry of the same code's
        run = torch.compile(module, options={"freezing": True} if "frozen" in how else None)

    def quietly() -> Any:
        with torch.no_grad():
            found = run(*args)
        return found if isinstance(found, torch.Tensor) else None

    with torch.cuda.stream(torch.cuda.Stream()) if cuda else contextlib.nullcontext():
        for _ in range(3):
            quietly()
    held[how] = quietly
    if cuda:
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(graph):
            kept = run(*args)
        held[how] = partial(_again, graph, run, args, kept)  # a graph keeps no weights


def _again(graph: Any, *_: Any) -> None:
    graph.replay()


def replay(how: str, runs: int) -> float:
    return timed(held[how], runs, torch.cuda.is_available())


def forget(how: str) -> None:
    del held[how]


# ---- in the caller's process


def spread(*lists: list[float]) -> float:
    return max(max(x) / min(x) for x in lists) - 1


class Turns:
    """Processes that share a folder. They have to share an MPS daemon, too, or the GPU would take turns of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.depth, self.file = folder, 0, None
        self.quiet = False  # whether it is all ours

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """One process at a time measures; the others capture, compile, plan and load meanwhile."""
        if not self.depth:
            self.file = (self.folder / "turn").open("w")
            fcntl.flock(self.file, fcntl.LOCK_EX)
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
            if not self.depth:
                self.file.close()  # type: ignore[union-attr]

    def meet(self, processes: int, until: float) -> int:
        """Waits until so many are here, or until then (by time.time()); how many there are."""
        (self.folder / f"here-{os.getpid()}").touch()
        while (here := len(list(self.folder.glob("here-*")))) < processes and time.time() < until:
            time.sleep(0.2)
        return here


class Module:
    """The whole module on the largest part, made by torch in several ways."""

    def __init__(self, workers: Any, name: str, small: bool, dtype: str, folder: Path, runs: int) -> None:
        self.workers, self.name, self.runs = workers, networks_compiled.whole(name), runs
        self.largest = len(workers.devices) - 1
        self.part = workers.devices[self.largest].name
        self.given = (small, dtype)
        self.folder, self.ready = str(folder), []

    def ask(self, function: str, *args: Any) -> Any:
        job = {"module": "quiet", "function": function, "args": args}
        return self.workers.tell("call", {self.largest: job}, 900)[self.largest]

    def prepare(self, how: str) -> None:
        self.ask("prepare", self.name, *self.given, how, flags(), self.folder)
        self.ready.append(how)

    def forget(self, how: str) -> None:
        self.ready.remove(how)
        self.ask("forget", how)

    def time(self, how: str) -> float:
        """Milliseconds, the median."""
        return float(self.ask("replay", how, self.runs))

    def in_turns(self, how: str, run: Any, turns: int = _TURNS) -> tuple[list[float], list[float]]:
        """Its times and a distributed network's, in ms; again where others disturbed them: the calmest count."""
        tries = []
        for _ in range(_TRIES):
            theirs, ours = [], []
            for _ in range(turns):
                theirs.append(self.time(how))
                ours.append(run.measure(warmup=5, runs=self.runs).median_ns / 1e6)
            tries.append((theirs, ours))
            if spread(theirs, ours) < _CALM:
                break
        return min(tries, key=lambda t: spread(*t))

    def others(self, last: bool) -> list[str]:
        """What is to be tried beside "compiled" in the layout that usually is the faster one."""
        return ["frozen, channels last", "compiled"] if last else ["frozen"]

    def fastest(self) -> tuple[str, dict[str, float]]:
        """Of all that is ready, twice; and what each took."""
        took = {how: min(self.time(how), self.time(how)) for how in self.ready if "plain" not in how}
        return min(took, key=lambda how: took[how]), took

    def row(self, what: str, how: str, run: Any) -> dict[str, Any]:
        """A line of the quiet table."""
        theirs, ours = self.in_turns(how, run)
        best, ms = statistics.median(theirs), statistics.median(ours)
        return {"plan": what, "torch": how, "torch_ms": best, "ms": ms, "times_as_fast": best / ms,
                "torch_spread": spread(theirs), "spread": spread(ours)}  # fmt: skip
