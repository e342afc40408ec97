"""Everything that can go wrong, in one tree.

    KafkaCtlError
      InvalidTransition            a state machine was asked for a move its table does not have
      StateChangeFailed            a legal move could not be done (no live replica, newer controller ...)
        NoReplicaOnline              no replica that may lead is live, in the words of 0.10
      ControllerMoved              another broker is the controller now
      StaleBrokerEpoch             a request comes from an earlier life of a broker
      BatchNotEmpty                the last request batch was not sent before a new one began
      IdentityError                a broker's id is not known; `code` is Kafka's name for why
      BadInput                     a command, story, description or configuration cannot be understood
        UnknownName                  a broker, topic, partition or option that does not exist
          UnknownKey                   a key that a table does not have; also a KeyError
        ApiException                 what Kafka refuses; `code` is Kafka's own name for it, the text is Kafka's
      PluginFailed                 a function that was plugged into a lab failed, or returned what cannot be used
      UnusableFunction             a learner's function did not come to an end, or returned what has none
      Unavailable                  something needed is missing: Java, a server, a package, the network
      ConditionNotMet              `run_until` or `settle` gave up before its condition held
      ZooKeeperError               an answer of ZooKeeper; `code` is ZooKeeper's own name for it
        NoNode NodeExists BadVersion NotEmpty NoChildrenForEphemerals BadArguments
        ConnectionLoss SessionExpired

Texts follow one order: the subject, what was asked, what is allowed.
"""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Iterable
from types import FunctionType
from typing import Any


class _Shortener(reprlib.Repr):
    """Python's own, which writes a partition as Kafka does, `orders-0`."""

    def repr_TopicPartition(self, value: object, level: int) -> str:  # noqa: N802
        return str(value)


_shortener = _Shortener()
_shortener.maxstring = _shortener.maxother = 300
_PLATFORM: str = sys.platform
IN_BROWSER = _PLATFORM == "emscripten"
"""True if Python was compiled to WebAssembly (Pyodide)."""
MOST_NAMES = 20
"""The most names that an error lists; of more it lists the `NEAREST` in spelling."""
NEAREST = 5


def short(value: object) -> str:
    """A given value in short form; a function by its name, one that takes several lines by its type."""
    if isinstance(value, FunctionType):
        return value.__name__
    try:
        text = _shortener.repr(value)
        return f"an object of the type {type(value).__name__}" if "\n" in text else text
    except ValueError:
        return "a number of very many digits"


def raised(error: BaseException) -> str:
    """The words about an error in a function that the kit was given, with its last line outside the kit."""
    import os
    import traceback

    kit, libraries = os.path.dirname(__file__), (os.path.dirname(os.__file__), "site-packages")
    frames = reversed(traceback.extract_tb(error.__traceback__))
    own = (f.line for f in frames if not f.filename.startswith(kit) and not any(p in f.filename for p in libraries))
    line = next(own, "")
    where = f" (in `{line}`)" if line and len(line) <= 100 else ""
    return f"raised {type(error).__name__}: {error}".removesuffix(": ") + where


def no_command(asked: str, known: Iterable[str], lister: str) -> str:
    """The sentence for an unknown command: similar commands, and the one that lists all."""
    near = nearest(asked, known, 3, 0.5)
    similar = f"; nearest: {', '.join(near)}" if near else ""
    return f"no such command: {short(asked)}{similar}; `{lister}` lists all"


def nearest(asked: object, known: Iterable[str], most: int, cutoff: float) -> list[str]:
    """The known names nearest to one in spelling, at most so many; those below `cutoff`, 0 to 1, are left out."""
    import difflib  # here: few programs misspell a name, and all load this module

    return difflib.get_close_matches(str(asked)[:100], [*known], most, cutoff)


class KafkaCtlError(Exception):
    """Base of every error this package raises on purpose."""


class InvalidTransition(KafkaCtlError):
    """`subject` cannot go from `source` to `target`; `allowed` are the states `target` is entered from."""

    def __init__(self, subject: object, source: str, target: str, allowed: Iterable[str]) -> None:
        self.subject, self.source, self.target = subject, source, target
        self.allowed = tuple(allowed)
        entered = " or ".join(self.allowed) or "nowhere"
        super().__init__(f"{subject} cannot move {source} -> {target}; {target} is entered from {entered}")


