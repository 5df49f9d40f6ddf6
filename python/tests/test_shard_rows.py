"""Images cut by rows compute what whole ones do: by ONNX Runtime, on random graphs with random cuts, and over MPI."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import need

np = need("numpy")
ort = need("onnxruntime")

import moirai  # noqa: E402
import shard_networks as networks  # noqa: E402
from onnx_writer import Net  # noqa: E402
from test_shard import runs_on_three_ranks, same  # noqa: E402


def rows_of(shards: moirai.Shards) -> list[Any]:
    return [s for s in shards.strips if s.kind == "rows"]


def random_sizes(pick: Any, units: int, most: int = 5) -> str:
    ends = sorted(pick.choice(np.arange(1, units), int(pick.integers(1, min(units, most))), replace=False))
    return ",".join(map(str, np.diff([0, *ends, units])))


# ---- one operator after the other, by chance


def pads(pick: Any, most: int) -> list[int]:
    return [int(p) for p in pick.integers(0, most + 1, 4)]


def window(pick: Any, dilated: bool = True) -> tuple[list[int], dict[str, Any], int]:
    """A kernel, how it moves, and how far it reaches."""
    kernel = [int(k) for k in pick.integers(1, 5, 2)]
    dilations = [int(d) for d in (pick.integers(1, 3, 2) if dilated else (1, 1))]
    how: dict[str, Any] = {"strides": [int(s) for s in pick.choice([1, 1, 2, 3], 2)]}
    if dilated:
        how["dilations"] = dilations
    return kernel, how, max(d * (k - 1) + 1 for k, d in zip(kernel, dilations))


class Image:
    """A tensor of the network under construction, with its channels and its size."""

    def __init__(self, n: Net, x: str, channels: int, size: tuple[int, int]) -> None:
        self.n, self.x, self.channels, self.size = n, x, channels, size

    def then(self, x: str, size: tuple[int, int] | None = None, channels: int | None = None) -> Image:
        return Image(self.n, x, channels or self.channels, size or self.size)


def slide(size: tuple[int, int], kernel: list[int], how: dict[str, Any], ceil: bool = False) -> tuple[int, int] | None:
    """Sizes after windows; None where there is no room."""
    out = []
    for i in range(2):
        s, d = how["strides"][i], how.get("dilations", [1, 1])[i]
        p = how.get("pads", [0] * 4)
        room = size[i] + p[i] + p[i + 2] - (d * (kernel[i] - 1) + 1)
        if how.get("auto_pad", "NOTSET").startswith("SAME"):
            out.append(-(-size[i] // s))
            continue
        if room < 0:
            return None
        out.append(-(-room // s) + 1 if ceil else room // s + 1)
        if ceil and (out[i] - 1) * s >= size[i] + p[i]:  # a window of padding alone, of which runtimes think differently
            return None
    return (out[0], out[1]) if min(out) > 0 else None


def conv(image: Image) -> Image:
    n, pick = image.n, image.n.random
    kernel, how, reach = window(pick)
    groups = int(pick.choice([g for g in (1, 2, image.channels) if image.channels % g == 0]))
    outputs = groups * int(pick.integers(1, 4))
    if pick.random() < 0.3:
        how["auto_pad"] = str(pick.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]))
        if how["auto_pad"] == "SAME_LOWER" or how["auto_pad"] == "SAME_UPPER":
            del how["dilations"]
    else:
        how["pads"] = pads(pick, reach + 1)
    size = slide(image.size, kernel, how)
    if not size:
        return image
    y = n("Conv", image.x, n.weight(outputs, image.channels // groups, *kernel), n.weight(outputs), group=groups, **how)
    return image.then(y, size, outputs)


def transposed(image: Image) -> Image:
    n, pick = image.n, image.n.random
    kernel, how, _ = window(pick)
    groups = 2 if image.channels % 2 == 0 and pick.random() < 0.3 else 1
    each = int(pick.integers(1, 4))
    how["pads"] = [min(int(p), (k - 1) * d) for p, k, d in zip(pads(pick, 2), kernel * 2, how["dilations"] * 2)]
    how["output_padding"] = [int(pick.integers(0, s)) for s in how["strides"]]
    size = tuple((image.size[i] - 1) * how["strides"][i] + how["dilations"][i] * (kernel[i] - 1) + 1 + how["output_padding"][i]
                 - how["pads"][i] - how["pads"][i + 2] for i in range(2))  # fmt: skip
    if min(size) < 1 or max(size) > 60:
        return image
    y = n("ConvTranspose", image.x, n.weight(image.channels, each, *kernel), group=groups, **how)
    return image.then(y, size, each * groups)


def pool(image: Image) -> Image:
    n, pick = image.n, image.n.random
    kind = str(pick.choice(["MaxPool", "AveragePool", "LpPool"]))
    kernel, how, _ = window(pick, dilated=kind == "MaxPool" and pick.random() < 0.5)
    how["pads"] = [min(p, k - 1) for p, k in zip(pads(pick, 2), kernel * 2)]
    ceil = kind != "LpPool" and pick.random() < 0.5
    if ceil:
        how["ceil_mode"] = 1
    if kind == "AveragePool":
        how["count_include_pad"] = 0 if ceil else int(pick.integers(0, 2))
    size = slide(image.size, kernel, how, ceil)
    return image.then(n(kind, image.x, kernel_shape=kernel, **how), size) if size else image


def padded(image: Image) -> Image:
    widths = pads(image.n.random, 3)
    size = (image.size[0] + widths[0] + widths[2], image.size[1] + widths[1] + widths[3])
    return image.then(image.n("Pad", image.x, image.n.ints(0, 0, *widths[:2], 0, 0, *widths[2:])), size)


def resized(image: Image) -> Image:
    n, pick = image.n, image.n.random
    up, wide = int(pick.integers(1, 4)), int(pick.integers(1, 3))
    if max(image.size) * up > 60:
        return image
    size = (image.size[0] * up, image.size[1] * wide)
    mode = str(pick.choice(["nearest", "linear", "cubic"]))
    how = {"mode": mode, "coordinate_transformation_mode": str(pick.choice(["half_pixel", "asymmetric", "pytorch_half_pixel"]))}
    if mode == "nearest":
        how["nearest_mode"] = str(pick.choice(["floor", "round_prefer_floor"]))
    if pick.random() < 0.5:
        sizes = n.ints(1, image.channels, *size)
        return image.then(n("Resize", image.x, "", "", sizes, **how), size)
    return image.then(n("Resize", image.x, "", n.constant(np.array([1, 1, up, wide], np.float32)), **how), size)


def blocks(image: Image) -> Image:
    if image.n.random.random() < 0.5 and image.size[0] % 2 == 0 and image.size[1] % 2 == 0 and min(image.size) > 3:
        y = image.n("SpaceToDepth", image.x, blocksize=2)
        return image.then(y, (image.size[0] // 2, image.size[1] // 2), 4 * image.channels)
    if image.channels % 4 or max(image.size) > 30:
        return image
    return image.then(image.n("DepthToSpace", image.x, blocksize=2), (image.size[0] * 2, image.size[1] * 2), image.channels // 4)


def residual(image: Image) -> Image:
    n, c = image.n, image.channels
    y = networks.conv(n, networks.conv(n, image.x, c, 3), 3, c, size=5)
    return image.then(n("Add", y, image.x))


def branches(image: Image) -> Image:
    n, c = image.n, image.channels
    parts = [networks.conv(n, image.x, c, 2, size=size, normed=False) for size in (1, 3, 5)]
    return image.then(n("Concat", *parts, n("MaxPool", image.x, kernel_shape=[3, 3], pads=[1] * 4), axis=1), channels=6 + c)


def gated(image: Image) -> Image:
    """Squeeze and excitation: a gate that depends on all rows."""
    n, c = image.n, image.channels
    gate = n("Sigmoid", n("Conv", n("GlobalAveragePool", image.x), n.weight(c, c, 1, 1)))
    return image.then(n("Mul", gate, image.x))


def positions(image: Image) -> Image:
    """A constant with rows of its own."""
    return image.then(image.n("Add", image.x, image.n.weight(1, 1, image.size[0], 1)))


def channels_last(image: Image) -> Image:
    n, c = image.n, image.channels
    y = n("Transpose", image.x, perm=[0, 2, 3, 1])
    y = networks.norm(n, y, c)
    y = networks.linear(n, n("Relu", networks.linear(n, y, c, 7, "up")), 7, c, "down")
    return image.then(n("Add", image.x, n("Transpose", y, perm=[0, 3, 1, 2])))


def activated(image: Image) -> Image:
    how = str(image.n.random.choice(["Relu", "Sigmoid", "LeakyRelu", "HardSwish", "Tanh"]))
    return image.then(image.n(how, image.x))


STEPS = [conv, conv, conv, transposed, pool, pool, padded, resized, blocks, residual, branches, gated, positions, channels_last, activated]  # fmt: skip


def random_image(seed: int) -> Net:
    n = Net(seed)
    pick = n.random
    size = (int(pick.integers(7, 24)), int(pick.integers(5, 12)))
    image = Image(n, n.input("x", 1, 4, *size), 4, size)
    n.scope = "begin/"
    image = conv(image)
    for i in range(int(pick.integers(2, 8))):
        n.scope = f"l{i}/"
        image = STEPS[int(pick.integers(0, len(STEPS)))](image)
        if pick.random() < 0.1:
            n.result(image.x)
    if image.x not in n.outputs:
        n.result(image.n("Identity", image.x) if image.x == "x" else image.x)
    return n


@pytest.mark.parametrize("seed", range(150))
def test_random_images_cut_by_random_rows_are_the_same(tmp_path, seed):
    net = random_image(seed)
    shards = moirai.Shards(net.save(tmp_path / "m.onnx"))
    pick = np.random.default_rng(seed)
    items = [f"{s.name}: {random_sizes(pick, s.units)}" for s in rows_of(shards) if pick.random() < 0.9]
    if items:
        report = same(net, tmp_path, "; ".join(items), tolerance=2e-4)
        assert report["n_strips"] == len(items) and report["cut_bytes"] >= 0
