#!/usr/bin/env python3
"""One GPU cut into unequal parts: plans of several placers, predicted and measured. One call makes the table of
docs/pytorch.md.

    python3 bench/gpu.py --out FOLDER

Per network: capture (those of networks.HEADS twice, with whole attention and with groups of heads), profile of every
distinct operator on every part (all parts at once, as they will run). Then, for fast links (readers look at tensors
where they are, by CUDA IPC) and slow ones (through pinned host memory): plans, runs, a refinement from these runs,
plans, runs, and so on. Of several captures a placer takes the one that it predicts to be the fastest. Equal plans are
run once. Writes results.json and table.md to FOLDER whenever a network is done; --resume takes what another call left;
--small tries all of it on a processor.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))

import torch  # noqa: E402

import moirai  # noqa: E402
import moirai.torch as mt  # noqa: E402
import networks  # noqa: E402
from moirai.torch.times import plan_key  # noqa: E402

began = time.monotonic()
gpu = threading.Lock()  # one measurement at a time; plans are made meanwhile
writing = threading.Lock()


def say(*words: Any) -> None:
    print(f"[{time.monotonic() - began:6.1f}]", *words, flush=True)


# ---- in a rank's process


def plain(name: str, small: bool, dtype: str, runs: int) -> dict[str, float]:
    """The module itself on this part, in milliseconds: eagerly, and as one CUDA graph."""
    module, args = networks.make(name, small, dtype=getattr(torch, dtype))
    if not torch.cuda.is_available():
        times = []
        for _ in range(runs):
            start = time.perf_counter_ns()
            module(*args)
            times.append(time.perf_counter_ns() - start)
        return {"eager": statistics.median(times) / 1e6, "graph": statistics.median(times) / 1e6}
    module, args = module.cuda(), tuple(a.cuda() for a in args)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            module(*args)
    torch.cuda.synchronize()

    def timed(work: Any) -> float:
        times = []
        for _ in range(runs + 3):
            a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            a.record()
            work()
            b.record()
            b.synchronize()
            times.append(a.elapsed_time(b))
        return statistics.median(times[3:])

    eager = timed(lambda: module(*args))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        module(*args)
    found = {"eager": eager, "graph": timed(graph.replay)}
    torch.cuda.empty_cache()
    return found


# ---- a network


class Ranks:
    """Workers that are started again where a failure has ended them."""

    def __init__(self, o: argparse.Namespace) -> None:
        self.o, self.workers = o, None

    def get(self) -> mt.Workers:
        if self.workers is None or not self.workers.alive:
            self.workers = mt.Workers(
                cluster_of(self.o), logs=self.o.out / f"ranks-{time.monotonic():.0f}", keep_weights=True
            )
        return self.workers


class Network:
    def __init__(self, name: str, o: argparse.Namespace, ranks: Ranks) -> None:
        self.name, self.o, self.ranks = name, o, ranks
        self.module, self.args = networks.make(name, o.small, dtype=getattr(torch, o.dtype))
        self.captured: dict[Any, mt.Captured] = {}
        for heads in [False, networks.HEADS[name]] if name in networks.HEADS else [False]:
            self.prepare(heads)

    def prepare(self, heads: bool | int) -> None:
        """Captures and profiles the network with its attention taken apart like this."""
        start = time.monotonic()
        captured = self.captured[heads] = mt.capture(self.module, self.args, heads=heads, name=self.name)
        captured_at = time.monotonic()
        with gpu:
            begun = time.monotonic()
            report = mt.profile(
                captured, workers=self.ranks.get(), cache=None, options=mt.Options(runs=10, seconds=0.1)
            )
        say(f"{self.name}, heads {heads}: {len(captured.graph)} operators, {report.distinct} distinct; "
            f"capture {captured_at - start:.1f} s, profile {time.monotonic() - begun:.1f} s, "
            f"{len(report.failed)} not measured")  # fmt: skip
        for op, why in list(report.failed.items())[:3]:
            say(f"  {op}: {why}")

    def run(self, heads: bool | int, plan: moirai.Plan, link: str, label: str, verify: bool = True) -> mt.Measured:
        """Loads, verifies and measures a plan."""
        with gpu:
            start = time.monotonic()
            workers = self.ranks.get()
            transport = "auto" if workers.kind == "cpu" else link
            captured = self.captured[heads]
            with mt.distribute(captured, plan, workers=workers, transport=transport, stall_s=20) as module:
                loaded = time.monotonic() - start
                result = module(*self.args)
                if verify:
                    self.compare(result)
                measured = module.measure(warmup=5, runs=self.o.runs)
                why = module.why_eager
        say(f"{self.name} {link} {label}: predicted {plan.makespan_ns / 1e6:.3f} ms, "
            f"measured {measured.median_ns / 1e6:.3f} ms, {len(plan.transfers)} transfers, heads {heads}, "
            f"loaded in {loaded:.1f} s, off {self.off:.1e}" + (f", EAGER {why}" if why else ""))  # fmt: skip
        return measured

    expected: Any = None
    off = 0.0  # the largest relative difference of results so far

    def compare(self, result: Any) -> None:
        """Against the module on this host's processor. Convolutions on the GPU are TF32 by PyTorch's default: 1e-2. Half
        precision rounds after every operator, elsewhere in one kernel than in another: 1e-1."""
        if self.expected is None:
            with torch.no_grad():
                self.expected = self.module(*self.args)
        off = float((result.float() - self.expected.float()).norm() / self.expected.float().norm())
        self.off = max(self.off, off)
        if not off < (1e-2 if self.o.dtype == "float32" else 1e-1):
            raise RuntimeError(f"{self.name}: results are off by {off:.2g} of their norm")


def placers(o: argparse.Namespace) -> list[str]:
    there = moirai.placers()
    return [p for p in o.placers.split(",") if p in there]


def by_hand(net: Network, problem: moirai.Problem) -> moirai.Plan | None:
    """The split of experts that people found best for four parts: 1, 2, 2, 3; all else on the largest."""
    devices = problem.devices
    if net.name != "moe" or len(devices) != 4:
        return None
    owner = [devices[k] for k, n in enumerate((1, 2, 2, 3)) for _ in range(n)]
    places = {}
    for op in problem.op_names:
        parts = op.replace("/", ".").split(".")
        at = parts.index("experts") if "experts" in parts else -1
        places[op] = owner[int(parts[at + 1]) % len(owner)] if at >= 0 else devices[-1]
    return moirai.Plan.by_devices(problem, places)


class Case:
    """All rounds of one network on one kind of link."""

    def __init__(self, net: Network, link: str, cluster: moirai.Cluster, o: argparse.Namespace, folder: str) -> None:
        self.net, self.link, self.o = net, link, o
        options = {"congestion": "none" if link == "ipc" else "port"}
        self.times = {h: mt.Times(c, cluster, options, folder) for h, c in net.captured.items()}
        self.known: dict[Any, mt.Measured] = {}  # runs of plans, by what they do
        self.kept: dict[str, tuple[float, Any, moirai.Plan]] = {}  # each placer's fastest of all rounds

    def plans(self) -> dict[str, tuple[Any, moirai.Plan]]:
        """What each placer predicts to be the fastest, of all captures."""
        made: dict[str, tuple[Any, moirai.Plan]] = {}
        for placer in placers(self.o):
            options = {"time_limit": self.o.time_limit, "threads": self.o.threads}
            found = [(h, t.place(placer, **options)) for h, t in self.times.items()]
            made[placer] = min(found, key=lambda x: x[1].makespan_ns)
        hand = by_hand(self.net, self.times[False].problem(False, "by hand"))
        return made if hand is None else {**made, "by hand": (False, hand)}

    def round(self, number: int) -> dict[str, Any]:
        rows, fresh = {}, []
        for placer, (heads, plan) in self.plans().items():
            key = (heads, plan_key(plan))
            if key not in self.known:
                self.known[key] = self.net.run(heads, plan, self.link, f"{placer} {number}")
            measured = self.known[key]
            fresh.append((placer, heads, plan, measured))
            ms = measured.median_ns / 1e6
            if placer not in self.kept or ms < self.kept[placer][0]:
                self.kept[placer] = (ms, heads, plan)
            rows[placer] = {
                "predicted_ms": plan.makespan_ns / 1e6,
                "measured_ms": ms,
                "bound_ms": (plan.lower_bound_ns or 0) / 1e6,
                "generation_s": plan.generation_ns / 1e9,
                "transfers": len(plan.transfers),
                "parts": len(set(plan.placement.values())),
                "heads": heads,
            }
        for placer, heads, plan, measured in fresh:
            self.times[heads].learn(plan, measured, placer)
        return rows

    def finals(self) -> dict[str, Any]:
        """The kept plans in turns: whatever changes with time changes for all."""
        passes: dict[Any, list[float]] = {}
        alike = {placer: (heads, plan_key(plan)) for placer, (_, heads, plan) in self.kept.items()}
        for number in range(self.o.passes):
            for placer, (_, heads, plan) in self.kept.items():
                if len(passes.get(alike[placer], [])) == number:
                    measured = self.net.run(heads, plan, self.link, f"{placer} again {number}", verify=False)
                    passes.setdefault(alike[placer], []).append(measured.median_ns / 1e6)
        return {
            placer: {
                "measured_ms": statistics.median(passes.get(alike[placer]) or [ms]),
                "passes_ms": passes.get(alike[placer], []),
                "parts": len(set(plan.placement.values())),
                "heads": heads,
            }
            for placer, (ms, heads, plan) in self.kept.items()
        }


def case(net: Network, link: str, cluster: moirai.Cluster, o: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="moirai-gpu-") as folder:
        work = Case(net, link, cluster, o, folder)
        rounds = [work.round(number) for number in range(o.rounds + 1)]
        return {"network": net.name, "link": link, "date": today(), "rounds": rounds, "kept": work.finals(),
                "off": net.off}  # fmt: skip


def today() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


# ---- checks that are not tables


def requests(o: argparse.Namespace, workers: mt.Workers, problem_of: Any, link: str) -> dict[str, Any]:
    """A thousand requests, each with inputs of its own: are all results right?"""
    module, args = networks.make("moe", True)
    captured = mt.capture(module, args, name="moe-small")
    for device in workers.devices:
        captured.graph.set_times(device.name, [1000] * len(captured.graph))
    problem = moirai.Problem(captured.graph, problem_of)
    names = problem.op_names
    spread = {n: problem.devices[i % len(problem.devices)] for i, n in enumerate(names)}
    plan = moirai.Plan.by_devices(problem, spread)
    start, wrong, worst, threads = time.monotonic(), 0, 0.0, torch.get_num_threads()
    torch.set_num_threads(1)  # the module itself is so small that more would wait for each other
    transport = link if workers.kind == "cuda" else "auto"
    with gpu, mt.distribute(captured, plan, workers=workers, transport=transport, stall_s=20) as run:
        for i in range(o.requests):
            x = torch.randn(args[0].shape, generator=torch.Generator().manual_seed(i))
            got = run(x)
            with torch.no_grad():
                off = float((got - module(x)).abs().max())
            worst = max(worst, off)
            wrong += off > 1e-3
    torch.set_num_threads(threads)
    seconds = time.monotonic() - start
    say(
        f"{o.requests} requests over {link}, {len(plan.transfers)} transfers each: "
        f"{wrong} wrong, worst {worst:.2g}, {seconds:.1f} s"
    )
    return {"link": link, "requests": o.requests, "wrong": wrong, "worst": worst, "transfers": len(plan.transfers)}


def tune(o: argparse.Namespace, ranks: Ranks, name: str, link: str, cluster: moirai.Cluster) -> dict[str, Any]:
    """What a user's one call finds."""
    start = time.monotonic()
    module, args = networks.make(name, o.small, dtype=getattr(torch, o.dtype))
    heads = (False, networks.HEADS[name]) if name in networks.HEADS else (False,)
    found = mt.tune(module, args, workers=ranks.get(), probed=cluster, heads=heads, name=name,
                    transport="auto" if o.small else link, rounds=o.rounds, time_limit=o.time_limit, runs=o.runs,
                    passes=o.passes, cache=None, say=lambda line: say(f"{name} {link} {line}"))  # fmt: skip
    say(f"{name} {link}: {found.verdict}")
    ones = [t.measured_ns for t in found.trials if len(t.devices) == 1]
    best = found.best
    return {"network": name, "link": link, "date": today(), "single_ms": min(ones) / 1e6,
            "tuned_ms": best.measured_ns / 1e6, "parts": len(best.devices), "heads": best.heads,
            "placer": best.plan.placer, "trials": len(found.trials), "seconds": time.monotonic() - start,
            "verdict": found.verdict}  # fmt: skip


