"""bench/paper_measured.py and its networks, small, on processors."""

from __future__ import annotations

import json
import sys
import time

import pytest
from conftest import need

torch = need("torch")
import networks_paper  # noqa: E402
import paper_measured  # noqa: E402

import moirai.torch as mt  # noqa: E402

NAMES = list(networks_paper.SIZES)


@pytest.mark.parametrize("name", NAMES)
def test_styles_compute_the_same(name):
    results = []
    for style in networks_paper.STYLES:
        module, args = networks_paper.make(name, style, small=True)
        with torch.no_grad():
            results.append(module(*args))
    for other in results[1:]:
        assert float((other - results[0]).norm() / results[0].norm()) < 1e-5


@pytest.mark.parametrize("name", ["gpt3-330M", "alphafold2-87M"])
def test_a_kept_export_is_what_capture_makes(name, tmp_path):
    """Operators apart are as many as the paper counts; results are the module's."""
    path = tmp_path / "export"
    paper_measured.export(name, "apart", True, path)
    captured, args = paper_measured.captured_of(name, "original", True, path)
    assert len(captured.graph) == networks_paper.sizes_of(name, small=True).operators
    module, _ = networks_paper.make(name, "apart", small=True)
    direct = mt.capture(module, args)
    assert [op.type for op in direct.graph.ops] == [op.type for op in captured.graph.ops]
    assert [op.weight_bytes for op in direct.graph.ops] == [op.weight_bytes for op in captured.graph.ops]


def test_the_paper_counts():
    counts = {name: networks_paper.sizes_of(name).operators for name in NAMES}
    assert counts == {"gpt3-330M": 4872, "alphafold2-87M": 5136, "swin-1.8B": 6496}
    assert networks_paper.sizes_of("swin-1.8B:4").depths == (2, 2, 4, 2)
    with pytest.raises(ValueError, match="no network 'gpt4'"):
        networks_paper.sizes_of("gpt4")


def test_the_journal_goes_on_after_a_crash(tmp_path):
    path = tmp_path / "measured.jsonl"
    paper_measured.Journal(path).add("link", testbed="t", link="ipc", gb_s=1.0)
    with path.open("a") as file:
        file.write('{"what": "plan", "netw')
    journal = paper_measured.Journal(path)
    assert journal.find("link", testbed="t", link="ipc")["gb_s"] == 1.0
    journal.add("baseline", network="n", how="plain", ms=2.0)
    assert paper_measured.Journal(path).find("baseline", network="n", how="plain")["ms"] == 2.0


def test_a_run_on_processors(tmp_path, monkeypatch):
    """Predicted and measured of each placer on both graphs, beside the module; a second call measures nothing."""
    words = ["paper_measured", "--small", "--out", str(tmp_path), "--networks", "gpt3-330M", "--runs", "2",
             "--testbeds", "intra-server", "--links", "ipc", "--placers", "moirai,single,heft", "--time-limit", "0.5",
             "--threads", "1", "--seconds", "600", "--pieces", "--baselines", "graph"]  # fmt: skip
    (tmp_path / "exports").mkdir()  # the other is exported by a process of its own, as users have it
    paper_measured.export("gpt3-330M", "fused", True, tmp_path / "exports" / "gpt3-330M-fused-small.pickle")
    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.setattr(paper_measured, "began", time.monotonic())
    assert paper_measured.main() == 0
    lines = [json.loads(x) for x in (tmp_path / "measured.jsonl").read_text().splitlines()]
    plans = {(x["graph"], x["placer"], x["round"]): x for x in lines if x["what"] == "plan"}
    first = {(g, p, 0) for g in ("original", "coarsened") for p in ("moirai", "single", "heft")}
    assert set(plans) == first | {(g, "moirai", 1) for g in ("original", "coarsened")} | {("pieces", "moirai", 0)}
    assert all(x["predicted_ms"] > 0 and x["measured_ms"] > 0 for x in plans.values())
    assert plans["original", "single", 0]["operators"] == 118
    assert {x["how"] for x in lines if x["what"] == "baseline"} >= {"plain", "graph"}
    assert paper_measured.main() == 0
    assert len((tmp_path / "measured.jsonl").read_text().splitlines()) == len(lines)
