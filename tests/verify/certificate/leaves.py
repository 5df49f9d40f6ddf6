"""Leaves: cases that leave nothing out, each excluded by prices in time."""

from .files import INF, INT, LAST, TIME, demand, rows
from .pricing import Pricing


class Leaf:
    def __init__(self, b, a, obj):
        self.receivers, self.open = obj.get("receivers"), obj.get("open") is True
        if self.receivers is not None:
            demand(b.shared is not None and len(self.receivers) < b.K, "receivers of a tensor that is not there")
            demand(all(k < b.K and k != a for k in self.receivers), "a receiver is no device")
            demand(len(set(self.receivers)) == len(self.receivers), "a receiver is there twice")
        demand(not self.open or (self.receivers is not None and b.p.congestion == "port"), "an open leaf without order")
        self.counts = rows(obj.get("counts") or [], 5)
        for kind, place, device, least, most in self.counts:
            demand(device < b.K and 0 <= least <= TIME and (0 <= most <= TIME or most == LAST), "a count of nothing")
            if kind < 0:
                demand(place == 0 and (kind == -2 or self.receivers is not None), "a time of nothing")
            else:
                demand(kind < len(b.kinds or []) and 0 <= place < len(b.kinds[kind].inside), "a count of no operator")
                demand(least <= INT and most <= INT, "a count out of range")
        self.priced = obj.get("prices") is not None
        if not self.priced:
            return
        self.T, self.step, self.buckets = obj["length_ns"], obj["step_ns"], obj["buckets"]
        self.N = self.T // self.step + 1
        x = self.buckets
        demand(len(x) > 1 and x[0] == 0 and x[-1] == self.N, "buckets do not cover the steps")
        demand(all(u < v for u, v in zip(x, x[1:])), "buckets do not ascend")
        self.price = {}
        for r, q, price in rows(obj["prices"], 3):
            demand(r < b.p.resources() and q < len(x) - 1 and not self.price.get((r, q)), "a price of nothing")
            self.price[r, q] = price
        paid = obj.get("count_prices") or []
        demand(len(paid) <= len(self.counts), "more prices on counts than counts")
        demand(not any(w and c[0] < 0 for w, c in zip(paid, self.counts)), "a time has a price")
        self.count_price = paid + [0] * (len(self.counts) - len(paid))

    def length_of(self, q):
        return min(self.buckets[q + 1] * self.step, self.T) - min(self.buckets[q] * self.step, self.T)

    def count_term(self):
        return sum(w * (c[4] if w > 0 else c[3]) for w, c in zip(self.count_price, self.counts))

    def capacity(self):
        return sum(price * self.length_of(q) for (_, q), price in self.price.items()) + self.count_term()


def counts_cover(b, leaves, depth):
    if not leaves or any(len(x.counts) == depth for x in leaves):
        return bool(leaves)
    what = leaves[0].counts[depth][:3]
    every = LAST if what[0] < 0 else b.kinds[what[0]].count
    low = [x for x in leaves if x.counts[depth][3] <= 0]
    high = [x for x in leaves if x not in low]
    if any(x.counts[depth][:3] != what for x in leaves) or any(x.counts[depth][4] < every for x in high):
        return False
    most = min((x.counts[depth][4] for x in low), default=-2)
    least = max((x.counts[depth][3] for x in high), default=every + 1)
    return most >= least - 1 and counts_cover(b, low, depth + 1) and (not high or counts_cover(b, high, depth + 1))


def cover(b, a, z, leaves, equals):
    ordered, least = b.p.congestion == "port", b.equal_devices()
    ends = {a} | ({z} if b.exit is not None else set())
    mine = [k if k in ends else next(j for j in range(k + 1) if j not in ends and least[j] == least[k]) for k in range(b.K)]

    def covered(receivers, opened):
        return counts_cover(b, [x for x in leaves if x.receivers == receivers and x.open == opened], 0)

    def sendings(named, left):
        if ordered and covered(named, True):
            return True
        seen = [mine[k] for k in left] if ordered and equals else []  # of equal devices the first stands for all
        return covered(named, False) and all(
            sendings([*named, k], [l for l in left if l != k] if ordered else left[at + 1 :])
            for at, k in enumerate(left) if mine[k] not in seen[:at])  # fmt: skip

    if covered(None, False) or b.shared is None:
        return covered(None, False)
    return sendings([], sorted({k for e in b.edges if b.is_shared(e) for k in b.allowed(e[2], a, z)} - {a}))


def read_leaves(b, a, z, objects, equals):
    leaves = [Leaf(b, a, x) for x in objects]
    demand(not leaves or cover(b, a, z, leaves, equals), "the leaves leave cases out")
    return leaves


def prove_leaves(b, a, z, path, objects):
    least = INF
    for leaf in read_leaves(b, a, z, objects, True):
        ns = path
        if leaf.priced and leaf.T >= path:
            demand(Pricing(b, a, z, leaf, None).sum > leaf.capacity(), "prices do not exclude a length")
            ns = leaf.T + 1
        least = min(least, ns)
    return max(path, least) if objects else path
