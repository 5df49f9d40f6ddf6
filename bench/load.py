#!/usr/bin/env python3
"""A server under load: latencies at parts of its rate, and kill -9 of its ranks.

    bench/load.py PLAN MODEL --cluster FILE [--moirai build/release/src/moirai] [--seconds 600] [--parts 50,80,95] [--kills 10] [--json FILE] [-- SERVE OPTIONS]

Starts `moirai serve`, measures the rate with as many clients as keep it busy and the latency of one client, and then sends requests at random
times (Poisson), at each part of the rate for so many seconds. A latency is from the moment at which a request was due, so that a client that is late
counts; how late they were stands beside it, and so does the longest time for which requests waited and none was answered: what is not the server's queue is seen there. Beside p50 and p99 stands
what a simulation of the same arrivals gives, by what was measured before: a request goes to the copy that has the most of its slots free, takes as long as one alone did, each
time another of those that were measured, and no two answers of a copy are closer than its part of the rate allows. It holds its slot as long as one of so many does at the full rate: what one alone takes
beyond that (the way there and back, a device that has to be woken) keeps no other waiting. A second simulation ("at its speed") knows one thing more: how long devices computed for a request in every second of the run, as /metrics has it, against what
they took while the rate was measured. What it explains beyond the first is a machine that was slower for a while, which draws that know nothing of each other can't have; what it does not explain is not in the devices. Last, ranks are killed under load, one after the other,
each when the plan is back. The input is always the same, and every answer must be the first one: byte by byte, or, where another plan cuts the network elsewhere and kernels are fused otherwise, within
a thousandth of its largest number. How many were not the same bytes is shown.

Ends with 1 if an accepted request was not answered, an answer was wrong, or the server did not come back.
"""

import argparse
import array
import bisect
import heapq
import http.client
import json
import os
import queue
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "serve"))
from server import ranks_of

SIZES = {"BOOL": 1, "INT8": 1, "UINT8": 1, "INT16": 2, "UINT16": 2, "FP16": 2, "BF16": 2, "INT32": 4, "UINT32": 4, "FP32": 4, "INT64": 8, "UINT64": 8, "FP64": 8}


class Server:
    def __init__(self, o, folder):
        self.ahead = bool(o.cluster) and "--no-fallback" not in o.options  # there are plans without a device
        self.folder, self.log = folder, open(os.path.join(folder, "said"), "w+")
        words = [o.moirai, "serve", o.plan, o.model, "--port", "0", "--work", os.path.join(folder, "w"), *(["--cluster", o.cluster] if o.cluster else []), *o.options]
        self.process = subprocess.Popen(words, stdout=self.log, stderr=subprocess.STDOUT)
        found = self.wait_for(r"http://127\.0\.0\.1:(\d+)(/v2/models/\S+) on \d+ devices?, (\d+) in flight", 120)
        self.port, self.path, self.in_flight = int(found.group(1)), found.group(2), int(found.group(3))
        c = self.connect()
        c.request("GET", self.path)
        about = json.loads(c.getresponse().read())
        c.close()
        inputs, data = [], b""
        for t in about["inputs"]:
            n = SIZES[t["datatype"]]
            for d in t["shape"]:
                n *= d
            inputs.append({**t, "parameters": {"binary_data_size": n}})
            data += bytes(n)
        head = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
        self.body, self.headers = head + data, {"Inference-Header-Content-Length": str(len(head))}
        self.answer, self.all_float, self.rounded = None, False, 0

    def said(self):
        with open(self.log.name) as f:
            return f.read()

    def wait_for(self, pattern, seconds, count=1):
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process.poll() is None:
            found = list(re.finditer(pattern, self.said()))
            if len(found) >= count:
                return found[count - 1]
            time.sleep(0.02)
        raise SystemExit(f"load: no '{pattern}': {self.said()}")

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def ask(self, connection):
        """The status, and whether the answer is that of everybody."""
        connection.request("POST", self.path + "/infer", self.body, self.headers)
        r = connection.getresponse()
        data = r.read()
        if r.status != 200:
            return r.status, True
        head = int(r.getheader("Inference-Header-Content-Length"))
        if self.answer is None:
            self.answer, self.all_float = data[head:], all(t["datatype"] == "FP32" for t in json.loads(data[:head])["outputs"])
        if data[head:] == self.answer:
            return 200, True
        self.rounded += 1
        return 200, self.all_float and near(data[head:], self.answer)

    def computed(self, connection):
        """Seconds that all devices have computed, and for how many requests."""
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        seconds = sum(float(x) for x in re.findall(r"^moirai_device_busy_seconds_total\{[^}]*\} (\S+)$", text, re.M))
        return seconds, sum(int(n) for n in re.findall(r'^moirai_requests_total\{code="200"\} (\d+)$', text, re.M))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120)


