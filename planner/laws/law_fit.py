"""A scaling law fitted to a user's own points, with standard errors and their covariance.

The recipe is that of Hoffmann et al. and of Besiroglu et al.: the sum of Huber losses (delta
1e-3) of the residuals of the logarithm of the loss, minimised by L-BFGS from a grid of starts.
Spread comes from resampling the points. Two things differ, both for the sake of convergence: the
search runs in the terms at the centre of the points, where level and slope do not trade against
each other, and it starts from the best points of the grid rather than from all of them.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

from planner.text.errors import InputError, Mistake, QuantityError, SolverError, quote
from planner.text.quantities import parse

DELTA = 1e-3
STARTS = 24  # starts of the grid that are refined, by COARSE_STEPS each
COARSE_STEPS = 30
N_STARTS = 3  # of them, refined to convergence
STEPS = 400
RESAMPLES = 400

# Coordinates of the fit: logarithms of the three levels, and the two exponents.
COORDINATES = ("ln A_N", "ln B_D", "ln loss_min", "alpha_N", "beta_D")

# Share of the loss left to size and to tokens at the centre, and the exponents, at the starts.
SHARES = (0.03, 0.1, 0.25)
FLOORS = (0.5, 0.75, 0.9)
EXPONENTS = (0.1, 0.3, 0.5, 0.9)


@dataclass(frozen=True)
class LawFit:
    """A fit of `loss = E + A/N^alpha + B/D^beta`.

    Attributes:
        values: {symbol: coefficient}, in parameters, tokens and nats.
        centre: The fit in `COORDINATES`.
        covariance: Of the coordinates, over the resamples; shape (5, 5).
        resamples: The fits to resampled points; shape (resamples, 5).
        objective: Sum of Huber losses at the fit.
        residuals: ln(loss) - ln(law), one for each point.
        points: What was fitted.
    """

    values: dict[str, float]
    centre: np.ndarray
    covariance: np.ndarray
    resamples: np.ndarray
    objective: float
    residuals: np.ndarray
    points: ScalingPoints

    @property
    def errors(self) -> dict[str, float]:
        """{symbol: standard error}: standard deviation over the resamples."""
        drawn = np.concatenate([np.exp(self.resamples[:, :3]), self.resamples[:, 3:]], axis=1)
        return dict(zip(self.values, drawn.std(axis=0, ddof=1).tolist(), strict=True))

    @property
    def spread_and_correlation(self) -> tuple[tuple[float, ...], tuple[tuple[float, ...], ...]]:
        """Standard deviation of each coordinate, and the correlations, diagonal exactly one."""
        spread = np.sqrt(np.diag(self.covariance))
        table = self.covariance / np.outer(spread, spread)
        np.fill_diagonal(table, 1.0)
        rows = ((table + table.T) / 2).tolist()
        return tuple(spread.tolist()), tuple(tuple(row) for row in rows)

    @property
    def scatter(self) -> float:
        """Root mean square of the residuals."""
        return float(np.sqrt(np.mean(self.residuals**2)))


def fit_law(
    points: ScalingPoints | str | Path,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    drop_highest: int = 0,
) -> LawFit:
    """The law of Hoffmann's third approach that fits the points best.

    Args:
        points: The points, or the path of their CSV file (see `read_points`).
        resamples: Fits to points drawn with replacement, from which the covariance comes.
        seed: Of the resampling.
        drop_highest: Points of highest loss that are left out.

    Raises InputError if there are fewer points than six, one size or one number of tokens only, or
    the fit leaves one of the terms undetermined; SolverError if no search converges.
    """
    measured = read_points(points) if isinstance(points, str | Path) else points
    used = measured.without_highest(drop_highest) if drop_highest else measured
    _check_enough(used)
    middle = np.array([np.log(used.size).mean(), np.log(used.tokens).mean()])
    best, objective = _searched(used, middle)
    _check_determined(used, best)
    rng = np.random.default_rng(seed)
    numbers = (rng.integers(0, len(used), len(used)) for _ in range(max(resamples, 2)))
    drawn = np.array([_polished(used.rows(rows), middle, best)[0] for rows in numbers])
    drawn = drawn[np.isfinite(drawn).all(axis=1)]
    centre, spread = _uncentred(best, middle), _uncentred(drawn, middle)
    names = (name.removeprefix("ln ") for name in COORDINATES)
    values = [*np.exp(centre[:3]).tolist(), *centre[3:].tolist()]
    return LawFit(
        values=dict(zip(names, values, strict=True)),
        centre=centre,
        covariance=np.cov(spread.T),
        resamples=spread,
        objective=objective,
        residuals=_residuals(used, middle)(best)[0],
        points=used,
    )


def _residuals(
    points: ScalingPoints, middle: np.ndarray
) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Residuals, the shares of the three terms, and logarithms of size and tokens."""
    size, tokens = np.log(points.size) - middle[0], np.log(points.tokens) - middle[1]
    loss = np.log(points.loss)
    rows = np.empty((3, len(loss)))

    def at(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        rows[0], rows[1], rows[2] = x[0] - x[3] * size, x[1] - x[4] * tokens, x[2]
        top = rows.max(axis=0)
        shares = np.exp(rows - top)
        total = shares.sum(axis=0)
        return loss - top - np.log(total), shares / total, size, tokens

    return at


def _objective(
    points: ScalingPoints, middle: np.ndarray
) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """The objective and its gradient, in terms at the centre of the points."""
    residuals = _residuals(points, middle)

    def at(x: np.ndarray) -> tuple[float, np.ndarray]:
        gap, shares, size, tokens = residuals(x)
        near = np.abs(gap) <= DELTA
        total = np.where(near, gap**2 / 2, DELTA * (np.abs(gap) - DELTA / 2)).sum()
        pull = -np.where(near, gap, DELTA * np.sign(gap)) * shares
        slope = np.array([*pull.sum(axis=1), -(pull[0] @ size), -(pull[1] @ tokens)])
        return float(total), slope

    return at


def _polished(
    points: ScalingPoints, middle: np.ndarray, start: np.ndarray, steps: int = STEPS
) -> tuple[np.ndarray, float]:
    """The minimum that L-BFGS reaches from a start, with the objective in units of delta."""
    objective = _objective(points, middle)
    scale = 1 / (DELTA * len(points))

    def scaled(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = objective(x)
        return value * scale, slope * scale

    minimum = minimize(
        scaled, start, jac=True, method="L-BFGS-B",
        bounds=[(None, None)] * 3 + [(1e-3, 5.0)] * 2,
        options={"maxiter": steps, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 20},
    )  # fmt: skip
    return minimum.x, float(minimum.fun / scale)


def _searched(points: ScalingPoints, middle: np.ndarray) -> tuple[np.ndarray, float]:
    """The best minimum over starts on a grid of shares, floors and exponents."""
    objective = _objective(points, middle)
    level = np.log(np.median(points.loss))
    starts = [
        np.array([level + np.log(a), level + np.log(b), level + np.log(e), alpha, beta])
        for a, b, e, alpha, beta in product(SHARES, SHARES, FLOORS, EXPONENTS, EXPONENTS)
    ]
    starts.sort(key=lambda x: objective(x)[0])
    minima = [_polished(points, middle, start, COARSE_STEPS) for start in starts[:STARTS]]
    minima.sort(key=lambda row: row[1])
    best, value = min(
        (_polished(points, middle, start) for start, _ in minima[:N_STARTS]), key=lambda row: row[1]
    )
    if not np.isfinite(value):
        raise SolverError(f"{points.file}: no law could be fitted to the points")
    return best, value


def _uncentred(x: np.ndarray, middle: np.ndarray) -> np.ndarray:
    out = np.array(x, float)
    out[..., 0] += out[..., 3] * middle[0]
    out[..., 1] += out[..., 4] * middle[1]
    return out


def _check_enough(points: ScalingPoints) -> None:
    """Refuse points that cannot say anything about five coefficients."""
    count = len(COORDINATES)
    if len(points) <= count:
        lacking = f"{len(points)} points for {count} coefficients; more than {count} are needed"
        raise _fault(points.file, f"{lacking} to tell a fit from a coincidence")
    for what, term, amounts in (("model sizes", "size", points.size),
                                ("numbers of tokens", "data", points.tokens)):  # fmt: skip
        if len(np.unique(amounts)) < 3:
            fault = f"fewer than three {what}; the exponent of the {term} cannot be estimated"
            raise _fault(points.file, fault)


def _check_determined(points: ScalingPoints, best: np.ndarray) -> None:
    """Refuse a fit which a term has left, so that its coefficients mean nothing."""
    gap, names = best[:3] - np.log(np.median(points.loss)), ("size", "tokens", "irreducible loss")
    for what, height in zip(names, gap, strict=True):
        if height < np.log(1e-6):
            fault = f"the points do not determine the term of the {what}; widen their range"
            raise _fault(points.file, fault)
    for what, exponent in zip(names, best[3:], strict=False):
        if not 1.01e-3 < exponent < 4.99:
            fault = f"the exponent of the {what} runs off ({exponent:.3g}); widen the range"
            raise _fault(points.file, fault)


MAX_ROWS = 100_000  # rows
MAX_REPORTED_ERRORS = 20  # that are listed; a file with more has another column than was thought
FLOP_PER_TOKEN = 6.0  # per parameter: two forward, four backward

# {quantity: column names that mean it, folded to letters and digits}
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "size": ("n", "nactive", "param", "params", "parameters", "size", "modelsize"),
    "tokens": ("d", "dpt", "token", "tokens", "trainingtokens", "data"),
    "flop": ("c", "cpt", "flop", "flops", "trainingflop", "trainingflops", "compute"),
    "loss": ("loss", "l", "nats", "finalloss", "testloss", "validationloss"),
}

SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
DIMENSIONS = {"size": "params", "tokens": "tokens", "flop": "work", "loss": "number"}


@dataclass(frozen=True)
class ScalingPoints:
    """Runs of a scaling study: arrays of one length.

    Attributes:
        size: Active parameters.
        tokens: Training tokens.
        loss: Loss at the end [nat per token].
        file: Where they come from, for messages.
    """

    size: np.ndarray
    tokens: np.ndarray
    loss: np.ndarray
    file: str = "points"

    def __len__(self) -> int:
        return len(self.loss)

    def without_highest(self, count: int) -> ScalingPoints:
        """The points without the `count` of highest loss, as Besiroglu et al. drop five."""
        return self.rows(np.sort(np.argsort(self.loss, kind="stable")[: len(self) - count]))

    def rows(self, index: np.ndarray) -> ScalingPoints:
        """Some of the points, by their numbers, which may repeat."""
        return ScalingPoints(self.size[index], self.tokens[index], self.loss[index], self.file)


def _fault(file: str, message: str, line: int | None = None) -> InputError:
    return InputError(Mistake(file, line, None, "", message))


def read_points(path: str | Path) -> ScalingPoints:
    """The points of a CSV file with a header.

    Raises InputError if the file cannot be read, lacks a column, or a cell is not a positive
    quantity; the first twenty mistakes, with their lines.
    """
    file = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise _fault(file, "there is no such file of points") from None
    except (OSError, UnicodeDecodeError) as error:
        raise _fault(file, f"cannot be read: {error}") from error
    reader = csv.DictReader(text.splitlines())
    # {quantity: column of the file}; a column of tokens goes before one of arithmetic.
    header = list(reader.fieldnames or ())
    folded = {"".join(x for x in name.lower() if x.isalnum()): name for name in header if name}
    named = {what: [folded[x] for x in names if x in folded] for what, names in COLUMNS.items()}
    columns = {what: names[0] for what, names in named.items() if names}
    if "tokens" in columns:
        columns.pop("flop", None)
    lacking = [what for what in ("size", "loss") if what not in columns]
    lacking += [] if {"tokens", "flop"} & set(columns) else ["tokens"]
    if lacking:
        there = ", ".join(quote(name) for name in header) or "none"
        apart = [mark for mark in SEPARATORS if len(header) == 1 and mark in header[0]]
        if apart:
            there += f"; cells are to be separated by commas, not by {SEPARATORS[apart[0]]}"
        wanted = "; ".join(f"{what} ({', '.join(COLUMNS[what][:3])})" for what in lacking)
        raise _fault(file, f"no column of {wanted}; columns: {there}", 1)
    rows: dict[str, list[float]] = {what: [] for what in columns}
    mistakes: list[Mistake] = []
    for row in reader:
        if reader.line_num > MAX_ROWS:
            raise _fault(file, f"more than {MAX_ROWS} rows")
        for what, column in columns.items():
            number, message = _cell(row.get(column), what)
            rows[what].append(number)
            if message:
                mistakes.append(Mistake(file, reader.line_num, None, column, message))
        if len(mistakes) >= MAX_REPORTED_ERRORS:
            break
    if mistakes:
        raise InputError(mistakes)
    arrays = {what: np.asarray(numbers) for what, numbers in rows.items()}
    tokens = arrays.get("tokens")
    if tokens is None:
        tokens = arrays["flop"] / (FLOP_PER_TOKEN * arrays["size"])
    return ScalingPoints(arrays["size"], tokens, arrays["loss"], file)


def _cell(text: str | None, what: str) -> tuple[float, str]:
    try:
        number = parse((text or "").strip(), DIMENSIONS[what])
    except QuantityError as error:
        return np.nan, str(error)
    if not (np.isfinite(number) and number > 0):
        return np.nan, f"{what} must be positive, got {quote(text)}"
    return float(number), ""
