"""Networks as people download them, as ONNX files with random weights, for bench/first_hour.py.

    python3 bench/first_hour_networks.py export FOLDER [NAME...]   # needs torch, onnx; timm, torchvision, transformers as far as NAMEs are theirs
    python3 bench/first_hour_networks.py pack FOLDER FILE.zip      # graphs alone: a few MB
    python3 bench/first_hour_networks.py unpack FILE.zip FOLDER    # needs nothing; NumPy makes it quick

What can't be exported is named and left out. A pack has no weights: large ones are drawn again, with the mean and the
spread that they had, so that a machine without network needs no framework and numbers stay of the size they were.
"""

from __future__ import annotations

import argparse
import array
import json
import random
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any, Callable, Iterator

SMALL = 4096  # bytes of a tensor that a pack keeps as it is


# ---- networks


def vision(name: str) -> Any:
    import onnx_networks as n
    import torch

    torch.manual_seed(1)
    n.without_cuda()
    import torchvision

    given = {"googlenet": {"aux_logits": False, "init_weights": False}, "inception_v3": {"aux_logits": True, "init_weights": False}}
    size = 299 if name == "inception_v3" else 224
    return torchvision.models.get_model(name, weights=None, **given.get(name, {})), (torch.randn(1, 3, size, size),), {}


def timm(name: str) -> Any:
    import onnx_networks as n

    module, args, _ = n.make("timm:" + name)
    return module, args, {}


def transformers(kind: str, tokens: int, **sizes: Any) -> Any:
    import onnx_networks as n
    import torch

    torch.manual_seed(1)
    n.without_cuda()
    import transformers as t

    config = t.AutoConfig.for_model(kind, use_cache=False, **sizes)
    inner = t.AutoModel.from_config(config, attn_implementation="eager")
    words = lambda n: torch.randint(1, 1000, (1, n))  # noqa: E731
    args = {"t5": ("input_ids", "decoder_input_ids"), "whisper": ("input_features", "decoder_input_ids")}.get(kind, ("input_ids",))
    given = [torch.randn(1, 80, 3000) if a == "input_features" else words(tokens) for a in args]

    class Named(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, *tensors: Any) -> Any:
            return self.inner(**dict(zip(args, tensors))).to_tuple()[0]

    return Named(), tuple(given), {}


def yolo() -> Any:
    """A detector: three maps that are enlarged and joined, and its images of any size."""
    import torch
    from torch import nn

    torch.manual_seed(1)

    def conv(a: int, b: int, k: int = 3, s: int = 1) -> nn.Sequential:
        return nn.Sequential(nn.Conv2d(a, b, k, s, k // 2, bias=False), nn.BatchNorm2d(b), nn.SiLU())

    class Csp(nn.Module):
        def __init__(self, c: int) -> None:
            super().__init__()
            h = c // 2
            self.a, self.b, self.m, self.out = conv(c, h, 1), conv(c, h, 1), nn.Sequential(conv(h, h, 1), conv(h, h)), conv(c, c, 1)

        def forward(self, x: Any) -> Any:
            a = self.a(x)
            return self.out(torch.cat([a + self.m(a), self.b(x)], 1))

    class Yolo(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            c = [32, 64, 128, 256, 512]
            self.stem = conv(3, c[0], 3, 2)
            self.down = nn.ModuleList(nn.Sequential(conv(a, b, 3, 2), Csp(b)) for a, b in zip(c, c[1:]))
            self.lateral = nn.ModuleList([conv(512, 256, 1), conv(256, 128, 1)])
            self.up = nn.ModuleList([nn.Sequential(conv(512, 256, 1), Csp(256)), nn.Sequential(conv(256, 128, 1), Csp(128))])
            self.head = nn.ModuleList(nn.Conv2d(n, 255, 1) for n in (128, 256, 512))

        def forward(self, x: Any) -> Any:
            x, kept = self.stem(x), []
            for part in self.down:
                x = part(x)
                kept.append(x)
            out = [self.head[2](x)]
            for i in range(2):
                x = nn.functional.interpolate(self.lateral[i](x), scale_factor=2.0, mode="nearest")
                x = self.up[i](torch.cat([x, kept[2 - i]], 1))
                out.append(self.head[1 - i](x))
            return tuple(out)

    axes = {"x0": {0: "batch", 2: "height", 3: "width"}}
    return Yolo(), (torch.randn(1, 3, 320, 320),), axes


def unet() -> Any:
    import torch
    from torch import nn

    torch.manual_seed(1)

    def double(a: int, b: int) -> nn.Sequential:
        return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1), nn.ReLU())

    class Unet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            c = [16, 32, 64, 128, 256]
            self.down = nn.ModuleList(double(a, b) for a, b in zip([3] + c, c))
            self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(c[::-1][1:], c[::-1]))
            self.join = nn.ModuleList(double(2 * a, a) for a in c[::-1][1:])
            self.out = nn.Conv2d(16, 2, 1)

        def forward(self, x: Any) -> Any:
            kept = []
            for i, part in enumerate(self.down):
                x = part(x if i == 0 else nn.functional.max_pool2d(x, 2))
                kept.append(x)
            for i in range(4):
                x = self.join[i](torch.cat([self.up[i](x), kept[3 - i]], 1))
            return self.out(x)

    return Unet(), (torch.randn(1, 3, 256, 256),), {}