def near(data, expected):
    """Whether FP32 numbers are those expected, but for rounding."""
    a, b = array.array("f", data), array.array("f", expected)
    most = max((abs(y) for y in b), default=0.0)
    return len(a) == len(b) and all(abs(x - y) <= 1e-3 * most for x, y in zip(a, b))


class Tally:
    def __init__(self):
        self.lock, self.codes, self.wrong, self.broken, self.seconds = threading.Lock(), {}, 0, 0, []

    def add(self, code, right, seconds):
        with self.lock:
            self.codes[code] = self.codes.get(code, 0) + 1
            self.wrong += not right
            self.seconds.append(seconds)


def part_of(sorted_values, share):
    return sorted_values[min(len(sorted_values) - 1, int(share * len(sorted_values)))] if sorted_values else float("nan")


def closed_loop(server, tally, n_clients, stop):
    """Clients that ask without a pause, until stop() says so."""

    def client():
        connection = server.connect()
        while not stop():
            begun = time.monotonic()
            try:
                tally.add(*server.ask(connection), time.monotonic() - begun)
            except (OSError, http.client.HTTPException):
                tally.broken += 1
                connection.close()
                connection = server.connect()
        connection.close()

    threads = [threading.Thread(target=client) for _ in range(n_clients)]
    for t in threads:
        t.start()
    return threads


def measure(server, tally, n_clients, seconds):
    """Requests per second and their latencies, in their order, after a warm-up of a fifth."""
    own, end = Tally(), time.monotonic() + seconds * 1.2
    threads = closed_loop(server, own, n_clients, lambda: time.monotonic() > end)
    time.sleep(seconds * 0.2)
    before, begun = len(own.seconds), time.monotonic()
    for t in threads:
        t.join()
    rate = (len(own.seconds) - before) / (time.monotonic() - begun)
    for code, n in own.codes.items():
        tally.codes[code] = tally.codes.get(code, 0) + n
    tally.wrong += own.wrong
    tally.broken += own.broken
    return rate, own.seconds[before:]


def copies_of(path, in_flight):
    """Slots and share of each copy of a plan; copies that take turns have their shares of the slots."""
    with open(path) as f:
        copies = json.load(f).get("copies") or [{"share": 1.0}]
    return [(c.get("slots") or max(1, round(in_flight * c["share"])), c["share"]) for c in copies]


def slowness(samples, usual_s, least=8):
    """When devices were how many times as slow as usual: [(from, times)], by (moment, seconds computed, requests) one after the other. A part has at least so many requests."""
    found, (since, seconds, requests) = [], samples[0]
    for moment, s, n in samples[1:]:
        if n - requests >= least and s > seconds:
            found.append((since, (s - seconds) / (n - requests) / usual_s))
            since, seconds, requests = moment, s, n
    return found


def at_one_speed(alone, around=8):
    """Latencies of requests one at a time, sorted, as if the machine had been equally fast all the time: each as it is to the mean of those next to it."""
    mean, half = sum(alone) / len(alone), around // 2
    near = [alone[max(0, i - half) : i + half + 1] for i in range(len(alone))]
    return sorted(x * mean * len(n) / sum(n) for x, n in zip(alone, near))


def simulate(due, copies, alone, rate, seed=1, slow_at=()):
    """Latencies, sorted. `alone`: of requests one at a time, sorted; `slow_at`: as of slowness()."""
    drawn, middle = random.Random(seed), part_of(alone, 0.5)
    mean = sum(alone) / len(alone) / middle  # what is measured at the full rate has the slow ones in it
    period = [1 / (rate * share * mean) for _, share in copies]
    held = [min(middle, slots * p) for (slots, _), p in zip(copies, period)]
    at_work, last, found = [[] for _ in copies], [float("-inf")] * len(copies), []
    for arrived in due:
        start = arrived
        for heap in at_work:
            while heap and heap[0] <= start:
                heapq.heappop(heap)
        if all(len(heap) >= slots for heap, (slots, _) in zip(at_work, copies)):
            start = heapq.heappop(min(at_work, key=lambda heap: heap[0]))
        c = max(range(len(copies)), key=lambda i: 1 - len(at_work[i]) / copies[i][0])
        slow = drawn.choice(alone) / middle
        part = bisect.bisect_right(slow_at, (start, float("inf"))) - 1
        slow *= slow_at[max(part, 0)][1] if slow_at else 1
        soonest = start + held[c] * slow
        last[c] = max(soonest, last[c] + period[c] * slow)
        heapq.heappush(at_work[c], last[c])
        found.append(start + middle * slow + (last[c] - soonest) - arrived)
    return sorted(found)


