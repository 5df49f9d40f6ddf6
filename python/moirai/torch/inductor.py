"""The door to Inductor, PyTorch's compiler: which kernels it would make of a piece, and the compiled piece.

What is used here is not promised by any version of PyTorch. So everything of it is in this file, all of it is behind
`try`, and whoever calls has another way: rules of our own for groups, eager calls for code. Tried with 2.13; written
for 2.6 and later.
"""

from __future__ import annotations

import contextlib
import copy
import os
import tempfile
import unittest.mock
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

import torch
from torch._subclasses import FakeTensorMode

from .groups import Kernels
from .ir import OP, Meta, Node, few_keys, kernels_for_few_keys
from .piece import Piece

# Strides are decided once for the whole network (layout.py), not by every piece.
_PATCHES = {"layout_optimization": False}


def _patches(piece: Piece) -> dict[str, Any]:
    return {} if piece.alone else dict(_PATCHES)


class _Enough(BaseException):
    """Ends a compilation after fusion. No Exception: nothing in Inductor may catch it."""


def reason(error: BaseException) -> str:
    """In one line, with its kind: many of them have no words."""
    lines = [x.strip() for x in str(error).splitlines() if x.strip()]
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__


# ---- groups


def kernels_of(piece: Piece, metas: Mapping[str, Meta], nodes: Mapping[str, Node], base: Mapping[str, str],
               device: torch.device) -> Kernels:  # fmt: skip
    """Runs Inductor as far as its scheduler's fusion: no code is made. Raises whatever Inductor raises."""
    import torch._inductor.config as config
    import torch._inductor.scheduler as scheduler
    from torch._inductor.compile_fx import compile_fx

    found = Kernels([], {})
    real = scheduler.Scheduler.fuse_nodes

    def fuse(self: Any, scheduled: Any) -> Any:
        _look(real(self, scheduled), found, nodes, base)
        raise _Enough

    caches = {"fx_graph_cache": False, "compile_threads": 1, **_PATCHES}  # a hit would skip the scheduler
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.suppress(_Enough))
        stack.enter_context(torch.no_grad())
        stack.enter_context(unittest.mock.patch.object(scheduler.Scheduler, "fuse_nodes", fuse))
        stack.enter_context(config.patch(caches))
        stack.enter_context(torch._functorch.config.patch(enable_autograd_cache=False))
        mode = FakeTensorMode()
        with mode:
            given = [metas[a].empty(device) for a in piece.args]
        compile_fx(piece.module(device, tagged=True), given)
    if not found.parts:
        raise RuntimeError("Inductor ended before it fused anything")
    return found


def _tag(node: Any) -> str | None:
    return (node.meta.get("custom") or {}).get("moirai")


def _is_view(node: Any) -> bool:
    """Of its first argument, in what calls are decomposed into."""
    if getattr(node.target, "__name__", "") == "getitem":
        return True
    schema = getattr(node.target, "_schema", None)
    if schema is None or not node.args or not isinstance(node.args[0], torch.fx.Node):
        return False
    if schema.name in ("aten::_unsafe_view", "aten::reshape", "aten::alias"):
        return True
    if schema.name == "aten::clone":  # some copy
        before, after = node.args[0].meta.get("val"), node.meta.get("val")
        return isinstance(before, torch.Tensor) and before.stride() == after.stride()
    return any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns)


def _values(graph: Any) -> dict[Any, str]:
    """Decomposed node -> the call whose value it is: the last of the call's decomposition, and what that is a view
    of."""
    last = {tag: n for n in graph.nodes if (tag := _tag(n))}
    found: dict[Any, str] = {}
    for tag, node in last.items():
        while isinstance(node, torch.fx.Node) and _tag(node) == tag and node not in found:
            found[node] = tag
            node = node.args[0] if _is_view(node) else None
    return found


def _look(fused: Any, found: Kernels, nodes: Mapping[str, Node], base: Mapping[str, str]) -> None:
    from torch._inductor.virtualized import V

    graph = V.graph.module.graph
    at = {n: i for i, n in enumerate(graph.nodes)}
    value = _values(graph)
    parts = [x for s in fused for x in s.get_nodes()]
    extern = {x.node.get_origin_node() for x in parts if x.is_extern()}
    for x in parts:
        # Unset where a reader asked for strides: then it is the last call that went in and is no library's.
        own = x.node.get_origin_node() or max(
            (o for o in x.node.get_origins() if o not in extern and o in at), key=at.__getitem__, default=None
        )
        like = own.meta.get("val") if own in value else None
        if isinstance(like, torch.Tensor) and like.numel() == x.node.get_numel():
            for b in x.get_outputs():
                found.holds[b.get_name()] = _call_of(value[own], nodes, base)
    for s in fused:
        found.parts.append(
            [([b.get_name() for b in x.get_outputs()], {d.name for d in x.read_writes.reads}) for x in s.get_nodes()]
        )


def _call_of(name: str, nodes: Mapping[str, Node], base: Mapping[str, str]) -> str | None:
    """A part of a tuple is its call's; a view that was copied is nobody's."""
    if nodes[name].kind == OP:
        return name
    return base[name] if not isinstance(nodes[base[name]].meta, Meta) else None


# ---- code


def compile_piece(
    piece: Piece, examples: Sequence[torch.Tensor], device: torch.device, path: Path | None
) -> tuple[Callable[..., Sequence[Any]], bool]:
    """A callable of the piece's arguments, and whether it was loaded from `path`, where compiled code is kept."""
    made = _load(path)
    if made is not None:
        return made, True
    module = piece.module(device)
    if not hasattr(torch._inductor, "standalone_compile"):  # before 2.8
        import torch._inductor.config as config
        from torch._inductor.compile_fx import compile_fx

        with torch.no_grad(), config.patch(_patches(piece)):
            return compile_fx(copy.deepcopy(module), list(examples)), False
    metas = {n.name: n.meta for n in piece.nodes} | {a: Meta.of(x) for a, x in zip(piece.args, examples)}
    few = device.type == "cuda" and few_keys(piece.nodes, metas)  # what is traced decides which kernel attention is
    with torch.no_grad(), kernels_for_few_keys() if few else contextlib.nullcontext():
        artifact = torch._inductor.standalone_compile(
            module, list(examples), dynamic_shapes="from_example_inputs", options={"config_patches": _patches(piece)}
        )
    _save(artifact, path)
    return artifact, False


def _load(path: Path | None) -> Any:
    if path is None or not path.exists():
        return None
    try:
        return torch._inductor.CompiledArtifact.load(path=str(path), format="binary")  # type: ignore[attr-defined]
    except Exception:  # of another version, or half of it: compiled anew
        return None


def _save(artifact: Any, path: Path | None) -> None:
    """Whole or not at all; what can't be saved is compiled again by the next process."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mktemp(prefix=f"{path.name}.{os.getpid()}.", dir=path.parent))
    try:
        artifact.save(path=str(part), format="binary")
        part.replace(path)
    except Exception:
        part.unlink(missing_ok=True)
