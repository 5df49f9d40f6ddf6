"""From problems to plans: place, plan, compare, prove, refine."""

from __future__ import annotations

import inspect
import os
import tempfile
import time
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Mapping, Sequence

from ._lib import Error, LongCall, UsageError, bytes_of, check, ffi, lib, owned, text
from .cluster import Cluster
from .graph import Graph, is_onnx
from .plan import Plan
from .problem import Problem


@dataclass(frozen=True)
class Progress:
    """News of a running search; None where there is nothing yet."""

    seconds: float
    letter: str
    makespan_ns: int | None
    lower_bound_ns: int | None
    work: int
    note: str | None


Listener = Callable[[Progress], None]


def placers() -> dict[str, str]:
    """The placers of this build that can run, with a line each."""
    found = {}
    for i in range(lib.moirai_placer_count()):
        p = lib.moirai_placer_at(i)
        why = ffi.new("const char **")
        if not p.available or p.available(why):
            found[text(p.name)] = text(p.summary)
    return found


def place(
    problem: Problem,
    placer: str = "moirai",
    *,
    seed: int = 1,
    time_limit: float = 0,
    gap: float = 0.01,
    effort: float = 1,
    threads: int = 0,
    settings: Mapping[str, Any] | None = None,
    start: Plan | None = None,
    certificate: str | os.PathLike[str] | None = None,
    progress: Listener | bool | None = None,
    objective: str = "latency",
    in_flight: int = 0,
    latency_limit_ms: float = 0,
    copies: int = 0,
    kind: str | None = None,
) -> Plan:
    """A checked plan of the problem.

    `time_limit` is in seconds (0: none), `gap` the proven distance at which the search stops, `threads` 0 takes all
    cores, `settings` are the placer's own parameters. `certificate` names a file for the proof. `progress` is called
    with news on this thread; True shows a bar where tqdm is installed. Ctrl-C ends the search with the best plan so
    far, whose `interrupted` is then True.

    `objective` "rate" asks for as many inferences per second as can be, with at most `in_flight` requests at once (0:
    twice the devices), none of which takes longer than `latency_limit_ms` (0: no limit): the plan's `rate` has what is
    reached, and its `copies` of the network, at most so many (0: any number; docs/rate.md). `kind` "latency", "stages",
    "replicas" or "loads" asks for a plan of that kind.
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"place: {problem!r:.80} is no moirai.Problem: moirai.plan takes a network and a cluster")
    if objective not in ("latency", "rate"):
        raise ValueError(f"place: objective {objective!r:.40}: expected 'latency' or 'rate'")
    if objective == "latency" and (in_flight or latency_limit_ms or copies or kind):
        raise ValueError("place: in_flight, latency_limit_ms, copies and kind are for objective='rate'")
    if objective == "rate" and (placer != "moirai" or settings):
        raise ValueError("place: objective='rate' has a search of its own: no placer or settings")
    keep: list[Any] = []
    o = ffi.new("moirai_place_options *")
    lib.moirai_place_options_init(o)
    budget = o.budget
    budget.seed, budget.time_limit_s, budget.effort, budget.threads = seed, time_limit, effort, threads
    o.gap = gap
    given = [(k, _setting(v)) for k, v in (settings or {}).items()]
    array = ffi.new("moirai_setting[]", len(given))
    for item, (name, value) in zip(array, given):
        keep += [ffi.new("char[]", name.encode()), ffi.new("char[]", value.encode())]
        item.name, item.value = keep[-2:]
    o.setting, o.n_settings = array, len(given)
    if start is not None:
        o.start = start._c
    if certificate is not None:
        keep.append(ffi.new("char[]", bytes_of(certificate)))
        o.certificate_path = keep[-1]
    bar = _Bar() if progress is True else None
    listener = bar.show if bar else progress if callable(progress) else None
    call = LongCall(listener)
    if listener is not None:
        news = ffi.callback("moirai_progress_fn", lambda _data, n: call.post(_news(n)))
        keep.append(news)
        budget.progress = news
    budget.interrupt = call.interrupt
    out = ffi.new("moirai_plan **")
    many = ffi.new("moirai_rate_options *")
    many.budget, many.gap, many.start = o.budget, o.gap, o.start
    many.certificate_path = o.certificate_path
    many.in_flight, many.latency_limit_ns, many.copies = in_flight, int(latency_limit_ms * 1e6), copies
    if kind is not None:
        keep.append(ffi.new("char[]", kind.encode()))
        many.kind = keep[-1]
    try:
        if objective == "rate":
            call.run(lambda: int(lib.moirai_rate_place(out, problem._c, many)))
        else:
            call.run(lambda: int(lib.moirai_place(out, problem._c, placer.encode(), o)))
    finally:
        if bar:
            bar.close()
    plan = Plan(owned("plan", out[0]), problem)
    plan.interrupted = call.interrupted
    return plan


def plan(
    model: Graph | str | os.PathLike[str],
    cluster: Cluster | str | Mapping[str, Any],
    placer: str = "moirai",
    *,
    rules: str | None = None,
    problem: Mapping[str, Any] | None = None,
    split_operators: str = "off",
    **options: Any,
) -> Plan:
    """A network on a cluster: graph, fusion by `rules`, problem, search. `problem` has keywords for `Problem`, everything
    else is for `place`.

    A file or a name gets what the command `moirai plan` gives it: fusion by `onnxruntime`, 20 s unless `effort` or
    `time_limit` says otherwise, and for an ONNX model the launches of ONNX Runtime. A Graph is taken as it is, without
    fusion: it may be fused already, or belong to a module that runs operator by operator.

    `split_operators` cuts operators of an ONNX model into pieces first: "auto" chooses which and how (docs/shard.md), or a
    cut as `Shards.write` takes it. The plan belongs to the cut model then: `plan.cut` says how `Shards(model).write` makes
    it, and is "" where no cut pays."""
    settled: dict[str, Any] = dict(problem or {})
    refuse_unknown("plan", options, place, ("problem", "placer"))
    refuse_unknown("plan: problem", settled, Problem.__init__, ("self", "graph", "cluster"))
    if isinstance(model, Graph):
        graph, rules = model, rules or "none"
    else:
        graph, rules = Graph.open(model), rules or "onnxruntime"
        if "effort" not in options:
            options.setdefault("time_limit", 20.0)
        if is_onnx(model):
            settled.setdefault("runtime", "ort")
    cut = ""
    if split_operators != "off":
        if isinstance(model, Graph) or not is_onnx(model):
            raise UsageError(f"plan: split_operators: {model!r:.80} is no ONNX file: only those can be cut")
        graph, cut, options = _cut(model, cluster, rules, split_operators, settled, options, graph)
    if rules != "none":
        graph = graph.coarsen(rules)
    made = place(Problem(graph, cluster, **settled), placer, **options)
    made.cut = cut
    return made


def _cut(
    model: Any, cluster: Any, rules: str, how: str, settled: dict[str, Any], options: dict[str, Any], graph: Graph
) -> tuple[Graph, str, dict[str, Any]]:
    """The graph of the model cut so, the cut, and what is left of the time."""
    from .shard import Shards

    shards = Shards(model)
    if how == "auto":
        wishes = [w for w in ("pin", "forbid", "together") if settled.get(w)]
        if wishes:
            raise UsageError(f"plan: split_operators and {wishes[0]} do not go together: operators get other names")
        begin, limit = time.monotonic(), options.get("time_limit", 0)
        asked = {k: options[k] for k in ("effort", "seed", "threads") if k in options}
        how = shards.choose(cluster, rules=rules, time_limit=0.4 * limit, **asked, **settled).cut
        if limit:
            options = {**options, "time_limit": max(limit - (time.monotonic() - begin), 0.1)}
    return (shards.graph(how), how, options) if how else (graph, "", options)


@dataclass(frozen=True)
class Row:
    """One placer in a comparison; `error` says why there is no plan."""

    placer: str
    plan: Plan | None
    error: str | None = None


class Comparison:
    """Plans of several placers for one problem, in the order asked for."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = list(rows)

    def __getitem__(self, placer: str) -> Plan:
        for row in self.rows:
            if row.placer == placer and row.plan is not None:
                return row.plan
        raise KeyError(placer)

    @property
    def best(self) -> Plan:
        """The fastest; the first of equals."""
        return min((r.plan for r in self.rows if r.plan is not None), key=lambda p: p.makespan_ns)

    def _lines(self) -> list[tuple[str, str, str, str]]:
        lines = []
        for row in self.rows:
            if row.plan is None:
                lines.append((row.placer, row.error or "", "", ""))
            else:
                gap = "" if row.plan.gap is None else f"{100 * row.plan.gap:.2f} %"
                lines.append(
                    (row.placer, f"{row.plan.makespan_ns / 1e6:.3f} ms", gap, f"{row.plan.generation_ns / 1e9:.2f} s")
                )
        return lines

    def __repr__(self) -> str:
        return "\n".join(f"{a:12} {b:>14} {c:>9} {d:>9}" for a, b, c, d in self._lines())

    def _repr_html_(self) -> str:
        import html

        body = "".join("<tr>" + "".join(f"<td>{html.escape(x)}</td>" for x in line) + "</tr>" for line in self._lines())
        return f"<table><tr><th>placer</th><th>makespan</th><th>gap</th><th>took</th></tr>{body}</table>"


