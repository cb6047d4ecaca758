"""A scaling law that can be evaluated: loss, fitted range, drawn coefficients, monomials.

Everything is in natural units: active parameters, tokens, FLOP, nats per token. A law comes from
the catalogue, from a file of the same shape, from a mapping, or from points of the user's own
(`planner.laws.laws`). A routed law may be put on a dense one, `besiroglu-2024 +
clark-2022-s-base`: the loss of the dense law at the effective size of the routed one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from planner.catalogue.scaling_laws import RANGES, Covariance, Law
from planner.laws.law_draws import block_diagonal_covariance, sample_values, unusable_exponents
from planner.laws.law_forms import ArrayOrFloat, Terms, form_kernel, form_terms, get_form
from planner.text.errors import FieldError
from planner.text.quantities import show

ROUNDING = 0.02  # relative rounding error of a range printed with two digits
LABELS = {
    "n": "active parameters",
    "d": "training tokens",
    "sparsity": "total for each active parameter",
    "arithmetic": "of training",
    "epochs": "passes over the data",
}


TENTH_TO_NINETIETH = 2 * 1.2815515655446004  # standard deviations between the two, if normal
FLOP_PER = 6.0  # of training, per active parameter and token
ALLOCATIONS = ("allocation", "ratio")  # forms that say how to split an arithmetic, and no loss
# {a coefficient: the equation of the size in `formulas.scaling.allocation` that takes it}
RULES: Mapping[str, str] = {
    "K_ratio": "ratio_parameters", "k_size": "allocated_parameters",
    "k_model": "allocated_size_by_arithmetic", "k_tokens": "allocated_size_by_tokens",
}  # fmt: skip
UNITS: Mapping[str, float] = {"one_param": 1.0, "one_token": 1.0, "one_flop": 1.0, "c_fwd": 2.0}


@dataclass(frozen=True, eq=False)
class ScalingLaw:
    """A law with its coefficients.

    Attributes:
        form: A key of `planner.laws.law_forms.FORMS`, which says what the law can express.
        values: {symbol: coefficient or setting}, in parameters, tokens and FLOP.
        errors: {symbol: standard error}, where known.
        covariance: Of the coefficients, where known; it comes before `errors`.
        limits: {`n`, `d`, `sparsity`, `arithmetic`, `epochs`: (lowest, highest) fitted on}.
    """

    name: str
    form: str
    title: str
    source: str
    as_of: str
    scope: str
    values: Mapping[str, float]
    errors: Mapping[str, float] = field(default_factory=dict)
    covariance: Covariance | None = None
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    note: str = ""

    @property
    def lacks(self) -> dict[str, str]:
        """{choice that the law cannot express: why}.

        Choices are `loss`, `size`, `tokens`, `sparsity`, `repetition`, `rl` and `interval`.
        """
        lacking = dict(get_form(self.form).lacks)
        if self.covariance is None:
            if not self.errors:
                lacking["interval"] = "no standard errors of its coefficients are known"
            elif alone := unusable_exponents(self):
                lacking["interval"] = (
                    f"how {alone[0]} and its level err together is not known; give a covariance "
                    "or the range that was fitted on"
                )
        return lacking

    def need(self, choice: str) -> None:
        """Raise FieldError at `law` where the law cannot express a choice; see `lacks`."""
        if choice in self.lacks:
            raise FieldError(("law", f"{self.name}: {self.lacks[choice]}"))

    @property
    def fixed_sparsity(self) -> float | None:
        """The only sparsity that the law covers, 1 for dense laws; None if sparsity is free."""
        if "sparsity" in get_form(self.form).lacks:
            return 1.0
        low, high = self.limits.get("sparsity", (1.0, np.inf))
        return low if low == high else None

    def loss(
        self,
        n: ArrayOrFloat,
        d: ArrayOrFloat,
        *,
        sparsity: ArrayOrFloat = 1.0,
        unique: ArrayOrFloat | None = None,
        d_rl: ArrayOrFloat | None = None,
    ) -> np.ndarray:
        """Loss per token [nat] of models of given size after given tokens, by the law's equation.

        Args:
            n, d: Active parameters and training tokens, broadcast against each other.
            sparsity: Total over active parameters.
            unique: Distinct tokens; None where all are fresh.
            d_rl: Tokens of reinforcement learning, for a law that has a term for them.

        Raises FieldError if the law gives no loss, or knows no sparsity or repetition and is asked
        for it.
        """
        self.need("loss")
        if np.any(np.asarray(sparsity) != 1):
            self.need("sparsity")
        if unique is not None and np.any(np.asarray(d) > np.asarray(unique)):
            self.need("repetition")
        kernel = form_kernel(self.form)
        assert kernel is not None  # a law without one lacks the loss
        case = self.symbols(n, d, sparsity, unique, d_rl)
        loss = kernel(**{name: case[name] for name in kernel.names})["loss"]
        return np.broadcast_to(loss, np.broadcast_shapes(*map(np.shape, (n, d, sparsity, loss))))

    def symbols(
        self,
        n: ArrayOrFloat,
        d: ArrayOrFloat,
        sparsity: ArrayOrFloat,
        unique: ArrayOrFloat | None,
        d_rl: ArrayOrFloat | None,
    ) -> dict[str, ArrayOrFloat]:
        """{symbol: value} of everything that an equation of a loss may ask for; as `loss`."""
        return {
            **UNITS, **self.values, "N_active": n, "D_pt": d, "sigma": sparsity,
            "C_pt": 6.0 * np.asarray(n, float) * np.asarray(d, float),
            "D_unique": np.inf if unique is None else unique,
            "D_rl": 0.0 if d_rl is None else d_rl,
        }  # fmt: skip

    def terms(self, sparsity: float = 1.0) -> Terms | None:
        """The law as a floor and monomials, at one sparsity, fresh tokens; None without such form.

        Muennighoff's law is here without repetition and without excess parameters, as it is for
        models that their tokens feed (`n` up to the compute-optimal size for `d`); beyond, see
        `fed`.

        Raises FieldError if the law knows no sparsity and is asked for it.
        """
        if sparsity != 1:
            self.need("sparsity")
        return _terms(self, float(sparsity))

    def fed(self, tokens: float) -> float:
        """Active parameters that distinct tokens feed: more of them count for less [param].

        Raises FieldError if the law knows no repetition.
        """
        self.need("repetition")
        from formulas.scaling.repetition import fed_parameters

        function = fed_parameters.numpy()
        case = {**UNITS, **self.values, "D_seen": tokens}
        return float(function(**{x: case[x] for x in function.kernel.names}))

    def allocated(self, arithmetic: float, flop_per: float = FLOP_PER) -> tuple[float, float]:
        """Size [param] and tokens that a rule gives to an arithmetic of training [flop].

        `flop_per` is that of training per active parameter and token. Raises FieldError for a law
        that is no such rule, or gives exponents without a prefactor.
        """
        from formulas.scaling import allocation as rules

        rule = next((name for key, name in RULES.items() if key in self.values), None)
        if self.form not in ALLOCATIONS or rule is None:
            raise FieldError(
                ("law", f"{self.name} gives exponents alone: without a prefactor there is no size")
            )
        case = {**UNITS, **self.values, "C_pt": arithmetic, "c_fwd": flop_per / 3}

        def value(name: str) -> float:
            function = getattr(rules, name).numpy()
            return float(function(**{x: case[x] for x in function.kernel.names}))

        n = value(rule)
        return n, value("allocated_tokens") if "k_tokens" in case else arithmetic / (flop_per * n)

    def outside(
        self,
        n: float | None = None,
        d: float | None = None,
        sparsity: float | None = None,
        *,
        arithmetic: float | None = None,
        epochs: float | None = None,
    ) -> list[str]:
        """Sentences, one for each value outside the fitted range, where that range is known."""
        values = {"n": n, "d": d, "sparsity": sparsity, "arithmetic": arithmetic, "epochs": epochs}
        sentences = []
        for key, value in values.items():
            if value is None or key not in self.limits:
                continue
            low, high = self.limits[key]
            if value > high * (1 + ROUNDING):
                apart = f"{value / high:.3g}× the largest"
            elif value < low * (1 - ROUNDING):
                apart = f"1/{low / value:.3g} of the smallest"
            else:
                continue
            least, most, shown = (_figure(key, x) for x in (low, high, value))
            fitted = least if low == high else f"{least}–{most}"
            sentences.append(
                f"{self.name} was fitted on {fitted} {LABELS[key]}; {shown} is {apart}"
            )
        return sentences

    def draws(self, count: int, seed: int = 0) -> list[ScalingLaw]:
        """Laws with coefficients drawn from their standard errors; see `law_draws`.

        Raises FieldError if no standard errors are known.
        """
        self.need("interval")
        drawn = sample_values(self, count, np.random.default_rng(seed))
        return [replace(self, values=values) for values in drawn]

    def routed_by(self, routing: ScalingLaw) -> ScalingLaw:
        """This dense law at the effective size of a routed one.

        Raises FieldError if this is no law of size and tokens, or the other no routed one.
        """
        if self.form != "chinchilla" or routing.form != "clark":
            raise FieldError(
                ("law", f"{self.name} + {routing.name}: a dense law of size and tokens can bear a "
                        "routed one (clark-2022-...), and nothing else"),
            )  # fmt: skip
        both = [law.limits["n"] for law in (self, routing) if "n" in law.limits]
        limits = {**self.limits, "sparsity": routing.limits.get("sparsity", (1.0, np.inf))}
        if both and max(low for low, _ in both) < min(high for _, high in both):
            limits["n"] = max(low for low, _ in both), min(high for _, high in both)
        routed = {name: x for name, x in routing.values.items() if name != "d_route"}
        return replace(
            self, name=f"{self.name} + {routing.name}", form="routed",
            title=f"{self.title}, at the effective size of {routing.title}",
            source=f"{self.source}; {routing.source}", as_of=max(self.as_of, routing.as_of),
            scope=f"{self.scope}; routing: {routing.scope}", limits=limits,
            values={**self.values, **routed}, note=f"{self.note}; {routing.note}".strip("; "),
            errors={**self.errors, **{x: e for x, e in routing.errors.items() if x in routed}},
            covariance=block_diagonal_covariance(self.covariance, routing.covariance, routed),
        )  # fmt: skip


@lru_cache(maxsize=256)
def _terms(law: ScalingLaw, sparsity: float) -> Terms | None:
    return form_terms(law.form, {**UNITS, **law.values, "sigma": sparsity})


def law_from_record(entry: Law) -> ScalingLaw:
    """The law of a catalogue entry, or of one shaped as such."""
    errors = {}
    for name, row in entry.coefficients.items():
        if row.error is not None:
            errors[name] = row.value * row.error if row.ln else row.error * row.scale
        elif row.low is not None and row.high is not None:
            errors[name] = (row.high - row.low) / TENTH_TO_NINETIETH
    return ScalingLaw(
        name=entry.name, form=entry.form, title=entry.title, source=entry.source,
        as_of=entry.as_of, scope=entry.scope, values=entry.values, errors=errors,
        covariance=entry.covariance, limits=entry.range, note=entry.note,
    )  # fmt: skip


def _figure(key: str, value: float) -> str:
    if RANGES[key] in ("number", "work"):
        return f"{value:.3g}{' FLOP' if RANGES[key] == 'work' else ''}"
    shown = show(value, RANGES[key])
    return shown.removesuffix(" params").removesuffix(" tokens")
