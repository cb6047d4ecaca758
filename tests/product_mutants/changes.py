"""Small changes of a function's source, each one place in its syntax tree."""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.paths import ROOT

ARITHMETIC: dict[type, tuple[type, ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Div,),
    ast.Mod: (ast.Mult,),
    ast.Pow: (ast.Mult,),
}
COMPARISONS: dict[type, tuple[type, ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPPOSITES = (
    ("min", "max"),
    ("minimum", "maximum"),
    ("argmin", "argmax"),
    ("floor", "ceil"),
    ("any", "all"),
    ("exp", "log"),
    ("sum", "prod"),
    ("low", "high"),
)
OPPOSITE = {a: b for pair in OPPOSITES for a, b in (pair, pair[::-1])}
# Calls whose arguments may change places, or whose first is a type or a condition.
UNORDERED = {
    *("min", "max", "minimum", "maximum", "hypot", "isclose", "allclose", "array_equal"),
    *("isinstance", "zip", "cast", "where", "gcd", "lcm"),
}
Change = tuple[str, Callable[[ast.AST], ast.AST]]  # what is done, and the node in place of a copy


@dataclass(frozen=True)
class Mutant:
    """One change of one function of a file; `function` is its name with those of its classes.

    Or of a constant of the module, by its name. `users` are the functions that are changed: itself,
    or those that use the constant. `line` is that of the change, `number` the change's own among
    all of the file, `nth` counts those of one function that read alike.
    """

    file: str
    function: str
    users: tuple[str, ...]
    line: int
    number: int
    what: str
    nth: int = 1

    @property
    def name(self) -> str:
        """What stays the same when lines are put before it."""
        again = f" ({self.nth})" if self.nth > 1 else ""
        return f"{self.file} {self.function}: {self.what}{again}"


def mutants(file: str) -> list[Mutant]:
    """Every mutant of the functions of a file, in the order of their places."""
    source = (ROOT / file).read_text(encoding="utf-8")
    return [mutant for mutant, _, _ in _all(file, ast.parse(source))]


def mutated(mutant: Mutant) -> ast.Module:
    """The syntax tree of the mutant's file with its one change."""
    tree = ast.parse((ROOT / mutant.file).read_text(encoding="utf-8"))
    for one, node, change in _all(mutant.file, tree):
        if one.number == mutant.number:
            changed = change(copy.deepcopy(node))
            return ast.fix_missing_locations(_Replaced(node, changed).visit(tree))
    raise ValueError(f"{mutant.name} is no mutant any more")


class _Replaced(ast.NodeTransformer):
    """A tree with one node replaced by another."""

    def __init__(self, before: ast.AST, after: ast.AST) -> None:
        self.before, self.after = before, after

    def visit(self, node: ast.AST) -> ast.AST:
        if node is self.before:
            return ast.copy_location(self.after, node)
        return super().visit(node)


def _all(
    file: str, tree: ast.Module
) -> Iterator[tuple[Mutant, ast.AST, Callable[[ast.AST], ast.AST]]]:
    number, alike = 0, Counter[tuple[str, str]]()
    for name, part, users in (*_functions(tree.body, ""), *_constants(tree)):
        for node in (*_nodes(part), *_printed(part)):
            for what, change in _changes(node):
                line = getattr(node, "lineno", part.lineno)
                alike[name, what] += 1
                mutant = Mutant(file, name, users, line, number, what, alike[name, what])
                yield mutant, node, change
                number += 1


Part = tuple[str, ast.stmt, tuple[str, ...]]  # name, its tree, functions that it changes


def _functions(body: list[ast.stmt], within: str) -> Iterator[Part]:
    """Functions of a module and methods of its classes; those inside a function are part of it."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{within}{node.name}.")
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("__"):
            yield within + node.name, node, (within + node.name,)


def _constants(tree: ast.Module) -> Iterator[Part]:
    """Numbers that a module gives a name, with the functions that use it (or else all)."""
    functions = list(_functions(tree.body, ""))
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(target, ast.Name):
            users = tuple(
                name
                for name, function, _ in functions
                if any(isinstance(x, ast.Name) and x.id == target.id for x in ast.walk(function))
            )
            yield target.id, node, users or tuple(name for name, _, _ in functions)


def _nodes(part: ast.stmt) -> Iterator[ast.AST]:
    """What of it computes: no texts, no annotations, no messages of errors."""
    waiting: list[ast.AST] = [part.value] if hasattr(part, "value") else [part.args, *part.body]
    while waiting:
        node = waiting.pop(0)
        if node is None or isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert):
            continue
        if isinstance(node, ast.keyword) and node.arg == "strict":
            continue  # a guard against our own mistakes
        yield node
        skipped = {"annotation", "returns", "decorator_list", "type_comment"}
        waiting = [
            child
            for field, value in ast.iter_fields(node)
            if field not in skipped
            for child in (value if isinstance(value, list) else [value])
            if isinstance(child, ast.AST)
        ] + waiting


def _printed(part: ast.stmt) -> Iterator[ast.AST]:
    """What of it is put into texts: values between the braces, not those of errors.

    After all that computes, so that names of changes that were there before stay theirs.
    """
    waiting: list[ast.AST] = [part.value] if hasattr(part, "value") else list(part.body)
    while waiting:
        node = waiting.pop(0)
        if node is None or isinstance(node, ast.Raise | ast.Assert):
            continue
        if isinstance(node, ast.JoinedStr):
            values = [x.value for x in node.values if isinstance(x, ast.FormattedValue)]
            for value in values:
                yield from ast.walk(value)
            continue
        waiting = list(ast.iter_child_nodes(node)) + waiting


def _changes(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.BinOp():
            yield from _of_arithmetic(node)
        case ast.Compare(ops=[op]):
            for other in COMPARISONS.get(type(op), ()):
                changed = ast.Compare(node.left, [other()], node.comparators)
                yield _replacing(node, changed)
        case ast.UnaryOp(op=ast.USub() | ast.Not()):
            yield _replacing(node, node.operand)
        case ast.BoolOp():
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield _replacing(node, ast.BoolOp(other, node.values))
        case ast.Constant(value=bool()):
            yield _replacing(node, ast.Constant(not node.value))
        case ast.Constant(value=int() | float()):
            whole = float(node.value).is_integer()
            for value in (node.value + 1,) if whole else (node.value * 2, node.value / 2):
                yield _replacing(node, ast.Constant(value))
        case ast.IfExp():
            yield _replacing(node, ast.IfExp(node.test, node.orelse, node.body))
        case ast.If(test=ast.Name() | ast.Attribute() | ast.Call()):
            what = f"if not {ast.unparse(node.test)}"
            yield (
                what,
                lambda each: ast.If(ast.UnaryOp(ast.Not(), each.test), each.body, each.orelse),
            )
        case ast.Call():
            yield from _of_calls(node)


def _of_arithmetic(node: ast.BinOp) -> Iterator[Change]:
    """Another operator; and one side alone."""
    if isinstance(node.left, ast.Constant | ast.JoinedStr) and isinstance(
        getattr(node.left, "value", ""), str
    ):
        return  # texts put together
    for other in ARITHMETIC.get(type(node.op), ()):
        yield _replacing(node, ast.BinOp(node.left, other(), node.right))
    if isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div):
        yield _replacing(node, node.left)


def _of_calls(node: ast.Call) -> Iterator[Change]:
    name = node.func
    word = name.id if isinstance(name, ast.Name) else getattr(name, "attr", "")
    if word in OPPOSITE:
        other = OPPOSITE[word]
        turned = (
            ast.Name(other, ast.Load())
            if isinstance(name, ast.Name)
            else ast.Attribute(name.value, other, ast.Load())
        )
        yield _replacing(node, ast.Call(turned, node.args, node.keywords))
    plain = [x for x in node.args if not isinstance(x, ast.Starred | ast.Constant)]
    if len(plain) == len(node.args) >= 2 and word not in UNORDERED:
        first, second, *rest = node.args
        if ast.dump(first) != ast.dump(second):
            yield _replacing(node, ast.Call(node.func, [second, first, *rest], node.keywords))


def _replacing(node: ast.AST, changed: ast.AST) -> Change:
    what = f"`{_short(node)}` -> `{_short(changed)}`"
    return what, lambda _: copy.deepcopy(changed)


def _otherwise(node: ast.AST) -> ast.AST:
    assert isinstance(node, ast.If)
    return ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(ast.fix_missing_locations(copy.deepcopy(node))).split())
    return text if len(text) <= 90 else f"{text[:60]} ... {text[-25:]}"


def modules(folder: str) -> list[str]:
    """Product files below a folder or the one file, as paths from the root."""
    path = Path(ROOT / folder)
    every = [path] if path.is_file() else sorted(path.rglob("*.py"))
    return [str(each.relative_to(ROOT)) for each in every if each.name != "__init__.py"]
