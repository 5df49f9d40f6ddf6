"""Static proofs: multipliers of a linear programme."""

from .files import INF, UNIT, demand, rows


class Static:
    """Multipliers of a linear programme."""

    def __init__(self, b, a, z, proven, obj):
        self.b, self.a, self.z, self.proven, self.upper, self.obj = b, a, z, proven, obj["upper_ns"], obj
        self.groups, self.sent, self.results, self.K = obj.get("groups") or [], None, set(), b.K
        self.told = [set(b.allowed(i, a, z)) for i in range(b.n)]
        self.orders = {"receivers": [[], False], "returns": [[], False]}  # devices, whether nobody else follows

    def bound(self):
        return self.leaf(self.obj)

    def is_sent(self, e):
        return self.sent is not None and e[0] == self.b.entry and e[1] == self.sent

    # -- where and when --

    def received(self, e, k):
        named = self.orders["receivers"][0]
        if k == self.a:
            return 0
        before = named[: named.index(k) + 1] if k in named else named + [k]
        return sum(e[3][self.a][l] for l in before)

    def returned(self, k):
        """What follows the arrival of a result from k."""
        named = self.orders["returns"][0]
        before = named[: named.index(k)] if k in named else named
        return sum(min((self.b.edges[x][3][l][self.z] for x in self.results), default=INF) for l in before)

    def may_go(self, x, k, l):
        named, closed = self.orders["returns"]
        return not (k != l and l == self.z and closed and k not in named and x in self.results)

    def after(self, x, k, l):
        _, _, j, t = self.b.edges[x]
        ns = self.b.time(j, l) + self.tail[j][l]
        if k != l and l == self.z and self.orders["returns"][0] and x in self.results:
            ns = max(ns, self.returned(k))
        return ns + t[k][l]

    def crossings(self, x):
        """Pairs of devices between which an edge may lie."""
        i, _, j, t = self.b.edges[x]
        done = [(k, self.head[i][k] + self.b.ns[i][k]) for k in self.mask[i]]
        if x in self.results:
            return {(k, l) for k, ns in done for l in self.mask[j] if self.may_go(x, k, l) and ns + self.after(x, k, l) <= self.upper}
        left = [(l, self.b.ns[j][l] + self.tail[j][l]) for l in self.mask[j]]
        return {(k, l) for k, ns in done for l, after in left if ns + t[k][l] + after <= self.upper}

    def find_paths(self):
        b, K = self.b, self.K
        self.head, self.tail = ([[0] * K for _ in range(b.n)] for _ in "ht")
        for x, e in enumerate(b.edges):
            i, _, j, t = e
            done = [(k, self.head[i][k] + b.ns[i][k]) for k in self.mask[i]]
            if x in self.results:
                ns = [min((y + t[k][l] for k, y in done if self.may_go(x, k, l)), default=INF) for l in range(K)]
            else:
                ns = [min([y + t[k][l] for k, y in done], default=INF) for l in range(K)]
            if self.is_sent(e):
                ns = [max(y, self.received(e, l)) for l, y in enumerate(ns)]
            self.head[j] = list(map(max, self.head[j], ns))
        for x in range(len(b.edges) - 1, -1, -1):
            i, _, j, t = b.edges[x]
            if x in self.results:
                ns = [min((self.after(x, k, l) for l in self.mask[j] if self.may_go(x, k, l)), default=INF) for k in range(K)]
            else:
                left = [(l, b.ns[j][l] + self.tail[j][l]) for l in self.mask[j]]
                ns = [min([row[l] + y for l, y in left], default=INF) for row in t]
            self.tail[i] = list(map(max, self.tail[i], ns))

    def narrow(self):
        """Numbers of each group on each device, and devices, by each other; False: they admit nothing."""
        for g, group in enumerate(self.groups):
            for k in range(self.K):
                low, high = self.low[g], self.high[g]
                low[k] = max(low[k], sum(self.mask[i] == {k} for i in group), self.size[g] - sum(high) + high[k])
                high[k] = min(high[k], sum(k in self.mask[i] for i in group), self.size[g] - sum(low) + low[k])
                if low[k] > high[k]:
                    return False
                for i in group if high[k] <= 0 else []:
                    self.mask[i].discard(k)
        return all(self.mask) and all(sum(self.low[g]) <= s <= sum(self.high[g]) and
                                      all(x <= y for x, y in zip(self.low[g], self.high[g])) for g, s in enumerate(self.size))

    def has_plans(self):
        b = self.b
        named, closed = self.orders["receivers"]
        self.mask = [set(x) for x in self.told]
        for e in b.edges if closed else []:
            if self.is_sent(e):
                self.mask[e[2]] &= {self.a, *named}
        self.low, self.high = [list(x) for x in self.least], [list(x) for x in self.most]
        while True:
            before = self.room()
            if not all(self.mask) or not self.narrow():
                return False
            self.find_paths()
            for i in range(b.n):
                self.mask[i] -= {k for k in self.mask[i] if self.head[i][k] + b.time(i, k) + self.tail[i][k] > self.upper}
            if self.room() == before:
                break
        self.cross = [self.crossings(x) for x in range(len(b.edges))]
        return all(self.cross)

    def room(self):
        """What is left; it gets less and never more."""
        return sum(map(len, self.mask)) + sum(map(sum, self.high)) - sum(map(sum, self.low))

    # -- what the multipliers add up to --

    def leaf(self, c):
        b, K, E = self.b, self.K, len(self.b.edges)
        if self.obj.get("cases") is None:
            self.size, self.least, self.most, self.reads = [], [], [], [0] * b.n
        if not self.has_plans():
            return self.upper
        demand(c.get("duals") is not None, "a case with plans has no multipliers")
        self.loads = rows(c["loads"], 4)
        kinds = {"port": (0, 1, 2), "channel": (0, 3), "none": (0,)}[b.p.congestion]
        for kind, which, head, tail in self.loads:
            demand(kind in kinds and which < (K * K if kind == 3 else K), "a load of no resource")
            demand(head + tail <= self.proven, "a load row for more than is proven")
        signs = 2 * E * K
        places = [0, E * K, signs, signs + E * K * K, signs + E * K * K + E, signs + E * K * K + E + b.n]
        counts = places[5] + len(self.loads)
        dual = [0] * (counts + len(self.size) * K)
        for place, value in rows(c["duals"], 2):
            demand(0 <= place < len(dual), "a multiplier of no row")
            demand(value >= 0 or not signs <= place < counts, "a negative multiplier of an inequality")
            dual[place] = value
        self.out, self.into, self.share, self.path, self.end, self.load = (
            dual[begin:end] for begin, end in zip(places, places[1:] + [counts]))  # fmt: skip
        self.numbers = rows(dual[counts:], K)
        self.priced = {}
        for (kind, which, head, tail), value in zip(self.loads, self.load):
            self.priced.setdefault((kind, which), []).append((head, tail, value))
        return self.verdict()

    def price(self, resources, head, tail):
        return sum(y for r in resources for h, q, y in self.priced.get(r, ()) if head >= h and tail >= q)

    def op_term(self, i):
        b, K, (outs, ins) = self.b, self.K, (end[i] for end in self.b.ends())
        behind = self.end[i] + sum(self.path[x] for x in outs)
        slope = behind - sum(self.path[x] for x in ins)
        costs = []
        for k in self.mask[i]:
            cost = (behind + self.price([(0, k)], self.head[i][k], self.tail[i][k])) * b.time(i, k)
            cost += sum([self.out[x * K + k] for x in outs]) + sum([self.into[x * K + k] for x in ins])
            cost -= sum(self.numbers[g][k] for g, group in enumerate(self.groups) if i in group)
            if self.sent is not None:
                cost -= self.reads[i] * self.numbers[-1][k]
            costs.append(cost)
        first = min(self.head[i][k] for k in self.mask[i])
        last = self.upper - min(b.time(i, k) + self.tail[i][k] for k in self.mask[i])
        return min(costs) + slope * (first if slope > 0 else last)

    def line_price(self, edges, k, l):
        """Multipliers of the load rows in which a tensor counts that goes from k to l to any of these readers."""
        b, i = self.b, self.b.edges[edges[0]][0]
        if k == l or k not in self.mask[i]:
            return 0
        after = min((b.time(b.edges[x][2], l) + self.tail[b.edges[x][2]][l] for x in edges if l in self.mask[b.edges[x][2]]), default=INF)
        return self.price([(1, k), (2, l), (3, k * self.K + l)], self.head[i][k] + b.time(i, k), after)

    def tensor_term(self, edges):
        b, K, total = self.b, self.K, 0
        shares, table = not b.p.by_edge and len(edges) > 1, b.edges[edges[0]][3]
        for x in edges:
            costs = []
            for k, l in self.cross[x]:
                once = shares and k != l
                price = self.path[x] + (0 if once else self.line_price([x], k, l))
                costs.append(price * table[k][l] - self.out[x * K + k] - self.into[x * K + l]
                             + (self.share[(x * K + k) * K + l] if once else 0))  # fmt: skip
            total += min(costs)
        for k, l in set().union(*(self.cross[x] for x in edges)) if shares else ():
            cost = self.line_price(edges, k, l) * table[k][l]
            cost -= sum([self.share[(x * K + k) * K + l] for x in edges if k != l])
            total += min(cost, 0)
        return total

    def verdict(self):
        b = self.b
        total = sum(y * (x[2] + x[3]) for y, x in zip(self.load, self.loads))
        slope = UNIT - sum(self.load) - sum(self.end)
        for low, high, numbers in zip(self.low, self.high, self.numbers):
            total += sum(u * (x if u > 0 else y) for x, y, u in zip(low, high, numbers))
        total += sum(self.op_term(i) for i in range(b.n))
        total += sum(self.tensor_term(edges) for edges in b.packets())
        total += slope * (self.proven if slope > 0 else self.upper)
        return max(0, min(-(-total // UNIT), self.upper))
