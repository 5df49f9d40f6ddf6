"""Builds libmoirai and the command by CMake, and the cffi declarations from the public headers; pyproject.toml has the rest.

The declarations are not written twice: the C preprocessor reads include/moirai/moirai.h, and what comes from our own
headers, less the inline functions, is what cffi is told. The binding is cffi's ABI mode: one wheel serves every
CPython.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70
    from wheel.bdist_wheel import bdist_wheel

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
HEADERS = ROOT / "include"
RANKS = ("moirai-rank", "moirai-rank-openmpi", "moirai-rank-mpich")  # linked with the machine's MPI, or with any


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


def version():
    """The project's, which stands in CMakeLists.txt alone."""
    return re.search(r"^project\(moirai VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M).group(1)


def build_programs(folder):
    folder.mkdir(parents=True, exist_ok=True)
    options = ["-DCMAKE_BUILD_TYPE=Release"]
    if shutil.which("ninja"):
        options.append("-GNinja")
    if shutil.which("ccache"):
        options += ["-DCMAKE_C_COMPILER_LAUNCHER=ccache", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"]
    options += shlex.split(os.environ.get("MOIRAI_CMAKE_ARGS", ""))
    subprocess.run(["cmake", "-S", str(ROOT), "-B", str(folder), *options], check=True, stdout=sys.stderr)
    jobs = str(os.cpu_count() or 1)
    targets = ["moirai_shared", "moirai"]  # the command builds moirai-rank and libmoirai-learn, where they can be
    subprocess.run(["cmake", "--build", str(folder), "--target", *targets, "-j", jobs], check=True, stdout=sys.stderr)


def take_programs(folder, where):
    """The library and the command, side by side, with what they look for beside themselves where it was built."""
    for name in ("libmoirai.so", "moirai"):
        shutil.copy2(folder / "src" / name, where / name)
    for name in ("libmoirai-learn.so", *RANKS):
        if (folder / "src" / name).exists():
            shutil.copy2(folder / "src" / name, where / name)


def asked_for(file):
    """Names of the libraries that an ELF file itself asks for; it may be one for another kind of machine."""
    return subprocess.run(["patchelf", "--print-needed", str(file)], check=True, capture_output=True, text=True).stdout.split()


def found_at(file):
    """Where the loader of this machine finds libraries for it, by name."""
    text = subprocess.run(["ldd", str(file)], check=True, capture_output=True, text=True).stdout
    return dict(re.findall(r"^\s*(\S+) => (/\S+)", text, re.M))


def take_dependencies(where):
    """Copies of the libraries that others may bring, too (highspy has a libhighs.so.1 of its own version), under names
    that nobody else has: the loader takes two files of one name for the same. What scripts/wheel builds asks for none."""
    ours = [f for f in where.iterdir() if f.name in ("libmoirai.so", "libmoirai-learn.so", "moirai", *RANKS)]
    for file in ours:
        names = [n for n in asked_for(file) if re.match(r"lib(highs|yyjson|protobuf-c)\.so", n)]
        paths = found_at(file) if names else {}
        for name in names:
            copy = where / ("libmoirai-" + name[3:])
            if not copy.exists():
                shutil.copyfile(paths[name], copy)
                subprocess.run(["patchelf", "--set-soname", copy.name, str(copy)], check=True)
            change = ["--replace-needed", name, copy.name, "--set-rpath", "$ORIGIN:$ORIGIN/../../.."]
            subprocess.run(["patchelf", *change, str(file)], check=True)


def take_licences(where):
    """Our own, and those of what scripts/wheel links in."""
    where.mkdir(exist_ok=True)
    shutil.copyfile(ROOT / "LICENSE", where / "moirai")
    for file in sorted(Path(os.environ["MOIRAI_LICENSES"]).iterdir()) if "MOIRAI_LICENSES" in os.environ else []:
        shutil.copyfile(file, where / file.name)


class Build(build_py):
    def run(self):
        super().run()
        where = Path(self.build_lib) / "moirai"
        where.mkdir(parents=True, exist_ok=True)
        write_ffi(where / "_ffi.py")
        (where / "_version.py").write_text(f'version = "{version()}"\n')
        folder = os.environ.get("MOIRAI_BUILD")  # a build folder of CMake in which all is built already
        if not folder:
            folder = Path(self.build_lib).resolve().parent / "cmake"
            build_programs(folder)
        take_programs(Path(folder), where)
        take_dependencies(where)
        take_licences(where / "licenses")


class Wheel(bdist_wheel):
    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return ("py3", "none", os.environ.get("MOIRAI_PLATFORM") or super().get_tag()[2])  # scripts/wheel knows better


class Programs(Distribution):
    def has_ext_modules(self):
        return True  # belongs among what is for one platform


setup(distclass=Programs, version=version(), cmdclass={"build_py": Build, "bdist_wheel": Wheel})
