#!/usr/bin/env python3
"""A second verifier of certificates, in whole numbers without end.

Written from docs/certificate.md and docs/formats.md; it shares nothing with the verifier in C (src/prove/), so that a
fault of one is seen by the other. Slow where that one is quick: for certificates of small problems. The folder
certificate/ has a file for each kind of proof; whole.py puts them together.

  check_certificate.py PROBLEM CERTIFICATE...    a line for each certificate; exit code 6 where one does not hold
  check_certificate.py --dossier FILE...         compares with the verdicts of the C verifier, which the tests write
                                                 down; exit code 1 where the two disagree

A dossier has a line for each thing: "P", a problem; "H accepted NS", "H rejected" or "H limit", an honest certificate of
the problem before it; the same with "C", one that was changed. "-" is the standard input. "limit": the C verifier refuses what is larger than its tables; nothing is compared then.
"""

import sys

from certificate.blocks import Problem
from certificate.files import Wrong, demand, parse
from certificate.whole import prove


def verdict(problem, text):
    """(nanoseconds, None), or (None, what is wrong)."""
    try:
        cert = parse(text)
        demand(type(cert) is dict and cert.get("format") == "moirai-certificate" and cert.get("version") == 1, "no certificate")
        return prove(problem, cert), None
    except (Wrong, RecursionError) as error:
        return None, str(error)


def check_dossier(path):
    """Prints what the two verifiers say of everything in the file; the number of disagreements."""
    problem, counts, whose, wrong = None, {"accepted": 0, "rejected": 0, "limit": 0}, {"H": 0, "C": 0}, 0
    with open(0 if path == "-" else path, encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            what, _, text = line.partition("\t")
            if what == "P":
                problem = Problem(parse(text))
                continue
            by, theirs, *ns = what.split(" ")
            counts[theirs] += 1
            whose[by] += 1
            if theirs == "limit":
                continue
            mine, why = verdict(problem, text)
            if mine != (int(ns[0]) if ns else None):
                wrong += 1
                print(f"{path}:{number}: the C verifier says '{what[2:]}', this one {mine if why is None else why!r}")
    print(f"{path}: {whose['H']} honest, {whose['C']} changed; {counts['accepted']} accepted, {counts['rejected']} rejected, {counts['limit']} beyond limits, {wrong} disagreements")
    return wrong


def main(arguments):
    sys.setrecursionlimit(20000)
    if len(arguments) >= 2 and arguments[0] == "--dossier":
        return 1 if sum(check_dossier(path) for path in arguments[1:]) else 0
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    with open(arguments[0], encoding="utf-8") as file:
        problem, worst = Problem(parse(file.read())), 0
    for path in arguments[1:]:
        with open(path, encoding="utf-8") as file:
            ns, why = verdict(problem, file.read())
        print(f"{path}: rejected: {why}" if why else f"{path}: proven: no plan takes less than {ns} ns")
        worst = 6 if why else worst
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

