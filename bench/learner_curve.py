#!/usr/bin/env python3
"""A learner's log as lines of a curve, for `moirai bench paper --measured`.

    moirai place problem.json -p hrl --time-limit 5400 --log-json log.jsonl ...
    python3 bench/learner_curve.py --network gpt3-330M --testbed intra-server --graph coarsened --placer hrl \\
        --cpu-s 2214 log.jsonl >> measured.jsonl

The makespan of the best placement after 10, 60, 300 s and so on, as far as the log goes, and at its end. --cpu-s is the
processor time of the whole run (user and system, as `time` says): on a shared machine the clock alone says little.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

MOMENTS = (10, 60, 300, 900, 1800, 3600, 5400, 7200, 10800)


def curve(events: list[dict[str, Any]]) -> list[tuple[float, float]]:
    """(seconds, milliseconds) of the best so far at each moment that the log reaches."""
    last = max(e["seconds"] for e in events)
    found = []
    for moment in MOMENTS:
        if moment > last + 0.01 * moment:  # the limit ends a run a little early
            break
        known = [e["makespan_ns"] for e in events if e["seconds"] <= moment and e["makespan_ns"] is not None]
        if known:
            found.append((moment, min(known) / 1e6))
    return found


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("network", "testbed", "graph", "placer"):
        p.add_argument(f"--{name}", required=True)
    p.add_argument("--cpu-s", type=float, required=True)
    p.add_argument("log", type=Path)
    o = p.parse_args()
    events = [json.loads(line) for line in o.log.read_text().splitlines() if line.endswith("}")]
    if not events:
        print(f"{o.log}: no events", file=sys.stderr)
        return 1
    about = {"what": "curve", "network": o.network, "testbed": o.testbed, "graph": o.graph, "placer": o.placer}
    for seconds, ms in curve(events):
        print(json.dumps({**about, "seconds": seconds, "cpu_s": o.cpu_s, "ms": round(ms, 3)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
