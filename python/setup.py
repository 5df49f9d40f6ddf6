"""Builds libmoirai by CMake and the cffi declarations from the public headers; pyproject.toml has the rest.

The declarations are not written twice: the C preprocessor reads include/moirai/moirai.h, and what comes from our own
headers, less the inline functions, is what cffi is told. The binding is cffi's ABI mode: one wheel serves every
CPython.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70
    from wheel.bdist_wheel import bdist_wheel

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
HEADERS = ROOT / "include"


def own_text(preprocessed):
    """What the headers of include/moirai themselves say, by the preprocessor's line markers."""
    ours, lines = False, []
    for line in preprocessed.splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            ours = Path(marker.group(1)).parent == HEADERS / "moirai"
        elif ours and line.strip():
            lines.append(line)
    return "\n".join(lines)


def without_inline(text):
    """Inline functions have bodies, which cffi does not read."""
    out, at = [], 0
    for found in re.finditer(r"static inline[^{;]*\{", text):
        if found.start() < at:
            continue
        out.append(text[at : found.start()])
        depth, at = 1, found.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
    return "".join(out) + text[at:]


def constants():
    """#define NAME (-1): numbers that the preprocessor has eaten."""
    found = {}
    for header in sorted((HEADERS / "moirai").glob("*.h")):
        for name, value in re.findall(r"^#define (MOIRAI_[A-Z_]+) \(?(-?\d+)\)?(?:\s|$)", header.read_text(), re.M):
            found[name] = value
    return "".join(f"#define {name} {value}\n" for name, value in sorted(found.items()))


def declarations():
    compiler = os.environ.get("CC", "cc")
    command = [compiler, "-E", f"-I{HEADERS}", "-D__attribute__(x)=", str(HEADERS / "moirai" / "moirai.h")]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return (
        constants() + without_inline(own_text(text)) + "\nvoid free(void *memory);\n"
    )  # of texts that are handed over


def write_ffi(path):
    import cffi

    ffi = cffi.FFI()
    ffi.cdef(declarations())
    ffi.set_source("moirai._ffi", None)
    ffi.emit_python_code(str(path))


def build_library(folder, where):
    folder.mkdir(parents=True, exist_ok=True)
    options = ["-DMOIRAI_TESTS=OFF", "-DMOIRAI_BENCH=OFF", "-DMOIRAI_WERROR=OFF", "-DCMAKE_BUILD_TYPE=Release"]
    if shutil.which("ninja"):
        options.append("-GNinja")
    if shutil.which("ccache"):
        options += ["-DCMAKE_C_COMPILER_LAUNCHER=ccache", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"]
    options += os.environ.get("MOIRAI_CMAKE_ARGS", "").split()
    subprocess.run(["cmake", "-S", str(ROOT), "-B", str(folder), *options], check=True, stdout=sys.stderr)
    jobs = str(os.cpu_count() or 1)
    subprocess.run(
        ["cmake", "--build", str(folder), "--target", "moirai_shared", "-j", jobs], check=True, stdout=sys.stderr
    )
    shutil.copyfile(next((folder / "src").glob("libmoirai.so")), where / "libmoirai.so")


class Build(build_py):
    def run(self):
        super().run()
        where = Path(self.build_lib) / "moirai"
        where.mkdir(parents=True, exist_ok=True)
        write_ffi(where / "_ffi.py")
        given = os.environ.get("MOIRAI_LIBRARY")  # a libmoirai.so that is built already
        if given:
            shutil.copyfile(given, where / "libmoirai.so")
        else:
            build_library(Path(self.build_lib).resolve().parent / "cmake", where)


class Wheel(bdist_wheel):
    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


setup(cmdclass={"build_py": Build, "bdist_wheel": Wheel})
