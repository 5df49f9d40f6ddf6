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

    def crosses(self, x, k, l):
        i, _, j, _ = self.b.edges[x]
        return (k in self.mask[i] and l in self.mask[j] and self.may_go(x, k, l)
                and self.head[i][k] + self.b.time(i, k) + self.after(x, k, l) <= self.upper)  # fmt: skip

    def find_paths(self):
        b, K = self.b, self.K
        self.head, self.tail = ([[0] * K for _ in range(b.n)] for _ in "ht")
        for x, e in enumerate(b.edges):
            i, _, j, t = e
            for l in range(K):
                ns = min((self.head[i][k] + b.time(i, k) + t[k][l] for k in self.mask[i] if self.may_go(x, k, l)), default=INF)
                self.head[j][l] = max(self.head[j][l], ns, self.received(e, l) if self.is_sent(e) else 0)
        for x in range(len(b.edges) - 1, -1, -1):
            i, _, j, _ = b.edges[x]
            for k in range(K):
                ns = min((self.after(x, k, l) for l in self.mask[j] if self.may_go(x, k, l)), default=INF)
                self.tail[i][k] = max(self.tail[i][k], ns)

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
            before = repr((self.mask, self.low, self.high))
            if not all(self.mask) or not self.narrow():
                return False
            self.find_paths()
            for i in range(b.n):
                self.mask[i] -= {k for k in self.mask[i] if self.head[i][k] + b.time(i, k) + self.tail[i][k] > self.upper}
            if repr((self.mask, self.low, self.high)) == before:
                break
        return all(any(self.crosses(x, k, l) for k in range(self.K) for l in range(self.K)) for x in range(len(b.edges)))

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
        self.dual = {}
        for place, value in rows(c["duals"], 2):
            demand(0 <= place < counts + len(self.size) * K, "a multiplier of no row")
            demand(value >= 0 or not signs <= place < counts, "a negative multiplier of an inequality")
            self.dual[place] = value
        d = self.dual.get
        self.out, self.into, self.share, self.path, self.end, self.load = (
            (lambda x, base=base: d(base + x, 0)) for base in places)  # fmt: skip
        self.number = lambda g, k: d(counts + g * K + k, 0)
        return self.verdict()

    def price(self, kind_which, head, tail):
        return sum(self.load(r) for r, x in enumerate(self.loads) if x[:2] in kind_which and head >= x[2] and tail >= x[3])

    def op_term(self, i):
        b, K = self.b, self.K
        behind = self.end(i) + sum(self.path(x) for x, e in enumerate(b.edges) if e[0] == i)
        slope = behind - sum(self.path(x) for x, e in enumerate(b.edges) if e[2] == i)
        costs = []
        for k in self.mask[i]:
            cost = (behind + self.price([(0, k)], self.head[i][k], self.tail[i][k])) * b.time(i, k)
            cost += sum(self.out(x * K + k) for x, e in enumerate(b.edges) if e[0] == i)
            cost += sum(self.into(x * K + k) for x, e in enumerate(b.edges) if e[2] == i)
            cost -= sum(self.number(g, k) for g, group in enumerate(self.groups) if i in group)
            if self.sent is not None:
                cost -= self.reads[i] * self.number(len(self.groups), k)
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
        pairs = [(k, l) for k in range(K) for l in range(K)]
        for x in edges:
            costs = []
            for k, l in pairs:
                if self.crosses(x, k, l):
                    once = shares and k != l
                    price = self.path(x) + (0 if once else self.line_price([x], k, l))
                    costs.append(price * table[k][l] - self.out(x * K + k) - self.into(x * K + l)
                                 + (self.share((x * K + k) * K + l) if once else 0))  # fmt: skip
            total += min(costs)
        for k, l in pairs if shares else []:
            cost = self.line_price(edges, k, l) * table[k][l]
            cost -= sum(self.share((x * K + k) * K + l) for x in edges if k != l)
            if cost < 0 and any(self.crosses(x, k, l) for x in edges):
                total += cost
        return total

    def verdict(self):
        b, K = self.b, self.K
        total = sum(self.load(r) * (x[2] + x[3]) for r, x in enumerate(self.loads))
        slope = UNIT - sum(self.load(r) for r in range(len(self.loads))) - sum(self.end(i) for i in range(b.n))
        for g in range(len(self.size)):
            for k in range(K):
                u = self.number(g, k)
                total += u * (self.low[g][k] if u > 0 else self.high[g][k])
        total += sum(self.op_term(i) for i in range(b.n))
        total += sum(self.tensor_term(edges) for edges in b.packets())
        total += slope * (self.proven if slope > 0 else self.upper)
        return max(0, min(-(-total // UNIT), self.upper))
