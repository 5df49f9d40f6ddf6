"""Plans whose segments are compiled code: on processors, by Inductor's C++."""

from __future__ import annotations

import socket

import pytest
from conftest import links, need

torch = need("torch")

from small_networks import Branches, tiny_gpt  # noqa: E402

import moirai  # noqa: E402
import moirai.torch as mt  # noqa: E402
from moirai.torch import inductor, precision  # noqa: E402
from moirai.torch.compiler import Compiler, Counts  # noqa: E402
from moirai.torch.ir import OP, Meta  # noqa: E402
from moirai.torch.piece import Piece  # noqa: E402
from moirai.torch.program import build  # noqa: E402
from moirai.torch.rank import Rank  # noqa: E402
from moirai.torch.segments import parts_of  # noqa: E402

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def networks(folder):
    torch.manual_seed(3)
    found = {"branches": (Branches().eval(), (torch.randn(1, 3, 16, 16),)), "gpt": tiny_gpt(layers=1)}
    return {n: (m, a, mt.capture(m, a, fuse="inductor", cache=folder)) for n, (m, a) in found.items()}


@pytest.fixture(scope="module")
def cluster():
    devices = [{"name": n, "type": "cpu", "memory": "1GB"} for n in "AB"]
    return moirai.Cluster.open({"name": "two", "devices": devices, "links": links("AB")})


@pytest.fixture(scope="module")
def short(folder):
    """One kernel to compile."""
    module, x = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU()).eval(), torch.randn(2, 8)
    return module, (x,), mt.capture(module, (x,), fuse="inductor", cache=folder)


@pytest.fixture(scope="module")
def workers(cluster):
    with mt.Workers(cluster) as found:
        yield found


def one_device():
    return {"devices": [{"name": "A", "type": "cpu", "memory": "1GB"}]}


def plan_of(captured, cluster, cuts):
    """Turns to the other device at these operators."""
    for device in cluster.devices:
        captured.graph.set_times(device.name, [100_000] * len(captured.graph))
    problem = moirai.Problem(captured.graph, cluster)
    places, at = {}, 0
    for i, name in enumerate(problem.op_names):
        at += i in cuts
        places[name] = "AB"[at % 2]
    return moirai.Plan.by_devices(problem, places)


CUTS = {"branches": (5, 8), "gpt": (7, 9)}


@pytest.mark.parametrize("name", ["branches", "gpt"])
def test_pieces_of_segments_compute_what_the_module_computes(name, networks, cluster):
    """Any cut at all, call by call: what is handed from piece to piece is all that is needed."""
    module, args, captured = networks[name]
    n = len(captured.graph)
    with torch.no_grad():
        expected = module(*args)
        for cuts in [(), CUTS[name], range(0, n, 2), range(n)]:
            program = build(captured, plan_of(captured, cluster, cuts))
            got = run_parts(program, captured, args)
            assert torch.allclose(got, expected, atol=1e-5 * float(expected.abs().max()))


def run_parts(program, captured, args):
    """All ranks in this process, piece by piece, in the plan's order."""
    ranks = {r.rank: Rank(r, captured.weights, CPU) for r in program.ranks if r.segments}
    env = {k: {**r.fixed, **dict(zip(captured.inputs, args))} for k, r in ranks.items()}
    for k, rank in ranks.items():
        rank.parts = parts_of(rank.program)
        rank.code = [None] * len(rank.parts)
    done = dict.fromkeys(ranks, 0)
    sent = {}
    while any(done[k] < len(r.parts) for k, r in ranks.items()):
        for k, rank in ranks.items():
            while done[k] < len(rank.parts) and all(w.index in sent for w in rank.program.segments[done[k]].waits):
                segment = rank.program.segments[done[k]]
                env[k].update((w.value, w.meta.lay_out(sent[w.index])) for w in segment.waits)
                rank.run_segment(env[k], done[k])
                sent.update((s.index, env[k][s.value]) for s in segment.sends)
                done[k] += 1
    return next(t for k, r in ranks.items() for _, t in r.results(env[k]))


