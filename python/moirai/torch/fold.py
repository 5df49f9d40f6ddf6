"""Batch norms folded into the convolutions before them, as every compiler does.

In eval mode a norm multiplies each channel by a number and adds another. A convolution is linear, so that its weight
and bias can take both over: they become constants of ours, computed once when a rank is loaded, in single precision.
Results change in the last bits, by about 1e-6. A module that is norm and activation at once is the same to us: what
torch.export shows is its calls. A convolution that somebody reads besides the norm stays as it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from .ir import ALIAS, CONST, OP, WEIGHT, Meta, Node, Ref, function_of
from .operators import operator_names

_NORM = "aten.batch_norm.default"
CONVOLUTIONS = {f"aten.{n}" for n in ("conv1d.default", "conv1d.padding", "conv2d.default", "conv2d.padding",
                                      "conv3d.default", "conv3d.padding", "convolution.default")}  # fmt: skip


def _scale(gamma: Any, variance: torch.Tensor, eps: float) -> torch.Tensor:
    scale = torch.rsqrt(variance.float() + eps)
    return scale if gamma is None else scale * gamma.float()


def _weight(weight: torch.Tensor, gamma: Any, variance: torch.Tensor, eps: float) -> torch.Tensor:
    scale = _scale(gamma, variance, eps)
    return (weight.float() * scale.view(-1, *[1] * (weight.dim() - 1))).to(weight.dtype)


def _bias(
    bias: Any, gamma: Any, beta: Any, mean: torch.Tensor, variance: torch.Tensor, eps: float, dtype: torch.dtype
) -> torch.Tensor:
    begin = mean.float() if bias is None else mean.float() - bias.float()
    shift = -begin * _scale(gamma, variance, eps)
    return (shift if beta is None else shift + beta.float()).to(dtype)


FUNCTIONS = {"moirai.folded_weight": _weight, "moirai.folded_bias": _bias}


def transposed(conv: Node) -> bool:
    return conv.target == "aten.convolution.default" and len(conv.args) > 6 and bool(conv.args[6])


def _constant(value: Any, nodes: dict[str, Node]) -> bool:
    return value is None or (isinstance(value, Ref) and nodes[value.name].kind in (WEIGHT, CONST))


def _foldable(norm: Node, nodes: dict[str, Node], readers: dict[str, int]) -> Node | None:
    """The convolution that takes the norm over."""
    if norm.target != _NORM or norm.kind != OP or norm.kwargs or norm.args[5] or not isinstance(norm.args[0], Ref):
        return None
    conv = nodes[norm.args[0].name]
    if conv.target not in CONVOLUTIONS or conv.kind != OP or conv.kwargs or transposed(conv):
        return None
    if readers[conv.name] != 1 or not isinstance(norm.meta, Meta) or norm.meta.dtype != conv.meta.dtype:
        return None
    statistics = norm.args[3] is not None and norm.args[4] is not None
    constants = [conv.args[1], *conv.args[2:3], *norm.args[1:5]]
    return conv if statistics and all(_constant(c, nodes) for c in constants) else None


def fold_norms(nodes: dict[str, Node], results: list[Any]) -> dict[str, Node]:
    """New nodes, in which a convolution with its norm is one call under the norm's name."""
    readers: dict[str, int] = {}
    for name in [r for n in nodes.values() for r in n.refs()] + [r.name for r in results if isinstance(r, Ref)]:
        readers[name] = readers.get(name, 0) + 1
    made: dict[str, Node] = {}
    for node in nodes.values():
        conv = _foldable(node, nodes, readers)
        if conv is None:
            made[node.name] = node
            continue
        _, gamma, beta, mean, variance = node.args[:5]
        eps, weight = float(node.args[7]), nodes[conv.args[1].name].meta
        bias = conv.args[2] if len(conv.args) > 2 else None
        w, b = f"{node.name}_weight", f"{node.name}_bias"
        vector = Meta((weight.shape[0],), weight.dtype, (1,))
        made[w] = Node(w, CONST, "moirai.folded_weight", (conv.args[1], gamma, variance, eps), {}, weight)
        numbers = (bias, gamma, beta, mean, variance, eps, weight.dtype)
        made[b] = Node(b, CONST, "moirai.folded_bias", numbers, {}, vector)
        args = (conv.args[0], Ref(w), Ref(b), *conv.args[3:])
        # Where the norm was: what its numbers are made of may come after the convolution.
        made[node.name] = replace(conv, name=node.name, args=args, meta=node.meta, members=(conv.name, node.name))
        del made[conv.name]
    return made


def _pointwise(name: str, nodes: dict[str, Node], readers: dict[str, list[str]], wanted: set[str]) -> bool:
    """Whether all that reads a value, views aside, works element by element: compilers add a bias there."""
    if name in wanted or not readers.get(name):
        return False
    for reader in (nodes[r] for r in readers[name]):
        if reader.kind == ALIAS:
            if not _pointwise(reader.name, nodes, readers, wanted):
                return False
        elif torch.Tag.pointwise not in getattr(function_of(reader.target), "tags", ()):
            return False
    return True


def _without_bias(node: Node, nodes: dict[str, Node]) -> tuple[Any, Any]:
    """A product with weights as it is without its bias, and the bias, as it is added; None where there is none."""
    if node.kind != OP or node.kwargs or not isinstance(node.meta, Meta):
        return None, None
    if node.target == "aten.addmm.default":
        bias, plain = node.args[0], replace(node, target="aten.mm.default", args=tuple(node.args[1:]))
    elif (node.target == "aten.linear.default" or node.target in CONVOLUTIONS) and len(node.args) > 2:
        bias, plain = node.args[2], replace(node, args=(*node.args[:2], None, *node.args[3:]))
    else:
        return None, None
    vector = isinstance(bias, Ref) and _constant(bias, nodes) and len(nodes[bias.name].meta.shape) == 1
    return (plain, bias) if vector else (None, None)


def biases_apart(nodes: dict[str, Node], results: list[Any]) -> dict[str, Node]:
    """New nodes, in which biases are sums of their own where a compiler for GPUs adds them in the kernel behind: all of
    convolutions, since cuDNN has none, and those of products whose results are read element by element. A product that
    is in one group with what comes behind it has to wait for all that this reads from elsewhere."""
    readers: dict[str, list[str]] = {}
    for node in nodes.values():
        for r in node.refs():
            readers.setdefault(r, []).append(node.name)
    wanted = {r.name for r in results if isinstance(r, Ref)}
    names = operator_names(nodes)
    made: dict[str, Node] = {}
    for name, node in nodes.items():
        plain, bias = _without_bias(node, nodes)
        product = node.target not in CONVOLUTIONS
        if plain is None or (product and not _pointwise(name, nodes, readers, wanted)):
            made[name] = node
            continue
        inner, row = f"{name}_product", bias
        if not product:
            shape = [nodes[bias.name].meta.shape[0]] + [1] * (len(node.meta.shape) - 2)
            meta = Meta(tuple(shape), nodes[bias.name].meta.dtype, tuple([1] * len(shape)))
            row = Ref(f"{name}_row")
            made[row.name] = Node(row.name, CONST, "aten.view.default", (bias, shape), {}, meta)
        made[inner] = replace(plain, name=inner, named=names[name] if product else node.named)
        label = f"{names[name]} (bias)" if product else ""
        made[name] = Node(name, OP, "aten.add.Tensor", (Ref(inner), row), {}, node.meta, node.path, named=label)
    return made
