#!/usr/bin/env python3
"""Requests per second of PyTorch networks on the parts of one GPU, against what the simulator says: one table.

    python3 bench/rate_gpu.py --out FOLDER [--networks nasnet,moe] [--shares 0.1,0.2,0.3,0.4] [--in-flight 1,2,4,8] [--seconds 200]

Per network: capture, profile of every distinct operator on all parts at once, links by `probe`. Plans for each number N of requests in flight: the
plan of one request, one at a time; a replica per part; stages; and what the search finds. Each is loaded, its results with N in flight are compared with those
of requests alone, and N requests are kept in flight (`submit`) for a while, several times in turns over the N that a load serves; medians are shown.
Plans of one copy that are equal for several N are loaded once. Writes results.json and table.md to FOLDER after each network; no network is begun after
--seconds. --small tries all of it on processors.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
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

KINDS = ("latency", "replicas", "stages", "any")
began = time.monotonic()


def plans_of(problem: moirai.Problem, o: argparse.Namespace, numbers: list[int]) -> dict[tuple[str, int], moirai.Plan]:
    """By kind and N. The plan of one request is for one at a time."""

    def make(wish: tuple[str, int]) -> moirai.Plan | None:
        kind, n = wish
        try:
            return moirai.place(problem, objective="rate", in_flight=n, kind=None if kind == "any" else kind,
                                time_limit=o.time_limit, threads=o.threads, gap=0.001, copies=o.copies)  # fmt: skip
        except moirai.Error as error:
            say(f"  {kind}, {n} in flight: {error}")
            return None

    wishes = [(kind, n) for kind in KINDS for n in numbers if kind != "latency" or n == min(numbers)]
    with ThreadPoolExecutor(o.jobs) as pool:
        found = dict(zip(wishes, pool.map(make, wishes)))
    return {wish: plan for wish, plan in found.items() if plan is not None}


def loads_of(plans: dict[tuple[str, int], moirai.Plan]) -> list[list[tuple[str, int]]]:
    """What one load serves: equal plans of one copy with any number in flight; others are loaded each for itself."""
    groups: dict[Any, list[tuple[str, int]]] = {}
    for wish, plan in plans.items():
        copies = plan.rate.copies
        places = tuple(tuple(sorted(c.placement.items())) for c in copies)
        groups.setdefault(places if len(copies) < 2 else (places, tuple(c.slots for c in copies), wish[1]), []).append(wish)
    return list(groups.values())


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


def rate_of(run: Any, args: tuple[Any, ...], n: int, seconds: float) -> float:
    """Periods in ns: n in flight all the time, those that end after the first 2n + 2 are counted."""
    place, ends = threading.Semaphore(n), []

    def ended(_: Any) -> None:
        ends.append(time.monotonic_ns())
        place.release()

    several = len(run._loads) > 1  # slots are the copies' business: results in order would hold some up
    limit = time.monotonic() + seconds
    futures = []
    while time.monotonic() < limit or len(ends) < 4 * n + 12:
        if not several:
            place.acquire()
        future = run.submit(*args)
        future.add_done_callback(ended)
        futures.append(future)
        if len(futures) > 4096:
            futures = [f for f in futures if not f.done()]
    for f in futures:
        f.result(120)
    counted = ends[2 * n + 2 : -n or None]  # at the end there are fewer in flight
    return (counted[-1] - counted[0]) / (len(counted) - 1)


class Network:
    def __init__(self, name: str, o: argparse.Namespace, ranks: Ranks, cluster: moirai.Cluster, save: Any) -> None:
        self.name, self.o, self.ranks, self.save = name, o, ranks, save
        self.module, self.args = networks.make(name, o.small)
        self.captured = mt.capture(self.module, self.args, name=name, fuse=o.fuse)
        begun = time.monotonic()
        mt.profile(self.captured, workers=ranks.get(), cache=None, options=mt.Options(runs=10, seconds=0.1))
        say(f"{name}: {len(self.captured.graph)} operators, profile {time.monotonic() - begun:.1f} s")
        self.problem = moirai.Problem(self.captured.graph, cluster, congestion="device")
        self.rows: dict[tuple[str, int], dict[str, Any]] = {}

    def run(self, numbers: list[int]) -> None:
        begun = time.monotonic()
        plans = plans_of(self.problem, self.o, numbers)
        say(f"{self.name}: {len(plans)} plans in {time.monotonic() - begun:.1f} s")
        for wish, plan in plans.items():
            rate = plan.rate
            self.rows[wish] = {"kind": wish[0], "in_flight": wish[1], "simulated_ns": rate.period_ns, "bound_ns": rate.period_bound_ns,
                               "copies": len(rate.copies), "devices": sorted({d for c in rate.copies for d in c.placement.values()}),
                               "transfers": len(plan.transfers)}  # fmt: skip
        for group in loads_of(plans):
            try:
                self.load(group, plans)
            except moirai.Error as error:  # others are tried with new ranks
                say(f"  {self.name}, {group}: {error}")
                for wish in group:
                    self.rows[wish]["error"] = str(error)
            self.save()

    def load(self, group: list[tuple[str, int]], plans: dict[tuple[str, int], moirai.Plan]) -> None:
        most = max(n for _, n in group)
        begun = time.monotonic()
        with mt.distribute(self.captured, plans[group[0]], workers=self.ranks.get(), in_flight=most, stall_s=30) as run:
            off = off_from_alone(run, inputs_like(self.args, 2 * most + 2))
            loaded = time.monotonic() - begun
            if run.why_eager:
                say(f"  eager: {run.why_eager}")
            for _ in range(self.o.runs):
                for n in sorted({n for _, n in group}):
                    period = rate_of(run, self.args, n, self.o.window)
                    for wish in group:
                        if wish[1] == n:
                            self.rows[wish].setdefault("runs_ns", []).append(period)
        for wish in group:
            row = self.rows[wish]
            row["measured_ns"], row["off_from_alone"] = statistics.median(row["runs_ns"]), off
            say(f"  {self.name} {wish[0]} N={wish[1]}: {row['copies']} copies on {len(row['devices'])}, {row['transfers']} transfers, "
                f"simulated {row['simulated_ns'] / 1e6:.3f}, measured {row['measured_ns'] / 1e6:.3f} ms; off {off:.1e}; loaded in {loaded:.1f} s")  # fmt: skip


def table(results: dict[str, Any]) -> str:
    """Periods in ms, simulated / measured; the last columns are of the search's plan."""
    lines = ["| network | in flight | latency plan, one at a time | replica per part | stages | found | bound | off | requests/s | of the best other |",
             "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"]  # fmt: skip
    for name, rows in results["networks"].items():
        by = {(r["kind"], r["in_flight"]): r for r in rows if "measured_ns" in r}
        alone = next((r for (kind, _), r in by.items() if kind == "latency"), None)

        def cell(r: Any) -> str:
            return f"{r['simulated_ns'] / 1e6:.3f} / {r['measured_ns'] / 1e6:.3f}" if r else "-"

        for n in sorted({r["in_flight"] for r in rows}):
            ours, rivals = by.get(("any", n)), [r for r in (alone, by.get(("replicas", n)), by.get(("stages", n))) if r]
            text = [name, str(n), cell(alone), cell(by.get(("replicas", n))), cell(by.get(("stages", n))), cell(ours)]
            if ours:
                text += [f"{ours['bound_ns'] / 1e6:.3f}", f"{100 * (ours['simulated_ns'] / ours['measured_ns'] - 1):+.1f} %",
                         f"{1e9 / ours['measured_ns']:.0f}",
                         f"{min(r['measured_ns'] for r in rivals) / ours['measured_ns']:.2f}" if rivals else "-"]  # fmt: skip
            else:
                text += ["-"] * 4
            lines.append("| " + " | ".join(text) + " |")
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
    a.add_argument("--window", type=float, default=0.6, help="seconds of a run")
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
            rows = results["networks"][name] = []

            def keep(rows: list[Any] = rows) -> None:
                rows[:] = network.rows.values()
                save()

            try:
                network = Network(name, o, ranks, cluster, keep)
                network.run(numbers)
            except Exception:
                traceback.print_exc()
                failed = True
            failed = failed or any("error" in r for r in rows)
    finally:
        if ranks.workers is not None:
            ranks.workers.close()
    save()
    print(table(results))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
