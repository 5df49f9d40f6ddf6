"""A part of a network as something that a compiler takes: calls in order, what they read, what others read of them.

Weights are arguments like all else, and names are numbers, so that equal layers are equal text: they are compiled once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Mapping

import torch
import torch.fx as fx

from .ir import Meta, Node, Ref, call, raw_function, substitute


@dataclass(frozen=True)
class Piece:
    nodes: tuple[Node, ...]  # calls and the aliases between them
    args: tuple[str, ...]
    results: tuple[str, ...]
    alone: bool = False  # all of a network: the compiler decides on layouts, too

    def text(self, metas: Mapping[str, Meta]) -> str:
        """Equal for pieces that are the same code; `metas` are those of the arguments."""
        number = {name: i for i, name in enumerate([*self.args, *(n.name for n in self.nodes)])}

        def change(leaf: Any) -> Any:
            if isinstance(leaf, Ref):
                return f"%{number[leaf.name]}"
            return "device" if isinstance(leaf, torch.device) else repr(leaf)

        lines = [repr([metas[a] for a in self.args])]
        lines += [repr((n.target, substitute(n.args, change), substitute(n.kwargs, change))) for n in self.nodes]
        return "\n".join([*lines, repr([number[r] for r in self.results]), *(["alone"] if self.alone else [])])

    def module(self, device: torch.device, tagged: bool = False) -> fx.GraphModule:
        """As torch.fx has it. `tagged`: every call carries its name, which AOTAutograd hands to all that it becomes."""
        graph = fx.Graph()
        made: dict[str, fx.Node] = {name: graph.placeholder(f"a{i}") for i, name in enumerate(self.args)}

        def change(leaf: Any) -> Any:
            if isinstance(leaf, Ref):
                return made[leaf.name]
            return device if isinstance(leaf, torch.device) else leaf

        for i, node in enumerate(self.nodes):
            args, kwargs = substitute(node.args, change), substitute(node.kwargs, change)
            new = graph.create_node("call_function", raw_function(node.target), args, kwargs, f"c{i}")
            new.meta["custom"] = {"moirai": node.name} if tagged else {}
            made[node.name] = new
        graph.output(tuple(made[r] for r in self.results))
        return fx.GraphModule(torch.nn.Module(), graph)

    def run(
        self,
        env: Mapping[str, Any],
        device: torch.device,
        before: Callable[[Node, dict[str, Any]], None] | None = None,
    ) -> list[Any]:
        """Call by call, as eager PyTorch; `before` is told of each that is about to run."""
        own = {a: env[a] for a in self.args}
        for node in self.nodes:
            if before:
                before(node, own)
            own[node.name] = call(node, own, device)
        return [own[r] for r in self.results]
