"""A server that is no broker: it answers ApiVersions and Metadata with copies of a cluster's answers.

A client that is given its address as `bootstrap.servers` finds the cluster through it and never needs it again, as long
as what it has learned holds.
"""

from __future__ import annotations

import socket
import socketserver
import threading

from kafka_ctl.errors import BadInput
from kafka_ctl.wire.client import ask, read_frame
from kafka_ctl.wire.codec import Message, decode_message, encode_message
from kafka_ctl.wire.listeners import HOST
from kafka_ctl.wire.schema import REQUEST, RESPONSE, api_key, message_type

COPIED = 4
"""The version of Metadata that the cluster is asked in: 0.11 and later have it, and its fields serve every version."""


class MetadataServer(socketserver.ThreadingTCPServer):
    """Serves copies of the metadata of the cluster at `bootstrap_servers`, on a free port, in threads of its own.

    `address` is for clients; `asked` has the name of every request, in order. `close` stops it; so does leaving `with`.
    With `advertised`, a host, the copies name it as the host of every broker, as a wrong `advertised.listeners` does.
    """

    allow_reuse_address = daemon_threads = True

    def __init__(self, bootstrap_servers: str, advertised: str | None = None) -> None:
        everything = {"topics": None, "allow_auto_topic_creation": False}
        self.copies = {
            "ApiVersions": ask(bootstrap_servers, "ApiVersions", 0, {}),
            "Metadata": ask(bootstrap_servers, "Metadata", COPIED, everything),
        }
        for broker in self.copies["Metadata"]["brokers"]:
            broker["host"] = advertised or broker["host"]
        self.asked: list[str] = []
        self.open: set[socket.socket] = set()
        super().__init__((HOST, 0), _Connection)
        self.address = f"{HOST}:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def reply(self, frame: bytes) -> bytes | None:
        """The response to a request; None for one that is not served: the connection is closed."""
        key, version = (int.from_bytes(frame[at : at + 2], "big", signed=True) for at in (4, 6))
        name = next((name for name in self.copies if api_key(name) == key), None)
        if name is None:
            return None
        self.asked.append(name)
        header, asked = decode_message(message_type(key, version, REQUEST), frame[4:])
        kind = message_type(key, version, RESPONSE)
        return encode_message(kind, {"correlation_id": header["correlation_id"]}, self._body(name, asked))

    def _body(self, name: str, asked: Message) -> Message:
        """The copy, of Metadata only the topics that were asked for."""
        copy = self.copies[name]
        wanted = asked.get("topics")
        if name != "Metadata" or wanted is None:
            return copy
        names = {topic["name"] for topic in wanted}
        return copy | {"topics": [topic for topic in copy["topics"] if topic["name"] in names]}

    def close(self) -> None:
        """Stop listening, and close every connection."""
        self.shutdown()
        self.server_close()
        for connection in list(self.open):
            connection.close()

    def __exit__(self, *error: object) -> None:
        self.close()


class _Connection(socketserver.StreamRequestHandler):
    server: MetadataServer

    def handle(self) -> None:
        self.server.open.add(self.connection)
        try:
            while (reply := self.server.reply(read_frame(self.rfile))) is not None:
                self.wfile.write(reply)
        except (OSError, EOFError, ValueError, BadInput):
            pass  # the client has gone, or we go, or its request cannot be read
        finally:
            self.server.open.discard(self.connection)
