"""What a strip takes at least, and the longest path, against all ways to put few pieces on two devices."""

from __future__ import annotations

import itertools
import random

import pytest
from conftest import need

need("torch")

from moirai.torch.all_cuts_path import Made, by_tiles, cut_ns, made_of, path_ns, whole_ns  # noqa: E402

DEVICES = ["A", "B"]


def shortest(pieces: dict[int, list[Made]], steps: int, message: int) -> float:
    """By trying: pieces of any sizes, operators of a piece one after the other on any device, any sum; a message to where
    the sum is takes its time."""
    best = float("inf")
    for number in range(2, steps + 1):
        for sizes in itertools.combinations_with_replacement(sorted(pieces), number):
            if sum(sizes) != steps:
                continue
            chains = [pieces[k][0].times for k in sizes]
            ops = [op for chain in chains for op in chain]
            for where in itertools.product(DEVICES, repeat=len(ops)):
                load = {d: sum(op[w] for op, w in zip(ops, where) if w == d) for d in DEVICES}
                chain = max(m.path_ns for m in (pieces[k][0] for k in sizes))
                used = {d for d in DEVICES if load[d]}
                ends = min(max(load[d] + (message if d != home else 0) for d in used) for home in DEVICES)
                best = min(best, max(chain, ends if len(used) > 1 else max(load.values())))
    return best


@pytest.mark.parametrize("seed", range(12))
def test_no_pieces_of_a_strip_take_less_than_its_bound(seed):
    rng = random.Random(seed)
    steps = rng.choice([3, 4])
    pieces = {}
    for k in range(1, steps):
        times = {f"{n}": {d: rng.randint(5, 20) + k * rng.randint(1, 30) for d in DEVICES} for n in range(rng.choice([1, 2]))}
        names = list(times)
        pieces[k] = [made_of(names, times, {n: set(names[:i]) for i, n in enumerate(names)})]
    for message in (0, 15):
        bound = cut_ns(pieces, steps, DEVICES, message, 0)
        least = shortest(pieces, steps, message)
        assert 0 < bound <= least
        assert cut_ns(pieces, steps, DEVICES, message, 1000) >= bound
    assert cut_ns({}, steps, DEVICES, 0, 0) == float("inf")


def test_pieces_of_as_many_tiles_are_all_kept():
    """Of 100 units in tiles of 16 pieces of 84 and of 96 take six: the lesser one must not be forgotten for the other."""
    made = {n: [Made([{"A": n, "B": n}], n)] for n in (4, 16, 84, 96)}
    found = by_tiles({**made, 32: [Made([], 0)]}, 16)
    assert {k: sorted(m.path_ns for m in v) for k, v in found.items()} == {1: [4, 16], 6: [84, 96]}
    assert cut_ns(found, 7, DEVICES, 0, 0) <= max(84, 16)


def test_a_strip_that_is_whole_takes_its_path_and_its_load():
    times = {n: {"A": 10, "B": 20} for n in "qkv"} | {"o": {"A": 30, "B": 15}}
    reads = {"q": set(), "k": set(), "v": set(), "o": {"q", "k", "v"}}
    made = made_of(list("qkvo"), times, reads)
    assert made.path_ns == 25
    assert 25 <= whole_ns(made, DEVICES) <= 40  # A: two of q, k, v and nothing else; B: the third, and o


def test_a_path_goes_through_strips_that_hang_on_it():
    """a -> strip of (x, y) -> b, where y reads a mask as well, which x does not wait for."""
    reads = {"a": set(), "mask": set(), "x": {"a"}, "y": {"x", "mask"}, "b": {"y"}}
    least, strip = {"a": 5, "mask": 50, "b": 7}, {"x": "s", "y": "s"}
    assert path_ns(reads, {**least, "mask": 0}, strip, {"s": 20}) == 32
    assert path_ns(reads, least, strip, {"s": 20}) == 57  # after the mask some of the strip is left, of unknown length
    assert path_ns(reads, least, {}, {}) == 57
