"""What all tasks of a block pay at least at the prices of a leaf."""

from functools import cache
from itertools import accumulate
from operator import add

from .files import INF


def swept(line, shift, forwards):
    """By step the least of what is so many steps earlier or sooner or, backwards, so many steps later or further on."""
    kept = max(len(line) - shift, 0)
    if forwards:
        return [INF] * (len(line) - kept) + list(accumulate(line[:kept], min))
    return list(accumulate(reversed(line[shift:]), min))[::-1] + [INF] * (len(line) - kept)


class Pricing:
    """The least that all tasks of a block pay within the leaf's length."""

    def __init__(self, b, a, z, leaf, byte_price):
        self.b, self.a, self.z, self.leaf, self.byte_price = b, a, z, leaf, byte_price
        self.N, self.step, self.T = leaf.N, leaf.step, leaf.T
        self.paid, self.line = cache(self.paid), cache(self.line)
        self.arrivals()
        self.sum = INF if self.direct_is_late() else self.add_up()

    def paid(self, held):
        """What is paid by the step for all of these resources, and until each step's begin."""
        rate = []
        for q, (u, v) in enumerate(zip(self.leaf.buckets, self.leaf.buckets[1:])):
            rate += [sum(self.leaf.price.get((r, q), 0) for r in held)] * (v - u)
        return rate, list(accumulate([y * self.step for y in rate[:-1]], initial=0))

    def line(self, held, ns, share=1):
        """The least cost of a task by the step of its start, of which so many share one; never where it would end too late."""
        (rate, start), (wait, rest), costs = self.paid(held), divmod(ns, self.step), []
        starts = (self.T - ns) // self.step + 1 if ns <= self.T else 0
        for g in range(starts if any(rate) else 0):
            room = min(self.T - ns - g * self.step, self.step - 1)  # the latest start within the step
            turn = min(room, self.step - rest)  # from here on the task ends in another step: costs are linear in pieces
            first = start[g + wait] + rest * rate[g + wait] - start[g]
            then = first + turn * (rate[g + wait] - rate[g])
            last = then + (room - turn) * (rate[g + wait + 1] - rate[g]) if turn < room else then
            costs.append(min(first, then, last) // share)
        return (costs or [0] * starts) + [INF] * (self.N - starts)

    def transfer(self, one, x, k, l):
        share = 1 if self.b.p.by_edge else one.readers[x]
        return self.line(self.b.p.held(k, l), one.edges[x][3][k][l], share) if k != l else [0] * self.N

    def arrivals(self):
        """When the shared tensor is on each device: no sooner, no later."""
        b, leaf, port = self.b, self.leaf, self.b.p.congestion == "port"
        self.soonest, self.latest, self.later = {self.a: 0}, {}, set()
        sent, order = 0, leaf.receivers or []
        for k in order:
            sent = sent + b.shared_ns(self.a, k) if port else b.shared_ns(self.a, k)
            self.latest[k] = self.T
            for kind, _, device, least, most in leaf.counts:
                if kind == -1 and device == k:
                    sent, self.latest[k] = max(sent, least), min(self.latest[k], most)
            self.soonest[k] = sent
        if leaf.open:
            self.later = {k for k in range(b.K) if k not in self.soonest}
            self.soonest.update({k: sent + b.shared_ns(self.a, k) for k in self.later})
        before = self.T
        for k in reversed(order) if port else []:
            self.latest[k] = min(self.latest[k], before)
            before = max(self.latest[k] - b.shared_ns(self.a, k), -1)

    def direct_is_late(self):
        b, sent = self.b, []
        for e in b.edges if b.entry is not None and self.a != self.z else []:
            if (e[0], e[2]) == (b.entry, b.exit):
                waits = self.leaf.receivers is not None and b.is_shared(e)
                sent.append(self.soonest.get(self.z, INF) if waits else e[3][self.a][self.z])
        return max(sent, default=0) > self.T

    def send(self, k):
        ns = self.b.shared_ns(self.a, k)
        if self.latest[k] < self.soonest[k]:
            return INF
        first, last = (self.soonest[k] - ns) // self.step, (self.latest[k] - ns) // self.step
        return min(self.line(self.b.p.held(self.a, k), ns)[first : last + 1], default=INF)

    def add_up(self):
        total = sum(self.send(k) for k in self.leaf.receivers or [])
        return total + sum(self.component(kind, one) * one.count for kind, one in enumerate(self.b.kinds or []))

    def from_entry(self, one, x, k):
        """What the operator that reads pays besides, by its step on k."""
        e, first = one.edges[x], 0
        if self.leaf.receivers is not None and one.is_shared(e):
            if k not in self.later:
                first = min(self.soonest[k] // self.step, self.N) if k in self.soonest else self.N
                return [INF] * first + [0] * (self.N - first)
            first = (self.soonest[k] - e[3][self.a][k]) // self.step
        sent = [INF] * min(first, self.N) + self.transfer(one, x, self.a, k)[first:]
        return swept(sent, e[3][self.a][k] // self.step, True)

    def own(self, kind, one, i):
        """What an operator pays by itself, and for what it has from the entry and for the exit, by device and step."""
        out = {}
        for k in one.may[i]:
            flat = self.byte_price[k] * one.bytes[i] if self.byte_price else 0
            of_this = (kind, i - one.inside[0], k)
            flat += sum(w for w, c in zip(self.leaf.count_price, self.leaf.counts) if c[:3] == of_this)
            out[k] = [v + flat for v in self.line((k,), one.ns[i][k])]
            for x, e in enumerate(one.edges):
                if e[0] == one.entry and e[2] == i:
                    out[k] = list(map(add, out[k], self.from_entry(one, x, k)))
                elif e[2] == one.exit and e[0] == i and k != self.z:
                    out[k] = list(map(add, out[k], swept(self.transfer(one, x, k, self.z), one.ns[i][k] // self.step, False)))
        return out

    def component(self, kind, one):
        value = {i: self.own(kind, one, i) for i in one.inside}

        def gather(i, above):
            for x in one.tree:
                e = one.edges[x]
                if x != above and i in (e[0], e[2]):
                    child = e[2] if e[0] == i else e[0]
                    gather(child, x)
                    for k in value[i]:
                        value[i][k] = list(map(add, value[i][k], self.message(one, x, value[child], child == e[0], k)))

        gather(one.inside[0], None)
        return min(map(min, value[one.inside[0]].values()), default=INF)

    def message(self, one, x, child, writes, k):
        """Of the child at the other end of an edge, which writes or reads: its least cost by the step of its parent on k."""
        i, _, _, t = one.edges[x]
        out = [INF] * self.N
        for l, line in child.items():
            ends = (l, k) if writes else (k, l)
            runs, wait = one.ns[i][ends[0]] // self.step, t[ends[0]][ends[1]] // self.step
            sent = list(map(add, swept(line, runs if writes else wait, writes), self.transfer(one, x, *ends)))
            out = list(map(min, out, swept(sent, wait if writes else runs, writes)))
        return out
