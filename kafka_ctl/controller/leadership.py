"""Who is controller: the race for `/controller`, its epoch, and giving it up.

Whoever creates the ephemeral znode `/controller` is controller; when it vanishes, all race again. The epoch in
`/controller_epoch` rises with each controller, so that brokers can tell an old one's requests from a new one's.
Kafka 2.0.1: controller/KafkaController.scala, elect, triggerControllerMove
"""

from __future__ import annotations

from kafka_ctl.controller import listeners
from kafka_ctl.controller.environment import Environment
from kafka_ctl.errors import BadInput, ControllerMoved, KafkaCtlError, NodeExists
from kafka_ctl.zookeeper.store import Create, Delete, Multi, Set
from kafka_ctl.zookeeper.znodes import ControllerEpochZNode, ControllerZNode

FIRST_EPOCH = 1
FIRST_EPOCH_ZK_VERSION = 1
"""What the first controller takes for the version of the znode it has just created (it is 0: Kafka's quirk)."""


async def startup(c: Environment) -> None:
    await listeners.watch_controller(c)
    await elect(c)


async def controller_change(c: Environment) -> None:
    """`/controller` appeared or changed: note who it is, and resign if it is somebody else now."""
    was_elected = c.active_id == c.id
    await listeners.watch_controller(c)
    c.active_id = await c.zk.controller_id()
    if was_elected and c.active_id != c.id:
        await c.resign()


async def noticed_change(c: Environment) -> None:
    """The watch on `/controller` has fired. In 0.10 the ZooKeeper client reads the znode again and reports a deletion
    if it is gone; since then, a missed deletion triggers no election until the next change (KAFKA-13407)."""
    await controller_change(c)
    if c.active_id == -1 and not c.generation.single_threaded:
        await elect(c)


async def reelect(c: Environment) -> None:
    """`/controller` vanished, or our session is new: compete."""
    await controller_change(c)
    await elect(c)


async def new_session(c: Environment) -> None:
    """Our session is new: compete; in 0.10 after resigning, unless `/controller` is ours again already (KAFKA-4229)."""
    if c.generation.single_threaded:
        await reelect(c)
    elif c.generation.skips_own_reelection and await c.zk.controller_id() == c.id:
        c.say("reelection_skipped")
    else:
        await listeners.watch_controller(c)
        c.active_id = -1
        await c.resign()
        await elect(c)


async def elect(c: Environment) -> None:
    """Try to become controller; whoever finds one elected already stops."""
    async with c.locked():
        await _elect(c)


async def _elect(c: Environment) -> None:
    c.active_id = await c.zk.controller_id()
    if c.active_id != -1:
        c.say("already_elected", elected=c.active_id)
        return
    try:
        data = ControllerZNode.encode(c.id, int(c.clock.now() * 1000))
        if c.generation.fences_writes:
            c.context.epoch, c.context.epoch_zk_version = await _register_with_epoch(c, data)
            c.zk.fence, c.context.elected = c.context.epoch_zk_version, True
            c.active_id = c.id
            c.say("elected", epoch=c.context.epoch, zk_version=c.context.epoch_zk_version)
        else:
            await c.zk.create_ephemeral(ControllerZNode.path(), data)
            c.say("elected")
            c.active_id = c.id
        await c.take_over()
    except ControllerMoved as error:
        if not c.generation.fences_writes:
            c.say("election_failed", error=str(error))
            await trigger_move(c)
            return
        await controller_change(c)
        c.say("other_elected" if c.active_id != -1 else "elected_and_resigned", elected=c.active_id)
    except NodeExists:
        c.active_id = await c.zk.controller_id()
        if c.active_id != -1:
            c.say("other_elected", elected=c.active_id)
        else:
            c.say("elected_and_resigned")
    except KafkaCtlError as error:
        c.say("election_failed", error=str(error))
        if isinstance(error, BadInput):
            c.last_election = (len(c.trace), str(error))
        await trigger_move(c)


