"""Memory of what left a device is used again only when nobody reads it any more, whatever the order in which ranks run."""

from __future__ import annotations

import random

import pytest
from conftest import need

need("torch")

import moirai  # noqa: E402
from moirai.torch.program import build  # noqa: E402


@pytest.fixture(scope="module")
def problems(cpu_cluster, captured):
    found = []
    for name in ("inception", "gpt2", "recommender", "moe"):
        _, _, network = captured(name)
        for device in cpu_cluster.devices:
            network.graph.set_times(device.name, [200_000] * len(network.graph))
        found.append((network, moirai.Problem(network.graph, cpu_cluster)))
    return found


class Play:
    """Segments of all ranks begin and end in any order that messages allow; a tensor that was released and is read
    afterwards, here or elsewhere, is an error."""

    def __init__(self, program, network, rng):
        self.ranks, self.rng = program.ranks, rng
        self.base = lambda name: network.path_to(name)[0]
        self.maker = {s.index: (r.rank, i) for r in self.ranks for i, g in enumerate(r.segments) for s in g.sends}
        self.ended = [0] * len(self.ranks)
        self.running = [False] * len(self.ranks)
        self.gone = set()  # (rank, base)
        self.popped = [set() for _ in self.ranks]
        self.from_rank = [{self.base(w.value): w.source for g in r.segments for w in g.waits} for r in self.ranks]

    def can_begin(self, k):
        at = self.ended[k]
        if self.running[k] or at == len(self.ranks[k].segments):
            return False
        return all(self.ended[r] > j for r, j in (self.maker[w.index] for w in self.ranks[k].segments[at].waits))

    def look(self, k, names):
        for name in names:
            assert name not in self.popped[k], f"'{name}' is read after it was released on rank {k}"
            owner = self.from_rank[k].get(self.base(name), k)
            assert (owner, self.base(name)) not in self.gone, f"rank {k} reads '{name}' of rank {owner}, which let it go"

    def reads(self, k):
        g = self.ranks[k].segments[self.ended[k]]
        return [r for s in g.steps for n in s.nodes for r in n.refs()] + [w.value for w in g.waits]

    def begin(self, k):
        g = self.ranks[k].segments[self.ended[k]]
        self.popped[k].update(g.released)
        self.gone.update((k, self.base(name)) for name in g.released)
        self.running[k] = True
        self.look(k, self.reads(k))

    def end(self, k):
        self.look(k, self.reads(k))
        self.look(k, [s.value for s in self.ranks[k].segments[self.ended[k]].sends])
        self.running[k] = False
        self.ended[k] += 1

    def run(self):
        ranks = range(len(self.ranks))
        while any(self.ended[k] < len(self.ranks[k].segments) for k in ranks):
            moves = [(self.end, k) for k in ranks if self.running[k]] + [(self.begin, k) for k in ranks if self.can_begin(k)]
            move, k = self.rng.choice(moves)
            move(k)
        for k, r in enumerate(self.ranks):
            self.look(k, [x for _, value, nodes in r.outputs for n in nodes for x in n.refs()] + [v for _, v, n in r.outputs if not n])


def programs(problems, rng):
    for network, problem in problems:
        for run in (1, 1, 1, 3, 9):
            devices = problem.devices[: rng.randint(2, 4)]
            places = {n: devices[(i // run) % len(devices)] if run > 1 else rng.choice(devices)
                      for i, n in enumerate(problem.op_names)}  # fmt: skip
            yield network, build(network, moirai.Plan.by_devices(problem, places))


def test_nothing_is_read_after_it_was_released(problems):
    rng = random.Random(5)
    released = left = 0
    for network, program in programs(problems, rng):
        left += len({(s.source, network.path_to(s.value)[0]) for s in program.transfers})
        released += len({(r.rank, network.path_to(n)[0]) for r in program.ranks for g in r.segments for n in g.released})
        for _ in range(10):
            Play(program, network, rng).run()
    assert left > 200 and released > left / 3


def test_the_play_sees_what_is_let_go_too_early(problems):
    """Every release moved to the segment before it: the play must object for some order."""
    rng = random.Random(5)
    seen = 0
    for network, program in programs(problems, rng):
        for r in program.ranks:
            for earlier, g in zip(r.segments, r.segments[1:]):
                earlier.released, g.released = earlier.released + g.released, []
        try:
            for _ in range(10):
                Play(program, network, rng).run()
        except AssertionError:
            seen += 1
    assert seen >= 10
