"""Operators of an ONNX model cut into unequal pieces (docs/shard.md)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Mapping

from ._lib import LongCall, UsageError, bytes_of, check, ffi, lib, take, text
from .cluster import Cluster
from .graph import Graph
from .problem import settle

SUMS = {"chain": 0, "star": 1, "tree": 2}


@dataclass(frozen=True)
class Strip:
    """Operators that are cut the same way; `units` are what sizes count."""

    name: str
    kind: str
    unit: str
    units: int
    operators: int
    class_number: int
    flops: int | None
    weight_bytes: int
    sums: int
    joins: int
    alternative: bool


@dataclass(frozen=True)
class Judgement:
    """A class of strips: one of them between its neighbours, whole and in its best cut; None where there is no time."""

    strip: str
    strips: int
    candidates: int
    whole_ns: int | None
    cut_ns: int | None
    sizes: str
    cut: bool


@dataclass(frozen=True)
class Choice:
    """What to cut: `cut` is "" where no cut pays. Times are those of quick plans, before the search for the plan.
    `all_cuts_bound_ns` is what no cut of the family can beat (docs/shard.md), None where it is not known."""

    cut: str
    whole_ns: int | None
    cut_ns: int | None
    judged: int
    classes: tuple[Judgement, ...]
    all_cuts_bound_ns: int | None = None


class Shards:
    """A model and what of it can be cut.

    shards = moirai.Shards("model.onnx", dims={"batch": 1})
    shards.write("cut.onnx", "layer0/mlp: 2:3:5; *attention: 2,4,6")
    """

    def __init__(self, model: str | os.PathLike[str], *, dims: Mapping[str, int] | None = None) -> None:
        keep = [ffi.new("char[]", f"{k}={v}".encode()) for k, v in (dims or {}).items()]
        options = ffi.new("moirai_onnx_options *")
        array = ffi.new("const char *[]", keep)
        options.dims, options.n_dims = array, len(keep)
        self._c = take("shards", lib.moirai_shards_open, bytes_of(model), options)

    @property
    def strips(self) -> list[Strip]:
        return [self._strip(i) for i in range(lib.moirai_shards_count(self._c))]

    def _strip(self, i: int) -> Strip:
        x = lib.moirai_shards_strip(self._c, i)
        return Strip(
            text(x.name),
            text(x.kind),
            text(x.unit),
            int(x.units),
            int(x.n_ops),
            int(x.class_number),
            None if x.flops < 0 else int(x.flops),
            int(x.weight_bytes),
            int(x.n_sums),
            int(x.n_joins),
            bool(x.alternative),
        )

    @property
    def whole(self) -> dict[str, str]:
        """Operators with weights that are in no strip, and why."""
        found = (lib.moirai_shards_refusal(self._c, i) for i in range(lib.moirai_shards_refusal_count(self._c)))
        return {text(r.op): text(r.why) for r in found}

    def write(self, path: str | os.PathLike[str], cut: str, sum: str = "chain") -> dict[str, Any]:
        """The model with `cut` applied; a file that exists is replaced. Returns what was cut."""
        report = ffi.new("moirai_shard_report *")
        check(lib.moirai_shards_write(self._c, cut.encode(), _sum(sum), bytes_of(path), report))
        return _report(report)

    def graph(self, cut: str, sum: str = "chain") -> Graph:
        """The graph of the cut model, without writing it."""
        return Graph(take("graph", lib.moirai_shards_graph, self._c, cut.encode(), _sum(sum), ffi.NULL))

    def choose(
        self,
        cluster: Cluster | str | Mapping[str, Any],
        *,
        rules: str = "onnxruntime",
        effort: float = 1,
        time_limit: float = 0,
        seed: int = 1,
        threads: int = 0,
        **problem: Any,
    ) -> Choice:
        """Which strips to cut, and how, for the shortest plan on this cluster; whole is always among the candidates.
        `problem` has keywords for `Problem`, wishes aside. An ONNX model has the launches of ONNX Runtime unless
        `runtime` says otherwise."""
        keep: list[Any] = [Cluster.open(cluster)]
        o = ffi.new("moirai_shard_choose_options *")
        problem.setdefault("runtime", "ort")
        settle(ffi.addressof(o, "problem"), keep, **problem)
        o.cluster = keep[0]._c
        if rules != "none":
            keep.append(take("rules", lib.moirai_rules_open, bytes_of(rules)))
            o.rules = keep[-1]
        lib.moirai_budget_init(ffi.addressof(o, "budget"))
        o.budget.effort, o.budget.time_limit_s, o.budget.seed, o.budget.threads = effort, time_limit, seed, threads
        call = LongCall()
        o.budget.interrupt = call.interrupt
        out = ffi.new("moirai_shard_choice *")
        call.run(lambda: int(lib.moirai_shards_choose(out, self._c, o)))
        try:
            return Choice(
                text(out.cut),
                _known(out.whole_ns),
                _known(out.cut_ns),
                int(out.n_judged),
                tuple(_judgement(out.judgement[i]) for i in range(out.n_classes)),
                int(out.least_ns) or None,
            )
        finally:
            lib.moirai_shard_choice_free(out)


def _known(ns: int) -> int | None:
    return None if ns < 0 else int(ns)


def _judgement(j: Any) -> Judgement:
    return Judgement(
        text(j.strip),
        int(j.n_strips),
        int(j.n_candidates),
        _known(j.whole_ns),
        _known(j.cut_ns),
        text(j.sizes),
        bool(j.cut),
    )


def _sum(how: str) -> int:
    if how not in SUMS:
        raise UsageError(f"sum '{how}': one of {', '.join(SUMS)}")
    return SUMS[how]


def _report(report: Any) -> dict[str, Any]:
    names = [name for name, _ in ffi.typeof("moirai_shard_report").fields if name != "cut"]
    return {**{name: int(getattr(report, name)) for name in names}, "cut": text(report.cut)}
