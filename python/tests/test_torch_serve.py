"""moirai.torch.serve, held to what `moirai serve` is held to (tests/serve), and asked by tritonclient."""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import types
from pathlib import Path
from unittest import mock

import pytest
from conftest import need

torch = need("torch")
SHARED = Path(__file__).resolve().parents[2] / "tests" / "serve"
if not SHARED.exists():  # where tests travel beside the package
    pytest.skip("tests/serve is not here", allow_module_level=True)
sys.path.insert(0, str(SHARED))

import server as client  # noqa: E402
import test_http as promised  # noqa: E402

import moirai  # noqa: E402
import moirai.torch as mt  # noqa: E402
from moirai.torch.protocol import Model  # noqa: E402


class Small(torch.nn.Module):
    """The model of tests/serve/server.py."""

    def forward(self, x, i):
        a, c = torch.relu(x), torch.relu(-x)
        return {"y": a - c, "g": (a + c)[i], "s": x + 0}


@pytest.fixture(scope="session")
def small():
    module = Small().eval()
    return mt.capture(module, (torch.zeros(client.N), torch.zeros(4, dtype=torch.int64)), name="small")


def spread(captured, cluster):
    for device in cluster.devices:
        captured.graph.set_times(device.name, [200_000] * len(captured.graph))
    problem = moirai.Problem(captured.graph, cluster)
    return moirai.Plan.by_devices(problem, {n: "ABC"[k % 3] for k, n in enumerate(problem.op_names)})


class Client(client.Server):
    process = types.SimpleNamespace(poll=lambda: 0)  # a load ends when its connection does

    def __init__(self, port):
        self.port = port


@pytest.fixture(scope="class")
def serving(request, small, cpu_workers, cpu_cluster):
    options = {"port": 0, "in_flight": 4, **getattr(request.cls, "settings", {})}
    with mt.serve(small, spread(small, cpu_cluster), workers=cpu_workers, **options) as running:
        if request.cls:
            request.cls.server = Client(running.port)
        yield running
    if request.cls:
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", running.port), 1)


class Here:
    @classmethod
    def setUpClass(cls):
        pass

    @classmethod
    def tearDownClass(cls):
        pass


@pytest.mark.usefixtures("serving")
class TestAnswers(Here, promised.Answers):
    def test_a_request_that_a_device_can_not_compute_harms_no_other(self):
        others = [client.Load(self.server, seed, 30) for seed in range(4)]
        for k in range(10):
            code, words = self.server.infer(client.request(client.numbers(k), (0, 1, 2, 64 + k)))
            assert code == 500 and "device '" in words and "out of bounds" in words, words
        for load in others:
            load.join()
            assert (load.codes, load.wrong, load.refused) == ({200: 30}, [], 0)


@pytest.mark.usefixtures("serving")
class TestRefusals(Here, promised.Refusals):
    settings = {"idle": 1, "connections": 16}
    in_pieces = 411

    def test_requests_in_which_one_thing_is_wrong(self):
        for body, headers, part in promised.spoilt():
            deep = isinstance(body, str) and "[" * 1000 in body  # Python's reader gives up earlier
            code, words = self.server.infer(body, headers)
            assert code == 400 and ("request: " if deep else part) in words and "\n" not in words, (words, body[:200])
        self.check_alive()


@pytest.mark.usefixtures("serving")
class TestCrowd(Here, promised.Crowd):
    settings = {"idle": 100, "connections": 8}


@pytest.mark.usefixtures("serving")
class TestPressure(Here, promised.Pressure):
    settings = {"queue": 1, "in_flight": 1, "connections": 200}


def test_what_was_accepted_is_answered(small, cpu_workers, cpu_cluster):
    with mt.serve(small, spread(small, cpu_cluster), workers=cpu_workers, port=0) as running:
        loads = [client.Load(Client(running.port), seed) for seed in range(8)]
        end = time.monotonic() + 60
        while running.line.n_accepted <= 20 and time.monotonic() < end:
            time.sleep(0.05)
    for load in loads:
        load.stopping = True
        load.join()
        assert load.wrong == []
    assert client.total(loads, 200) == running.line.n_accepted > 20
    with pytest.raises(moirai.UsageError, match="closed"):
        running.run.submit(torch.zeros(client.N), torch.zeros(4, dtype=torch.int64))