@pytest.mark.parametrize("name", ["branches", "gpt"])
def test_a_network_on_one_device_is_one_piece_as_it_was_exported(name, networks, cluster):
    """What torch.compile gets: no norm is folded, no bias apart, no operator in pieces; and it computes the same."""
    module, args, captured = networks[name]
    if name == "gpt":
        captured = captured.recut("*mlp: 2")
    program = build(captured, plan_of(captured, cluster, ()), compiled=True)
    (rank,) = [r for r in program.ranks if r.segments]
    (segment,) = rank.segments
    assert [s.op for s in segment.steps] == [s.name for s in plan_of(captured, cluster, ()).steps]
    (part,) = parts_of(rank)
    assert part.piece.alone and not part.piece.text({a: captured.nodes.get(a) for a in part.piece.args}).endswith("]")
    targets = [n.target for n in part.piece.nodes if n.kind == OP]
    assert targets.count("aten.batch_norm.default") == (6 if name == "branches" else 0)
    assert targets.count("aten.linear.default") == (1 if name == "branches" else 7)
    assert captured.alone() is captured.alone()
    assert rank.inputs == {n: captured.nodes[n].meta for n in captured.inputs}
    with torch.no_grad():
        expected, got = module(*args), run_parts(program, captured, args)
    assert torch.allclose(got, expected, atol=1e-5 * float(expected.abs().max()))


def test_layouts_of_a_network_on_one_device_are_the_compilers(short, cluster, monkeypatch):
    """Pieces keep to the strides that all agreed on; a whole network has nobody to agree with."""
    _, _, captured = short
    asked = []
    monkeypatch.setattr(inductor, "_save", lambda *_: None)
    monkeypatch.setattr(torch._inductor, "standalone_compile", lambda *_, options, **__: asked.append(options) or (lambda *a: a))
    (alone,) = [r for r in build(captured, plan_of(captured, cluster, ()), compiled=True).ranks if r.segments]
    (usual,) = [r for r in build(captured, plan_of(captured, cluster, ())).ranks if r.segments]
    for rank in (alone, usual):
        (part,) = parts_of(rank)
        examples = [torch.zeros(captured.nodes[a].meta.shape) for a in part.piece.args]
        inductor.compile_piece(part.piece, examples, CPU, None)
    assert [o["config_patches"] for o in asked] == [{}, {"layout_optimization": False}]


def test_results_of_pieces_are_no_views_and_arguments_no_tuples(networks, cluster):
    _, _, captured = networks["gpt"]
    program = build(captured, plan_of(captured, cluster, range(len(captured.graph))))
    for rank in program.ranks:
        for part in parts_of(rank):
            made = {n.name: n for n in part.piece.nodes}
            assert all(made[r].kind == OP for r in part.piece.results)
            assert all(isinstance(captured.nodes[a].meta, Meta) for a in part.piece.args)


class Parts(torch.nn.Module):
    """A call with two results, of which another device reads one, and a view of the other is the caller's."""

    def forward(self, x):
        most, where = torch.topk(x.relu(), 2)
        return (most * 2).sum(), where[:, 1:]


def test_parts_of_tuples_are_handed_over(cluster):
    x = torch.randn(3, 8)
    captured = mt.capture(Parts().eval(), (x,), fuse="inductor", cache=None)
    n = len(captured.graph)
    for cuts in [(), range(n)]:
        program = build(captured, plan_of(captured, cluster, cuts))
        ranks = [Rank(r, captured.weights, CPU) for r in program.ranks if r.segments]
        handed = [r for rank in ranks for p in parts_of(rank.program) for r in p.piece.results]
        assert handed and all(isinstance(captured.nodes[r].meta, Meta) for r in handed)
    total = run_parts(program, captured, (x,))
    assert torch.allclose(total, Parts()(x)[0])


@pytest.mark.parametrize("name", ["branches", "gpt"])
def test_segments_are_no_more_kernels_than_groups(name, networks, cluster):
    """Nothing crosses a cut, no group is cut. Pieces of a cat are copied, where they arrive; a call with several
    results counts once more for the part that is read."""
    _, _, captured = networks[name]
    base = {n: captured.path_to(n)[0] for n in captured.nodes}
    kernels = 0
    for rank in build(captured, plan_of(captured, cluster, CUTS[name])).ranks:
        for part in parts_of(rank):
            metas = {a: captured.nodes[a].meta for a in part.piece.args}
            kernels += len(inductor.kernels_of(part.piece, metas, captured.nodes, base, CPU).parts)
    cats = [n for n in captured.nodes.values() if n.target == "aten.cat.default"]
    extra = sum(len(n.refs()) for n in cats) + sum("attention" in n.target for n in captured.nodes.values())
    assert kernels <= len(captured.graph) + extra


def compiled_run(networks, cluster, folder, workers):
    """What the devices' compilers did for a plan that is right."""
    module, args, captured = networks["gpt"]
    plan = plan_of(captured, cluster, CUTS["gpt"])
    with mt.distribute(captured, plan, workers=workers, verify=module, cache=folder) as run:
        with torch.no_grad():
            assert torch.allclose(run(*args), module(*args), atol=1e-5)
        assert run.why_eager == {} and run.measure(runs=2).median_ns > 0
        assert len(run.compiled) == 2 and sum(c.pieces for c in run.compiled.values()) == 3
        return list(run.compiled.values())


