"""The Open Inference Protocol, version 2: requests to tensors, tensors to answers, as `moirai serve` does it
(src/serve/serve_request.c), with its words.

Everything in a request is somebody else's: names, shapes, types and lengths are held against the model's. Whole
numbers in JSON are taken exactly or not at all, others rounded to the nearest that their type has.
"""

from __future__ import annotations

import array
import ctypes
import json
import math
import sys
from dataclasses import dataclass, field
from typing import Any, NoReturn

import torch
import torch.utils._pytree as pytree

from .._lib import InputError, UsageError
from .capture import Captured
from .ir import Meta, Ref

VERSION = "1"
_MOST_DIMS = 16
_MOST_ID = 256
_HALF = ("FP16", "BF16")
_TYPES = {  # the protocol's name, and the standard library's code
    torch.bool: ("BOOL", "B"), torch.uint8: ("UINT8", "B"), torch.int8: ("INT8", "b"), torch.int16: ("INT16", "h"),
    torch.uint16: ("UINT16", "H"), torch.int32: ("INT32", "i"), torch.uint32: ("UINT32", "I"),
    torch.int64: ("INT64", "q"), torch.uint64: ("UINT64", "Q"), torch.float16: ("FP16", ""),
    torch.bfloat16: ("BF16", ""), torch.float32: ("FP32", "f"), torch.float64: ("FP64", "d"),
}  # fmt: skip


def _bad(text: str) -> NoReturn:
    raise InputError(" ".join(text.split()))


def _no_constant(word: str) -> NoReturn:
    _bad(f"request: {word} is no JSON")


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        _bad(f'request: "{twice[:200]}" is there twice')
    return found


def _show(value: Any) -> str:
    text = "an array" if isinstance(value, list) else "an object" if isinstance(value, dict) else json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


@dataclass
class Tensor:
    name: str
    meta: Meta

    @property
    def datatype(self) -> str:
        return _TYPES[self.meta.dtype][0]

    @property
    def about(self) -> dict[str, Any]:
        return {"name": self.name, "datatype": self.datatype, "shape": list(self.meta.shape)}


@dataclass
class Wanted:
    """A request without its tensors."""

    id: str = ""
    timeout_s: float = 0
    outputs: list[tuple[int, bool]] = field(default_factory=list)  # (which, as bytes)


def _part(key: Any) -> str:
    return str(next(getattr(key, k) for k in ("key", "name", "idx") if hasattr(key, k)))


