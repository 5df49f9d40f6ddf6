"""What all tasks of a block pay at least at the prices of a leaf."""

from itertools import accumulate
from operator import add

from .files import INF


def least_from(line):
    """Of each number and those behind it the least."""
    return list(accumulate(reversed(line), min))[::-1]


class Pricing:
    """The least that all tasks of a block pay within the leaf's length."""

    def __init__(self, b, a, z, leaf, byte_price):
        self.b, self.a, self.z, self.leaf, self.byte_price = b, a, z, leaf, byte_price
        self.N, self.step, self.T = leaf.N, leaf.step, leaf.T
        self.rate, self.sums, self.lines = {}, {}, {}
        wide = [v - u for u, v in zip(leaf.buckets, leaf.buckets[1:])]
        for r in {r for r, _ in leaf.price}:
            rate = self.rate[r] = []
            for q, steps in enumerate(wide):
                rate += [leaf.price.get((r, q), 0)] * steps
        self.arrivals()
        self.sum = INF if self.direct_is_late() else self.add_up()

    def paid(self, held):
        """What is paid by the step for all of these resources, and until each step's begin; None: nothing."""
        if held not in self.sums:
            rates = [self.rate[r] for r in held if r in self.rate]
            rate = list(map(sum, zip(*rates))) if rates else None
            self.sums[held] = rate and (rate, list(accumulate([y * self.step for y in rate[:-1]], initial=0)))
        return self.sums[held]

    def line(self, held, ns, share):
        """The least cost of a task by the step of its start; never where it would end too late."""
        key = (held, ns, share)
        if key not in self.lines:
            paid, step = self.paid(held), self.step
            starts = 0 if ns > self.T else (self.T - ns) // step + 1
            line = [0] * starts
            if paid and starts:
                line = self.costs(*paid, ns, starts)
                line = line if share == 1 else [v // share for v in line]
            self.lines[key] = line + [INF] * (self.N - starts)
        return self.lines[key]

    def costs(self, rate, start, ns, starts):
        """By the step of the start: the cost is linear in pieces, so begin, end and kink of a step are enough."""
        step, (wait, rest) = self.step, divmod(ns, self.step)
        kink, costs = step - rest, []
        for g in range(starts):
            room = min(self.T - ns - g * step, step - 1)
            begin, end = start[g], g + wait
            least = start[end] + rest * rate[end] - begin
            if room < kink:  # the task ends in the step in which it ends from the step's begin
                last = start[end] + (rest + room) * rate[end] - begin - room * rate[g]
            else:
                last = start[end + 1] + (room - kink) * rate[end + 1] - begin - room * rate[g]
                least = min(least, start[end + 1] - begin - kink * rate[g])
            costs.append(last if last < least else least)
        return costs

    def transfer(self, x, k, l):
        share = 1 if self.b.p.by_edge else self.b.readers[x]
        return self.line(self.b.p.held(k, l), self.b.edges[x][3][k][l], share)

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
        b = self.b
        for e in b.edges:
            if b.entry is not None and self.a != self.z and (e[0], e[2]) == (b.entry, b.exit):
                ns = e[3][self.a][self.z]
                if self.leaf.receivers is not None and b.is_shared(e):
                    ns = self.soonest.get(self.z, INF)
                if ns > self.T:
                    return True
        return False

    def send(self, k):
        ns = self.b.shared_ns(self.a, k)
        if self.latest[k] < self.soonest[k]:
            return INF
        line = self.line(self.b.p.held(self.a, k), ns, 1)
        first, last = (self.soonest[k] - ns) // self.step, (self.latest[k] - ns) // self.step
        return min(line[first : last + 1], default=INF)

    def add_up(self):
        total = sum(self.send(k) for k in self.leaf.receivers or [])
        return total + sum(self.component(x) * self.b.count[x] for x in range(len(self.b.kinds)))

    def from_entry(self, x, k, value):
        b, e = self.b, self.b.edges[x]
        shared = self.leaf.receivers is not None and b.is_shared(e)
        if shared and k not in self.later:
            first = self.soonest[k] // self.step if k in self.soonest else self.N
            return [INF] * min(first, self.N) + value[first:]
        if k == self.a:
            return value
        ns, line = e[3][self.a][k], self.transfer(x, self.a, k)
        wait, first = ns // self.step, (self.soonest[k] - ns) // self.step if shared else 0
        sent = accumulate(line[first : max(first, self.N - wait)], min)
        never = min(first + wait, self.N)
        return [INF] * never + list(map(add, value[never:], sent))

    def to_exit(self, x, i, k, value):
        if k == self.z:
            return value
        line, after = self.transfer(x, k, self.z), self.b.time(i, k) // self.step
        out = list(map(add, value, least_from(line[after:])))
        return out + [INF] * (self.N - len(out))

    def own(self, kind, place, i):
        b, out = self.b, {}
        for k in b.p.may[b.ops[i]]:
            flat = self.byte_price[k] * b.p.bytes[b.ops[i]] if self.byte_price else 0
            flat += sum(w for w, c in zip(self.leaf.count_price, self.leaf.counts) if c[:3] == (kind, place, k))
            value = self.line((k,), b.time(i, k), 1)
            value = [v + flat for v in value] if flat else value
            for x, e in enumerate(b.edges):
                if e[0] == b.entry and e[2] == i:
                    value = self.from_entry(x, k, value)
                elif e[2] == b.exit and e[0] == i:
                    value = self.to_exit(x, i, k, value)
            out[k] = value
        return out

    def component(self, kind):
        b, ops = self.b, self.b.kinds[kind]
        value = {i: self.own(kind, place, i) for place, i in enumerate(ops)}

        def gather(i, above):
            for x in b.trees[kind]:
                if x != above and i in (b.edges[x][0], b.edges[x][2]):
                    e = b.edges[x]
                    child = e[2] if e[0] == i else e[0]
                    gather(child, x)
                    message = self.read_by(x, value[child]) if child == e[2] else self.written_by(x, value[child])
                    for k in value[i]:
                        value[i][k] = list(map(add, value[i][k], message[k]))

        gather(ops[0], None)
        return min(map(min, value[ops[0]].values()), default=INF)

    def written_by(self, x, child):
        """The child writes: its least cost by the step and device of the parent, which reads."""
        i, _, j, t = self.b.edges[x]
        out = {k: [INF] * self.N for k in self.b.p.may[self.b.ops[j]]}
        for l, line in child.items():
            after = min(self.b.time(i, l) // self.step, self.N)
            done = [INF] * after + list(accumulate(line[: self.N - after], min))
            for k, best in out.items():
                wait = min(t[l][k] // self.step, self.N)
                ready = done if l == k else accumulate(map(add, done, self.transfer(x, l, k)), min)
                best[wait:] = map(min, best[wait:], ready)
        return out

    def read_by(self, x, child):
        i, _, j, t = self.b.edges[x]
        out = {k: [INF] * self.N for k in self.b.p.may[self.b.ops[i]]}
        for l, line in child.items():
            begun = least_from(line)
            for k, best in out.items():
                wait, after = t[k][l] // self.step, self.b.time(i, k) // self.step
                left = begun[wait:] if l == k else least_from(list(map(add, begun[wait:], self.transfer(x, k, l))))
                best[: max(0, len(left) - after)] = map(min, best, left[after:])
        return out