def own(name: str) -> Any:
    import networks

    module, args = networks.make(name)
    return module, args, {}


NETWORKS: dict[str, Callable[[], Any]] = {
    **{n: (lambda n=n: vision(n)) for n in """squeezenet1_1 googlenet inception_v3 densenet121 mobilenet_v2 mobilenet_v3_large shufflenet_v2_x1_0
    resnet50 resnet101 regnet_y_1_6gf convnext_tiny swin_t""".split()},
    **{n: (lambda n=n: timm(n)) for n in """efficientnet_b0 vit_small_patch16_224 deit_tiny_patch16_224 maxvit_tiny_tf_224 hrnet_w18 coat_mini
    inception_v4 pit_s_224""".split()},
    "bert_small": lambda: transformers("bert", 128, hidden_size=512, num_hidden_layers=4, num_attention_heads=8, intermediate_size=2048),
    "gpt2_small": lambda: transformers("gpt2", 64, n_layer=6, vocab_size=8000),
    "t5_small": lambda: transformers("t5", 64, vocab_size=8000),
    "whisper_tiny": lambda: transformers("whisper", 16, vocab_size=8000, d_model=384, encoder_layers=4, decoder_layers=4, encoder_attention_heads=6,
                                         decoder_attention_heads=6, encoder_ffn_dim=1536, decoder_ffn_dim=1536),
    "yolo": yolo,
    "unet": unet,
    "nasnet": lambda: own("nasnet"),
}  # fmt: skip


def export_one(folder: Path, name: str) -> None:
    import torch

    warnings.filterwarnings("ignore")  # of the exporter: shapes are fixed on purpose
    module, args, axes = NETWORKS[name]()
    names = [f"x{i}" for i in range(len(args))]
    with torch.no_grad():
        torch.onnx.export(module.eval(), args, str(folder / f"{name}.onnx"), dynamo=False, opset_version=17, input_names=names, dynamic_axes=axes or None)


def export(folder: Path, names: list[str]) -> int:
    """Each in a process of its own: one that fails, or takes all memory, is one."""
    folder.mkdir(parents=True, exist_ok=True)
    unknown = [n for n in names if n not in NETWORKS]
    if unknown:
        sys.exit(f"first_hour_networks: no network '{unknown[0]}': there are {', '.join(NETWORKS)}")
    for name in names or NETWORKS:
        if (folder / f"{name}.onnx").exists():
            continue
        done = subprocess.run([sys.executable, __file__, "one", str(folder), name], capture_output=True, text=True, cwd=Path(__file__).parent)
        print(f"{name}: " + ("exported" if done.returncode == 0 else "left out: " + (done.stderr.strip().splitlines() or ["?"])[-1][:160]), flush=True)
    return 0