class Model:
    """What is served: a captured module's tensors by names. Outputs have the keys that the module gives them,
    `output` or `output_0`, `output_1`, ... where it gives none."""

    def __init__(self, captured: Captured, name: str) -> None:
        self.name, self._captured = name, captured
        nodes = captured.nodes
        self.inputs = [Tensor(x.name, nodes[x.name].meta) for x in captured.in_leaves if isinstance(x, Ref)]
        places = pytree.tree_unflatten(list(range(len(captured.out_leaves))), captured.out_spec)
        paths, _ = pytree.tree_flatten_with_path(places)
        self.outputs, self._leaf = [], []
        for path, leaf in paths:
            ref = captured.out_leaves[leaf]
            if isinstance(ref, Ref):
                parts = [_part(k) for k in path]
                called = "_".join(["output", *parts] if not parts or parts[0].isdigit() else parts)
                self.outputs.append(Tensor(called, nodes[ref.name].meta))
                self._leaf.append(leaf)
        for t in [*self.inputs, *self.outputs]:
            if t.meta.dtype not in _TYPES:
                raise UsageError(f"'{t.name}' is {t.meta.dtype}, which the protocol does not have")
        if sys.byteorder != "little":
            raise UsageError("tensors of the protocol are little-endian, this machine is not")

    @property
    def most_bytes(self) -> int:
        """No request is longer than that: 32 characters a number, and its bytes."""
        return (1 << 16) + sum(32 * t.meta.numel + t.meta.bytes for t in self.inputs)

    @property
    def about(self) -> dict[str, Any]:
        return {
            "name": self.name, "versions": [VERSION], "platform": "moirai_pytorch",
            "inputs": [t.about for t in self.inputs], "outputs": [t.about for t in self.outputs],
        }  # fmt: skip

    # ---- requests

    def read(self, body: bytearray, json_bytes: int | None) -> tuple[Wanted, tuple[Any, ...], dict[str, Any]]:
        """What is wanted, and the module's arguments. InputError where anything is wrong."""
        return self.read_root(*_parse(body, json_bytes))

    def read_root(self, root: dict[str, Any], rest: memoryview) -> tuple[Wanted, tuple[Any, ...], dict[str, Any]]:
        wanted = self._settings(root)
        self._wanted_outputs(root, wanted)
        given = self._read_inputs(root, rest)
        leaves = [given[x.name] if isinstance(x, Ref) else x for x in self._captured.in_leaves]
        args, kwargs = pytree.tree_unflatten(leaves, self._captured.in_spec)
        return wanted, args, kwargs

    def _settings(self, root: dict[str, Any]) -> Wanted:
        called, timeout = root.get("id", ""), _parameters(root).get("timeout", 0)
        if not isinstance(called, str) or len(called.encode(errors="replace")) >= _MOST_ID or "\0" in called:
            _bad(f'"id" must be a string of less than {_MOST_ID} bytes, none of them zero')
        if type(timeout) is not int or timeout < 0:
            _bad('parameter "timeout" must be a whole number of microseconds')
        return Wanted(called, timeout / 1e6)

    def _wanted_outputs(self, root: dict[str, Any], wanted: Wanted) -> None:
        asked = root.get("outputs", [])
        every = _flag(root, "binary_data_output", False)
        if not isinstance(asked, list):
            _bad('"outputs" must be an array')
        chosen = [(_find(self.outputs, x, "output"), _flag(x, "binary_data", every)) for x in asked]
        for k, binary in chosen or [(k, every) for k in range(len(self.outputs))]:
            t = self.outputs[k]
            if any(k == other for other, _ in wanted.outputs):
                _bad(f"output '{t.name}' is asked for twice")
            if t.datatype in _HALF and not binary:
                _bad(f"output '{t.name}': {t.datatype} goes as binary data only: ask for \"binary_data\"")
            wanted.outputs.append((k, binary))

    def _read_inputs(self, root: dict[str, Any], rest: memoryview) -> dict[str, torch.Tensor]:
        items, given = root.get("inputs"), dict[str, torch.Tensor]()
        if not isinstance(items, list):
            _bad('the request has no "inputs", an array')
        for item in items:
            t = self.inputs[_find(self.inputs, item, "input")]
            if t.name in given:
                _bad(f"input '{t.name}' is given twice")
            kind = item.get("datatype")
            if kind != t.datatype:
                has = kind[:40] if isinstance(kind, str) else "none"
                _bad(f"input '{t.name}' has datatype {has}, the model has {t.datatype}")
            _check_shape(t, item.get("shape"))
            parameters = _parameters(item)
            if "binary_data_size" not in parameters:
                given[t.name] = _from_json(t, item.get("data"))
            elif "data" in item:
                _bad(f"input '{t.name}' has both \"data\" and \"binary_data_size\"")
            else:
                given[t.name] = _from_bytes(t, parameters["binary_data_size"], rest)
                rest = rest[t.meta.bytes :]
        for t in self.inputs:
            if t.name not in given:
                _bad(f"input '{t.name}' is missing")
        if len(rest):
            _bad(f"{len(rest)} bytes of binary data belong to no input")
        return given

    # ---- answers

    def write(self, wanted: Wanted, result: Any) -> tuple[bytes, int | None]:
        """The body, and how much of it is JSON where bytes follow."""
        leaves = pytree.tree_leaves(result)
        outputs, raw = [], []
        for k, binary in wanted.outputs:
            tensor = leaves[self._leaf[k]].contiguous()
            about = self.outputs[k].about
            if binary:
                raw.append(ctypes.string_at(tensor.data_ptr(), tensor.nbytes))
                about["parameters"] = {"binary_data_size": tensor.nbytes}
            else:
                numbers = tensor.flatten().tolist()
                if tensor.is_floating_point():
                    numbers = [x if math.isfinite(x) else None for x in numbers]
                about["data"] = numbers
            outputs.append(about)
        head = {"model_name": self.name, "model_version": VERSION, **({"id": wanted.id} if wanted.id else {})}
        text = json.dumps({**head, "outputs": outputs}).encode()
        return b"".join([text, *raw]), len(text) if raw else None


