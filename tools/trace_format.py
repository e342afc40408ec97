"""The page `docs/trace-format.md`: the columns of the trace, and every kind and action of the catalogue."""

from __future__ import annotations

from collections.abc import Iterable

from kafka_ctl.invariants import INVARIANTS
from kafka_ctl.trace.catalogue import ANY, Group, catalogue
from tools.page import Page

COLUMNS = """# The trace, column by column

Everything that happens is one record. A record has a time, an actor, a kind and an action, a subject, the
change, and `cause`: the `seq` of the record that caused it. Columns that do not apply are empty.

[A trace, command by command: a broker fails](../tests/traces/broker_failure.txt)

| column | meaning |
|---|---|
| `history` | which cluster or imported log (a column of files and tables, not of the records in memory) |
| `seq` | order inside the history, from 0 |
| `time_ms` | milliseconds since the start; in imported logs since 1970 |
| `actor` | who: `controller-1`, `broker-2`, `zookeeper`, `admin`, `producer`, `fault`, `invariants` |
| `kind`, `action` | what; the tables below |
| `topic`, `partition`, `broker` | the subject; `broker` is the replica's broker, or the receiver of a request |
| `source`, `target` | the states before and after |
| `leader`, `isr`, `leader_epoch`, `zk_version`, `controller_epoch` | the partition's state as the record carries it |
| `path` | a znode |
| `error` | an error's name |
| `cause` | the `seq` of the record that caused this one |
| `replicas` | the assigned replicas (AR), preferred leader first |
| `detail` | anything else: `name=value` words, JSON, or the text of a znode |

A record without a cause is a root: a broker process that starts with the lab (`broker` `start`), a command of the
administrator (`event` of `admin`), a producer's request, a fault, a timer of a process (a leader that looks for
lagging followers, the check of the balance), a connection to ZooKeeper that is lost or made again, or a violation that
is found at rest. Every chain of causes ends in a root.

## Kinds and actions

"""

MESSAGE = """
## What controllers say

A record of kind `controller` is a line that Kafka's controller writes into its own log, under a name of ours. `broker`
is the controller's id, `controller_epoch` its epoch, and `detail` has the fields of the line as JSON. The text of the
line in each generation is in `kafka_ctl/kafka_log/messages.txt`.

"""

RENDERINGS = """
## As text

`trace.text("all")` has a line for each record: time, actor, kind, subject, change.

```text
t=6089.5    controller-2  partition   orders-0      Online -> Offline
t=6089.7    controller-2  election    orders-0      offline: leader=2 isr=2,3 leader_epoch=1  from replicas=1,2,3 ...
t=6089.9    controller-2  partition   orders-0      Offline -> Online  leader=2 isr=2,3 leader_epoch=1 zk_version=1
t=6089.9    controller-2  request     LeaderAndIsr -> 2         orders-0  leader=2 isr=2,3 leader_epoch=1
t=6089.9    controller-2  request     LeaderAndIsr -> 3         orders-0  leader=2 isr=2,3 leader_epoch=1
```

Names of states are shortened, epochs and versions of 0 are left out, and sets of brokers are sorted; assignments and
ISRs keep Kafka's order. `trace.text()`, the story, leaves out less important records: reads, the znodes that every
broker creates at its start if they are missing, deletions of znodes that do not exist, queued and finished events,
messages without content, requests on the wire, answers without an error, and cached metadata. If one batch says the
same to several brokers, or of several partitions, that is one line. Equal lines one after the other are counted.

## As Kafka's logs

`trace.kafka_log("state-change")` and `trace.kafka_log("controller")` are the lines that Kafka would have written.
Virtual time begins at 2018-10-25 00:00:00 UTC. Of an exception, the log has only the first line, without the stack
trace.

Imported logs become the same records. Some records exist only in imported logs: the steps `received`,
`stopped-fetcher`, `truncated`, `started-fetcher`, `skipped`, `done` and `failed` of kind `broker`; `started` of kind
`election`; and `says` of kind `broker` or `controller`, a line for which the trace has no record, with its text in
`detail`.
"""


def page() -> str:
    """The whole page, in Markdown."""
    return (
        COLUMNS
        + _table("what the columns hold", catalogue().actions)
        + MESSAGE
        + _table("about", catalogue().messages)
        + RENDERINGS
    )


def _table(about: str, groups: Iterable[Group]) -> str:
    rows = (f"| `{group.kind}` | {_names(group)} | {group.about} |" for group in groups)
    return "\n".join([f"| kind | actions | {about} |", "|---|---|---|", *rows]) + "\n"


def _names(group: Group) -> str:
    """The actions of a group; a row for any action of violations stands for the invariants."""
    names = [row.name for row in group.actions]
    return ", ".join(f"`{name}`" for name in ([i.name for i in INVARIANTS] if names == [ANY] else names))


PAGE = Page("trace-format.md", page)
