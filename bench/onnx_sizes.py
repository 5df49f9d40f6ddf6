"""Sizes of all tensors as the importer finds them, beside what ONNX's own tests and ONNX Runtime make.

    python3 bench/onnx_sizes.py --library build/release/src/libmoirai.so nodes [NAME...]
    python3 bench/onnx_sizes.py --library build/release/src/libmoirai.so files MODEL.onnx...

`nodes` takes every node test of the PyPI package onnx (onnx.backend.test.case.node). The truth is the test's expected
outputs and, for what lies between, the reference evaluator's. `files` runs each model with ONNX Runtime on random
inputs, all of its tensors as outputs. A size is right where elements and bytes per element agree; one that data decide
at run time is right where it is at least as large and the importer says so. Sequences count as the sum of their items,
what is absent as nothing. --stripped leaves out the shapes that a model declares of its outputs: rules alone must find
them. --frozen makes constants of inputs that are not real numbers, small and not the first: axes, shapes, lengths.
Prints one line per model that is not right, then counts; --json FILE keeps all of it.
"""

import argparse
import collections
import ctypes
import json
import sys
import warnings

import numpy as np
import onnx
from onnx import numpy_helper

KNOWN = ["sure", "at most", "guessed"]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_char_p),
        ("rank", ctypes.c_int32),
        ("dim", ctypes.POINTER(ctypes.c_int64)),
        ("bytes", ctypes.c_int64),
        ("constant", ctypes.c_bool),
        ("known", ctypes.c_int),
    ]


TENSOR_FN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Tensor))


class Options(ctypes.Structure):
    _fields_ = [
        ("dims", ctypes.POINTER(ctypes.c_char_p)),
        ("n_dims", ctypes.c_int),
        ("shapes", ctypes.POINTER(ctypes.c_char_p)),
        ("n_shapes", ctypes.c_int),
        ("tensor", TENSOR_FN),
        ("tensor_data", ctypes.c_void_p),
    ]


class Importer:
    """libmoirai's reader of ONNX models, for sizes only."""

    def __init__(self, path: str):
        self.lib = ctypes.CDLL(path)
        self.lib.moirai_error_message.restype = ctypes.c_char_p
        self.lib.moirai_graph_free.argtypes = [ctypes.c_void_p]

    def sizes(self, data: bytes | str) -> tuple[dict[str, dict], str]:
        """Tensors by name, and the refusal if there was one; `data` is a model or a path."""
        found: dict[str, dict] = {}

        def take(_, t):
            t = t.contents
            shape = [t.dim[i] for i in range(t.rank)]
            found[t.name.decode()] = {"shape": shape, "bytes": t.bytes, "type": t.type.decode(), "known": KNOWN[t.known]}

        options, graph = Options(tensor=TENSOR_FN(take)), ctypes.c_void_p()
        if isinstance(data, str):
            call, args = self.lib.moirai_onnx_read, (data.encode(),)
        else:
            call, args = self.lib.moirai_onnx_parse, (data, ctypes.c_size_t(len(data)), b"model")
        rc = call(ctypes.byref(graph), *args, ctypes.byref(options), None)
        message = self.lib.moirai_error_message().decode() if rc else ""
        self.lib.moirai_graph_free(graph)
        return found, message


def size_of(value) -> tuple[int, int | None]:
    """Elements and bytes of what a run made; bytes are None for strings."""
    if value is None:
        return 0, 0
    if isinstance(value, (list, tuple)):
        sizes = [size_of(v) for v in value]
        return sum(s[0] for s in sizes), None if any(s[1] is None for s in sizes) else sum(s[1] for s in sizes)
    if isinstance(value, onnx.TensorProto):
        value = numpy_helper.to_array(value)
    value = np.asarray(value)
    if value.dtype.kind in "OUS":
        return value.size, None
    bits = {"int4": 4, "uint4": 4, "float4_e2m1fn": 4, "int2": 2, "uint2": 2}.get(value.dtype.name, 8 * value.itemsize)
    return value.size, (value.size * bits + 7) // 8


def judge(found: dict | None, value) -> str:
    """ "" where the importer is right, else what it has instead."""
    elements, nbytes = size_of(value)
    if found is None:
        return f"not there, {elements} elements"
    ours = int(np.prod(found["shape"], dtype=np.int64))
    if nbytes is None:
        nbytes = 8 * elements
    if found["known"] == "at most":
        return "" if ours >= elements and found["bytes"] >= nbytes else f"at most {found['shape']}, is {value_shape(value)}"
    if (ours, found["bytes"]) == (elements, nbytes):
        return ""
    return f"{found['known']} {found['type']} {found['shape']} ({found['bytes']} B), is {value_shape(value)} ({nbytes} B)"


def value_shape(value) -> str:
    return str([value_shape(v) for v in value]) if isinstance(value, (list, tuple)) else str(list(np.shape(value)))


def strip_outputs(model: onnx.ModelProto) -> None:
    for output in model.graph.output:
        if output.type.HasField("tensor_type"):
            output.type.tensor_type.ClearField("shape")


