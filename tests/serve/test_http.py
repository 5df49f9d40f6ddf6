"""moirai serve as clients meet it: answers, refusals, hostile clients, an orderly end.
Usage: test_http.py MOIRAI [NAME...]"""
import glob
import json
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from server import CLUSTER, N, Load, Server, binary, expected, numbers, outputs, plan_of, ranks_of, request, total, write_model

MOIRAI = ""


class Case(unittest.TestCase):
    options = ()
    plan = {}

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="moirai-serve")
        cls.server = Server(MOIRAI, cls.folder.name, "--no-fallback", *cls.options, **cls.plan)

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        text = cls.server.text()
        cls.folder.cleanup()
        if code:
            raise AssertionError("exit code %d: %s" % (code, text))

    def check_alive(self):
        x = numbers(5)
        code, answer = self.server.infer(request(x))
        self.assertEqual(code, 200, answer)
        self.assertEqual(outputs(answer), expected(x))


class Answers(Case):
    def test_health_and_what_is_served(self):
        for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/small/ready", "/v2/models/small/versions/1/ready"):
            self.assertEqual(self.server.get(path)[0], 200, path)
        about = json.loads(self.server.get("/v2")[1])
        self.assertEqual((about["name"], about["extensions"]), ("moirai", ["binary_tensor_data"]))
        model = json.loads(self.server.get("/v2/models/small")[1])
        self.assertEqual((model["name"], model["versions"]), ("small", ["1"]))
        self.assertEqual(model["inputs"], [{"name": "x", "datatype": "FP32", "shape": [N]}, {"name": "i", "datatype": "INT64", "shape": [4]}])
        self.assertEqual(model["outputs"], [{"name": "y", "datatype": "FP32", "shape": [N]}, {"name": "g", "datatype": "FP32", "shape": [4]},
                                            {"name": "s", "datatype": "FP32", "shape": [N]}])

    def test_json(self):
        x = numbers(1)
        code, answer = self.server.infer(request(x, (63, 0, 5, 5), id="seven"))
        self.assertEqual(code, 200)
        self.assertEqual((answer["model_name"], answer["model_version"], answer["id"]), ("small", "1", "seven"))
        self.assertEqual(outputs(answer), expected(x, (63, 0, 5, 5)))

    def test_outputs_that_are_asked_for(self):
        x = numbers(2)
        body = request(x, outputs=[{"name": "g"}])
        code, answer = self.server.infer(body)
        self.assertEqual(code, 200)
        self.assertEqual(outputs(answer), {"g": expected(x)["g"]})
        self.assertNotIn("id", answer)

    def test_binary_tensors(self):
        x = numbers(3)
        body, headers = binary(x, (9, 8, 7, 6))
        code, data, got = self.server.get("/v2/models/small/infer", "POST", body, headers)
        self.assertEqual(code, 200)
        n = int(got["Inference-Header-Content-Length"])
        head = json.loads(data[:n])
        self.assertEqual([o["parameters"]["binary_data_size"] for o in head["outputs"]], [4 * N, 16, 4 * N])
        self.assertEqual(list(struct.unpack("<%df" % (2 * N + 4), data[n:])), x + expected(x, (9, 8, 7, 6))["g"] + x)

    def test_binary_in_json_out_of_some(self):
        x = numbers(4)
        body, headers = binary(x, outputs=[{"name": "y", "parameters": {"binary_data": False}}, {"name": "g"}])
        code, data, got = self.server.get("/v2/models/small/infer", "POST", body, headers)
        head = json.loads(data[:int(got["Inference-Header-Content-Length"])])
        self.assertEqual(head["outputs"][0]["data"], x)
        self.assertEqual(head["outputs"][1]["parameters"], {"binary_data_size": 16})

    def test_a_request_that_a_device_can_not_compute_harms_no_other(self):
        others = [Load(self.server, seed, 30) for seed in range(4)]
        for k in range(10):
            code, words = self.server.infer(request(numbers(k), (0, 1, 2, 64 + k)))
            self.assertEqual(code, 500, words)
            self.assertIn("device 'C'", words)
            self.assertIn("indices element out of data bounds", words)
        for load in others:
            load.join()
            self.assertEqual((load.codes, load.wrong, load.refused), ({200: 30}, [], 0))

    def test_many_clients_have_their_own_answers(self):
        before = self.server.metrics()
        loads = [Load(self.server, seed, 60) for seed in range(8)]
        for load in loads:
            load.join()
            self.assertEqual((load.codes, load.wrong, load.refused), ({200: 60}, [], 0))
        after = self.server.metrics()
        for key in ('moirai_requests_total{code="200"}', "moirai_request_seconds_count", 'moirai_request_seconds_bucket{le="+Inf"}'):
            self.assertEqual(after[key] - before.get(key, 0), 480, key)
        self.assertGreater(after["moirai_request_seconds_sum"], before.get("moirai_request_seconds_sum", 0))
        self.assertEqual((after["moirai_waiting_requests"], after["moirai_in_flight_requests"]), (0, 0))
        for device in "ABC":
            self.assertEqual(after['moirai_device_up{device="%s"}' % device], 1)
            self.assertGreater(after['moirai_device_busy_seconds_total{device="%s"}' % device], 0)

    def test_a_deadline_of_the_request(self):
        code, words = self.server.infer(request(numbers(1), parameters={"timeout": 1}))
        self.assertEqual(code, 504)
        self.assertIn("no answer within 1e-06 s", words)
        self.check_alive()

    def test_addresses(self):
        for method, path, code in (("GET", "/", 404), ("GET", "/v2/models/other", 404), ("GET", "/v2/models/smaller", 404),
                                   ("GET", "/v2/models/small/versions/2", 404), ("GET", "/v2/models/small/infer", 405),
                                   ("POST", "/v2/health/live", 405), ("DELETE", "/v2/models/small", 405), ("POST", "/v2/models/other/infer", 404),
                                   ("GET", "/v2/../etc/passwd", 404), ("GET", "/v2/models/small/%00", 404)):
            got, data, headers = self.server.get(path, method, "x" * 1000 if method == "POST" else None)
            self.assertEqual(got, code, path)
            self.assertIn("error", json.loads(data))
            allowed = None if code != 405 else "POST" if path.endswith("/infer") else "GET, HEAD"
            self.assertEqual(headers.get("Allow"), allowed, path)

    def test_what_is_no_inference_is_not_counted(self):
        name = 'moirai_requests_total{code="%d"}'
        before = self.server.metrics()
        for method, path in (("GET", "/favicon.ico"), ("POST", "/v2"), ("POST", "/v2/models/other/infer"), ("GET", "/v2/models/small/infer")):
            self.server.get(path, method, "x" if method == "POST" else None)
        after = self.server.metrics()
        self.assertEqual([after.get(name % code, 0) - before.get(name % code, 0) for code in (404, 405)], [1, 1])


