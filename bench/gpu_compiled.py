#!/usr/bin/env python3
"""Plans of compiled kernels on parts of one GPU against torch.compile on the largest part.

    python3 bench/gpu_compiled.py --out FOLDER [--networks layers,hrnet] [--seconds 120]

Per network, the most telling first: the module on the largest part, plain and by torch.compile (channels last where
that pays), as CUDA graphs; the captured network on that part alone, compiled by us; the sum of its groups there; a plan
over all parts, predicted and measured. A line is printed and kept in FOLDER/lines.jsonl after each step, so that
whatever was measured before the end stays; no step begins after --seconds. --small tries the script on processors.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Callable

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))

import torch  # noqa: E402

import moirai  # noqa: E402
import moirai.torch as mt  # noqa: E402
import gpu_where  # noqa: E402
import networks_compiled  # noqa: E402
from gpu import cluster_of  # noqa: E402
from moirai.torch.busy import Corrected, times_of  # noqa: E402
from moirai.torch.merging import expect, expected_ns  # noqa: E402
from moirai.torch.precision import flags  # noqa: E402
from moirai.torch.times import one_device, plan_key  # noqa: E402
from quiet import Module, Turns, spread  # noqa: E402

began = time.monotonic()
_LAST_STEP = 60  # seconds that others are waited for after --seconds
_LIKELY = 1.25  # plans of several parts that are predicted to take so much longer than one are run all the same


class Lines:
    """What was measured, kept as it comes."""

    def __init__(self, o: argparse.Namespace) -> None:
        self.o, self.path = o, o.out / "lines.jsonl"
        kinds = [("TF32" if o.tf32 else ""), (o.dtype if o.dtype != "float32" else ""), o.cuts and f"cut {o.cuts}",
                 "" if o.fuse == "inductor" else f"fuse={o.fuse}"]  # fmt: skip
        self.turns = Turns(o.out)
        self.setting = {"shares": o.shares, "setting": "; ".join(k for k in kinds if k)}

    def add(self, network: str, what: str, **numbers: Any) -> None:
        line = {"at_s": round(time.monotonic() - began, 1), "network": network, "what": what, **numbers}
        line.update(self.setting)
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
        shown = ", ".join(f"{k} {v:.3f}" if isinstance(v, float) else f"{k} {v}" for k, v in numbers.items())
        print(f"[{line['at_s']:6.1f}] {network}: {what}: {shown}", flush=True)

    def late(self) -> bool:
        return time.monotonic() - began > self.o.seconds

    def turn(self) -> Any:
        return self.turns.turn()


class Case:
    def __init__(self, name: str, o: argparse.Namespace, workers: mt.Workers, lines: Lines) -> None:
        self.name, self.o, self.workers, self.lines = name, o, workers, lines
        self.module, self.args = networks_compiled.make(name, o.small, getattr(torch, o.dtype))
        self.whole = Module(workers, name, o.small, o.dtype, o.out / "cache", o.runs)
        self.part = self.whole.part
        last = any(isinstance(m, torch.nn.Conv2d) for m in self.module.modules())
        self.last, self.usual = last, "compiled, channels last" if last else "compiled"
        self.best = 0.0  # ms, the fastest that torch does on the largest part
        self.expected: Any = None
        self.tried: list[tuple[str, moirai.Plan, str, int]] = []

    def say(self, what: str, **numbers: Any) -> None:
        self.lines.add(self.name, what, **numbers)

    def torch_alone(self, how: str) -> float:
        self.whole.prepare(how)
        with self.lines.turn():
            found = self.whole.time(how)
        if not (self.o.calm or self.o.alone):
            self.whole.forget(how)
        self.say(f"torch {how} on {self.part}", ms=found)
        return found

    def capture(self) -> mt.Captured:
        start = time.monotonic()
        kind = "cpu" if self.o.small else "cuda"
        options = {"fuse": self.o.fuse, "fuse_for": kind, "cache": self.o.out / "cache", "cuts": self.o.cuts or None}
        found = mt.capture(self.module, self.args, name=self.name, **options)
        calls = sum(len(g) for g in found.ops.values())
        self.say("captured", s=time.monotonic() - start, calls=calls, groups=len(found.graph), by=found.grouped_by)
        return found

    def check(self, run: Any) -> float:
        if self.expected is None:
            with torch.no_grad():
                self.expected = self.module(*self.args)
        got = run(*self.args)
        return float((got.float() - self.expected.float()).norm() / self.expected.float().norm())

    def run(self, what: str, plan: moirai.Plan, transport: str, known: bool = True) -> mt.Measured:
        """`known`: operators were measured, so that the plan predicts something."""
        start = time.monotonic()
        options = {"transport": transport, "stall_s": 60, "cache": self.o.out / "cache"}
        with mt.distribute(self.captured, plan, workers=self.workers, **options) as run:
            loaded = time.monotonic() - start
            with self.lines.turn():
                off = self.check(run)
                measured = run.measure(warmup=5, runs=self.o.runs)
            made = {d: f"{c.pieces}, {c.distinct} distinct, {c.compiled} compiled" for d, c in run.compiled.items()}
            why, program = run.why_eager, run.program
        ms, predicted_ms = measured.median_ns / 1e6, expected_ns(plan) / 1e6 if known else None
        held = [g["held_ns"] for d in measured.timeline["devices"] for g in d["segments"] if g["held_ns"] > 0]
        self.say(what, ms=ms, predicted_ms=predicted_ms, of_torch=ms / self.best if self.best else 0.0,
                 transfers=len(plan.transfers), off=off, loaded_s=loaded, segments=made, eager=why,
                 held_us=statistics.fmean(held) / 1000 if held else 0.0)  # fmt: skip
        if known and plan.transfers:
            self.say("where", plan=what, **gpu_where.where(program, measured.timeline, plan.meetings or {}))
        return measured

    def single(self) -> None:
        """One part that runs all, as one compiled segment."""
        self.run(f"ours, compiled, {self.part} alone", self.on_largest(), "auto", known=False)

    def only(self) -> None:
        """One part that runs all against torch.compile there, in turns. Nothing is grouped: a network that stays whole is
        compiled as it is."""
        start = time.monotonic()
        with ThreadPoolExecutor(1) as pool:
            ready = pool.submit(self.whole.prepare, self.usual)
            self.captured = mt.capture(self.module, self.args, name=self.name)
            captured = time.monotonic() - start
            ready.result()
        self.say("torch.compile ready", captured_s=captured, s=time.monotonic() - start)
        plan, start = self.on_largest(), time.monotonic()
        with mt.distribute(self.captured, plan, workers=self.workers, compile=True, cache=self.o.out / "cache") as run:
            loaded = time.monotonic() - start
            off, made = self.check(run), [(c.pieces, c.compiled) for c in run.compiled.values()]
            self.say("ready", off=off, pieces_compiled=made, eager=run.why_eager, s=loaded)
            with self.lines.turn():
                theirs, ours = self.whole.in_turns(self.usual, run)
        best, ms = statistics.median(theirs), statistics.median(ours)
        self.say(f"alone on {self.part}", torch_compiled_ms=best, ours_ms=ms, of_torch=ms / best, spread=spread(theirs, ours))

    def on_largest(self) -> moirai.Plan:
        for device in self.workers.devices:
            self.captured.graph.set_times(device.name, [1000] * len(self.captured.graph))
        problem = moirai.Problem(self.captured.graph, self.workers.cluster)
        return moirai.Plan.by_devices(problem, dict.fromkeys(problem.op_names, self.part))

    def groups(self) -> None:
        start = time.monotonic()
        where: dict[str, Any] = {"workers": self.workers, "cache": self.o.out / "cache", "fresh": True}
        mt.profile(self.captured, **where, options=mt.Options(runs=0))  # code first: others may be timed meanwhile
        compiled = time.monotonic() - start
        busy = {"on": True, "off": False}.get(self.o.busy) if not self.o.small else True
        with self.lines.turn():
            begun = time.monotonic()
            report = mt.profile(self.captured, **where, options=mt.Options(runs=5, seconds=0.03), busy=busy)
            took = time.monotonic() - begun
        graphs = {"alone": self.captured.graph, **({"busy": self.captured.busy} if self.captured.busy else {})}
        sums = {k: {d: sum(t.values()) / 1e6 for d, t in times_of(g).items()} for k, g in graphs.items()}
        total = sums["alone"][self.part]
        self.say(f"sum of groups on {self.part}", ms=total, of_torch=total / self.best if self.best else 0.0,
                 distinct=report.distinct, not_compiled=len(report.not_compiled), failed=len(report.failed),
                 sums_ms=sums, compiled_s=compiled, profiled_s=took)  # fmt: skip
        for kind, graph in graphs.items():
            graph.save(self.kept(f"{kind}.json"))

    def kept(self, name: str) -> Path:
        """A file of this network's: what rules are judged by afterwards."""
        kind = "".join(c if c.isalnum() else "-" for c in f"{self.name} {self.lines.setting['setting']}").strip("-")
        return self.o.out / f"{kind}-{name}"

    def otherwise(self, plan: moirai.Plan, times: mt.Times, options: Any, meetings: Any) -> dict[str, float]:
        """What this plan would be predicted to take, in ms, by other rules."""
        if not self.captured.busy or len(set(plan.placement.values())) < 2:
            return {}
        shares = {d.name: d.share or 1.0 for d in self.workers.devices}
        between = Corrected(self.captured.graph, self.captured.busy, shares)
        graphs = {"alone": self.captured.graph, "busy": self.captured.busy, "weighed": between.after(plan)}
        found = {}
        for kind, graph in graphs.items():
            played = plan.replay(moirai.Problem(graph, times.cluster, **options))
            found[kind] = expected_ns(expect(self.captured, played, meetings, options["congestion"] != "none")) / 1e6
        return found

    def split(self, links: Any, transport: str, folder: Path) -> None:
        if transport == "nccl":
            return self.nccl(self.workers.cluster, folder)
        options = {"congestion": "none" if transport == "ipc" else "port"}
        cluster, way = links(transport), "auto" if self.o.small else transport
        with self.lines.turn():
            meetings = mt.meetings(self.workers, transport=way, cache=self.o.out / "cache")
        self.say("meetings", **{f"{d}_us": ns / 1000 for d, ns in meetings.items()})
        compiled = self.o.fuse == "inductor"
        whole = {self.part: int(self.best * 1e6)} if compiled else {}
        times = mt.Times(self.captured, cluster, options, folder, meetings, whole, self.o.busy == "on")
        search, seen = {"time_limit": self.o.time_limit, "threads": self.o.threads}, set()
        while len(seen) < self.o.plans:  # the first, then what was learnt from its run, and so on
            found = [p for p in times.places("moirai", within=_LIKELY, **search) if plan_key(p) not in seen]
            if found and one_device(found[0]):
                self.say(f"one part by {transport}", predicted_ms=expected_ns(found[0]) / 1e6)  # was measured: torch.compile's
            found = [p for p in found if not one_device(p)]
            if not found:
                return
            parts, plan = len(set(found[0].placement.values())), found[0]
            what = f"{parts} parts by {transport}, plan {len(seen)}"
            self.say("predicted otherwise", plan=what, **(self.otherwise(plan, times, options, meetings) if not seen else {}))
            plan.save(self.kept(f"{transport}-{len(seen)}-plan.json"))
            measured = self.run(what, plan, way)
            measured.save(self.kept(f"{transport}-{len(seen)}-run.json"))
            times.learn(plan, measured)
            seen.add(plan_key(plan))
            self.tried.append((what, plan, way, measured.median_ns))
            if self.lines.late():
                return

    def calm(self) -> None:
        """When all processes are here: what torch makes of the whole module and the fastest plans by each kind of link, in
        turns, while nobody else has the GPU."""
        here = self.lines.turns.meet(self.o.calm, time.time() + self.o.seconds + _LAST_STEP - (time.monotonic() - began))
        by_link: dict[str, list[Any]] = {}
        for trial in sorted(self.tried, key=lambda t: t[3]):
            by_link.setdefault(trial[0].split(" by ")[1].split(",")[0], []).append(trial)
        with self.lines.turn():
            how, took = self.whole.fastest()
            self.say("calm", here=here, **{f"{k}_ms": ms for k, ms in took.items()})
            for some in by_link.values():
                for what, plan, way, ns in some[:2]:
                    if ns < _LIKELY * some[0][3]:
                        self.quiet(what, plan, way, how)

    def quiet(self, what: str, plan: moirai.Plan, transport: str, how: str) -> None:
        if time.monotonic() - began > self.o.end:
            return
        options = {"transport": transport, "stall_s": 60, "cache": self.o.out / "cache"}
        with mt.distribute(self.captured, plan, workers=self.workers, **options) as run:
            off = self.check(run)
            self.say("quiet", off=off, predicted_ms=expected_ns(plan) / 1e6, **self.whole.row(what, how, run))

    def nccl(self, cluster: moirai.Cluster, folder: Path) -> None:
        """The same by NCCL, in processes that torchrun starts (gpu_nccl.py)."""
        own = folder / f"nccl-{self.name.replace(':', '-')}-{os.getpid()}"
        own.mkdir(exist_ok=True)
        cluster.save(own / "cluster.json")
        shares = [] if self.o.small else [float(s) for s in self.o.shares.split(",")]
        ops = (self.captured.busy or self.captured.graph).ops  # parts of one GPU slow each other down
        times = {d.name: [(op.time_ns or {}).get(d.name) for op in ops] for d in self.workers.devices}
        job = {"network": self.name, "small": self.o.small, "dtype": self.o.dtype, "cuts": self.o.cuts, "flags": flags(),
               "cache": str(self.o.out / "cache"), "cluster": str(own / "cluster.json"), "shares": shares, "times": times,
               "whole": {self.part: int(self.best * 1e6)} if self.best else {},
               "lines": str(own / "lines"), "turn": str((own if self.lines.turns.depth else self.o.out) / "turn"), "time_limit": self.o.time_limit,
               "threads": self.o.threads, "plans": self.o.plans, "runs": self.o.runs,
               "limit_s": 120, "until": time.time() + self.o.seconds - (time.monotonic() - began)}  # fmt: skip
        (own / "job.json").write_text(json.dumps(job))
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(len(times)),
                   str(HERE / "gpu_nccl.py"), str(own / "job.json")]  # fmt: skip
        where = {**os.environ, "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1"}
        done = subprocess.run(command, env=where, capture_output=True, text=True)  # ranks end themselves in time
        for line in (own / "lines").read_text().splitlines() if (own / "lines").exists() else ():
            found = json.loads(line)
            self.say(found.pop("what"), **found)
        if done.returncode:
            (own / "said.txt").write_text(done.stdout + done.stderr)
            wrong = [x for x in done.stderr.splitlines() if "Error" in x]
            self.say("nccl FAILED", why=(wrong or ["no reason given"])[0][:300])

    def all(self, links: Any, folder: Path) -> None:
        with ThreadPoolExecutor(1) as pool:  # grouping takes the caller's processor, compiling another process'
            baseline = pool.submit(self.torch_alone, self.usual)
            self.captured = self.capture()
            self.best = baseline.result()
        if self.o.prepare:
            mt.profile(self.captured, workers=self.workers, cache=self.o.out / "cache", fresh=True, options=mt.Options(runs=0))
            self.say("prepared")
            return
        alone = not self.o.cuts and not self.o.no_alone
        steps: list[Callable[[], Any]] = [self.single, self.groups] if alone else [self.groups]
        splits = [partial(self.split, links, t, folder) for t in self.o.links.split(",")]
        others = [partial(self.whole.prepare, how) for how in self.whole.others(self.last)] if self.o.calm else []
        if self.o.alone:
            return self.alone(others, [self.groups, *splits])
        steps += [*splits[:1], *others, *splits[1:]]
        steps += [partial(self.torch_alone, self.usual.replace("compiled", "plain"))] if alone else []
        self.follow(steps)

    def follow(self, steps: list[Callable[[], Any]]) -> None:
        for step in steps:
            if self.lines.late():
                self.say("no time left")
                return
            step()

    def alone(self, before: list[Callable[[], Any]], steps: list[Callable[[], Any]]) -> None:
        """All that is measured while the other processes of --alone only wait: code is compiled before."""
        mt.profile(self.captured, workers=self.workers, cache=self.o.out / "cache", fresh=True, options=mt.Options(runs=0))
        self.follow(before)
        here = self.lines.turns.meet(self.o.alone, time.time() + self.o.seconds - (time.monotonic() - began))
        with self.lines.turn():
            self.say("alone", here=here)
            self.follow(steps[:1])
            self.best = self.whole.time(self.usual)  # as tune has it: after all parts were at work
            self.say(f"torch {self.usual} on {self.part}", ms=self.best)
            self.follow(steps[1:])