# ---- the tables


def predictions(results: dict[str, Any], names: list[str]) -> list[str]:
    lines = ["| network | links | " + " | ".join(names) + " | off, moirai |", "|---|---|" + "---:|" * (len(names) + 1)]
    offs = []  # of plans with several parts: one part is predicted from a run of it
    for c in results["cases"]:
        rows = c["rounds"][min(1, len(c["rounds"]) - 1)]
        offs += [abs(r["predicted_ms"] / r["measured_ms"] - 1) for r in rows.values() if r["parts"] > 1]
        cells = [f"{rows[n]['predicted_ms']:.2f} / {rows[n]['measured_ms']:.2f}" if n in rows else "" for n in names]
        own = rows["moirai"]["predicted_ms"] / rows["moirai"]["measured_ms"] - 1 if "moirai" in rows else 0
        lines.append(f"| {c['network']} | {c['link']} | " + " | ".join(cells) + f" | {100 * own:+.1f} % |")
    if offs:
        median, most = 100 * statistics.median(offs), 100 * max(offs)
        what = f"The median difference of the {len(offs)} plans with several parts is"
        lines += ["", f"{what} {median:.1f} %, the largest {most:.1f} %."]
    return lines


def speeds(results: dict[str, Any], names: list[str]) -> list[str]:
    lines = [
        "| network | links | plain | " + " | ".join(names) + " | parts | of single |",
        "|---|---|---:|" + "---:|" * (len(names) + 2),
    ]
    for c in results["cases"]:
        kept = c["kept"]
        plain_ms = results["plain"].get(c["network"], {}).get("graph") or 0
        cells = [f"{kept[n]['measured_ms']:.2f}" if n in kept else "" for n in names]
        best, single = kept.get("moirai"), kept.get("single")
        ratio = f"{best['measured_ms'] / single['measured_ms']:.2f}" if best and single else ""
        parts = f"{best['parts']}{', heads' if best['heads'] else ''}" if best else ""
        lines.append(
            f"| {c['network']} | {c['link']} | {plain_ms:.2f} | " + " | ".join(cells) + f" | {parts} | {ratio} |"
        )
    return lines


