"""Several administrators at the same time: their tools know nothing of each other and all write to ZooKeeper."""

from __future__ import annotations

from kafka_ctl.errors import BadInput, KafkaCtlError, UnknownName, short
from kafka_ctl.lab import story
from kafka_ctl.lab.commands import ADMIN, Commands, Operation, command
from kafka_ctl.lab.draw import Drawn, with_
from kafka_ctl.lab.menu import CLUSTER, Button, Field

TOOLS = (
    "create_topic", "add_partitions", "delete_topic", "elect_preferred", "elect_leaders", "reassign",
    "cancel_reassignment", "write_znode", "delete_znode", "delete_controller",
)  # fmt: skip
"""What administrators do with tools of their own."""


class ConcurrentCommands(Commands):
    """The part of a lab in which tools run side by side."""

    @command(
        Button(CLUSTER, "Tools at once…", "several administrators at the same moment, one command a line",
               (Field("commands", "Commands", "lines", "delete_topic orders\nadd_partitions orders 9"),),
               call=lambda _, given: (([line for line in given["commands"].splitlines() if line.strip()],), {})),
        drawn=Drawn(4, lambda d: with_([str(d.tool()) for _ in range(d.rng.randint(2, 3))])),
    )  # fmt: skip
    def at_once(self, commands: list[str]) -> list[str | None]:
        """Let several tools work at the same moment, each with a ZooKeeper session of its own.

        `commands` are lines as in a story, such as `["delete_topic orders", "add_partitions orders 9"]`. Returns why
        each of them was refused, None where it was not. BadInput for what no tool does.
        """
        if not isinstance(commands, list):
            raise BadInput(f"at_once cannot be given {short(commands)}; it is a list of commands, [...]")
        if odd := [text for text in commands if not isinstance(text, str)]:
            raise BadInput(
                f"at_once: a command cannot be {short(odd[0])}; it is a name with its arguments, as in a story"
            )
        lines = [line for text in commands for line in story.parse(text)]
        self._together = []
        try:
            for line in lines:
                if line.name not in TOOLS:
                    raise UnknownName("tool", line.name, TOOLS)
                tool = getattr(type(self), line.name).__wrapped__
                given = story.command(tool, line.args, line.kwargs)
                tool(self, *given.args, **given.kwargs)
            operations = self._together
        finally:
            self._together = None
        return self._world.run(self._all(operations))

    async def _all(self, operations: list[Operation]) -> list[str | None]:
        tasks = [self._world.clock.loop.create_task(self._alone(operation)) for operation in operations]
        return [await task for task in tasks]

    async def _alone(self, operation: Operation) -> str | None:
        """Do the work of one tool, as an administrator of its own."""
        admin = self._new_admin()
        ADMIN.set(admin)
        try:
            await operation()
        except KafkaCtlError as error:
            admin.record_refusal(error)
            return str(error)
        return None