def options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", type=Path, default=Path("out/gpu_compiled"), help="folder for results and code")
    p.add_argument("--networks", default="layers,hrnet", help="layers, hrnet, those of networks.py, timm:NAME")
    p.add_argument("--cuts", default="", help="operators in pieces, as in capture(cuts=...); torch runs the whole module")
    p.add_argument("--fuse", default="inductor", choices=["inductor", "aten", "none"], help="what plans have for operators")
    p.add_argument("--dtype", default="float32", choices=["float32", "bfloat16", "float16"])
    p.add_argument("--tf32", action="store_true", help="products of float32 in TF32")
    p.add_argument("--shares", default="0.1,0.2,0.3,0.4", help="parts of the GPU")
    p.add_argument("--links", default="ipc")
    p.add_argument("--runs", type=int, default=40)
    p.add_argument("--seconds", type=float, default=120, help="no step begins after that")
    p.add_argument("--time-limit", type=float, default=8, help="of a search, in seconds")
    p.add_argument("--no-alone", action="store_true", help="ours is not run on one part, nor the module without a compiler")
    p.add_argument("--only-alone", action="store_true", help="one part that runs all against torch.compile, nothing else")
    p.add_argument("--plans", type=int, default=2, help="the first search's, and those made from what was learnt of their runs")
    p.add_argument("--threads", type=int, default=8, help="of a search")
    p.add_argument("--busy", default="on", choices=["on", "off"], help="plans for times with all parts busy, or for those alone")
    p.add_argument("--probe", action="store_true", help="measure links; else ipc has 2 us, the host 5.5 us")
    p.add_argument("--prepare", action="store_true", help="capture, group and compile, for a later call: nothing is measured")
    p.add_argument("--alone", type=int, default=0, help="so many processes share --out: when all have compiled, each profiles, plans and "
                   "runs while the others wait")  # fmt: skip
    p.add_argument("--calm", type=int, default=0, help="so many processes share --out: when all are done, what is fastest is "
                   "measured again in turns, by one at a time")  # fmt: skip
    p.add_argument("--end", type=float, default=1e9, help="nothing is measured again after so many seconds")
    p.add_argument("--small", action="store_true", help="small networks on two processor ranks: tries the script")
    o = p.parse_args()
    o.out = o.out.resolve()
    o.out.mkdir(parents=True, exist_ok=True)
    return o


