"""Disables Nagle's algorithm (TCP_NODELAY) on the websockets of JupyterLab's kernels.

The kernel answers a click with several small messages. TCP holds the second back until the browser has acknowledged the
first, which it may put off for 40 ms (RFC 896 with RFC 1122, 4.2.3.2): half of the time that a click would take.
"""

from __future__ import annotations

from asyncio import Future

from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection


class PromptWebsocketConnection(ZMQChannelsWebsocketConnection):
    """Jupyter's own connection of a browser and a kernel, without that delay."""

    def connect(self) -> Future[None] | None:  # type: ignore[override]  # as its own parent does
        self.websocket_handler.set_nodelay(True)
        return super().connect()
