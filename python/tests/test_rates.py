"""Rates of plans with many requests in flight, as the runtime has them: by simulation (rates.py), and measured."""

from __future__ import annotations

import contextlib
import importlib
import time
from unittest import mock

import pytest
from conftest import need

torch = need("torch")

from test_submit import Stages, rows  # noqa: E402

import moirai  # noqa: E402
import moirai.torch as mt  # noqa: E402
from moirai.torch.flight import Places  # noqa: E402
from moirai.torch.merging import Item  # noqa: E402
from moirai.torch.rates import Machine, Played, simulate  # noqa: E402
from moirai.torch.tune_rate import RateTrial, RateTuner, _python_ns, slope  # noqa: E402
from moirai.torch.workers import RankError  # noqa: E402

tune_rate = importlib.import_module("moirai.torch.tune_rate")  # moirai.torch.tune_rate is the function
MS = 1_000_000


def row(n, ms=10, message_ms=0.0):
    """n equal stages, one on each device."""
    items = {k: [Item(ms * MS, [k - 1] if k else [], [k] if k < n - 1 else [])] for k in range(n)}
    return Played(items, {k: [0] for k in range(n)}, [int(message_ms * MS)] * (n - 1), list(range(1, n)))


def there_and_back():
    """10 ms on A, 10 on B, 10 on A again."""
    items = {0: [Item(10 * MS, [], [0]), Item(10 * MS, [1], [])], 1: [Item(10 * MS, [0], [1])]}
    return Played(items, {0: [0, 0], 1: [0]}, [0, 0], [1, 0])


def period_ms(copies, in_flight, lanes=0, counts=None, shares=None, **machine):
    found = simulate(copies, counts or [in_flight], shares, in_flight, lanes, Machine(**machine))
    return None if found is None else found / MS


def test_a_processor_takes_the_oldest_request():
    assert period_ms([row(4)], 1) == pytest.approx(40)
    assert period_ms([row(4)], 2) == pytest.approx(20)
    assert period_ms([row(4)], 4) == pytest.approx(10)
    assert period_ms([row(4)], 8) == pytest.approx(10)
    assert period_ms([row(2, message_ms=5)], 1) == pytest.approx(25)
    assert period_ms([there_and_back()], 8) == pytest.approx(20, rel=0.01)


def test_requests_that_share_a_gpu_go_through_a_row_of_stages_together():
    assert period_ms([row(4)], 2, shared=True) == pytest.approx(40)  # both are in the same stage, for 20 ms
    assert period_ms([row(4)], 2, lanes=1, shared=True) == pytest.approx(20)
    assert period_ms([row(4)], 8, lanes=1, shared=True) == pytest.approx(10)
    assert period_ms([row(4)], 8, lanes=2, shared=True) == pytest.approx(10)  # pairs, one in each stage


def test_what_requests_gain_by_sharing_counts_where_they_share():
    alone = {0: Played({0: [Item(10 * MS, [], [])]}, {0: [0]}, [], [])}
    assert period_ms([alone[0]], 2, shared=True, gain=1.25) == pytest.approx(8)
    assert period_ms([alone[0]], 2, lanes=1, shared=True, gain=1.25) == pytest.approx(10)
    assert period_ms([alone[0]], 1, shared=True, gain=1.25) == pytest.approx(10)


def test_four_requests_may_gain_more_than_two():
    alone = Played({0: [Item(10 * MS, [], [])]}, {0: [0]}, [], [])
    assert period_ms([alone], 2, shared=True, gain=1.25, crowd=2.0) == pytest.approx(8)
    assert period_ms([alone], 3, shared=True, gain=1.25, crowd=2.0) == pytest.approx(10 / 1.625)
    assert period_ms([alone], 4, shared=True, gain=1.25, crowd=2.0) == pytest.approx(5)
    assert period_ms([alone], 8, shared=True, gain=1.25, crowd=2.0) == pytest.approx(5)
    assert period_ms([alone], 8, shared=True, gain=1.25) == pytest.approx(8)


