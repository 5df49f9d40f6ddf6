#!/usr/bin/env python3
"""How long the operators of problem files take on each device, as lines for `moirai bench paper --measured`.

    python3 bench/paper_operators.py ../shared/data/problems/{googlenet,inceptionv4}.problem.json >> measured.jsonl

For problems whose times were measured, such as the samples that the paper's authors have published. Operators that take
no time (inputs) do not count.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path

SHORT_NS = 100_000  # as in src/study/tell/tell_operators.c


def lines(problem: dict) -> list[dict]:
    found = []
    for k, device in enumerate(problem["devices"]):
        times = [op["time_ns"][k] for op in problem["ops"] if op["time_ns"][k]]
        found.append(
            {
                "what": "operators",
                "network": problem["name"],
                "part": device["name"],
                "operators": len(times),
                "median_us": statistics.median(times) / 1e3,
                "mean_us": round(statistics.fmean(times) / 1e3, 3),
                "longest_us": max(times) / 1e3,
                "short": round(sum(t < SHORT_NS for t in times) / len(times), 4),
            }
        )
    return found


def main() -> int:
    for path in sys.argv[1:]:
        for line in lines(json.loads(Path(path).read_text())):
            print(json.dumps(line))
    return 0


if __name__ == "__main__":
    sys.exit(main())
