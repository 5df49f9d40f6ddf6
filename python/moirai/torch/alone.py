"""A network on one device alone: what torch.compile makes of it, and nothing else.

Groups are made for plans of several devices: norms are folded, biases are sums of their own, calls come in the plan's
order. Where a plan has one device there is nothing to be cut, and what the compiler makes of the network as it was
exported is faster. So all of it is one piece then, in which the compiler decides on layouts, too.
"""

from __future__ import annotations

from dataclasses import replace

from .ir import Meta, Node
from .kinds import classify, live
from .layout import channels_last, follow
from .reader import Exported


def as_compiled(exported: Exported, last: bool, inputs: dict[str, Meta]) -> dict[str, Node]:
    """Nodes of a network that one device runs, in channels last where the captured ones are. `inputs` have the strides
    that callers give."""
    nodes = {n: replace(node) for n, node in exported.nodes.items()}
    classify(nodes)
    if last:
        nodes = channels_last(nodes)
    for name, meta in inputs.items():
        nodes[name].meta = meta
    follow(nodes)
    classify(nodes)
    return live(nodes, exported.out_leaves)