def test_no_request_takes_more_of_the_caller_than_lies_between_two(monkeypatch):
    """One at a time the caller was busy for 9 ms a request, be it with waiting; with several in flight one ends every 5: devices that need 5 for it are not
    taken to make each other faster."""
    copies = [Played({k: [Item(10 * MS, [], [])]}, {k: [0]}, [], []) for k in range(2)]
    monkeypatch.setattr(tune_rate, "places_of", lambda _, n: Places([n // 2, n // 2], None, n))
    one, several = tune_rate.Stream(20.0 * MS, 9.0 * MS, 1.0 * MS), tune_rate.Stream(5.0 * MS, 9.0 * MS)
    monkeypatch.setattr(tune_rate, "period_of", lambda run, args, kwargs, n, s: one if n == 1 else several)
    tuner = RateTuner.__new__(RateTuner)
    tuner.args, tuner.kwargs, tuner.o, tuner.shared, tuner.known, tuner.caller_ns = (), {}, {"window": 1.0}, True, set(), float("inf")
    run = mock.Mock(spec=mt.Distributed, in_flight=4)
    tuner.machine = tune_rate.settled(Machine(shared=True), **tuner.way(run, copies))
    assert (tuner.machine.serial_ns, tuner.machine.finish_ns) == (1 * MS, 8 * MS)
    tuner.know(run, None, copies)
    assert (tuner.machine.serial_ns, tuner.machine.finish_ns) == (1 * MS, 4 * MS)
    assert tuner.machine.slower == 1 and 1 <= tuner.machine.gain <= 2
    assert tuner.way(run, copies) == {"serial_ns": 1 * MS, "finish_ns": 4 * MS, "delay_ns": 5 * MS}


def test_what_four_gain_is_known_by_twice_as_many_copies(monkeypatch):
    """Copies on two devices, with four requests each: what they were measured to take is what is simulated then."""
    copies = [Played({k: [Item(10 * MS, [], [])]}, {k: [0]}, [], []) for k in range(2)]
    monkeypatch.setattr(tune_rate, "distribute", lambda *_, **o: contextlib.nullcontext(mock.Mock(spec=mt.Distributed, in_flight=o["in_flight"])))
    monkeypatch.setattr(tune_rate, "period_of", lambda run, *_: tune_rate.Stream(3.0 * MS, 0.0))
    monkeypatch.setattr(tune_rate, "places_of", lambda _, n: Places([n // 2, n // 2], None, n))
    tuner = RateTuner.__new__(RateTuner)
    tuner.captured, tuner.args, tuner.kwargs, tuner.get, tuner.o = None, (), {}, lambda: None, {"window": 1.0}
    tuner.machine = Machine(shared=True, gain=1.25)
    monkeypatch.setattr(tuner, "played", lambda _: copies, raising=False)
    tuner.know_crowd(None, 4, {})
    assert tuner.machine.crowd == pytest.approx(5 / 3, rel=0.01) and tuner.machine.gain == 1.25
    assert tuner.simulated(copies, None, 8, 0) == pytest.approx(3 * MS, rel=0.01)
    assert tuner.simulated(copies, None, 4, 0) == pytest.approx(4 * MS, rel=0.01)


def test_a_lane_holds_up_what_has_to_come_back():
    assert period_ms([there_and_back()], 2, lanes=1, shared=True) == pytest.approx(30)
    assert period_ms([there_and_back()], 4, shared=True, serial_ns=MS) < 27  # the caller has them begin one after the other


def test_a_request_that_waits_takes_nothing_of_a_gpu():
    assert period_ms([there_and_back()], 1, shared=True) == pytest.approx(30)
    late = period_ms([row(2)], 2, shared=True, serial_ns=5 * MS)  # who begins later ends as much later, and has stages alone meanwhile
    assert late == pytest.approx(17.5, rel=0.01)
    assert period_ms([row(2)], 2, lanes=1, shared=True, serial_ns=5 * MS) == pytest.approx(12.5, rel=0.05)


def test_the_caller_is_a_device_of_its_own_and_a_delay():
    assert period_ms([row(1)], 1, serial_ns=2 * MS, delay_ns=3 * MS) == pytest.approx(15)
    assert period_ms([row(1)], 2, serial_ns=2 * MS, delay_ns=3 * MS) == pytest.approx(10)
    assert period_ms([row(1, ms=1)], 8, serial_ns=2 * MS, delay_ns=3 * MS) == pytest.approx(2)
    assert period_ms([row(1)], 1, serial_ns=MS, finish_ns=MS, delay_ns=3 * MS) == pytest.approx(15)
    assert period_ms([row(1, ms=1)], 8, serial_ns=MS, finish_ns=2 * MS) == pytest.approx(3)


def test_requests_that_end_in_bursts_have_the_rate_of_the_bursts():
    ends = [100 * (k // 8) for k in range(67)]  # eight at a time
    assert slope(ends) == pytest.approx(12.5, rel=0.05)


def test_devices_slow_each_other_down_as_far_as_they_work():
    assert period_ms([row(4)], 4, slower=1.5) == pytest.approx(15, rel=0.02)  # all of them, all the time
    assert period_ms([row(4)], 2, slower=1.5) == pytest.approx(70 / 3, rel=0.02)  # one of the three others
    assert period_ms([row(4)], 1, slower=1.5) == pytest.approx(40)  # one at a time: nobody is beside it
    assert period_ms([row(2)], 2, slower=1.5, devices=4) == pytest.approx(70 / 6, rel=0.02)  # by 1.5 if four worked


def test_what_was_measured_beside_others_is_not_made_slower_again():
    both = Played({k: [Item(10 * MS, [], [])] for k in range(2)}, {0: [0], 1: [0]}, [], [])
    assert period_ms([both], 1, slower=1.5) == pytest.approx(10)
    assert period_ms([both], 4, slower=1.5) == pytest.approx(10)
    half = Played({0: [Item(10 * MS, [], [])], 1: [Item(5 * MS, [], [])]}, {0: [0], 1: [0]}, [], [])
    assert period_ms([half], 1, slower=1.5) == pytest.approx(10)
    assert period_ms([half], 4, slower=1.5) == pytest.approx(10)


def test_copies_take_requests_as_they_have_slots():
    fast, slow = row(1), Played({1: [Item(30 * MS, [], [])]}, {1: [0]}, [], [])
    assert period_ms([fast, slow], 2, counts=[1, 1]) == pytest.approx(7.5, rel=0.02)
    assert period_ms([fast, slow], 4, counts=[4, 4], shares=[0.5, 0.5]) == pytest.approx(15, rel=0.05)


def test_segments_that_wait_for_each_other_have_no_rate():
    items = {0: [Item(MS, [1], [0])], 1: [Item(MS, [0], [1])]}
    assert period_ms([Played(items, {0: [0], 1: [0]}, [0, 0], [1, 0])], 2) is None


@pytest.fixture(scope="module")
def tuned(cpu_workers, cpu_cluster):
    module = Stages(width=512).eval()
    return module, mt.tune_rate(module, (rows(0),), in_flight=4, workers=cpu_workers, probed=cpu_cluster, cache=None,
                                time_limit=0.5, threads=1, runs=1, window=0.2, passes=1, name="stages")  # fmt: skip


def test_what_is_kept_was_the_fastest(tuned):
    _, found = tuned
    assert {t.kind for t in found.trials} == {"replicas", "latency", "stages", "any"}
    finalists = [t for t in found.trials if t.finals] or [found.best]
    assert found.best.measured_ns == min(t.measured_ns for t in finalists)
    assert all(t.in_flight == 4 and t.simulated_ns and t.runs_ns for t in found.trials)
    assert found.machine.serial_ns > 0 and f"{found.best.per_second:.6g} requests per second" in found.verdict


def test_what_was_found_serves(tuned, cpu_workers):
    module, found = tuned
    with found.distribute(workers=cpu_workers, cache=None) as run:
        assert run.in_flight == 4
        for future, x in [(run.submit(x), x) for x in map(rows, range(8))]:
            assert torch.allclose(future.result(60)[0], module(x)[0], rtol=1e-4, atol=1e-5)


def test_lanes_are_for_gpus(tuned, cpu_workers):
    _, found = tuned
    with pytest.raises(moirai.UsageError, match="lanes 1: they are for GPUs"):
        mt.distribute(found.captured, found.plan, workers=cpu_workers, lanes=1)
    with pytest.raises(moirai.UsageError, match="in_flight 0"):
        mt.tune_rate(found.captured, (rows(0),), in_flight=0, workers=cpu_workers)


def test_the_finals_decide():
    trial = RateTrial("any", 2, 0, plan=None, runs_ns=[5.0, 1.0, 9.0, 8.0, 7.0], finals=3)
    assert trial.measured_ns == 8.0
    assert RateTrial("any", 2, 0, plan=None, runs_ns=[5.0, 1.0, 9.0]).measured_ns == 5.0


def test_equal_plans_of_one_copy_are_loaded_once(tuned):
    _, found = tuned
    one = found.trials[[t.kind for t in found.trials].index("latency")].plan
    several = found.trials[0].plan
    assert len(several.rate.copies) == 4
    loads = RateTuner.loads({("latency", 2): one, ("any", 4): one, ("replicas", 4): several, ("replicas", 8): several})
    assert loads == [[("latency", 2), ("any", 4)], [("replicas", 4)], [("replicas", 8)]]


def test_threads_that_are_not_pythons_keep_no_request_waiting():
    """A product is computed by several threads, of which one is the caller's."""
    x = torch.randn(768, 768)
    before, own = _python_ns(), time.thread_time_ns()
    for _ in range(20):
        x = torch.nn.functional.normalize(x @ x)
    used, own = _python_ns() - before, time.thread_time_ns() - own
    assert own * 0.8 - 20 * MS <= used <= own * 1.2 + 20 * MS  # the kernel counts in ticks
