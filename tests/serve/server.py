"""A server under test: a small model whose answers are known, its process, and clients of the standard library.

The model has x (FP32 [64]) and i (INT64 [4]); y and s are x, by way of several operators, and g is |x| at the indices i. The
device that has x first gets five tensors later on: what waits for x must not look at these alone."""
import glob
import http.client
import json
import os
import re
import signal
import struct
import subprocess
import threading
import time

N = 64


# ---- an ONNX file, byte by byte ----

def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def value_info(name, kind, dims):
    shape = b"".join(field(1, field(2 if isinstance(d, str) else 1, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, shape)))


def node(kind, inputs, output):
    return b"".join(field(1, x) for x in inputs) + field(2, output) + field(3, kind + "_" + output) + field(4, kind)


def write_model(path, n=N):
    nodes = [("Relu", ["x"], "a"), ("Neg", ["x"], "n"), ("Relu", ["n"], "c"), ("Sub", ["a", "c"], "y"), ("Add", ["a", "c"], "z"),
             ("Gather", ["z", "i"], "g"), ("Neg", ["a"], "k1"), ("Abs", ["k1"], "k2"), ("Relu", ["k1"], "k3"), ("Neg", ["k2"], "k4"),
             ("Abs", ["k4"], "k5"), ("Sum", ["k1", "k2", "k3", "k4", "k5", "x"], "s")]
    graph = b"".join(field(1, node(*n)) for n in nodes) + field(2, "small")
    graph += field(11, value_info("x", 1, [n])) + field(11, value_info("i", 7, [4]))
    graph += field(12, value_info("y", 1, [n])) + field(12, value_info("g", 1, [4])) + field(12, value_info("s", 1, [n]))
    with open(path, "wb") as f:
        f.write(field(1, 8) + field(7, graph) + field(8, field(2, 13)))


CLUSTER = {"format": "moirai-cluster", "version": 1, "name": "here",
           "devices": [{"name": d, "memory": "1GB", "gflops": 10, "memory_bandwidth": "10GB/s"} for d in "ABC"],
           "links": [{"from": a, "to": b, "bandwidth": "100Gbps", "both": True} for a, b in ("AB", "BC")]}
PLACES = {"Relu_a": "A", "Relu_c": "A", "Relu_k3": "B", "Neg*": "B", "Abs*": "B", "Sub*": "C", "Add*": "B", "Gather*": "C", "Sum*": "A"}
PINS = [word for name, device in PLACES.items() for word in ("--pin", name + "=" + device)]


# ---- a server ----

def join_copies(paths, slots):
    """One plan of several: copies with so many requests in flight each, or, without, in equal shares."""
    plans = []
    for path in paths:
        with open(path) as f:
            plans.append(json.load(f))
    copies = [{"share": 1 / len(plans), "placement": {o["name"]: o["device"] for o in p["ops"]}} for p in plans]
    for k, p in enumerate(plans):
        copies[k].update({"slots": slots[k]} if slots else {})
        copies[k].update({key: p[key] for key in ("makespan_ns", "ops", "transfers")} if k else {})
    in_flight = sum(slots) if slots else 4
    return {**plans[0], "objective": "rate", "in_flight": in_flight, "period_ns": 1, "latency_ns": 1, "copies": copies}


def number_of(pid):
    """Which rank a process is, by its launcher (Open MPI's or MPICH's)."""
    try:
        with open("/proc/%d/environ" % pid, "rb") as f:
            found = re.search(rb"(?:^|\0)(?:OMPI_COMM_WORLD_RANK|PMI_RANK)=(\d+)", f.read())
    except OSError:
        found = None
    return int(found.group(1)) if found else -1


def ranks_of(work, plan="plan"):
    """Process numbers of a group's ranks, by rank: of the plan itself in `serve --work`, or of one that stands in for it."""
    job, found = os.path.realpath(os.path.join(work, plan, "job.json")), []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            continue
        if len(words) > 2 and os.path.basename(words[0]).startswith(b"moirai-rank") and os.path.realpath(words[2].decode()) == job:
            found.append(int(path.split("/")[2]))
    return sorted(found, key=lambda pid: (number_of(pid), pid))


def plan_of(moirai, model, folder, name, *options):
    """A plan in the folder, on its cluster."""
    path = os.path.join(str(folder), name)
    subprocess.run([moirai, "plan", model, "--cluster", os.path.join(str(folder), "c.json"), "--placer", "heft", "--rules", "none", *options, "-o", path, "--force", "-q"],
                   check=True, stdout=subprocess.DEVNULL)
    return path


