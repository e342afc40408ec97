"""Connections that can be cut: a TCP proxy on loopback before a broker's port, or between a broker and ZooKeeper.

Whose connection it is, the proxy sees by the process that owns its other end (Linux: `/proc`).
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any


class Proxy:
    """Forwards what arrives at `port` to another port of 127.0.0.1, unless its sender is cut off."""

    def __init__(self, target: int, whose: Callable[[int, int], Any]) -> None:
        self.target, self._whose = target, whose
        self._cut: set[Any] = set()
        self._open: list[tuple[Any, socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, who: Any) -> None:
        """Break the connections of `who`, and let it make no new ones."""
        with self._lock:
            self._cut.add(who)
            for owner, *ends in self._open:
                if owner == who:
                    _close(*ends)
            self._open = [each for each in self._open if each[0] != who]

    def heal(self) -> None:
        with self._lock:
            self._cut.clear()

    def close(self) -> None:
        with self._lock:
            _close(self._listener)
            for _, *ends in self._open:
                _close(*ends)
            self._open = []

    def _accept(self) -> None:
        while True:
            try:
                near, (_, port) = self._listener.accept()
            except OSError:
                return
            who = self._whose(port, self.port)
            with self._lock:
                far = None
                if who not in self._cut:
                    with suppress(OSError):
                        far = socket.create_connection(("127.0.0.1", self.target), timeout=5)
                if far is None:
                    _close(near)
                    continue
                far.settimeout(None)
                self._open.append((who, near, far))
            for ends in ((near, far), (far, near)):
                threading.Thread(target=_pump, args=ends, daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    _close(source, target)


def _close(*sockets: socket.socket) -> None:
    for each in sockets:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()


def owner(near: int, far: int, processes: dict[Any, int]) -> Any:
    """The one of `processes` (their pids) that has a connection from port `near` to port `far` of this machine."""
    ends = f":{near:04X}", f":{far:04X}"
    inodes = set()
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in Path("/proc/net", table).read_text(encoding="ascii").splitlines()[1:]:
                words = line.split()
                if words[1].endswith(ends[0]) and words[2].endswith(ends[1]):
                    inodes.add(f"socket:[{words[9]}]")
    for who, pid in processes.items():
        with suppress(OSError):
            for descriptor in os.listdir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    if os.readlink(f"/proc/{pid}/fd/{descriptor}") in inodes:
                        return who
    return None
