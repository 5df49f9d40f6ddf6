"""Images cut by rows compute what whole ones do: by ONNX Runtime, on random graphs with random cuts, and over MPI."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import links, need

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


# ---- networks


def test_a_residual_network_and_one_with_skips_are_the_same(tmp_path):
    for net in (networks.resnet(size=64), networks.unet()):
        shards = moirai.Shards(net.save(tmp_path / "m.onnx"))
        strips = rows_of(shards)
        assert len(strips) >= 4 and all(s.alternative and s.unit == "rows" for s in strips)
        assert shards.whole == {}
        cut = "; ".join(f"{s.name}: 1:1" for s in strips)
        assert same(net, tmp_path, cut)["n_strips"] == len(strips)
        pick = np.random.default_rng(3)
        same(net, tmp_path, "; ".join(f"{s.name}: {random_sizes(pick, s.units)}" for s in strips))


@pytest.mark.parametrize("build", [networks.resnet, networks.unet])
def test_they_run_on_three_ranks_as_whole_ones_do(tmp_path, build):
    net = build(size=64)
    strips = rows_of(moirai.Shards(net.save(tmp_path / "m.onnx")))
    cut = "; ".join(f"{s.name}: 3" for s in strips if s.units >= 3)
    assert cut.count(";") >= 3
    runs_on_three_ranks(net, tmp_path, cut)


def test_only_rows_beside_a_cut_move_between_strips(tmp_path):
    shards = moirai.Shards(networks.unet(size=64).save(tmp_path / "m.onnx"))
    graph = shards.graph("*rows: 2")
    assert [op.name for op in graph.ops if "joined" in op.name] == ["classes (2 joined)"]  # nobody else needs a whole image
    assert len(rows_of(shards)) > 2


def test_channels_and_rows_of_different_layers_go_together(tmp_path):
    net = networks.convolutional()
    shards = moirai.Shards(net.save(tmp_path / "m.onnx"))
    assert {s.name for s in rows_of(shards)} >= {"Conv_3/rows", "block1/rows~2"}
    same(net, tmp_path, "Conv_3/rows: 4,6; block1/conv: 5,7; classes/linear: 2")
    with pytest.raises(moirai.UsageError, match="strips 'block0/conv' and 'block0/rows' share operator"):
        shards.write(tmp_path / "bad.onnx", "block0/conv: 2; block0/rows: 2")


@pytest.mark.parametrize(
    "cut,message",
    [
        ("Conv_3/rows: 2,3", "strip 'Conv_3/rows': the sizes add up to 5 rows, it has 10"),
        ("Conv_3/rows: 11", "strip 'Conv_3/rows': 11 pieces, it has 10 rows"),
        ("*rows: 6", "strip 'block1/rows~2': 6 pieces, it has 5 rows"),
        ("rows: 2", 'cut "rows": no strip of that name'),
        ("Conv_3/rows: 0,10", "is not a size of at least 1"),
        ("Conv_3/rows: 5;5", 'cut "5": a strip, a colon and sizes are needed'),
        ("Conv_3/rows: 2; batch: 2", "share operator"),
    ],
)
def test_bad_cuts_by_rows_get_one_line(tmp_path, cut, message):
    shards = moirai.Shards(networks.convolutional(batch=2).save(tmp_path / "m.onnx"))
    with pytest.raises(moirai.UsageError, match=message) as caught:
        shards.write(tmp_path / "cut.onnx", cut)
    assert "\n" not in str(caught.value)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx"]


def test_a_pattern_for_all_means_no_rows(tmp_path):
    net = networks.convolutional()
    shards = moirai.Shards(net.save(tmp_path / "m.onnx"))
    names = [op.name for op in shards.graph("*: 2").ops]
    assert any("of 12 channels" in name for name in names) and not any(" rows)" in name for name in names)
    assert all(" rows)" in name for op in shards.graph("*rows: 2").ops if " of 2, " in (name := op.name))


# ---- what is not cut, and why


def between(folder: Any, type: str, *inputs: Any, **how: Any) -> moirai.Shards:
    """Two convolutions with this operator between them."""
    n = Net(0)
    x = n("Conv", n.input("x", 1, 4, 32, 8), n.weight(4, 4, 3, 3), pads=[1] * 4, name="first")
    y = n(type, x, *(n.constant(i) if isinstance(i, np.ndarray) else i for i in inputs), **how)
    n.result(n("Conv", y, n.weight(4, 4, 1, 1), name="last"))
    return moirai.Shards(n.save(folder / "m.onnx"))


DOUBLE, MORE = np.array([1, 1, 2, 2], np.float32), np.array([1, 1, 1.5, 2], np.float32)
EDGES = np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64)
SOME = np.ones(4, np.float32)


@pytest.mark.parametrize(
    "strips,type,inputs,how",
    [
        (1, "Relu", [], {}),
        (1, "Softmax", [], {"axis": 1}),
        (2, "Softmax", [], {"axis": 2}),
        (2, "InstanceNormalization", [SOME, SOME], {}),
        (1, "Resize", ["", DOUBLE], {"mode": "linear"}),
        (2, "Resize", ["", DOUBLE], {"mode": "linear", "coordinate_transformation_mode": "align_corners"}),
        (2, "Resize", ["", MORE], {"mode": "linear"}),
        (1, "Pad", [EDGES], {}),
        (2, "Pad", [EDGES], {"mode": "reflect"}),
        (1, "AveragePool", [], {"kernel_shape": [2, 2], "strides": [2, 2]}),
        (1, "GlobalAveragePool", [], {}),
    ],
)
def test_operators_that_need_the_whole_image_divide_strips(tmp_path, strips, type, inputs, how):
    assert len(rows_of(between(tmp_path, type, *inputs, **how))) == strips


def test_convolutions_that_rows_do_not_cut_say_why(tmp_path):
    n = Net(0)
    x = n("ConvTranspose", n.input("x", 1, 4, 8, 8), n.weight(4, 4, 3, 3), output_shape=[8, 8], name="unsaid")
    n.result(n("Conv", x, n.weight(4, 4, 8, 8), name="all"))
    shards = moirai.Shards(n.save(tmp_path / "m.onnx"))
    assert rows_of(shards) == []
    assert shards.whole == {"unsaid": "by rows: its padding is found out when it runs", "all": "by rows: its image has one row"}


@pytest.mark.parametrize("opset", [9, 10, 11, 13, 17])
def test_older_opsets_are_cut_by_rows(tmp_path, opset):
    n = Net(4, opset)
    x = networks.conv(n, n.input("x", 1, 3, 13, 9), 3, 4, normed=False)
    if opset >= 11:
        x = n("Pad", x, n.ints(0, 0, 2, 0, 0, 0, 1, 1))
    else:
        x = n("Pad", x, pads=[0, 0, 2, 0, 0, 0, 1, 1])
    if opset == 10:
        x = n("Resize", x, n.constant(np.array([1, 1, 2, 1], np.float32)), mode="nearest")
    n.result(networks.conv(n, x, 4, 4, 5, normed=False, strides=[2, 1]))
    assert same(n, tmp_path, "*rows: 3,1,4" if opset != 10 else "*rows: 3")["n_strips"] >= 1


def test_half_precision_and_quantised_images_are_cut_by_rows(tmp_path):
    n = Net(5)
    x = n.input("x", 1, 4, 12, 6, kind=10)
    y = n("Relu", n("Conv", x, n.weight(4, 4, 3, 3, dtype=np.float16), pads=[1] * 4))
    n.result(n("Conv", y, n.weight(2, 4, 3, 3, dtype=np.float16), strides=[2, 2]))
    same(n, tmp_path, "*rows: 2,3", tolerance=2e-2)
    n = Net(6)
    scale, zero = n.constant(np.array(0.02, np.float32)), n.constant(np.array(0, np.int8))
    x = n("DequantizeLinear", n("QuantizeLinear", n.input("x", 1, 4, 12, 6), scale, zero), scale, zero)
    weight = n("DequantizeLinear", n.constant(n.random.integers(-127, 128, (4, 4, 3, 3)).astype(np.int8)), scale, zero)
    n.result(n("Relu", n("Conv", x, weight, pads=[1] * 4)))
    assert same(n, tmp_path, "*rows: 5,7", tolerance=5e-2)["cut_bytes"] == 0


# ---- the choice


def test_rows_are_chosen_where_they_pay(tmp_path):
    shards = moirai.Shards(networks.unet(width=16, size=128).save(tmp_path / "m.onnx"))
    devices = [{"name": n, "type": "cpu-8-neon"} for n in "AB"]
    near = {"name": "two", "devices": devices, "links": links("AB", "100GB/s", "1us")}
    far = {"name": "two", "devices": devices, "links": links("AB", "1MB/s", "10ms")}
    choice = shards.choose(near, threads=1, segment_us=0)
    assert "rows: " in choice.cut and choice.cut_ns < 0.7 * choice.whole_ns
    assert choice.all_cuts_bound_ns is None  # it is about other cuts
    chosen = [c for c in choice.classes if c.cut and "rows" in c.strip]
    assert chosen and all(c.sizes for c in chosen)
    assert choice == shards.choose(near, threads=2, segment_us=0)
    assert shards.choose(far, threads=1, segment_us=0).cut == ""
    moirai.Shards(tmp_path / "m.onnx").write(tmp_path / "cut.onnx", choice.cut)
