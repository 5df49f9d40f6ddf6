"""What a cut of an operator's result means for its arguments, and what the operator is for a piece of it.

An axis that is cut has outer x units x inner elements: several runs of all units (queries, keys and values in one
product: three runs of 12 heads of 64). A piece has the units [first, first + size) of every run. Every rule goes from a
result to arguments: None is whole, a Layout is cut. Whatever has no rule is not cut, and `Refused` says why.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable, Mapping

from .ir import Meta, Node, Ref


class Refused(Exception):
    """This operator can't be cut so; the text says why."""


@dataclass(frozen=True)
class Layout:
    axis: int
    outer: int
    inner: int

    def length(self, units: int) -> int:
        return self.outer * units * self.inner


@dataclass(frozen=True)
class Piece:
    """Some units of a strip's."""

    units: int
    first: int
    size: int


Needs = dict[str, "Layout | None"]
Rule = Callable[[Node, Layout, int, Mapping[str, Node]], Needs]

# Element by element: every argument that is not broadcast along the axis is cut as the result is.
_ELEMENTWISE = set(
    "add sub mul div pow neg exp rsqrt sqrt reciprocal sigmoid tanh relu gelu silu hardswish hardsigmoid leaky_relu elu "
    "mish softplus erf cos sin abs clamp maximum minimum where masked_fill square to _to_copy clone contiguous dropout "
    "alias detach lift_fresh_copy rsub logical_not bitwise_not".split()
)
_RESHAPES = set("view _unsafe_view reshape flatten unflatten".split())


def base_name(target: str) -> str:
    parts = target.split(".")
    return parts[1] if len(parts) > 2 else target


def _shape(nodes: Mapping[str, Node], name: str) -> tuple[int, ...]:
    meta = nodes[name].meta
    if not isinstance(meta, Meta):
        raise Refused(f"'{name}' is several tensors")
    return meta.shape


def _axis(value: int, rank: int) -> int:
    return value + rank if value < 0 else value


def _elementwise(node: Node, at: Layout, units: int, nodes: Mapping[str, Node]) -> Needs:
    rank, needs = len(node.meta.shape), {}
    for name in node.refs():
        shape = _shape(nodes, name)
        axis = at.axis - (rank - len(shape))
        broadcast = axis < 0 or (shape[axis] == 1 and at.length(units) != 1)
        needs[name] = None if broadcast else Layout(axis, at.outer, at.inner)
    return needs