def spoilt():
    """Requests in which one thing is wrong, with a part of the words that say so."""
    def change(what, part, **more):
        body = request(numbers(1))
        what(body)
        return json.dumps(body), {}, part

    def put(key, value, at=0):
        return lambda body: body["inputs"][at].__setitem__(key, value)

    raw, head = binary(numbers(1))
    n = int(head["Inference-Header-Content-Length"])
    yield "", {}, "request: "
    yield "{", {}, "request: "
    yield "[1]", {}, "no JSON object"
    yield "\xff\xfe".encode("latin1"), {}, "request: "
    yield '{"inputs": 3}', {}, 'no "inputs"'
    yield '{"inputs": [3]}', {}, 'without "name"'
    yield '{"inputs": [], "inputs": []}', {}, "inputs"
    yield "[" * 40000, {}, "request: "
    yield '{"inputs": ' + "[" * 20000 + "]" * 20000 + "}", {}, 'without "name"'
    yield change(lambda b: b["inputs"].pop(), "input 'i' is missing")
    yield change(lambda b: b["inputs"].append(b["inputs"][0]), "input 'x' is given twice")
    yield change(put("name", "q"), "no input 'q'")
    yield change(put("datatype", "FP64"), "datatype FP64, the model has FP32")
    yield change(put("datatype", None), "datatype none")
    yield change(put("shape", [N, 1]), "has shape [64,1], the plan is for [64]")
    yield change(put("shape", [-1]), '"shape" has -1')
    yield change(put("shape", "64"), '"shape" must be an array')
    yield change(put("shape", [1] * 17), '"shape" must be an array of at most 16')
    yield change(put("shape", [2 ** 63]), '"shape" has ')
    yield change(put("data", [1] * (N - 1)), '"data" has 63 elements, its shape 64')
    yield change(put("data", [1] * (N + 1)), "more than its 64 elements")
    x = numbers(1)
    yield change(put("data", [x[:32], x[32:]]), '"data" is nested as [2,32], its shape is [64]: flat, or nested as that')
    yield change(put("data", [x[:10], [x[10:20], x[20:]]]), '"data" is nested as [2,10], its shape is [64]')
    yield change(put("data", [x]), '"data" is nested as [1,64], its shape is [64]')
    yield change(put("data", x[:63] + [[1]]), "element 63 is an array, which is no FP32")
    yield change(put("data", [1.0, 0, 0, 0], 1), "element 0 is 1.0, which is no INT64")
    yield change(put("shape", [64.0]), '"shape" has 64.0')
    yield change(put("data", ["a"] * N), 'element 0 is "a", which is no FP32')
    yield change(put("data", [1e39] * N), "which is no FP32")
    yield change(put("data", [None] * N), "which is no FP32")
    yield change(put("data", {"a": 1}), 'neither "data", an array')
    yield change(put("data", [1.5, 0, 0, 0], 1), "element 0 is 1.5, which is no INT64")
    yield change(put("data", [2 ** 63, 0, 0, 0], 1), "which is no INT64")
    yield change(put("parameters", {"binary_data_size": 256}), 'both "data" and "binary_data_size"')
    yield change(lambda b: b.__setitem__("outputs", [{"name": "q"}]), "no output 'q'")
    yield change(lambda b: b.__setitem__("outputs", [{"name": "y"}, {"name": "y"}]), "output 'y' is asked for twice")
    yield change(lambda b: b.__setitem__("outputs", 7), '"outputs" must be an array')
    yield change(lambda b: b.__setitem__("id", 7), '"id" must be a string')
    yield change(lambda b: b.__setitem__("id", "x" * 300), '"id" must be a string')
    yield change(lambda b: b.__setitem__("parameters", {"timeout": -1}), '"timeout" must be')
    yield change(put("name", "x\0y"), "no input 'x")
    yield change(put("datatype", "FP32\0"), "has datatype FP32")
    yield change(lambda b: b.__setitem__("outputs", [{"name": "y\0"}]), "no output 'y")
    yield change(lambda b: b.__setitem__("id", "a\0b"), '"id" must be a string')
    yield change(lambda b: b.__setitem__("parameters", 7), '"parameters" must be an object')
    yield change(lambda b: b.__setitem__("parameters", {"binary_data_output": "yes"}), '"binary_data_output" must be true or false')
    yield change(lambda b: b.__setitem__("outputs", [{"name": "y", "parameters": {"binary_data": 1}}]), '"binary_data" must be true or false')
    yield change(lambda b: b.__setitem__("outputs", [{"name": "y", "parameters": []}]), '"parameters" must be an object')
    yield raw, {"Inference-Header-Content-Length": "x"}, "is no number"
    yield raw, {"Inference-Header-Content-Length": "-1"}, "is no number"
    yield raw, {"Inference-Header-Content-Length": "99999999999999999999"}, "is no number"
    yield raw, {"Inference-Header-Content-Length": str(len(raw) + 1)}, "the body has"
    yield raw, {"Inference-Header-Content-Length": str(n - 1)}, "request: "
    yield raw[:-1], head, "31 of its 32 bytes are there"
    yield raw + b"x", head, "1 bytes of binary data belong to no input"
    yield raw.replace(b'"binary_data_size": 256', b'"binary_data_size": 255'), head, "binary_data_size is 255"
    yield raw.replace(b'"binary_data_size": 256', b'"binary_data_size": -16'), head, "binary_data_size is -16"


