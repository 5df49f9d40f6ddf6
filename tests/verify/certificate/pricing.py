"""What all tasks of a block pay at least at the prices of a leaf."""

from .files import INF


class Pricing:
    """The least that all tasks of a block pay within the leaf's length."""

    def __init__(self, b, a, z, leaf, byte_price):
        self.b, self.a, self.z, self.leaf, self.byte_price = b, a, z, leaf, byte_price
        self.N, self.step, self.T = leaf.N, leaf.step, leaf.T
        self.rate, self.start, self.lines = {}, {}, {}
        for r in {r for r, _ in leaf.price}:
            rate = [leaf.price.get((r, q), 0) for q in range(len(leaf.buckets) - 1)
                    for _ in range(leaf.buckets[q], leaf.buckets[q + 1])]  # fmt: skip
            start = [0]
            for g in range(self.N - 1):
                start.append(start[-1] + rate[g] * self.step)
            self.rate[r], self.start[r] = rate, start
        self.arrivals()
        self.sum = INF if self.direct_is_late() else self.add_up()

    def until(self, r, t):
        g = t // self.step
        return self.start[r][g] + (t - g * self.step) * self.rate[r][g]

    def line(self, held, ns, share):
        """The least cost of a task by the step of its start; never where it would end too late."""
        key = (held, ns, share)
        if key not in self.lines:
            held = [r for r in held if r in self.rate]
            line, kink = [], self.step - ns % self.step
            for g in range(self.N):
                room = min(self.T - ns - g * self.step, self.step - 1)
                shifts = [0, room] + ([kink] if kink < room else [])
                line.append(INF if room < 0 else min(
                    sum(self.until(r, g * self.step + x + ns) - self.until(r, g * self.step + x) for r in held)
                    for x in shifts) // share)  # fmt: skip
            self.lines[key] = line
        return self.lines[key]

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
            return [INF if g < first else v for g, v in enumerate(value)]
        if k == self.a:
            return value
        ns, line, least, out = e[3][self.a][k], self.transfer(x, self.a, k), INF, []
        wait, first = ns // self.step, (self.soonest[k] - ns) // self.step if shared else 0
        for g in range(self.N):
            if g >= first + wait:
                least = min(least, line[g - wait])
            out.append(value[g] + least)
        return out

    def to_exit(self, x, i, k, value):
        if k == self.z:
            return value
        line, after, least, out = self.transfer(x, k, self.z), self.b.time(i, k) // self.step, INF, list(value)
        for g in range(self.N - 1, -1, -1):
            if g + after < self.N:
                least = min(least, line[g + after])
            out[g] += least
        return out

    def own(self, kind, place, i):
        b, out = self.b, {}
        for k in b.p.may[b.ops[i]]:
            flat = self.byte_price[k] * b.p.bytes[b.ops[i]] if self.byte_price else 0
            flat += sum(w for w, c in zip(self.leaf.count_price, self.leaf.counts) if c[:3] == (kind, place, k))
            value = [v + flat for v in self.line((k,), b.time(i, k), 1)]
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
                        value[i][k] = [u + v for u, v in zip(value[i][k], message[k])]

        gather(ops[0], None)
        return min((v for line in value[ops[0]].values() for v in line), default=INF)

    def written_by(self, x, child):
        """The child writes: its least cost by the step and device of the parent, which reads."""
        i, _, j, t = self.b.edges[x]
        out = {k: [INF] * self.N for k in self.b.p.may[self.b.ops[j]]}
        for l, line in child.items():
            after, least, done = self.b.time(i, l) // self.step, INF, []
            for u in range(self.N):
                least = min(least, line[u - after]) if u >= after else least
                done.append(least)
            for k, best in out.items():
                wait, ready, cost = t[l][k] // self.step, INF, self.transfer(x, l, k) if l != k else [0] * self.N
                for g in range(wait, self.N):
                    ready = min(ready, done[g - wait] + cost[g - wait])
                    best[g] = min(best[g], ready)
        return out

    def read_by(self, x, child):
        i, _, j, t = self.b.edges[x]
        out = {k: [INF] * self.N for k in self.b.p.may[self.b.ops[i]]}
        for l, line in child.items():
            begun = list(line)
            for g in range(self.N - 2, -1, -1):
                begun[g] = min(begun[g], begun[g + 1])
            for k, best in out.items():
                wait, later, cost = t[k][l] // self.step, INF, self.transfer(x, k, l) if l != k else [0] * self.N
                after = self.b.time(i, k) // self.step
                for u in range(self.N - 1 - wait, after - 1, -1):
                    later = min(later, begun[u + wait] + cost[u])
                    best[u - after] = min(best[u - after], later)
        return out
