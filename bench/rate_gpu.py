#!/usr/bin/env python3
"""Requests per second of PyTorch networks on the parts of one GPU, against what simulators say: one table.

    python3 bench/rate_gpu.py --out FOLDER [--networks nasnet,moe] [--shares 0.1,0.2,0.3,0.4] [--in-flight 1,2,4,8] [--seconds 200]

Per network: capture, profile of every distinct operator on all parts at once, links by `probe`, and then what `moirai.torch.tune_rate` does, for all
numbers N of requests in flight at once: a replica per part, which say what the machine is like; the plan of one request; stages; and what the search
finds, each with several numbers of lanes. Every plan is loaded, its results with N in flight are compared with those of requests alone, and N
requests are kept in flight (`submit`) for a while, several times in turns; medians are shown, beside the period by the simulator of the runtime
(python/moirai/torch/rates.py) and that of the plan. Writes results.json and table.md to FOLDER after each load; no network is begun after --seconds.
--small tries all of it on processors; --cores 8,9,10,11 has a rank of one thread on each of these, and networks of full size: is what is simulated reached there?
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))

import torch  # noqa: E402

import moirai  # noqa: E402
import moirai.torch as mt  # noqa: E402
import networks  # noqa: E402
from gpu import Ranks, say  # noqa: E402
from moirai.torch.tune_rate import RateTuner  # noqa: E402

began = time.monotonic()
COLUMNS = {"latency": "latency plan", "replicas": "replica per part", "stages": "stages", "any": "found"}


def inputs_like(args: tuple[Any, ...], n: int) -> list[tuple[Any, ...]]:
    """Numbers are drawn anew; indices are shuffled."""
    found = []
    for i in range(n):
        g = torch.Generator().manual_seed(i)
        found.append(tuple(
            torch.randn(a.shape, generator=g).to(a.dtype) if a.is_floating_point()
            else a.flatten()[torch.randperm(a.numel(), generator=g)].view(a.shape)
            for a in args))  # fmt: skip
    return found


def off_from_alone(run: Any, given: list[tuple[Any, ...]]) -> float:
    """The largest difference of results in flight from those alone, as a part of their norm."""
    alone = [run._alone((run.captured.bind(x, {}), x, {})) for x in given] if run._requests is None else []
    most = 0.0
    for future, y in zip([run.submit(*x) for x in given], alone):
        for got, expected in zip(torch.utils._pytree.tree_leaves(future.result(120)), torch.utils._pytree.tree_leaves(y)):
            most = max(most, float((got.double() - expected.double()).norm() / expected.double().norm().clamp_min(1e-30)))
    return most


class Network:
    def __init__(self, name: str, o: argparse.Namespace, ranks: Ranks, cluster: moirai.Cluster, save: Any) -> None:
        self.name, self.save, self.off = name, save, 0.0
        self.module, self.args = networks.make(name, o.small)
        captured = mt.capture(self.module, self.args, name=name, fuse=o.fuse)
        begun = time.monotonic()
        mt.profile(captured, workers=ranks.get(), cache=None, busy=False, options=mt.Options(runs=10, seconds=0.1))
        say(f"{name}: {len(captured.graph)} operators, profile {time.monotonic() - begun:.1f} s")
        settings = {k: getattr(o, k) for k in ("time_limit", "threads", "jobs", "copies", "runs", "window", "alone")}
        more = {"transport": "gloo" if ranks.get().kind == "cpu" else "ipc", "seed": 1, "cache": None, "problem": {}, "stall_s": 30, "passes": 0}
        self.tuner = RateTuner(captured, self.args, {}, ranks.get, cluster, {**settings, **more, "say": lambda line: say(f"  {name}: {line}")}, self.look)

    def look(self, run: Any, plan: moirai.Plan) -> None:
        off = off_from_alone(run, inputs_like(self.args, 2 * run.in_flight + 2))
        self.off = max(self.off, off)
        say(f"  {self.name}: {len(run._loads)} copies, {sum(len(x.program.transfers) for x in run._loads)} transfers, off {off:.1e}", run.why_eager or "")

    def rows(self) -> list[dict[str, Any]]:
        return [{"kind": t.kind, "in_flight": t.in_flight, "lanes": t.lanes, "simulated_ns": t.simulated_ns, "measured_ns": t.measured_ns,
                 "runs_ns": t.runs_ns, "fitted": t.fitted, "copies": len(t.plan.rate.copies), "devices": t.devices, "transfers": len(t.plan.transfers),
                 "plan_ns": t.plan.rate.period_ns, "bound_ns": t.plan.rate.period_bound_ns} for t in self.tuner.trials]  # fmt: skip


def within(rows: list[dict[str, Any]]) -> str:
    """How many of the simulated rates are reached within a tenth, or exceeded by less, of those that say something: what was run to know the
    machine is agreed with."""
    off = [abs(r["simulated_ns"] / r["measured_ns"] - 1) for r in rows if r["simulated_ns"] and not r["fitted"]]
    fitted = [abs(r["simulated_ns"] / r["measured_ns"] - 1) for r in rows if r["simulated_ns"] and r["fitted"]]
    return (f"{sum(x <= 0.1 for x in off)} of {len(off)} within 10 %, the worst {100 * max(off, default=0):.1f} % off; "
            f"of those by which the machine is known {sum(x <= 0.1 for x in fitted)} of {len(fitted)}")  # fmt: skip


def table(results: dict[str, Any]) -> str:
    """Periods in ms, simulated / measured, of each kind with the lanes that were fastest; the last columns are of what is kept."""
    lines = ["| network | in flight | " + " | ".join(COLUMNS.values()) + " | kept | plan's own | bound | off | requests/s | of the best other |",
             "|---|---:|" + "---:|" * len(COLUMNS) + "---|---:|---:|---:|---:|---:|"]  # fmt: skip
    for name, network in results["networks"].items():
        rows = network["rows"]
        for n in sorted({r["in_flight"] for r in rows}):
            best = {k: min((r for r in rows if r["kind"] == k and r["in_flight"] == n), key=lambda r: r["measured_ns"], default=None) for k in COLUMNS}
            kept = min((r for r in best.values() if r), key=lambda r: r["measured_ns"])
            others = [r["measured_ns"] for k, r in best.items() if r and k != kept["kind"]]
            cells = [f"{(r['simulated_ns'] or 0) / 1e6:.3f} / {r['measured_ns'] / 1e6:.3f}" if r else "-" for r in best.values()]
            text = [name, str(n), *cells, COLUMNS[kept["kind"]] + (f", {kept['lanes']} at a time" if kept["lanes"] else ""), f"{kept['plan_ns'] / 1e6:.3f}",
                    f"{(kept['bound_ns'] or 0) / 1e6:.3f}", f"{100 * ((kept['simulated_ns'] or 0) / kept['measured_ns'] - 1):+.1f} %",
                    f"{1e9 / kept['measured_ns']:.0f}", f"{min(others) / kept['measured_ns']:.2f}" if others else "-"]  # fmt: skip
            lines.append("| " + " | ".join(text) + " |")
    lines += [""] + [f"{name}: {within(x['rows'])}; {x['machine']}; off from alone {x['off']:.1e}" for name, x in results["networks"].items()]
    return "\n".join(lines) + "\n"


def main() -> int:
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--out", type=Path, required=True)
    a.add_argument("--networks", default="nasnet,moe")
    a.add_argument("--shares", default="0.1,0.2,0.3,0.4")
    a.add_argument("--in-flight", default="1,2,4,8")
    a.add_argument("--seconds", type=float, default=200, help="no network is begun after this")
    a.add_argument("--time-limit", type=float, default=4, help="of each plan")
    a.add_argument("--threads", type=int, default=2)
    a.add_argument("--jobs", type=int, default=6, help="plans that are made at a time")
    a.add_argument("--copies", type=int, default=4, help="of the network, at most")
    a.add_argument("--runs", type=int, default=3)
    a.add_argument("--alone", type=int, default=8, help="requests one at a time, by which segments are timed")
    a.add_argument("--window", type=float, default=0.4, help="seconds of a run")
    a.add_argument("--cores", default="", help="ranks on these cores, as 8,9,10, instead of parts of a GPU")
    a.add_argument("--fuse", default="aten")
    a.add_argument("--small", action="store_true")
    o = a.parse_args()
    o.out.mkdir(parents=True, exist_ok=True)
    numbers = [int(n) for n in o.in_flight.split(",")]
    results: dict[str, Any] = {"torch": torch.__version__, "options": {k: str(v) for k, v in vars(o).items()}, "networks": {}}
    failed = False

    def save() -> None:
        (o.out / "results.json").write_text(json.dumps(results, indent=1))
        (o.out / "table.md").write_text(table(results))

    ranks = Ranks(o)
    try:
        results["about"] = {str(k): v for k, v in ranks.get().about.items()}
        cluster = mt.probe(ranks.get())
        say("ranks:", results["about"], [(x.source, x.target, x.latency_ns) for x in cluster.links])
        for name in o.networks.split(","):
            if time.monotonic() - began > o.seconds:
                say(f"{name}: no time left")
                continue
            def keep() -> None:
                x = network.tuner
                results["networks"][name] = {"rows": network.rows(), "failed": x.failed, "machine": str(x.machine), "off": network.off}
                if x.trials:
                    save()

            try:
                network = Network(name, o, ranks, cluster, save)
                network.tuner.run(numbers, keep)
                failed = failed or bool(network.tuner.failed)
            except Exception:
                traceback.print_exc()
                failed = True
    finally:
        if ranks.workers is not None:
            ranks.workers.close()
    save()
    print(table(results))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
