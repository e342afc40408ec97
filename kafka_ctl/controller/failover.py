"""The election of the controller: the race for `/controller`, the controller epoch, failover, and resignation.

The broker that creates the ephemeral znode `/controller` is controller; when it vanishes, all race again. The epoch in
`/controller_epoch` rises with each controller, so that brokers can refuse the requests of an old one. A new controller
listens before it reads, so that no change is missed, and sends metadata before any LeaderAndIsr, so that brokers know
who is alive (KAFKA-4443).
Kafka 2.0.1: controller/KafkaController.scala, elect, onControllerFailover, onControllerResignation,
triggerControllerMove
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from kafka_ctl.controller import deletion, listeners, reassignment, reassignment_incremental, rebalance, topics
from kafka_ctl.controller.context import SURVIVORS
from kafka_ctl.controller.controller import Controller
from kafka_ctl.errors import BadInput, BadVersion, ControllerMoved, KafkaCtlError, NodeExists
from kafka_ctl.plugins import STEPS
from kafka_ctl.zookeeper import znodes
from kafka_ctl.zookeeper.kafka_client import MOVED
from kafka_ctl.zookeeper.store import Delete

# The race


async def startup(env: Controller) -> None:
    """Begin to watch `/controller`, and compete for it."""
    await listeners.watch_controller(env)
    await elect(env)


async def controller_change(env: Controller) -> None:
    """`/controller` appeared or changed: note its id, and resign if it is another broker's."""
    was_elected = env.active_id == env.id
    await listeners.watch_controller(env)
    env.active_id = await env.zk.controller_id()
    if was_elected and env.active_id != env.id:
        await resign(env)


async def noticed_change(env: Controller) -> None:
    """The watch on `/controller` has fired. In 0.10 the ZooKeeper client reads the znode again and reports a deletion
    if it is gone; since then, a missed deletion triggers no election until the next change (KAFKA-13407)."""
    await controller_change(env)
    if env.active_id == -1 and env.generation.zookeeper.reports_missed_deletion:
        await elect(env)


async def reelect(env: Controller) -> None:
    """`/controller` vanished, or our session is new: compete."""
    await controller_change(env)
    await elect(env)


async def new_session(env: Controller) -> None:
    """Our session is new: compete; 0.10 resigns first, or does neither if `/controller` is ours again (KAFKA-4229)."""
    if env.generation.threads.single_threaded:
        await reelect(env)
    elif await _skips_reelection(env):
        env.log("reelection_skipped")
    else:
        await listeners.watch_controller(env)
        env.active_id = -1
        await resign(env)
        await elect(env)


async def _skips_reelection(env: Controller) -> bool:
    resigns: Callable[[int, int], bool] | None = env.plugins.rule("session", None)
    if resigns is None:
        return not env.generation.bugs.resigns_when_reelected and await env.zk.controller_id() == env.id
    return not resigns(env.id, await env.zk.controller_id())


async def elect(env: Controller) -> None:
    """Try to become controller; stop where one is elected already."""
    async with env.locked():
        await elect_once(env)


async def elect_once(env: Controller) -> None:
    """Try once to create `/controller`; become the controller, or know who is."""
    env.active_id = await env.zk.controller_id()
    if env.active_id != -1:
        env.log("already_elected", elected=env.active_id)
        return
    try:
        data = znodes.ControllerZNode.encode(env.id, int(env.clock.now() * 1000))
        if env.generation.zookeeper.fences_writes:
            env.context.epoch, env.context.epoch_zk_version = await env.zk.register_controller(env.id, data)
            env.zk.fence, env.context.elected = env.context.epoch_zk_version, True
            env.active_id = env.id
            env.log("elected", epoch=env.context.epoch, zk_version=env.context.epoch_zk_version)
        else:
            await env.zk.create_ephemeral(znodes.ControllerZNode.path(), data)
            env.log("elected")
            env.active_id = env.id
        await become_controller(env)
        env.last_election = (len(env.trace), "")
    except KafkaCtlError as error:
        if isinstance(error, ControllerMoved if env.generation.zookeeper.fences_writes else NodeExists):
            if isinstance(error, ControllerMoved):
                await controller_change(env)
            else:
                env.active_id = await env.zk.controller_id()
            env.log("other_elected" if env.active_id != -1 else "elected_and_resigned", elected=env.active_id)
            return
        env.log("election_failed", error=str(error))
        if isinstance(error, BadInput):
            env.last_election = (len(env.trace), str(error))
        await trigger_move(env)


async def trigger_move(env: Controller) -> None:
    """Resign and delete `/controller`; since writes are fenced, only if `/controller` still names this broker.

    0.10 deletes the znode and does not resign: this controller acts until it is elected again.
    """
    fenced = env.generation.zookeeper.fences_writes
    if fenced:
        env.active_id = await env.zk.controller_id()
        if env.active_id != env.id:
            env.log("already_moved")
            return
        env.active_id = -1
    fence = env.zk.fence
    if fenced or env.generation.failover.resigns_before_moving:
        await resign(env)
    env.active_id, env.zk.fence = -1, fence
    try:
        await env.zk.write(Delete(znodes.ControllerZNode.path()))
    except ControllerMoved:
        env.log("already_moved")
    finally:
        env.zk.fence = None


async def read_epoch(env: Controller) -> None:
    """Take over the epoch of the last controller, if there was one."""
    if not env.generation.zookeeper.reads_epoch_at_once and not await env.zk.exists(znodes.ControllerEpochZNode.path()):
        return
    if (found := await env.zk.controller_epoch()) is not None:
        env.context.epoch, env.context.epoch_zk_version = found
        env.log("initialized_epoch", epoch=env.context.epoch, zk_version=env.context.epoch_zk_version)