def tuned(results: dict[str, Any]) -> list[str]:
    lines = [
        "| network | links | single | tuned | of single | parts | plan by | runs | seconds |",
        "|---|---|---:|---:|---:|---:|---|---:|---:|",
    ]
    for t in results["tuned"]:
        parts = f"{t['parts']}{', heads' if t['heads'] else ''}"
        lines.append(
            f"| {t['network']} | {t['link']} | {t['single_ms']:.2f} | {t['tuned_ms']:.2f} | "
            f"{t['tuned_ms'] / t['single_ms']:.2f} | {parts} | {t['placer']} | {t['trials']} | {t['seconds']:.0f} |"
        )
    return ["", "What `moirai.torch.tune` keeps:", "", *lines] if results["tuned"] else []


def runs_of(results: dict[str, Any]) -> list[str]:
    """Which networks another call measured, where there was one."""
    others = {c["network"]: c["date"] for c in results["cases"] if c["date"] < results["date"]}
    return ["", "From other runs: " + ", ".join(f"{n} ({d})" for n, d in others.items()) + "."] if others else []


def table(results: dict[str, Any]) -> str:
    hand = any("by hand" in c["rounds"][-1] for c in results["cases"])
    about = next(iter(results.get("about", {}).values()), {})
    head = [
        f"{about.get('name', '')}, {results['date'][:10]}, PyTorch {results['torch']}, Python {results['python']}; "
        f"`{results['command']}`. Times in ms.",
    ]
    names = results["placers"] + (["by hand"] if hand else [])
    first = ["", "Predicted / measured after one refinement:", ""]
    middle = [
        "",
        "The fastest plan of each placer, measured again in turns; "
        "plain is the module itself as a CUDA graph on the largest part:",
        "",
    ]
    body = first + predictions(results, results["placers"]) + middle + speeds(results, names)
    body = body if results["cases"] else []
    return "\n".join(head + body + tuned(results) + runs_of(results)) + "\n"


