"""Parts of a GPU. Skipped where there is none, or no CUDA MPS."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from concurrent.futures import wait
from functools import lru_cache

import pytest
from conftest import links, need

torch = need("torch")
if not torch.cuda.is_available() or not shutil.which("nvidia-cuda-mps-control"):
    pytest.skip("no GPU with CUDA MPS here", allow_module_level=True)

import networks  # noqa: E402
from test_distribute import problem_of, torchrun  # noqa: E402

import moirai  # noqa: E402
import moirai.torch as mt  # noqa: E402
from moirai.torch.ir import function_of  # noqa: E402
from moirai.torch.profile import chain  # noqa: E402
from moirai.torch.rank_cuda import DIRECT_BYTES  # noqa: E402


@lru_cache(maxsize=None)
def captured(name):
    module, args = networks.make(name, small=True)
    return module, args, mt.capture(module, args, name=name, heads=networks.HEADS.get(name, False))


def parts():
    devices = [
        {"name": n, "type": "h200", "memory": "20GB", "share": s} for n, s in (("A", 0.12), ("B", 0.25), ("C", 0.5))
    ]  # half precision is right in these
    return {"devices": devices, "links": links("ABC")}


def spread_out(network, workers):
    """Every operator elsewhere than the one before it."""
    problem = problem_of(network, workers.cluster)
    return moirai.Plan.by_devices(problem, {n: problem.devices[i % 3] for i, n in enumerate(problem.op_names)})


@pytest.fixture(scope="module")
def workers():
    with mt.Workers(parts()) as found:
        yield found


@pytest.fixture
def mps_of_its_own(monkeypatch, tmp_path):
    """For ranks that are killed: what is left of them faults in those that read it, and MPS tells all of its clients, this process among them."""
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))  # no daemon is there: ranks start one


def test_parts_have_their_share_of_multiprocessors(workers):
    sm = [workers.about[k]["sm"] for k in range(3)]
    assert sm[0] < sm[1] < sm[2] and sum(sm) <= torch.cuda.get_device_properties(0).multi_processor_count + 3


def test_a_user_s_number_of_queues_does_not_keep_parts_from_starting(monkeypatch):
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32")
    devices = [{"name": n, "type": "h200", "memory": "10GB", "share": 0.25} for n in "ABCD"]
    with mt.Workers({"devices": devices, "links": links("ABCD")}) as found:
        assert len(found.about) == 4


@pytest.mark.parametrize("transport", ["ipc", "host"])
@pytest.mark.parametrize("graphs", [True, False])
@pytest.mark.parametrize("name", ["inception", "gpt2", "t5", "moe"])
def test_plans_give_the_module_s_results(name, graphs, transport, workers):
    module, args, network = captured(name)
    for plan in (moirai.place(problem_of(network, workers.cluster), "heft"), spread_out(network, workers)):
        with mt.distribute(network, plan, workers=workers, transport=transport, graphs=graphs, stall_s=20) as run:
            for _ in range(20):
                got = run(*args)
            with torch.no_grad():
                expected = module(*args)
            assert float((got - expected).norm() / expected.norm()) < 1e-2  # convolutions are TF32
            assert bool(run.why_eager) is not graphs


def test_view_of_what_arrived_is_sent_on(workers):
    """A reshape that copies on processors may be a view on a GPU: of attention's result, which another part owns."""
    module, args = networks.make("gpt2", small=True)
    network = mt.capture(module, args, cuts="*attention: 1:1; *mlp: 1:1")
    assert any(n.kind == "op" and "reshape" in str(n.target) for n in network.nodes.values())
    with mt.distribute(network, spread_out(network, workers), workers=workers, transport="ipc", stall_s=20) as run:
        got = run(*args)
    with torch.no_grad():
        expected = module(*args)
    assert float((got - expected).norm() / expected.norm()) < 1e-2


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["nasnet", "t5"])
def test_half_precision_gives_the_module_s_results(name, dtype, workers):
    module, args = networks.make(name, small=True, dtype=dtype)
    network = mt.capture(module, args, name=name)
    plan = spread_out(network, workers)
    for transport in ("ipc", "host"):
        with mt.distribute(network, plan, workers=workers, transport=transport, verify=module, stall_s=20) as run:
            assert run(*args).dtype == dtype and not any(run.why_eager.values())


