#!/usr/bin/env python3
"""fuzz/stand_alone.c, libFuzzer's stand-in where the compiler is gcc: it finds what coverage leads to, tells it, and keeps the input."""
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SKIPPED = 4

# A word that random bytes do not hit; what comes behind it is the fault.
TARGET = """
#include <stdint.h>
#include <stdlib.h>
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0 && data[0] == 'm')
        if (size > 1 && data[1] == 'o')
            { FAULT }
    return 0;
}
"""
FAULTS = {
    "an abort": "abort();",
    "an overflow": "int volatile x = 0x7fffffff; x += (int)size;",
    "a byte too far": "int volatile x = data[size]; (void)x;",
    "no end": "for (;;) if (data[0] != 'm') break;",
}


def build(folder, fault, led="-fsanitize-coverage=trace-pc"):
    source, target, driver, program = (os.path.join(folder, name) for name in ("target.c", "target.o", "driver.o", "program"))
    with open(source, "w", encoding="utf-8") as file:
        file.write(TARGET.replace("FAULT", fault))
    sane = ["gcc", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    for command in (
        [*sane, *led.split(), "-c", source, "-o", target],
        [*sane, "-D_GNU_SOURCE", "-c", os.path.join(ROOT, "fuzz", "stand_alone.c"), "-o", driver],
        [*sane, target, driver, "-o", program],
    ):
        subprocess.run(command, check=True)
    return program


def fuzz(program, folder, *options):
    corpus, found = os.path.join(folder, "corpus"), os.path.join(folder, "found")
    for path in (corpus, found):
        shutil.rmtree(path, ignore_errors=True)
        os.mkdir(path)
    done = subprocess.run([program, "-timeout=1", "-max_len=16", f"-artifact_prefix={found}/x-", *options, corpus], capture_output=True, text=True, check=False)
    inputs = []
    for name in os.listdir(found):
        with open(os.path.join(found, name), "rb") as file:
            inputs.append(file.read())
    return done, inputs, len(os.listdir(corpus))


def merged(program, folder):
    """Of inputs of one way only the smallest comes into the first folder, and nothing that it knows."""
    known, more = os.path.join(folder, "known"), os.path.join(folder, "more")
    for path, inputs in ((known, ("xxxx",)), (more, ("mmmm", "momomo", "mo", "m", "yy"))):
        os.mkdir(path)
        for text in inputs:
            with open(os.path.join(path, text), "w", encoding="utf-8") as file:
                file.write(text)
    done = subprocess.run([program, "-set_cover_merge=1", "-max_len=16", known, more], capture_output=True, text=True, check=False)
    found = []
    for name in os.listdir(known):
        with open(os.path.join(known, name), encoding="utf-8") as file:
            found.append(file.read())
    if done.returncode != 0 or sorted(found) != ["m", "mo", "xxxx"]:
        sys.exit(f"FAILED: merging: exit code {done.returncode}, {sorted(found)}: {done.stderr[-500:]}")


def unled(program, folder):
    """Without coverage every seed is changed, not only the first of its kind: one of them is a byte away from the fault."""
    seeds, found = os.path.join(folder, "seeds"), os.path.join(folder, "unled")
    for path in (seeds, found):
        os.mkdir(path)
    for text in ("xxxxxxxx", "yyyyyyyy", "mmmmmmmm"):
        with open(os.path.join(seeds, text), "w", encoding="utf-8") as file:
            file.write(text)
    done = subprocess.run([program, "-max_total_time=60", "-max_len=8", f"-artifact_prefix={found}/x-", os.path.join(folder, "none"), seeds], capture_output=True, text=True, check=False)  # fmt: skip
    if done.returncode != 77 or "3 inputs" not in done.stderr or len(os.listdir(found)) != 1:
        sys.exit(f"FAILED: without coverage: exit code {done.returncode}: {done.stderr[-500:]}")


def main():
    if not shutil.which("gcc"):
        print("skipped: no gcc")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        for what, fault in FAULTS.items():
            done, inputs, _ = fuzz(build(folder, fault), folder, "-max_total_time=60")
            if done.returncode != 77 or "SUMMARY" not in done.stderr or len(inputs) != 1 or not inputs[0].startswith(b"mo"):
                sys.exit(f"FAILED: {what}: exit code {done.returncode}, kept {inputs}: {done.stderr[-500:]}")
        done, inputs, kept = fuzz(build(folder, "return 0;"), folder, "-runs=100000", "-max_total_time=300", "-timeout=60")
        if done.returncode != 0 or inputs or kept < 3 or "stat::number_of_executed_units: 100000" not in done.stderr:
            sys.exit(f"FAILED: without a fault: exit code {done.returncode}, {kept} inputs: {done.stderr[-500:]}")
        merged(build(folder, "return 0;"), folder)
        unled(build(folder, FAULTS["an abort"], led=""), folder)
    print("ok: what coverage leads to is found, told and kept")
    return 0


if __name__ == "__main__":
    sys.exit(main())
