"""Several requests in flight on processors."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import threading
import time
from concurrent.futures import wait

import pytest
from conftest import need

torch = need("torch")

import moirai  # noqa: E402
import moirai.torch as mt  # noqa: E402
from moirai.torch import shared  # noqa: E402
from moirai.torch.copies import paces_of  # noqa: E402
from moirai.torch.flight import Places, Queue, Requests  # noqa: E402
from moirai.torch.stream import Turns  # noqa: E402
from moirai.torch.worker import begin_cuda  # noqa: E402


class Stages(torch.nn.Module):
    """Looks up rows, which can fail, then two equal halves of work."""

    def __init__(self, width=256, depth=8):
        super().__init__()
        torch.manual_seed(1)
        self.rows = torch.nn.Embedding(16, width)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(depth))

    def forward(self, i):
        x = self.rows(i)
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x, x.sum()


def split(captured, cluster, place):
    for device in cluster.devices:
        captured.graph.set_times(device.name, [200_000] * len(captured.graph))
    problem = moirai.Problem(captured.graph, cluster)
    names = problem.op_names
    return moirai.Plan.by_devices(problem, {n: problem.devices[place(k, len(names))] for k, n in enumerate(names)})


def rows(seed, n=256):
    return torch.randint(0, 16, (n,), generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def stages():
    module = Stages().eval()
    return module, mt.capture(module, (rows(0),), name="stages")


@pytest.fixture
def halves(stages, cpu_cluster, cpu_workers):
    """The first half on A, the second on B."""
    plan = split(stages[1], cpu_cluster, lambda k, n: 2 * k // n)
    with mt.distribute(stages[1], plan, workers=cpu_workers, in_flight=3) as run:
        yield run


def test_results_come_in_order_and_are_those_of_requests_alone(captured, cpu_cluster, cpu_workers):
    module, args, network = captured("moe")
    plan = split(network, cpu_cluster, lambda k, n: k % 4)  # every operator elsewhere than its neighbours
    assert len(plan.transfers) > 20
    given = [torch.randn(args[0].shape, generator=torch.Generator().manual_seed(i)) for i in range(60)]
    with mt.distribute(network, plan, workers=cpu_workers, in_flight=8) as run:
        alone = [run(x) for x in given]
        ended = []
        futures = [run.submit(x) for x in given]
        for i, f in enumerate(futures):
            f.add_done_callback(lambda _, i=i: ended.append(i))
        assert all(torch.equal(f.result(60), y) for f, y in zip(futures, alone))
        assert torch.equal(run(given[3]), alone[3])
        assert run.measure(warmup=1, runs=2).median_ns > 0
        assert torch.equal(run.submit(given[5]).result(60), alone[5])
    assert len({tuple(y.flatten()[:4].tolist()) for y in alone}) == 60
    late = ended[-30:]  # callbacks of futures that had ended before they got one run at once
    assert sorted(ended) == list(range(60)) and late == sorted(late)


def test_ranks_work_at_different_requests_at_a_time(halves):
    halves.submit(rows(0)).result(60)
    seen = {}
    halves._requests.watch = seen.__setitem__

    def beside() -> int:
        spans = [seen[k] for k in sorted(seen)]
        pairs = [(earlier["B"], later["A"]) for earlier, later in itertools.pairwise(spans)]
        return sum(later[0][0] < earlier[-1][1] and earlier[0][0] < later[-1][1] for earlier, later in pairs)

    for _ in range(25):  # ranks that have no core to themselves are seldom seen at work at the same time
        wait([halves.submit(rows(i)) for i in range(40)])
        if beside() >= 10:
            return
    raise AssertionError(f"{beside()} of {len(seen)} requests were begun while the one before was computed")


def test_a_request_that_fails_harms_no_other(halves, stages):
    good, bad = rows(1), rows(2)
    bad[7] = 99
    futures = [halves.submit(bad if i % 4 == 1 else good) for i in range(20)]
    with torch.no_grad():
        expected = stages[0](good)[0]
    for i, f in enumerate(futures):
        if i % 4 == 1:
            with pytest.raises(mt.RequestError, match="device 'A': .*index out of range"):
                f.result(60)
        else:
            assert torch.allclose(f.result(60)[0], expected, atol=1e-4), i
    with pytest.raises(moirai.UsageError, match="captured was"):
        halves.submit(good.float()).result(60)
    with pytest.raises(mt.RequestError, match="out of range"):
        halves(bad)


def test_back_pressure(halves):
    halves.submit(rows(0)).result(60)
    gate = threading.Event()
    halves._requests.watch = lambda *_: gate.wait(60)  # nothing ends before that
    futures = [halves.submit(rows(i)) for i in range(3)]
    with pytest.raises(mt.Busy, match="3 requests are in flight"):
        halves.submit(rows(4), block=False)
    waiting = threading.Thread(target=lambda: futures.append(halves.submit(rows(4))))
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    gate.set()
    waiting.join(60)
    assert len(futures) == 4 and len(wait(futures, 600).done) == 4


def test_asyncio(halves, stages):
    async def all_of_them():
        return await asyncio.gather(*(halves.asubmit(rows(i)) for i in range(12)))

    with torch.no_grad():
        for i, (got, _) in enumerate(asyncio.run(all_of_them())):
            assert torch.allclose(got, stages[0](rows(i))[0], atol=1e-4), i


def test_close_waits_for_what_is_in_flight(stages, cpu_cluster, cpu_workers):
    run = mt.distribute(stages[1], split(stages[1], cpu_cluster, lambda k, n: k % 2), workers=cpu_workers, in_flight=4)
    futures = [run.submit(rows(i)) for i in range(4)]
    run.close()
    assert all(f.done() and f.exception() is None for f in futures)
    with pytest.raises(moirai.UsageError, match="closed"):
        run.submit(rows(0))


def test_a_rank_that_dies_fails_what_is_in_flight(stages, cpu_cluster):
    plan = split(stages[1], cpu_cluster, lambda k, n: k % 2)
    with mt.distribute(stages[1], plan, cluster=cpu_cluster, in_flight=4) as run:
        run.submit(rows(0)).result(60)
        victim = run._workers._processes[1].pid
        os.kill(victim, signal.SIGSTOP)
        futures = [run.submit(rows(i)) for i in range(4)]
        os.kill(victim, signal.SIGKILL)
        for f in futures:
            with pytest.raises(mt.RankError, match="'B': rank 1 died of SIGKILL"):
                f.result(60)
        with pytest.raises(mt.RankError, match="SIGKILL"):
            run.submit(rows(0))


def test_what_makes_no_sense_is_refused(stages, cpu_cluster, cpu_workers):
    plan = split(stages[1], cpu_cluster, lambda k, n: 0)
    with pytest.raises(moirai.UsageError, match="in_flight 0"):
        mt.distribute(stages[1], plan, workers=cpu_workers, in_flight=0)


def test_requests_that_queue_give_the_same(halves, stages):
    """What GPUs do: one after the other."""
    halves._requests = Queue(3, halves._alone)
    with torch.no_grad():
        for i, f in enumerate([halves.submit(rows(i)) for i in range(8)]):
            assert torch.allclose(f.result(60)[0], stages[0](rows(i))[0], atol=1e-4), i
    assert halves.measure(warmup=1, runs=2).median_ns > 0
    gate = threading.Event()
    slow = Slow(gate)
    halves._requests = Queue(2, slow.run)
    futures = [halves.submit(rows(0)) for _ in range(2)]
    with pytest.raises(mt.Busy):
        halves.submit(rows(0), block=False)
    gate.set()
    assert [f.result(60) for f in futures] == ["done"] * 2


class Slow:
    def __init__(self, gate):
        self.gate = gate

    def run(self, _):
        self.gate.wait(60)
        return "done"


PATCH = """
import time
from moirai.torch.rank import Rank
if not hasattr(Rank, "as_it_was"):
    Rank.as_it_was = Rank.run_segment
    def slowly(self, env, i, before=None):
        time.sleep(0.1)
        Rank.as_it_was(self, env, i, before)
    Rank.run_segment = slowly
