"""Several administrators at the same time: their tools know nothing of each other and all write to ZooKeeper."""

from __future__ import annotations

from kafka_ctl.errors import BadInput, KafkaCtlError, UnknownName
from kafka_ctl.lab import checks, story
from kafka_ctl.lab.admin import Admin
from kafka_ctl.lab.commands import ADMIN, Commands, Work, command

TOOLS = (
    "create_topic", "add_partitions", "delete_topic", "elect_preferred", "reassign", "cancel_reassignment",
    "write_znode", "delete_znode", "delete_controller",
)  # fmt: skip
"""What administrators do with tools of their own."""


class Together(Commands):
    """The part of a lab in which tools run side by side."""

    @command
    def at_once(self, commands: list[str]) -> list[str | None]:
        """Let several tools work at the same moment, each with a ZooKeeper session of its own.

        `commands` are lines as in a story, such as `["delete_topic orders", "add_partitions orders 9"]`. Returns why
        each of them was refused, None where it was not. BadInput for what no tool does.
        """
        if not isinstance(commands, list):
            raise BadInput(f"at_once cannot be given {commands!r}; it is a list of commands, [...]")
        lines = [line for text in commands for line in story.parse(checks.text("a command", text))]
        self._together = []
        try:
            for line in lines:
                if line.name not in TOOLS:
                    raise UnknownName("tool", line.name, TOOLS)
                getattr(type(self), line.name).__wrapped__(self, *line.args, **line.kwargs)
            works = self._together
        except TypeError as error:
            raise BadInput(f"at_once: {error}") from None
        finally:
            self._together = None
        return self._world.run(self._all(works))

    async def _all(self, works: list[Work]) -> list[str | None]:
        tasks = [self._world.clock.loop.create_task(self._alone(work)) for work in works]
        return [await task for task in tasks]

    async def _alone(self, work: Work) -> str | None:
        """Do the work of one tool, as an administrator of its own."""
        admin = Admin(self._world.store, self._world.trace, self._world.random, self.generation)
        ADMIN.set(admin)
        try:
            await work()
        except KafkaCtlError as error:
            admin.record_refusal(error)
            return str(error)
        return None