class Refusals(Case):
    options = ("--idle", "1", "--connections", "16")
    in_pieces = 200  # what a body in chunks gets

    def test_requests_in_which_one_thing_is_wrong(self):
        for body, headers, part in spoilt():
            code, words = self.server.infer(body, headers)
            self.assertEqual(code, 400, (words, body[:200]))
            self.assertIn(part, words)
            self.assertNotIn("\n", words)
        self.check_alive()

    def test_bodies_that_are_too_long(self):
        code, words = self.server.infer("x" * 200000)
        self.assertEqual(code, 413)
        self.assertIn("200000 bytes, a request of this model at most", words)
        s = socket.create_connection(("127.0.0.1", self.server.port), 10) # without waiting for what is announced
        s.sendall(b"POST /v2/models/small/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n")
        self.assertIn(b" 413 ", s.recv(100))
        s.close()
        s = socket.create_connection(("127.0.0.1", self.server.port), 10) # and in pieces, without saying how long it is
        s.sendall(b"POST /v2/models/small/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        self.assertEqual(self.pour(s, b"1000\r\n" + b"x" * 4096 + b"\r\n"), True)
        s.close()
        self.check_alive()

    def pour(self, s, data):
        """Sends without end; true once the server has had enough."""
        end = time.monotonic() + 20
        try:
            while time.monotonic() < end:
                s.sendall(data)
        except OSError:
            return True
        return False

    def exchange(self, data, seconds=10):
        """All that comes back until the server closes."""
        s, answer = socket.create_connection(("127.0.0.1", self.server.port), seconds), b""
        try:
            s.sendall(data)
            while more := s.recv(65536):
                answer += more
        except OSError:
            pass
        s.close()
        return answer

    def test_bodies_whose_end_two_headers_tell(self):
        body = json.dumps(request(numbers(1))).encode()
        head, length = b"POST /v2/models/small/infer HTTP/1.1\r\nHost: x\r\n", b"Content-Length: %d\r\n" % len(body)
        pieces = b"Transfer-Encoding: chunked\r\n"
        chunks = b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"
        for headers, data in ((length + b"Content-Length: 3\r\n", body), (length + pieces, chunks), (pieces + b"Transfer-Encoding: gzip\r\n", chunks),
                              (b"Transfer-Encoding: gzip\r\n", body), (length.replace(b":", b" :"), body), (pieces.replace(b":", b"\t:"), chunks)):
            answer = self.exchange(head + headers + b"\r\n" + data)
            self.assertEqual(answer[:13], b"HTTP/1.1 400 ", (headers, answer))
            self.assertEqual(answer.count(b"HTTP/1.1 "), 1)
        answer = self.exchange(head + pieces + b"Connection: close\r\n\r\n" + chunks)
        self.assertEqual(answer[:13], b"HTTP/1.1 %d " % self.in_pieces, answer)
        self.check_alive()

    def test_lengths_that_are_none(self):
        for length in (b"abc", b"-5", b"5x", b"0x10"):
            answer = self.exchange(b"POST /v2/models/small/infer HTTP/1.1\r\nHost: x\r\nContent-Length: " + length + b"\r\n\r\n")
            self.assertEqual(answer[:13], b"HTTP/1.1 400 ", (length, answer))
        self.check_alive()

    def test_requests_one_behind_the_other_are_answered_in_their_order(self):
        data = b""
        for k in range(6):
            body = json.dumps(request(numbers(k), id=str(k))).encode()
            data += b"POST /v2/models/small/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        self.assertEqual(re.findall(rb'"id": "(\d)"', self.exchange(data)), [b"%d" % k for k in range(6)])
        self.check_alive()

    def test_long_bodies_for_other_addresses(self):
        for path in (b"/metrics", b"/v2", b"/nowhere"):
            answer = self.exchange(b"POST " + path + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n")
            self.assertEqual(answer[:13], b"HTTP/1.1 413 ", (path, answer))
        self.assertEqual(self.server.get("/v2/models/small%00/infer")[0], 404)

    def test_compressed_bodies(self):
        code, words = self.server.infer(request(numbers(1)), {"Content-Encoding": "gzip"})
        self.assertEqual(code, 415)
        self.check_alive()

    def test_what_is_no_http(self):
        for data in (b"\0" * 5000, b"GET\r\n\r\n", b"POST /v2/models/small/infer HTTP/9.9\r\n\r\n", b"\x16\x03\x01" + b"\xff" * 200,
                     b"GET /v2 HTTP/1.1\r\n" + b"A: " + b"b" * 100000 + b"\r\n\r\n", b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
                     b"POST /v2/models/small/infer HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n"):
            s = socket.create_connection(("127.0.0.1", self.server.port), 10)
            try:
                s.sendall(data)
                answer = s.recv(200)
                self.assertNotIn(b" 200 ", answer[:20])
            except OSError:
                pass # cut off
            s.close()
            self.check_alive()

    def test_slow_clients_are_cut_off(self):
        slow = []
        for k in range(6): # three in the headers, three in the body; a byte now and then is not enough
            s = socket.create_connection(("127.0.0.1", self.server.port), 10)
            s.sendall(b"POST /v2/models/small/infer HTTP/1.1\r\nHost: x\r\n" + (b"Content-Length: 1000\r\n\r\n{" if k % 2 else b""))
            slow.append(s)
        begin, open_ = time.monotonic(), set(range(6))
        while open_ and time.monotonic() - begin < 15:
            self.check_alive() # the others are answered meanwhile
            for k in list(open_):
                try:
                    slow[k].sendall(b"a")
                    slow[k].settimeout(0.01)
                    if not slow[k].recv(1):
                        open_.discard(k)
                except socket.timeout:
                    pass
                except OSError:
                    open_.discard(k)
            time.sleep(0.2)
        for s in slow:
            s.close()
        self.assertEqual(open_, set())
        self.assertGreater(time.monotonic() - begin, 0.9)

    def test_clients_that_leave_before_the_answer(self):
        body = json.dumps(request(numbers(1))).encode()
        for _ in range(50):
            s = socket.create_connection(("127.0.0.1", self.server.port), 10)
            s.sendall(b"POST /v2/models/small/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            s.close()
        self.check_alive()
        begin = time.monotonic()
        while self.server.metrics()["moirai_in_flight_requests"] and time.monotonic() - begin < 60:
            time.sleep(0.05) # what was taken before its client had left is computed to its end
        self.assertEqual(self.server.metrics()["moirai_in_flight_requests"], 0)


class Crowd(Case):
    options = ("--connections", "8", "--idle", "100")

    def test_silent_clients_keep_nobody_out(self):
        silent = []
        for _ in range(40):  # five times as many as there are connections
            silent.append(socket.create_connection(("127.0.0.1", self.server.port), 10))
            silent[-1].sendall(b"POST /v2/models/small/infer HTTP/1.1\r\nHost: x\r\n")
        self.check_alive()
        for s in silent:
            s.close()


class Copies(Case):
    """The plan on all three devices, and the network whole on two of them: every client has its own answers."""
    plan = {"copies": "BC", "slots": (3, 1, 2)}

    def test_many_clients_have_their_own_answers(self):
        loads = [Load(self.server, seed, 60) for seed in range(10)]
        for load in loads:
            load.join()
            self.assertEqual((load.codes, load.wrong, load.refused), ({200: 60}, [], 0))
        metrics = self.server.metrics()
        self.assertEqual((metrics["moirai_waiting_requests"], metrics["moirai_in_flight_requests"]), (0, 0))
        for device in "ABC":
            self.assertGreater(metrics['moirai_device_busy_seconds_total{device="%s"}' % device], 0)

    def test_a_request_that_a_device_can_not_compute_harms_no_other(self):
        others = [Load(self.server, seed, 30) for seed in range(4)]
        for k in range(20):
            code, words = self.server.infer(request(numbers(k), (0, 1, 2, 64 + k)))
            self.assertEqual(code, 500, words)
            self.assertIn("indices element out of data bounds", words)
        for load in others:
            load.join()
            self.assertEqual((load.codes, load.wrong, load.refused), ({200: 30}, [], 0))


    def test_ranks_are_as_urgent_as_anybody(self):
        """No thread of theirs has another priority than the server, also where they may take one (as root)."""
        self.check_alive()
        ranks, nice = ranks_of(self.server.at("w")), []
        for path in [path for rank in ranks for path in glob.glob("/proc/%d/task/*/stat" % rank)]:
            with open(path) as f:
                nice.append(int(f.read().rsplit(")", 1)[1].split()[16]))
        self.assertGreater(len(nice), len(ranks))
        self.assertEqual(set(nice), {os.getpriority(os.PRIO_PROCESS, self.server.process.pid)})


class Shares(Copies):
    """The same copies, which take turns."""
    plan = {"copies": "BC"}

    def test_copies_take_turns(self):
        """A alone has a part of the first copy only: one request in three."""
        def busy():
            return [self.server.metrics().get('moirai_device_busy_seconds_total{device="%s"}' % d, 0) for d in "ABC"]
        seen, last = [], busy()
        for k in range(9):
            self.check_alive()
            now = busy()
            seen.append("".join(d for d, a, b in zip("ABC", last, now) if b > a))
            last = now
        self.assertEqual(sorted(seen), ["ABC"] * 3 + ["B"] * 3 + ["C"] * 3)


class Named(Case):
    """A name that addresses have in escapes, and one device that does it all."""
    options = ("--name", "my m\u00f6del/1")
    plan = {"pins": ("--pin", "*=A")}

    def test_the_address_that_is_printed_is_the_model_s(self):
        said = self.server.text("out.txt")
        path = re.search(r"http://[^/]*(/v2/models/\S*) on 1 device, ", said).group(1)
        self.assertEqual(path, "/v2/models/my%20m%C3%B6del%2F1")
        for other in ("", "/ready", "/versions/1"):
            self.assertEqual(self.server.get(path + other)[0], 200)
        self.assertEqual(json.loads(self.server.get(path)[1])["name"], "my m\u00f6del/1")
        self.assertEqual(self.server.get(path + "/infer", "POST", json.dumps(request(numbers(1))))[0], 200)
        self.assertEqual(self.server.get("/v2/models/my+m%C3%B6del%2F1")[0], 404)

    def test_addresses_and_versions_that_are_none(self):
        def status(data):
            s = socket.create_connection(("127.0.0.1", self.server.port), 10)
            s.sendall(data)
            try:
                return s.recv(13)
            finally:
                s.close()
        self.assertEqual(status(b"GET /" + b"a" * 40000 + b" HTTP/1.1\r\n\r\n")[9:], b"414 ")
        self.assertEqual(status(b"GET /v2 HTTP/9.9\r\nHost: x\r\n\r\n")[9:], b"505 ")


class Buckets(Case):
    """Plans for x of 64, 8 and 96 numbers: a file each for the first two, and one with a symbolic dimension."""

    groups = 3

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="moirai-serve")
        at = cls.folder.name + "/"
        with open(at + "c.json", "w") as f:
            json.dump(CLUSTER, f)
        write_model(at + "eight.onnx", 8)
        write_model(at + "any.onnx", "n")
        eight = plan_of(MOIRAI, at + "eight.onnx", at, "eight.json", "--pin", "*=B")
        large = plan_of(MOIRAI, at + "any.onnx", at, "large.json", "--dim", "n=96", "--pin", "Relu*=C")
        cls.server = Server(MOIRAI, at, "--no-fallback", "--bucket", eight + "," + at + "eight.onnx", "--bucket", large + "," + at + "any.onnx,n=96")

    def test_requests_go_to_the_plan_of_their_shapes(self):
        for n in (64, 8, 96, 8, 64):
            x = numbers(n)[:n] if n <= N else numbers(3) + numbers(4)[: n - N]
            code, answer = self.server.infer(request(x))
            self.assertEqual(code, 200, answer)
            self.assertEqual([o["shape"] for o in answer["outputs"]], [[n], [4], [n]])
            self.assertEqual(outputs(answer), expected(x))

    def test_it_is_said(self):
        self.assertIn("plans for 3 shapes", self.server.text("out.txt"))

    def test_another_shape_is_refused_and_not_padded(self):
        code, text = self.server.infer(request(numbers(1)[:7]))
        self.assertEqual((code, text), (400, "there is no plan for these shapes, and nothing is padded: there are plans for x [64], i [4]; x [8], i [4]; x [96], i [4]"))
        wrong = request(numbers(1)[:8])
        wrong["inputs"][1]["datatype"] = "INT32"
        self.assertEqual(self.server.infer(wrong), (400, "input 'i' has datatype INT32, the model has INT64"))

    def test_what_is_served(self):
        self.assertEqual(self.server.get("/v2/models/small/ready")[0], 200)
        model = json.loads(self.server.get("/v2/models/small")[1])
        self.assertEqual([t["shape"] for t in model["inputs"] + model["outputs"]], [[-1], [4], [-1], [4], [-1]])
        self.assertEqual([[t["shape"] for t in b["inputs"]] for b in model["buckets"]], [[[64], [4]], [[8], [4]], [[96], [4]]])

    def test_metrics_of_all(self):
        before = self.server.metrics()
        for n in (8, 64):
            self.assertEqual(self.server.infer(request(numbers(n)[:n]))[0], 200)
        metrics = self.server.metrics()
        self.assertEqual(metrics['moirai_requests_total{code="200"}'], before.get('moirai_requests_total{code="200"}', 0) + 2)
        self.assertEqual(metrics["moirai_groups_total"], self.groups)
        self.assertEqual(metrics['moirai_device_up{device="B",bucket="1"}'], 1)

    def test_many_clients_of_all_shapes(self):
        loads = [Load(self.server, seed) for seed in range(3)]
        for k in range(40):
            x = numbers(k)[:8]
            code, answer = self.server.infer(request(x))
            self.assertEqual((code, outputs(answer)), (200, expected(x)))
        for load in loads:
            load.stopping = True
        for load in loads:
            load.join()
            self.assertEqual((set(load.codes), load.wrong), ({200}, []))


class Pressure(Case):
    options = ("--queue", "1", "--in-flight", "1", "--connections", "200")

    def test_more_than_may_wait_are_refused_and_the_others_answered(self):
        loads = [Load(self.server, seed, 40) for seed in range(24)]
        for load in loads:
            load.join()
            self.assertEqual((load.wrong, load.refused), ([], 0))
        self.assertEqual(total(loads, 200) + total(loads, 429), 24 * 40)
        self.assertGreater(total(loads, 200), 0)
        self.assertGreater(total(loads, 429), 0)
        self.assertEqual(self.server.metrics()['moirai_requests_total{code="429"}'], total(loads, 429))


class End(unittest.TestCase):
    def test_what_was_accepted_is_answered(self):
        with tempfile.TemporaryDirectory(prefix="moirai-serve") as folder, Server(MOIRAI, folder, "--no-fallback") as server:
            loads = [Load(server, seed) for seed in range(12)]
            time.sleep(1)
            while total(loads, 200) <= 50 and server.process.poll() is None: # a second is not enough on a busy machine
                time.sleep(0.1)
            self.assertEqual(server.stop(), 0, server.text())
            for load in loads:
                load.stopping = True
                load.join()
                self.assertEqual(load.wrong, [])
            accepted = int(re.search(r"(\d+) requests were accepted, and all of them answered", server.text()).group(1))
            self.assertEqual(total(loads, 200), accepted)
            self.assertGreater(accepted, 50)
            self.assertNotIn("lost", server.text())
            self.assertEqual(server.ranks(), [])

    def test_what_can_not_be_served(self):
        with tempfile.TemporaryDirectory(prefix="moirai-serve") as folder, Server(MOIRAI, folder, "--no-fallback") as server:
            def fails(*words):
                r = subprocess.run([MOIRAI, "serve", server.at("plan.json"), server.at("small.onnx"), "--rules", "none", "-q", *words], capture_output=True, text=True, timeout=600)
                return r.returncode, r.stderr
            code, words = fails("--port", str(server.port))
            self.assertEqual(code, 1)
            self.assertIn("can't listen on 127.0.0.1 port %d" % server.port, words)
            code, words = fails("--address", "nowhere", "--port", "0")
            self.assertEqual(code, 2)
            self.assertIn("is no IP address", words)
            again = server.at("plan.json") + "," + server.at("small.onnx")
            self.assertEqual(fails("--port", "0", "--bucket", again), (3, "moirai: model 'small': two plans are for the same shapes, as input 'x' of [64]\n"))
            code, words = fails("--port", "0", "--bucket", server.at("plan.json"))
            self.assertEqual(code, 2)
            self.assertIn("expected PLAN,MODEL, then dimensions as NAME=N", words)


if __name__ == "__main__":
    MOIRAI = sys.argv.pop(1)
    unittest.main()
