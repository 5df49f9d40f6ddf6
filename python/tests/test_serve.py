"""moirai serve, asked by the clients that Triton's users have: tritonclient over HTTP."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import need

np = need("numpy")
http = need("tritonclient") and importlib.import_module("tritonclient.http")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "serve"))


def command() -> str:
    """The command of the build that is tested: one that can serve."""
    build = os.environ.get("MOIRAI_BUILD")
    found = str(Path(build) / "src" / "moirai") if build else shutil.which("moirai")
    if not found:
        pytest.skip("there is no moirai command")
    said = json.loads(subprocess.run([found, "version", "--json"], check=True, capture_output=True).stdout)["features"]
    if not (said["serve"] and said["run"]):
        pytest.skip("this build of moirai can't serve")
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    import server as module

    with module.Server(command(), tmp_path_factory.mktemp("serve"), "--no-fallback") as running:
        yield running


@pytest.fixture
def client(server):
    with http.InferenceServerClient(f"127.0.0.1:{server.port}", concurrency=8) as c:
        yield c


def inputs(x, i, binary=True):
    a, b = http.InferInput("x", [64], "FP32"), http.InferInput("i", [4], "INT64")
    a.set_data_from_numpy(x, binary_data=binary)
    b.set_data_from_numpy(i, binary_data=binary)
    return [a, b]


def test_health_and_metadata(client):
    assert client.is_server_live() and client.is_server_ready()
    assert client.is_model_ready("small") and client.is_model_ready("small", "1")
    assert not client.is_model_ready("other")
    assert client.get_server_metadata()["extensions"] == ["binary_tensor_data"]
    model = client.get_model_metadata("small")
    assert [t["name"] for t in model["inputs"] + model["outputs"]] == ["x", "i", "y", "g", "s"]


@pytest.mark.parametrize("binary_in", [True, False])
@pytest.mark.parametrize("binary_out", [True, False, None])
def test_answers_are_numpys(client, binary_in, binary_out):
    x, i = np.linspace(-3, 3, 64, dtype=np.float32), np.array([63, 0, 7, 7])
    wanted = None if binary_out is None else [http.InferRequestedOutput(n, binary_data=binary_out) for n in ("g", "y")]
    answer = client.infer("small", inputs(x, i, binary_in), outputs=wanted, request_id="nine")
    assert answer.get_response()["id"] == "nine"
    np.testing.assert_array_equal(answer.as_numpy("y"), x)
    np.testing.assert_array_equal(answer.as_numpy("g"), np.abs(x)[i])


def test_many_at_once(client):
    rng = np.random.default_rng(1)
    xs = [rng.standard_normal(64).astype(np.float32) for _ in range(100)]
    i = np.arange(4)
    under_way = [client.async_infer("small", inputs(x, i)) for x in xs[:50]]
    under_way += [client.async_infer("small", inputs(x, i)) for x in xs[50:]]
    for x, answer in zip(xs, under_way):
        np.testing.assert_array_equal(answer.get_result().as_numpy("y"), x)


def test_errors_have_words(client):
    from tritonclient.utils import InferenceServerException

    x, i = np.zeros(64, np.float32), np.arange(4)
    with pytest.raises(InferenceServerException, match="no such model"):
        client.infer("other", inputs(x, i))
    with pytest.raises(InferenceServerException, match="input 'i' is missing"):
        client.infer("small", inputs(x, i)[:1])
    with pytest.raises(InferenceServerException, match="out of data bounds"):
        client.infer("small", inputs(x, i + 100))
    with pytest.raises(InferenceServerException, match="no answer within"):
        client.infer("small", inputs(x, i), timeout=1)
    assert client.infer("small", inputs(x, i)).as_numpy("y").shape == (64,)
