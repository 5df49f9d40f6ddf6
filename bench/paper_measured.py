#!/usr/bin/env python3
"""The paper's experiment, measured: its smallest networks on one GPU cut into four parts, in the ratios of its testbeds.

    python3 bench/paper_measured.py --out FOLDER [--seconds 280]

Per network and testbed: four parts whose shares are the fp32 rates of the testbed's four GPUs, with their memories.
Plans of several placers of the original graph (every operator of the paper's graph is a kernel, heads apart) and of the
coarsened one (a head's attention, a product and its bias are one kernel), for links by CUDA IPC and through the host;
each is run, compared with the module's result and measured. Beside them the module itself on the largest part: eagerly,
as one CUDA graph, and by torch.compile with whole attention; with --pieces that module on all parts, too, its operators
cut.

FOLDER/measured.jsonl gets a line per measurement; what it has is not measured again. `moirai bench paper --show
--measured FOLDER/measured.jsonl` writes the chapter. Most telling first; nothing begins after --seconds. --export makes
the networks' graphs alone, one process each and without a GPU, which takes longer than the rest; they are kept in
FOLDER/exports. --small tries all of it on four processor ranks.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import pickle
import statistics
import subprocess
import sys
import time
import traceback
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))

import torch  # noqa: E402
import torch.utils._pytree as pytree  # noqa: E402

import moirai  # noqa: E402
import moirai.torch as mt  # noqa: E402
import networks_paper  # noqa: E402
from moirai.torch.capture import _How, _make  # noqa: E402
from moirai.torch.compiler import settle  # noqa: E402
from moirai.torch.merging import expected_ns  # noqa: E402
from moirai.torch.reader import Exported, read  # noqa: E402
from moirai.torch.times import one_device, plan_key  # noqa: E402

began = time.monotonic()
# GFLOPS in fp32 of the testbeds' devices A to D (src/cluster/device_table.c): 2080 Ti, T4, P4, 3060 Ti; V100, V100,
# P100, P100.
RATES = {"inter-server": (13448, 8141, 5699, 16197), "intra-server": (15670, 15670, 9519, 9519)}
GRAPHS = {"original": ("apart", "none"), "coarsened": ("fused", "aten")}  # style, what capture fuses
# In the order in which they are measured: the first is quick to make, so that the search of the next has time.
FIRST = ("heft", "moirai", "single", "m-sct", "getf", "placeto")
REST = ("m-etf", "chain", "hrl")
WRONG = 1e-2  # of the result's norm


def say(*words: Any) -> None:
    print(f"[{time.monotonic() - began:6.1f}]", *words, flush=True)


def first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return (lines[0] if lines else type(error).__name__)[:300]


# ---- in a rank's process


def timed(work: Callable[[], Any], runs: int, cuda: bool) -> float:
    """Milliseconds, the median; the first five do not count, as in the paper."""
    times = []
    for _ in range(runs + 5):
        if cuda:
            torch.cuda.synchronize()
        start = time.perf_counter_ns()
        work()
        if cuda:
            torch.cuda.synchronize()
        times.append((time.perf_counter_ns() - start) / 1e6)
    return statistics.median(times[5:])


def footprint(reset: bool) -> tuple[int, int]:
    """Bytes that tensors of this process have now, and had at most since the last reset."""
    if not torch.cuda.is_available():
        return 0, 0
    found = torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()
    if reset:
        torch.cuda.reset_peak_memory_stats()
    return found


def compiled_layers(module: torch.nn.Module) -> None:
    """Layer by layer: equal ones are compiled once, as people do with deep networks."""
    for name in ("recompile_limit", "cache_size_limit"):
        if hasattr(torch._dynamo.config, name):
            setattr(torch._dynamo.config, name, 64)
    for layer in module.layers:  # type: ignore[union-attr]
        layer.compile()


def baseline(name: str, how: str, small: bool, runs: int, result_file: str) -> dict[str, Any]:
    """`module_itself`, or why not: a failure would end all ranks."""
    if how == "plain":
        return module_itself(name, how, small, runs, result_file)
    try:
        return module_itself(name, how, small, runs, result_file)
    except Exception as error:
        traceback.print_exc()
        return {"why": first_line(error)}


def module_itself(name: str, how: str, small: bool, runs: int, result_file: str) -> dict[str, Any]:
    """The module in this process: "plain" (its result into the file, too), "graph" or "compiled"."""
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    module, args = networks_paper.make(name, "whole" if how == "compiled" else "apart", small)
    module, args = module.to(device), tuple(a.to(device) for a in args)
    before = footprint(True)[0]
    found: dict[str, Any] = {"weights": sum(t.nbytes for t in module.state_dict().values())}
    if how == "compiled":
        settle(Path(result_file).with_suffix(".code"), device, 4)
        compiled_layers(module)
    with torch.no_grad():
        with torch.cuda.stream(torch.cuda.Stream()) if cuda else contextlib.nullcontext():
            for _ in range(2):
                result = module(*args)
        if cuda:
            torch.cuda.synchronize()  # the copy below is on another stream
        if how == "plain":
            torch.save(result.cpu(), result_file)
            found["ms"] = timed(lambda: module(*args), runs, cuda)
            if cuda:
                found["peak"] = footprint(False)[1] - before + found["weights"]
        elif not cuda:
            found["ms"] = timed(lambda: module(*args), runs, cuda)
        else:
            del result
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                kept = module(*args)
            found["ms"] = timed(graph.replay, runs, cuda)
            graph.reset()
            del kept
    del module, args
    torch._dynamo.reset()
    gc.collect()
    if cuda:
        torch.cuda.empty_cache()
    return found


# ---- exported programs, kept in files


def export(name: str, style: str, small: bool, path: Path) -> None:
    """Shapes alone count: without weights, as plain data that any version of PyTorch reads."""
    with torch.device("meta"):
        module, args = networks_paper.make(name, style, small)
    found = read(module, args, {}, False)
    data = {"nodes": found.nodes, "inputs": found.inputs, "in": found.in_leaves, "out": found.out_leaves}
    beside = path.with_suffix(f".{os.getpid()}")
    beside.write_bytes(pickle.dumps(data))
    beside.rename(path)


def captured_of(name: str, graph: str, small: bool, path: Path) -> tuple[mt.Captured, tuple[Any, ...]]:
    """The exported program with weights, as `moirai.torch.capture` would make it."""
    style, fuse = GRAPHS[graph]
    data = pickle.loads(path.read_bytes())
    module, args = networks_paper.make(name, style, small)
    state = module.state_dict()
    weights = {n: state[node.path] for n, node in data["nodes"].items() if node.kind == "weight"}
    exported = Exported(
        nodes=data["nodes"], weights=weights, inputs=data["inputs"], in_spec=pytree.tree_flatten((args, {}))[1],
        in_leaves=data["in"], out_spec=pytree.tree_flatten(args[0])[1], out_leaves=data["out"],
    )  # fmt: skip
    how = _How(f"{name}-{graph}", False, False, True, None, fuse, "cpu" if small else "cuda", None)
    return _make(exported, how, None), args


class Exports:
    """One process per network and style, begun at once; whoever needs one waits for it."""

    def __init__(self, o: argparse.Namespace) -> None:
        self.o, self.folder, self.running = o, o.out / "exports", {}
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in o.networks.split(","):
            for style, _ in GRAPHS.values():
                path = self.path(name, style)
                if not path.exists():
                    command = [sys.executable, __file__, "--out", str(o.out), "--export-one", f"{name}/{style}"]
                    self.running[path] = subprocess.Popen(command + (["--small"] if o.small else []))

    def path(self, name: str, style: str) -> Path:
        return self.folder / f"{name.replace(':', '-')}-{style}{'-small' if self.o.small else ''}.pickle"

    def wait(self, name: str, style: str) -> Path:
        path = self.path(name, style)
        process = self.running.pop(path, None)
        if process is not None and process.wait() != 0:
            raise RuntimeError(f"{name}, {style}: the export ended with code {process.returncode}")
        return path

    def close(self) -> None:
        for process in self.running.values():
            process.kill()
            process.wait()


# ---- the journal


class Journal:
    """A line per measurement; what is in it is not measured again."""

    KEYS = ("what", "network", "testbed", "graph", "link", "placer", "round", "how", "part")

    def __init__(self, path: Path) -> None:
        self.path, self.known = path, {}
        text = path.read_text() if path.exists() else ""
        if text and not text.endswith("\n"):  # a crash cut it off
            path.write_text(text + "\n")
        for line in text.splitlines():
            with contextlib.suppress(ValueError):
                self.keep(json.loads(line))

    def keep(self, line: dict[str, Any]) -> None:
        self.known[tuple(line.get(k) for k in self.KEYS)] = line

    def find(self, what: str, **keys: Any) -> dict[str, Any] | None:
        return self.known.get(tuple({"what": what, **keys}.get(k) for k in self.KEYS))

    def add(self, what: str, **numbers: Any) -> None:
        line = {"what": what, **numbers, "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M")}
        self.keep(line)
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        say(", ".join(f"{k} {v:.3f}" if isinstance(v, float) else f"{k} {v}" for k, v in line.items() if k != "date"))


# ---- a network on a testbed


def cluster_of(testbed: str, small: bool) -> moirai.Cluster:
    rates, paper = RATES[testbed], moirai.Cluster.open(testbed).devices
    devices: list[dict[str, Any]] = []
    for d, rate in zip(paper, rates):
        memory = f"{d.memory_bytes}B"
        part = {"type": "cpu"} if small else {"type": "h200", "share": round(rate / sum(rates), 2)}
        devices.append({"name": d.name, "memory": memory, **part})
    names = [d["name"] for d in devices]
    links = [{"from": a, "to": b, "bandwidth": "100Gbps", "latency": "10us"} for a in names for b in names if a != b]
    return moirai.Cluster.open({"name": testbed, "devices": devices, "links": links})


class Section:
    """All that is measured of one network on one testbed's parts, with ranks of its own."""

    def __init__(self, name: str, testbed: str, o: argparse.Namespace, journal: Journal, exports: Exports) -> None:
        self.name, self.testbed, self.o, self.journal, self.exports = name, testbed, o, journal, exports
        self.until = 0.0
        self.captured: dict[str, mt.Captured] = {}
        self.times: dict[tuple[str, str], mt.Times] = {}  # by the profile alone
        self.learnt: dict[tuple[str, str], mt.Times] = {}  # and by runs
        self.plans: dict[tuple[str, str, str], Future[moirai.Plan]] = {}
        self.runs: dict[Any, float] = {}  # what each distinct plan took
        self.expected: Any = None
        self.clean = True  # no plan was loaded yet: what ranks hold is of the next one

    def keys(self, **more: Any) -> dict[str, Any]:
        return {"network": self.name, "testbed": self.testbed, **more}

    def late(self) -> bool:
        return time.monotonic() - began > self.until

    def prepare(self) -> None:
        for graph in GRAPHS:
            path = self.exports.wait(self.name, GRAPHS[graph][0])
            self.captured[graph], self.args = captured_of(self.name, graph, self.o.small, path)
            say(f"{self.name}, {graph}: {len(self.captured[graph].graph)} operators")

    def start(self) -> None:
        logs = self.o.out / f"ranks-{self.name.replace(':', '-')}-{self.testbed}"
        self.workers = mt.Workers(cluster_of(self.testbed, self.o.small), logs=logs, keep_weights=True)
        about, devices = self.workers.about, self.workers.devices
        rates = RATES[self.testbed]
        self.largest = max(range(len(devices)), key=lambda k: rates[k])
        if not self.journal.find("parts", testbed=self.testbed):
            self.journal.add("parts", testbed=self.testbed, device=about[0]["name"], torch=about[0]["torch"],
                             names=[d.name for d in devices], sm=[about[k].get("sm", 0) for k in sorted(about)],
                             share=[d.share or 0 for d in devices])  # fmt: skip

    def transport(self, link: str) -> str:
        return "auto" if self.o.small else link

    def probe(self, link: str) -> moirai.Cluster:
        """Measured once per testbed."""
        known = self.journal.find("link", testbed=self.testbed, link=link)
        if known is None:
            links = [vars(x) for x in mt.probe(self.workers, transport=self.transport(link), runs=10).links]
            latency = statistics.median(x["latency_ns"] for x in links) / 1e3
            rate = statistics.median(x["bytes_per_second"] for x in links) / 1e9
            self.journal.add("link", testbed=self.testbed, link=link, latency_us=latency, gb_s=rate, links=links)
            known = self.journal.find("link", testbed=self.testbed, link=link)
        assert known is not None
        return self.workers.cluster.with_links([moirai.Link(**x) for x in known["links"]])

    def meetings(self, link: str) -> dict[str, int]:
        """What a message holds its devices up for. Through the host the latency has it."""
        return mt.meetings(self.workers, transport=self.transport(link), cache=self.o.out) if link == "ipc" else {}

    def profile(self, graph: str) -> None:
        start, captured = time.monotonic(), self.captured[graph]
        options = mt.Options(runs=10, seconds=0.1)
        report = mt.profile(captured, workers=self.workers, cache=None, options=options, busy=False)
        if report.failed:
            raise RuntimeError(f"not measured: {next(iter(report.failed.items()))}")
        say(f"{self.name}, {graph}: {report.distinct} distinct operators profiled in {time.monotonic() - start:.1f} s")

    def place(self, pool: ThreadPoolExecutor, graph: str, link: str, names: tuple[str, ...]) -> None:
        """Plans are made while others run."""
        options = {"congestion": "none" if link == "ipc" else "port"}
        key = (graph, link)
        if key not in self.times:
            cluster, meets = self.probe(link), self.meetings(link)
            self.times[key] = mt.Times(self.captured[graph], cluster, options, self.o.out, meets)
            self.learnt[key] = mt.Times(self.captured[graph], cluster, options, self.o.out, meets)
        for placer in sorted(names, key=lambda p: p not in ("moirai", "placeto", "hrl")):  # what takes longest first
            limit = {"time_limit": self.o.time_limit, "threads": self.o.threads if placer == "moirai" else 1}
            if (graph, link, placer) not in self.plans and placer in self.o.placers:
                self.plans[graph, link, placer] = pool.submit(self.times[key].place, placer, **limit)

    # ---- measuring

    def pieces(self) -> None:
        """Beyond the paper: the module as people write it, cut in the ratio of the parts and compiled."""
        keys = self.keys(graph="pieces", link="ipc", placer="moirai", round=0)
        if self.journal.find("plan", **keys) or self.journal.find("none", **keys):
            return
        start = time.monotonic()
        try:
            plan, measured, captured = self.run_pieces()
        except (moirai.Error, RuntimeError) as error:
            self.journal.add("none", **keys, why=first_line(error))
            if not self.workers.alive:
                self.start()
            return
        self.note_plan(keys, captured, plan, measured.median_ns / 1e6, start)

    def run_pieces(self) -> tuple[moirai.Plan, mt.Measured, mt.Captured]:
        sizes = [round(16 * r / max(RATES[self.testbed])) for r in RATES[self.testbed]]
        ratio = ":".join(str(n) for n in sorted(sizes, reverse=True))
        module, args = networks_paper.make(self.name, "whole", self.o.small)
        how = {"fuse": "none"} if self.o.small else {"fuse": "inductor", "fuse_for": "cuda", "cache": self.o.out / "code"}
        captured = mt.capture(module, args, name=f"{self.name}-pieces", cuts=f"*: {ratio}", **how)
        say(f"{self.name}, in pieces: {len(captured.graph)} operators in {ratio}")
        mt.profile(captured, workers=self.workers, cache=None, busy=False, options=mt.Options(runs=10, seconds=0.05))
        options = {"congestion": "none"}
        times = mt.Times(captured, self.probe("ipc"), options, self.o.out, self.meetings("ipc"))
        plan = times.place("moirai", time_limit=self.o.time_limit, threads=self.o.threads)
        more = {} if self.o.small else {"cache": self.o.out / "code"}
        with mt.distribute(captured, plan, workers=self.workers, transport=self.transport("ipc"), stall_s=60, **more) as run:
            self.compare(run(*args))
            return plan, run.measure(warmup=5, runs=self.o.runs), captured

    def compare(self, result: torch.Tensor) -> None:
        off = float((result - self.expected).norm() / self.expected.norm())
        if not off < WRONG:
            raise RuntimeError(f"results are off by {off:.2g} of their norm")

    def module_alone(self, how: str) -> dict[str, Any]:
        args = (self.name, how, self.o.small, self.o.runs, str(self.result_file()))
        job = {"module": "paper_measured", "function": "baseline", "args": args}
        return self.workers.tell("call", {self.largest: job}, 600)[self.largest]  # type: ignore[no-any-return]

    def result_file(self) -> Path:
        return self.o.out / f"result-{self.name.replace(':', '-')}{'-small' if self.o.small else ''}.pt"

    def baseline(self, how: str) -> None:
        part = self.workers.devices[self.largest].name
        known = self.journal.find("baseline", **self.keys(how=how, part=part))
        if known is None or (how == "plain" and not self.result_file().exists()):
            found = self.module_alone(how)
            if "why" in found:
                self.journal.add("none", **self.keys(how=how, part=part), why=found["why"])
                return
            self.journal.add("baseline", **self.keys(how=how, part=part, ms=found["ms"]))
            if found.get("peak"):
                self.memory("module", "original", part, found["weights"], 0, found["peak"])
        if how == "plain":
            self.expected = torch.load(self.result_file())

    def memory(self, placer: str, graph: str, part: str, weights: int, computed: int, measured: int) -> None:
        self.journal.add("memory", **self.keys(graph=graph, placer=placer, part=part, weights=weights,
                                               computed=computed, measured=measured))  # fmt: skip

    def footprints(self, reset: bool) -> list[tuple[int, int]]:
        job = {"module": "paper_measured", "function": "footprint", "args": (reset,)}
        found = self.workers.tell("call", {k: job for k in range(len(self.workers.devices))}, 60)
        return [found[k] for k in sorted(found)]

    def weights_of(self, graph: str, plan: moirai.Plan) -> dict[str, int]:
        found, where = dict.fromkeys(plan.problem.devices, 0), plan.placement
        for op in self.captured[graph].graph.ops:
            found[where[op.name]] += op.weight_bytes or 0
        return found

    def run(self, graph: str, link: str, plan: moirai.Plan) -> mt.Measured:
        """Loads a plan, compares its result with the module's, and measures it."""
        before = self.footprints(True) if self.clean else []
        options = {"transport": self.transport(link), "stall_s": 60}
        with mt.distribute(self.captured[graph], plan, workers=self.workers, **options) as run:
            self.compare(run(*self.args))
            measured: mt.Measured = run.measure(warmup=5, runs=self.o.runs)
            after = self.footprints(False) if self.clean else []
        self.clean = False
        weights, computed = self.weights_of(graph, plan), plan.peak_bytes
        for device, (was, _), (_, peak) in zip(plan.problem.devices, before, after):
            if peak > was:
                self.memory(plan.placer, graph, device, weights[device], computed[device], peak - was)
        return measured

    def measure(self, graph: str, link: str, placer: str, number: int = 0) -> None:
        keys = self.keys(graph=graph, link=link, placer=placer, round=number)
        if self.journal.find("plan", **keys) or self.journal.find("none", **keys):
            return
        start = time.monotonic()
        try:
            plan = self.plans[graph, link, placer].result() if number == 0 else self.again(graph, link, placer)
            same = (graph, "" if one_device(plan) else link, plan_key(plan))
            if same not in self.runs:
                measured = self.run(graph, link, plan)
                self.runs[same] = measured.median_ns / 1e6
                if self.o.rounds:
                    self.learnt[graph, link].learn(plan, measured, placer)
        except (moirai.Error, RuntimeError) as error:
            self.journal.add("none", **keys, why=first_line(error))
            if not self.workers.alive:  # other plans may do
                self.start()
            return
        self.note_plan(keys, self.captured[graph], plan, self.runs[same], start)

    def note_plan(self, keys: dict[str, Any], captured: mt.Captured, plan: moirai.Plan, ms: float, start: float) -> None:
        self.journal.add("plan", **keys, operators=len(captured.graph), predicted_ms=expected_ns(plan) / 1e6,
                         measured_ms=ms, bound_ms=(plan.lower_bound_ns or 0) / 1e6,
                         generation_s=plan.generation_ns / 1e9, parts=len(set(plan.placement.values())),
                         transfers=len(plan.transfers), took_s=time.monotonic() - start)  # fmt: skip

    def again(self, graph: str, link: str, placer: str) -> moirai.Plan:
        """A plan from what the first ones took."""
        return self.learnt[graph, link].place(placer, time_limit=self.o.time_limit, threads=self.o.threads)

    def steps(self, pool: ThreadPoolExecutor) -> list[Callable[[], Any]]:
        """Most telling first."""
        links = self.o.links.split(",")
        found: list[Callable[[], Any]] = [lambda: self.baseline("plain")]
        found += [lambda g=graph: self.profile(g) for graph in GRAPHS]
        found += [lambda g=graph, x=link: self.place(pool, g, x, FIRST) for link in links for graph in GRAPHS]
        for i, link in enumerate(links):
            for graph in GRAPHS:
                found += [lambda g=graph, x=link, p=p: self.measure(g, x, p) for p in FIRST if p in self.o.placers]
            if i == 0:
                found += [lambda h=how: self.baseline(h) for how in self.o.baselines.split(",")]
                found += [self.pieces] if self.o.pieces else []
        for link in links:
            for graph in GRAPHS:
                found.append(lambda g=graph, x=link: self.place(pool, g, x, REST))
        for link in links:
            for graph in GRAPHS:
                found += [lambda g=graph, x=link, p=p: self.measure(g, x, p) for p in REST if p in self.o.placers]
                if self.o.rounds and "moirai" in self.o.placers:
                    found.append(lambda g=graph, x=link: self.measure(g, x, "moirai", 1))
        return found

    def done(self) -> bool:
        """Is there nothing left to measure? Then no rank need be started."""
        pairs = [(g, x) for g in GRAPHS for x in self.o.links.split(",")]
        wanted = [(g, x, p, 0) for g, x in pairs for p in FIRST + REST if p in self.o.placers]
        wanted += [(g, x, "moirai", 1) for g, x in pairs if self.o.rounds and "moirai" in self.o.placers]
        wanted += [("pieces", "ipc", "moirai", 0)] if self.o.pieces else []
        keys = [self.keys(graph=g, link=x, placer=p, round=n) for g, x, p, n in wanted]
        return all(self.journal.find("plan", **k) or self.journal.find("none", **k) for k in keys)

    def all(self, pool: ThreadPoolExecutor) -> None:
        if self.done():
            return
        self.prepare()
        self.start()
        try:
            for step in self.steps(pool):
                if self.late():
                    say(f"{self.name}, {self.testbed}: no time left")
                    return
                step()
        finally:
            for plan in self.plans.values():
                plan.cancel()
            self.workers.close()


