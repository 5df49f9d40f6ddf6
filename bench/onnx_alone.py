#!/usr/bin/env python3
"""The whole model as the only sub-model of one device against stock ONNX Runtime, in processor time.

    python3 bench/onnx_alone.py --build build/release --out FOLDER [--threads 1] [--docs docs/run.md] [NAME...]

Fifteen networks with random weights, those of the zoo and those of python/tests/shard_networks.py at sizes that people use (NumPy is
needed). Each is planned for one device and split; bench_alone runs the sub-model, opened by moirai-rank's own code, and the
model in a session of its own with ONNX Runtime's default options, in turns, in one process. Medians of the processor time of a
run, which a busy machine changes little, and the median of the ratios of neighbours; ONNX Runtime against itself, measured in the
same way, says what a difference is worth. Writes results.json and table.md to
FOLDER after every network; --docs puts the table between the marks of that page.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python" / "tests"))
BEGIN, END = "<!-- onnx_alone begin -->", "<!-- onnx_alone end -->"


def builders() -> dict[str, Any]:
    import shard_networks as n

    return {
        "resnet50": lambda: n.resnet(64, 112),
        "unet": lambda: n.unet(16, 128, 3),
        "grouped": lambda: n.grouped(channels=128, groups=32, size=56),
        "residual": lambda: n.convolutional(channels=64, size=56),
        "bert": lambda: n.transformer(layers=4, tokens=128, width=768, count=12, hidden=3072, vocabulary=1000),
        "bert-short": lambda: n.transformer(layers=4, tokens=16, width=768, count=12, hidden=3072, vocabulary=1000),
        "llama": lambda: n.transformer(layers=6, tokens=64, width=512, count=8, groups=2, hidden=1408, gated=True),
        "gpt-fused": lambda: n.transformer(layers=6, tokens=64, width=512, count=8, hidden=2048, fused=True),
        "shared": lambda: n.shared(layers=6, tokens=64, width=512, hidden=2048),
        "quantised": lambda: n.quantised(tokens=64, width=256, hidden=1024),
    }


ZOO = ["inception-tiny", "googlenet", "resnet18", "gpt3-mini", "t5-tiny"]


class Bench:
    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.folder = args, Path(args.out)
        self.folder.mkdir(parents=True, exist_ok=True)
        device = {"name": "A", "type": "cpu", "memory": "8GB", "threads": args.threads, "ep": "cpu"}
        (self.folder / "one.json").write_text(json.dumps(
            {"format": "moirai-cluster", "version": 1, "name": "one", "devices": [device], "links": []}))  # fmt: skip

    def moirai(self, *words: Any) -> Any:
        done = subprocess.run([f"{self.args.build}/src/moirai", *map(str, words), "--json", "--quiet"], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"moirai {' '.join(map(str, words))}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def model(self, name: str) -> Path:
        path = self.folder / f"{name}.onnx"
        if name in ZOO:
            self.moirai("zoo", name, "--onnx", path, "--force")
        else:
            builders()[name]().save(path)
        return path

    def pairs(self, path: Path, part: Any, runs: int, first: str) -> list[list[int]]:
        words = [f"{self.args.build}/bench/bench_alone", path, part, self.args.threads, runs, first]
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"bench_alone {path}: {done.stderr.strip()[-300:]}")
        return json.loads(done.stdout)

    def measure(self, name: str) -> dict[str, Any]:
        path, plan, parts = self.model(name), self.folder / f"{name}.plan.json", self.folder / f"{name}.parts"
        self.moirai("plan", path, "--cluster", self.folder / "one.json", "--effort", "0.01", "-o", plan, "--force")
        self.moirai("split", plan, path, "-o", parts, "--force")
        files = sorted(parts.glob("*.onnx"))
        if len(files) != 1:
            sys.exit(f"{name}: {len(files)} sub-models on one device")
        one = min(a for a, _ in self.pairs(path, files[0], 2, "stock"))
        runs = max(4, min(2000, int(1e9 * self.args.seconds / (8 * one))))
        row: dict[str, Any] = {"network": name, "runs": 2 * runs, "threads": self.args.threads}
        row |= self.compare(path, files[0], runs, "")
        row |= self.compare(path, "-", runs, "null_")
        shutil.rmtree(parts)
        path.unlink()
        plan.unlink()
        return row

    def compare(self, path: Path, part: Any, runs: int, key: str) -> dict[str, float]:
        """Half of the runs with either session opened first; the mean of the two medians."""
        halves = [self.pairs(path, part, runs, first) for first in ("stock", "ours")]
        stock, ours = (statistics.median(side) for side in zip(*(halves[0] + halves[1])))
        ratio = statistics.mean(statistics.median(b / a for a, b in half) for half in halves)
        return {f"{key}stock_ns": stock, f"{key}ours_ns": ours, f"{key}ratio": ratio}


def table(rows: list[dict[str, Any]]) -> str:
    text = "| network | ONNX Runtime | as a sub-model | difference | ONNX Runtime against itself | runs |\n|---|---:|---:|---:|---:|---:|\n"
    for r in rows:
        text += (f"| {r['network']} | {r['stock_ns'] / 1e6:.3f} ms | {r['ours_ns'] / 1e6:.3f} ms "
                 f"| {100 * (r['ratio'] - 1):+.1f} % | {100 * (r['null_ratio'] - 1):+.1f} % | {r['runs']} |\n")  # fmt: skip
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=6, help="of processor time per network, about")
    parser.add_argument("--docs")
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    names = args.names or [*ZOO, *builders()]
    unknown = set(names) - {*ZOO, *builders()}
    if unknown:
        sys.exit(f"onnx_alone: no network '{sorted(unknown)[0]}': there are {', '.join([*ZOO, *builders()])}")
    bench, rows = Bench(args), []
    for name in names:
        rows.append(bench.measure(name))
        print(json.dumps(rows[-1]), flush=True)
        (bench.folder / "results.json").write_text(json.dumps(rows, indent=1))
        (bench.folder / "table.md").write_text(table(rows))
    if args.docs:
        page = Path(args.docs).read_text()
        before, rest = page.split(BEGIN)
        Path(args.docs).write_text(before + BEGIN + "\n" + table(rows) + END + rest.split(END)[1])


if __name__ == "__main__":
    main()
