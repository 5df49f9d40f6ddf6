#!/usr/bin/env python3
"""The summary of a table of the zoo (docs/results.md): bench_moirai --limit 20 zoo | bench/zoo_summary.py

Reads the rows from standard input, or from the files that are named; a row that comes twice counts as it came last.
Prints mean, median and worst gap of all rows and of groups of them, and how much faster than HEFT's the plans are."""

import statistics
import sys
from fileinput import input as lines

COLUMNS = "network testbed graph flow type operators makespan bound gap seconds cpu peak single heft metf".split()


def read(paths):
    found = {}
    for line in lines(paths):
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if len(cells) == len(COLUMNS) and cells[1].endswith("-server"):
            row = dict(zip(COLUMNS, cells))
            found[tuple(cells[:5])] = row
    return list(found.values())


def summary(name, rows):
    gaps = [float(r["gap"]) for r in rows]
    worst = max(rows, key=lambda r: float(r["gap"]))
    faster = [100 * (1 - float(r["makespan"]) / float(r["heft"])) for r in rows if r["heft"] != "-"]
    where = " ".join(worst[c] for c in ("network", "testbed", "graph", "flow"))
    below = " | ".join(str(sum(g <= most for g in gaps)) for most in (1, 2, 3, 5))
    print(f"| {name} | {len(rows)} | {statistics.mean(gaps):.2f} | {statistics.median(gaps):.2f} | {max(gaps):.2f} ({where}) | "
          f"{below} | {statistics.mean(faster):.1f} | {max(faster):.1f} |")  # fmt: skip


def main():
    rows = read(sys.argv[1:])
    if not rows:
        sys.exit("no rows of the zoo")
    print("| rows | number | mean gap % | median | worst | <= 1 % | <= 2 % | <= 3 % | <= 5 % "
          "| faster than HEFT by %, mean | most |")  # fmt: skip
    print("|---|---:|---:|---:|---|---:|---:|---:|---:|---:|---:|")
    summary("all", rows)
    for flow in ("edge", "tensor"):
        for testbed in ("inter-server", "intra-server"):
            some = [r for r in rows if r["flow"] == flow and r["testbed"] == testbed]
            if some:
                summary(f"{flow}, {testbed}", some)
    for graph in ("original", "coarsened"):
        some = [r for r in rows if r["graph"] == graph]
        if some:
            summary(graph, some)


if __name__ == "__main__":
    main()
