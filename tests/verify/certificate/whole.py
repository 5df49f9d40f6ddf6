"""From what is proven of blocks to what is proven of a problem."""

from .files import INF, LAST, check_shape, demand
from .leaves import prove_leaves, read_leaves
from .loads import Loads
from .pricing import Pricing
from .search import Search


def prove_pair(b, pair, apart, bound, firsts, lasts):
    """Raises what is known of a pair of devices; what was proven with prices on bytes is kept apart."""
    at = a, z = pair["entry"], pair["exit"]
    demand(a in firsts and z in lasts, "entry or exit of a pair is out of range")
    before = ns = bound[at]
    if pair.get("search") is not None:
        ns = max(ns, Search(b, a, z, pair["search"]).bound())
    if pair.get("loads") is not None:
        loads = Loads(b, a, z)
        proven = loads.case(pair["loads"])
        if loads.bytes:  # capacities of equal devices may differ: it holds for this pair alone
            apart[at] = max(apart[at], proven)
        else:
            ns = max(ns, proven)
    demand(b.kinds is not None or not b.inside or pair.get("leaves") is None, "leaves of a class that was not described")
    bound[at] = max(ns, prove_leaves(b, a, z, before, pair.get("leaves") or []))
    most = max(bound[at], apart[at])
    demand(most >= pair["lower_ns"], f"{pair['lower_ns']} ns are claimed, {most} proven")


def prove_class(b, obj):
    """What is proven between all pairs of devices."""
    firsts, lasts = range(b.K if b.entry is not None else 1), range(b.K if b.exit is not None else 1)
    bound = {(a, z): b.path(a, z) if a in firsts and z in lasts else 0 for a in range(b.K) for z in range(b.K)}
    least, apart, most = b.equal_devices(), dict.fromkeys(bound, 0), {}
    if obj.get("component_kind") is not None:
        b.read_class(obj)
    elif obj.get("pairs") is None:
        return bound
    for pair in obj.get("pairs") or []:
        prove_pair(b, pair, apart, bound, firsts, lasts)

    def image(a, z):
        return (least[a], least[z], b.entry is not None and b.exit is not None and a != z)

    for at, ns in bound.items():
        most[image(*at)] = max(most.get(image(*at), 0), ns)
    return {at: max(most[image(*at)], apart[at]) for at in bound}


def memory_leaf(b, a, z, leaf, proven, unit, price, cheapest):
    low, high = proven, LAST
    for c in leaf.counts:
        if c[0] == -2:
            low, high = max(low, c[3]), min(high, c[4])
    if low > high:
        return LAST * unit
    value = low * unit + cheapest
    if not leaf.priced:
        return value
    demand(leaf.T >= high, "prices end before the lengths that they are for")
    paid = Pricing(b, a, z, leaf, price).sum
    if paid == INF:
        return LAST * unit
    worth, least, at = 0, unit * leaf.T, 0
    for q in range(len(leaf.buckets) - 1):
        rate = sum(y for (_, x), y in leaf.price.items() if x == q)
        end = at + leaf.length_of(q)
        if at <= low <= end:
            least = min(least, unit * low - worth - rate * (low - at))
        worth, at = worth + rate * (end - at), end
        if at >= low:
            least = min(least, unit * at - worth)
    return max(value, paid - leaf.count_term() + least)


def chain_cost(p, cuts, blocks, value, unit, price):
    cost = {0: 0}
    for i, c in enumerate(blocks):
        out = p.may[cuts[i]] if i < len(cuts) else [0]
        cost = {z: min(cost[a] + value[c][a, z] for a in cost) for z in out}
        for z in out if i < len(cuts) else []:
            cost[z] += p.ns[cuts[i]][z] * unit + price[z] * p.bytes[cuts[i]]
    return cost[0]


