"""A small process between the lab and its Java server, which must not outlive the lab.

It runs on its own (`python supervisor.py FOLDER LOG COMMAND...`) and needs the standard library only. Its
parent holds the other end of standard input. Each line there is an order, answered by a line on standard
output:

    start    run the command, its output goes to LOG     -> `running`, or `failed REASON`
    state                                                -> `running`, or `ended STATUS`
    kill     end the server the hard way (kill -9)       -> `ended STATUS`

When standard input ends - because the parent closed it, or because it was itself killed, however hard -
the server is killed and FOLDER removed. A pipe's end is noticed on every system, which is why it is a pipe.
Forks of the parent hold the pipe too, and may outlive it: where there are forks, an orphan knows that it is one.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path


class Supervisor:
    """Obeys the orders for one server command."""

    def __init__(self, folder: Path, log: Path, command: list[str]) -> None:
        self.folder, self.log, self.command = folder, log, command
        self.server: subprocess.Popen[bytes] | None = None

    def start(self) -> str:
        with self.log.open("ab") as log:
            try:
                self.server = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            except OSError as error:
                return f"failed {error}"
        return self.state()

    def state(self) -> str:
        status = self.server.poll() if self.server else 0
        return "running" if status is None else f"ended {status}"

    def kill(self) -> str:
        if self.server:
            self.server.kill()
            self.server.wait()
        return self.state()

    def end(self) -> None:
        """Leave nothing behind. Where open files are locked, a folder may need a second try."""
        self.kill()
        for _ in range(50):
            shutil.rmtree(self.folder, ignore_errors=True)
            if not self.folder.exists():
                return
            time.sleep(0.1)


def end_with(parent: int, supervisor: Supervisor) -> None:
    """Look every second whether another process has become our parent."""
    while os.getppid() == parent:
        time.sleep(1)
    supervisor.end()
    os._exit(0)


def main(folder: str, log: str, *command: str) -> None:
    """Obey orders from standard input until it ends; then nothing of the server is left."""
    supervisor = Supervisor(Path(folder), Path(log), list(command))
    for number in (signal.SIGINT, signal.SIGTERM):  # asked for by name: the parent may have it ignored
        signal.signal(number, lambda *_: sys.exit())
    threading.Thread(target=end_with, args=(os.getppid(), supervisor), daemon=True).start()
    orders = {"start": supervisor.start, "state": supervisor.state, "kill": supervisor.kill}
    try:
        for line in sys.stdin:
            print(orders[line.strip()](), flush=True)
    except OSError:
        pass  # no reader of the answer is left
    finally:
        supervisor.end()


if __name__ == "__main__":
    main(*sys.argv[1:])
