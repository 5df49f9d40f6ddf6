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

import itertools
import os
import re
import warnings
import weakref
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Mapping, Sequence

import torch
import torch.utils._pytree as pytree

from ..graph import Graph, Op, Tensor
from .._lib import UsageError
from . import flops
from .heads import split_heads
from .ir import ALIAS, CONST, INPUT, OP, WEIGHT, Meta, Node, Ref


class CaptureError(UsageError):
    """The module can't be captured; torch's reason in one line."""


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
    ops: dict[str, str] = field(default_factory=dict)  # the graph's operator -> node
    tensors: dict[str, str] = field(default_factory=dict)  # the graph's tensor -> node
    path_of: dict[str, list[str]] = field(default_factory=dict)  # memo of `path_to`
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

    def save_graph(self, path: str | os.PathLike[str]) -> None:
        self.graph.save(path)

    def __repr__(self) -> str:
        return f"<moirai.torch.Captured '{self.graph.name}': {len(self.ops)} operators, {len(self.weights)} weights>"


def capture(
    module: torch.nn.Module,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    heads: bool | int = False,
    core: bool = False,
) -> Captured:
    """Exports the module for these arguments (their shapes count, not their numbers) and makes a graph of it.

    `heads` spells attention out head by head, projections and all, so that heads can go to several devices; a number
    makes as many groups of heads (small matrix products use a GPU badly). Raises CaptureError where torch can't export
    the module, or where its forward changes a buffer or an argument.
    """
    if module.training:
        raise CaptureError(f"{type(module).__name__} is in training mode: call eval() first")
    program = _export(module, tuple(args), dict(kwargs or {}), core)
    reader = _Reader(program, module)
    captured = reader.read()
    if not core:
        _whole_norms(captured.nodes)
    if heads:
        captured.nodes = split_heads(captured.nodes, None if heads is True else int(heads))
    _classify(captured)
    _prune(captured)
    captured.graph = _graph(captured, name or type(module).__name__)
    remembered[module] = captured
    return captured


remembered: weakref.WeakKeyDictionary[torch.nn.Module, Captured] = (
    weakref.WeakKeyDictionary()
)  # what was made of a module last