def compare(
    problem: Problem, names: Iterable[str] = ("single", "m-etf", "heft", "moirai"), **options: Any
) -> Comparison:
    """A plan by each placer; one that fails has its reason in its row. `options` are those of `place`."""
    refuse_unknown("compare", options, place, ("problem", "placer"))
    rows = []
    for name in names:
        try:
            rows.append(Row(name, place(problem, name, **options)))
        except Error as error:
            rows.append(Row(name, None, str(error)))
    return Comparison(rows)


@dataclass(frozen=True)
class Proof:
    """What a certificate proves, recomputed: of one request, or with `of_rate` of the time between requests, where at
    most `in_flight` (0: any number) are under way."""

    proven_ns: int
    certified_ns: int
    lower_bound_ns: int
    leaves: int
    of_rate: bool = False
    in_flight: int = 0


def prove(
    problem: Problem | str | os.PathLike[str], certificate: str | os.PathLike[str], time_limit: float = 0
) -> Proof:
    """Proves the bound of a certificate again, in whole numbers; raises VerifyError with what is wrong.

    The verifier reads the problem from its file, with a reader of its own: a Problem is written to one first.
    `time_limit` is in seconds (0: none)."""
    out = ffi.new("moirai_proof *")
    call = LongCall()
    budget = ffi.new("moirai_budget *")
    lib.moirai_budget_init(budget)
    budget.time_limit_s = time_limit
    budget.interrupt = call.interrupt
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "problem.json") if isinstance(problem, Problem) else problem
        if isinstance(problem, Problem):
            check(lib.moirai_problem_write(problem._c, bytes_of(path)))
        call.run(lambda: int(lib.moirai_prove(out, bytes_of(path), bytes_of(certificate), budget)))
    return Proof(
        proven_ns=int(out.proven_ns),
        certified_ns=int(out.certified_ns),
        lower_bound_ns=int(out.lower_bound_ns),
        leaves=int(out.leaves),
        of_rate=bool(out.of_rate),
        in_flight=int(out.in_flight),
    )