def options() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", type=Path, default=Path("out/gpu"), help="folder for results")
    p.add_argument("--networks", default=",".join(networks.NETWORKS))
    p.add_argument("--dtype", default="float32", choices=["float32", "bfloat16", "float16"])
    p.add_argument("--links", default="ipc,host")
    p.add_argument("--placers", default="single,sequential,m-etf,heft,moirai")
    p.add_argument("--shares", default="0.1,0.2,0.3,0.4", help="parts of the GPU")
    p.add_argument("--rounds", type=int, default=2, help="refinements")
    p.add_argument("--passes", type=int, default=2, help="measurements of the plans that were kept")
    p.add_argument("--runs", type=int, default=50)
    p.add_argument("--time-limit", type=float, default=10, help="of a search, in seconds")
    p.add_argument("--threads", type=int, default=4, help="of a search")
    p.add_argument("--parallel", type=int, default=4, help="networks planned at the same time")
    p.add_argument("--requests", type=int, default=1000, help="requests with changing inputs; 0: none")
    p.add_argument("--tune", default="", help="network:link,...: what moirai.torch.tune finds for these; no tables")
    p.add_argument("--resume", type=Path, help="results.json of another call: networks in it are not measured again")
    p.add_argument("--small", action="store_true", help="small networks on two processor ranks: tries the script")
    o = p.parse_args()
    o.out.mkdir(parents=True, exist_ok=True)
    return o


