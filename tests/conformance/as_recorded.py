"""Play a story in the kit under the conditions of a recording of logs: who was late, and how long everything took.

When a controller goes, the recorder lets everybody but its successor stand still for a moment; who is late finds
another broker elected. And its processes and tools need seconds, so that the periodic check of the balance comes
earlier in a story than where everything takes milliseconds. Neither is what a controller decides: the first is done
here as the recorder does it, and for the second the kit waits before a command until as many checks have been made as
the recording has before what this command led to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kafka_ctl import Lab
from kafka_ctl.lab.story import Command
from tests.conformance.replay import Player

GOES = ("kill", "bounce", "expire_session", "pause", "disconnect")
"""What ends the session of a controller, other than its own shutdown, in which nobody stands still."""
STILL = 0.1
"""Seconds in which a successor is elected."""
CHECK = re.compile("hecking need to trigger")
LED_TO = {
    "create_topic": r"New topics: \[Set\((.*?)\)\]",
    "kill": r"deleted brokers: ?(\d+),",
    "start": r"Newly added brokers: ?(\d+),",
}
"""The line of a controller that tells of a command, and of what it was given first."""
LONGEST = 600
"""Seconds after which no check comes any more."""


class AsRecorded(Player):
    """Plays as the recorder did, whose brokers logged these lines."""

    def __init__(self, lab: Lab, logs: Mapping[int, Sequence[str]]) -> None:
        super().__init__(lab)
        lines = [line for log in logs.values() for line in log] if _checks(logs) == 1 else []
        self._before: dict[tuple[str, str], list[int]] = {}
        """By command and what it was given first, how many checks came before what it led to, each time."""
        seen = 0
        for line in lines:
            seen += CHECK.search(line) is not None
            for name, form in LED_TO.items():
                opening = name == "start" and not self._before
                if not opening and (found := re.search(form, line)):
                    self._before.setdefault((name, found[1]), []).append(seen)
        self._all = seen

    def play(self, *commands: Command) -> str:
        for command in commands:
            counts = self._before.get((command.name, str(command.args[0]) if command.args else ""))
            if counts:
                self._wait(counts.pop(0))
        late = self._late(commands)
        for broker in late:
            self.lab.delay("zookeeper", broker, STILL)
        reported = super().play(*commands)
        for broker in late:
            self.lab.delay("zookeeper", broker, 0)
        return reported

    def wait_to_the_end(self) -> None:
        """Let the last checks come that the recording has."""
        self._wait(self._all)

    def _wait(self, checks: int) -> None:
        """Let time pass until the balance has been checked so often."""
        for _ in range(LONGEST):
            if sum(r.kind == "controller" and r.action == "checking_balance" for r in self.lab.trace.records) >= checks:
                return
            self.lab.run_for(1)
        raise AssertionError(f"the recording has {checks} checks of the balance; the kit makes fewer")

    def _late(self, commands: Sequence[Command]) -> list[int]:
        """Those who hear later that there is no controller: all but the one whose session is the oldest."""
        acting = self.lab.controller
        deleted = any(command.name == "delete_controller" for command in commands)
        if acting is None or not (deleted or any(c.name in GOES and acting.id in c.args for c in commands)):
            return []
        ids = "/brokers/ids/"
        sessions = {int(path.removeprefix(ids)): z[2] for path, z in self.lab.znodes().items() if path.startswith(ids)}
        racing = [broker for broker in sorted(sessions, key=sessions.__getitem__) if deleted or broker != acting.id]
        return racing[1:]


def _checks(logs: Mapping[int, Sequence[str]]) -> int:
    """How many controllers have checked the balance."""
    return sum(any(CHECK.search(line) for line in log) for log in logs.values())
