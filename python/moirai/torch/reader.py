"""An exported program as nodes of ours: torch.export gives functional ATen calls, in which what was done in place is a
new value."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils._pytree as pytree

from .._lib import UsageError
from .ir import INPUT, OP, WEIGHT, Meta, Node, Ref


class CaptureError(UsageError):
    """The module can't be captured; torch's reason in one line."""


@dataclass
class Exported:
    """What an exported program says, as `Captured` has it."""

    nodes: dict[str, Node]
    weights: dict[str, torch.Tensor]
    inputs: list[str]
    in_spec: Any
    in_leaves: list[Any]
    out_spec: Any
    out_leaves: list[Any]


def read(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], core: bool) -> Exported:
    """Exports the module. Batch norms stay whole unless `core`."""
    found = _Reader(_export(module, args, kwargs, core), module).read()
    if not core:
        _whole_norms(found.nodes)
    return found


def _reason(error: BaseException) -> str:
    """The first line of torch's message that says something."""
    for line in str(error).splitlines():
        line = line.strip()
        if line and not line.startswith(("from user code", "File ", "Set TORCH", "Traceback")):
            return re.sub(r"\s+", " ", line)[:400]
    return type(error).__name__


def _export(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], core: bool) -> Any:
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            program = torch.export.export(module, args, kwargs, strict=False)
            idle = _idle_autocast(program)
            program = program.run_decompositions(torch.export.default_decompositions() if core else {})
        except Exception as error:  # whatever torch raises: its own classes change with versions
            raise CaptureError(f"{type(module).__name__} can't be exported: {_reason(error)}") from error
    if idle:
        warnings.warn(
            f"{type(module).__name__} uses autocast on {idle}, where it was not captured: it will run in its weights' "
            f"number types. Move it and its arguments to {idle} before capture, or convert it (to(torch.bfloat16)).",
            stacklevel=4,
        )
    return program


def _idle_autocast(program: Any) -> str | None:
    """The kind of device of an autocast that casts nothing, because all tensors are on devices of another kind."""
    tensors = [*program.state_dict.values(), *pytree.tree_leaves(program.example_inputs)]
    kinds = {t.device.type for t in tensors if isinstance(t, torch.Tensor)}
    for part in program.graph_module.modules():
        for node in getattr(getattr(part, "graph", None), "nodes", ()):
            if getattr(node.target, "__name__", "") == "wrap_with_autocast":
                kind, _, enabled = node.args[:3]
                if enabled and kind not in kinds:
                    return str(kind)
    return None


