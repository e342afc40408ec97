"""Our operations in the terms of kazoo's protocol, its answers as our results, and the ACLs of what is created."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kazoo.exceptions import ZookeeperError
from kazoo.protocol import serialization as wire
from kazoo.protocol.states import WatchedEvent as KazooEvent
from kazoo.protocol.states import ZnodeStat
from kazoo.security import ACL, ANYONE_ID_UNSAFE, Permissions

from kafka_ctl.zookeeper.store import Check, Children, Create, Delete, Exists, Get, Made, Multi, Op, Result, Set, Stat

LABS = [ACL(Permissions.ALL & ~Permissions.ADMIN, ANYONE_ID_UNSAFE), ACL(Permissions.ADMIN, ANYONE_ID_UNSAFE)]
"""The rights that Kafka and most others give a znode (`OPEN_ACL_UNSAFE`: every client may do everything), in two
entries, which no other program writes: how a lab's znodes are recognised, whatever happens to the lab.
ZooKeeper 3.9.3: server/PrepRequestProcessor.java, fixupACL keeps the entries as they were given."""

CODES = {
    0: "ROLLEDBACK",
    -2: "RUNTIMEINCONSISTENCY",
    -4: "CONNECTIONLOSS",
    -5: "MARSHALLINGERROR",
    -6: "UNIMPLEMENTED",
    -7: "OPERATIONTIMEOUT",
    -8: "BADARGUMENTS",
    -101: "NONODE",
    -102: "NOAUTH",
    -103: "BADVERSION",
    -108: "NOCHILDRENFOREPHEMERALS",
    -110: "NODEEXISTS",
    -111: "NOTEMPTY",
    -112: "SESSIONEXPIRED",
    -114: "INVALIDACL",
    -115: "AUTHFAILED",
    -118: "SESSIONMOVED",
    -119: "NOTREADONLY",
    -122: "REQUESTTIMEOUT",
    -125: "QUOTAEXCEEDED",
    -127: "THROTTLEDOP",
}
"""ZooKeeper's error numbers (KeeperException.Code) and their names."""


def request(
    op: Op | Check, path: Callable[[str], str], watched: Callable[[KazooEvent], None], acl: list[ACL]
) -> object:
    """Our operation as kazoo's request; `acl` is for what it creates.

    A znode without content has no data at all, as Kafka makes it: a broker that finds an empty text in
    `/latest_producer_id_block` does not start. Kafka 2.0.1: zk/KafkaZkClient.scala, makeSurePersistentPathExists
    """
    match op:
        case Get():
            return wire.GetData(path(op.path), watched if op.watch else None)
        case Exists():
            return wire.Exists(path(op.path), watched if op.watch else None)
        case Children():
            return wire.GetChildren2(path(op.path), watched if op.watch else None)
        case Made():
            return wire.GetACL(path(op.path))
        case Create():
            flags = op.ephemeral * 1 + op.sequence * 2
            return wire.Create(path(op.path), op.data or None, acl, flags)
        case Set():
            return wire.SetData(path(op.path), op.data, op.version)
        case Delete():
            return wire.Delete(path(op.path), op.version)
        case Check():
            return wire.CheckVersion(path(op.path), op.version)
        case Multi():
            return wire.Transaction([request(part, path, watched, acl) for part in op.ops])


def result(op: Op | Check, error: Exception | None, response: Any, path: Callable[[str], str]) -> Result:
    """Kazoo's response as our result; `path` turns the server's paths into the operation's."""
    if error is not None:
        return Result(op, code_name(error))
    match op:
        case Get():
            return Result(op, None, response[0] or b"", _stat(response[1]))
        case Exists():
            return Result(op, "NONODE") if response is None else Result(op, None, None, _stat(response))
        case Children():
            return Result(op, None, list(response[0]), _stat(response[1]))
        case Made():
            return Result(op, None, response[0] == LABS, _stat(response[1]))
        case Create():
            return Result(op, None, path(response))
        case Set():
            return Result(op, None, None, _stat(response))
        case Multi():
            parts = tuple(_part(part, answer, path) for part, answer in zip(op.ops, response, strict=True))
            wrong = [part.error for part in parts if part.error not in (None, "ROLLEDBACK", "RUNTIMEINCONSISTENCY")]
            return Result(op, wrong[0] if wrong else None, parts)
        case _:
            return Result(op)


def _part(op: Op | Check, answer: object, path: Callable[[str], str]) -> Result:
    if isinstance(answer, Exception):
        return result(op, answer, None, path)
    return result(op, None, answer, path)


def code_name(error: Exception) -> str:
    """ZooKeeper's name for kazoo's exception."""
    return CODES.get(error.code, "SYSTEMERROR") if isinstance(error, ZookeeperError) else "SYSTEMERROR"


def _stat(kazoo: ZnodeStat) -> Stat:
    return Stat(
        kazoo.czxid,
        kazoo.mzxid,
        kazoo.version,
        kazoo.cversion,
        kazoo.ephemeralOwner,
        kazoo.numChildren,
        kazoo.ctime,
        kazoo.mtime,
        kazoo.pzxid,
        kazoo.dataLength,
        kazoo.aversion,
    )
