"""Puts a mutant in place of the functions that are loaded, in this process, for good."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType

from kafka_ctl.paths import ROOT
from tools.mutation.operators import Mutant, mutated

Place = tuple[str, str, int]
"""A function: its file, its qualified name, and its first line."""
Functions = dict[Place, list[FunctionType]]


def loaded(folders: tuple[Path, ...]) -> Functions:
    """Every function that is loaded from a file below these folders, decorated ones as well."""
    heads = tuple(f"{folder}/" for folder in folders)
    found: Functions = {}
    gc.unfreeze()  # tests/conftest.py has hidden from the collector what was loaded
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType) and thing.__code__.co_filename.startswith(heads):
            found.setdefault(_place(thing.__code__), []).append(thing)
    return found


def put(mutant: Mutant, functions: Functions) -> bool:
    """Give the mutated code to each function that differs; False if none does, as the change makes no difference."""
    path = ROOT / mutant.path
    source = path.read_text("utf-8")
    before, after = (compile(tree, str(path), "exec") for tree in (ast.parse(source), mutated(source, mutant)))
    new = {_place(code): code for code in _codes(after)}
    differs = [place for code in _codes(before) if (place := _place(code)) in new and new[place] != code]
    for place in differs:
        for function in functions.get(place, ()):
            if len(function.__code__.co_freevars) == len(new[place].co_freevars):
                function.__code__ = new[place]
    return bool(differs)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The functions of a module, of its classes and of functions: also one that was made when the module was loaded."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_flags & 0x2:  # a function has local variables that are numbered; a class's body has not
                yield constant
            yield from _codes(constant)


def _place(code: CodeType) -> Place:
    return code.co_filename, code.co_qualname, code.co_firstlineno
