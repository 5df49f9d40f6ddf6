"""Moirai beside other packages, in either order of import: neither may disturb the other's libraries."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import need

import moirai

# A search that uses the LP solver, and something that each package computes with its own libraries.
OURS = """
import moirai
plan = moirai.plan("gpt3-tiny", "inter-server", time_limit=1)
assert plan.gap < 1
"""
THEIRS = {
    "torch": "import torch; assert float((torch.ones(64, 64) @ torch.ones(64, 64)).sum()) == 64**3",
    "numpy": "import numpy; assert (numpy.ones((64, 64)) @ numpy.ones((64, 64))).sum() == 64**3\n"
    "numpy.linalg.inv(numpy.eye(8))",
    "onnxruntime": "import onnxruntime; assert 'CPUExecutionProvider' in onnxruntime.get_available_providers()",
    "highspy": "import highspy; h = highspy.Highs(); h.silent(); x = h.addVariable(lb=1); h.minimize(x)\n"
    "assert h.getObjectiveValue() == 1",
}


def python(code, **env):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **env})


def need_apart(package):
    """As `need`, but the package is not imported here: this process has moirai already."""
    if not importlib.util.find_spec(package):
        need(package)


@pytest.mark.parametrize("order", ["first", "last"])
@pytest.mark.parametrize("package", THEIRS)
def test_moirai_and_others_in_one_process(package, order):
    need_apart(package)
    parts = [OURS, THEIRS[package], OURS] if order == "first" else [THEIRS[package], OURS, THEIRS[package]]
    done = python("\n".join(parts))
    assert done.returncode == 0, done.stderr


def test_all_of_them_in_one_process():
    for package in THEIRS:
        need_apart(package)
    done = python("\n".join([OURS, *THEIRS.values(), OURS]))
    assert done.returncode == 0, done.stderr


def test_the_package_s_library_shows_its_own_functions_alone():
    library = Path(moirai.__file__).with_name("libmoirai.so")
    if not shutil.which("nm"):
        pytest.skip("nm is not here (binutils)")
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    shown = [line.split()[2].split("@")[0] for line in lines.splitlines() if line.split()[1] != "A"]
    assert len(shown) > 100 and not [name for name in shown if not name.startswith("moirai_")]


def test_the_package_s_library_brings_no_blas():
    done = python("import moirai, sys; sys.stdout.write(open('/proc/self/maps').read())")
    assert "libmoirai" in done.stdout and not re.search("blas|lapack|gfortran", done.stdout)


def test_why_pytorch_can_t_be_imported_is_said(tmp_path):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text(
        "raise ImportError('libtorch_cpu.so: undefined\\nsymbol: sbgemm_')"
    )
    done = python("import moirai.torch", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("can't be imported: libtorch_cpu.so: undefined symbol: sbgemm_")


def test_where_pytorch_is_missing_the_package_to_install_is_named():
    done = python("import sys; sys.modules['torch'] = None; import moirai.torch")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("needs PyTorch 2.6 or later: pip install torch")


def test_the_command_comes_with_the_package():
    command = Path(sys.executable).with_name("moirai")
    if not command.exists():
        pytest.skip("the package was not installed by pip")
    done = subprocess.run([command, "version", "--json"], capture_output=True, text=True)
    assert done.returncode == 0 and json.loads(done.stdout)["version"] == moirai.__version__


def test_the_command_needs_no_other_package():
    """On a machine without network: pip install --no-deps."""
    done = python("import sys; sys.modules['_cffi_backend'] = None; sys.argv = ['moirai', 'version', '--json']; import moirai_command; moirai_command.main()")
    if "No module named 'moirai_command'" in done.stderr:
        pytest.skip("the package was not installed by pip")
    assert done.returncode == 0 and json.loads(done.stdout)["version"] == moirai.__version__