def test_half_precision_is_right_in_any_part():
    """Some of cuBLAS's kernels are wrong in parts of some sizes (40 % of an H200, CUDA 13.0): others are taken there."""
    torch.manual_seed(5)
    x = torch.randn(256, 768, dtype=torch.bfloat16)
    module = torch.nn.Sequential(*(torch.nn.Linear(768, 768) for _ in range(3))).eval().to(torch.bfloat16)
    for fuse in ("none", "inductor"):
        network = mt.capture(module, (x,), fuse=fuse)
        for share in (0.12, 0.4):
            with mt.Workers({"devices": [{"name": "A", "type": "h200", "memory": "9GB", "share": share}]}) as found:
                report = mt.profile(network, workers=found, cache=None)
                assert set(report.instead.values()) <= {"moirai_triton.linear.default", "moirai_single.linear.default"}
                print(f"{fuse} {share}: {report.instead}, {[op.time_ns for op in network.graph.ops]}")
                plan = moirai.place(moirai.Problem(network.graph, found.cluster), "single")
                with mt.distribute(network, plan, workers=found, verify=module) as run:
                    run(x)


@pytest.mark.parametrize("fuse", ["none", "inductor"])
def test_parts_are_profiled_alone_and_with_all_of_them_busy(workers, fuse, tmp_path):
    module, args = networks.make("moe", small=True)
    network = mt.capture(module, args, name="moe", fuse=fuse)
    report = mt.profile(network, workers=workers, cache=tmp_path, options=mt.Options(runs=5, seconds=0.02))
    assert report.measured == 3 * report.distinct and not report.failed
    for graph in (network.graph, network.busy):
        assert all(0 < op.time_ns[d] < 10**9 for op in graph.ops for d in "ABC")
    print(fuse, {d: [sum(op.time_ns[d] for op in g.ops) for g in (network.graph, network.busy)] for d in "ABC"})
    plan = mt.Times(network, workers.cluster, {"congestion": "none"}, tmp_path).place("heft")
    with mt.distribute(network, plan, workers=workers, verify=module, stall_s=20, cache=tmp_path) as run:
        run(*args)


def test_meetings_of_parts_take_microseconds(workers):
    found = mt.meetings(workers, transport="ipc", cache=None)
    assert set(found) == set("ABC") and all(500 < ns < 100_000 for ns in found.values())


class Autocast(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, *args):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return self.module(*args)


def test_module_on_the_gpu_under_autocast_runs_as_it_does_there(workers):
    module, args = networks.make("gpt2", small=True)
    with pytest.warns(UserWarning, match="uses autocast on cuda"):
        mt.capture(Autocast(module).eval(), args)  # on the processor it casts nothing
    module, args = Autocast(module).eval().cuda(), tuple(a.cuda() for a in args)
    network = mt.capture(module, args, name="autocast")
    kinds = {n.meta.dtype for n in network.nodes.values() if n.target == "aten.linear.default"}
    assert kinds == {torch.bfloat16}
    plan = spread_out(network, workers)
    with mt.distribute(network, plan, workers=workers, verify=module, stall_s=20) as run:
        run(*args)