def options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", type=Path, default=Path("out/paper"), help="folder of the journal and of exports")
    p.add_argument("--networks", default="gpt3-330M,alphafold2-87M,swin-1.8B", help="NAME:N has N layers")
    p.add_argument("--testbeds", default="intra-server,inter-server")
    p.add_argument("--links", default="ipc,host")
    p.add_argument("--placers", default=",".join(FIRST + REST))
    p.add_argument("--baselines", default="graph,compiled", help="how else the module runs alone")
    p.add_argument("--seconds", type=float, default=280, help="no step begins after that; shared among sections")
    p.add_argument("--runs", type=int, default=10)
    p.add_argument("--rounds", type=int, default=1, choices=(0, 1), help="1: a plan from what the first ones took, too")
    p.add_argument("--time-limit", type=float, default=8, help="of a search or a learner, in seconds")
    p.add_argument("--threads", type=int, default=4, help="of a search")
    p.add_argument("--pieces", action="store_true", help="also the module cut in the ratio of the parts, compiled")
    p.add_argument("--export", action="store_true", help="make the networks' graphs and nothing else")
    p.add_argument("--export-one", default="", help=argparse.SUPPRESS)
    p.add_argument("--small", action="store_true", help="small networks on four processor ranks: tries the script")
    o = p.parse_args()
    o.out = o.out.resolve()
    o.out.mkdir(parents=True, exist_ok=True)
    for name in o.networks.split(","):
        networks_paper.sizes_of(name)
    o.placers = [x for x in o.placers.split(",") if x in moirai.placers()]
    return o