class Server:
    def __init__(self, moirai, folder, *options, copies=(), slots=(), write=write_model, pins=PINS, slow="0"):
        """`copies`: devices on which one more copy of the network is, each; `slots`: requests in flight of all copies. `write`, `pins`: of
        another model. `slow`: when a device is planned around; never, where that is not what is tested."""
        self.moirai, self.folder = moirai, str(folder)
        self.at = lambda name: os.path.join(self.folder, name)
        write(self.at("small.onnx"))
        with open(self.at("c.json"), "w") as f:
            json.dump(CLUSTER, f)
        subprocess.run([moirai, "plan", self.at("small.onnx"), "--cluster", self.at("c.json"), "--placer", "heft", "--rules", "none", *pins,
                        "-o", self.at("plan.json"), "--force", "-q"], check=True, stdout=subprocess.DEVNULL)
        if copies:
            paths = [self.at("plan.json")]
            for device in copies:
                paths.append(self.at("on-%s.json" % device))
                subprocess.run([moirai, "plan", self.at("small.onnx"), "--cluster", self.at("c.json"), "--placer", "heft", "--rules", "none",
                                "--pin", "*=" + device, "-o", paths[-1], "--force", "-q"], check=True, stdout=subprocess.DEVNULL)
            joined = join_copies(paths, slots)
            with open(self.at("plan.json"), "w") as f:
                json.dump(joined, f)
        self.err = open(self.at("err.txt"), "w+")
        self.out = open(self.at("out.txt"), "w+")
        self.process = subprocess.Popen([moirai, "serve", self.at("plan.json"), self.at("small.onnx"), "--cluster", self.at("c.json"), "--rules", "none",
                                         "--port", "0", "--work", self.at("w"), "--slow", slow, *options], stdout=self.out, stderr=self.err)
        found = self.wait_for(r"http://127\.0\.0\.1:(\d+)/", "out.txt", 60)
        self.port = int(found.group(1))

    def text(self, name="err.txt"):
        with open(self.at(name)) as f:
            return f.read()

    def wait_for(self, pattern, name="err.txt", seconds=30, count=1):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = list(re.finditer(pattern, self.text(name)))
            if len(found) >= count:
                return found[count - 1]
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError("no '%s' in %s: %s" % (pattern, name, self.text("err.txt")))

    def ranks(self, plan="plan"):
        return ranks_of(self.at("w"), plan)

    def connect(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def get(self, path, method="GET", body=None, headers=None):
        c = self.connect()
        try:
            c.request(method, path, body, headers or {})
            r = c.getresponse()
            return r.status, r.read(), dict(r.getheaders())
        finally:
            c.close()

    def infer(self, body, headers=None, connection=None):
        """The status, and the answer or the words of the error."""
        c = connection or self.connect()
        try:
            c.request("POST", "/v2/models/small/infer", body if isinstance(body, (bytes, str)) else json.dumps(body), headers or {})
            r = c.getresponse()
            answer = json.loads(r.read())
            return r.status, answer if r.status == 200 else answer["error"]
        finally:
            if not connection:
                c.close()

    def metrics(self):
        lines = self.get("/metrics")[1].decode().splitlines()
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if not line.startswith("#")}

    def stop(self, seconds=40):
        """Ends it as an administrator does, and returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(seconds)
        self.err.close()
        self.out.close()
        return code

    def __enter__(self):
        return self

    def __exit__(self, *args):
        if self.process.poll() is None:
            try:
                self.stop()
            except subprocess.TimeoutExpired:
                self.process.kill()


def request(x, i=(0, 1, 2, 3), **more):
    return {"inputs": [{"name": "x", "datatype": "FP32", "shape": [len(x)], "data": list(x)}, {"name": "i", "datatype": "INT64", "shape": [4], "data": list(i)}], **more}


def expected(x, i=(0, 1, 2, 3)):
    return {"y": list(x), "g": [abs(x[k]) for k in i], "s": list(x)}


def outputs(answer):
    return {o["name"]: o["data"] for o in answer["outputs"]}


def numbers(seed):
    """Exact in FP32, other ones with every seed."""
    return [((seed * 7919 + k * 104729) % 4001 - 2000) / 8 for k in range(N)]


def binary(x, i=(0, 1, 2, 3), **more):
    """Body and headers of a request with binary tensors, which asks for binary outputs."""
    data = [struct.pack("<%df" % N, *x), struct.pack("<4q", *i)]
    head = {"inputs": [{"name": n, "datatype": t, "shape": s, "parameters": {"binary_data_size": len(d)}}
                       for n, t, s, d in (("x", "FP32", [N], data[0]), ("i", "INT64", [4], data[1]))],
            "parameters": {"binary_data_output": True}, **more}
    text = json.dumps(head).encode()
    return text + b"".join(data), {"Inference-Header-Content-Length": str(len(text))}


class Load(threading.Thread):
    """A client that asks one request after the other until it is told to stop, and notes every answer. With `think_s` it waits between them:
    tests that wait for devices need requests on their way, not a processor that clients keep busy."""

    def __init__(self, server, seed, most=None, think_s=0.0):
        super().__init__()
        self.server, self.seed, self.most, self.think_s = server, seed, most, think_s
        self.codes, self.wrong, self.refused, self.seconds = {}, [], 0, []
        self.stopping = False
        self.start()

    def run(self):
        connection = self.server.connect()
        try:
            self.ask(connection)
        finally:
            connection.close()

    def ask(self, connection):
        n = 0
        while not self.stopping and n != self.most:
            x, begin = numbers(self.seed * 100003 + n), time.monotonic()
            i = [(n + k * self.seed) % N for k in range(4)]
            n += 1
            try:
                code, answer = self.server.infer(request(x, i), connection=connection)
            except (OSError, http.client.HTTPException):
                self.refused += 1
                connection.close()
                if self.server.process.poll() is not None:
                    return
                continue
            self.seconds.append(time.monotonic() - begin)
            self.codes[code] = self.codes.get(code, 0) + 1
            if code == 200 and outputs(answer) != expected(x, i):
                self.wrong.append((n, outputs(answer), expected(x, i)))
            elif code != 200 and len(self.wrong) < 3 and code not in (429, 503):
                self.wrong.append((code, answer))
            time.sleep(self.think_s)


def total(loads, code):
    return sum(load.codes.get(code, 0) for load in loads)
