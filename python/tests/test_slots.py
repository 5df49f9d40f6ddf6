"""Several requests in flight on ranks of GPUs, without a GPU: all but the driver, streams and graphs is the code that
runs there. Ranks are threads, a stream is a thread that does one thing after the other, memory of other processes is
our own, and the replay of a graph is its steps once more, into the buffers that were there when it was captured."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Pipe
from types import SimpleNamespace

import pytest
from conftest import need

torch = need("torch")

from test_submit import split  # noqa: E402

import moirai  # noqa: E402
import moirai.torch as mt  # noqa: E402
from moirai.torch import rank_cuda, slots_cuda  # noqa: E402
from moirai.torch.copies import places_of, plans_of  # noqa: E402
from moirai.torch.flight import Copy, Flights, Queue  # noqa: E402
from moirai.torch.program import build  # noqa: E402
from moirai.torch.shared import create  # noqa: E402

of_distribute = importlib.import_module("moirai.torch.distribute")
here = threading.local()


class Stream:
    """One thread, one thing after the other; where that thread asks for the current stream, it does things at once."""

    count = 0

    def __init__(self):
        Stream.count += 1
        self.cuda_stream = Stream.count
        self.pool = ThreadPoolExecutor(1)

    def do(self, what):
        self.pool.submit(self._done, what)

    def _done(self, what):
        here.at_once = True
        with torch.no_grad():
            what()

    def wait_event(self, _):
        pass

    wait_stream = wait_event


class AtOnce:
    cuda_stream = 0

    def do(self, what):
        what()

    def wait_event(self, _):
        pass

    wait_stream = wait_event


class Event:
    def __init__(self):
        self.asked = self.came = 0

    def record(self, stream=None):
        self.asked += 1
        (stream or current()).do(lambda n=self.asked: setattr(self, "came", n))

    def query(self):
        return self.came == self.asked


class Graph:
    def reset(self):
        pass


def current():
    return AtOnce() if getattr(here, "at_once", False) or not getattr(here, "stream", None) else here.stream


@contextlib.contextmanager
def on(stream):
    here.stream, before = stream, getattr(here, "stream", None)
    yield
    here.stream = before


@contextlib.contextmanager
def capturing(*_, **__):
    here.capturing = True
    yield
    here.capturing = False


class Driver:
    """Addresses are the same for all."""

    over = False  # streams that wait for others end: processes would be ended

    def export(self, address):
        return b"", address

    def open(self, _):
        return 0

    def close(self, _):
        pass

    def pin(self, address, _):
        return address

    def unpin(self, _):
        pass

    def to_host(self, to, source, size, stream):
        if not getattr(here, "capturing", False):
            stream.do(lambda: ctypes.memmove(to, source, size))

    to_device = to_host

    def launch(self, name, stream, _, *args):
        if not getattr(here, "capturing", False):
            stream.do(lambda: getattr(self, name)(*(a.value if isinstance(a, ctypes.c_uint) else a for a in args)))

    @staticmethod
    def word(address):
        return ctypes.c_uint64.from_address(address)

    def tell(self, out, n, number):
        for i in range(n):
            self.word(self.word(out + 8 * i).value).value = number

    def poll(self, arrive, n, number, abort):
        for i in range(n):
            while self.word(self.word(arrive + 8 * i).value).value < number and not self.word(abort).value & 0xFF:
                time.sleep(1e-4)

    def await_flags(self, stream, addresses):
        def look():
            while not all(self.word(a).value for a in addresses) and not Driver.over:
                time.sleep(1e-4)

        if not getattr(here, "capturing", False):
            stream.do(look)

    def moirai_start(self, request, out, arrive, n, abort, _):
        number = self.word(request).value + 1
        self.tell(out, n, number)
        self.poll(arrive, n, number, abort)
        self.word(request).value = number

    def copy(self, what, n):
        for i in range(n):
            source, to, times = (self.word(what + 8 * (3 * i + k)).value for k in range(3))
            ctypes.memmove(to, source, 16 * times)

    def moirai_meet(self, request, out, n_out, arrive, n_in, abort, _, put, n_put, get, n_get):
        number = self.word(request).value
        self.copy(put, n_put)
        self.tell(out, n_out, number)
        self.poll(arrive, n_in, number, abort)
        self.copy(get, n_get)

    def moirai_pass(self, request, out, n_out, past, n_past, _):
        for i in range(n_past):
            self.word(self.word(past + 8 * i).value).value = 0
        self.tell(out, n_out, self.word(request).value)


def foreign(address, span, shape, stride, dtype):
    raw = torch.frombuffer((ctypes.c_char * max(span, 1)).from_address(address), dtype=torch.uint8)
    return raw[:span].view(dtype).as_strided(shape, stride)


def replayed(self):
    """What a graph does when it is launched."""
    self.count += 1
    self.pinned.write(self.count_at, self.count)
    current().do(lambda: self._steps(self._copy_out))


@pytest.fixture
def no_gpu(monkeypatch):
    for name, fake in {"synchronize": lambda *_: None, "Stream": Stream, "Event": Event, "CUDAGraph": Graph,
                       "graph": capturing, "current_stream": current, "stream": on}.items():  # fmt: skip
        monkeypatch.setattr(torch.cuda, name, fake)
    monkeypatch.setattr(rank_cuda, "foreign_tensor", foreign)
    monkeypatch.setattr(rank_cuda.CudaRank, "_go", replayed)
    # A graph here is its steps, run again: the addresses that others know must stay.
    monkeypatch.setattr(rank_cuda.CudaRank, "release", rank_cuda.Rank.release)
    torch.set_grad_enabled(False)
    yield
    torch.set_grad_enabled(True)


class Ranks:
    """What Flights wants of Workers: threads, a rank each, that have all copies loaded."""

    def __init__(self, network, loads, devices):
        self.devices = [SimpleNamespace(name=d) for d in devices]
        self.network, self.loads = network, loads
        self.store = torch.distributed.HashStore()
        self.aborts = [create(max(load.pinned_bytes, 1024)) for load in loads]
        Driver.over = False
        self.loaded = dict(self.all(self.load, range(len(devices))))

    def all(self, what, ranks):
        ranks = list(ranks)
        with ThreadPoolExecutor(len(ranks)) as pool:
            return list(zip(ranks, pool.map(what, ranks)))

    def load(self, k):
        torch.set_grad_enabled(False)
        found = {}
        for n, load in enumerate(self.loads):
            if k in load.ranks:
                weights = {w: self.network.weights[w] for w in load.program.ranks[k].weights}
                pinned = rank_cuda.PinnedFile(self.aborts[n], Driver())
                found[load.key] = rank_cuda.CudaRank(
                    load.program.ranks[k], weights, torch.device("cpu"), self.store, f"load{load.key}", load.ranks,
                    pinned, load.host_at, stall_s=20)  # fmt: skip
        return found

    def streams(self, jobs, _):
        ends = {}

        def begin(k):
            torch.set_grad_enabled(False)
            ends[k], there = Pipe()
            slots = {x["slot"]: slots_cuda.CudaSlot(self.loaded[k][x["key"]], x, jobs[k]["metas"])
                     for x in jobs[k]["slots"]}  # fmt: skip
            slots_cuda.CudaStream(there, slots, 20)

        self.all(begin, jobs)
        return ends

    def lost(self, _, k, why):
        return mt.RankError(f"device {k}: {why}")

    def close(self):
        ranks = [rank for loaded in self.loaded.values() for rank in loaded.values()]
        Driver.over = True
        for slot in (s for rank in ranks for s in rank.slots):
            slot.stream.pool.shutdown()  # threads that were told to end may look at memory of others yet
        for rank in ranks:
            rank.close()


@contextlib.contextmanager
def flights(network, plan, in_flight, transport="ipc", lanes=0):
    keys = SimpleNamespace(key=0)
    loads = [of_distribute._Load(build(network, p), keys, transport) for p in plans_of(plan)]
    places = places_of(plan, in_flight)
    copies = [Copy(x.key, x.ranks, len(x.program.transfers)) for x in loads]
    for c in places.copy_of:
        copies[c].pinned.append(create(loads[c].pinned_bytes))
    metas = of_distribute.Distributed._metas(SimpleNamespace(_captured=network))
    ranks = Ranks(network, loads, plan.problem.devices)
    found = Flights(ranks, copies, metas, places, in_flight, of_distribute._put,
                    lambda tensors, given: of_distribute._get(network, False, tensors, given), 20, lanes)  # fmt: skip
    try:
        yield found, ranks
    finally:
        found.close()
        ranks.close()


def ask(found, network, given):
    futures = [found.submit((network.bind((x,), {}), (x,), {})) for x in given]
    return [f.result(60) for f in futures]


def inputs_like(x, n):
    return [torch.randn(x.shape, generator=torch.Generator().manual_seed(i)) for i in range(n)]


@pytest.mark.parametrize("transport, lanes", [("ipc", 0), ("host", 0), ("ipc", 1), ("ipc", 2), ("host", 1)])
def test_slots_give_the_module_s_results_in_order(no_gpu, captured, cpu_cluster, transport, lanes):
    module, args, network = captured("moe")
    plan = split(network, cpu_cluster, lambda k, n: k % 3)
    given = inputs_like(args[0], 30)
    with flights(network, plan, 4, transport, lanes) as (found, _):
        for y, x in zip(ask(found, network, given), given):
            assert torch.allclose(y, module(x), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("limit", [0, 512, rank_cuda.DIRECT_BYTES])
def test_short_messages_are_put_into_the_host_s_memory(no_gpu, captured, cpu_cluster, monkeypatch, limit):
    """One request at a time; what is longer than the limit is copied by engines."""
    monkeypatch.setattr(rank_cuda.CudaRank, "direct_bytes", limit)
    module, args, network = captured("moe")
    plan = split(network, cpu_cluster, lambda k, n: k % 3)
    load = of_distribute._Load(build(network, plan), SimpleNamespace(key=0), "host")
    ranks = Ranks(network, [load], plan.problem.devices)
    mine = {k: loaded[load.key] for k, loaded in ranks.loaded.items() if loaded}
    sends = [(r, s) for r in mine.values() for g in r.program.segments for s in g.sends]
    direct = {s.meta.bytes <= limit for r, s in sends if r._is_direct(s)}
    copied = {s.meta.bytes > limit for r, s in sends if r._is_copied(s)}
    assert direct == ({True} if limit else set()) and copied == ({True} if limit < rank_cuda.DIRECT_BYTES else set())
    for x in inputs_like(args[0], 10):
        given = network.bind((x,), {})
        found = dict(y for _, made in ranks.all(lambda k: mine[k].run({n: given[n] for n in mine[k].inputs}), mine) for y in made)
        assert torch.allclose(found[0], module(x), rtol=1e-3, atol=1e-5)
    ranks.close()


def test_copies_of_a_plan_have_slots_of_their_own(no_gpu, captured, cpu_cluster):
    module, args, network = captured("moe")
    plan = split(network, cpu_cluster, lambda k, n: 0)
    plan = moirai.place(plan.problem, objective="rate", in_flight=4, kind="replicas", effort=0.1)
    assert len(plan.rate.copies) == 4
    given = inputs_like(args[0], 20)
    with flights(network, plan, 4) as (found, ranks):
        for y, x in zip(ask(found, network, given), given):
            assert torch.allclose(y, module(x), rtol=1e-3, atol=1e-5)
        slots = [s for loaded in ranks.loaded.values() for rank in loaded.values() for s in rank.slots]
        assert len(slots) == 4 and sum(s.count for s in slots) == 20 and all(s.count for s in slots)


def overlaps(spans):
    """How many begin before another one has ended."""
    ordered = sorted(spans)
    return sum(later[0] < before[1] for before, later in zip(ordered, ordered[1:]))


@pytest.mark.parametrize("lanes", [0, 1])
def test_ranks_work_at_different_requests_at_a_time(no_gpu, captured, cpu_cluster, monkeypatch, lanes):
    """A's first half of the next request runs while B has the second one of this: both take 50 ms. In one lane no device
    works at two requests at once."""
    module, args, network = captured("moe")
    plan = split(network, cpu_cluster, lambda k, n: 2 * k // n)
    spans = {0: [], 1: []}

    def slowly(self, env, i, before=None, as_it_was=rank_cuda.CudaRank.run_segment):
        begun = time.monotonic()
        as_it_was(self, env, i, before)
        if not getattr(here, "capturing", False):
            time.sleep(0.05 / len(self.program.segments))
            spans[self.program.rank].append((begun, time.monotonic()))

    with flights(network, plan, 3, lanes=lanes) as (found, _):
        monkeypatch.setattr(rank_cuda.CudaRank, "run_segment", slowly)
        ask(found, network, inputs_like(args[0], 12))
    beside = sum(any(a < d and c < b for c, d in spans[1]) for a, b in spans[0])
    assert beside > 4, beside
    assert (overlaps(spans[0]) + overlaps(spans[1]) > 0) == (lanes == 0)


@pytest.mark.parametrize("waits", [True, False])
def test_where_streams_can_not_wait_requests_wait_for_each_other(monkeypatch, waits):
    monkeypatch.setattr(of_distribute.Distributed, "_flights", lambda self: "at once")
    run = of_distribute.Distributed.__new__(of_distribute.Distributed)
    torch.nn.Module.__init__(run)
    run._starting, run._open, run._requests, run.transport, run._lanes, run._graphs, run.in_flight = threading.Lock(), True, None, "ipc", 0, True, 2
    run._workers = SimpleNamespace(kind="cuda", about={0: {"kind": "cuda", "waits": True}, 1: {"kind": "cuda", "waits": waits}})
    found = run.requests()
    assert (found == "at once") == waits
    if not waits:
        assert isinstance(found, Queue)
        found.close()


def test_a_rank_that_is_gone_ends_what_is_in_flight(no_gpu, captured, cpu_cluster):
    module, args, network = captured("moe")
    plan = split(network, cpu_cluster, lambda k, n: k % 2)
    with flights(network, plan, 2) as (found, ranks):
        ask(found, network, inputs_like(args[0], 2))
        for slot in ranks.loaded[1][1].slots:
            slot.go = lambda lane: None  # one of the two does nothing any more
        future = found.submit((network.bind(args, {}), args, {}))
        time.sleep(0.3)
        assert not future.done()
        for slot in ranks.loaded[0][1].slots:
            slot.pinned.write(0, 1)
        with pytest.raises(mt.RankError, match="another rank is gone"):
            future.result(300)
