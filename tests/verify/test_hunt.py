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


def hunt(verdict, code=0, more=":"):
    """Exit code, text, and what is kept."""
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "bench"))
        bench = os.path.join(folder, "bench", "bench_no_false_bound")
        with open(bench, "w", encoding="utf-8") as file:
            file.write(BENCH.format(problem=PROBLEM, verdict=verdict, code=code, more=more))
        os.chmod(bench, stat.S_IRWXU)
        keep = os.path.join(folder, "keep")
        done = subprocess.run([sys.executable, os.path.join(ROOT, "scripts", "hunt"), "--minutes", "0.0001", "--jobs", "1", "--build", folder,
                               "--keep", keep], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr, os.listdir(keep)


def expect(what, found, code, says, kept):
    if found[0] != code or says not in found[1] or bool(found[2]) != kept:
        sys.exit(f"FAILED: {what}: {found}")


expect("both reject", hunt("rejected"), 0, "24 problems, 20 with known optimum; 0 honest certificates and 1 changed", False)
expect("one accepts", hunt("accepted 5"), 1, "the C verifier says 'accepted 5'", True)
expect("a false bound", hunt("rejected", 1, "echo 'seed 7: bound 9, optimum 8'"), 1, "seed 7: bound 9, optimum 8", True)
expect("a crash", hunt("rejected", 139), 1, "ended with 139", True)
expect("nothing written", hunt("rejected", 0, 'rm "$MOIRAI_DOSSIER"'), 1, "the verifier in Python ended with", False)
print("ok: the hunt tells what it finds")