def of_size(n):
    return mt.capture(Small().eval(), (torch.zeros(n), torch.zeros(4, dtype=torch.int64)), name="small")


@pytest.fixture(scope="class")
def several(request, small, cpu_workers, cpu_cluster):
    pairs = [(c, spread(c, cpu_cluster)) for c in (small, of_size(8), of_size(96))]
    with mt.serve(pairs, workers=cpu_workers, port=0) as running:
        request.cls.server = Client(running.port)
        yield running


@pytest.mark.usefixtures("several")
class TestBuckets(Here, promised.Buckets):
    groups = 1

    def test_it_is_said(self):
        pass


def test_shapes_that_do_not_belong_together(small, cpu_workers, cpu_cluster):
    plan = spread(small, cpu_cluster)
    with pytest.raises(moirai.UsageError, match=r"two plans are for the same shapes: x \[64\], i \[4\]"):
        mt.serve([(small, plan), (small, plan)], workers=cpu_workers, port=0)
    other = mt.capture(torch.nn.ReLU().eval(), (torch.zeros(3),), name="other")
    with pytest.raises(moirai.UsageError, match="do not belong together: inputs differ"):
        mt.serve([(small, plan), (other, spread(other, cpu_cluster))], workers=cpu_workers, port=0)
    with pytest.raises(moirai.UsageError, match="one or more"):
        mt.serve([], workers=cpu_workers, port=0)


def test_ranks_are_started_again_and_what_was_in_flight_is_repeated(small, cpu_cluster):
    """kill -9 of each rank in turn under load: nobody gets anything but a right answer."""
    pairs = [(small, spread(small, cpu_cluster)), (c := of_size(8), spread(c, cpu_cluster))]
    with mt.serve(pairs, cluster=cpu_cluster, port=0, timeout=900) as running:
        asked = Client(running.port)
        asked.connect = lambda: Client.connect(asked, 1000)  # on a busy machine Python and PyTorch take a minute to start
        loads = [client.Load(asked, seed) for seed in range(4)]
        for k in range(2):
            before, began = running.run, time.monotonic()
            while running.line.counts()[1] < 2 and time.monotonic() < began + 600:
                time.sleep(0.001)
            os.kill(before._workers._processes[k].pid, signal.SIGKILL)
            while running.run is before and time.monotonic() < began + 900:
                time.sleep(0.01)
            assert running.run is not before
            code, answer = asked.infer(client.request(client.numbers(k)[:8]))
            assert (code, client.outputs(answer)) == (200, client.expected(client.numbers(k)[:8]))
            assert asked.get("/v2/health/ready")[0] == 200
        for load in loads:
            load.stopping = True
        for load in loads:
            load.join()
            assert (set(load.codes), load.wrong, load.refused) == ({200}, [], 0)
        metrics = asked.metrics()
        assert metrics["moirai_groups_total"] == 3 and metrics["moirai_repeated_requests_total"] > 0
        assert client.total(loads, 200) == running.line.n_accepted


def test_a_rank_that_dies_is_told(small, cpu_cluster):
    """Ranks that are the caller's are not started again."""
    with mt.Workers(cpu_cluster) as mine, mt.serve(small, spread(small, cpu_cluster), workers=mine, port=0) as running:
        asked = Client(running.port)
        assert asked.infer(client.request(client.numbers(1)))[0] == 200
        os.kill(running.run._workers._processes[1].pid, signal.SIGKILL)
        code, words = asked.infer(client.request(client.numbers(1)))
        assert code == 503 and "SIGKILL" in words
        assert asked.get("/v2/health/ready")[0] == 503 and asked.get("/v2/health/live")[0] == 200
        assert asked.metrics()['moirai_device_up{device="A"}'] == 0