def sections(o: argparse.Namespace) -> list[tuple[str, str]]:
    """The first network on all testbeds, then the others on the first, then the rest."""
    names, testbeds = o.networks.split(","), o.testbeds.split(",")
    first = [(names[0], t) for t in testbeds] + [(n, testbeds[0]) for n in names[1:]]
    return first + [(n, t) for n in names[1:] for t in testbeds[1:]]


def measure_all(o: argparse.Namespace, exports: Exports) -> int:
    journal, failed = Journal(o.out / "measured.jsonl"), 0
    missing = [p for p in FIRST + REST if p not in o.placers]
    if missing:
        say(f"not asked for, or not in this build: {', '.join(missing)}")
    todo = sections(o)
    weights = [(8, 6, 4, 3)[i] if i < 4 else 1 for i in range(len(todo))]
    with ThreadPoolExecutor(5) as pool:
        for i, (name, testbed) in enumerate(todo):
            left = o.seconds - (time.monotonic() - began)
            if left <= 0:
                break
            try:
                section = Section(name, testbed, o, journal, exports)
                section.until = o.seconds - left + left * weights[i] / sum(weights[i:])
                section.all(pool)
            except Exception as error:  # the next one may do
                traceback.print_exc()
                journal.add("failed", network=name, testbed=testbed, why=first_line(error))
                failed += 1
    return 1 if failed else 0


def main() -> int:
    o = options()
    if o.export_one:
        name, style = o.export_one.split("/")
        start = time.monotonic()
        torch.set_num_threads(1)
        exports = Exports.__new__(Exports)
        exports.o, exports.folder = o, o.out / "exports"
        export(name, style, o.small, exports.path(name, style))
        say(f"{name}, {style}: exported in {time.monotonic() - start:.1f} s")
        return 0
    exports = Exports(o)
    try:
        if not o.export:
            return measure_all(o, exports)
        for name in o.networks.split(","):
            for style, _ in GRAPHS.values():
                exports.wait(name, style)
        return 0
    finally:
        exports.close()


if __name__ == "__main__":
    sys.exit(main())
