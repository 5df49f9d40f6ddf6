#!/usr/bin/env python3
"""scripts/skipped sees every skip of a log, with its reason: what scripts/check counts must not be lost."""
import os
import subprocess
import sys
import tempfile

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "skipped")

CTEST = """Start testing: Nov 17 00:00 UTC
----------------------------------------------------------
1/3 Testing: place_milp
1/3 Test: place_milp
Command: "/x/test_place_milp"
Output:
----------------------------------------------------------
[==========] tests: Running 3 test(s).
[ RUN      ] test_one
a word of its own
[       OK ] test_one
[ RUN      ] test_two
skipped: cbc is not here
[  SKIPPED ] test_two
[ RUN      ] test_three
[  SKIPPED ] test_three
[==========] tests: 3 test(s) run.
[  PASSED  ] 1 test(s).
<end of output>
Test Passed.
2/3 Testing: rank_netns
Output:
----------------------------------------------------------
skipped: network namespaces need root
<end of output>
Test Passed.
3/3 Testing: fine
Output:
----------------------------------------------------------
nothing is skipped here
<end of output>
Test Passed.
"""

PYTEST = """....ss..s                                                     [100%]
=========================== short test summary info ============================
SKIPPED [2] ../python/tests/test_gpu.py:16: no GPU with CUDA MPS here
SKIPPED [1] ../python/tests/test_imports.py:30: highspy is not here
6 passed, 3 skipped in 1.00s
"""


def listed(text):
    with tempfile.NamedTemporaryFile("w", suffix=".log") as log:
        log.write(text)
        log.flush()
        return subprocess.run([sys.executable, SCRIPT, log.name], check=True, capture_output=True, text=True).stdout.splitlines()


def expect(text, lines):
    found = listed(text)
    if found != lines:
        sys.exit("FAILED: %s, expected %s" % (found, lines))


expect(CTEST, ["place_milp: test_two: cbc is not here", "place_milp: test_three: gives no reason",
               "rank_netns: network namespaces need root"])
expect(PYTEST, ["../python/tests/test_gpu.py:16: no GPU with CUDA MPS here"] * 2 +
       ["../python/tests/test_imports.py:30: highspy is not here"])
expect("", [])
print("ok: skips are listed with their reasons")