def test_a_name_that_addresses_have_in_escapes(serving):
    with mt.serve(serving.run, port=0, name="my m\u00f6del/1") as running:
        path = running.url.partition(str(running.port))[2]
        assert path == "/v2/models/my%20m%C3%B6del%2F1"
        asked = Client(running.port)
        for other in ("", "/ready", "/versions/1", "?x=1"):
            assert asked.get(path + other)[0] == 200
        assert json.loads(asked.get(path)[1])["name"] == "my m\u00f6del/1"
        assert asked.get(path + "/infer", "POST", json.dumps(client.request(client.numbers(1))))[0] == 200
        assert asked.get("/v2/models/my+m%C3%B6del%2F1")[0] == 404
        code, _, headers = asked.get(path + "/%69nfer")
        assert (code, headers["Allow"]) == (405, "POST")


def test_what_can_not_be_served(small, cpu_workers, cpu_cluster, serving):
    plan = spread(small, cpu_cluster)
    with pytest.raises(moirai.UsageError, match=f"can't listen on 127.0.0.1 port {serving.port}"):
        mt.serve(small, plan, workers=cpu_workers, port=serving.port)
    with pytest.raises(moirai.UsageError, match="was not captured"):
        mt.serve(torch.nn.Linear(1, 1), plan, workers=cpu_workers, port=0)
    with pytest.raises(moirai.UsageError, match="distributed already"):
        mt.serve(serving.run, plan, port=0)
    with pytest.raises(moirai.UsageError, match="connections 1 or more"):
        mt.serve(serving.run, port=0, connections=0)


