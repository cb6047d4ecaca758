"""From SymPy expressions to rows sum_k c_k * prod_j x_j**a_kj <= 1.

Definitions are inlined. What is convex in the logarithms but no posynomial (a maximum, a power of
a sum, 1/(1 - rho)) is replaced by an auxiliary variable held above it; that is right only where a
larger value makes things worse, so every use of such a variable is checked for its direction. The
same check keeps an under-estimate (`relax`) from being used where it would over-estimate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sp

from formulas.nomenclature.symbols import auxiliary
from formulas.numerics.evaluate import record
from planner.programs.geometric import posynomial
from planner.programs.geometric.cone import ExponentTable
from planner.programs.geometric.structure import (
    AUXILIARY,
    OBJECTIVE,
    CoefficientTape,
    Constraint,
    ProblemError,
    ProgramStructure,
    given_names,
)

UNDERESTIMATE_HINT = "give an under-estimate of it: define(..., relax={expression: under-estimate})"
LARGEST_PRODUCT = 100
ROUNDING = (sp.ceiling, sp.floor)


@dataclass(frozen=True)
class Inequality:
    """Inequality as declared; `roof` is the symbol of an epigraph (maximum) and its branch."""

    name: str
    kind: str
    smaller: sp.Expr
    larger: sp.Expr
    text: str
    roof: tuple[sp.Symbol, str] | None = None


@dataclass(frozen=True)
class ProgramRow:
    """One constraint: the sum of `terms` is at most `divisor`, all coefficients over the givens.

    `constraint` is what is said of it; `owner` is the auxiliary variable that it holds up.
    """

    constraint: Constraint
    terms: tuple[tuple[posynomial.Powers, sp.Expr], ...]
    divisor: sp.Expr
    owner: sp.Symbol | None = None


class Lowering:
    """Collects the rows of one problem; `auxiliaries` are in the order they depend on another."""

    def __init__(
        self,
        title: str,
        choices: frozenset[sp.Symbol],
        definitions: Mapping[sp.Symbol, sp.Expr],
        relax: Mapping[sp.Expr, sp.Expr],
    ) -> None:
        self.title = title
        self.rows: list[ProgramRow] = []
        self.auxiliaries: dict[sp.Symbol, sp.Expr] = {}
        self._choices = choices
        self._relax = relax
        self._definitions = definitions
        self._of_givens, self._varying = _dependency_order(title, choices, definitions, relax)
        self._signomials: dict[sp.Expr, posynomial.Signomial] = {}
        self._where = ""

    def hold(self, declared: Inequality) -> None:
        """Add a constraint."""
        self._where = declared.name
        left, right = self._signomial(declared.smaller), self._signomial(declared.larger)
        self._row(declared.name, declared.kind, left, right, declared.text, roof=declared.roof)

    def minimise(self, objective: sp.Expr, epigraph: sp.Symbol) -> None:
        """Add the row objective <= epigraph."""
        self._where = OBJECTIVE
        small, large = self._signomial(objective), posynomial.monomial(epigraph)
        self._row(
            OBJECTIVE, OBJECTIVE, small, large, posynomial.truncate(objective), owner=epigraph
        )

    def _row(
        self,
        name: str,
        kind: str,
        smaller: posynomial.Signomial,
        larger: posynomial.Signomial,
        text: str,
        *,
        roof: tuple[sp.Symbol, str] | None = None,
        owner: sp.Symbol | None = None,
        reciprocal: bool = False,
    ) -> None:
        left, moved_right = posynomial.signed_parts(smaller)
        right, moved_left = posynomial.signed_parts(larger)
        left, right = posynomial.total((left, moved_left)), posynomial.total((right, moved_right))
        if len(right) != 1:
            raise self._not_one_monomial(right, text)
        if not left:
            raise ProblemError(f"{self.title}: {name}: {text} holds nothing back: no positive term")
        ((bottom, divisor),) = right.items()
        inverse = frozenset((symbol, -exponent) for symbol, exponent in bottom)
        over = {inverse: sp.S.One}
        terms = tuple(
            (powers, coefficient)
            for each, amount in left.items()
            for powers, coefficient in posynomial.product({each: amount}, over).items()
        )
        self._check_direction(terms, owner)
        constraint = Constraint(name, kind, text, str(divisor), roof, reciprocal)
        self.rows.append(ProgramRow(constraint, terms, divisor, owner))

    def _check_direction(
        self, terms: tuple[tuple[posynomial.Powers, sp.Expr], ...], owner: sp.Symbol | None
    ) -> None:
        for powers, _ in terms:
            for symbol, exponent in powers:
                source = self.auxiliaries.get(symbol)
                if source is None or symbol is owner or exponent.is_nonnegative:
                    continue
                text = posynomial.truncate(source)
                raise ProblemError(
                    f"{self.title}: {self._where}: no geometric program: a larger {text} would "
                    f"help here, and the program bounds it only from below\n  {UNDERESTIMATE_HINT}"
                )

    def _not_one_monomial(self, right: posynomial.Signomial, text: str) -> ProblemError:
        why = "its larger side is not positive"
        if right:
            several = posynomial.truncate(posynomial.to_sympy(right).xreplace(self.auxiliaries))
            why = f"{several} is a sum on the side that must stay large"
        rule = "a constraint is 'sum of positive monomials <= one monomial'; "
        return self._refusal(text, why, rule)

    def _signomial(self, expression: sp.Expr) -> posynomial.Signomial:
        signomial = self._signomials.get(expression)
        if signomial is None:
            signomial = self._signomials[expression] = self._lowered(expression)
        return signomial

    def _lowered(self, expression: sp.Expr) -> posynomial.Signomial:
        if expression in self._relax:
            return self._above(expression, (self._relax[expression],))
        if not expression.free_symbols & self._varying:
            return posynomial.constant(expression.xreplace(self._of_givens))
        if expression in self._choices:
            return posynomial.monomial(expression)
        if expression in self._definitions:
            return self._signomial(self._definitions[expression])
        if expression.is_Add:
            return posynomial.total(self._signomial(each) for each in expression.args)
        if expression.is_Mul:
            return self._product(expression)
        if expression.is_Pow or isinstance(expression, sp.exp):
            return self._power(expression, *expression.as_base_exp())
        if isinstance(expression, sp.Max):
            return self._above(expression, expression.args)
        if isinstance(expression, sp.Min):
            return self._below(expression)
        raise self._refusal(posynomial.truncate(expression), _reason_not_lowered(expression))

    def _product(self, expression: sp.Expr) -> posynomial.Signomial:
        varying = [factor_ for factor_ in expression.args if factor_.free_symbols & self._varying]
        fixed = sp.Mul(*(factor_ for factor_ in expression.args if factor_ not in varying))
        result = posynomial.constant(fixed.xreplace(self._of_givens))
        for factor_ in varying:
            factor = self._signomial(factor_)
            if len(factor) > 1 and len(result) * len(factor) > LARGEST_PRODUCT:
                factor = self._sum_variable(factor_, factor)
            result = posynomial.product(result, factor)
        return result

    def _sum_variable(self, source: sp.Expr, lowered: posynomial.Signomial) -> posynomial.Signomial:
        return lowered if posynomial.signed_parts(lowered)[1] else self._above(source, (source,))

    def _power(self, expression: sp.Expr, base: sp.Expr, exponent: sp.Expr) -> posynomial.Signomial:
        if exponent.free_symbols & self._varying:
            raise self._refusal(
                posynomial.truncate(expression), "a decision variable appears in an exponent"
            )
        exponent = exponent.xreplace(self._of_givens)
        inner = self._signomial(base)
        positive, negative = posynomial.signed_parts(inner)
        if len(inner) == 1 and not negative:
            return posynomial.monomial_power(inner, exponent)
        if not negative:
            multiplied = posynomial.expanded_power(inner, exponent)
            return multiplied or posynomial.monomial_power(self._above(base, (base,)), exponent)
        if len(positive) == 1:
            return posynomial.monomial_power(self._below(base), exponent)
        raise self._refusal(posynomial.truncate(expression), "its base has negative terms")

    def _above(self, source: sp.Expr, branches: tuple[sp.Expr, ...]) -> posynomial.Signomial:
        """A variable that is at least every branch."""
        lowered = [self._signomial(branch) for branch in branches]
        variable = self._auxiliary(source)
        for branch, signomial in zip(branches, lowered, strict=True):
            if not signomial:
                continue  # The variable is above zero as it is.
            text = f"{posynomial.truncate(source)} >= {posynomial.truncate(branch)}"
            name = f"{self._where}: {text}"
            self._row(
                name, AUXILIARY, signomial, posynomial.monomial(variable), text, owner=variable
            )
        return posynomial.monomial(variable)

    def _below(self, source: sp.Expr) -> posynomial.Signomial:
        """One over a variable that is at least one over every branch of a minimum."""
        branches = source.args if isinstance(source, sp.Min) else (source,)
        lowered = [self._signomial(branch) for branch in branches]
        variable = self._auxiliary(source)
        inverse = posynomial.monomial(variable, sp.S.NegativeOne)
        for branch, signomial in zip(branches, lowered, strict=True):
            text = f"{posynomial.truncate(source)} <= {posynomial.truncate(branch)}"
            positive, negative = posynomial.signed_parts(signomial)
            self._row(
                f"{self._where}: {text}",
                AUXILIARY,
                {**inverse, **negative},
                positive,
                text,
                owner=variable,
                reciprocal=True,
            )
        return inverse

    def _auxiliary(self, source: sp.Expr) -> sp.Symbol:
        variable = sp.Dummy(f"t{len(self.auxiliaries)}", positive=True)
        self.auxiliaries[variable] = source.xreplace(self.auxiliaries)
        return variable

    def _refusal(self, text: str, why: str, rule: str = "") -> ProblemError:
        where = f"{self.title}: {self._where}: no geometric program"
        return ProblemError(f"{where}: {why}, in\n    {text}\n  {rule}{UNDERESTIMATE_HINT}")


def _dependency_order(
    title: str,
    choices: frozenset[sp.Symbol],
    definitions: Mapping[sp.Symbol, sp.Expr],
    relax: Mapping[sp.Expr, sp.Expr],
) -> tuple[dict[sp.Symbol, sp.Expr], frozenset[sp.Symbol]]:
    """Definitions of givens alone, inlined into one another, and the symbols that vary."""
    of_givens: dict[sp.Symbol, sp.Expr] = {}
    varying = set(choices) | {key for key in relax if key.is_Symbol}
    done: set[sp.Symbol] = set()

    def visit(symbol: sp.Symbol, path: tuple[sp.Symbol, ...]) -> None:
        if symbol in path:
            circle = " -> ".join(map(str, (*path[path.index(symbol) :], symbol)))
            raise ProblemError(f"{title}: definitions run in a circle: {circle}")
        if symbol in done or symbol not in definitions:
            return
        body = definitions[symbol]
        for inner in sorted(body.free_symbols, key=str):
            visit(inner, (*path, symbol))
        done.add(symbol)
        if body.free_symbols & varying:
            varying.add(symbol)
        elif symbol not in varying:
            of_givens[symbol] = body.xreplace(of_givens)

    for symbol in definitions:
        visit(symbol, ())
    return of_givens, frozenset(varying)


def _reason_not_lowered(expression: sp.Expr) -> str:
    if isinstance(expression, ROUNDING):
        return "rounding is not convex; a ceiling is at least Max(1, its argument)"
    return f"{type(expression).__name__} of a choice is no sum of monomials"


def structure(
    title: str,
    rows: Sequence[ProgramRow],
    choices: Sequence[sp.Symbol],
    others: Sequence[sp.Symbol],
    givens: Sequence[sp.Symbol],
) -> ProgramStructure:
    """Number the variables, terms and coefficients of these rows."""
    variables = (*choices, *others)
    coefficients = _Registered()
    column = {symbol: j for j, symbol in enumerate(variables)}
    term_rows: list[int] = []
    numerator: list[int] = []
    fixed: list[list[float]] = []
    entries: list[tuple[int, int, int]] = []
    for i, row in enumerate(rows):
        for powers, coefficient in row.terms:
            line = [0.0] * len(variables)
            for symbol, exponent in sorted(powers, key=str):  # set order differs between processes
                if exponent.is_number:
                    line[column[symbol]] = float(exponent)
                else:
                    place = coefficients.register(exponent)
                    entries.append((len(fixed), column[symbol], place))
            term_rows.append(i)
            numerator.append(coefficients.register(coefficient))
            fixed.append(line)
    divisor = [coefficients.register(row.divisor) for row in rows]
    entries_array = np.array(entries, dtype=np.intp).reshape(-1, 3)
    owned = tuple(
        tuple(i for i, row in enumerate(rows) if row.owner is symbol) for symbol in variables
    )
    table = ExponentTable(
        np.array(term_rows, dtype=np.intp),
        np.array(fixed),
        entries_array[:, 0],
        entries_array[:, 1],
        np.arange(len(entries)),
    )
    return ProgramStructure(
        title,
        tuple(row.constraint for row in rows),
        variables,
        len(choices),
        table,
        coefficients.compiled(givens),
        np.array(numerator, dtype=np.intp),
        np.array(divisor, dtype=np.intp),
        entries_array[:, 2],
        owned,
    )


class _Registered:
    """The distinct expressions among those registered."""

    def __init__(self) -> None:
        self._places: dict[sp.Expr, int] = {}

    def register(self, expression: sp.Expr) -> int:
        """The place of an expression."""
        return self._places.setdefault(expression, len(self._places))

    def compiled(self, givens: Sequence[sp.Symbol]) -> CoefficientTape:
        """All of them on one tape, along which slopes are carried without symbolic derivatives.

        A hundred givens have thousands of those, which SymPy takes a second for; the tape takes
        milliseconds.
        """
        names = given_names(givens)
        texts = tuple(map(str, self._places))
        renamed = {
            symbol: auxiliary(name)
            for symbol, name in zip(givens, names, strict=True) if symbol.name != name
        }  # fmt: skip
        body = {str(place): x.xreplace(renamed) for x, place in self._places.items()}
        signs = tuple(bool(symbol.is_nonnegative) for symbol in givens)
        return CoefficientTape(tuple(givens), signs, texts, record(body, {}))
