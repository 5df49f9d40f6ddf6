"""Sizes of pieces: those with which devices end at the same time, and those that are profiled to know what others take."""

from __future__ import annotations

import re
from typing import Iterable

from ..graph import Graph
from .cut_text import tile_of
from .cuts import Strip

_SIZES = 24  # of a piece, that are looked at
PIECE = re.compile(r" \((\d+) of \d+, (\d+) of (\d+) (\w+)\)$")  # number, size, units, unit


def even_sizes(strip: Strip, devices: list[str], measured: Iterable[Graph]) -> list[int]:
    """Tokens of each device with which all take as long, by what pieces of tokens were measured to take in all; [] where
    that is not known. Between two sizes times lie on a line, which begins at nothing."""
    took: dict[str, dict[int, int]] = {d: {} for d in devices}
    for graph in measured:
        here: dict[tuple[str, int, int], int] = {}  # a cut may have several pieces of one size
        for op in graph.ops:
            label = PIECE.search(op.name)
            if label and int(label[3]) == strip.units and label[4] == strip.unit:
                for d in devices:
                    key = (d, int(label[1]), int(label[2]))
                    here[key] = here.get(key, 0) + ((op.time_ns or {}).get(d) or 0)
        for (d, _, size), ns in here.items():
            took[d][size] = ns
    step = step_of(strip)
    lines = [sorted({0: 0, **by_size}.items()) for by_size in took.values()]
    if any(len(line) < 3 for line in lines):
        return []
    steps = balanced([[_between(line, n * step) for n in range(-(-strip.units // step) + 1)] for line in lines],
                     [0] * len(devices), -(-strip.units // step))  # fmt: skip
    sizes = [k * step for k in steps if k]
    if sizes:
        sizes[0] -= sum(sizes) - strip.units
    return sizes if len(sizes) > 1 and min(sizes) > 0 else []


def _between(line: list[tuple[int, int]], x: int) -> int:
    """On the line through these points; the last two go on behind them."""
    i = next((i for i in range(1, len(line)) if line[i][0] >= x), len(line) - 1)
    (a, s), (b, t) = line[i - 1], line[i]
    return int(s + (t - s) * (x - a) / (b - a))


def step_of(strip: Strip) -> int:
    """Units by which pieces of a strip are tried to be larger: tiles."""
    tile = tile_of(strip.units, _SIZES // 2)
    return tile * -(-strip.units // (tile * _SIZES))


def balanced(times: list[list[int]], extra: list[int], steps: int) -> list[int]:
    """Steps of each device, `steps` in all, with which the last to end ends first. A device takes times[k][n] for n of
    them, and `extra` beside that for any."""

    def most(k: int, limit: int) -> int:
        return max((n for n in range(len(times[k])) if not n or times[k][n] + extra[k] <= limit), default=0)

    limits = sorted({t + extra[k] for k in range(len(times)) for t in times[k]})
    for limit in limits:
        found = [most(k, limit) for k in range(len(times))]
        if sum(found) < steps:
            continue
        while sum(found) > steps:  # those that end last have less
            latest = max((k for k in range(len(times)) if found[k]), key=lambda k: times[k][found[k]] + extra[k])
            found[latest] -= 1
        return found
    return []


def samples(strips: Iterable[Strip]) -> list[str]:
    """Cuts whose profiles say what pieces of many sizes take: those by 1:2:3:6, 4:8 and 5:7, and their like in finer steps."""
    every, found = list(strips), []
    for parts in ((1, 2, 3, 6), (4, 8), (5, 7), (1, 1, 4, 6)):
        items = []
        for s in every:
            tile = tile_of(s.units, sum(parts))
            tiles = [p * (s.units // tile) // sum(parts) for p in parts]
            tiles[-1] += s.units // tile - sum(tiles)
            if min(tiles) > 0:
                items.append(f"{s.name}: {','.join(str(t * tile) for t in tiles)}")
        found += ["; ".join(items)] if items else []
    return found


def batch_samples(strips: Iterable[Strip]) -> list[str]:
    """As `samples`, of a batch: pieces of one sample, of two, and of what these leave."""
    return [f"{s.name}: {n},{s.units - n}" for s in strips for n in (1, 2) if 2 * n <= s.units]