# ---- torch.export


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
            stacklevel=3,
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

    def read(self) -> Captured:
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
        return Captured(
            graph=None,  # type: ignore[arg-type]  # made last
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


# ---- kinds

_SAME = {"aten.alias.default", "aten.detach.default", "aten.lift_fresh_copy.default", "aten.lift_fresh.default"}
_LIKE_VIEW = {"aten._unsafe_view.default", "aten.view.default"}


def _function_schema(target: str) -> Any:
    found: Any = torch.ops
    for part in target.split("."):
        found = getattr(found, part)
    return found


def _viewable(meta: Meta, shape: tuple[int, ...]) -> bool:
    try:
        meta.empty("meta").view(shape)
        return True
    except RuntimeError:
        return False


def _is_alias(node: Node, first: Any) -> bool:
    """Whether a node shows its first tensor again without computing."""
    if node.target == "getitem" or node.target in _SAME or node.target in _LIKE_VIEW:
        return True
    if not isinstance(first, Meta):
        return False
    if node.target == "aten.clone.default":
        asked = node.kwargs.get("memory_format")
        return asked in (None, torch.preserve_format) or node.meta.stride == first.stride
    if node.target == "aten.dropout.default":
        return not (len(node.args) > 2 and node.args[2])
    returns = _function_schema(node.target)._schema.returns
    if not returns or any(r.alias_info is None or r.alias_info.is_write for r in returns):
        return False
    if not isinstance(node.meta, Meta):
        return True  # split and its kind: a tuple of views
    if node.meta.dtype != first.dtype:
        return False
    if flops.base_name(node.target) in ("reshape", "contiguous", "flatten", "to"):
        if node.meta.numel == first.numel and node.meta.shape != first.shape:
            return _viewable(first, node.meta.shape)
        return node.meta.stride == first.stride
    return True


def _is_random(node: Node) -> bool:
    return node.target != "getitem" and torch.Tag.nondeterministic_seeded in _function_schema(node.target).tags


def _classify(captured: Captured) -> None:
    """Constants first: a view of a weight is one, too."""
    nodes = captured.nodes
    for node in nodes.values():
        if node.kind != OP:
            continue
        refs = node.refs()
        if all(nodes[r].kind in (CONST, WEIGHT) for r in refs) and not _is_random(node):
            node.kind = CONST
        elif refs and _is_alias(node, nodes[refs[0]].meta) and len(set(refs)) == 1:
            node.kind = ALIAS


def _prune(captured: Captured) -> None:
    """Leaves out what no result depends on; keeps every input, since callers give them all."""
    nodes = captured.nodes
    todo = [leaf.name for leaf in captured.out_leaves if isinstance(leaf, Ref)]
    seen = set(todo)
    while todo:
        for ref in nodes[todo.pop()].refs():
            if ref not in seen:
                seen.add(ref)
                todo.append(ref)
    captured.nodes = {n: node for n, node in nodes.items() if n in seen or node.kind == INPUT}
    captured.weights = {n: w for n, w in captured.weights.items() if n in seen}


# ---- the graph


def _names(captured: Captured) -> dict[str, str]:
    """Node -> operator name: the module's path where it makes one operator, else path/operator."""
    ops = [n for n in captured.nodes.values() if n.kind == OP]
    per_path = Counter(n.path for n in ops)
    used: Counter[str] = Counter()
    names: dict[str, str] = {}
    for node in ops:
        kind = flops.base_name(node.target)
        label = node.path if node.path and per_path[node.path] == 1 else f"{node.path}/{kind}" if node.path else kind
        used[label] += 1
        names[node.name] = label if used[label] == 1 else f"{label}.{used[label]}"
    taken = Counter(names.values())
    for key, label in names.items():  # a path/op.2 that meets a module of that very name
        if taken[label] > 1:
            names[key] = f"{label}#{key}"
    return names


def _weight_bytes(captured: Captured, node: Node) -> int:
    """Of every weight and constant that it reads, each once. What a constant was made of need not stay."""
    held = {captured.path_to(r)[0] for r in node.refs()}
    constant = [captured.nodes[h] for h in held if captured.nodes[h].kind in (WEIGHT, CONST)]
    return sum(m.bytes for node in constant for m in flops.metas(node.meta))


def _graph(captured: Captured, title: str) -> Graph:
    nodes = captured.nodes
    names = _names(captured)
    reads: dict[str, list[str]] = {}
    written: dict[str, list[str]] = {op: [] for op in names}
    tensor_name: dict[str, str] = {}

    def label(source: str) -> str:
        """The graph's name of a value that travels or stays."""
        base = captured.path_to(source)[0]
        owner = names[base]
        if source not in written[base]:
            written[base].append(source)
        return owner if source == base else f"{owner}:{source}"

    taken = set(names.values())

    def outer(kind: str, plain: str) -> str:
        """The name of what nobody computes: its own, unless an operator has it."""
        return plain if plain and plain not in taken else f"{kind}:{plain}"

    wanted = [(op, r) for op in names for r in nodes[op].refs()]
    wanted += [("", leaf.name) for leaf in captured.out_leaves if isinstance(leaf, Ref)]
    for op, ref in wanted:
        base = captured.path_to(ref)[0]
        kind = nodes[base].kind
        if kind == OP:
            source = captured.source(ref)
            tensor_name[source] = label(source)
            if op:
                reads.setdefault(op, []).append(tensor_name[source])
        elif op and kind == INPUT:
            reads.setdefault(op, []).append(outer("input", base))
        elif op and kind == WEIGHT:
            reads.setdefault(op, []).append(outer("weight", nodes[base].path))
        elif op:
            reads.setdefault(op, []).append(f"const:{base}")
    ops = []
    for op, name in names.items():
        node = nodes[op]
        ins = [nodes[r].meta for r in node.refs() if isinstance(nodes[r].meta, Meta)]
        outs = flops.metas(node.meta)
        ops.append(
            Op(
                name=name,
                type=flops.base_name(node.target),
                inputs=tuple(dict.fromkeys(reads.get(op, []))),
                outputs=tuple(Tensor(tensor_name[s], nodes[s].meta.bytes) for s in written[op]),
                weight_bytes=_weight_bytes(captured, node),
                flops=flops.flops(node, ins, outs),
                traffic_bytes=flops.traffic_bytes(node, ins, outs),
                members=(),
            )
        )
    captured.ops = {name: op for op, name in names.items()}
    captured.tensors = {name: source for source, name in tensor_name.items()}
    sizes = Counter(m.dtype.itemsize for n in nodes.values() for m in flops.metas(n.meta) if m.dtype.is_floating_point)
    element = sizes.most_common(1)[0][0] if sizes else 4
    return Graph.build(title, ops, element_bytes=element if element in (2, 4) else 4)
