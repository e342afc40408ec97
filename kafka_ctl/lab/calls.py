"""What all public calls of a lab have in common: arguments that fit, and errors that say which call was wrong.

A call with too many, too few or unknown arguments, or with anything but true or false where these are wanted, is
refused with its signature. What a command is given is read back from the line that the story keeps of it, so that a
replay is given the very same.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from kafka_ctl.errors import ApiException, BadInput, short

T = TypeVar("T")
signature = functools.lru_cache(1024)(inspect.signature)


def form(method: Callable[..., object], name: str | None = None) -> str:
    """A method as it is called: `kill(broker: int)`."""
    parameters = [p for p in signature(method).parameters.values() if p.name not in ("self", "cls")]
    shown = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
    typed = []
    for parameter, bare in zip(parameters, shown, strict=True):
        head, equals, default = str(bare).partition("=")
        annotated = parameter.annotation is not inspect.Parameter.empty
        typed.append(f"{head}: {parameter.annotation}{f' = {default}' if equals else ''}" if annotated else f"{bare}")
    return f"{name or method.__name__}({', '.join(typed)})"


def bind(
    method: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object], name: str = ""
) -> dict[str, Any]:
    """The arguments of a call by name, `self` among them; BadInput with its signature where they do not fit."""
    called = name or method.__name__
    try:
        given = signature(method).bind(*args, **kwargs).arguments
    except TypeError as error:
        raise BadInput(f"{called}: {error}; the call is {form(method, called)}") from None
    for parameter in signature(method).parameters.values():
        if parameter.annotation == "bool" and not isinstance(given.get(parameter.name, True), bool):
            value = short(given[parameter.name])
            raise BadInput(f"{called}: {parameter.name} cannot be {value}; it is True or False")
    return given


def name_call(error: BadInput, name: str) -> None:
    """Let an error begin with the outermost call that it is about, unless it names that, or a line of a story, anyway.

    Kafka's own words are left as they are.
    """
    if isinstance(error, ApiException) or re.match(r"line \d", str(error)):
        return
    text = error.unnamed = getattr(error, "unnamed", None) or str(error)
    error.args = (text if re.search(rf"\b{name}\b", text) else f"{name}: {text}",)


def call(method: Callable[..., T], name: str = "") -> Callable[..., T]:
    """A public call that is no command."""

    @functools.wraps(method)
    def checked(*args: object, **kwargs: object) -> T:
        bind(method, args, kwargs, name)
        try:
            return method(*args, **kwargs)
        except BadInput as error:
            if not hasattr(method, "names_itself"):
                name_call(error, name or method.__name__)
            raise

    return checked


def calls(cls: type[T]) -> type[T]:
    """Make every public method a `call` unless it is a command; a constructor is named as its class."""
    for name in dir(cls):
        found = inspect.getattr_static(cls, name)
        method = found.__func__ if isinstance(found, classmethod) else found
        if name == "__init__":
            setattr(cls, name, call(method, cls.__name__))
        elif inspect.isfunction(method) and not name.startswith("_") and not hasattr(method, "is_command"):
            wrapped = call(method)
            setattr(cls, name, classmethod(wrapped) if isinstance(found, classmethod) else wrapped)
    return cls