def cluster_of(o: argparse.Namespace) -> moirai.Cluster:
    if getattr(o, "cores", ""):
        devices = [{"name": f"c{k}", "type": "cpu", "memory": "8GB", "threads": 1, "cores": k} for k in o.cores.split(",")]
    elif o.small:
        devices = [{"name": n, "type": "cpu", "memory": "2GB"} for n in "AB"]
    else:
        parts = [float(s) for s in o.shares.split(",")]
        devices = [{"name": f"p{round(100 * s)}", "type": "h200", "memory": "30GB", "share": s} for s in parts]
    names = [d["name"] for d in devices]
    links = [{"from": a, "to": b, "bandwidth": "100Gbps", "latency": "10us"} for a in names for b in names if a != b]
    return moirai.Cluster.open({"name": "parts", "devices": devices, "links": links})


def everything(o: argparse.Namespace, ranks: Ranks, results: dict[str, Any], links: list[str], save: Any) -> None:
    about = ranks.get().about
    say("ranks:", about)
    results["about"] = {str(k): v for k, v in about.items()}
    wishes = [pair.split(":") for pair in o.tune.split(",") if pair]
    clusters = {}
    for link in sorted({link for _, link in wishes}) or links:
        clusters[link] = mt.probe(ranks.get(), transport="auto" if o.small else link)
        results["links"][link] = [vars(x) for x in clusters[link].links]
        say(link, [(x.source, x.target, x.latency_ns, x.bytes_per_second) for x in clusters[link].links])

    for name, link in wishes:
        results["tuned"].append(tune(o, ranks, name, link, clusters[link]))
        save()
    if wishes:
        return

    def attempt(what: str, work: Any) -> Any:
        try:
            return work()
        except Exception as error:
            traceback.print_exc()
            results["errors"].append(f"{what}: {error}")
            return None

    for link in links if o.requests else []:
        found = attempt(f"requests {link}", lambda: requests(o, ranks.get(), clusters[link], link))  # noqa: B023
        results["requests"] += [found] if found else []
    done = {(c["network"], c["link"]) for c in results["cases"]}
    wanted = o.networks.split(",")

    def record(name: str, link: str, future: Any) -> None:
        found = attempt(f"{name} {link}", future.result)
        with writing:
            results["cases"] += [found] if found else []
            results["cases"].sort(key=lambda c: (wanted.index(c["network"]), links.index(c["link"])))
            save()

    with ThreadPoolExecutor(o.parallel) as pool:
        for name in wanted:
            todo = [link for link in links if (name, link) not in done]
            net = attempt(name, lambda: Network(name, o, ranks)) if todo else None  # noqa: B023
            if net is None:
                continue
            results["plain"][name] = attempt(f"{name} plain", lambda: run_plain(o, ranks, name)) or {}  # noqa: B023
            for link in todo:
                pool.submit(case, net, link, clusters[link], o).add_done_callback(partial(record, name, link))


def run_plain(o: argparse.Namespace, ranks: Ranks, name: str) -> dict[str, float]:
    with gpu:
        workers = ranks.get()
        last = len(workers.devices) - 1
        job = {"module": "gpu", "function": "plain", "args": (name, o.small, o.dtype, o.runs)}
        found = workers.tell("call", {last: job})[last]
    say(f"{name}: plain on {workers.devices[last].name}: {found}")
    return found


def main() -> int:
    o = options()
    results: dict[str, Any] = {
        "date": today(),
        "host": platform.platform(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "command": " ".join(["python3 bench/gpu.py", *sys.argv[1:]]),
        "placers": [],
        "links": {},
        "plain": {},
        "requests": [],
        "cases": [],
        "tuned": [],
        "errors": [],
    }
    results["placers"] = placers(o)
    if o.resume:
        before = json.loads(o.resume.read_text())
        results["cases"] = [c for c in before["cases"] if c["network"] in o.networks.split(",")]
        results["plain"], results["requests"] = before["plain"], before["requests"]
        results["tuned"] = before.get("tuned", [])

    def save() -> None:
        (o.out / "results.json").write_text(json.dumps(results, indent=1))
        (o.out / "table.md").write_text(table(results))

    links = ["ipc"] if o.small else o.links.split(",")
    ranks = Ranks(o)
    try:
        everything(o, ranks, results, links, save)
    finally:
        if ranks.workers is not None:
            ranks.workers.close()
    save()
    say("errors:", results["errors"])
    print(table(results))
    return 1 if results["errors"] else 0


if __name__ == "__main__":
    sys.exit(main())