def longest_silence(spans):
    """Seconds between two answers, or a question and an answer, during which some request was asked and not answered."""
    longest, since, waiting = 0.0, 0.0, 0
    for t, change in sorted([(asked, 1) for asked, _ in spans] + [(answered, -1) for _, answered in spans]):
        if change < 0:
            longest = max(longest, t - since)
        if change < 0 or waiting == 0:
            since = t
        waiting += change
    return longest


def open_loop(server, tally, rate, seconds, seed):
    """Latencies of requests at random times, the times, from the first on, how late clients were, the longest time without an answer, and what devices had computed by when."""
    drawn, due, t = random.Random(seed), [], 0.0
    while t < seconds:
        t += drawn.expovariate(rate)
        due.append(t)
    waiting, own, begun, late, spans = queue.Queue(), Tally(), time.monotonic() + 0.1, [], []

    def client():
        connection, used = server.connect(), time.monotonic()
        while (k := waiting.get()) is not None:
            if time.monotonic() - used > 10:  # the server cuts off who is silent for long; http.client connects again
                connection.close()
            asked = time.monotonic() - begun
            try:
                code, right = server.ask(connection)
                used = time.monotonic()
            except (OSError, http.client.HTTPException):
                tally.broken += 1
                connection.close()
                connection = server.connect()
                continue
            own.add(code, right, used - begun - due[k])
            late.append(asked - due[k])
            spans.append((asked, used - begun))
            tally.add(code, right, 0)
        connection.close()

    samples, done = [], threading.Event()

    def watch():
        connection = server.connect()
        while True:
            over = done.is_set()
            samples.append((time.monotonic() - begun, *server.computed(connection)))
            if over:
                return connection.close()
            done.wait(1)

    watcher = threading.Thread(target=watch)
    threads = [threading.Thread(target=client) for _ in range(64)]
    for t in (*threads, watcher):
        t.start()
    for k, t in enumerate(due):
        time.sleep(max(0.0, begun + t - time.monotonic()))
        waiting.put(k)
    for _ in threads:
        waiting.put(None)
    for t in threads:
        t.join()
    done.set()
    watcher.join()
    return sorted(own.seconds), due, sorted(late), longest_silence(spans), samples


def at_work(server):
    """Ranks of the plan; where a device was planned around because it was slow, they come back after a while."""
    end = time.monotonic() + 120
    while not (ranks := ranks_of(os.path.join(server.folder, "w"))):
        if time.monotonic() > end:
            raise SystemExit(f"load: the plan is not at work: {server.said()}")
        time.sleep(0.1)
    return ranks


def stand_by(server, n_lost):
    """Waits, a while, until the plans without a device that there are stand by; each that was used comes up again."""
    found = server.wait_for(r"plans for the case that a device leaves: (\d+) of", 120) if server.ahead else None
    end = time.monotonic() + 10
    while found and server.said().count("is loaded and stands by") < int(found.group(1)) + n_lost and time.monotonic() < end:
        time.sleep(0.1)


def kill_ranks(server, tally, n_kills, n_clients):
    """How long nobody was at work after each kill, and the longest time that a client waited for an answer meanwhile."""
    done, before = threading.Event(), len(tally.seconds)
    threads = closed_loop(server, tally, n_clients, done.is_set)
    try:
        time.sleep(1)
        for k in range(n_kills):
            stand_by(server, k)
            ranks = at_work(server)
            os.kill(ranks[k % len(ranks)], signal.SIGKILL)
            server.wait_for("lost: ", 300, k + 1)
            server.wait_for(r"(back: |going on after [\d.]+ s with )all \d+ devices of the plan", 300, k + 1)
            print(f"kill {k + 1}: going on after {re.findall(r'going on after ([0-9.]+) s', server.said())[-1]} s", flush=True)
            time.sleep(0.3)
    finally:
        done.set()
        for t in threads:
            t.join()
    return [float(s) for s in re.findall(r"going on after ([\d.]+) s", server.said())], max(tally.seconds[before:])


