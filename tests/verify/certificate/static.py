"""Static proofs: multipliers of a linear programme."""

from .files import INF, UNIT, demand, rows


class Static:
    """Multipliers of a linear programme."""

    def __init__(self, b, a, z, proven, obj):
        self.b, self.proven, self.upper, self.obj, self.K = b, proven, obj["upper_ns"], obj, b.K
        self.mask = [set(b.allowed(i, a, z)) for i in range(b.n)]

    # -- where and when --

    def crossings(self, x):
        """Pairs of devices between which an edge may lie."""
        i, _, j, t = self.b.edges[x]
        done = [(k, self.head[i][k] + self.b.ns[i][k]) for k in self.mask[i]]
        left = [(l, self.b.ns[j][l] + self.tail[j][l]) for l in self.mask[j]]
        return {(k, l) for k, ns in done for l, after in left if ns + t[k][l] + after <= self.upper}

    def find_paths(self):
        b, K = self.b, self.K
        self.head, self.tail = ([[0] * K for _ in range(b.n)] for _ in "ht")
        for i, _, j, t in b.edges:
            done = [(k, self.head[i][k] + b.ns[i][k]) for k in self.mask[i]]
            ns = [min([y + t[k][l] for k, y in done], default=INF) for l in range(K)]
            self.head[j] = list(map(max, self.head[j], ns))
        for i, _, j, t in reversed(b.edges):
            left = [(l, b.ns[j][l] + self.tail[j][l]) for l in self.mask[j]]
            ns = [min([row[l] + y for l, y in left], default=INF) for row in t]
            self.tail[i] = list(map(max, self.tail[i], ns))

    def has_plans(self):
        b, before = self.b, None
        while before != (before := sum(map(len, self.mask))):  # what is left gets less and never more
            if not all(self.mask):
                return False
            self.find_paths()
            for i in range(b.n):
                self.mask[i] -= {k for k in self.mask[i] if self.head[i][k] + b.time(i, k) + self.tail[i][k] > self.upper}
        self.cross = [self.crossings(x) for x in range(len(b.edges))]
        return all(self.cross)

    # -- what the multipliers add up to --

    def bound(self):
        b, K, E = self.b, self.K, len(self.b.edges)
        if not self.has_plans():
            return self.upper
        self.loads = rows(self.obj["loads"], 4)
        kinds = {"port": (0, 1, 2), "channel": (0, 3), "none": (0,)}[b.p.congestion]
        for kind, which, head, tail in self.loads:
            demand(kind in kinds and which < (K * K if kind == 3 else K), "a load of no resource")
            demand(head + tail <= self.proven, "a load row for more than is proven")
        signs = 2 * E * K
        places = [0, E * K, signs, signs + E * K * K, signs + E * K * K + E, signs + E * K * K + E + b.n]
        counts = places[5] + len(self.loads)
        dual = [0] * counts
        for place, value in rows(self.obj["duals"], 2):
            demand(0 <= place < counts, "a multiplier of no row")
            demand(value >= 0 or place < signs, "a negative multiplier of an inequality")
            dual[place] = value
        self.out, self.into, self.share, self.path, self.end, self.load = (
            dual[begin:end] for begin, end in zip(places, places[1:] + [counts]))  # fmt: skip
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
        total += sum(self.op_term(i) for i in range(b.n))
        total += sum(self.tensor_term(edges) for edges in b.packets())
        total += slope * (self.proven if slope > 0 else self.upper)
        return max(0, min(-(-total // UNIT), self.upper))