def test_compiled_plans_give_the_module_s_results(networks, cluster, folder, workers):
    assert sum(c.compiled for c in compiled_run(networks, cluster, folder, workers)) > 0
    assert all(c.distinct == 0 for c in compiled_run(networks, cluster, folder, workers))  # the same processes know it


def test_the_next_processes_load_all_and_compile_nothing(networks, cluster, folder, workers):
    compiled_run(networks, cluster, folder, workers)
    with mt.Workers(cluster) as others:
        counts = compiled_run(networks, cluster, folder, others)
    assert all(c.compiled == 0 and c.loaded == c.distinct for c in counts) and sum(c.loaded for c in counts) > 0


def test_groups_are_measured_as_compiled_code(short, folder, workers):
    _, _, captured = short
    report = mt.profile(captured, workers=workers, cache=folder)
    assert report.measured == report.ops == 2 and not report.failed and not report.not_compiled
    assert len(list((folder / "compiled").iterdir())) > 0


class Many(torch.nn.Module):
    def forward(self, x):
        return tuple(torch.exp(x * i) for i in range(12))


def test_results_of_a_piece_are_in_its_order_not_in_that_of_names(cluster):
    """exp_9 is before exp_10; else equal layers would not be equal pieces."""
    captured = mt.capture(Many().eval(), (torch.randn(3),))
    piece = parts_of(build(captured, plan_of(captured, cluster, ())).ranks[0])[0].piece
    assert list(piece.results) == [n.name for n in piece.nodes if n.target == "aten.exp.default"]


def test_equal_segments_are_compiled_once(monkeypatch):
    """With other weights, and other names."""
    module, args = tiny_gpt(layers=3)
    captured = mt.capture(module, args)
    layers = [n for n in captured.nodes.values() if n.kind == OP and n.target == "aten.gelu.default"]
    made = []
    monkeypatch.setattr(inductor, "compile_piece", lambda piece, *_: made.append(piece) or ((lambda *a: a), False))
    counts, compiler = Counts(), Compiler(CPU, None)
    for node in layers:
        piece = Piece((node,), tuple(node.refs()), (node.name,))
        compiler.get(piece, [captured.nodes[r].meta.zeros("cpu") for r in piece.args], counts)
    assert counts.pieces == 3 and counts.distinct == counts.compiled == len(made) == 1
    other = captured.nodes[layers[0].refs()[0]].meta.zeros("cpu").transpose(0, 1).contiguous().transpose(0, 1)
    twice = torch.zeros(1, 8, 64)[..., ::2]
    for x in (other, twice):
        piece = Piece((layers[0],), tuple(layers[0].refs()), (layers[0].name,))
        compiler.get(piece, [x], counts)
    assert counts.distinct == 2 + (other.stride() != (256, 32, 1))  # other strides are other code


def test_libraries_calls_alone_are_not_compiled(networks):
    _, _, captured = networks["gpt"]
    linear = next(n for n in captured.nodes.values() if n.target == "aten.linear.default")
    piece = Piece((linear,), tuple(linear.refs()), (linear.name,))
    counts = Counts()
    assert Compiler(CPU, None).get(piece, [], counts) is None and counts.distinct == 0 and not counts.failed


def test_compiled_results_have_the_strides_of_eager_ones(networks, cluster, folder, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder / "inductor" / "cpu0"))
    _, _, captured = networks["branches"]
    rank = build(captured, plan_of(captured, cluster, (2, 4))).ranks[1]
    with torch.no_grad():
        compiled = Rank(rank, captured.weights, CPU, Compiler(CPU, folder))
        eager = Rank(rank, captured.weights, CPU)
        inputs = {n: m.zeros(CPU) for n, m in rank.inputs.items()}
        for (g, one), (_, other) in zip(compiled.rehearse(inputs), eager.rehearse(inputs)):
            for s in g.sends:
                assert one[s.value].stride() == other[s.value].stride() == s.seen.stride
                assert torch.allclose(one[s.value], other[s.value], atol=1e-5)
    assert any(c is not None for c in compiled.code)


BREAK = """
import moirai.torch.inductor as i
def refuses(*_): raise OSError("no C compiler\\nhere")
i.kept, i.compile_piece = i.compile_piece, refuses
"""
MEND = "import moirai.torch.inductor as i; i.compile_piece = i.kept"


def tell_all(workers, code):
    job = {"module": "builtins", "function": "exec", "args": (code, {})}
    workers.tell("call", dict.fromkeys(range(len(workers.devices)), job))


