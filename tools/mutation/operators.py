"""The mutants of a source file: each differs from it in one small way inside one function.

Not mutated: strings (names of records and words of messages, of which the tests of texts take care), annotations,
defaults of arguments, decorators, and what stands outside of functions.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

Function = ast.FunctionDef | ast.AsyncFunctionDef
Change = tuple[str, ast.AST | None]
"""The operator's name, and what replaces the node; None drops the statement."""

SWAPPED: dict[type[ast.AST], type[Any]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr, ast.And: ast.Or, ast.Or: ast.And,
    ast.Continue: ast.Break, ast.Break: ast.Continue,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
LONGEST = 120
"""Characters of code in a key."""
DROPPED = (ast.Expr, ast.AugAssign, ast.Delete, ast.Raise, ast.Return, ast.Continue, ast.Break)


class Mutant(NamedTuple):
    """One change of one file: where, by which operator, and the changed text of what was there.

    `lines` are those of the statement (of a compound one, its head), at least one of which a test must execute to
    notice. `key` is the same as long as the changed text is, wherever it moves in its function.
    """

    path: str
    function: str
    operator: str
    before: str
    after: str
    number: int
    lines: range
    place: int
    """The number of the change in its file, in the order of `changes`."""

    @property
    def key(self) -> str:
        nth = f" #{self.number}" if self.number > 1 else ""
        return f"{self.path} {self.function}: {self.operator}: {self.before} -> {self.after}{nth}"


def mutants(path: str, source: str) -> list[Mutant]:
    """Every mutant of a file, in the order of the text."""
    found: list[Mutant] = []
    counts: Counter[tuple[str, ...]] = Counter()
    for index, (node, function, statement, (operator, after)) in enumerate(changes(ast.parse(source))):
        words = (function, operator, _text(node), "nothing" if after is None else _text(after))
        counts[words] += 1
        found.append(Mutant(path, *words, counts[words], _head(statement), index))
    return found


def mutated(source: str, mutant: Mutant) -> ast.Module:
    """The file's syntax tree with the change made."""
    tree = ast.parse(source)
    for index, (node, _, _, (_, after)) in enumerate(changes(tree)):
        if index == mutant.place:
            wanted = ast.Pass() if after is None else after
            _Replace(node, ast.copy_location(wanted, node)).visit(tree)
            break
    return ast.fix_missing_locations(tree)


def changes(tree: ast.Module) -> Iterator[tuple[ast.AST, str, ast.stmt, Change]]:
    """By node: the function it is in, its statement, and one thing that can be changed about it."""
    for function, name in _functions(tree.body, ""):
        body = function.body[1:] if ast.get_docstring(function) is not None else function.body
        known = {argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)}
        for statement in body:
            for node, within in _walk(statement, statement):
                for change in _of(node, known):
                    yield node, name, within, change
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    known.add(node.id)