def test_processors_and_parts_of_a_gpu_run_one_plan():
    devices = [{"name": "A", "type": "cpu", "memory": "2GB"}, {"name": "B", "type": "h200", "share": 0.3}]
    module, args, network = captured("moe")
    with mt.Workers({"devices": devices, "links": links("AB")}) as workers:
        assert workers.kind == "mixed"
        mt.profile(network, workers=workers, cache=None)
        problem = moirai.Problem(network.graph, workers.cluster)
        spread = {n: "AB"[i % 2] for i, n in enumerate(problem.op_names)}
        plan = moirai.Plan.by_devices(problem, spread)
        with mt.distribute(network, plan, workers=workers, verify=module) as run:
            for _ in range(20):
                run(*args)
            assert run.transport == "gloo" and "host" in run.why_eager["B"]
            assert run.measure(runs=3).median_ns > 0


def test_nccl_with_one_rank_is_a_cuda_graph():
    assert "agreed by nccl" in (said := torchrun(1)) and "eager: ''" in said


@pytest.mark.parametrize("graphs", ["", "eager"])
def test_nccl_ranks_that_pass_for_several_hosts_agree(graphs):
    """NCCL refuses two ranks on one GPU of one host; as ranks of two hosts they talk by its sockets."""
    said = torchrun(2, "nccl", graphs, MOIRAI_TEST_HOSTS="1", NCCL_SOCKET_IFNAME="lo", NCCL_IB_DISABLE="1")
    assert said.count("agreed by nccl") == 4 and said.count("eager: ''") == (0 if graphs else 4)


@pytest.mark.parametrize("keys, kernel", [(49, "efficient"), (128, "cudnn")])
def test_attention_over_few_keys_is_not_cudnn_s(keys, kernel):
    query = torch.randn(8, 3, keys, 32, device="cuda", dtype=torch.bfloat16)
    mask = torch.randn(8, 1, keys, keys, device="cuda", dtype=torch.bfloat16)
    attention = function_of("aten.scaled_dot_product_attention.default")
    with torch.profiler.profile() as seen:
        got = attention(query, query, query, mask)
    assert any(f"{kernel}_attention" in event.key for event in seen.key_averages())
    assert torch.backends.cuda.flash_sdp_enabled() and torch.backends.cuda.cudnn_sdp_enabled()
    expected = attention(query.float(), query.float(), query.float(), mask.float())
    assert torch.allclose(got.float(), expected, atol=0.05)


@pytest.mark.parametrize("transport, lanes", [("ipc", 0), ("ipc", 1), ("host", 0), ("host", 1)])
@pytest.mark.parametrize("name", ["inception", "moe"])
def test_requests_in_flight_give_what_they_give_alone(name, transport, lanes, workers):
    """A CUDA graph per slot: spread out as far as can be, so that requests overtake nobody and wait for everybody. Through
    the host they wait for each other, unless one lane is asked for."""
    module, args, network = captured(name)
    given = [tuple(torch.randn(a.shape, generator=torch.Generator().manual_seed(i)) for a in args) for i in range(40)]
    plan = spread_out(network, workers)
    with mt.distribute(network, plan, workers=workers, transport=transport, stall_s=20, in_flight=4, lanes=lanes) as run:
        alone = [run(*x) for x in given]
        futures = [run.submit(*x) for x in given]
        assert all(torch.equal(f.result(60), y) for f, y in zip(futures, alone))
        assert not any(run.why_eager.values())
        assert torch.equal(run(*given[3]), alone[3])
        assert run.measure(warmup=1, runs=2).median_ns > 0
        assert torch.equal(run.submit(*given[5]).result(60), alone[5])
    assert len({tuple(y.flatten()[:4].tolist()) for y in alone}) == 40


def test_copies_on_parts_answer_beside_each_other(workers):
    module, args, network = captured("moe")
    problem = problem_of(network, workers.cluster)
    plan = moirai.place(problem, objective="rate", in_flight=6, kind="replicas", effort=0.1)
    assert len(plan.rate.copies) == 3
    given = [torch.randn(args[0].shape, generator=torch.Generator().manual_seed(i)) for i in range(30)]
    with mt.distribute(network, plan, workers=workers, verify=module, stall_s=20) as run:
        for f in [run.submit(x) for x in given]:
            f.result(60)