class StateChangeFailed(KafkaCtlError):
    """A legal move that could not be carried out."""


class NoReplicaOnline(StateChangeFailed):
    """No live replica may lead: an error of its own in 0.10."""


class ControllerMoved(KafkaCtlError):
    """Another controller has taken over."""


class StaleBrokerEpoch(KafkaCtlError):
    """A request of an earlier life of a broker, or meant for one."""


class BatchNotEmpty(KafkaCtlError):
    """A new request batch began before the last one was sent."""


class IdentityError(KafkaCtlError):
    """A broker's configuration, its disks and its cluster disagree on who it is: `code` is Kafka's name for that."""

    def __init__(self, code: str, text: str) -> None:
        self.code = code
        super().__init__(text)


class BadInput(KafkaCtlError):
    """Input that cannot be understood; the text names the thing, what was asked and what is allowed."""

    unnamed: str | None = None
    """The text without the name of the call that it was put before, if one was."""


class UnknownName(BadInput):
    """A name that does not exist here; the text lists the ones that do.

    `allowed` are the words in place of that list.
    """

    def __init__(self, what: str, asked: object, known: Iterable[object], allowed: str = "") -> None:
        self.what, self.asked, self.known = what, asked, tuple(known)
        names, listing = [str(name) for name in self.known], "known"
        if len(names) > MOST_NAMES:
            listing, names = "nearest known", nearest(asked, names, NEAREST, 0)
        allowed = allowed or f"{listing}: {', '.join(names) or 'none'}"
        super().__init__(f"unknown {what} {short(asked)}; {allowed}")


class UnknownKey(UnknownName, KeyError):
    """A key that a table does not have; also a KeyError."""

    __str__ = KafkaCtlError.__str__  # a KeyError would quote the text


class ApiException(BadInput):
    """A refusal of Kafka: `code` is the name of its error (INVALID_REPLICATION_FACTOR), the text its message."""

    def __init__(self, code: str, text: str) -> None:
        self.code = code
        super().__init__(text)


class PluginFailed(KafkaCtlError):
    """A function that was plugged into a lab raised an error, or returned what cannot be used; the text decodes it."""


class UnusableFunction(KafkaCtlError):
    """A learner's function that did not come to an end, or returned what has none; the text begins with the verb."""


class Unavailable(KafkaCtlError):
    """Something outside this package is missing; the text says how to get it."""


def unavailable(what: str, text: str) -> Unavailable:
    """The error with this text; in a browser, where nothing can be installed, with a text that says so."""
    if not IN_BROWSER:
        return Unavailable(text)
    return Unavailable(f"{what} cannot run in a browser; `python3 -m kafka_ctl lab` in a clone of the project runs it")


def check_not_in_browser(what: str) -> None:
    """Unavailable in a browser, for what needs threads, processes or connections."""
    if IN_BROWSER:
        raise unavailable(what, "")


class ConditionNotMet(KafkaCtlError):
    """A wait ended before its condition held."""


class ZooKeeperError(KafkaCtlError):
    """An error code of ZooKeeper, under ZooKeeper's own name."""

    code = "SYSTEMERROR"
    answers: tuple[Any, ...] = ()
    """Of several operations sent together: the results that had come in before."""

    def __init__(self, path: str = "", text: str = "", code: str | None = None) -> None:
        self.path, self.code = path, code or self.code
        super().__init__(text or f"{self.code} for {path}")


class NoNode(ZooKeeperError):
    code = "NONODE"


class NodeExists(ZooKeeperError):
    code = "NODEEXISTS"
    owner: int | None = None
    """The session whose znode is in the way of an ephemeral one, 0 for none; None when it has gone."""


class BadVersion(ZooKeeperError):
    code = "BADVERSION"


class NotEmpty(ZooKeeperError):
    code = "NOTEMPTY"


class NoChildrenForEphemerals(ZooKeeperError):
    code = "NOCHILDRENFOREPHEMERALS"


class BadArguments(ZooKeeperError):
    code = "BADARGUMENTS"


class ConnectionLoss(ZooKeeperError):
    code = "CONNECTIONLOSS"


class SessionExpired(ZooKeeperError):
    code = "SESSIONEXPIRED"


ZOOKEEPER_ERRORS: dict[str, type[ZooKeeperError]] = {kind.code: kind for kind in ZooKeeperError.__subclasses__()}
"""ZooKeeper's code names and their exceptions."""
