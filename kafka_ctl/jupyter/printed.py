"""Few messages for what a cell of the site prints: JupyterLab takes long for each message, however short it is.

A kernel of the site runs this file when it starts (`PYTHONSTARTUP`). Without it pyodide_kernel sends a message for each
`write`, of which a `print` has two, and a cell that prints a few hundred lines stops the page for seconds.
"""


def _send_together() -> None:
    from collections.abc import Callable
    from functools import partial
    from itertools import groupby
    from time import monotonic

    from pyodide_kernel.display import LiteDisplayPublisher, LiteStream
    from pyodide_kernel.interpreter import Interpreter
    from pyodide_kernel.kernel import PyodideKernel

    pause, at_once, runs, write = 0.1, 50, PyodideKernel.run, LiteStream.write
    sent, written, running = 0.0, 0, False
    texts: list[tuple[object, str]] = []

    def send(*_: object) -> None:
        nonlocal sent
        held = [*texts]
        texts.clear()
        for stream, parts in groupby(held, lambda part: part[0]):
            write(stream, "".join(text for _, text in parts))
        sent = monotonic()

    def hold(stream: object, text: object) -> None:
        nonlocal written
        texts.append((stream, str(text)))
        written += 1
        if not running or written <= at_once or monotonic() - sent >= pause:
            send()

    def after(act: Callable[..., object], *given: object, **named: object) -> object:
        send()
        return act(*given, **named)

    async def run(kernel: object, code: str) -> object:
        nonlocal running, written
        running, written = True, 0
        try:
            return await runs(kernel, code)
        finally:
            running = False
            send()

    LiteStream.write, LiteStream.flush, PyodideKernel.run = hold, send, run
    for name in ("publish", "clear_output"):
        act = getattr(LiteDisplayPublisher, name)
        setattr(LiteDisplayPublisher, name, lambda *given, act=act, **named: after(act, *given, **named))
    for name in ("input", "getpass"):
        asks = getattr(Interpreter, name)
        asking = asks.setter(lambda shell, ask, asks=asks: asks.fset(shell, partial(after, ask)))
        setattr(Interpreter, name, asking)


_send_together()
del _send_together