def test_sigterm_ends_it_in_order():
    """Of a process of its own, which plans for itself."""
    text = """
import torch, moirai.torch as mt
if __name__ == "__main__":
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()).eval()
    mt.capture(module, (torch.zeros(2, 4),), name="two")
    cluster = {"name": "c", "devices": [{"name": "A", "type": "cpu", "memory": "1GB", "gflops": 1, "memory_bandwidth": "1GB/s"}], "links": []}
    server = mt.serve(module, cluster=cluster, port=0)
    server.wait(ready=lambda: print(server.port, flush=True))
    print("ended", flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True)
    port = int(process.stdout.readline())
    asked = Client(port)
    about = asked.get("/v2/models/two")[1]
    assert b'"output"' in about and b'"shape": [2, 4]' in about
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=60)[0] == "ended\n" and process.returncode == 0


class Kinds(torch.nn.Module):
    def forward(self, b, u, h, d):
        return ~b, (u + 1, h * 2), d / 0


def test_types(small):
    given = (torch.tensor([True, False]), torch.tensor([1, 255], dtype=torch.uint8), torch.ones(2).half(), torch.ones(1).double())
    model = Model(mt.capture(Kinds().eval(), given, name="kinds"), "kinds")
    assert [(t.name, t.datatype) for t in model.outputs] == [
        ("output_0", "BOOL"), ("output_1_0", "UINT8"), ("output_1_1", "FP16"), ("output_2", "FP64")]  # fmt: skip
    about = [{"name": t.name, "datatype": t.datatype, "shape": list(t.meta.shape)} for t in model.inputs]
    about[0]["data"], about[1]["data"], about[3]["data"] = [1, False], [0, 255], [1]
    about[2]["parameters"] = {"binary_data_size": 4}

    def read(outputs, **change):
        items = [{**x, **change.get(x["name"], {})} for x in about]
        text = json.dumps({"inputs": items, "outputs": [{"name": n} for n in outputs]}).encode()
        return model.read(bytearray(text + b"\x00\x3c\x00\x40"), len(text))

    wanted, args, _ = read(["output_2"])
    assert args[0].tolist() == [True, False] and args[1].tolist() == [0, 255] and args[2].tolist() == [1, 2]
    assert b'"data": [null]' in model.write(wanted, Kinds()(*args))[0]
    with pytest.raises(moirai.InputError, match="FP16 goes as binary data only"):
        read(["output_1_1"])
    for name, data in (("u", [256, 0]), ("u", [-1, 0]), ("u", [True, 0]), ("b", [2, 0]), ("d", [10**400])):
        with pytest.raises(moirai.InputError, match="element 0 is"):
            read(["output_2"], **{name: {"data": data}})


class Deep(torch.nn.Module):
    def forward(self, x):
        return x + 1


def test_data_is_flat_or_nested_as_its_shape():
    model = Model(mt.capture(Deep().eval(), (torch.zeros(2, 3, 1, dtype=torch.uint8),), name="deep"), "deep")
    name = model.inputs[0].name

    def read(data):
        item = {"name": name, "datatype": "UINT8", "shape": [2, 3, 1], "data": data}
        return model.read(bytearray(json.dumps({"inputs": [item]}).encode()), None)[1][0]

    for data in ([1, 2, 3, 4, 5, 6], [[[1], [2], [3]], [[4], [5], [6]]]):
        assert read(data).tolist() == [[[1], [2], [3]], [[4], [5], [6]]]
    for data, words in (
        ([[1, 2, 3], [4, 5, 6]], r"nested as \[2,3\], its shape is \[2,3,1\]: flat, or nested as that"),
        ([[[1], [2]], [[3], [4]], [[5], [6]]], r"nested as \[3,2,1\], its shape is \[2,3,1\]"),
        ([[[1], [2], [3]], [[4], [5]]], r"ragged, its shape is \[2,3,1\]: before element 3 there is no array of 3"),
        ([[[1], [2], [3]], [[4], [5, 6], []]], "ragged, .* before element 4 there is no array of 1"),
        ([[[1], [2], [3]], [[4], 5, [6]]], "ragged"),
        ([[[1], [2], [3]], [[4], [5], [[6]]]], "element 5 is an array, which is no UINT8"),
        ([1, 2, 3, [4, 5, 6]], "element 3 is an array, which is no UINT8"),
        ([1.0, 2, 3, 4, 5, 6], r"element 0 is 1\.0, which is no UINT8"),
        ([[], []], r"nested as \[2,0\], its shape is \[2,3,1\]"),
    ):  # fmt: skip
        with pytest.raises(moirai.InputError, match=words):
            read(data)


def test_tritonclient(serving):
    np = need("numpy")
    http = need("tritonclient") and importlib.import_module("tritonclient.http")
    from tritonclient.utils import InferenceServerException

    def inputs(x, i, binary=True):
        a, b = http.InferInput("x", [64], "FP32"), http.InferInput("i", [4], "INT64")
        a.set_data_from_numpy(x, binary_data=binary)
        b.set_data_from_numpy(i, binary_data=binary)
        return [a, b]

    rng = np.random.default_rng(1)
    with http.InferenceServerClient(f"127.0.0.1:{serving.port}", concurrency=8) as c:
        assert c.is_server_live() and c.is_server_ready() and c.is_model_ready("small") and not c.is_model_ready("other")
        assert [t["name"] for t in c.get_model_metadata("small")["outputs"]] == ["y", "g", "s"]
        for binary_in, binary_out in ((True, True), (True, False), (False, True), (False, False)):
            x, i = rng.standard_normal(64).astype(np.float32), np.array([63, 0, 7, 7])
            wanted = [http.InferRequestedOutput(n, binary_data=binary_out) for n in ("g", "y")]
            answer = c.infer("small", inputs(x, i, binary_in), outputs=wanted, request_id="nine")
            assert answer.get_response()["id"] == "nine"
            np.testing.assert_array_equal(answer.as_numpy("y"), x)
            np.testing.assert_array_equal(answer.as_numpy("g"), np.abs(x)[i])
        xs = [rng.standard_normal(64).astype(np.float32) for _ in range(50)]
        for x, answer in zip(xs, [c.async_infer("small", inputs(x, np.arange(4))) for x in xs]):
            np.testing.assert_array_equal(answer.get_result().as_numpy("y"), x)
        with pytest.raises(InferenceServerException, match="input 'i' is missing"):
            c.infer("small", inputs(x, i)[:1])
        with pytest.raises(InferenceServerException, match="no answer within"):
            c.infer("small", inputs(x, i), timeout=1)
    assert threading.active_count() < 60