def freeze_inputs(model: onnx.ModelProto, feeds: dict) -> None:
    """What rules may need to know becomes known, as it is in networks."""
    kept = []
    for position, i in enumerate(model.graph.input):
        value = feeds.get(i.name)
        array = isinstance(value, np.ndarray) or np.isscalar(value)
        small = array and np.size(value) <= 64 and (np.asarray(value).dtype.kind in "iub" or np.size(value) <= 8)
        number = array and np.size(value) == 1
        if number or (small and (position or len(model.graph.node) > 1) and len(model.graph.input) > 1):
            model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), i.name))
        else:
            kept.append(i)
    del model.graph.input[:]
    model.graph.input.extend(kept)


def between(model: onnx.ModelProto, feeds: dict) -> dict:
    """Every tensor between inputs and outputs, where the reference evaluator can run the model."""
    if len(model.graph.node) < 2:
        return {}
    from onnx.reference import ReferenceEvaluator

    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return ReferenceEvaluator(model).run(None, feeds, intermediate=True)
    except Exception:  # noqa: BLE001  operators that it does not know, and much else
        return {}


def node_tests(names: list[str]):
    from onnx.backend.test.case.node import collect_testcases

    for case in collect_testcases():
        if names and case.name not in names:
            continue
        inputs, outputs = case.data_sets[0]
        feeds = {i.name: v for i, v in zip(case.model.graph.input, inputs)}
        truth = {o.name: v for o, v in zip(case.model.graph.output, outputs)}
        yield case.name, case.model, feeds, truth


def check_nodes(importer: Importer, args) -> list[dict]:
    rows = []
    for name, model, feeds, truth in node_tests(args.names):
        inner = {k: v for k, v in between(model, feeds).items() if k not in feeds and k not in truth and k}
        if args.frozen:
            freeze_inputs(model, feeds)
        if args.stripped:
            strip_outputs(model)
        found, message = importer.sizes(model.SerializeToString())
        wrong = {k: w for k, v in truth.items() if (w := judge(found.get(k), v))}
        wrong_inner = {k: w for k, v in inner.items() if (w := judge(found.get(k), v))}
        ops = sorted({n.op_type for n in model.graph.node})
        rows.append({"name": name, "ops": ops, "refused": message, "wrong": wrong, "inner": len(inner), "wrong_inner": wrong_inner})
    return rows


NUMPY = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64, "tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_, "tensor(uint8)": np.uint8, "tensor(int8)": np.int8}


def run_all(path: str) -> dict:
    """Every tensor of a model whose inputs have fixed shapes, as ONNX Runtime makes it."""
    import onnxruntime as ort

    model = onnx.load(path, load_external_data=False)
    have = {o.name for o in model.graph.output}
    made = [o for n in model.graph.node for o in n.output if o and o not in have]
    model.graph.output.extend(onnx.ValueInfoProto(name=o) for o in made)
    everything = path + ".all.onnx"
    onnx.save(model, everything)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = ort.InferenceSession(everything, options, providers=["CPUExecutionProvider"])
        rng, feeds = np.random.default_rng(1), {}
        for i in session.get_inputs():
            shape = [d if isinstance(d, int) else 1 for d in i.shape]
            dtype = NUMPY[i.type]
            feeds[i.name] = rng.standard_normal(shape).astype(dtype) if dtype().dtype.kind == "f" else np.ones(shape, dtype)
        names = [o.name for o in session.get_outputs()]
        return dict(zip(names, session.run(names, feeds)))
    finally:
        import os

        os.unlink(everything)


def check_files(importer: Importer, args) -> list[dict]:
    rows = []
    for path in args.names:
        found, message = importer.sizes(path)
        truth = run_all(path)
        wrong = {k: w for k, v in truth.items() if (w := judge(found.get(k), v))}
        bounds = sum(1 for k in truth if k in found and found[k]["known"] == "at most")
        rows.append({"name": path, "ops": [], "refused": message, "wrong": wrong, "inner": len(truth), "at_most": bounds, "wrong_inner": {}})
    return rows


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--library", required=True)
    p.add_argument("--json")
    p.add_argument("--stripped", action="store_true")
    p.add_argument("--frozen", action="store_true")
    p.add_argument("what", choices=["nodes", "files"])
    p.add_argument("names", nargs="*")
    args = p.parse_args()
    importer = Importer(args.library)
    rows = check_nodes(importer, args) if args.what == "nodes" else check_files(importer, args)
    for r in rows:
        for k, w in list(r["wrong"].items())[:3] + list(r["wrong_inner"].items())[:2]:
            print(f"{r['name']}: {k}: {w}")
        if r["refused"]:
            print(f"{r['name']}: refused: {r['refused']}")
    right = [r for r in rows if not r["wrong"] and not r["refused"]]
    exact = [r for r in right if not r["wrong_inner"]]
    print(f"{len(rows)} models, {len(right)} with the right sizes of all outputs, {len(exact)} of all tensors; {sum(r['inner'] for r in rows)} tensors between inputs and outputs")
    why = collections.Counter(r["refused"].split(": ")[-1][:60] for r in rows if r["refused"])
    for reason, n in why.most_common():
        print(f"  refused {n}: {reason}")
    if args.json:
        with open(args.json, "w") as f:
            json.dump(rows, f, indent=1)
    sys.exit(0)


if __name__ == "__main__":
    main()
