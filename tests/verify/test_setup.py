#!/usr/bin/env python3
"""scripts/setup asks apt for what is missing, and on Debian 12 breaks no python3-onnx. apt and dpkg are stand-ins here that
write down what they are asked for; nothing is installed."""
import os
import subprocess
import tempfile

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "setup")
PACKAGES = subprocess.run(["bash", "-c", f"eval \"$(sed -n '/^packages=(/,/^newer=/p' '{SCRIPT}')\"; echo ${{packages[@]}}"], capture_output=True, text=True).stdout.split()
NEWER = ["libyyjson-dev", "libhighs-dev", "libonnxruntime-dev"]
SOURCES = "Types: deb\nURIs: http://mirror/debian\nSuites: {0} {0}-updates\nComponents: main\n"

# Of the packages that are asked for, those that stand in the file are installed.
DPKG = """#!/bin/sh
for word; do grep -qx -- "$word" "$FAKE/installed" && echo "ii $word"; done; exit 0
"""
APT = """#!/bin/sh
echo "$*" >>"$FAKE/asked"
"""
SUDO = """#!/bin/sh
exec "$@"
"""


def setup(suite, installed):
    """What setup says, what apt was asked to install (with -t SUITE in front), and what apt was told to prefer."""
    with tempfile.TemporaryDirectory() as folder:
        etc = os.path.join(folder, "apt")
        for name in ("sources.list.d", "preferences.d"):
            os.makedirs(os.path.join(etc, name))
        open(os.path.join(etc, "sources.list.d", "debian.sources"), "w").write(SOURCES.format(suite))
        open(os.path.join(folder, "installed"), "w").write("".join(p + "\n" for p in installed))
        for name, text in (("dpkg-query", DPKG), ("apt-get", APT), ("sudo", SUDO)):
            path = os.path.join(folder, name)
            open(path, "w").write(text)
            os.chmod(path, 0o755)
        env = {**os.environ, "PATH": folder + ":" + os.environ["PATH"], "FAKE": folder, "MOIRAI_APT_ETC": etc}
        done = subprocess.run(["bash", SCRIPT], env=env, capture_output=True, text=True)
        asked, wanted = os.path.join(folder, "asked"), []
        for line in open(asked).read().splitlines() if os.path.exists(asked) else []:
            words = line.split()
            if "install" in words:
                words = [w for w in words[words.index("install") + 1:] if w != "--no-install-recommends"]
                wanted.append(words)
        read = lambda *path: open(os.path.join(etc, *path)).read() if os.path.exists(os.path.join(etc, *path)) else ""  # noqa: E731
        return done, wanted, read("preferences.d", "moirai-next"), read("sources.list.d", "moirai-next-debian.sources")


def test_nothing_is_asked_for_where_all_is_there():
    done, wanted, _, _ = setup("trixie", PACKAGES + NEWER)
    assert done.returncode == 0 and not wanted and "everything is there" in done.stderr, done.stderr


def test_debian_13_has_every_package():
    done, wanted, pins, sources = setup("trixie", PACKAGES[1:])
    assert done.returncode == 0 and wanted == [PACKAGES[:1], sorted(NEWER)] and not pins and not sources, (done.stderr, wanted)


def test_debian_12_takes_three_from_the_next_release_and_nothing_else():
    done, wanted, pins, sources = setup("bookworm", PACKAGES)
    assert done.returncode == 0 and wanted == [["-t", "trixie", *sorted(NEWER)]], (done.stderr, wanted)
    assert "Suites: trixie trixie-updates" in sources
    assert "Package: *\nPin: release n=trixie*\nPin-Priority: 100\n" in pins
    assert "Package: python3-onnx\nPin: version *\nPin-Priority: -1\n" in pins  # it would not work


def test_debian_12_s_python3_onnx_is_not_broken():
    done, wanted, pins, _ = setup("bookworm", [*PACKAGES, "python3-onnx"])
    assert done.returncode == 0 and wanted == [["-t", "trixie", "libhighs-dev", "libyyjson-dev"]], (done.stderr, wanted)
    assert "would break Debian 12's python3-onnx" in done.stderr and "'moirai run' is not built" in done.stderr
    assert "python3-onnx" not in pins
    done, wanted, _, _ = setup("bookworm", [*PACKAGES, "python3-onnx", "libhighs-dev", "libyyjson-dev"])
    assert done.returncode == 0 and not wanted and "everything else is there" in done.stderr, done.stderr


def test_debian_13_s_python3_onnx_goes_with_onnx_runtime():
    done, wanted, _, _ = setup("trixie", [*PACKAGES, "python3-onnx"])
    assert done.returncode == 0 and wanted == [sorted(NEWER)] and "warning" not in done.stderr, (done.stderr, wanted)


for name, test in list(globals().items()):
    if name.startswith("test_"):
        test()
        print("ok:", name)
