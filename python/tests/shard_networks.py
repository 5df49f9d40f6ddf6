"""Networks whose operators can be cut: transformers as exporters spell them, convolutions, quantised and shared weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx_writer import Net


def linear(n: Net, x: str, rows: int, columns: int, name: str, bias: bool = True) -> str:
    y = n("MatMul", x, n.weight(rows, columns), name=n.scope + name)
    return n("Add", n.weight(columns), y) if bias else y


def norm(n: Net, x: str, width: int) -> str:
    return n("LayerNormalization", x, n.weight(width), n.weight(width), axis=-1)


def gelu(n: Net, x: str) -> str:
    """Spelt out, as exporters before opset 20 do."""
    half = n("Mul", x, n.constant(np.array(0.5, np.float32)))
    erf = n("Erf", n("Div", x, n.constant(np.array(1.41421356, np.float32))))
    return n("Mul", half, n("Add", erf, n.constant(np.array(1, np.float32))))


def heads(n: Net, x: str, tokens: int, count: int, width: int, perm: tuple[int, ...] = (0, 2, 1, 3)) -> str:
    return n("Transpose", n("Reshape", x, n.ints(0, 0, count, width)), perm=list(perm))


def attention(n: Net, x: str, tokens: int, width: int, count: int, groups: int = 0, fused: bool = False, mask: str = "") -> str:
    """`groups`: of heads that share keys and values."""
    each = width // count
    groups = groups or count
    if fused:
        q, k, v = n("Split", linear(n, x, width, 3 * width, "qkv"), n.ints(width, width, width), outputs=3, axis=2)
    else:
        q = linear(n, x, width, width, "q")
        k, v = (linear(n, x, width, groups * each, name) for name in "kv")
    q = heads(n, q, tokens, count, each)
    k, v = (heads(n, t, tokens, groups, each) for t in (k, v))
    if groups != count:
        k, v = (
            n("Reshape", n("Expand", n("Unsqueeze", t, n.ints(2)), n.ints(1, groups, count // groups, tokens, each)),
              n.ints(0, count, tokens, each))
            for t in (k, v)
        )  # fmt: skip
    score = n("MatMul", q, n("Transpose", k, perm=[0, 1, 3, 2]))
    score = n("Mul", score, n.constant(np.array(each**-0.5, np.float32)))
    score = n("Add", score, mask) if mask else score
    mixed = n("MatMul", n("Softmax", score, axis=-1), v)
    mixed = n("Reshape", n("Transpose", mixed, perm=[0, 2, 1, 3]), n.ints(0, 0, width))
    return linear(n, mixed, width, width, "out")


def mlp(n: Net, x: str, width: int, hidden: int, gated: bool = False) -> str:
    up = linear(n, x, width, hidden, "up")
    if gated:
        up = n("Mul", n("Mul", up, n("Sigmoid", up)), linear(n, x, width, hidden, "gate", bias=False))
    else:
        up = gelu(n, up)
    return linear(n, up, hidden, width, "down")


def transformer(seed: int = 0, layers: int = 2, batch: int = 1, tokens: int = 6, width: int = 24, count: int = 4, hidden: int = 40,
                groups: int = 0, fused: bool = False, gated: bool = False, mask: bool = False, vocabulary: int = 30) -> Net:  # fmt: skip
    n = Net(seed)
    x = n("Gather", n.weight(vocabulary, width), n.input("tokens", batch, tokens, kind=7), name="embed")
    bias = n.input("mask", 1, count, tokens, tokens) if mask else ""
    for i in range(layers):
        n.scope = f"layer{i}/"
        x = n("Add", x, attention(n, norm(n, x, width), tokens, width, count, groups, fused, bias))
        x = n("Add", x, mlp(n, norm(n, x, width), width, hidden, gated))
    n.scope = ""
    n.result(n("MatMul", norm(n, x, width), n.weight(width, vocabulary), name="head"))
    return n


def conv(n: Net, x: str, inputs: int, outputs: int, size: int = 3, groups: int = 1, normed: bool = True, **how: Any) -> str:
    y = n("Conv", x, n.weight(outputs, inputs // groups, size, size), n.weight(outputs), group=groups,
          pads=[size // 2] * 4, kernel_shape=[size, size], **how)  # fmt: skip
    if normed:
        statistics = [n.constant(np.abs(n.random.standard_normal(outputs)).astype(np.float32) + 0.5) for _ in range(4)]
        y = n("BatchNormalization", y, *statistics)
    return n("Relu", y)


def convolutional(seed: int = 0, batch: int = 1, channels: int = 12, size: int = 10) -> Net:
    n = Net(seed)
    x = conv(n, n.input("image", batch, 3, size, size), 3, channels)
    for i in range(2):
        n.scope = f"block{i}/"
        y = conv(n, conv(n, x, channels, channels), channels, channels)
        x = n("Add", x, conv(n, y, channels, channels, 1))
    n.scope = ""
    x = n("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = n("Flatten", n("GlobalAveragePool", x))
    n.result(n("Gemm", x, n.weight(channels, 7), n.weight(7), name="classes"))
    return n


def grouped(seed: int = 0, batch: int = 1, channels: int = 24, groups: int = 6, size: int = 8) -> Net:
    """A narrow, a grouped and a wide convolution, then a depthwise one between two others."""
    n = Net(seed)
    x = n.input("image", batch, 4, size, size)
    x = conv(n, conv(n, conv(n, x, 4, channels, 1), channels, channels, 3, groups), channels, channels, 1)
    x = conv(n, conv(n, conv(n, x, channels, 2 * channels, 1), 2 * channels, 2 * channels, 3, 2 * channels), 2 * channels, 8, 1)
    n.result(conv(n, x, 8, 8, 3, 4, normed=False))
    return n


def shared(seed: int = 0, layers: int = 3, tokens: int = 5, width: int = 16, hidden: int = 48) -> Net:
    """Layers with the weights of one, and an embedding that is the last product's weight as well."""
    n = Net(seed)
    table, up, down = n.weight(20, width), n.weight(width, hidden), n.weight(hidden, width)
    x = n("Gather", table, n.input("tokens", 1, tokens, kind=7))
    for i in range(layers):
        n.scope = f"layer{i}/"
        y = n("Relu", n("MatMul", x, n("Identity", up), name=f"layer{i}/up"))
        x = n("Add", x, n("MatMul", y, down, name=f"layer{i}/down"))
    n.scope = ""
    n.result(n("MatMul", x, n("Transpose", table, perm=[1, 0]), name="head"))
    return n