def _parse(body: bytearray, json_bytes: int | None) -> tuple[dict[str, Any], memoryview]:
    """The request's JSON, and the bytes behind it."""
    if json_bytes is not None and json_bytes > len(body):
        _bad(f"Inference-Header-Content-Length is {json_bytes}, the body has {len(body)} bytes")
    n = len(body) if json_bytes is None else json_bytes
    try:
        root = json.loads(body[:n].decode(), parse_constant=_no_constant, object_pairs_hook=_once_each)
    except (ValueError, RecursionError) as error:
        _bad(str(error) if isinstance(error, InputError) else f"request: {error}")
    if not isinstance(root, dict):
        _bad("the request is no JSON object")
    return root, memoryview(body)[n:]


class Models:
    """One model, or the same one for several shapes: a request is read by the one that has its shapes, all of them
    exactly. Nothing is padded."""

    def __init__(self, models: list[Model]) -> None:
        self.models, self.name = models, models[0].name
        for k, m in enumerate(models):
            for a, b, what in ((models[0].inputs, m.inputs, "input"), (models[0].outputs, m.outputs, "output")):
                if [_kind(t) for t in a] != [_kind(t) for t in b]:
                    raise UsageError(f"model '{self.name}': its plans for other shapes do not belong together: {what}s differ")
            if _shapes(m) in map(_shapes, models[:k]):
                raise UsageError(f"model '{self.name}': two plans are for the same shapes: {_shapes(m)}")

    @property
    def most_bytes(self) -> int:
        return max(m.most_bytes for m in self.models)

    @property
    def about(self) -> dict[str, Any]:
        found = self.models[0].about
        if len(self.models) > 1:
            every = [m.about for m in self.models]
            for key in ("inputs", "outputs"):
                for k, t in enumerate(found[key]):
                    shapes = [a[key][k]["shape"] for a in every]
                    t["shape"] = [d[0] if len(set(d)) == 1 else -1 for d in zip(*shapes)]
            found["buckets"] = [{key: m.about[key] for key in ("inputs", "outputs")} for m in self.models]
        return found

    def read(
        self, body: bytearray, json_bytes: int | None
    ) -> tuple[int, tuple[Wanted, tuple[Any, ...], dict[str, Any]]]:
        """Which of them, and what Model.read gives."""
        root, rest = _parse(body, json_bytes)
        which = 0 if len(self.models) == 1 else self._choose(root)
        return which, self.models[which].read_root(root, rest)

    def _choose(self, root: dict[str, Any]) -> int:
        items = root.get("inputs")
        given = {x["name"]: x.get("shape") for x in (items if isinstance(items, list) else [])
                 if isinstance(x, dict) and isinstance(x.get("name"), str)}  # fmt: skip
        for k, m in enumerate(self.models):
            if all(given[t.name] == list(t.meta.shape) for t in m.inputs if t.name in given):
                return k
        there = "; ".join(_shapes(m) for m in self.models)
        _bad(f"there is no plan for these shapes, and nothing is padded: there are plans for {there}"[:900])


def _kind(t: Tensor) -> tuple[str, str, int]:
    return t.name, t.datatype, len(t.meta.shape)


def _shapes(m: Model) -> str:
    return ", ".join(f"{t.name} {json.dumps(list(t.meta.shape), separators=(',', ':'))}" for t in m.inputs)


def _parameters(item: Any) -> dict[str, Any]:
    found = item.get("parameters", {}) if isinstance(item, dict) else {}
    if not isinstance(found, dict):
        _bad('"parameters" must be an object')
    return found


def _flag(item: Any, name: str, default: bool) -> bool:
    found = _parameters(item).get(name, default)
    if not isinstance(found, bool):
        _bad(f'parameter "{name}" must be true or false')
    return found


def _find(tensors: list[Tensor], item: Any, kind: str) -> int:
    name = item.get("name") if isinstance(item, dict) else None
    if not isinstance(name, str):
        _bad(f'an {kind} without "name"')
    for k, t in enumerate(tensors):
        if t.name == name:
            return k
    _bad(f"the model has no {kind} '{name[:200]}'")


