"""A module behind HTTP, with the Open Inference Protocol that `moirai serve` speaks for ONNX files (docs/serve.md), by
the standard library alone.

A thread per client reads, waits and answers. Who takes too long to send a request, or to take its answer, is cut off,
be it a byte at a time: another thread looks at the clock.
"""

from __future__ import annotations

import json
import signal
import socket
import socketserver
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Mapping
from urllib.parse import quote, unquote_to_bytes

import torch

from .. import __version__
from .._lib import InputError, UsageError
from ..cluster import Cluster
from ..plan import Plan
from .capture import Captured, remembered
from .choose import plan as make_plan
from .distribute import Distributed, distribute
from .protocol import VERSION, Model, Models
from .serving import Job, Keeper, Line, Metrics
from .workers import Workers

_CROWDED_S = 1.0  # where all connections are taken, a client without a whole request has so long, not `idle`: silent ones keep nobody out


class Refusal(Exception):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: str, port: int, owner: Server) -> None:
        self.owner = owner
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        super().__init__((address, port), _Handler)

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)  # HTTPServer asks for the host's name, which may take its time

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self.owner.enter(request):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client that is gone

    def shutdown_request(self, request: Any) -> None:
        self.owner.leave(request)
        super().shutdown_request(request)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Http
    unread = False  # whether there may be something that nobody reads

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def version_string(self) -> str:
        return "moirai"

    # ---- answers

    def _respond(self, code: int, body: bytes, kind: str = "application/json", json_bytes: int | None = None) -> None:
        self.server.owner.allow(self.connection)
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if json_bytes is not None:
            self.send_header("Inference-Header-Content-Length", str(json_bytes))
        if code in (429, 503):
            self.send_header("Retry-After", "1")
        if code == 405:
            self.send_header("Allow", "POST" if self._address().endswith("/infer") else "GET, HEAD")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the standard library finds wrong with a request, too, is said in our way."""
        self.close_connection = self.unread = True
        self.request_version, self.command = "HTTP/1.1", self.command or ""
        text = message or self.responses.get(code, ("error",))[0]  # type: ignore[call-overload]
        self._respond(code, json.dumps({"error": " ".join(str(text).split())[:300]}).encode())

    # ---- requests

    def _address(self) -> str:
        """Without what follows a question mark, and without escapes; one with a zero inside is none and stays as it is."""
        path = self.path.partition("?")[0]
        return path if "%00" in path else unquote_to_bytes(path.encode("latin-1")).decode(errors="surrogateescape")

    def _handle(self) -> None:
        owner, begin = self.server.owner, time.monotonic()
        what = ""
        with owner.busy():
            try:
                self._look_at_the_end()
                what = owner.route(self._address(), self.command)
                if what == "infer":
                    self._infer(begin)
                    return
                self._skip_body()
                body, kind = owner.tell(what)
                self._respond(200, body, kind)
            except Refusal as refusal:
                if "/infer" in self._address():
                    owner.metrics.count(refusal.code, time.monotonic() - begin)
                if what != "infer":
                    self._skip_body()
                self._respond(refusal.code, json.dumps({"error": str(refusal)}).encode())

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = _handle

    def finish(self) -> None:
        """A client that still sends what we refused would not see the answer if we closed at once."""
        try:
            if self.unread:
                self.connection.shutdown(socket.SHUT_WR)
                left = self.server.owner.model.most_bytes
                while left > 0 and (data := self.connection.recv(65536)):
                    left -= len(data)
        except OSError:
            pass
        super().finish()

    def _look_at_the_end(self) -> None:
        """Where two headers say where a body ends, a proxy in front may believe the other one, and what follows is a
        request to one of them alone. What is announced to be too long is not waited for, whatever it is for."""
        lengths, codings = self.headers.get_all("Content-Length", []), self.headers.get_all("Transfer-Encoding", [])
        odd = bool(self.headers.defects or self.headers.get_payload())  # "Content-Length : 5": a length to others, to us the end
        if odd or len(lengths) + len(codings) > 1 or any(c.strip().lower() != "chunked" for c in codings):
            self.close_connection = self.unread = True
            words = "one of them, once, no blank before the colon of any header, and no coding but chunked"
            raise Refusal(400, f"Content-Length and Transfer-Encoding: {words}")
        most = self.server.owner.model.most_bytes
        if lengths and not (lengths[0].isascii() and lengths[0].isdigit()):
            self.close_connection = self.unread = True
            raise Refusal(400, f"Content-Length '{lengths[0][:40]}' is no number")
        if lengths and (len(lengths[0]) > 18 or int(lengths[0]) > most):
            self.close_connection = self.unread = True
            raise Refusal(413, f"the body has {lengths[0][:40]} bytes, a request of this model at most {most}")

    def _skip_body(self) -> None:
        """A body that nobody asked for is not read: what follows it would be taken for a request."""
        if self.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in self.headers:
            self.close_connection = self.unread = True

    def _infer(self, begin: float) -> None:
        owner = self.server.owner
        body = self._body()
        json_bytes = self.headers.get("Inference-Header-Content-Length")
        if json_bytes is not None and not (json_bytes.isascii() and json_bytes.isdigit() and len(json_bytes) < 19):
            raise Refusal(400, f"Inference-Header-Content-Length '{json_bytes[:40]}' is no number")
        owner.forgo(self.connection)
        try:
            which, given = owner.model.read(body, None if json_bytes is None else int(json_bytes))
        except InputError as error:
            raise Refusal(400, str(error)) from None
        job = Job(*given, begin, owner.timeout)
        del body, given
        owner.lines[which].ask(job)
        if job.code != 200:
            raise Refusal(job.code, job.text)
        answer, of_json = owner.model.models[which].write(job.wanted, job.result)
        owner.metrics.count(200, time.monotonic() - begin)
        self._respond(200, answer, "application/json" if of_json is None else "application/octet-stream", of_json)

    def _body(self) -> bytearray:
        length = self.headers.get("Content-Length", "")
        keep, self.close_connection, self.unread = self.close_connection, True, True  # until all of it is read
        if self.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise Refusal(415, "the body is compressed (Content-Encoding), which is not known here")
        if "Transfer-Encoding" in self.headers or not length:
            raise Refusal(411, "a request needs a Content-Length")
        body = bytearray(int(length))
        at, view = 0, memoryview(body)
        while at < len(body):
            n = self.rfile.readinto(view[at:])  # type: ignore[attr-defined]
            if not n:
                raise ConnectionError("the client is gone")
            at += n
        view.release()
        self.close_connection, self.unread = keep, False
        return body


class Server:
    """Answers requests from the moment when it is made until `close`. `url` is the model's address. `runs` are of the same
    model for other shapes, one of `models` each; `keeper` starts them again and ends them, where they are ours."""

    def __init__(self, runs: list[Distributed], models: Models, *, address: str, port: int, queue: int, timeout: float,
                 idle: float, connections: int, keeper: Keeper | None) -> None:  # fmt: skip
        self.model, self.timeout = models, timeout
        self._idle, self._connections, self._keeper = idle, connections, keeper
        self._lock = threading.Condition()
        self._clients: dict[Any, float | None] = {}  # socket -> when it is cut off
        self._n_busy = 0
        self._closed = False
        try:
            self._http = _Http(address, port, self)
        except (OSError, OverflowError) as error:
            raise UsageError(f"can't listen on {address} port {port}: {error}") from None
        self.address, self.port = address, int(self._http.server_address[1])
        host = f"[{address}]" if ":" in address else address
        self.url = f"http://{host}:{self.port}/v2/models/{quote(models.name, safe='')}"
        self.metrics = Metrics(runs)
        self.lines = [Line(run, queue, keeper.lost if keeper and keeper.able else None) for run in runs]
        self.line = self.lines[0]
        if keeper:
            keeper.lines, keeper.watch = self.lines, self.metrics.watch
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.1,), daemon=True)
        self._thread.start()
        threading.Thread(target=self._look_at_the_clock, daemon=True).start()

    @property
    def run(self) -> Distributed:
        """What answers, of the first shapes; another one after a loss."""
        return self.line.run

    # ---- addresses

    def route(self, path: str, method: str) -> str:
        name = self.model.name
        fixed = {"/v2": "server", "/v2/": "server", "/v2/health/live": "live", "/v2/health/ready": "ready",
                 "/metrics": "metrics"}  # fmt: skip
        what = fixed.get(path, "")
        if not what and (path == "/v2/models" or path.startswith("/v2/models/")):
            what = self._of_model(path[len("/v2/models") :], name)
        if not what:
            raise Refusal(404, f"there is nothing at this address: see /v2, /v2/models/{name} and /metrics")
        if method != ("POST" if what == "infer" else "GET") and (what == "infer" or method != "HEAD"):
            raise Refusal(405, f"this address takes {'POST' if what == 'infer' else 'GET'}")
        return what

    @staticmethod
    def _of_model(rest: str, name: str) -> str:
        if rest != f"/{name}" and not rest.startswith(f"/{name}/"):
            raise Refusal(404, f"there is no such model: this server has '{name}'")
        tail = rest[1 + len(name) :]
        if tail == "/versions" or tail.startswith("/versions/"):
            version, _, tail = tail[len("/versions/") :].partition("/")
            if version != VERSION:
                raise Refusal(404, f"model '{name}' has version {VERSION} only")
            tail = f"/{tail}" if tail else ""
        return {"": "model", "/ready": "ready", "/infer": "infer"}.get(tail, "")

    def tell(self, what: str) -> tuple[bytes, str]:
        if what == "metrics":
            return self.metrics.page(self.lines, self._keeper.n_groups if self._keeper else 1).encode(), "text/plain; version=0.0.4"
        if what == "ready" and not all(line.ready for line in self.lines):
            raise Refusal(503, "no devices are ready")
        about = {"name": "moirai", "version": __version__, "extensions": ["binary_tensor_data"]}
        found: Mapping[str, Any] = about if what == "server" else self.model.about if what == "model" else {}
        return json.dumps(found).encode(), "application/json"

    # ---- clients

    def enter(self, client: Any) -> bool:
        """Waits for a place, as those behind it do; false: the server ends."""
        with self._lock:
            self._lock.wait_for(lambda: self._closed or len(self._clients) < self._connections)
            if self._closed:
                return False
            self._clients[client] = time.monotonic() + self._idle
            return True

    def leave(self, client: Any) -> None:
        with self._lock:
            self._clients.pop(client, None)
            self._lock.notify_all()

    def allow(self, client: Any) -> None:
        """From now on it has its time to take an answer and to send another request."""
        with self._lock:
            self._clients[client] = time.monotonic() + self._idle

    def forgo(self, client: Any) -> None:
        """It waits for us."""
        with self._lock:
            self._clients[client] = None

    def busy(self) -> _Busy:
        return _Busy(self)

    def count_busy(self, n: int) -> None:
        with self._lock:
            self._n_busy += n
            self._lock.notify_all()

    def _cut_off(self, late_at: float | None) -> None:
        with self._lock:
            for client, limit in self._clients.items():
                if late_at is None or (limit is not None and limit < late_at):
                    try:
                        client.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        pass

    def _look_at_the_clock(self) -> None:
        while not self._closed:
            time.sleep(min(self._idle / 4, 0.25))
            with self._lock:
                crowded = len(self._clients) >= self._connections
            self._cut_off(time.monotonic() + (max(self._idle - _CROWDED_S, 0) if crowded else 0))

    # ---- ending

    def wait(self, ready: Callable[[], object] | None = None) -> None:
        """Until SIGTERM or Ctrl-C, then `close`. For the main thread. `ready` is called once both are looked for: who is
        told of the server there may end it at any time."""
        stop = threading.Event()
        before = {s: signal.signal(s, lambda *_: stop.set()) for s in (signal.SIGTERM, signal.SIGINT)}
        try:
            if ready is not None:
                ready()
            stop.wait()
        finally:
            for s, handler in before.items():
                signal.signal(s, handler)
            self.close()

    def close(self) -> None:
        """Refuses what comes from now on (503), answers what was accepted, and stops to listen. Ends the ranks where
        they were started for it."""
        if self._closed:
            return
        for line in self.lines:
            line.close()
        with self._lock:
            self._lock.wait_for(lambda: not self._n_busy, self._idle)
            self._closed = True
            self._lock.notify_all()
        self._http.shutdown()
        self._http.server_close()
        self._cut_off(None)
        self._thread.join()
        if self._keeper:
            self._keeper.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Busy:
    def __init__(self, server: Server) -> None:
        self._server = server

    def __enter__(self) -> None:
        self._server.count_busy(1)

    def __exit__(self, *_: object) -> None:
        self._server.count_busy(-1)


def _close_all(runs: list[Distributed]) -> None:
    for run in runs:
        run.close()


def _captured_of(module: Any, plan: Plan | None, where: Any) -> tuple[Captured, Plan]:
    captured = module if isinstance(module, Captured) else remembered.get(module)
    if captured is None:
        raise UsageError(f"{type(module).__name__} was not captured: call moirai.torch.capture first")
    if plan is None:
        plan = make_plan(captured, where)
    return plan.captured or captured, plan


def _start(pairs: list[tuple[Captured, Plan]], cluster: Any, workers: Workers | None, options: Any) -> list[Distributed]:
    """A run for each, on the same ranks; where these were started here, the last one to be closed ends them."""
    ranks = workers if workers is not None else Workers(cluster)
    runs: list[Distributed] = []
    try:
        for captured, plan in pairs:
            run = distribute(captured, plan, workers=ranks, **options)
            assert isinstance(run, Distributed)
            runs.append(run)
        runs[-1]._own = workers is None
    except BaseException:
        for run in runs:
            run.close()
        if workers is None:
            ranks.close()
        raise
    return runs


def serve(
    module: Any,
    plan: Plan | None = None,
    *,
    cluster: Cluster | str | Mapping[str, Any] | None = None,
    workers: Workers | None = None,
    name: str | None = None,
    address: str = "127.0.0.1",
    port: int = 8000,
    queue: int = 64,
    timeout: float = 30,
    idle: float = 30,
    connections: int = 256,
    **options: Any,
) -> Server:
    """Answers requests over HTTP by the Open Inference Protocol, version 2, from now on; `Server.close` ends it.

    `module` is what `distribute` returned, or what it takes, with `plan` (None: one is made), `cluster` or `workers`,
    and its other `options`. For several shapes it is a list: of what `distribute` returned, or of (captured, plan); a
    request goes to the plan that has its shapes exactly. With `cluster`, ranks are started again where one is lost, and
    what was in flight is asked again. The settings are those of `moirai serve`: the model's `name`, where to listen (port
    0: one that is free), how many requests may wait beside those in flight, the seconds that a request may take, those
    that a client may take to send one or to take its answer, and how many clients there may be at a time.
    """
    wishes = [(x if isinstance(x, tuple) else (x, None)) for x in module] if isinstance(module, list) else [(module, plan)]
    if not wishes or (isinstance(module, list) and plan is not None):
        raise UsageError("a list of modules has one or more, each with its plan: [(captured, plan), ...]")
    if queue < 0 or timeout <= 0 or idle <= 0 or connections < 1:
        raise UsageError("queue must be 0 or more, timeout and idle more than 0, connections 1 or more")
    keeper = None
    if all(isinstance(m, Distributed) for m, _ in wishes):
        if any(p is not None for _, p in wishes) or cluster is not None or workers is not None or options:
            raise UsageError("the module is distributed already: plan, cluster, workers and options were settled there")
        runs = [m for m, _ in wishes]
    else:
        if (cluster is None) == (workers is None):
            raise UsageError("either cluster or workers says where to run")
        where = workers.cluster if workers is not None else cluster
        pairs = [_captured_of(m, p, where) for m, p in wishes]
        runs = _start(pairs, cluster, workers, options)

        keeper = Keeper((lambda: _start(pairs, cluster, None, options)) if workers is None else None, _close_all)
    try:
        models = Models([Model(run.captured, name or runs[0].captured.graph.name) for run in runs])
        return Server(runs, models, address=address, port=port, queue=queue, timeout=timeout, idle=idle,
                      connections=connections, keeper=keeper)  # fmt: skip
    except BaseException:
        if keeper:
            _close_all(runs)
        raise