def _functions(body: list[ast.stmt], outer: str) -> Iterator[tuple[Function, str]]:
    """The functions and methods of a module, outermost ones; what is nested in them belongs to them."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{outer}{node.name}.")
        elif isinstance(node, Function):
            yield node, f"{outer}{node.name}"


def _walk(node: ast.AST, statement: ast.stmt) -> Iterator[tuple[ast.AST, ast.stmt]]:
    """A node and what is in it, in the order in which it runs, each with its statement; no annotations, no defaults."""
    if isinstance(node, Function):
        inside: list[ast.AST] = [*node.body]
    elif isinstance(node, ast.Lambda):
        inside = [node.body]
    elif isinstance(node, ast.AnnAssign):
        inside = [n for n in (node.value, node.target) if n is not None]
    elif isinstance(node, ast.Assign):
        yield node, statement
        inside = [node.value, *node.targets]
    elif isinstance(node, (ast.JoinedStr, ast.Assert)):
        return
    else:
        inside = list(ast.iter_child_nodes(node))
    if not isinstance(node, ast.Assign):
        yield node, statement
    for child in inside:
        yield from _walk(child, child if isinstance(child, ast.stmt) else statement)


def _of(node: ast.AST, known: set[str]) -> Iterator[Change]:
    yield from _dropped(node, known)
    yield from _negated(node)
    for kind, operator in OPERATORS:
        if isinstance(node, kind):
            yield from operator(node)


def _dropped(node: ast.AST, known: set[str]) -> Iterator[Change]:
    """Statements without which a function still makes sense: of assignments to names, those that are not the first."""
    if isinstance(node, DROPPED):
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            yield "drop", None
    elif isinstance(node, ast.Assign):
        names = {n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)}
        if not all(isinstance(target, ast.Name | ast.Tuple) for target in node.targets) or names <= known:
            yield "drop", None
    elif isinstance(node, ast.AsyncWith | ast.With) and all(item.optional_vars is None for item in node.items):
        yield "drop with", ast.If(ast.Constant(True), copy.deepcopy(node.body), [])


def _negated(node: ast.AST) -> Iterator[Change]:
    """Conditions of statements, expressions and comprehensions."""
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        other = copy.copy(node)
        other.test = _not(node.test)
        yield "negate", other
    elif isinstance(node, ast.comprehension) and node.ifs:
        other_for = copy.copy(node)
        other_for.ifs = [_not(node.ifs[0]), *node.ifs[1:]]
        yield "negate", other_for


def _not(test: ast.expr) -> ast.expr:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    return ast.copy_location(ast.UnaryOp(ast.Not(), test), test)


def _compare(node: ast.Compare) -> Iterator[Change]:
    for place, op in enumerate(node.ops):
        if type(op) in SWAPPED:
            yield (
                "compare",
                ast.Compare(
                    node.left, [*node.ops[:place], SWAPPED[type(op)](), *node.ops[place + 1 :]], node.comparators
                ),
            )


def _bool(node: ast.BoolOp) -> Iterator[Change]:
    """The other connective, and each operand left out."""
    yield "and/or", ast.BoolOp(SWAPPED[type(node.op)](), node.values)
    for place in range(len(node.values)):
        rest = [*node.values[:place], *node.values[place + 1 :]]
        yield "operand", rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)


def _arithmetic(node: ast.BinOp) -> Iterator[Change]:
    texts = isinstance(node.left, ast.JoinedStr) or isinstance(node.right, ast.JoinedStr)
    if type(node.op) in SWAPPED and not texts:
        yield "arithmetic", ast.BinOp(node.left, SWAPPED[type(node.op)](), node.right)


def _constant(node: ast.Constant) -> Iterator[Change]:
    if isinstance(node.value, bool):
        yield "constant", ast.Constant(not node.value)
    elif isinstance(node.value, int | float):
        yield "constant", ast.Constant(node.value + 1)


def _call(node: ast.Call) -> Iterator[Change]:
    """Neighbouring arguments swapped, where both are variables; a function in place of its opposite."""
    for place in range(len(node.args) - 1):
        one, other = node.args[place : place + 2]
        plain = isinstance(one, ast.Name | ast.Attribute) and isinstance(other, ast.Name | ast.Attribute)
        if plain and ast.dump(one) != ast.dump(other) and not (isinstance(one, ast.Name) and one.id == "c"):
            rest = [*node.args[:place], other, one, *node.args[place + 2 :]]
            yield "arguments", ast.Call(node.func, rest, node.keywords)
    if isinstance(node.func, ast.Name) and node.func.id in NAMES:
        yield "opposite", ast.Call(ast.Name(NAMES[node.func.id], ast.Load()), node.args, node.keywords)


def _leap(node: ast.Continue | ast.Break) -> Iterator[Change]:
    yield "leap", SWAPPED[type(node)]()


OPERATORS: tuple[tuple[type[ast.AST] | tuple[type[ast.AST], ...], Callable[..., Iterator[Change]]], ...] = (
    (ast.Compare, _compare),
    (ast.BoolOp, _bool),
    (ast.BinOp, _arithmetic),
    (ast.Constant, _constant),
    (ast.Call, _call),
    ((ast.Continue, ast.Break), _leap),
)


class _Replace(ast.NodeTransformer):
    def __init__(self, node: ast.AST, other: ast.AST) -> None:
        self.node, self.other = node, other

    def visit(self, node: ast.AST) -> ast.AST:
        return self.other if node is self.node else self.generic_visit(node)


def _head(statement: ast.stmt) -> range:
    body = getattr(statement, "body", None)
    last = body[0].lineno - 1 if body else statement.end_lineno or statement.lineno
    return range(statement.lineno, max(statement.lineno, last) + 1)


def _text(node: ast.AST) -> str:
    """A node as one line; of a compound statement, its head; of a long one, the beginning."""
    text = " ".join(ast.unparse(node).partition("\n")[0].split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