def test_too_many_in_flight_for_graphs_are_refused(workers):
    _, args, network = captured("moe")
    plan = moirai.place(problem_of(network, workers.cluster), "single")
    with mt.distribute(network, plan, workers=workers, in_flight=25) as run:
        with pytest.raises(moirai.UsageError, match="in_flight 25: a CUDA graph each; there can be 24 on GPUs"):
            run.submit(*args)
        run(*args)


class Waves(torch.nn.Module):
    """Megabytes at every step; neighbours are on different parts in the test."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps = steps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(self.steps):
            x = torch.softmax(x, -1) * 3
        return x.sum(-1)


def ask(workers, function):
    """Of PyTorch's allocator in each part's process."""
    return workers.tell("call", {k: {"module": "torch.cuda", "function": function, "args": ()} for k in range(3)}, 60)


@pytest.mark.parametrize("size", [16, 20, 4096, DIRECT_BYTES, DIRECT_BYTES + 16])
def test_messages_of_every_size_come_through_the_host(size, workers):
    """Short ones are put and got by kernels, others and odd ones are copied by engines; every request has its own."""
    network = chain(9, size)
    with mt.distribute(network, spread_out(network, workers), workers=workers, transport="host", stall_s=20) as run:
        for _ in range(50):
            x = torch.randn(size // 4)
            assert torch.equal(run(x), torch.relu(x))


@pytest.mark.parametrize("transport", ["ipc", "host"])
def test_memory_of_what_left_is_used_again(transport, workers):
    """40 messages of 8 MB leave each part; what a part needs at a time is a few of them. Through the host, buffers of what
    arrives are the request's for good: that half stays."""
    module, x = Waves(60).eval(), torch.randn(1024, 2048)
    network = mt.capture(module, (x,), name="waves")
    ask(workers, "reset_peak_memory_stats")
    before = ask(workers, "memory_allocated")
    with mt.distribute(network, spread_out(network, workers), workers=workers, transport=transport, stall_s=20) as run:
        got = run(x)
        most = ask(workers, "max_memory_allocated")
    assert torch.allclose(got, module(x), rtol=1e-3)
    for k in range(3):
        assert most[k] - before[k] < (160e6 if transport == "ipc" else 500e6)


def test_part_that_dies_ends_what_is_in_flight(mps_of_its_own):
    _, args, network = captured("moe")
    with mt.Workers(parts()) as found:
        plan = spread_out(network, found)
        run = mt.distribute(network, plan, workers=found, stall_s=20, in_flight=4)
        run.submit(*args).result(60)
        pids = [p.pid for p in found._processes]
        threading.Timer(0.5, lambda: os.kill(pids[1], signal.SIGKILL)).start()
        began = time.monotonic()
        with pytest.raises(mt.RankError, match="'B': rank 1 died of SIGKILL"):
            while time.monotonic() - began < 30:
                wait([run.submit(*args) for _ in range(4)], 30)
        assert time.monotonic() - began < 15


def test_rank_that_dies_ends_all_within_ten_seconds(mps_of_its_own):
    workers = mt.Workers(parts())
    module, args = networks.make("moe", small=True)
    network = mt.capture(module, args)
    problem = problem_of(network, workers.cluster)
    plan = moirai.Plan.by_devices(problem, {n: "ABC"[i % 3] for i, n in enumerate(problem.op_names)})
    run = mt.distribute(network, plan, workers=workers)
    run(*args)
    pids = [p.pid for p in workers._processes]
    threading.Timer(0.5, lambda: os.kill(pids[1], signal.SIGKILL)).start()
    began = time.monotonic()
    with pytest.raises(mt.RankError, match="all ranks were ended"):
        while time.monotonic() - began < 30:
            run(*args)
    assert time.monotonic() - began < 10