def _check_shape(t: Tensor, shape: Any) -> None:
    if not isinstance(shape, list) or len(shape) > _MOST_DIMS:
        _bad(f"input '{t.name}': \"shape\" must be an array of at most {_MOST_DIMS} numbers")
    for n in shape:
        if type(n) is not int or not 0 <= n < 1 << 63:
            _bad(f"input '{t.name}': \"shape\" has {_show(n)}")
    if tuple(shape) != tuple(t.meta.shape):
        has, wants = (json.dumps(list(s), separators=(",", ":")) for s in (shape, t.meta.shape))
        _bad(f"input '{t.name}' has shape {has}, the plan is for {wants}")


def _flatten(t: Tensor, data: list[Any]) -> list[Any]:
    """The elements of arrays in arrays, which must be nested as the shape is, or of a flat one."""
    if not data or not isinstance(data[0], list):
        if len(data) > t.meta.numel:
            _bad(f"input '{t.name}': \"data\" has more than its {t.meta.numel} elements")
        return data
    shape, nesting, first = list(t.meta.shape), list[int](), data
    while isinstance(first, list):
        if len(nesting) == _MOST_DIMS:
            _bad(f"input '{t.name}': \"data\" has arrays in arrays, more than {_MOST_DIMS} deep")
        nesting.append(len(first))
        first = first[0] if first else None
    wants = json.dumps(shape, separators=(",", ":"))
    if nesting != shape[: len(nesting)] or (len(nesting) < len(shape) and nesting[-1]):
        has = json.dumps(nesting, separators=(",", ":"))
        _bad(f"input '{t.name}': \"data\" is nested as {has}, its shape is {wants}: flat, or nested as that")
    level = [data]
    for depth in range(len(nesting)):
        inside = 1
        for n in shape[depth:]:
            inside *= n
        for k, part in enumerate(level):
            if not isinstance(part, list) or len(part) != shape[depth]:
                where = f"before element {k * inside} there is no array of {shape[depth]}"
                _bad(f"input '{t.name}': \"data\" is ragged, its shape is {wants}: {where}")
        level = [x for part in level for x in part]
    return level


def _from_json(t: Tensor, data: Any) -> torch.Tensor:
    if not isinstance(data, list):
        _bad(f"input '{t.name}' has neither \"data\", an array, nor \"binary_data_size\"")
    if t.datatype in _HALF:
        _bad(f"input '{t.name}': {t.datatype} goes as binary data only")
    flat = _flatten(t, data)
    for k, value in enumerate(flat):
        if not _holds(t, value):
            _bad(f"input '{t.name}': element {k} is {_show(value)}, which is no {t.datatype}")
    if len(flat) != t.meta.numel:
        _bad(f"input '{t.name}': \"data\" has {len(flat)} elements, its shape {t.meta.numel}")
    return _tensor(t, bytearray(array.array(_TYPES[t.meta.dtype][1], flat).tobytes()))


def _holds(t: Tensor, value: Any) -> bool:
    """Whether the type has this very number (of reals, one near it)."""
    kind, dtype = type(value), t.meta.dtype
    if dtype is torch.bool:
        return kind is bool or (kind is int and 0 <= value <= 1)
    if not dtype.is_floating_point:
        info = torch.iinfo(dtype)
        return kind is int and info.min <= value <= info.max
    try:
        real = float(value) if kind in (int, float) else math.inf
    except OverflowError:
        return False
    return math.isfinite(real if dtype is torch.float64 else ctypes.c_float(real).value)


def _from_bytes(t: Tensor, size: Any, rest: memoryview) -> torch.Tensor:
    n = t.meta.bytes
    if type(size) is not int or size != n:
        _bad(f"input '{t.name}': binary_data_size is {_show(size)}, its shape and type take {n} bytes")
    if len(rest) < n:
        _bad(f"input '{t.name}': {len(rest)} of its {n} bytes are there")
    return _tensor(t, bytearray(rest[:n]))


def _tensor(t: Tensor, raw: bytearray) -> torch.Tensor:
    if not raw:
        return torch.empty(t.meta.shape, dtype=t.meta.dtype)
    if t.meta.dtype is torch.bool:
        return torch.frombuffer(raw, dtype=torch.uint8).ne(0).view(t.meta.shape)
    return torch.frombuffer(raw, dtype=t.meta.dtype).view(t.meta.shape)