def quantised(seed: int = 0, tokens: int = 5, width: int = 16, hidden: int = 32, per_channel: bool = True) -> Net:
    """Weights of seven bits: with eight, ONNX Runtime's products saturate on x86-64 without VNNI, each kernel's elsewhere."""
    n = Net(seed)

    def weight(rows: int, columns: int) -> str:
        numbers = n.constant(n.random.integers(-63, 64, (rows, columns)).astype(np.int8))
        if not per_channel:
            return n("DequantizeLinear", numbers, n.constant(np.array(0.01, np.float32)), n.constant(np.array(0, np.int8)))
        scale = n.constant((n.random.random(columns) * 0.01 + 0.005).astype(np.float32))
        return n("DequantizeLinear", numbers, scale, n.constant(np.zeros(columns, np.int8)), axis=1)

    def activation(x: str) -> str:
        scale, zero = n.constant(np.array(0.05, np.float32)), n.constant(np.array(3, np.int8))
        return n("DequantizeLinear", n("QuantizeLinear", x, scale, zero), scale, zero)

    x = activation(n.input("x", 1, tokens, width))
    for i in range(2):
        y = n("Relu", n("Add", n("MatMul", x, weight(width, hidden), name=f"layer{i}/up"), n.weight(hidden)))
        x = activation(n("Add", x, n("MatMul", activation(y), weight(hidden, width), name=f"layer{i}/down")))
    n.result(x)
    return n


def bottleneck(n: Net, x: str, inputs: int, width: int, stride: int) -> str:
    """Narrow, look around, widen again, as ResNet-50 does; where the shape changes, so does what it is added to."""
    y = conv(n, conv(n, x, inputs, width, 1), width, width, 3, strides=[stride, stride])
    y = n("Conv", y, n.weight(4 * width, width, 1, 1), n.weight(4 * width))
    if stride != 1 or inputs != 4 * width:
        x = n("Conv", x, n.weight(4 * width, inputs, 1, 1), n.weight(4 * width), strides=[stride, stride])
    return n("Relu", n("Add", y, x))


def resnet(width: int = 4, size: int = 32, blocks: tuple[int, ...] = (3, 4, 6, 3), classes: int = 10) -> Net:
    """ResNet-50's layers; its own width is 64, its size 224."""
    n = Net(0)
    x = n("Conv", n.input("image", 1, 3, size, size), n.weight(width, 3, 7, 7), n.weight(width), strides=[2, 2], pads=[3] * 4)
    x = n("MaxPool", n("Relu", x), kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = width
    for stage, count in enumerate(blocks):
        for i in range(count):
            n.scope = f"stage{stage}/block{i}/"
            x = bottleneck(n, x, channels, width << stage, 2 if stage and not i else 1)
            channels = 4 * width << stage
    n.scope = ""
    n.result(n("Gemm", n("Flatten", n("GlobalAveragePool", x)), n.weight(channels, classes), n.weight(classes), name="classes"))
    return n


def unet(width: int = 4, size: int = 32, depth: int = 3, classes: int = 2) -> Net:
    """Down by pools, up by transposed convolutions or by Resize, with tensors of every size handed across."""
    n = Net(0)
    x, channels, across = n.input("image", 1, 3, size, size), 3, []
    for i in range(depth):
        n.scope = f"down{i}/"
        x = conv(n, conv(n, x, channels, width << i), width << i, width << i)
        channels = width << i
        across.append(x)
        x = n("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    n.scope = "bottom/"
    x = conv(n, conv(n, x, channels, 2 * channels), 2 * channels, 2 * channels)
    channels *= 2
    for i in reversed(range(depth)):
        n.scope = f"up{i}/"
        if i % 2:
            x = n("Resize", x, "", n.constant(np.array([1, 1, 2, 2], np.float32)), mode="linear",
                  coordinate_transformation_mode="half_pixel")  # fmt: skip
            x = conv(n, x, channels, width << i, 1)
        else:
            x = n("ConvTranspose", x, n.weight(channels, width << i, 2, 2), n.weight(width << i), strides=[2, 2])
        channels = width << i
        x = conv(n, conv(n, n("Concat", across[i], x, axis=1), 2 * channels, channels), channels, channels)
    n.scope = ""
    n.result(n("Conv", x, n.weight(classes, channels, 1, 1), n.weight(classes), name="classes"))
    return n
