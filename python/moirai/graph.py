"""A network before it meets a cluster."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from typing import Any, Iterable, Mapping, Sequence

from ._lib import bytes_of, check, ffi, lib, owned, take, text


@dataclass(frozen=True)
class Tensor:
    """What an operator writes."""

    name: str
    bytes: int


@dataclass(frozen=True)
class Op:
    """An operator as the graph has it; None where a number is not known."""

    name: str
    type: str
    inputs: tuple[str, ...]
    outputs: tuple[Tensor, ...]
    weight_bytes: int = 0
    workspace_bytes: int = 0
    flops: int | None = None
    traffic_bytes: int | None = None
    members: tuple[str, ...] = ()
    time_ns: Mapping[str, int] | None = None
    shared_weights: tuple[Tensor, ...] = ()  # part of weight_bytes: a device that runs several of their readers holds one


def is_onnx(path: str | os.PathLike[str]) -> bool:
    """Named .onnx, or begins as every ONNX file does: with its version."""
    if os.fspath(path).lower().endswith(".onnx"):
        return True
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as f:
        return f.read(1) == b"\x08"


class Graph:
    """Operators, the tensors between them, and what they cost (docs/formats.md, moirai-graph)."""

    def __init__(self, pointer: Any) -> None:
        self._c = pointer

    # ---- where graphs come from

    @classmethod
    def open(cls, what: str | os.PathLike[str], *, element_bytes: int = 4) -> Graph:
        """A name of the zoo, or a file: an ONNX model by its name or content, else a graph file."""
        name = os.fspath(what)
        if lib.moirai_zoo_find(name.encode()):
            return cls.zoo(name, element_bytes=element_bytes)
        if is_onnx(name):
            return cls(take("graph", lib.moirai_onnx_read, name.encode(), ffi.NULL, ffi.NULL))
        return cls(take("graph", lib.moirai_graph_read, name.encode()))

    @classmethod
    def zoo(cls, name: str, *, element_bytes: int = 4) -> Graph:
        """A network of the zoo in fp32 (4) or fp16 (2)."""
        return cls(take("graph", lib.moirai_zoo_graph, name.encode(), element_bytes))

    @classmethod
    def parse(cls, json: str | bytes, *, label: str = "graph") -> Graph:
        """A graph file's text; `label` names it in messages."""
        data = json.encode() if isinstance(json, str) else json
        return cls(take("graph", lib.moirai_graph_parse, data, len(data), label.encode()))

    @classmethod
    def build(cls, name: str, ops: Iterable[Op], *, element_bytes: int = 4) -> Graph:
        """A graph of these operators, in any order; tensors are joined by name."""
        builder = ffi.new("moirai_graph_builder **")
        check(lib.moirai_graph_builder_new(builder, name.encode()))
        b = builder[0]
        lib.moirai_graph_builder_element_bytes(b, element_bytes)
        for op in ops:
            _add(b, op)
        out = ffi.new("moirai_graph **")
        check(lib.moirai_graph_builder_finish(out, b))  # repeats the first error of the calls before it
        return cls(owned("graph", out[0]))

    # ---- looking at it

    @property
    def name(self) -> str:
        return text(self._c.name)

    def __len__(self) -> int:
        return int(self._c.n_ops)

    def __getitem__(self, name: str) -> Op:
        """The operator of that name; KeyError where there is none."""
        index = lib.moirai_graph_find(self._c, name.encode())
        if index < 0:
            raise KeyError(name)
        return self._op(index)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and lib.moirai_graph_find(self._c, name.encode()) >= 0

    @property
    def ops(self) -> list[Op]:
        """All operators, in the order in which they were added."""
        return [self._op(i) for i in range(self._c.n_ops)]

    @property
    def devices(self) -> list[str]:
        """Device names or types for which there are measured times."""
        return [text(self._c.time_key[k]) for k in range(self._c.n_time_keys)]

    def stats(self) -> dict[str, int]:
        """Sums, width, depth, cut points (moirai/stats.h)."""
        s = ffi.new("moirai_graph_stats *")
        check(lib.moirai_graph_stats_get(s, self._c))
        return {name: int(getattr(s, name)) for name, _ in ffi.typeof("moirai_graph_stats").fields}

    def _op(self, i: int) -> Op:
        c = self._c
        inputs = tuple(text(c.tensor_name[c.op_in[e]]) for e in range(c.op_in_off[i], c.op_in_off[i + 1]))
        outputs = tuple(
            Tensor(text(c.tensor_name[c.op_out[e]]), int(c.tensor_bytes[c.op_out[e]]))
            for e in range(c.op_out_off[i], c.op_out_off[i + 1])
        )
        members = tuple(text(c.op_member[e]) for e in range(c.op_member_off[i], c.op_member_off[i + 1]))
        times = {
            text(c.time_key[k]): int(c.time_ns[i * c.n_time_keys + k])
            for k in range(c.n_time_keys)
            if c.time_ns[i * c.n_time_keys + k] >= 0
        }
        return Op(
            name=text(c.op_name[i]),
            type=text(c.op_type[i]),
            inputs=inputs,
            outputs=outputs,
            weight_bytes=int(c.op_weight_bytes[i]),
            workspace_bytes=int(c.op_workspace_bytes[i]),
            flops=_known(c.op_flops[i]),
            traffic_bytes=_known(c.op_traffic_bytes[i]),
            members=members,
            time_ns=times or None,
            shared_weights=tuple(
                Tensor(text(c.weight_name[w]), int(c.weight_bytes[w]))
                for w in (c.op_weight[e] for e in range(c.op_weight_off[i], c.op_weight_off[i + 1]))
            ),
        )

    # ---- changing it

    def set_times(self, device: str, time_ns: Mapping[str, int] | Sequence[int | None]) -> None:
        """Measured times on one device, by operator name or in the operators' order; None where not measured."""
        if isinstance(time_ns, Mapping):
            values = [time_ns.get(text(self._c.op_name[i])) for i in range(self._c.n_ops)]
        else:
            values = list(time_ns)
        if len(values) != self._c.n_ops:
            raise ValueError(f"{len(values)} times for {self._c.n_ops} operators")
        array = ffi.new("int64_t[]", [lib.MOIRAI_UNKNOWN if v is None else int(v) for v in values] or [0])
        check(lib.moirai_graph_times_set(self._c, device.encode(), array))

    def coarsen(self, rules: str | os.PathLike[str] = "onnxruntime") -> Graph:
        """Fused operators by a shipped set of rules (eigen, onnxruntime, none) or a rule file."""
        r = take("rules", lib.moirai_rules_open, bytes_of(rules))
        return Graph(take("graph", lib.moirai_coarsen, self._c, r, ffi.NULL))

    def save(self, path: str | os.PathLike[str]) -> None:
        check(lib.moirai_graph_write(self._c, bytes_of(path)))

    def copy(self) -> Graph:
        """A graph of its own: `refine` changes the one that it is given."""
        with tempfile.TemporaryDirectory(prefix="moirai-") as folder:
            path = os.path.join(folder, "graph.json")
            self.save(path)
            return Graph(take("graph", lib.moirai_graph_read, bytes_of(path)))

    def __repr__(self) -> str:
        return f"<moirai.Graph '{self.name}': {len(self)} operators>"


def _known(value: int) -> int | None:
    return None if value < 0 else int(value)


def _add(b: Any, op: Op) -> None:
    def number(value: int | None) -> int:
        return int(lib.MOIRAI_UNKNOWN) if value is None else int(value)

    i = lib.moirai_graph_builder_op(b, op.name.encode(), op.type.encode())
    if i < 0:
        return  # the builder keeps its first error for `finish`
    for name in op.inputs:
        lib.moirai_graph_builder_input(b, i, name.encode())
    for tensor in op.outputs:
        lib.moirai_graph_builder_output(b, i, tensor.name.encode(), tensor.bytes)
    lib.moirai_graph_builder_cost(b, i, op.weight_bytes, op.workspace_bytes, number(op.flops), number(op.traffic_bytes))
    for device, ns in (op.time_ns or {}).items():
        lib.moirai_graph_builder_time(b, i, device.encode(), ns)
    for member in op.members:
        lib.moirai_graph_builder_member(b, i, member.encode())
    for weight in op.shared_weights:
        lib.moirai_graph_builder_shared_weight(b, i, weight.name.encode(), weight.bytes)