class Links:
    """Probed, or as they were found on an H200 before; runs correct them."""

    def __init__(self, o: argparse.Namespace, lines: Lines) -> None:
        self.o, self.lines = o, lines
        self.known: dict[str, moirai.Cluster] = {}

    def get(self, workers: mt.Workers, transport: str) -> moirai.Cluster:
        if transport not in self.known:
            if self.o.probe:
                self.known[transport] = mt.probe(workers, transport="auto" if self.o.small else transport, runs=10)
            else:
                latency_ns, rate = (2000, 10**12) if transport == "ipc" else (5500, 17 * 10**9)
                made = [replace(x, latency_ns=latency_ns, bytes_per_second=rate) for x in workers.cluster.links]
                self.known[transport] = workers.cluster.with_links(made)
            us = sorted({x.latency_ns / 1000 for x in self.known[transport].links})
            self.lines.add("links", transport, probed=self.o.probe, us=us)
        return self.known[transport]


def main() -> int:
    o = options()
    if o.tf32:
        torch.set_float32_matmul_precision("high")
    lines, failed = Lines(o), 0
    links = Links(o, lines)
    workers: mt.Workers | None = None
    for name in o.networks.split(","):
        try:
            if workers is None or not workers.alive:
                workers = mt.Workers(cluster_of(o), logs=o.out / f"ranks-{name}")
                lines.add(name, "ranks", sm=[workers.about[k].get("sm", 0) for k in workers.about])
            case = Case(name, o, workers, lines)
            if o.only_alone:
                case.only()
            else:
                case.all(partial(links.get, workers), o.out)
                if o.calm:
                    case.calm()
        except Exception as error:  # the next network may do
            traceback.print_exc()
            lines.turns.meet(0, 0)  # nobody has to wait for it
            lines.add(name, "FAILED", why=str(error).splitlines()[0] if str(error) else type(error).__name__)
            failed += 1
    if workers is not None:
        for device, said in (workers.logs() if workers.alive else {}).items():
            for line in [x for x in said.splitlines() if "other strides" in x][-3:]:
                lines.add("ranks", device, said=line)
        workers.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
