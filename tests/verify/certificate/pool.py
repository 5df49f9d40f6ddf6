"""One pool of all devices."""

from .files import INF, demand, rows


def prove_pool(b, a, z, obj, view):
    """One pool of all devices; `view`: heads, tails and arcs of the whole in place of longest paths."""
    T, step, width, weight, price = (obj[x] for x in ("length_ns", "step_ns", "bucket_ns", "weights", "prices"))
    demand(len(weight) == b.K and len(price) == (T - 1) // width + 1, "not one weight per device, price per bucket")
    may = [b.allowed(i, a, z) for i in range(b.n)]
    head, tail, more = view or (b.heads(may), b.tails(may), [])
    arcs = [(i, j, b.apart(i, j, lambda k, l, t=t: t[k][l], may)) for i, _, j, t in b.edges] + more
    window = [{k: (head[i][k], T - b.time(i, k) - tail[i][k]) for k in may[i]} for i in range(b.n)]
    window = [{k: w for k, w in x.items() if w[0] <= w[1]} for x in window]
    demand(all(window), "an operator has no start")
    first = [min(w[0] for w in x.values()) for x in window]
    steps = [(max(w[1] for w in x.values()) - f) // step + 1 for x, f in zip(window, first)]
    late = [-(-(first[j] - first[i] - apart) // step) for i, j, apart in arcs]
    for i in range(b.n - 1, -1, -1):
        for (x, j, _), m in zip(arcs, late):
            if x == i:
                steps[i] = min(steps[i], steps[j] + m)
        demand(steps[i] >= 1, "an operator has no start")
    extra = [{} for _ in range(b.n)]
    for e, g, value in rows(obj["flows"], 3):
        demand(e < len(arcs) and g >= 1 and g - late[e] >= 1, "a flow of no step")
        i, j, _ = arcs[e]
        if g < steps[i]:
            extra[i][g] = extra[i].get(g, 0) + value
            extra[j][g - late[e]] = extra[j].get(g - late[e], 0) - value
    start = [0]
    for q, y in enumerate(price):
        start.append(start[-1] + y * (min((q + 1) * width, T) - q * width))

    def until(t):
        q = min(t // width, len(price) - 1)
        return start[q] + price[q] * (t - q * width)

    def pays(begin, end, ns):
        at = {begin, end} | {q * width for q in range(begin // width + 1, end // width + 1)}
        at |= {q * width - ns for q in range((begin + ns) // width + 1, (end + ns) // width + 1)}
        return min(until(t + ns) - until(t) for t in at)

    total = 0
    for i in range(b.n):
        flow, least = 0, INF
        for g in range(steps[i]):
            flow += extra[i].get(g, 0)
            begin = first[i] + g * step
            for k, w in window[i].items():
                at = (max(w[0], begin), min(w[1], begin + step - 1))
                if at[0] <= at[1]:
                    least = min(least, weight[k] * pays(*at, b.time(i, k)) + flow)
        total += least if least < INF else 1 << 63
    demand(total > sum(weight) * start[-1], "a pool's prices exclude nothing")
    return T + 1
