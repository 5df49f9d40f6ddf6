#!/usr/bin/env python3
"""How far plans for many requests are from their bounds, several searches at a time; bench/rate_tables.py makes a table of it.

    bench/rate_gaps.py FOLDER --out gaps.json [--moirai build/release/src/moirai] [--cores N] [--limit 20] [--seconds S]

FOLDER has problems (`moirai problem MODEL --cluster inter-server -o FOLDER/NAME.json`). Each is planned by `moirai place --objective rate` with two threads and a limit of 20 s: one copy with 64 requests in
flight, any plan with 64, one copy with 16, and one copy of least largest load; half as many at a time as there are cores, the largest problems first. Bounds get
certificates, which the command verifies within its limit: what they prove is kept. After SECONDS no search is begun.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

THREADS = 2
QUESTIONS = {"one copy, 64": ["--copies", "1", "--in-flight", "64"], "any, 64": ["--in-flight", "64"], "one copy, 16": ["--copies", "1", "--in-flight", "16"],
             "loads": ["--copies", "1", "--in-flight", "64", "--kind", "loads"]}  # fmt: skip
KEPT = ("period_ns", "load_ns", "period_bound_ns", "period_gap", "period_certified_ns", "generation_ns")


def solve(o, scratch, path, question):
    plan = os.path.join(scratch, f"{path.stem}-{question.replace(' ', '')}.json")
    words = [o.moirai, "place", str(path), "--objective", "rate", "--gap", "0.001", "--time-limit", str(o.limit), "--threads", str(THREADS),
             "-f", "-q", "--json", "-o", plan, "--certificate", plan + ".certificate", *QUESTIONS[question]]  # fmt: skip
    r = subprocess.run(words, capture_output=True, text=True)
    if r.returncode:
        return {"error": r.stderr[-300:]}
    said = json.loads(r.stdout)
    return {k: said[k] for k in KEPT if k in said} | {"copies": len(said["copies"])}


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("folder", type=pathlib.Path)
    a.add_argument("--out", type=pathlib.Path, required=True)
    a.add_argument("--moirai", default="build/release/src/moirai")
    a.add_argument("--cores", type=int, default=os.cpu_count())
    a.add_argument("--limit", type=float, default=20, help="seconds for each search")
    a.add_argument("--seconds", type=float, default=float("inf"))
    o = a.parse_args()
    begun, paths = time.monotonic(), sorted(o.folder.glob("*.json"), key=lambda p: -p.stat().st_size)
    found = {"made": time.strftime("%Y-%m-%d"), "machine": os.uname().machine, "limit_s": o.limit, "threads": THREADS, "networks": {p.stem: {} for p in paths}}

    def run(task):
        question, path = task
        if time.monotonic() - begun + 1.3 * o.limit <= o.seconds:
            found["networks"][path.stem][question] = solve(o, scratch, path, question)
            print(f"{path.stem}, {question}: {found['networks'][path.stem][question]}", flush=True)

    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(max(1, o.cores // THREADS)) as pool:
        for _ in pool.map(run, [(q, p) for q in QUESTIONS for p in paths]):
            o.out.write_text(json.dumps(found, indent=1))
    print(f"{time.monotonic() - begun:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
