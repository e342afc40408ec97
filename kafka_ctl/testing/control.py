"""The control endpoint of a cluster for tests, over HTTP on 127.0.0.1.

    GET  /                       the calls, with their arguments
    GET  /state                  brokers, partitions, faults, as JSON
    GET  /story                  the commands so far, as a story that a lab can replay
    POST /kill?broker=1          any call, its arguments in the address or as JSON in the body
    POST /stop                   end the cluster

The answer to a call is JSON: `{"result": ...}` with status 200, or `{"error": "..."}` with 400 for a call that cannot
be, 404 for one that there is not, 405 for a wrong method, 503 for what did not come about. Pages in a browser are
refused.

Separate from `cli/commands.py` because that one only reads options.
"""

from __future__ import annotations

import inspect
import json
import threading
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl

from kafka_ctl.cluster import parse_int
from kafka_ctl.errors import BadInput, KafkaCtlError, Unavailable, UnknownName, short
from kafka_ctl.lab.lab import COMMANDS, Lab
from kafka_ctl.lab.story import json_or_text, plain
from kafka_ctl.testing.cluster import CALLS, KafkaCluster
from kafka_ctl.wire.listeners import HOST, reason

LARGEST = 1 << 20
"""Bytes of a body, at most."""
OBJECT = 'it must be an object such as {"broker": 1}'
PAGES: dict[str, Callable[[KafkaCluster], object]] = {
    "": lambda cluster: usage(),
    "state": KafkaCluster.state,
    "story": lambda cluster: cluster.lab.story,
}
KNOWN = sorted({*CALLS, *COMMANDS, "stop"})
"""The calls by name."""


class Server(ThreadingHTTPServer):
    """Listens at once; answers from `begin` on."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        self.stopped = threading.Event()
        self.cluster: KafkaCluster
        try:
            super().__init__((HOST, port), Handler)
        except OSError as error:
            text = f"port {port} of {HOST} cannot be listened at: {reason(error)}"
            raise Unavailable(f"{text}; port 0 takes a free one" if port else text) from None

    def begin(self, cluster: KafkaCluster) -> str:
        """Answer about this cluster; the address."""
        self.cluster = cluster
        threading.Thread(target=self.serve_forever, name="kafka-ctl-control", daemon=True).start()
        return f"http://{HOST}:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server

    def do_GET(self) -> None:
        """Show what there is."""
        name, _ = self._address()
        if name in KNOWN:
            self._answer(405, {"error": f"{name} is a call; send it with POST"})
        else:
            self._attempt(lambda: PAGES.get(name, partial(_unknown, name))(self.server.cluster))

    def do_POST(self) -> None:
        """Carry out a call."""
        name, _ = self._address()
        if name in PAGES:
            self._answer(405, {"error": f"{name or 'the list of calls'} is a page; ask for it with GET"})
        elif self._attempt(lambda: {"result": self._called(name)}) and name == "stop":
            self.server.stopped.set()  # only now: the process may end before an answer is sent

    def _address(self) -> tuple[str, str]:
        """The name in the address, and its arguments."""
        name, _, query = self.path.partition("?")
        return name.strip("/"), query

    def _called(self, name: str) -> object:
        if "Origin" in self.headers:
            raise BadInput("a page in a browser cannot call a cluster for tests")
        if name not in KNOWN:
            raise UnknownName("call", name, KNOWN)
        if name == "stop":
            return "stopped"
        return _plain(self.server.cluster.do(name, **self._arguments(name)))

    def _arguments(self, call: str) -> dict[str, object]:
        if "Transfer-Encoding" in self.headers:
            raise BadInput("a body in chunks cannot be read; send it whole, with its Content-Length")
        length = self.headers.get("Content-Length", "0")
        if (size := parse_int(length)) is None or size > LARGEST:
            raise BadInput(f"a body of {short(length)} bytes cannot be read; {LARGEST} at most")
        kinds = {name: str(each.annotation) for name, each in _parameters(call).items()}
        asked = parse_qsl(self._address()[1])
        if ("entity_type", "topics") in asked:  # a topic may be called 42; a broker is a number
            kinds["entity_name"] = "str"
        given: dict[str, object] = {name: _value(text, kinds.get(name, "")) for name, text in asked}
        text = self.rfile.read(size).decode("utf-8", "replace").strip()
        try:
            body = json.loads(text or "{}")
        except (ValueError, RecursionError) as error:
            raise BadInput(f"the body is not JSON: {error}; {OBJECT}") from None
        if not isinstance(body, dict):
            raise BadInput(f"the body cannot be {short(body)}; {OBJECT}")
        return given | body

    def _attempt(self, call: Callable[[], object]) -> bool:
        """Answer with what a call returns, or with its error; True if it succeeded."""
        try:
            self._answer(200, call())
            return True
        except KafkaCtlError as error:
            unknown = isinstance(error, UnknownName) and error.what in ("call", "page")
            self._answer(404 if unknown else 400 if isinstance(error, BadInput) else 503, {"error": str(error)})
            return False

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Refuse what is no request, or has another method, which Python finds."""
        if code == HTTPStatus.NOT_IMPLEMENTED:
            code, message = 405, f"{self.command} is no method of this server; GET asks for a page, POST makes a call"
        self._answer(code, {"error": message or HTTPStatus(code).phrase})

    def _answer(self, status: int, content: object) -> None:
        text = content if isinstance(content, str) else json.dumps(content, default=str) + "\n"
        kind = "text/plain" if isinstance(content, str) else "application/json"
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the terminal belongs to the program that started the cluster."""


def usage() -> str:
    """The calls with their arguments, as text."""
    lines = ["GET  /state", "GET  /story", "POST /stop"]
    for name in sorted({*CALLS, *COMMANDS}):
        lines.append(f"POST /{name:<24} {', '.join(map(_argument, _parameters(name).values()))}".rstrip())
    return "\n".join(lines) + "\n"


def _parameters(name: str) -> dict[str, inspect.Parameter]:
    """The arguments of a call."""
    found = dict(inspect.signature(getattr(KafkaCluster if name in CALLS else Lab, name)).parameters)
    found.pop("self", None)
    return found


def _argument(parameter: inspect.Parameter) -> str:
    optional = parameter.default is not inspect.Parameter.empty
    return f"{parameter.name}={parameter.default}" if optional else parameter.name


def _unknown(name: str, cluster: KafkaCluster) -> object:
    raise UnknownName("page", name, [*filter(None, PAGES)])


def _value(text: str, kind: str) -> object:
    """A value in an address for an argument of this kind: as JSON, or, as most texts are written, as itself."""
    value = json_or_text(text)
    fits = isinstance(value, str) or kind not in ("str", "str | None") or (value is None and kind != "str")
    return value if fits else text


def _plain(result: object) -> object:
    """A result as JSON holds it; a structure by its fields."""
    fields = getattr(result, "_asdict", partial(getattr, result, "__dict__", None))()
    try:
        return plain(fields if isinstance(fields, dict) else result)
    except (TypeError, ValueError):
        return str(result)
