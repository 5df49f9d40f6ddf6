"""A torch.nn.Module as a graph of ours.

torch.export gives functional ATen calls: what was done in place is a new value there, so nothing has to be kept beside
what it changes. By default operators that PyTorch has a kernel for (linear, attention, norms) stay whole, as the module
itself runs them; `core=True` takes them apart into core ATen.

Four kinds of node come out. Operators compute. Aliases (views, parts of tuples, copies that copy nothing) are free:
whoever reads one repeats it, from whatever on the way to it has the fewest bytes, and that is what travels: a head's
slice, not the whole; the vector, not what it was expanded to. Constants depend on weights alone and are computed once
per rank. Weights are held by those that read them; one that several read counts for each, since each may be elsewhere.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import weakref
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, Callable, Mapping, Sequence

import torch
import torch.utils._pytree as pytree

from ..graph import Graph
from .._lib import UsageError
from .alone import as_compiled
from .cache import chosen_folder
from .cut_text import Cut, parse, text
from .cuts import ALTERNATIVES, Strip, apply_cuts, apply_rows, find_strips, match, row_strips
from .fold import biases_apart, fold_norms
from .fused import fuse_calls
from .grouping import find_groups
from .heads import head_strips, split_heads
from .ir import ALIAS, Meta, Node, Ref
from .kinds import classify, live
from .layout import channels_last as in_channels_last, follow, pays
from .operators import make_graph, operator_names
from .reader import CaptureError, Exported, read
from .repeated import repeat
from .tokens import apply_tokens, find_batch, find_tokens

__all__ = ["CaptureError", "Captured", "capture", "remembered"]

FUSE = ("none", "aten", "inductor")


@dataclass
class Captured:
    """A module's graph (`graph`), and what it takes to run it: nodes, weights, how arguments and results are laid
    out."""

    graph: Graph
    nodes: dict[str, Node]
    weights: dict[str, torch.Tensor]
    inputs: list[str]  # names of tensor arguments, in the order of the flattened call
    in_spec: Any  # pytree of (args, kwargs)
    in_leaves: list[Any]  # Ref of an input, or what the argument was, for those that are no tensors
    out_spec: Any
    out_leaves: list[Any]  # Ref of a value, or a number
    ops: dict[str, tuple[str, ...]] = field(default_factory=dict)  # the graph's operator -> its calls, in order
    tensors: dict[str, str] = field(default_factory=dict)  # the graph's tensor -> node
    path_of: dict[str, list[str]] = field(default_factory=dict)  # memo of `path_to`
    fuse: str = "none"
    strips: list[Strip] = field(default_factory=list)  # what can be cut, or was
    cuts: str = ""  # how it was cut
    again: Any = field(default=None, repr=False)  # what `recut` calls
    alone: Any = field(default=None, repr=False)  # gives the nodes that one device runs (alone.py)
    busy: Graph | None = field(default=None, repr=False)  # with times while all devices compute (`profile`)
    grouped_by: str = ""  # "inductor", or why rules of our own had to do
    number: int = field(default_factory=itertools.count().__next__)  # of this capture, in this process

    def path_to(self, name: str) -> list[str]:
        """From what was computed (or given) to this value: the base, then aliases, the value last."""
        known = self.path_of.get(name)
        if known is None:
            node = self.nodes[name]
            known = [*self.path_to(node.refs()[0]), name] if node.kind == ALIAS else [name]
            self.path_of[name] = known
        return known

    def source(self, name: str) -> str:
        """What travels when this value is read elsewhere: of all on the path that are single tensors, the least."""
        path = self.path_to(name)
        single = [n for n in path if isinstance(self.nodes[n].meta, Meta)]
        best = min(single, key=lambda n: self.nodes[n].meta.bytes)
        return best

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """The tensor arguments of a call by their names; UsageError where they are not like those captured."""
        leaves, spec = pytree.tree_flatten((tuple(args), dict(kwargs)))
        if spec != self.in_spec or len(leaves) != len(self.in_leaves):
            raise UsageError(f"arguments are not laid out as those captured: {spec}, expected {self.in_spec}")
        found = {}
        for given, known in zip(leaves, self.in_leaves):
            if not isinstance(known, Ref):
                if given != known:
                    raise UsageError(f"an argument is {given!r}; the module was captured with {known!r}")
                continue
            meta = self.nodes[known.name].meta
            if not isinstance(given, torch.Tensor):
                raise UsageError(f"argument '{known.name}' is {type(given).__name__}; captured was a tensor")
            if tuple(given.shape) != meta.shape or given.dtype != meta.dtype:
                what = f"{tuple(given.shape)} {given.dtype}"
                raise UsageError(f"argument '{known.name}' is {what}; captured was {meta.shape} {meta.dtype}")
            found[known.name] = given.detach()
        return found

    def recut(self, cuts: str | Mapping[str, str] | None, quick: bool = False) -> Captured:
        """The same module cut otherwise, or (None) whole, without exporting it again. `quick`: calls are grouped by rules of
        our own, where a compiler would be asked: that takes longer than all else, and of pieces it says nearly the same."""
        return self.again(cuts, quick)  # type: ignore[no-any-return]

    def save_graph(self, path: str | os.PathLike[str]) -> None:
        self.graph.save(path)

    def __repr__(self) -> str:
        return f"<moirai.torch.Captured '{self.graph.name}': {len(self.ops)} operators, {len(self.weights)} weights>"


def _of(cut: Cut, kind: str) -> bool:
    """Patterns leave alternatives out, unless they name them."""
    return cut.pattern.endswith(kind)


def _heads(strips: list[Strip], heads: bool | int, asked: list[Cut]) -> dict[str, list[int]]:
    """Groups of heads by attention: `heads` is a case of cuts, "*heads: 4", of no more groups than there are heads."""
    found: dict[str, list[int]] = {}
    for s in strips if heads else ():
        n = s.units if heads is True else min(int(heads), s.units)
        found[s.end] = [(g + 1) * s.units // n - g * s.units // n for g in range(n)]
    chosen = match(strips, asked)
    return {**found, **{s.end: chosen[s.name].sizes(s.name, s.units, s.unit) for s in strips if s.name in chosen}}


def capture(
    module: torch.nn.Module,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    heads: bool | int = False,
    cuts: str | Mapping[str, str] | None = None,
    core: bool = False,
    fold: bool = True,
    channels_last: bool | None = None,
    fuse: str = "none",
    fuse_for: str | None = None,
    cache: str | os.PathLike[str] | None | bool = True,
) -> Captured:
    """Exports the module for these arguments (their shapes count, not their numbers) and makes a graph of it.

    `heads` spells attention out head by head, projections and all, so that heads can go to several devices; a number
    makes as many groups of heads (small matrix products use a GPU badly). `cuts` cuts operators into unequal pieces
    ("*attention: 2,4,6; *mlp: 2:3:5", docs/shard.md): `Captured.strips` says what there is to cut. `fold` makes one
    convolution of a convolution and its batch norm. `channels_last` lays a convolutional network out so; None: where
    Inductor's rule says that it pays.

    `fuse` says what an operator is: "none", one call of ATen; "aten", calls that ATen has one kernel for on GPUs, too;
    "inductor", what PyTorch's compiler makes one kernel of on devices like `fuse_for` ("cuda" where there is a GPU,
    else "cpu"), and plans of it run as compiled code. Such groups are kept in `cache` (as in `profile`).
    Raises CaptureError where torch can't export the module, or where its forward changes a buffer or an argument.
    """
    if not isinstance(module, torch.nn.Module):
        raise UsageError(f"capture: a torch.nn.Module is needed, not {type(module).__name__}")
    if not isinstance(heads, int) or heads < 0:
        raise UsageError(f"heads={heads!r}: expected True, False or a number of groups")
    if fuse not in FUSE:
        raise UsageError(f"fuse '{fuse}': expected {', '.join(FUSE[:-1])} or {FUSE[-1]}")
    if cuts and core:
        raise UsageError("cuts and core=True do not go together: rules are for operators that are whole")
    if module.training:
        raise CaptureError(f"{type(module).__name__} is in training mode: call eval() first")
    how = _How(name or type(module).__name__, heads, core, fold, channels_last, fuse,
               fuse_for or ("cuda" if torch.cuda.is_available() else "cpu"), cache)  # fmt: skip
    captured = _make(read(module, tuple(args), dict(kwargs or {}), core), how, cuts)
    remembered[module] = captured
    return captured


@dataclass(frozen=True)
class _How:
    """How a network is captured, cuts aside."""

    name: str
    heads: bool | int
    core: bool
    fold: bool
    channels_last: bool | None
    fuse: str
    kind: str
    cache: Any


def _pieces(
    exported: Exported, how: _How, cuts: str | Mapping[str, str] | None, known: dict[str, list[Any]]
) -> tuple[dict[str, Node], list[Strip]]:
    """The nodes, cut as asked, and what can be cut. `known` are strips that were found before: looking for them takes
    longer than all else."""

    def found(kind: str, find: Callable[[], list[Any]]) -> list[Any]:
        key = f"{kind} {heads} {images if kind != 'rows' else ''}"
        if key not in known:
            known[key] = [] if how.core else find()
        return known[key]

    nodes, results = {n: replace(node) for n, node in exported.nodes.items()}, exported.out_leaves
    asked = parse(cuts) if cuts else []
    attentions = head_strips(nodes)
    heads = [c for c in asked if _of(c, "heads")]
    sizes = _heads(attentions, how.heads, heads)
    if sizes:
        nodes = split_heads(nodes, sizes, _names_whole(nodes, results, how))
    images, tokens, samples = ([c for c in asked if _of(c, kind)] for kind in ("rows", "tokens", "batch"))
    sequences = [*tokens, *samples]
    asked = [c for c in asked if not any(_of(c, kind) for kind in ALTERNATIVES)]
    if sequences and (asked or images or (tokens and samples)):
        what = "tokens" if tokens else "a batch"
        raise UsageError(f'cut "{sequences[0].pattern}": pieces of {what} are not cut again: no other cut goes with it')
    classify(nodes)
    if how.fold and not how.core:
        nodes = fold_norms(live(nodes, results), results)
    nodes = live(nodes, results)
    by_rows = found("rows", lambda: [s for s, _ in row_strips(nodes, results)])
    if images:
        nodes = apply_rows(nodes, results, images, operator_names(nodes))
        classify(nodes)
    nodes = live(nodes, results)
    by_tokens = found("tokens", lambda: [*find_tokens(nodes), *find_batch(nodes)])
    alternatives = [*attentions, *by_rows, *(s.strip(nodes) for s in by_tokens)]
    if sequences:
        nodes = apply_tokens(nodes, by_tokens, results, sequences, operator_names(nodes))
        classify(nodes)
        return live(nodes, results), alternatives
    strips = found("strips", lambda: find_strips(nodes, results))
    if asked:
        nodes, pieces = apply_cuts(nodes, strips, asked, operator_names(nodes))
        classify(nodes)
        nodes = repeat(nodes, pieces) if pieces else nodes
    return nodes, [*strips, *alternatives]


def _names_whole(nodes: dict[str, Node], results: list[Any], how: _How) -> dict[str, str]:
    """Node -> operator of the network that nothing is cut in."""
    copy = {n: replace(node) for n, node in nodes.items()}
    classify(copy)
    return operator_names(live(fold_norms(live(copy, results), results) if how.fold and not how.core else copy, results))


def _laid_out(nodes: dict[str, Node], results: list[Any], how: _How, last: bool) -> dict[str, Node]:
    """In the layout and with the calls that its devices have kernels for."""
    if last:
        nodes = in_channels_last(nodes)
        classify(nodes)  # some views have to copy now
    if how.fuse == "aten":
        nodes = fuse_calls(nodes, results)
    elif how.fuse == "inductor" and how.kind == "cuda":
        nodes = biases_apart(nodes, results)
        if torch.cuda.is_available():  # kernels of a GPU lay some results out otherwise: attention's, for one
            with contextlib.suppress(Exception):  # what is not known of a GPU here costs a copy there
                follow(nodes, how.kind)
            classify(nodes)
    return live(nodes, results)


def _make(
    exported: Exported, how: _How, cuts: str | Mapping[str, str] | None, known: dict[str, list[Any]] | None = None,
    quick: bool = False,
) -> Captured:  # fmt: skip
    known = {} if known is None else known
    nodes, strips = _pieces(exported, how, cuts, known)
    last = pays(nodes) if how.channels_last is None else how.channels_last
    nodes = _laid_out(nodes, exported.out_leaves, how, last)
    captured = Captured(
        graph=None,  # type: ignore[arg-type]  # made last
        nodes=nodes,
        weights={n: w for n, w in exported.weights.items() if n in nodes},
        inputs=exported.inputs,
        in_spec=exported.in_spec,
        in_leaves=exported.in_leaves,
        out_spec=exported.out_spec,
        out_leaves=exported.out_leaves,
        fuse=how.fuse,
        strips=strips,
        cuts=text(cuts) if cuts else "",
        again=lambda other, quick: _make(exported, how, other, known, quick),
    )
    if not how.core:
        inputs = {n: nodes[n].meta for n in exported.inputs}
        captured.alone = lru_cache(None)(partial(as_compiled, exported, last, inputs))
    groups = None
    if how.fuse == "inductor":
        base = {n: captured.path_to(n)[0] for n in nodes}
        wanted = [r.name for r in exported.out_leaves if isinstance(r, Ref)]
        where = None if quick else torch.device(how.kind)
        groups, captured.grouped_by = find_groups(nodes, base, wanted, where, chosen_folder(how.cache))
    captured.graph = make_graph(captured, how.name, groups)
    return captured


remembered: weakref.WeakKeyDictionary[torch.nn.Module, Captured] = (
    weakref.WeakKeyDictionary()
)  # what was made of a module last