class _Reader:
    """An ExportedProgram into nodes."""

    def __init__(self, program: Any, module: torch.nn.Module) -> None:
        self.program = program
        self.module = module
        self.nodes: dict[str, Node] = {}
        self.weights: dict[str, torch.Tensor] = {}

    def read(self) -> Exported:
        given = {s.arg.name: s for s in self.program.graph_signature.input_specs if hasattr(s.arg, "name")}
        inputs: list[str] = []
        in_leaves: list[Any] = []
        for node in self.program.graph.nodes:
            if node.op == "placeholder":
                self._placeholder(node, given[node.name], inputs, in_leaves)
            elif node.op == "call_function":
                self._call(node)
            elif node.op == "get_attr":
                self._attribute(node)
        out_leaves = self._outputs()
        spec = self.program.call_spec
        return Exported(
            nodes=self.nodes,
            weights=self.weights,
            inputs=inputs,
            in_spec=spec.in_spec,
            in_leaves=in_leaves,
            out_spec=spec.out_spec,
            out_leaves=out_leaves,
        )

    def _placeholder(self, node: Any, spec: Any, inputs: list[str], in_leaves: list[Any]) -> None:
        kind = spec.kind.name
        if kind == "USER_INPUT":
            value = node.meta.get("val")
            if isinstance(value, torch.Tensor):
                self.nodes[node.name] = Node(node.name, INPUT, meta=Meta.of(value))
                inputs.append(node.name)
                in_leaves.append(Ref(node.name))
            else:
                in_leaves.append(getattr(spec.arg, "value", value))
            return
        if kind not in ("PARAMETER", "BUFFER", "CONSTANT_TENSOR"):
            raise CaptureError(f"argument '{node.name}' of the exported program is a {kind.lower()}: not supported")
        tensor = self.program.state_dict.get(spec.target)
        if tensor is None:
            tensor = self.program.constants[spec.target]
        self.weights[node.name] = tensor.detach()
        self.nodes[node.name] = Node(node.name, WEIGHT, meta=Meta.of(tensor), path=spec.target)

    def _attribute(self, node: Any) -> None:
        value = getattr(self.program.graph_module, node.target)
        if not isinstance(value, torch.Tensor):
            raise CaptureError(f"'{node.target}' is a part of the program (control flow): not supported")
        self.weights[node.name] = value.detach()
        self.nodes[node.name] = Node(node.name, WEIGHT, meta=Meta.of(value), path=str(node.target))

    def _call(self, node: Any) -> None:
        target = node.target
        if isinstance(target, torch._ops.OpOverload):
            if target.name().startswith(("aten::_assert", "aten::sym_constrain")):
                return
            name = str(target)
        elif getattr(target, "__name__", "") == "getitem":
            name = "getitem"
        else:
            raise CaptureError(
                f"'{node.name}' calls {getattr(target, '__name__', target)}: control flow is not supported"
            )

        def change(leaf: Any) -> Any:
            return Ref(leaf.name) if isinstance(leaf, torch.fx.Node) else leaf

        self.nodes[node.name] = Node(
            node.name,
            OP,
            name,
            _plain(node.args, change),
            _plain(dict(node.kwargs), change),
            _meta(node.meta.get("val")),
            _module_path(node),
        )

    def _outputs(self) -> list[Any]:
        leaves: list[Any] = []
        for spec in self.program.graph_signature.output_specs:
            if spec.kind.name != "USER_OUTPUT":
                raise CaptureError(
                    f"forward changes {spec.target or 'an argument'}: only functions of their arguments can be placed"
                )
            name = getattr(spec.arg, "name", None)
            leaves.append(Ref(name) if name in self.nodes else getattr(spec.arg, "value", None))
        return leaves


def _plain(value: Any, change: Any) -> Any:
    """fx has lists and tuples of its own."""
    if isinstance(value, (list, tuple)):
        made = [_plain(v, change) for v in value]
        return made if isinstance(value, list) else tuple(made)
    if isinstance(value, dict):
        return {k: _plain(v, change) for k, v in value.items()}
    return change(value)


def _meta(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return Meta.of(value)
    if isinstance(value, (tuple, list)):
        return tuple(_meta(v) for v in value)
    return None


def _module_path(node: Any) -> str:
    stack = node.meta.get("nn_module_stack")
    if not stack:
        return ""
    path = list(stack.values())[-1][0]
    return re.sub(r"^L\['self'\]\.?", "", path)


def _whole_norms(nodes: dict[str, Node]) -> None:
    """Batch norms as the module calls them: the exported form has three results and misses cuDNN's kernel."""
    readers: dict[str, list[Node]] = {}
    for node in nodes.values():
        for ref in node.refs():
            readers.setdefault(ref, []).append(node)
    for node in nodes.values():
        if node.target != "aten._native_batch_norm_legit_no_training.default":
            continue
        parts = readers.get(node.name, [])
        if node.kwargs or not all(p.target == "getitem" and p.args[1] == 0 for p in parts):
            continue
        node.target, node.meta = "aten.batch_norm.default", node.meta[0]
        node.args = (*node.args[:5], False, *node.args[5:7], True)
        for p in parts:
            p.target, p.args = "aten.alias.default", (p.args[0],)
