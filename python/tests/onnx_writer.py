"""ONNX models without the package `onnx`: the few fields of its messages that tests need, in protobuf's wire format."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np

TYPES = {"float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9, "float16": 10}


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def whole(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def block(number: int, data: bytes | str) -> bytes:
    data = data.encode() if isinstance(data, str) else data
    return varint(number << 3 | 2) + varint(len(data)) + data


def attribute(name: str, value: Any) -> bytes:
    out = block(1, name)
    if isinstance(value, float):
        return out + varint(2 << 3 | 5) + struct.pack("<f", value) + whole(20, 1)
    if isinstance(value, int):
        return out + whole(3, value) + whole(20, 2)
    if isinstance(value, str):
        return out + block(4, value) + whole(20, 3)
    return out + b"".join(whole(8, v) for v in value) + whole(20, 7)


def tensor(name: str, array: np.ndarray, kind: int | None = None) -> bytes:
    """`kind`: another element type than the array's own (bfloat16 as uint16)."""
    out = b"".join(whole(1, d) for d in array.shape)
    return out + whole(2, kind or TYPES[array.dtype.name]) + block(8, name) + block(9, np.ascontiguousarray(array).tobytes())


def info(name: str, kind: int, shape: tuple[int | str, ...]) -> bytes:
    dims = b"".join(block(1, block(2, d) if isinstance(d, str) else whole(1, d)) for d in shape)
    return block(1, name) + block(2, block(1, whole(1, kind) + block(2, dims)))


@dataclass
class Net:
    """A graph under construction: `net("MatMul", x, net.weight(...))` is the name of its first output."""

    seed: int = 0
    opset: int = 17
    nodes: list[bytes] = field(default_factory=list)
    tensors: list[bytes] = field(default_factory=list)
    inputs: dict[str, tuple[int, tuple[Any, ...]]] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    scope: str = ""

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.number = 0

    def fresh(self, what: str) -> str:
        self.number += 1
        return f"{self.scope}{what}_{self.number}"

    def input(self, name: str, *shape: int | str, kind: int = 1) -> str:
        self.inputs[name] = (kind, shape)
        return name

    def constant(self, array: np.ndarray, name: str = "", kind: int | None = None) -> str:
        name = name or self.fresh("c")
        self.tensors.append(tensor(name, array, kind))
        return name

    def weight(self, *shape: int, name: str = "", dtype: Any = np.float32) -> str:
        scale = 1 / np.sqrt(max(1, int(np.prod(shape[1:] if len(shape) == 4 else shape[:1]))))
        return self.constant((self.random.standard_normal(shape) * scale).astype(dtype), name)

    def ints(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, np.int64))

    def __call__(self, type: str, *inputs: str, outputs: int = 1, name: str = "", domain: str = "", **attributes: Any) -> Any:
        name = name or self.fresh(type)
        made = [f"{name}:{i}" if i else f"{name}_out" for i in range(outputs)]
        out = b"".join(block(1, i) for i in inputs) + b"".join(block(2, o) for o in made) + block(3, name) + block(4, type)
        out += b"".join(block(5, attribute(k, v)) for k, v in attributes.items()) + (block(7, domain) if domain else b"")
        self.nodes.append(out)
        return made[0] if outputs == 1 else made

    def result(self, *names: str) -> None:
        self.outputs += names

    def save(self, path: Any) -> str:
        graph = b"".join(block(1, n) for n in self.nodes) + block(2, "net") + b"".join(block(5, t) for t in self.tensors)
        graph += b"".join(block(11, info(n, k, s)) for n, (k, s) in self.inputs.items())
        graph += b"".join(block(12, block(1, o)) for o in self.outputs)
        opset = b"".join(block(8, (block(1, d) if d else b"") + whole(2, v)) for d, v in (("", self.opset), ("com.microsoft", 1)))
        with open(path, "wb") as file:
            file.write(whole(1, 9) + opset + block(7, graph))
        return str(path)
