"""Few messages for what a cell of the site prints: JupyterLab takes long for each message, however short it is.

A kernel of the site runs this file when it starts (`PYTHONSTARTUP`). Without it pyodide_kernel sends a message for each
`write`, of which a `print` has two, and a cell that prints a few hundred lines stops the page for seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def _send_together() -> Callable[[], None]:
    """Hold what is printed; returns the function that sends it."""
    from itertools import groupby
    from math import inf
    from time import monotonic

    from pyodide_kernel.display import LiteStream
    from pyodide_kernel.kernel import PyodideKernel

    pause, runs, write, sent = 0.1, PyodideKernel.run, LiteStream.write, 0.0
    at_once = inf  # the writes that are still sent at once
    texts: list[tuple[object, str]] = []

    def send(*_: object) -> None:
        nonlocal sent
        held = [*texts]
        texts.clear()
        for stream, parts in groupby(held, lambda part: part[0]):
            write(stream, "".join(text for _, text in parts))
        sent = monotonic()

    def hold(stream: object, text: object) -> None:
        nonlocal at_once
        texts.append((stream, str(text)))
        at_once -= 1
        if at_once >= 0 or monotonic() - sent >= pause:
            send()

    async def run(kernel: object, code: str) -> object:
        nonlocal at_once
        at_once = 50
        try:
            return await runs(kernel, code)
        finally:
            at_once = inf
            send()

    LiteStream.write, LiteStream.flush, PyodideKernel.run = hold, send, run
    return send


def _send_first(send: Callable[[], None]) -> None:
    """Send what was printed before a picture, and before a question."""
    from pyodide_kernel.display import LiteDisplayPublisher
    from pyodide_kernel.interpreter import Interpreter

    def after(act: Callable[..., object]) -> Callable[..., object]:
        def acting(*given: object, **named: object) -> object:
            send()
            return act(*given, **named)

        return acting

    for name in ("publish", "clear_output"):
        setattr(LiteDisplayPublisher, name, after(getattr(LiteDisplayPublisher, name)))
    for name in ("input", "getpass"):
        asks = getattr(Interpreter, name)
        setattr(Interpreter, name, asks.setter(lambda shell, ask, asks=asks: asks.fset(shell, after(ask))))


_send_first(_send_together())
del TYPE_CHECKING, annotations, _send_first, _send_together
