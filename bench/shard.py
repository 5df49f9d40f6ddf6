#!/usr/bin/env python3
"""Operators in pieces against whole ones: measured, on processors or on parts of a GPU.

    python3 bench/shard.py --out FOLDER                              # two processor ranks of this machine
    python3 bench/shard.py --out FOLDER --shares 0.1,0.2,0.3,0.4     # one GPU, cut by MPS

    python3 bench/shard.py --out FOLDER --shares 0.1,0.2,0.3,0.4 --no-hand hf:bert hf:t5   # networks of PyPI's transformers

Per network, `moirai.torch.tune` of several captures in one call: whole operators, cuts by hand (attention and
feed-forward blocks, or images by rows, in pieces by the devices' shares, and in fewer and larger ones), and the cut that is chosen. What is
kept is verified against the module. A row has the fastest device alone, the fastest split by whole operators, the best
cut by hand, the chosen one, how far its first prediction was off, and how far that of the plan that is kept is off after
all runs, from runs that came later.
Writes results.json and table.md to FOLDER after every network.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import math
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))  # ranks import quiet.py

import torch  # noqa: E402

import moirai  # noqa: E402
import moirai.torch as mt  # noqa: E402
import gpu_where  # noqa: E402
import networks_public  # noqa: E402
from moirai.torch.cache import chosen_folder
from moirai.torch.cut_sizes import samples
from moirai.torch.cuts import ALTERNATIVES
from moirai.torch.times import one_device
from moirai.torch.tune import Tuned
from quiet import Module, Turns

START = time.monotonic()


def by_hand(shares: list[float], kinds: tuple[str, ...]) -> list[str]:
    """Pieces by the shares of all devices, and without the smallest one."""
    found = []
    for some in (sorted(shares, reverse=True), sorted(shares, reverse=True)[:-1]):
        if len(some) > 1:
            sizes = ":".join(str(round(1000 * s)) for s in some)
            found.append("; ".join(f"*{kind}: {sizes}" for kind in kinds))
    return found


def row(name: str, found: Tuned, chosen: list[str], hand: list[str]) -> dict[str, Any]:
    def best(trials: list[Any]) -> Any:
        return min(trials, key=lambda t: t.measured_ns, default=None)

    splits = [t for t in found.trials if not one_device(t.plan)]
    kinds = {
        "alone": best([t for t in found.trials if one_device(t.plan) and not t.captured.cuts]),
        "whole": best([t for t in splits if not t.captured.cuts]),
        "hand": best([t for t in splits if t.captured.cuts in hand]),
        "auto": best([t for t in splits if t.captured.cuts and t.captured.cuts not in hand]),
    }
    made: dict[str, Any] = {"network": name, "verdict": found.verdict, "cut": chosen[-1] if chosen else ""}
    for kind, t in kinds.items():
        made[kind] = t and {"measured_ms": t.measured_ns / 1e6, "predicted_ms": t.predicted_ns / 1e6, "cut": t.captured.cuts}
    return made


def table(rows: list[dict[str, Any]]) -> str:
    """With what no cut can beat, where that was asked for."""
    any_bound = any("all_cuts_bound_ms" in r for r in rows)
    lines = ["| network | best device alone | whole operators | cut by hand | chosen cut | times as fast as alone | predicted before its first run | after `tune` |" + " no cut takes less than (all parts busy) |" * any_bound,
             "|---|---:|---:|---:|---:|---:|---:|---:|" + "---:|" * any_bound]  # fmt: skip
    for r in rows:
        ms = [f"{r[k]['measured_ms']:.2f} ms" if r[k] else "-" for k in ("alone", "whole", "hand", "auto")]
        auto = r["auto"]
        gain = f"{r['alone']['measured_ms'] / auto['measured_ms']:.2f}" if auto and r["alone"] else "no cut pays"
        off = f"{100 * (auto['predicted_ms'] / auto['measured_ms'] - 1):+.1f} %" if auto else "-"
        after = r.get("after")
        last = f"{100 * (after['predicted_ms'] / after['measured_ms'] - 1):+.1f} %" if after else "-"
        name = ", ".join(x for x in (r["network"], r.get("setting", "")) if x)
        bounds = [r[k] for k in ("all_cuts_bound_ms", "all_cuts_busy_ms") if r.get(k) and r["alone"]]
        least = " or ".join(f"{ms:.2f} ms ({r['alone']['measured_ms'] / ms:.2f})" for ms in bounds) or "-"
        lines.append(f"| {name} | {' | '.join(ms)} | {gain} | {off} | {last} |" + f" {least} |" * any_bound)
    return "\n".join(lines) + "\n"


def cluster_of(o: argparse.Namespace) -> tuple[moirai.Cluster, list[float]]:
    if o.shares:
        shares = [float(s) for s in o.shares.split(",")]
        devices = [{"name": f"p{round(100 * s)}", "type": o.type, "memory": "30GB", "share": s} for s in shares]
    else:
        shares = [1.0] * o.ranks
        devices = [{"name": f"c{k}", "type": "cpu", "memory": "4GB", "threads": 1} for k in range(o.ranks)]
    names = [d["name"] for d in devices]
    links = [{"from": a, "to": b, "bandwidth": "10GB/s", "latency": "10us"} for a in names for b in names if a != b]
    return moirai.Cluster.open({"name": "bench", "devices": devices, "links": links}), shares


def at() -> str:
    return f"[{time.monotonic() - START:5.1f}]"


def by_turns(turns: Turns, folder: Path) -> None:
    """Processes that share a folder take turns on the GPU; where the time of every run goes is said, and kept."""
    tuning = importlib.import_module("moirai.torch.tune")  # moirai.torch.tune is the function
    runs = itertools.count()

    def profiling(self: Any, captured: Any, code: bool = True, own: Any = tuning._Tuner.profile) -> None:
        began = time.monotonic()
        if captured.fuse == "inductor" and code:  # code first
            mt.profile(captured, workers=self.workers, cache=self.o["cache"], fresh=True, options=mt.Options(runs=0))
        compiled = time.monotonic()
        with turns.turn():
            begun = time.monotonic()
            own(self, captured, code)
        times = f"compiled {compiled - began:.1f} s, waited {begun - compiled:.1f}, profiled {time.monotonic() - begun:.1f}"
        print(f"  {at()} {captured.fuse} {captured.cuts[:50] or 'whole'}: {times}", flush=True)

    def measuring(self: Any, *args: Any, own: Any = mt.Distributed.measure, **options: Any) -> Any:
        with turns.turn():
            found = own(self, *args, **options)
        if self.program.transfers and not turns.quiet:
            said = gpu_where.where(self.program, found.timeline, self._plan.meetings or {})
            print("  " + ", ".join(f"{k} {v:.3f}" if isinstance(v, float) else f"{k} {v}" for k, v in said.items()), flush=True)
            found.save(folder / f"run-{next(runs)}.json")
        return found

    tuning._Tuner.profile = profiling
    mt.Distributed.measure = measuring  # type: ignore[method-assign]


def quiet(name: str, o: argparse.Namespace, found: Tuned, workers: mt.Workers, setting: str, args: Any) -> float:
    """When all processes that share the folder are here: what torch makes of the whole module and the fastest plans of
    several devices, in turns. What the plan that is kept takes, in ms."""
    kept = found.best.measured_ns / 1e6
    if not o.calm:
        return kept
    turns, whole = o.turns, Module(workers, name, not o.shares, o.dtype, Path(chosen_folder(True)), 3 * o.runs)
    for how in ("compiled", "frozen"):
        whole.prepare(how)
    here = turns.meet(o.calm, o.until)
    splits = sorted((t for t in found.trials if not one_device(t.plan)), key=lambda t: t.measured_ns)
    with turns.turn():
        turns.quiet = True
        how, took = whole.fastest()
        o.line(name, "calm", setting, here=here, **{f"{k}_ms": ms for k, ms in took.items()})
        for t in splits[:2]:
            if t.measured_ns < 1.1 * splits[0].measured_ns:
                with mt.distribute(t.captured, t.plan, workers=workers, transport=found.transport) as run:
                    run(*args)
                    parts = f"{len(t.devices)} parts by {found.transport}, {'compiled' if t.fuse == 'inductor' else 'eager'}"
                    row = whole.row(parts, how, run)
                    o.line(name, "quiet", setting, predicted_ms=t.predicted_ns / 1e6, cut=t.captured.cuts, **row)
                    kept = row["ms"] if t is found.best else kept
        turns.quiet = False
    return kept


def tuned(name: str, o: argparse.Namespace, workers: mt.Workers, probed: moirai.Cluster, shares: list[float]) -> dict[str, Any]:
    module, args = networks_public.make(name, not o.shares)
    kind = getattr(torch, o.dtype)
    module, args = module.to(kind), tuple(a.to(kind) if a.is_floating_point() else a for a in args)
    kinds = ("rows",) if name.startswith("image:") else ("attention", "mlp")
    hand, said = [] if o.no_hand else by_hand(shares, kinds), []
    found = mt.tune(module, args, workers=workers, probed=probed, cuts=(*hand, "auto"), fuse=o.fuse.split(","), runs=o.runs,
                    rounds=o.rounds, time_limit=o.time_limit, placers=o.placers.split(","), passes=o.passes, name=name,
                    transport=o.transport, busy=None if o.busy == "on" else False, seconds=o.tune_seconds, say=lambda line: (said.append(line), print(at(), line, flush=True)))  # fmt: skip
    setting = ["TF32"] * o.tf32 + [o.dtype] * (o.dtype != "float32") + [o.transport] * (o.transport != "auto")
    setting += ["compiled kernels, too"] * ("inductor" in o.fuse)
    kept_ms = quiet(name, o, found, workers, ", ".join(setting), args)
    with found.distribute(workers=workers, verify=module) as run:
        run(*args)
    made = row(name, found, [line[5:] for line in said if line.startswith("cut: ")], hand)
    after = None if one_device(found.plan) else {"predicted_ms": found.predicted_ns / 1e6, "measured_ms": kept_ms}
    return {**made, "setting": ", ".join(setting), "after": after}


def bounds_ms(name: str, o: argparse.Namespace, workers: mt.Workers, probed: moirai.Cluster) -> dict[str, float]:
    """What no cut by heads and columns beats, in any kind of kernels: by times of parts alone, and by those with
    all of them busy. Pieces were profiled by `tune`, most of them."""
    module, args = networks_public.make(name, not o.shares)
    kind = getattr(torch, o.dtype)
    module, args = module.to(kind), tuple(a.to(kind) if a.is_floating_point() else a for a in args)
    found: dict[str, float] = {}
    with o.turns.turn():
        meeting_ns = min(map(int, mt.meetings(workers, transport=o.transport).values()))
    for fuse in o.fuse.split(","):
        whole = mt.capture(module, args, name=name, fuse=fuse).recut(None, quick=True)
        sizes = samples(s for s in whole.strips if s.kind not in ALTERNATIVES)
        some = [whole, *(whole.recut(cut, quick=True) for cut in (sizes if fuse == "none" else sizes[:2]))]
        for captured in some:
            with o.turns.turn():
                mt.profile(captured, workers=workers, busy=None if o.busy == "on" else False)
        for what, graphs in (("alone", [c.graph for c in some]), ("busy", [c.busy or c.graph for c in some])):
            least = mt.all_cuts_bound(whole, probed, measured=graphs, meeting_ns=meeting_ns) / 1e6
            found[what] = min(found.get(what, math.inf), least)
            sums = {d: round(sum((op.time_ns or {}).get(d) or 0 for op in graphs[0].ops) / 1e6, 3) for d in graphs[0].devices}
            print(f"{at()} {name}: all-cuts bound, fuse={fuse}, times of parts {what}: {least:.3f} ms, whole {sums}", flush=True)
    return found


def line(folder: Path, shares: str, network: str, what: str, setting: str, **numbers: Any) -> None:
    """As bench/gpu_compiled.py writes them: bench/gpu_tables.py makes a table of both."""
    said = {"network": network, "what": what, **numbers, "shares": shares, "setting": setting}
    with (folder / "lines.jsonl").open("a") as file:
        file.write(json.dumps(said) + "\n")
    print(", ".join(f"{k} {v:.3f}" if isinstance(v, float) else f"{k} {v}" for k, v in said.items()), flush=True)


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", type=Path, required=True, help="folder for results.json and table.md")
    p.add_argument("--shares", help="parts of a GPU; without it ranks of this machine's processor")
    p.add_argument("--type", default="h200", help="the GPU's type")
    p.add_argument("--ranks", type=int, default=2, help="processor ranks, of a thread each")
    p.add_argument("--fuse", default="none", help="none,inductor: compiled kernels, too")
    p.add_argument("--no-hand", action="store_true", help="no cuts by hand")
    p.add_argument("--runs", type=int, default=20)
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--passes", type=int, default=3, help="of the fastest plans, in turns")
    p.add_argument("--placers", default="heft,moirai")
    p.add_argument("--time-limit", type=float, default=5, help="of a plan, in seconds")
    p.add_argument("--tf32", action="store_true", help="products of float32 in TF32")
    p.add_argument("--dtype", default="float32", choices=["float32", "bfloat16", "float16"])
    p.add_argument("--transport", default="auto", help="ipc or host, on a GPU")
    p.add_argument("--bound", action="store_true", help="what no cut by heads and columns beats, too")
    p.add_argument("--bound-only", action="store_true", help="nothing else")
    p.add_argument("--busy", default="on", choices=["on", "off"], help="off: parts of a GPU are profiled while the others idle")
    p.add_argument("--shared", type=Path, help="a folder: processes that share it take turns on the GPU")
    p.add_argument("--calm", type=int, default=0, help="so many processes share the folder: when all are done, torch.compile and "
                   "what is fastest are measured in turns, by one at a time")  # fmt: skip
    p.add_argument("--seconds", type=float, default=600, help="that the others are waited for at most, from the beginning")
    p.add_argument("--tune-seconds", type=float, help="after these, counted for each network, nothing more is tried")
    p.add_argument("names", nargs="*", help="networks (default: all of this size), also those of networks_public.py")
    o = p.parse_args()
    o.out.mkdir(parents=True, exist_ok=True)
    cluster, shares = cluster_of(o)
    sizes = networks_public.LAYERS if o.shares else networks_public.SMALL_LAYERS
    rows = []
    o.until, o.turns = time.time() + o.seconds, Turns(o.shared or o.out)
    o.line = partial(line, o.shared or o.out, o.shares or "")
    by_turns(o.turns, o.out)
    if o.tf32:
        torch.set_float32_matmul_precision("high")
    torch.set_num_threads(1 if not o.shares else torch.get_num_threads())
    with mt.Workers(cluster, keep_weights=True) as workers:
        with o.turns.turn():
            probed = mt.probe(workers, transport=o.transport)
        for name in o.names or sizes:
            began = time.monotonic()
            try:
                if o.bound_only:
                    o.line(name, "all cuts", "", **{f"{k}_ms": ms for k, ms in bounds_ms(name, o, workers, probed).items()})
                    continue
                rows.append(tuned(name, o, workers, probed, shares))
            except Exception as error:  # the next network may do
                print(f"{name}: {type(error).__name__}: {str(error)[:300]}", flush=True)
                o.turns.meet(0, 0)
                continue
            (o.out / "results.json").write_text(json.dumps(rows, indent=1))
            (o.out / "table.md").write_text(table(rows))
            if o.bound:
                least = bounds_ms(name, o, workers, probed)
                rows[-1] |= {"all_cuts_bound_ms": least["alone"], "all_cuts_busy_ms": least["busy"]}
                (o.out / "results.json").write_text(json.dumps(rows, indent=1))
            print(f"{table(rows)}{name}: {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
