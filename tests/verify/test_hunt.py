#!/usr/bin/env python3
"""scripts/hunt sees what it is there for: verifiers that disagree, a bound that is false, a hunter that dies."""
import os
import stat
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PROBLEM = os.path.join(ROOT, "tests", "data", "two-branches.problem.json")

# Stands for bench_no_false_bound: a dossier with one certificate that no verifier takes.
BENCH = """#!/bin/sh
{{ printf 'P\\t'; tr '\\n' ' ' < '{problem}'; echo; printf 'C {verdict}\\t{{}}\\n'; }} >> "$MOIRAI_DOSSIER"
{more}
echo '24 problems (0 more had no device for some operator), 20 with known optimum'
exit {code}
"""


def hunt(verdict, code=0, more=":", times=1):
    """Exit code, text, what is kept, and the record, of the last of so many hunts."""
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "bench"))
        bench = os.path.join(folder, "bench", "bench_no_false_bound")
        with open(bench, "w", encoding="utf-8") as file:
            file.write(BENCH.format(problem=PROBLEM, verdict=verdict, code=code, more=more))
        os.chmod(bench, stat.S_IRWXU)
        keep = os.path.join(folder, "keep")
        record = os.path.join(folder, "hunts.tsv")
        for seed in range(times):
            done = subprocess.run([sys.executable, os.path.join(ROOT, "scripts", "hunt"), "--minutes", "0.0001", "--jobs", "1", "--build", folder,
                                   "--keep", keep, "--record", record, "--seed", str(1000 + seed)], capture_output=True, text=True, check=False)
        with open(record, encoding="utf-8") as file:
            return done.returncode, done.stdout + done.stderr, os.listdir(keep), [line.split() for line in file]


def expect(what, found, code, says, kept):
    if found[0] != code or says not in found[1] or bool(found[2]) != kept:
        sys.exit(f"FAILED: {what}: {found}")


expect("both reject", hunt("rejected"), 0, "24 problems, 20 with known optimum; 0 honest certificates and 1 changed", False)
expect("one accepts", hunt("accepted 5"), 1, "the C verifier says 'accepted 5'", True)
expect("a false bound", hunt("rejected", 1, "echo 'seed 7: bound 9, optimum 8'"), 1, "seed 7: bound 9, optimum 8", True)
expect("a crash", hunt("rejected", 139), 1, "ended with 139", True)
expect("nothing written", hunt("rejected", 0, 'rm "$MOIRAI_DOSSIER"'), 1, "the verifier in Python ended with", False)

_, text, _, lines = hunt("rejected", times=2)
if "recorded in all: 0 honest and 2 changed, 0 disagreements, 0 findings" not in text or [line[1] for line in lines] != ["first_seed", "1000", "1001"]:
    sys.exit(f"FAILED: hunts do not add up: {text} {lines}")
_, text, _, lines = hunt("accepted 5", times=2)
if "0 honest and 2 changed, 2 disagreements, 2 findings" not in text or dict(zip(lines[0], lines[2]))["disagreements"] != "1":
    sys.exit(f"FAILED: what was found is not in the record: {text} {lines}")
print("ok: the hunt tells what it finds")
