"""Cut models compute what the whole ones do: by ONNX Runtime, on networks and on random graphs with random cuts."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import links, need

np = need("numpy")
ort = need("onnxruntime")

import moirai  # noqa: E402
import shard_networks as networks  # noqa: E402
from onnx_writer import Net  # noqa: E402

ort.set_default_logger_severity(3)

FIVE = {
    "transformer": lambda: networks.transformer(mask=True),
    "convolutional": lambda: networks.convolutional(batch=2),
    "grouped": networks.grouped,
    "shared": networks.shared,
    "quantised": networks.quantised,
}


def feeds(net: Net, seed: int = 1) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    made = {}
    for name, (kind, shape) in net.inputs.items():
        shape = tuple(4 if isinstance(d, str) else d for d in shape)
        made[name] = random.integers(0, 20, shape) if kind == 7 else random.standard_normal(shape).astype(np.float32)
        made[name] = made[name].astype(np.float16) if kind == 10 else made[name]
    return made


def outputs(path: Any, given: dict[str, Any]) -> list[Any]:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]).run(None, given)


def same(net: Net, folder: Any, cut: str, sum: str = "chain", tolerance: float = 1e-4) -> dict[str, Any]:
    """Cuts the network and compares; exactly where only results were put together."""
    whole, made = net.save(folder / "whole.onnx"), folder / "cut.onnx"
    report = moirai.Shards(whole).write(made, cut, sum)
    given = feeds(net)
    for a, b in zip(outputs(whole, given), outputs(made, given), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        assert np.isfinite(a.astype(np.float64)).all()
        np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=tolerance, atol=tolerance)
    return report


@pytest.mark.parametrize("name", FIVE)
@pytest.mark.parametrize("sum", ["chain", "star", "tree"])
def test_five_networks_are_the_same_when_all_is_cut(tmp_path, name, sum):
    report = same(FIVE[name](), tmp_path, "*: 3", sum)
    assert report["n_strips"] >= 2 and report["n_pieces"] == 3 * report["n_strips"] and report["cut_bytes"] > 0


@pytest.mark.parametrize("how,gated,mask", itertools.product(("plain", "grouped", "fused"), (False, True), (False, True)))
def test_every_kind_of_attention_and_block_is_one_strip(tmp_path, how, gated, mask):
    groups, fused = 2 if how == "grouped" else 0, how == "fused"
    net = networks.transformer(groups=groups, fused=fused, gated=gated, mask=mask, batch=2)
    strips = {s.name: s for s in moirai.Shards(net.save(tmp_path / "m.onnx")).strips}
    for i in range(2):
        strip = strips[f"layer{i}/attention"]
        assert (strip.units, strip.unit) == ((2, "head groups") if groups else (4, "heads"))
        assert strip.sums == 1 and strip.joins == 0
        assert strips[f"layer{i}/mlp"].units == 40 and strips[f"layer{i}/mlp"].joins == 0
    same(net, tmp_path, "*attention: 1:1; *mlp: 7,13,20; head/linear: 29,1")
    same(net, tmp_path, "batch: 2", tolerance=1e-5)


def test_pieces_say_what_they_are_part_of(tmp_path):
    shards = moirai.Shards(networks.transformer().save(tmp_path / "m.onnx"))
    graph = shards.graph("layer0/attention: 1,3")
    assert "layer0/q (1 of 2, 1 of 4 heads)" in graph and "layer0/q (2 of 2, 3 of 4 heads)" in graph
    assert "layer0/q" not in graph and "layer1/q" in graph
    assert graph["layer0/q (2 of 2, 3 of 4 heads)"].weight_bytes == 3 * graph["layer0/q (1 of 2, 1 of 4 heads)"].weight_bytes
    shards.write(tmp_path / "cut.onnx", "layer0/attention: 1,3")
    assert [op.name for op in moirai.Graph.open(tmp_path / "cut.onnx").ops] == [op.name for op in graph.ops]


def test_shared_weights_are_sliced_once(tmp_path):
    net = networks.shared(layers=3)
    shards = moirai.Shards(net.save(tmp_path / "m.onnx"))
    report = shards.write(tmp_path / "cut.onnx", "*mlp: 1:2")
    assert report["n_strips"] == 3 and report["cut_bytes"] == 2 * 16 * 48 * 4  # of one layer
    assert (tmp_path / "cut.onnx").stat().st_size < (tmp_path / "m.onnx").stat().st_size + 8000


def test_samples_are_the_same_but_for_rounding(tmp_path):
    net = networks.convolutional(batch=4)
    whole = net.save(tmp_path / "m.onnx")
    moirai.Shards(whole).write(tmp_path / "cut.onnx", "batch: 1,3")
    for a, b in zip(outputs(whole, feeds(net)), outputs(tmp_path / "cut.onnx", feeds(net)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "cut,message",
    [
        ("layer0/mlp: 2,3", "strip 'layer0/mlp': the sizes add up to 5 columns, it has 40"),
        ("layer0/attention: 5", "strip 'layer0/attention': 5 pieces, it has 4 heads"),
        ("layer9/mlp: 2", 'cut "layer9/mlp": no strip of that name'),
        ("layer0/mlp: 2:x", '"x" is not a size of at least 1'),
        ("layer0/mlp: 0,40", '"0,40" is not a size of at least 1'),
        ("layer0/mlp: -1,41", "is not a size of at least 1"),
        ("layer0/mlp: 2:3,5", "sizes are 2,4,6 \\(units\\) or 2:3:5 \\(shares\\)"),
        ("layer0/mlp", "a strip, a colon and sizes are needed"),
        ("layer0/mlp: 99999999999999999999", "is not a size of at least 1"),
        ("layer0/mlp:", "is not a size of at least 1"),
        ("", "the cut is empty"),
        ("batch: 2; layer0/mlp: 2", "share operator"),
    ],
)
def test_bad_cuts_get_one_line_and_write_nothing(tmp_path, cut, message):
    shards = moirai.Shards(networks.transformer(batch=2).save(tmp_path / "m.onnx"))
    with pytest.raises(moirai.UsageError, match=message) as caught:
        shards.write(tmp_path / "cut.onnx", cut)
    assert "\n" not in str(caught.value) and "m.onnx" in str(caught.value)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx"]


def test_open_dimensions_stay_open(tmp_path):
    n = Net(3)
    x = n.input("x", "batch", "tokens", 24)
    n.result(networks.mlp(n, networks.attention(n, x, 6, 24, 4), 24, 40))
    whole = n.save(tmp_path / "m.onnx")
    moirai.Shards(whole, dims={"batch": 1, "tokens": 6}).write(tmp_path / "cut.onnx", "*: 2")
    given = {"x": np.random.default_rng(0).standard_normal((3, 9, 24)).astype(np.float32)}
    for a, b in zip(outputs(whole, given), outputs(tmp_path / "cut.onnx", given), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("opset", [9, 12, 13, 17])
def test_older_opsets_are_cut(tmp_path, opset):
    n = Net(4, opset)
    x = n.input("x", 3, 8)
    y = n("Relu", n("Gemm", x, n.weight(8, 12), n.weight(12)))
    y = n("Softmax", n("Gemm", y, n.weight(5, 12), n.weight(5), transB=1, alpha=0.5, beta=2.0), axis=1)
    n.result(y)
    same(n, tmp_path, "*: 5,7")


def test_half_precision_is_cut(tmp_path):
    n = Net(5)
    x = n.input("x", 4, 16, kind=10)
    y = n("Relu", n("MatMul", x, n.weight(16, 32, dtype=np.float16)))
    n.result(n("MatMul", y, n.weight(32, 16, dtype=np.float16)))
    same(n, tmp_path, "*: 3", tolerance=2e-2)


def test_bfloat16_weights_are_cut(tmp_path):
    n = Net(6)
    numbers = (n.random.standard_normal((16, 24)).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    weight = n("Cast", n.constant(numbers, kind=16), to=1)
    y = n("Relu", n("MatMul", n.input("x", 4, 16), weight))
    n.result(n("MatMul", y, n.weight(24, 16)))
    assert same(n, tmp_path, "*: 3")["cut_bytes"] == 16 * 24 * 2 + 24 * 16 * 4


@pytest.mark.parametrize("per_channel", [True, False])
def test_quantised_weights_are_cut_as_they_are(tmp_path, per_channel):
    report = same(networks.quantised(per_channel=per_channel), tmp_path, "*: 1:2:1")
    each = 2 * (16 * 32) + 32 * 4 + (32 * 4 + 32 if per_channel else 0)
    assert report["cut_bytes"] == 2 * each


# ---- random graphs


def random_net(seed: int) -> Net:
    """Layers of what can be cut, one after the other; shapes, widths and spellings by chance."""
    n = Net(seed, opset=int(np.random.default_rng(seed).choice([13, 17])))
    pick = n.random
    if pick.random() < 0.5:
        width, tokens, batch = 4 * int(pick.integers(2, 7)), int(pick.integers(2, 6)), int(pick.integers(1, 4))
        x = n.input("x", batch, tokens, width)
        for i in range(int(pick.integers(1, 4))):
            n.scope = f"l{i}/"
            x = _random_layer(n, x, batch, tokens, width)
        n.result(x)
        return n
    channels, size = 2 * int(pick.integers(2, 7)), int(pick.integers(5, 9))
    x = n.input("x", int(pick.integers(1, 4)), channels, size, size)
    for i in range(int(pick.integers(2, 6))):
        n.scope = f"l{i}/"
        x, channels = _random_image(n, x, channels)
    n.result(x)
    return n


def _random_layer(n: Net, x: str, batch: int, tokens: int, width: int) -> str:
    pick = n.random
    kind = pick.choice(["attention", "gqa", "fused", "mlp", "gated", "plain", "scale"])
    if kind == "mlp" or kind == "gated":
        return n("Add", x, networks.mlp(n, x, width, int(pick.integers(2, 50)), gated=kind == "gated"))
    if kind == "plain":
        act = str(pick.choice(["Tanh", "Sigmoid", "Relu", "LeakyRelu", "Softplus"]))
        return n(act, networks.linear(n, x, width, width, "only", bias=bool(pick.random() < 0.5)))
    if kind == "scale":
        return n("Add", x, n("Mul", x, n.weight(width)))
    groups = 2 if kind == "gqa" else 0
    return n("Add", x, networks.attention(n, x, tokens, width, 4, groups, fused=kind == "fused"))


def _random_image(n: Net, x: str, channels: int) -> tuple[str, int]:
    pick = n.random
    kind = pick.choice(["conv", "strided", "depthwise", "grouped", "residual", "pool", "norm", "transpose"])
    if kind == "pool":
        return n("MaxPool", x, kernel_shape=[2, 2], strides=[1, 1]), channels
    if kind == "norm":
        return n("InstanceNormalization", x, n.weight(channels), n.weight(channels)), channels
    if kind == "residual":
        return n("Add", x, networks.conv(n, networks.conv(n, x, channels, 6), 6, channels)), channels
    if kind == "depthwise":
        return networks.conv(n, x, channels, channels, groups=channels), channels
    if kind == "grouped":
        return networks.conv(n, x, channels, 2 * channels, groups=2), 2 * channels
    if kind == "transpose":
        return n("ConvTranspose", x, n.weight(channels, 6, 2, 2), n.weight(6), kernel_shape=[2, 2]), 6
    more = 2 * int(pick.integers(1, 8))
    return networks.conv(n, x, channels, more, normed=bool(pick.random() < 0.5),
                         strides=[2, 2] if kind == "strided" else [1, 1]), more  # fmt: skip


def random_cut(shards: moirai.Shards, seed: int) -> str:
    pick = np.random.default_rng(seed)
    items = []
    for strip in shards.strips:
        if strip.alternative or pick.random() < 0.2:
            continue
        pieces = int(pick.integers(2, min(strip.units, 5) + 1))
        ends = sorted(pick.choice(np.arange(1, strip.units), pieces - 1, replace=False))
        sizes = np.diff([0, *ends, strip.units])
        items.append(f"{strip.name}: {','.join(map(str, sizes))}")
    return "; ".join(items)


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs_with_random_cuts_are_the_same(tmp_path, seed):
    net = random_net(seed)
    shards = moirai.Shards(net.save(tmp_path / "m.onnx"))
    cut = random_cut(shards, seed)
    if cut:
        same(net, tmp_path, cut, ("chain", "star", "tree")[seed % 3], tolerance=2e-4)
    for strip in shards.strips:
        if strip.alternative:
            same(net, tmp_path, f"{strip.name}: {min(2 + seed % 2, strip.units)}", tolerance=1e-4)


# ---- over MPI


def command(*words: Any) -> Any:
    """The command beside the library; where it can't run plans, the test is skipped."""
    program = Path(moirai.__file__).with_name("moirai")
    return subprocess.run([program, *map(str, words), "--json", "--quiet"], capture_output=True, text=True, timeout=300)


