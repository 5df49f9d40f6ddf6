"""Numbers, refusals, and the shape of a certificate: which keys each kind of object has (docs/formats.md)."""

import json
from functools import cache

INF = float("inf")
LAST = (1 << 63) - 1
TIME = 1 << 61
SPAN = 1 << 60
INT = (1 << 31) - 1
MESSAGE = 1 << 62


class Wrong(Exception):
    """What does not hold."""


def demand(holds, what):
    if not holds:
        raise Wrong(what)


class Real:
    """A number that is not whole."""


def pairs_once(pairs):
    demand(len(dict(pairs)) == len(pairs), "a key is there twice")
    return dict(pairs)


def parse(text):
    def none(word):
        raise Wrong(f"{word} is no JSON")

    try:
        return json.loads(text, object_pairs_hook=pairs_once, parse_float=lambda _: Real(), parse_constant=none)
    except (ValueError, RecursionError) as error:
        raise Wrong(f"no JSON: {error}") from error


# The least and the greatest of each kind of number.
RANGE = {
    "count": (0, INT), "some": (1, INT), "node": (-2, INT), "case": (-2, LAST), "ns": (0, LAST), "length": (0, LAST // 8),
    "span": (0, SPAN), "time": (0, TIME), "step": (1, TIME), "worth": (-TIME, TIME), "price": (0, 1 << 40), "unit": (1, 1 << 40),
    "fine": (0, 1 << 50), "message": (-MESSAGE, MESSAGE), "scale": (1, MESSAGE),
}  # fmt: skip
CLAIMS = "operators count, lower_bound_ns ns, certified_bound_ns ns, problem? text, problem_digest? text"
CHAIN = "floating? count*, cuts count*, block_class count*, classes class[], memory? memory, windows? gone"
CLASS = "component_kind count*, trees count*3[], shared? count, pairs? pair[]"
CASES = "receivers? count*, open? bool, counts? case*5"
LOADS = "prices price*, byte_prices? fine*, unit? scale, shifts? time*, paths? time*, from? message*, to? message*"
# By kind of object its forms, the first whose own key is there ("": none is asked for). Behind the name of a key "?" says that it may be
# missing; *5 is a list of numbers, five that belong together; [] a list of objects; "gone" what earlier versions have written.
FORMS = {
    "certificate": {"": f"{CLAIMS}, {CHAIN}"},
    "rate": {"in_flight": f"{CLAIMS}, {CHAIN}, in_flight some, loads? loads", "": f"{CLAIMS}, loads loads"},
    "class": {"component_kind": CLASS, "trees": CLASS, "": "pairs? pair[]"},
    "pair": {"": "entry count, exit count, lower_ns ns, search? search, leaves? leaf[], loads? loads, static? gone, pool? gone"},
    "search": {"": "length_ns length, tree node*"},
    "loads": {"cases": "op count, cases loads[]", "prices": LOADS, "": ""},
    "leaf": {"prices": f"{CASES}, length_ns span, step_ns step, buckets count*, prices fine*3, count_prices? worth*", "": CASES},
    "memory": {"": "unit unit, byte_prices fine*, pairs memory pair[]"},
    "memory pair": {"": "class count, entry count, exit count, leaves leaf[]"},
}


@cache
def keys_of(form):
    """(key, whether it may be missing, what it is) of a form."""
    return [(key.rstrip("?"), key.endswith("?"), what) for key, _, what in (x.partition(" ") for x in form.split(", ") if x)]


def rows(numbers, each):
    """A list of numbers as tuples of so many."""
    return list(zip(*(iter(numbers),) * each))


def check_value(name, value, kind):
    of, _, each = kind.partition("*")
    if kind.startswith("gone"):
        raise Wrong(f"{name}: such proofs are no longer verified")
    if kind.endswith("[]"):
        demand(type(value) is list, f"{name} is no list")
        for item in value:
            check_value(name, item, kind[:-2])
    elif kind in ("text", "bool"):
        demand(type(value) is (str if kind == "text" else bool), f"{name} is of another type")
    elif of not in RANGE:
        check_shape(kind, value)
    else:
        numbers, (least, most) = value if of != kind else [value], RANGE[of]
        demand(type(numbers) is list and len(numbers) % int(each or 1) == 0, f"{name} is no list of numbers")
        demand(all(type(x) is int and least <= x <= most for x in numbers), f"{name} is out of range")


def check_shape(kind, value):
    demand(type(value) is dict, f"{kind} is no object")
    for key, may_miss, what in keys_of(next(form for own, form in FORMS[kind].items() if not own or value.get(own) is not None)):
        item = value.get(key)
        demand(item is not None or may_miss, f"{kind}: {key} is missing")
        if item is not None:
            check_value(f"{kind}: {key}", item, what)
