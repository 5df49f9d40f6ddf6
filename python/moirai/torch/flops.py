"""Arithmetic and memory traffic of an ATen operator, from its shapes alone."""

from __future__ import annotations

from math import prod
from typing import Any, Mapping

from .ir import Meta, Node

# Operations per element of the result, for what is no matrix product; the rest counts one.
_PER_ELEMENT = {
    "softmax": 5,
    "_softmax": 5,
    "_log_softmax": 6,
    "layer_norm": 8,
    "native_layer_norm": 8,
    "group_norm": 8,
    "native_group_norm": 8,
    "rms_norm": 5,
    "batch_norm": 2,
    "_native_batch_norm_legit_no_training": 2,
    "gelu": 8,
    "silu": 5,
    "sigmoid": 4,
    "tanh": 6,
    "exp": 4,
    "hardswish": 4,
}
# What only moves numbers.
_MOVES = {"embedding", "index", "index_select", "gather", "cat", "stack", "clone", "_to_copy", "copy", "roll", "repeat",
          "constant_pad_nd", "pad", "expand", "flip", "contiguous", "reshape", "view", "_unsafe_view",
          "unfold"}  # fmt: skip
# What reads as much of its first tensor as it writes, however large that is.
_GATHERS = {"embedding", "index", "index_select", "gather"}


def base_name(target: str) -> str:
    """aten.linear.default -> linear; moirai.conv_relu -> conv_relu."""
    if target.startswith("moirai."):
        return target.removeprefix("moirai.")
    parts = target.split(".")
    return parts[1] if len(parts) > 2 else parts[0]


def flops(node: Node, inputs: list[Meta], outputs: list[Meta]) -> int:
    """Multiplications and additions, each counted."""
    name = base_name(node.target)
    out = outputs[0] if outputs else None
    if out is None or name in _MOVES:
        return 0
    if name in ("linear", "linear_act", "mm", "bmm", "matmul"):
        return 2 * out.numel * inputs[0].shape[-1] + (out.numel if len(inputs) > 2 else 0)
    if name in ("addmm", "baddbmm"):
        return 2 * out.numel * inputs[1].shape[-1] + out.numel
    if name.startswith("conv") and len(inputs) > 1:
        weight = inputs[1]
        per_output = prod(weight.shape[1:])
        transposed = "transpose" in name or (name == "convolution" and len(node.args) > 6 and bool(node.args[6]))
        return 2 * (inputs[0] if transposed else out).numel * per_output + (out.numel if len(inputs) > 2 else 0)
    if name == "scaled_dot_product_attention" or name.startswith("_scaled_dot_product"):
        q, k, v = inputs[:3]
        scores = prod(q.shape[:-1]) * k.shape[-2]
        return 2 * scores * (q.shape[-1] + v.shape[-1]) + 5 * scores
    if name in ("max_pool2d", "avg_pool2d", "mean", "sum", "amax", "adaptive_avg_pool2d", "max_pool2d_with_indices"):
        return max(inputs[0].numel, out.numel) if inputs else out.numel
    return _PER_ELEMENT.get(name, 1) * out.numel


def of_node(node: Node, nodes: Mapping[str, Node]) -> int:
    """As `flops`, of a call among these."""
    return flops(node, [m for r in node.refs() if isinstance(m := nodes[r].meta, Meta)], metas(node.meta))


def traffic_bytes(node: Node, inputs: list[Meta], outputs: list[Meta]) -> int:
    """What must be read and written, each once."""
    written = sum(m.bytes for m in outputs)
    if base_name(node.target) in _GATHERS and inputs:
        return 2 * written + sum(m.bytes for m in inputs[1:])
    return written + sum(m.bytes for m in inputs)


def metas(value: Any) -> list[Meta]:
    """The tensors among what a node returns."""
    if isinstance(value, Meta):
        return [value]
    return [m for m in value if isinstance(m, Meta)] if isinstance(value, (tuple, list)) else []