def runs_on_three_ranks(net: Net, folder: Any, cut: str, tolerance: float = 1e-4) -> None:
    """Cut, planned with every piece on a rank of its own, run, and compared with the whole model."""
    if "run" not in json.loads(command("version").stdout).get("features", {}) or not shutil.which("mpiexec"):
        pytest.skip("this build can't run plans, or there is no mpiexec")
    whole = net.save(folder / "whole.onnx")
    moirai.Shards(whole).write(folder / "cut.onnx", cut, "tree")
    devices = [{"name": n, "type": "cpu", "memory": "1GB", "threads": 1} for n in "ABC"]
    moirai.Cluster.open({"name": "three", "devices": devices, "links": links("ABC")}).save(folder / "cluster.json")
    pins = [w for k, device in enumerate("ABC") for w in ("--pin", f"*({k + 1} of 3*={device}")]
    made = command("plan", folder / "cut.onnx", "--cluster", folder / "cluster.json", "--rules", "none", *pins,
                   "--effort", "0.1", "-o", folder / "plan.json")  # fmt: skip
    assert made.returncode == 0, made.stderr
    given = feeds(net)
    values = []
    for key, value in given.items():
        np.save(folder / f"{key}.npy", value)
        values += ["--input", f"{key}:{folder / f'{key}.npy'}"]
    ran = command("run", folder / "plan.json", folder / "cut.onnx", "--cluster", folder / "cluster.json", "--runs", 1,
                  "--warmup", 0, "--verify", "-o", folder / "out", *values)  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    files = json.loads((folder / "out" / "outputs.json").read_text())
    names = files["outputs"] if isinstance(files, dict) else files
    got = [np.load(folder / "out" / f["file"]) for f in names]
    for a, b in zip(outputs(whole, given), got, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", FIVE)
def test_five_networks_run_on_three_ranks_as_whole_ones_do(tmp_path, name):
    runs_on_three_ranks(FIVE[name](), tmp_path, "*: 3")


# ---- the choice


def wide(folder: Any, layers: int, name: str) -> str:
    """Products that are worth a message."""
    return networks.transformer(layers=layers, tokens=64, width=128, count=8, hidden=512).save(folder / name)


def near(bandwidth: str, latency: str) -> moirai.Cluster:
    devices = [{"name": n, "type": t} for n, t in zip("ABC", ("cpu-8-neon", "cpu-8-neon", "cpu-4-neon"))]
    return moirai.Cluster.open({"name": "three", "devices": devices, "links": links("ABC", bandwidth, latency)})


def test_a_cut_is_chosen_where_links_are_fast_and_none_where_they_are_slow(tmp_path):
    shards = moirai.Shards(wide(tmp_path, 2, "m.onnx"))
    fast = shards.choose(near("100GB/s", "1us"), threads=1, segment_us=0)
    assert fast.cut and fast.cut_ns < 0.9 * fast.whole_ns
    assert {"layer0/mlp", "layer1/mlp"} <= {item.split(":")[0] for item in fast.cut.split("; ")}
    slow = shards.choose(near("1MB/s", "10ms"), threads=1)
    assert slow.cut == "" and slow.cut_ns == slow.whole_ns and not any(c.cut for c in slow.classes)


def test_the_choice_is_the_same_every_time_whatever_the_threads(tmp_path):
    shards = moirai.Shards(wide(tmp_path, 2, "m.onnx"))
    first = shards.choose(near("100GB/s", "1us"), threads=1, effort=0.5)
    assert first == shards.choose(near("100GB/s", "1us"), threads=2, effort=0.5)


def test_more_layers_are_no_more_questions(tmp_path):
    few, many = (moirai.Shards(wide(tmp_path, n, f"{n}.onnx")).choose(near("100GB/s", "1us"), threads=1) for n in (3, 9))
    assert [c.candidates for c in few.classes] == [c.candidates for c in many.classes]
    assert [c.strips for c in few.classes[:2]] == [3, 3] and [c.strips for c in many.classes[:2]] == [9, 9]
    assert few.judged <= 8 and many.judged <= 8


def test_larger_devices_get_larger_pieces(tmp_path):
    devices = [{"name": n, "type": f"cpu-{cores}-neon"} for n, cores in (("A", 8), ("B", 4))]
    cluster = {"name": "two", "devices": devices, "links": links("AB", "1000GB/s", "0us")}
    choice = moirai.Shards(wide(tmp_path, 2, "m.onnx")).choose(cluster, threads=1, segment_us=0)
    sizes = next(c.sizes for c in choice.classes if c.strip.endswith("mlp") and c.cut)
    large, small = map(int, sizes.split(","))
    assert 1.5 * small < large < 4 * small and large + small == 512


def test_plan_cuts_and_its_plan_belongs_to_the_cut_model(tmp_path):
    model = wide(tmp_path, 2, "m.onnx")
    cluster = near("100GB/s", "1us")
    whole = moirai.plan(model, cluster, effort=0.1, threads=1)
    cut = moirai.plan(model, cluster, split_operators="auto", effort=0.1, threads=1)
    assert whole.cut == "" and cut.cut and cut.makespan_ns < whole.makespan_ns
    moirai.Shards(model).write(tmp_path / "cut.onnx", cut.cut)
    again = moirai.Problem(moirai.Graph.open(tmp_path / "cut.onnx").coarsen(), cluster, runtime="ort")
    assert moirai.Plan.parse(again, _text(cut, tmp_path)).makespan_ns == cut.makespan_ns
    with pytest.raises(moirai.UsageError, match="is no ONNX file"):
        moirai.plan("gpt3-tiny", cluster, split_operators="auto")
    with pytest.raises(moirai.UsageError, match="do not go together"):
        moirai.plan(model, cluster, split_operators="auto", problem={"pin": {"*": "A"}})


def _text(plan: moirai.Plan, folder: Any) -> str:
    plan.save(folder / "plan.json")
    return (folder / "plan.json").read_text()