# ---- packs: protobuf's wire format, as far as it is needed: fields of a message, one after the other


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
        if byte < 128:
            return value, at


def to_varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def fields(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Number, content (of a message, text or bytes; else the number's own bytes) and the whole field."""
    at = 0
    while at < len(data):
        begin = at
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 2:
            length, at = varint(data, at)
            content, at = data[at : at + length], at + length
        else:
            end = varint(data, at)[1] if kind == 0 else at + (8 if kind == 1 else 4)
            content, at = data[at:end], end
        yield tag >> 3, content, data[begin:at]


def field(number: int, content: bytes) -> bytes:
    return to_varint(number << 3 | 2) + to_varint(len(content)) + content


MODEL_GRAPH, GRAPH_INITIALIZER, TENSOR_TYPE, TENSOR_NAME, TENSOR_RAW, FLOAT = 7, 5, 2, 8, 9, 1


def lighten(tensor: bytes) -> tuple[bytes, list[float] | None]:
    """A tensor without its numbers, and their count, mean and spread; None where they stay."""
    kind, raw, rest = 0, b"", b""
    for number, content, whole in fields(tensor):
        kind = varint(content, 0)[0] if number == TENSOR_TYPE else kind
        raw, rest = (content, rest) if number == TENSOR_RAW else (raw, rest + whole)
    if kind != FLOAT or len(raw) <= SMALL:
        return tensor, None
    numbers = array.array("f", raw)
    mean = sum(numbers) / len(numbers)
    spread = (sum(x * x for x in numbers[:: max(1, len(numbers) // 10000)]) / len(numbers[:: max(1, len(numbers) // 10000)])) - mean * mean
    return rest, [len(numbers), mean, max(spread, 0) ** 0.5]


def rebuilt(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """The model with every initializer changed."""
    out = b""
    for number, content, whole in fields(data):
        if number == MODEL_GRAPH:
            parts = [field(GRAPH_INITIALIZER, change(c)) if n == GRAPH_INITIALIZER else w for n, c, w in fields(content)]
            whole = field(MODEL_GRAPH, b"".join(parts))
        out += whole
    return out


def pack(folder: Path, path: Path) -> int:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for file in sorted(folder.glob("*.onnx")):
            weights: list[list[float] | None] = []

            def change(tensor: bytes) -> bytes:
                light, numbers = lighten(tensor)
                weights.append(numbers)
                return light

            out.writestr(file.name, rebuilt(file.read_bytes(), change))
            out.writestr(file.stem + ".weights.json", json.dumps(weights))
            print(f"{file.name}: {len(weights)} initializers, {sum(w is not None for w in weights)} without their numbers", flush=True)
    return 0


def normal(count: int, mean: float, spread: float) -> bytes:
    try:
        import numpy

        rng = numpy.random.default_rng(count)
        return (rng.standard_normal(count, dtype=numpy.float32) * numpy.float32(spread) + numpy.float32(mean)).tobytes()
    except ImportError:
        block = array.array("f", (random.gauss(mean, spread) for _ in range(min(count, 4099))))
        return (block * (count // len(block) + 1))[:count].tobytes()


def unpack(path: Path, folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path) as pack:
        for name in pack.namelist():
            if name.endswith(".onnx"):
                weights = iter(json.loads(pack.read(name[: -len(".onnx")] + ".weights.json")))
                fill = lambda t: t if (w := next(weights)) is None else t + field(TENSOR_RAW, normal(int(w[0]), w[1], w[2]))  # noqa: E731
                (folder / name).write_bytes(rebuilt(pack.read(name), fill))
    return 0


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=["export", "one", "pack", "unpack"])
    p.add_argument("first", type=Path)
    p.add_argument("rest", nargs="*")
    args = p.parse_args()
    if args.what == "export":
        return export(args.first.resolve(), args.rest)
    if len(args.rest) != 1:
        p.error(f"{args.what}: one more word is needed")
    if args.what == "one":
        export_one(args.first, args.rest[0])
        return 0
    return (pack if args.what == "pack" else unpack)(args.first, Path(args.rest[0]))


if __name__ == "__main__":
    sys.exit(main())