def _reshape(node: Node, at: Layout, units: int, nodes: Mapping[str, Node]) -> Needs:
    """The unit is a digit of the flat index, with a stride; it must be a digit of one axis of the argument, too."""
    name = node.refs()[0]
    shape, out = _shape(nodes, name), node.meta.shape
    stride = at.inner * math.prod(out[at.axis + 1 :])
    for axis in range(len(shape)):
        step = math.prod(shape[axis + 1 :])
        if stride % step == 0 and shape[axis] % (stride // step * units) == 0 and stride * units <= step * shape[axis]:
            inner = stride // step
            return {name: Layout(axis, shape[axis] // (inner * units), inner)}
    raise Refused("a view divides a unit")


def _permute(node: Node, at: Layout, units: int, nodes: Mapping[str, Node]) -> Needs:
    rank = len(node.meta.shape)
    order = list(range(rank))
    if base_name(node.target) == "permute":
        order = [_axis(d, rank) for d in node.args[1]]
    elif base_name(node.target) == "t":
        order = order[::-1]
    else:
        a, b = (_axis(d, rank) for d in node.args[1:3])
        order[a], order[b] = order[b], order[a]
    return {node.refs()[0]: Layout(order[at.axis], at.outer, at.inner)}


def _dims(node: Node, place: int, key: str, default: Any) -> Any:
    return node.args[place] if len(node.args) > place else node.kwargs.get(key, default)


def _split(node: Node, at: Layout, units: int, nodes: Mapping[str, Node]) -> Needs:
    """`at` is that of every part; parts along the axis are runs."""
    name = node.refs()[0]
    dim = _axis(_dims(node, 2, "dim", 0), len(_shape(nodes, name)))
    lengths = {m.shape[dim] for m in node.meta}
    if dim != at.axis:
        return {name: at}
    if len(lengths) > 1:
        raise Refused("parts of several lengths along the cut axis")
    return {name: Layout(dim, at.outer * len(node.meta), at.inner)}


def _slice(node: Node, at: Layout, units: int, nodes: Mapping[str, Node]) -> Needs:
    name, dim, start, _, step = slice_of(node, nodes)
    length, whole = node.meta.shape[dim], _shape(nodes, name)[dim]
    if dim != at.axis or length == whole:
        return {name: at}
    if step != 1 or start % length or whole % length:
        raise Refused("a slice divides a run of units")
    return {name: Layout(dim, at.outer * (whole // length), at.inner)}


def slice_of(node: Node, nodes: Mapping[str, Node]) -> tuple[str, int, int, int, int]:
    name = node.refs()[0]
    shape = _shape(nodes, name)
    dim = _axis(_dims(node, 1, "dim", 0), len(shape))
    start, end, step = (_dims(node, i, k, d) for i, k, d in ((2, "start", 0), (3, "end", None), (4, "step", 1)))
    start = 0 if start is None else start
    start = max(start + shape[dim] if start < 0 else start, 0)
    return name, dim, start, start + node.meta.shape[dim] * step, step


def _select(node: Node, at: Layout, units: int, nodes: Mapping[str, Node]) -> Needs:
    name = node.refs()[0]
    dim = _axis(node.args[1], len(_shape(nodes, name)))
    return {name: Layout(at.axis + (dim <= at.axis), at.outer, at.inner)}


def _unbind(node: Node, at: Layout, units: int, nodes: Mapping[str, Node]) -> Needs:
    """`at` is that of every part, which lacks the axis."""
    name = node.refs()[0]
    dim = _axis(_dims(node, 1, "dim", 0), len(_shape(nodes, name)))
    return {name: Layout(at.axis + (dim <= at.axis), at.outer, at.inner)}


def _unsqueeze(node: Node, at: Layout, units: int, nodes: Mapping[str, Node]) -> Needs:
    dim = _axis(node.args[1], len(node.meta.shape))
    if dim == at.axis:
        raise Refused("the cut axis is new")
    return {node.refs()[0]: Layout(at.axis - (dim < at.axis), at.outer, at.inner)}


def _squeeze(node: Node, at: Layout, units: int, nodes: Mapping[str, Node]) -> Needs:
    return _reshape(node, at, units, nodes)


def _expand(node: Node, at: Layout, units: int, nodes: Mapping[str, Node]) -> Needs:
    name = node.refs()[0]
    shape = _shape(nodes, name)
    axis = at.axis - (len(node.meta.shape) - len(shape))
    if axis < 0 or shape[axis] != node.meta.shape[at.axis]:
        raise Refused("the cut axis is a copy of one element")
    return {name: Layout(axis, at.outer, at.inner)}


def _repeat_interleave(node: Node, at: Layout, units: int, nodes: Mapping[str, Node]) -> Needs:
    dim = _dims(node, 2, "dim", None)
    times = node.args[1]
    if dim is None or not isinstance(times, int) or len(node.refs()) != 1:
        raise Refused("repeated by a tensor")
    if _axis(dim, len(node.meta.shape)) != at.axis:
        return {node.refs()[0]: at}
    if at.inner % times:
        raise Refused("several units are copies of one element")
    return {node.refs()[0]: Layout(at.axis, at.outer, at.inner // times)}


def _cat(node: Node, at: Layout, units: int, nodes: Mapping[str, Node]) -> Needs:
    if _axis(_dims(node, 1, "dim", 0), len(node.meta.shape)) == at.axis:
        raise Refused("put together along the cut axis")
    return {name: at for name in node.refs()}


def _softmax(node: Node, at: Layout, units: int, nodes: Mapping[str, Node]) -> Needs:
    if _axis(node.args[1], len(node.meta.shape)) == at.axis:
        raise Refused("normalised over the cut axis")
    return {node.refs()[0]: at}


def _mean(node: Node, at: Layout, units: int, nodes: Mapping[str, Node]) -> Needs:
    name = node.refs()[0]
    rank = len(_shape(nodes, name))
    dims = sorted(_axis(d, rank) for d in _dims(node, 1, "dim", ()) or ())
    if not dims:
        raise Refused("a mean of everything")
    axis = at.axis
    if not _dims(node, 2, "keepdim", False):
        for d in dims:
            axis += d <= axis
    if axis in dims:
        raise Refused("a mean over the cut axis")
    return {name: Layout(axis, at.outer, at.inner)}


def _norm(node: Node, at: Layout, units: int, nodes: Mapping[str, Node]) -> Needs:
    name = node.refs()[0]
    if at.axis >= len(node.meta.shape) - len(node.args[1]):
        raise Refused("a norm over the cut axis")
    return {name: at, **{other: None for other in node.refs()[1:]}}


def _matmul(node: Node, at: Layout, units: int, nodes: Mapping[str, Node]) -> Needs:
    left, right = node.refs()
    rank, needs = len(node.meta.shape), {}
    for name, other in ((left, rank - 1), (right, rank - 2)):
        shape = _shape(nodes, name)
        axis = at.axis - (rank - len(shape))
        cut = at.axis != other and axis >= 0 and shape[axis] != 1
        needs[name] = Layout(axis, at.outer, at.inner) if cut else None
    if left == right:
        raise Refused("a product of a tensor with itself")
    return needs


def _attention(node: Node, at: Layout, units: int, nodes: Mapping[str, Node]) -> Needs:
    q, k, v = (a.name for a in node.args[:3])
    if at.axis != 1 or len(node.meta.shape) != 4 or at.outer != 1:
        raise Refused("attention that is not cut by heads")
    many, few = node.meta.shape[1], _shape(nodes, k)[1]
    if _shape(nodes, v)[1] != few or few % units or (many != few and not node.kwargs.get("enable_gqa")):
        raise Refused(f"{few} heads of keys do not divide into {units} groups")
    needs: Needs = {q: at, k: Layout(1, 1, few // units), v: Layout(1, 1, few // units)}
    mask = node.args[3] if len(node.args) > 3 else node.kwargs.get("attn_mask")
    if isinstance(mask, Ref):
        shape = _shape(nodes, mask.name)
        needs[mask.name] = Layout(len(shape) - 3, 1, at.inner) if len(shape) >= 3 and shape[-3] == many > 1 else None
    return needs


RULES: dict[str, Rule] = {
    **{name: _elementwise for name in _ELEMENTWISE},
    **{name: _reshape for name in _RESHAPES},
    **{name: _permute for name in ("permute", "transpose", "t")},
    **{name: _split for name in ("split", "split_with_sizes", "chunk")},
    **{name: _softmax for name in ("softmax", "_softmax")},
    **{name: _norm for name in ("layer_norm", "rms_norm")},
    **{name: _matmul for name in ("matmul", "bmm")},
    "slice": _slice,
    "select": _select,
    "unbind": _unbind,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "expand": _expand,
    "repeat_interleave": _repeat_interleave,
    "cat": _cat,
    "mean": _mean,
    "scaled_dot_product_attention": _attention,
}


def needs_of(node: Node, at: Layout, units: int, nodes: Mapping[str, Node]) -> Needs:
    """Which arguments are cut, and how, where the result is cut so."""
    if node.target == "getitem":
        return {node.refs()[0]: at}
    rule = RULES.get(base_name(node.target))
    if rule is None or not node.refs():
        raise Refused(f"{base_name(node.target)} has no rule")
    return rule(node, at, units, nodes)


def piece_call(
    node: Node, at: Layout, piece: Piece, nodes: Mapping[str, Node]
) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    """Target and arguments of the operator for a piece; references are still those of the whole."""
    name = base_name(node.target)
    length = at.length(piece.size)
    if name in _RESHAPES or name in ("expand", "squeeze"):
        shape = list(node.meta.shape)
        shape[at.axis] = length
        return f"aten.{'expand' if name == 'expand' else 'reshape'}.default", (node.args[0], shape), {}
    if name in ("split", "split_with_sizes", "chunk"):
        dim = _axis(_dims(node, 2, "dim", 0), len(node.meta[0].shape))
        if dim == at.axis:
            return "aten.split_with_sizes.default", (node.args[0], [length] * len(node.meta), dim), {}
    if name == "slice":
        _, dim, start, end, step = slice_of(node, nodes)
        if dim == at.axis:
            first = start // node.meta.shape[dim] * length
            return node.target, (node.args[0], dim, first, first + length, 1), {}
        return node.target, (node.args[0], dim, start, end, step), {}
    return node.target, node.args, node.kwargs