async def trigger_move(c: Environment) -> None:
    """Resign and delete `/controller`; since writes are fenced, only after looking whether it still is ours.

    In 0.10 only the znode goes, and the one that was forced to resign goes on until it is elected anew.
    """
    if not c.generation.fences_writes:
        if c.generation.single_threaded:
            await c.resign()
        c.active_id = -1
        await c.zk.write(Delete(ControllerZNode.path()))
        return
    c.active_id = await c.zk.controller_id()
    if not c.is_active:
        c.say("already_moved")
        return
    fence = c.zk.fence
    c.active_id = -1
    await c.resign()
    c.zk.fence = fence
    try:
        await c.zk.write(Delete(ControllerZNode.path()))
    except ControllerMoved:
        c.say("already_moved")
    finally:
        c.zk.fence = None


async def _register_with_epoch(c: Environment, data: bytes) -> tuple[int, int]:
    """Create `/controller` and raise the epoch in one transaction; the new epoch and its zk_version.

    Raises ControllerMoved when somebody else did one of the two first.
    Kafka 2.4.1: zk/KafkaZkClient.scala, registerControllerAndIncrementControllerEpoch
    """
    path = ControllerEpochZNode.path()
    await c.zk.send([Create(path, ControllerEpochZNode.encode(0))])
    answer = (await c.zk.read(path)).checked()
    assert isinstance(answer.value, bytes) and answer.stat is not None
    epoch, version = ControllerEpochZNode.decode(answer.value) + 1, answer.stat.version
    both = Multi(
        (Create(ControllerZNode.path(), data, ephemeral=True), Set(path, ControllerEpochZNode.encode(epoch), version))
    )
    done = (await c.zk.send([both]))[0]
    if done.error in ("NODEEXISTS", "BADVERSION"):
        now = await c.zk.read(path)
        written = ControllerEpochZNode.decode(now.value) if isinstance(now.value, bytes) else -1
        if await c.zk.controller_id() != c.id or written != epoch:
            raise ControllerMoved("Controller moved to another broker. Aborting controller startup procedure")
        assert now.stat is not None  # it was our own transaction whose answer was lost
        return epoch, now.stat.version
    done.checked()
    return epoch, version + 1


async def read_epoch(c: Environment) -> None:
    """Take over the epoch of the last controller, if there was one."""
    if not c.generation.single_threaded and not await c.zk.exists(ControllerEpochZNode.path()):
        return
    answer = await c.zk.read(ControllerEpochZNode.path())
    if answer.error is None:
        assert isinstance(answer.value, bytes) and answer.stat is not None
        c.context.epoch = ControllerEpochZNode.decode(answer.value)
        c.context.epoch_zk_version = answer.stat.version
        c.say("initialized_epoch", epoch=c.context.epoch, zk_version=c.context.epoch_zk_version)


async def increment_epoch(c: Environment) -> None:
    """Write the next epoch on condition that nobody wrote since we read; ControllerMoved if somebody did."""
    epoch, path = c.context.epoch + 1, ControllerEpochZNode.path()
    answer = await c.zk.write(Set(path, ControllerEpochZNode.encode(epoch), c.context.epoch_zk_version))
    if answer.error is None:
        assert answer.stat is not None
        c.context.epoch, c.context.epoch_zk_version = epoch, answer.stat.version
    elif answer.error == "NONODE":
        created = await c.zk.write(Create(path, ControllerEpochZNode.encode(FIRST_EPOCH)))
        if created.error == "NODEEXISTS":
            raise ControllerMoved("Controller moved to another broker. Aborting controller startup procedure")
        created.checked()
        c.context.epoch, c.context.epoch_zk_version = FIRST_EPOCH, FIRST_EPOCH_ZK_VERSION
    else:
        raise ControllerMoved("Controller moved to another broker. Aborting controller startup procedure")
    c.context.elected = True
    c.say("epoch_incremented", epoch=c.context.epoch)