async def increment_epoch(env: Controller) -> None:
    """Write the next epoch if the znode is as we read it. Else raise ControllerMoved; 0.10 keeps the old epoch."""
    try:
        written = await env.zk.raise_controller_epoch(env.context.epoch + 1, env.context.epoch_zk_version)
        env.context.epoch, env.context.epoch_zk_version = written
    except BadVersion as error:
        if env.generation.failover.gives_up_lost_epoch:
            raise ControllerMoved(MOVED) from None
        env.log("epoch_not_incremented", error=str(error))
    env.context.elected = True
    env.log("epoch_incremented", epoch=env.context.epoch)


# Taking over, and resigning


async def become_controller(env: Controller) -> None:
    """Everything between winning the race and acting as controller; an error here ends in resignation."""
    if not env.generation.zookeeper.fences_writes:
        env.log("reading_epoch")
        await read_epoch(env)
        env.log("incrementing_epoch")
        await increment_epoch(env)
    env.log("registering_handlers")
    await listeners.register(env)
    if env.generation.failover.clears_isr_notifications:
        env.log("deleting_log_dir_notifications")
        await env.zk.delete_all_children(znodes.LogDirEventNotificationZNode.path())
        env.log("deleting_isr_change_notifications")
        await env.zk.delete_all_children(znodes.IsrChangeNotificationZNode.path())
    env.log("initializing_context")
    await initialize_context(env)
    last = env.generation.bugs.introduces_brokers_last
    usual = STEPS if last else (STEPS[-1], *STEPS[:-1])
    for step in env.plugins.rule("takeover", lambda steps: usual)(STEPS):
        await _TAKEOVER[step](env)


async def _announce(env: Controller) -> None:
    if not env.generation.bugs.introduces_brokers_last:
        env.log("sending_update_metadata")
    await env.announce_brokers()


async def _start_partitions(env: Controller) -> None:
    await env.partition_machine.startup()
    if not env.generation.zookeeper.watches_before_reading:
        await listeners.subscribe_topics(env, env.context.topics)
    env.log("ready", epoch=env.context.epoch)


async def _resume(env: Controller) -> None:
    """Resume what the last controller left unfinished, then start the automatic rebalance."""
    if env.generation.reassignment.incremental_reassignment:
        await reassignment_incremental.initialize(env)
    else:
        await reassignment.resume(env)
    if not env.generation.deletion.has_own_thread:
        await deletion.resume_deletions(env)
    known = env.generation.deletion.halts_deletions_for_elections
    elections = env.context.preferred_elections if known else await rebalance.pending(env)
    await rebalance.elect(env, elections, rebalance.MANUAL)
    rebalance.start(env)
    if env.generation.deletion.has_own_thread:
        deletion.start_thread(env)


_TAKEOVER: dict[str, Callable[[Controller], Awaitable[None]]] = dict(
    zip(STEPS, (lambda env: env.replica_machine.startup(), _start_partitions, _resume, _announce), strict=True)
)


async def initialize_context(env: Controller) -> None:
    """Read brokers, topics, assignments and partition states; start a channel for every broker."""
    context = env.context
    context.brokers = await env.zk.brokers(await env.zk.broker_ids())
    if env.generation.membership.broker_epochs:
        env.log("broker_epochs_initialized", epochs={id: broker.epoch for id, broker in context.brokers.items()})
    names = context.orders.in_order(await env.zk.read_children(znodes.TopicsZNode.path()))
    if env.generation.zookeeper.watches_before_reading:
        listeners.watch_topics(env, names)
    context.begin(names)
    context.load(await topics.read_assignments(env, names))
    if env.generation.membership.watches_endpoints:
        await listeners.watch_brokers(env, context.brokers)
    await topics.refresh_leadership(env, context.all_partitions())
    env.channels.start(context.brokers)
    if env.generation.deletion.halts_deletions_for_elections:
        context.preferred_elections |= dict.fromkeys(await rebalance.pending(env))
    if env.generation.reassignment.incremental_reassignment:
        moving = ((tp, context.assignment(tp)) for tp in context.all_partitions())
        context.reassigning = {tp: a.target for tp, a in moving if a.is_being_reassigned}
    else:
        await reassignment.initialize(env)
    if env.generation.deletion.halts_deletions_for_elections:
        await deletion.initialize(env)
    env.log("active_brokers", brokers=sorted(context.brokers))
    env.log("shutting_brokers", brokers=sorted(context.shutting_down))
    env.log("topics", topics=sorted(context.topics))
    if not env.generation.deletion.halts_deletions_for_elections:
        env.log("fetching_deletions")
        await deletion.initialize(env)


async def resign(env: Controller) -> None:
    """Stop listening, stop sending, clear the context.

    Its threads finish their current work first. 0.10 keeps the reassignments and elections that it was asked for, and
    does them when it is elected again, whatever has happened meanwhile (KAFKA-5310).
    """
    listeners.unregister_requests(env)
    while env.threads:
        await env.threads.pop().end()
    env.gauges.reset()
    async with env.locked():
        listeners.unregister(env)
        env.channels.close()
        env.zk.fence = None
        if not env.generation.bugs.keeps_batches:
            for batch in (env.batch, env.partition_machine.batch, env.replica_machine.batch):
                batch.clear()
        env.context.clear(() if env.generation.failover.forgets_on_resignation else SURVIVORS)
        env.log("resigned")
