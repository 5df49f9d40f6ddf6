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
        """What no resource is used for: before its first task can begin, and after its last one can end."""
        b, ends = self.b, [[(path, 0)] for _ in price]
        for i in range(b.n):
            for k in self.may[i]:
                ends[k].append((head[i][k], tail[i][k]))
        for i, _, j, _ in b.edges:
            for k, l in ((k, l) for k in self.may[i] for l in self.may[j] if k != l):
                for r in self.p.held(k, l, loads=True):
                    ends[r].append((head[i][k] + b.ns[i][k], b.ns[j][l] + tail[j][l]))
        used = [x[1:] or x for x in ends]
        return sum(y * min(path, min(x[0] for x in u) + min(x[1] for x in u)) for y, u in zip(price, used))

    def costs(self, price, bytes_, out, into):
        """What each operator costs on each device."""
        b = self.b
        cost = [{k: price[k] * ns[k] + bytes_[k] * size for k in may} for ns, size, may in zip(b.ns, b.bytes, self.may)]
        for (i, _, j, _), sent, got in zip(b.edges, out, into):
            for at, message in ((i, sent), (j, got)):
                for k in self.may[at]:
                    cost[at][k] += message[k]
        for edges in b.packets():
            i, _, _, table = b.edges[edges[0]]
            for k in self.may[i]:
                for l in range(self.K):
                    taken = sum(max(0, out[x][k] + into[x][l]) for x in edges if l in self.may[b.edges[x][2]])
                    paid = sum(price[r] for r in self.p.held(k, l, loads=True)) * table[k][l] if k != l else 0
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
        prices, rest, edges = 0, obj.get("paths") or [], {(e[0], e[2]) for e in self.b.edges}
        while rest:
            price, n = (*rest, 0)[:2]
            path, rest = rest[2 : 2 + n], rest[2 + n :]
            demand(price <= 1 << 40, "a price of a path is too large")
            demand(0 < n == len(path) and max(path) < self.b.n, "a path has no operators, or ends early")
            demand(all(pair in edges for pair in zip(path, path[1:])), "a path's operator does not read what the one before makes")
            prices += price
            for i in path:
                for k in self.may[i]:
                    cost[i][k] += price * self.b.ns[i][k]
        return prices

    def leaf(self, obj):
        b, p, path, total = self.b, self.p, 0, 0
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
        demand(not self.rate or obj.get("shifts") is None and obj.get("paths") is None, "loads of a period have shifts or paths")
        cost, prices = self.costs(price, bytes_, self.messages(obj, "from"), self.messages(obj, "to")), sum(price)
        if not self.rate:
            total, more = self.shifts(obj, cost, head, tail, path)
            total, prices = total + self.offsets(price, head, tail, path), prices + more + self.paths(obj, cost)
        total += sum(min(c.values()) for c in cost) - sum(u * m for u, m in zip(bytes_, p.capacity))
        if total <= 0 or not prices:
            return path
        return max(path, min(SPAN, total // prices if self.rate else -(-total // prices)))