def test_what_can_t_be_compiled_runs_eagerly(networks, cluster, tmp_path, workers):
    module, args, captured = networks["gpt"]
    plan = plan_of(captured, cluster, CUTS["gpt"])
    tell_all(workers, BREAK)
    try:
        with mt.distribute(captured, plan, workers=workers, verify=module, cache=tmp_path) as run:
            run(*args)
            assert sorted(run.why_eager) == ["A", "B"] and sum(c.compiled for c in run.compiled.values()) == 0
            assert "segment with 'linear_4' is not compiled: OSError: no C compiler" in run.why_eager["B"]
            assert "\n" not in run.why_eager["A"]
    finally:
        tell_all(workers, MEND)
    with mt.distribute(captured, plan, workers=workers, compile=False) as run:
        run(*args)
        assert run.why_eager == {} and run.compiled == {}


# ---- number types


def test_ranks_compute_in_the_caller_s_number_types(networks, cluster, workers):
    _, _, captured = networks["gpt"]
    job = {"module": "moirai.torch.precision", "function": "flags", "args": ()}
    for asked in ("high", "highest"):
        torch.set_float32_matmul_precision(asked)
        try:
            with mt.distribute(captured, plan_of(captured, cluster, ()), workers=workers, compile=False):
                assert workers.tell("call", {0: job})[0] == precision.flags()
                assert precision.flags()["matmul"] == asked
        finally:
            torch.set_float32_matmul_precision("highest")


def test_times_of_another_number_type_are_not_taken(workers, tmp_path):
    captured = mt.capture(*tiny_gpt(layers=1))
    few = mt.Options(runs=3, seconds=0.02)
    first = mt.profile(captured, workers=workers, cache=tmp_path, options=few)
    assert mt.profile(captured, workers=workers, cache=tmp_path, options=few).measured == 0
    torch.set_float32_matmul_precision("high")
    try:
        assert mt.profile(captured, workers=workers, cache=tmp_path, options=few).measured == first.distinct
    finally:
        torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_in_pieces_is_that_of_calls(dtype, cluster):
    module, args = tiny_gpt(layers=1)
    module = module.to(dtype)
    captured = mt.capture(module, args)
    program = build(captured, plan_of(captured, cluster, (4,)))
    with torch.no_grad():
        got, expected = run_parts(program, captured, args), module(*args)
    assert got.dtype == dtype and torch.allclose(got.float(), expected.float(), atol=1e-2, rtol=1e-2)


# ---- tune, ranks that are gone


def test_tune_says_what_it_kept_eager_or_compiled(short, cluster, folder, workers):
    module, args, _ = short
    said = []
    found = mt.tune(module, args, workers=workers, probed=cluster, fuse=("none", "inductor"), placers=(), rounds=0,
                    runs=5, passes=1, cache=folder, say=said.append)  # fmt: skip
    assert {t.fuse for t in found.trials} == {"none", "inductor"} and len(said) == 2
    kept = {"none": "eager", "inductor": "compiled"}[found.best.fuse]
    assert f"({kept})" in found.verdict and f"otherwise than {kept}" in found.verdict
    assert found.captured.fuse == found.best.fuse
    fastest = min(found.trials, key=lambda t: t.measured_ns)
    assert found.best is fastest


def test_ranks_of_torchrun_compile_too(short, folder, monkeypatch):
    """One of them, in this process."""
    module, args, captured = short
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    here = {"RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    for name, value in {**here, "TORCHINDUCTOR_CACHE_DIR": ""}.items():
        monkeypatch.setenv(name, str(value))
    plan = plan_of(captured, moirai.Cluster.open(one_device()), ())
    try:
        with mt.distribute(captured, plan, verify=module, cache=folder) as run:
            run(*args)
            assert run.why_eager == "" and any(c is not None for c in run._rank.code)
    finally:
        torch.distributed.destroy_process_group()


def test_ranks_that_were_ended_say_so(networks):
    _, args, captured = networks["gpt"]
    workers = mt.Workers(one_device())
    run = mt.distribute(captured, plan_of(captured, workers.cluster, ()), workers=workers, compile=False)
    workers._processes[0].kill()
    with pytest.raises(mt.RankError, match="died of SIGKILL; all ranks were ended"):
        run(*args)
    with pytest.raises(mt.RankError, match="the ranks were ended: device 'A'.*SIGKILL"):
        run(*args)
    with pytest.raises(mt.RankError, match="the ranks were ended"):
        mt.profile(captured, workers=workers, cache=None)
    run.close()