def refine(
    graph: Graph, cluster: Cluster | None, timelines: Sequence[str | os.PathLike[str]]
) -> list[dict[str, float]]:
    """What runs have measured, oldest first, into the times of `graph` and the latencies of `cluster`, in place
    (docs/profile.md). Returns a report per timeline."""
    paths = [ffi.new("char[]", bytes_of(t)) for t in timelines]
    reports = ffi.new("moirai_refine_report[]", len(paths))
    array = ffi.new("const char *[]", paths)
    check(lib.moirai_refine(graph._c, cluster._c if cluster else ffi.NULL, array, len(paths), reports))
    names = [name for name, _ in ffi.typeof("moirai_refine_report").fields]
    return [{name: getattr(r, name) for name in names} for r in reports]


def refuse_unknown(what: str, given: Mapping[str, Any], function: Callable[..., Any], own: tuple[str, ...]) -> None:
    """A misspelt keyword is refused before any work is done, with those that there are."""
    allowed = [name for name in inspect.signature(function).parameters if name not in own]
    for name in given:
        if name not in allowed:
            raise TypeError(f"{what}: no option '{name}': there are {', '.join(allowed)}")


def _setting(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _news(n: Any) -> Progress:
    def known(value: int) -> int | None:
        return None if value < 0 else int(value)

    return Progress(
        seconds=float(n.seconds),
        letter=n.letter.decode("ascii", "replace"),
        makespan_ns=known(n.makespan_ns),
        lower_bound_ns=known(n.lower_bound_ns),
        work=int(n.work),
        note=text(n.note) if n.note else None,
    )


class _Bar:
    """A tqdm bar whose text is the best plan and its gap; nothing where tqdm is missing."""

    def __init__(self) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            self._bar = None
        else:
            self._bar = tqdm(desc="moirai", unit=" events")

    def show(self, news: Progress) -> None:
        if self._bar is None:
            return
        if news.makespan_ns:
            bound = news.lower_bound_ns or 0
            gap = 100 * (news.makespan_ns - bound) / news.makespan_ns
            self._bar.set_postfix_str(f"{news.makespan_ns / 1e6:.3f} ms, gap {gap:.1f} %")
        self._bar.update()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