def run(o, server, tally):
    result = {"in_flight": server.in_flight, "parts": []}
    _, in_order = measure(server, tally, 1, o.find)
    each, even = sorted(in_order), at_one_speed(in_order)
    connection = server.connect()
    before = server.computed(connection)
    rate, _ = measure(server, tally, 2 * server.in_flight, o.find)
    after = server.computed(connection)
    connection.close()
    usual = (after[0] - before[0]) / max(after[1] - before[1], 1)
    alone = part_of(each, 0.5)
    result.update(rate_per_s=rate, alone_s=alone, alone_p99_s=part_of(each, 0.99), computed_s=usual)
    print(f"rate {rate:.6g} requests per second with {2 * server.in_flight} clients; one alone takes {1e3 * alone:.3f} ms, of a hundred one {1e3 * result['alone_p99_s']:.3f} ms")
    print("| part of the rate | requests | p50 ms | simulated | at its speed | p99 ms | simulated | at its speed | clients late, p99 | longest silence |\n|---|---|---|---|---|---|---|---|---|---|")
    for percent in o.parts:
        got, due, late, silence, samples = open_loop(server, tally, rate * percent / 100, o.seconds, percent)
        copies, slow_at = copies_of(o.plan, server.in_flight), slowness(samples, usual)
        said, at_speed = simulate(due, copies, each, rate), simulate(due, copies, even, rate, slow_at=slow_at)
        row = {"percent": percent, "requests": len(got), "p50_s": part_of(got, 0.5), "p50_simulated_s": part_of(said, 0.5), "p50_at_speed_s": part_of(at_speed, 0.5),
               "p99_s": part_of(got, 0.99), "p99_simulated_s": part_of(said, 0.99), "p99_at_speed_s": part_of(at_speed, 0.99), "late_p99_s": part_of(late, 0.99), "silence_s": silence}  # fmt: skip
        print(f"| {percent} % | {len(got)} | " + " | ".join(f"{1e3 * row[key]:.3f}" for key in list(row)[2:]) + " |", flush=True)
        row["slow_at"] = slow_at
        result["parts"].append(row)
    if o.kills:
        result["recovery_s"], result["longest_s"] = kill_ranks(server, tally, o.kills, 2 * server.in_flight)
        print(f"{o.kills} times kill -9: going on after " + " ".join(f"{s:.2f}" for s in result["recovery_s"]) + f" s; no answer took longer than {result['longest_s']:.2f} s")
    return result


def main():
    words = sys.argv[1:]
    cut = words.index("--") if "--" in words else len(words)
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("plan")
    a.add_argument("model")
    a.add_argument("--cluster")
    a.add_argument("--moirai", default="build/release/src/moirai")
    a.add_argument("--seconds", type=float, default=600, help="at each part of the rate")
    a.add_argument("--find", type=float, help="seconds to measure the rate in, and the latency of one request (default: 10, and no less than a tenth of SECONDS: at 95 %% of the rate a rate that is 1 %% off is a fifth of the queue)")
    a.add_argument("--parts", type=lambda text: [int(p) for p in text.split(",")], default=[50, 80, 95])
    a.add_argument("--kills", type=int, default=10)
    a.add_argument("--json", help="all numbers go to this file")
    o = a.parse_args(words[:cut])
    o.options = words[cut + 1:]
    o.find = o.find or max(10.0, o.seconds / 10)
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="moirai-load") as folder:
        server = Server(o, folder)
        try:
            result = run(o, server, tally)
        finally:
            code = server.stop() if server.process.poll() is None else server.process.returncode
        accepted = re.search(r"(\d+) requests were accepted, and all of them answered", server.said())
        result.update(codes=tally.codes, wrong=tally.wrong, rounded=server.rounded, broken=tally.broken, accepted=int(accepted.group(1)) if accepted else None)
    # What was refused (429) was not accepted; whatever else was accepted has an answer of its own.
    fine = code == 0 and not tally.wrong and not tally.broken and set(tally.codes) <= {200, 429} and result["accepted"] == tally.codes.get(200, 0)
    print(f"{result['accepted']} requests accepted, {tally.codes.get(200, 0)} answered, {tally.codes.get(429, 0)} refused, {tally.wrong} wrong, {server.rounded} not the same bytes, {tally.broken} cut off: "
          + ("as promised" if fine else "NOT as promised"))
    if o.json:
        with open(o.json, "w") as f:
            json.dump(result, f)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
