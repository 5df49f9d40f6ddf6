"""Prices on loads (docs/certificate.md, "Loads")."""

from .blocks import longest
from .files import MESSAGE, SPAN, demand, rows


class Loads:
    """A proof by prices on loads of a block between devices a and z, or of the time between requests."""

    def __init__(self, b, a, z, rate=False):
        self.b, self.p, self.K, self.rate, self.bytes = b, b.p, b.K, rate, False
        self.may = [list(b.allowed(i, a, z)) for i in range(b.n)]

    def case(self, obj):
        if obj.get("cases") is None:
            return self.leaf(obj)
        op, parts = obj["op"], obj["cases"]
        demand(not self.rate and op < self.b.n and len(parts) == self.K, "cases are not one per device")
        devices, proven = self.may[op], []
        for k in devices:
            self.may[op] = [k]
            proven.append(self.case(parts[k]))
        self.may[op] = devices
        return min(proven)

    def messages(self, obj, key):
        """[edge][device]"""
        numbers, unit, found = obj.get(key) or [], obj.get("unit") or 1, [[0] * self.K for _ in self.b.edges]
        demand(len(numbers) % (self.K + 1) == 0, "messages have not one number per device")
        last = -1
        for edge, *message in rows(numbers, self.K + 1):
            demand(last < edge < len(found), "messages of no edge, or edges that do not ascend")
            found[edge] = [m * unit for m in message]
            demand(all(abs(m) <= MESSAGE for m in found[edge]), "a message is too large")
            last = edge
        return found

    def offsets(self, price, head, tail, path):
        b, first, last = self.b, {}, {}

        def meet(r, before, after):
            first[r], last[r] = min(first.get(r, before), before), min(last.get(r, after), after)

        for i in range(b.n):
            for k in self.may[i]:
                meet(k, head[i][k], tail[i][k])
        for i, _, j, _ in b.edges:
            for k in self.may[i]:
                for l in self.may[j]:
                    for r in self.p.held(k, l, loads=True) if k != l else ():
                        meet(r, head[i][k] + b.ns[i][k], b.ns[j][l] + tail[j][l])
        return sum(y * min(path, first[r] + last[r] if r in first else path) for r, y in enumerate(price))

    def costs(self, price, bytes_, out, into):
        """What each operator costs on each device."""
        b, p, K = self.b, self.p, self.K
        cost = [{k: price[k] * b.ns[i][k] + bytes_[k] * (p.bytes[b.ops[i]] if i in b.inside else 0)
                 for k in self.may[i]} for i in range(b.n)]  # fmt: skip
        for x, e in enumerate(b.edges):
            for k in self.may[e[0]]:
                cost[e[0]][k] += out[x][k]
            for k in self.may[e[2]]:
                cost[e[2]][k] += into[x][k]
        for edges in b.packets():
            i, table = b.edges[edges[0]][0], b.edges[edges[0]][3]
            for k in self.may[i]:
                for l in range(K):
                    taken = sum(max(0, out[x][k] + into[x][l]) for x in edges if l in self.may[b.edges[x][2]])
                    paid = sum(price[r] for r in p.held(k, l, loads=True)) * table[k][l] if k != l else 0
                    cost[i][k] -= max(0, taken - paid)
        return cost

    def shifts(self, obj, cost, head, tail, path):
        """Adds to the costs what of each operator lies within each shift; what that adds to the offsets, and to all prices."""
        total, prices, numbers = 0, 0, obj.get("shifts") or []
        demand(len(numbers) % (self.K + 2) == 0, "shifts have not two times and one price per device")
        for begin, end, *price in rows(numbers, self.K + 2):
            demand(max(price) <= 1 << 40, "a price of a shift is too large")
            total, prices = total + sum(price) * min(begin + end, path), prices + sum(price)
            for i in range(self.b.n):
                for k in self.may[i]:
                    h, t, q = head[i][k], self.b.ns[i][k], tail[i][k]
                    left, right = max(0, begin - h), max(0, end - q)  # what may lie before the shift, and behind it
                    within = t - max(left, right) if not (left and right) else min(t - left, t - right, path - begin - end)
                    cost[i][k] += price[k] * max(0, within)
        return total, prices

    def paths(self, obj, cost):
        """Adds the prices of paths to the costs of their operators; what that adds to all prices."""
        prices, numbers, at, edges = 0, obj.get("paths") or [], 0, {(e[0], e[2]) for e in self.b.edges}
        while at < len(numbers):
            price, n = (*numbers[at : at + 2], 0)[:2]
            path = numbers[at + 2 : at + 2 + n]
            demand(price <= 1 << 40, "a price of a path is too large")
            demand(0 < n == len(path) and max(path) < self.b.n, "a path has no operators, or ends early")
            demand(all(pair in edges for pair in zip(path, path[1:])), "a path's operator does not read what the one before makes")
            for i in path:
                for k in self.may[i]:
                    cost[i][k] += price * self.b.ns[i][k]
            prices, at = prices + price, at + 2 + n
        return prices

    def leaf(self, obj):
        b, p, path = self.b, self.p, 0
        if not self.rate:
            may = tuple(map(tuple, self.may))
            head, tail = b.reach(True, *may), b.reach(False, *may)
            path = longest(head, tail, b.ns, may)
        if obj.get("prices") is None:
            return path
        price, bytes_ = obj["prices"], obj.get("byte_prices")
        self.bytes |= bytes_ is not None
        bytes_ = [0] * self.K if bytes_ is None else bytes_
        demand(len(price) == p.resources(loads=True) and len(bytes_) == self.K, "prices have not one number each")
        cost = self.costs(price, bytes_, self.messages(obj, "from"), self.messages(obj, "to"))
        demand(not self.rate or obj.get("shifts") is None and obj.get("paths") is None, "loads of a period have shifts or paths")
        total, prices = (0, 0) if self.rate else self.shifts(obj, cost, head, tail, path)
        prices += self.paths(obj, cost)
        total += sum(min(c.values()) for c in cost) - sum(u * m for u, m in zip(bytes_, p.capacity))
        prices += sum(price)
        if not self.rate:
            total += self.offsets(price, head, tail, path)
        if total <= 0 or not prices:
            return path
        return max(path, min(SPAN, total // prices if self.rate else -(-total // prices)))
