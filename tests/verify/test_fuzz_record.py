#!/usr/bin/env python3
"""fuzz/record and fuzz/run_long: what was fuzzed for how long is told per target, runs of several machines add up, none twice."""
import os
import shutil
import stat
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

# Stands for two targets: one that works, one with a finding.
TARGETS = {
    "fuzz_calm": "echo 'stat::number_of_executed_units: 40' >&2; echo 'stat::new_units_added: 3' >&2; sleep 0.1",
    "fuzz_wild": 'for a; do case $a in -artifact_prefix=*) echo x > "${a#*=}crash-1";; esac; done; echo "SUMMARY: crash" >&2; sleep 0.1; exit 77',
}


def record(*arguments):
    done = subprocess.run([os.path.join(ROOT, "fuzz", "record"), *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def rows(path):
    with open(path, encoding="utf-8") as file:
        return [line.rstrip("\n").split("\t") for line in file][1:]


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def expect(what, is_right, found):
    if not is_right:
        sys.exit(f"FAILED: {what}: {found}")


def adds_up(folder):
    runs, here, there = (os.path.join(folder, name) for name in ("runs.tsv", "here.tsv", "there.tsv"))
    write(runs, "fuzz_a\t1800\t7\t0\t2\nfuzz_b\t60\t5\t1\t0\nfuzz_a\t1800\t3\t0\t1\n")
    found = record("--runs", runs, "--fuzzed-then", "0+x", "--begun", "T1", "--to", here)
    expect("a row per target", [row[1:3] + row[4:] for row in rows(here)] == [["a", "0+x", "3600", "10", "3", "0"], ["b", "0+x", "60", "5", "0", "1"]], rows(here))
    expect("the sum", found == (0, "recorded in all: 1.0 processor hours, 15 runs, 3 new inputs, 1 findings\n"), found)
    record("--runs", runs, "--fuzzed-then", "0+x", "--begun", "T2", "--to", there)
    for _ in range(2):  # the second time there is nothing new
        found = record("--add", there, "--to", here)
        expect("two machines", found[0] == 0 and "2.0 processor hours, 30 runs, 6 new inputs, 2 findings" in found[1] and len(rows(here)) == 4, found)
    before = rows(here)
    for wrong in ("", "begun\ttarget\n", open(there, encoding="utf-8").read().replace("3600", "-3600")):
        write(there, wrong)
        found = record("--add", there, "--to", here)
        expect("no record", found[0] == 1 and len(found[1].splitlines()) == 1 and there in found[1] and rows(here) == before, (wrong, found))


def is_run(folder):
    """A copy of fuzz/ with targets that only say something."""
    shutil.copytree(os.path.join(ROOT, "fuzz"), os.path.join(folder, "fuzz"), ignore=shutil.ignore_patterns("corpus"))
    shutil.copy(os.path.join(ROOT, "CMakeLists.txt"), folder)
    targets = os.path.join(folder, "build", "fuzz", "fuzz")
    os.makedirs(targets)
    for name, does in TARGETS.items():
        write(os.path.join(targets, name), f"#!/bin/sh\n{does}\n")
        os.chmod(os.path.join(targets, name), stat.S_IRWXU)
    hours = os.path.join(folder, "hours.tsv")
    done = subprocess.run([os.path.join(folder, "fuzz", "run_long"), "--hours", "0.0003", "--jobs", "2", "--record-to", hours], capture_output=True, text=True, check=False)
    told = {row[1]: row for row in rows(hours)}
    expect("both targets", sorted(told) == ["calm", "wild"] and done.returncode == 1, (told, done))
    runs, new, findings = (int(told["calm"][x]) for x in (5, 6, 7))
    expect("counts", runs > 0 and runs * 3 == new * 40 and findings == 0 and int(told["wild"][7]) > 0, told)
    expect("what was fuzzed", told["calm"][2] == subprocess.run([os.path.join(folder, "fuzz", "record"), "--fuzzed"], capture_output=True, text=True, check=True).stdout.strip(), told)


with tempfile.TemporaryDirectory() as scratch:
    adds_up(scratch)
    is_run(scratch)
print("ok: hours of fuzzing add up")
