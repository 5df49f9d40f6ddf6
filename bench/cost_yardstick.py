#!/usr/bin/env python3
"""How far machine learning comes on the measured times that the cost models are judged by.

    build/release/bench/bench_cost TIMES.csv --samples samples.csv [GRAPH...]
    python bench/cost_yardstick.py samples.csv [CLASS...]

A yardstick, not part of the product: trees learn the errors that the formulas make on a GPU left out, from sizes, how well
they fill tiles, and figures of the device. Once with that GPU's times left out, as the formulas are judged, and once with four
fifths of them, which a GPU that nobody measured does not have. Needs numpy and scikit-learn."""
import csv
import sys

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor

SIZES = ("b", "m", "n", "depth", "bytes", "weight_bytes", "side", "ns_predicted")
FIGURES = ("gflops", "gb_s", "multiprocessors", "mhz", "l2_mb", "watt", "nm")


def features(row):
    x = {key: float(row[key]) for key in SIZES + FIGURES}
    v = [np.log(max(x[key], 1e-3)) for key in SIZES + FIGURES]
    work = x["b"] * x["m"] * x["n"] * x["depth"]
    v += [np.log(work), np.log(work / x["bytes"]), np.log(x["m"] / x["n"]), np.log(x["bytes"] / x["l2_mb"])]
    for tile in (32, 64, 128):
        tiles = x["b"] * np.ceil(x["m"] / tile) * np.ceil(x["n"] / tile) / x["multiprocessors"]
        v += [np.ceil(x["m"] / tile) * tile / x["m"], np.ceil(x["n"] / tile) * tile / x["n"]]
        v += [np.log(tiles), np.ceil(tiles) / tiles]
    v += [x[key] % power for key in ("m", "n", "depth") for power in (2, 4, 8, 32)]
    channels = x["depth"] / 9
    return v + [channels % 4, channels % 32, x["side"] % 2, x["side"] % 4]


def boosted():
    return HistGradientBoostingRegressor(
        loss="absolute_error", max_iter=150, learning_rate=0.08, max_leaf_nodes=12, min_samples_leaf=8, random_state=1
    )


def forest():
    return ExtraTreesRegressor(n_estimators=150, min_samples_leaf=2, random_state=1)


def left(model, x, y, train, test):
    """What is left of the errors `y`, in %, as the judge counts them."""
    if model is None:
        return 100 * np.abs(np.exp(y[test]) - 1)
    return 100 * np.abs(np.exp(y[test] - model().fit(x[train], y[train]).predict(x[test])) - 1)


def judge(rows):
    x = np.array([features(row) for row in rows])
    y = np.array([np.log(float(row["ns_predicted"]) / float(row["ns"])) for row in rows])
    device = np.array([row["device"] for row in rows])
    fold = np.random.RandomState(0).permutation(len(rows)) % 5
    print("| left | " + " | ".join(sorted(set(device))) + " | **mean** |")
    for name, model, seen in (
        ("formulas, GPU left out", None, False),
        ("with boosted trees, GPU left out", boosted, False),
        ("with random trees, GPU left out", forest, False),
        ("with boosted trees, GPU seen", boosted, True),
        ("with random trees, GPU seen", forest, True),
    ):
        means = []
        for d in sorted(set(device)):
            own = device == d
            if not seen:
                means.append(left(model, x, y, ~own, own).mean())
                continue
            parts = [left(model, x, y, ~(own & (fold == f)), own & (fold == f)) for f in range(5)]
            means.append(np.concatenate(parts).mean())
        print(f"| {name} | " + " | ".join(f"{m:.1f}" for m in means) + f" | **{np.mean(means):.1f}** |", flush=True)


def main():
    with open(sys.argv[1], newline="") as f:
        rows = [row for row in csv.DictReader(f) if row["runtime"] == "eager"]
    for name in sys.argv[2:] or ("linear", "bmm", "conv"):
        print(f"\n{name}, eager: mean absolute error in %\n")
        judge([row for row in rows if row["class"] == name])


if __name__ == "__main__":
    main()