"""
UNDO = """
from moirai.torch.rank import Rank
Rank.run_segment = Rank.as_it_was
del Rank.as_it_was
"""


@pytest.fixture
def sleepy(cpu_workers):
    """Segments take 100 ms, whatever else this machine does."""

    def tell(text):
        job = {"module": "builtins", "function": "exec", "args": [text, {}]}
        cpu_workers.tell("call", dict.fromkeys(range(4), job))

    tell(PATCH)
    yield
    tell(UNDO)


def test_the_rate_is_that_of_the_busiest_device(stages, cpu_cluster, cpu_workers, sleepy):
    """A, B, A and B again, 100 ms each: 400 ms one by one, 200 ms with several in flight, much more than all else takes."""
    plan = split(stages[1], cpu_cluster, lambda k, n: 4 * k // n % 2)
    seconds = {}
    for n in (1, 4):
        with mt.distribute(stages[1], plan, workers=cpu_workers, in_flight=n) as run:
            assert [len(r.segments) for r in run.program.ranks] == [2, 2, 0, 0]
            wait([run.submit(rows(i)) for i in range(4)])
            begin = time.monotonic()
            wait([run.submit(rows(i)) for i in range(8)])
            seconds[n] = time.monotonic() - begin
    assert seconds[1] > 8 * 0.4 and seconds[4] < 0.9 * seconds[1], seconds


@pytest.mark.parametrize("source", [
    torch.arange(6.0).reshape(2, 3),
    torch.arange(6.0).reshape(3, 2).t(),  # other strides
    torch.arange(6, dtype=torch.int32).reshape(2, 3),  # another type
    torch.arange(3.0).expand(2, 3),
    torch.view_as_complex(torch.arange(12.0).reshape(2, 3, 2)).conj(),  # bytes are those of what is not conjugated
    torch.view_as_complex(torch.arange(12.0).reshape(2, 3, 2)).conj().imag,  # nor are these
    torch.arange(float(2 << 20)).reshape(2, -1),  # more than one thread copies
    torch.zeros(2, 0),
], ids=lambda t: f"{tuple(t.shape)} {t.stride()} {t.dtype}")  # fmt: skip
def test_arguments_are_put_and_results_taken_as_they_are(source):
    kinds = [source.dtype] if source.is_complex() else [torch.float32, source.dtype]
    for kind in kinds:
        target = torch.full(source.shape, 7, dtype=kind)
        shared.put(target, source)
        assert torch.equal(target, source.to(kind))
    made = shared.copy_of(source)
    assert torch.equal(made, source) and made.data_ptr() != source.data_ptr() or not source.numel()


def test_a_result_waits_for_those_before_it():
    requests = Requests(3)
    begun = []
    requests._begin = begun.append
    futures = [requests.submit(i) for i in range(3)]
    requests._settle(begun[1], "second")
    requests._settle(begun[2], error=mt.RequestError("third"))
    assert not any(f.done() for f in futures)
    more = [requests.submit(i, block=False) for i in (4, 5)]  # those that have ended left their slots
    with pytest.raises(mt.Busy):
        requests.submit(6, block=False)
    requests._settle(begun[0], "first")
    assert futures[0].result(0) == "first" and futures[1].result(0) == "second"
    assert isinstance(futures[2].exception(0), mt.RequestError) and not any(f.done() for f in more)
    assert sorted(r.slot for r in begun[3:]) == [begun[1].slot, begun[2].slot]


def test_requests_go_to_the_copy_that_has_the_largest_part_of_its_slots_free():
    places = Places([1, 3])
    taken = [places.take() for _ in range(4)]
    assert [places.copy_of[s] for s in taken] == [0, 1, 1, 1] and len(set(taken)) == 4 and not places.free
    places.give(taken[2])
    assert places.free and places.take() == taken[2]


def test_requests_go_to_the_copy_that_is_furthest_behind_its_share():
    places = Places([4, 4], [0.75, 0.25], most=4)
    took = [places.take() for _ in range(4)]
    assert not places.free  # four at a time, although there are eight slots
    for _ in range(396):
        places.give(took.pop(0))
        took.append(places.take())
    assert places._given == [300, 100]


def test_all_copies_of_a_plan_answer(stages, cpu_cluster, cpu_workers):
    """A copy on each of four devices: all of them work, in order, with one set of weights."""
    module, captured = stages
    for device in cpu_cluster.devices:
        captured.graph.set_times(device.name, [200_000] * len(captured.graph))
    problem = moirai.Problem(captured.graph, cpu_cluster)
    plan = moirai.place(problem, objective="rate", in_flight=8, kind="replicas", effort=0.1)
    assert len(plan.rate.copies) == 4 and sum(c.slots for c in plan.rate.copies) == plan.rate.in_flight
    with mt.distribute(captured, plan, workers=cpu_workers, verify=module) as run:
        assert run.in_flight == plan.rate.in_flight
        alone = [run(rows(i)) for i in range(24)]
        worked = set()
        requests = run.requests()
        requests.watch = lambda _, spans: worked.update(d for d, s in spans.items() if s)
        futures = [run.submit(rows(i)) for i in range(24)]
        assert all(torch.equal(f.result(60)[0], y[0]) for f, y in zip(futures, alone))
        assert worked == set("ABCD")
        bad = rows(2)
        bad[7] = 99
        with pytest.raises(mt.RequestError, match="out of range"):
            run.submit(bad).result(60)
    assert not any(cpu_workers.held.get((k, captured.number)) for k in range(4))


def test_what_is_due_first_goes_first():
    turns, order, free = Turns(lambda: None), [], threading.Event()
    asked = [(1, 2.5), (2, 0.0), (3, 0.0)]  # the oldest of them asks for what comes late in it
    threads = [threading.Thread(target=turns.do, args=(0, free.wait))]
    threads += [threading.Thread(target=turns.do, args=(n, lambda n=n: order.append(n), later)) for n, later in asked]
    threads[0].start()
    while turns._heap:  # until it is at work
        time.sleep(0.001)
    for t in threads[1:]:
        t.start()
    while len(turns._heap) < len(asked):
        time.sleep(0.001)
    free.set()
    for t in threads:
        t.join()
    turns.end()
    assert order == [2, 3, 1]


def test_a_plan_of_one_copy_is_run_at_its_pace(stages, cpu_cluster, cpu_workers):
    module, captured = stages
    for k, device in enumerate(cpu_cluster.devices):
        captured.graph.set_times(device.name, [(1 + (i + k) % 4) * 50_000 for i in range(len(captured.graph))])
    problem = moirai.Problem(captured.graph, cpu_cluster)
    plan = moirai.place(problem, objective="rate", in_flight=8, copies=1, effort=0.1)
    assert plan.rate.pace == 7  # 0.9 of 8: no stream waits at it
    assert paces_of(plan, 4) == [3.5 / plan.makespan_ns]
    with mt.distribute(captured, plan, workers=cpu_workers, verify=module) as run:
        alone = [run(rows(i)) for i in range(24)]
        futures = [run.submit(rows(i)) for i in range(24)]
        assert all(torch.equal(f.result(60)[0], y[0]) for f, y in zip(futures, alone))


def test_a_gpu_that_is_busy_for_a_while_is_waited_for(monkeypatch):
    """As it is after a process that used it was killed."""
    said = ["CUDA error: CUDA-capable device(s) is/are busy or unavailable", "MPS server is not ready to accept new MPS client requests"]

    def init():
        if said:
            raise RuntimeError(said.pop())

    monkeypatch.setattr(torch.cuda, "init", init)
    monkeypatch.setattr(torch, "zeros", lambda *_, **__: None)
    begin_cuda(60, pause_s=0)
    assert not said
    said.append("CUDA error: out of memory")
    with pytest.raises(RuntimeError, match="out of memory"):
        begin_cuda(60, pause_s=0)
    said[:] = ["busy or unavailable"] * 3
    with pytest.raises(RuntimeError, match="busy or unavailable"):
        begin_cuda(-1)
    assert len(said) == 2
