#!/usr/bin/env python3
"""Are simulated rates reached by a runtime on CPU ranks? `moirai tune --objective rate` of networks, one row per plan that it ran.

    bench/rate_cpu.py MODEL.onnx ... --out FOLDER [--moirai build/release/src/moirai] [--cores 0,1,2,3] [--in-flight 2,4,8] [--time-limit 60]

A rank per device, with a core and a thread of its own; the machine should have a core more than ranks, and nothing else to do. *simulated* is the
period that the plan was made for, by times and links that were measured on these ranks and refined by the runs before, *measured* the
median of its runs with N requests in flight, every result compared with that of the request alone. The share of the time that the busiest device computes,
simulated and measured, says the same where a machine's speed has changed in between. Writes results.json and table.md to FOLDER after each row;
--seconds: no tune is begun after that.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time

LATENCY = "10us"  # until it is measured


def cluster_of(o):
    cores = o.cores.split(",")
    names = [f"c{k}" for k in range(len(cores))]
    return {"format": "moirai-cluster", "version": 1, "name": "cores",
            "devices": [{"name": n, "memory": "4GB", "gflops": 50, "memory_bandwidth": "10GB/s", "threads": 1, "cores": c} for n, c in zip(names, cores)],
            "links": [{"from": a, "to": b, "bandwidth": "10GB/s", "latency": LATENCY} for a in names for b in names if a != b]}  # fmt: skip


def tune(o, model, n):
    """What `tune` ran: (plan, simulated ns, measured ns, kept?)."""
    words = [o.moirai, "tune", str(model), "--cluster", str(o.out / "cluster.json"), "--objective", "rate", "--in-flight", str(n),
             "--time-limit", str(o.time_limit), "-o", str(o.out / f"{model.stem}-{n}.json"), "--force", "-q", "--json"]  # fmt: skip
    done = subprocess.run(words, capture_output=True, text=True, timeout=3 * o.time_limit + 60)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}")
    found = json.loads(done.stdout)
    return [{"model": model.stem, "in_flight": n, "plan": c["name"], "simulated_ns": c["promised_ns"], "measured_ns": c["measured_ns"], "kept": c["name"] == found["kept"],
             "busiest": c["busiest"], "promised_busiest": c["promised_busiest"]}
            for c in found["rounds"] if c.get("promised_ns", -1) > 0]  # fmt: skip


def table(rows):
    lines = ["| network | in flight | plan | simulated ms | measured ms | off | busiest device, simulated % | measured % | off |", "|---|---:|---|---:|---:|---:|---:|---:|---:|"]
    off, at_speed = [], []
    for r in rows:
        off.append(r["simulated_ns"] / r["measured_ns"] - 1)
        at_speed.append(r["busiest"] / r["promised_busiest"] - 1)
        lines.append(f"| {r['model']} | {r['in_flight']} | {r['plan']}{', kept' if r['kept'] else ''} | {r['simulated_ns'] / 1e6:.3f} | "
                     f"{r['measured_ns'] / 1e6:.3f} | {100 * off[-1]:+.1f} % | {100 * r['promised_busiest']:.1f} | {100 * r['busiest']:.1f} | {100 * at_speed[-1]:+.1f} % |")  # fmt: skip
    for what, found in (("by times that were measured before", off), ("at the speed that devices had", at_speed)):
        kept = [x for x, r in zip(found, rows) if r["kept"]]
        lines += ["", f"Within 10 % {what}: {sum(abs(x) <= 0.1 for x in found)} of {len(found)}, of those that are kept {sum(abs(x) <= 0.1 for x in kept)} of {len(kept)}."]
    return "\n".join(lines) + "\n"


def main():
    began = time.monotonic()
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("models", nargs="+", type=pathlib.Path)
    a.add_argument("--out", type=pathlib.Path, required=True)
    a.add_argument("--moirai", default="build/release/src/moirai")
    a.add_argument("--cores", default="0,1,2,3", help="a rank on each")
    a.add_argument("--in-flight", default="2,4,8")
    a.add_argument("--time-limit", type=float, default=60, help="of each tune")
    a.add_argument("--seconds", type=float, default=3600)
    o = a.parse_args()
    o.out.mkdir(parents=True, exist_ok=True)
    (o.out / "cluster.json").write_text(json.dumps(cluster_of(o)))
    rows, failed = [], False
    for model in o.models:
        for n in map(int, o.in_flight.split(",")):
            if time.monotonic() - began > o.seconds:
                continue
            try:
                rows += tune(o, model, n)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                failed = True
                print(f"{model.stem}, {n} in flight: {error}", flush=True)
                continue
            (o.out / "results.json").write_text(json.dumps(rows, indent=1))
            (o.out / "table.md").write_text(table(rows))
    print(table(rows))
    return int(failed or not rows)


if __name__ == "__main__":
    sys.exit(main())