def prove_memory(p, cuts, blocks, classes, bound, obj):
    unit, price = obj["unit"], obj["byte_prices"]
    demand(len(price) == p.K, "byte_prices has not one price per device")
    cheap = [sum(min(price[k] for k in b.may[i]) * b.bytes[i] for i in b.inside) for b in classes]
    value = [{at: ns * unit + cheap[c] for at, ns in bound[c].items()} for c in range(len(classes))]
    for pair in obj["pairs"]:
        c, a, z = pair["class"], pair["entry"], pair["exit"]
        demand(c < len(classes) and a < p.K and z < p.K, "class, entry or exit of a pair is out of range")
        b = classes[c]
        demand((b.entry is not None or not a) and (b.exit is not None or not z), "a pair of no class")
        demand(b.kinds is not None or not b.inside, "a pair of a class that was not described")
        leaves = read_leaves(b, a, z, pair["leaves"], False)
        if leaves:
            value[c][a, z] = max(value[c][a, z], min(
                memory_leaf(b, a, z, x, bound[c][a, z], unit, price, cheap[c]) for x in leaves))  # fmt: skip
    total = chain_cost(p, cuts, blocks, value, unit, price) - sum(u * m for u, m in zip(price, p.capacity))
    return min(max(0, -(-total // unit)), LAST)


def prove(whole, cert):
    """What the certificate proves: the length of a plan, or the time between requests."""
    objective = cert.get("objective")
    demand(objective in (None, "latency", "rate"), "objective is neither rate nor latency")
    check_shape("rate" if objective == "rate" else "certificate", cert)
    demand(cert["operators"] == whole.n and cert["certified_bound_ns"] <= cert["lower_bound_ns"], "claims of another problem")
    if objective != "rate":
        proven = prove_one(whole, cert)
    else:
        proven = 0
        if cert.get("loads") is not None:
            proven = Loads(whole.block(range(whole.n), False, False), 0, 0, True).case(cert["loads"])
        if cert.get("in_flight") is not None:
            proven = max(proven, prove_one(whole, cert) // cert["in_flight"])
    demand(proven >= cert["certified_bound_ns"], f"{cert['certified_bound_ns']} ns are claimed, {proven} proven")
    return min(proven, LAST)


def prove_one(whole, cert):
    """Of one request."""
    p, gone = whole, cert.get("floating")
    if gone is not None:
        demand(all(i < p.n for i in gone) and len(set(gone)) == len(gone) < p.n, "what floats is no part of it")
        p = p.without(gone)
    demand(all(i < p.n for i in cert["cuts"]) and len(set(cert["cuts"])) == len(cert["cuts"]), "cuts are no operators")
    cuts = [p.place[i] for i in cert["cuts"]]
    block = [0] * p.n
    for i, _, j, _ in p.edges:
        block[j] = max(block[j], block[i] + (i in cuts))
    demand([block[c] for c in cuts] == list(range(len(cuts))), "a cut does not come after those before it")
    for i in range(p.n):
        mine = block[i] + (i in cuts)
        demand(mine >= len(cuts) or any(block[e[2]] == mine for e in p.edges if e[0] == i), "an operator need not come before a cut")
    numbers = cert["block_class"]
    demand(len(numbers) == len(cuts) + 1, "block_class has not one number per block")
    classes = []
    for x, c in enumerate(numbers):
        ops = cuts[x - 1 : x] * (x > 0) + [i for i in range(p.n) if block[i] == x and i not in cuts] + cuts[x : x + 1]
        b = p.block(ops, x > 0, x < len(cuts))
        demand(c <= len(classes), "classes are not numbered in order")
        if c == len(classes):
            classes.append(b)
        demand(b.is_like(classes[c]), "a block is no copy of the first of its class")
    demand(len(cert["classes"]) == len(classes), "classes has not one entry per class")
    bound = [prove_class(b, obj) for b, obj in zip(classes, cert["classes"])]
    proven = chain_cost(p, cuts, numbers, bound, 1, [0] * p.K)
    if cert.get("memory") is not None:
        proven = max(proven, prove_memory(p, cuts, numbers, classes, bound, cert["memory"]))
    return min(proven, LAST)
