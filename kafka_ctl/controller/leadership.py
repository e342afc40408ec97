"""Who is controller: the race for `/controller`, its epoch, and giving it up.

Whoever creates the ephemeral znode `/controller` is controller; when it vanishes, all race again. The epoch in
`/controller_epoch` rises with each controller, so that brokers can refuse the requests of an old one.
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


async def startup(env: Environment) -> None:
    await listeners.watch_controller(env)
    await elect(env)


async def controller_change(env: Environment) -> None:
    """`/controller` appeared or changed: note who it is, and resign if it is somebody else now."""
    was_elected = env.active_id == env.id
    await listeners.watch_controller(env)
    env.active_id = await env.zk.controller_id()
    if was_elected and env.active_id != env.id:
        await env.resign()


async def noticed_change(env: Environment) -> None:
    """The watch on `/controller` has fired. In 0.10 the ZooKeeper client reads the znode again and reports a deletion
    if it is gone; since then, a missed deletion triggers no election until the next change (KAFKA-13407)."""
    await controller_change(env)
    if env.active_id == -1 and env.generation.zookeeper.reports_missed_deletion:
        await elect(env)


async def reelect(env: Environment) -> None:
    """`/controller` vanished, or our session is new: compete."""
    await controller_change(env)
    await elect(env)


async def new_session(env: Environment) -> None:
    """Our session is new: compete; in 0.10 after resigning, unless `/controller` is ours again already (KAFKA-4229)."""
    if env.generation.threads.single_threaded:
        await reelect(env)
    elif not env.generation.bugs.resigns_when_reelected and await env.zk.controller_id() == env.id:
        env.log("reelection_skipped")
    else:
        await listeners.watch_controller(env)
        env.active_id = -1
        await env.resign()
        await elect(env)


async def elect(env: Environment) -> None:
    """Try to become controller; whoever finds one elected already stops."""
    async with env.locked():
        await elect_once(env)


async def elect_once(env: Environment) -> None:
    """Try once to create `/controller`; become the controller, or know who is."""
    env.active_id = await env.zk.controller_id()
    if env.active_id != -1:
        env.log("already_elected", elected=env.active_id)
        return
    try:
        data = ControllerZNode.encode(env.id, int(env.clock.now() * 1000))
        if env.generation.zookeeper.fences_writes:
            env.context.epoch, env.context.epoch_zk_version = await _register_with_epoch(env, data)
            env.zk.fence, env.context.elected = env.context.epoch_zk_version, True
            env.active_id = env.id
            env.log("elected", epoch=env.context.epoch, zk_version=env.context.epoch_zk_version)
        else:
            await env.zk.create_ephemeral(ControllerZNode.path(), data)
            env.log("elected")
            env.active_id = env.id
        await env.take_over()
    except ControllerMoved as error:
        if not env.generation.zookeeper.fences_writes:
            env.log("election_failed", error=str(error))
            await trigger_move(env)
            return
        await controller_change(env)
        env.log("other_elected" if env.active_id != -1 else "elected_and_resigned", elected=env.active_id)
    except NodeExists:
        env.active_id = await env.zk.controller_id()
        if env.active_id != -1:
            env.log("other_elected", elected=env.active_id)
        else:
            env.log("elected_and_resigned")
    except KafkaCtlError as error:
        env.log("election_failed", error=str(error))
        if isinstance(error, BadInput):
            env.last_election = (len(env.trace), str(error))
        await trigger_move(env)


async def trigger_move(env: Environment) -> None:
    """Resign and delete `/controller`; since writes are fenced, only after looking whether it still is ours.

    In 0.10 only the znode goes, and the one that was forced to resign goes on until it is elected anew.
    """
    if not env.generation.zookeeper.fences_writes:
        if env.generation.failover.resigns_before_moving:
            await env.resign()
        env.active_id = -1
        await env.zk.write(Delete(ControllerZNode.path()))
        return
    env.active_id = await env.zk.controller_id()
    if not env.is_active:
        env.log("already_moved")
        return
    fence = env.zk.fence
    env.active_id = -1
    await env.resign()
    env.zk.fence = fence
    try:
        await env.zk.write(Delete(ControllerZNode.path()))
    except ControllerMoved:
        env.log("already_moved")
    finally:
        env.zk.fence = None


async def _register_with_epoch(env: Environment, data: bytes) -> tuple[int, int]:
    """Create `/controller` and raise the epoch in one transaction; the new epoch and its zk_version.

    Raises ControllerMoved when somebody else did one of the two first.
    Kafka 2.4.1: zk/KafkaZkClient.scala, registerControllerAndIncrementControllerEpoch
    """
    path = ControllerEpochZNode.path()
    await env.zk.send([Create(path, ControllerEpochZNode.encode(0))])
    answer = (await env.zk.read(path)).checked()
    assert isinstance(answer.value, bytes) and answer.stat is not None
    epoch, version = ControllerEpochZNode.decode(answer.value) + 1, answer.stat.version
    both = Multi(
        (Create(ControllerZNode.path(), data, ephemeral=True), Set(path, ControllerEpochZNode.encode(epoch), version))
    )
    done = (await env.zk.send([both]))[0]
    if done.error in ("NODEEXISTS", "BADVERSION"):
        now = await env.zk.read(path)
        written = ControllerEpochZNode.decode(now.value) if isinstance(now.value, bytes) else -1
        if await env.zk.controller_id() != env.id or written != epoch:
            raise ControllerMoved("Controller moved to another broker. Aborting controller startup procedure")
        assert now.stat is not None  # it was our own transaction whose answer was lost
        return epoch, now.stat.version
    done.checked()
    return epoch, version + 1


async def read_epoch(env: Environment) -> None:
    """Take over the epoch of the last controller, if there was one."""
    if not env.generation.zookeeper.reads_epoch_at_once and not await env.zk.exists(ControllerEpochZNode.path()):
        return
    answer = await env.zk.read(ControllerEpochZNode.path())
    if answer.error is None:
        assert isinstance(answer.value, bytes) and answer.stat is not None
        env.context.epoch = ControllerEpochZNode.decode(answer.value)
        env.context.epoch_zk_version = answer.stat.version
        env.log("initialized_epoch", epoch=env.context.epoch, zk_version=env.context.epoch_zk_version)


async def increment_epoch(env: Environment) -> None:
    """Write the next epoch on condition that nobody wrote since we read; ControllerMoved if somebody did."""
    epoch, path = env.context.epoch + 1, ControllerEpochZNode.path()
    answer = await env.zk.write(Set(path, ControllerEpochZNode.encode(epoch), env.context.epoch_zk_version))
    if answer.error is None:
        assert answer.stat is not None
        env.context.epoch, env.context.epoch_zk_version = epoch, answer.stat.version
    elif answer.error == "NONODE":
        created = await env.zk.write(Create(path, ControllerEpochZNode.encode(FIRST_EPOCH)))
        if created.error == "NODEEXISTS":
            raise ControllerMoved("Controller moved to another broker. Aborting controller startup procedure")
        created.checked()
        env.context.epoch, env.context.epoch_zk_version = FIRST_EPOCH, FIRST_EPOCH_ZK_VERSION
    else:
        raise ControllerMoved("Controller moved to another broker. Aborting controller startup procedure")
    env.context.elected = True
    env.log("epoch_incremented", epoch=env.context.epoch)
