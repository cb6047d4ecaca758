"""`planner formula`: an equation turned round, quantities with units, and every way to go wrong."""

import json
import runpy

import pytest

from formulas.algebra.equation import Equation
from planner.cli.app import main
from planner.report.text.formula import formula_card
from planner.text.errors import InputError
from tests.loops import for_all

MEMORY = ("N_total=671B params", "b_w=1 byte/param", "B=64", "L_ctx=4k", "b_kv=70 kB")


def asked(capsys: pytest.CaptureFixture[str], *words: str, sets: tuple[str, ...] = ()) -> tuple:
    """Exit status, standard output and standard error of `planner formula`."""
    options = [part for each in sets for part in ("--set", each)]
    with pytest.raises(SystemExit) as exit_:
        main(["formula", *words, *options])
    written = capsys.readouterr()
    return int(exit_.value.code or 0), written.out, written.err


def test_quantities_are_read_with_their_units(capsys):
    """671e9 bytes and 64 caches of 4000 * 70e3 bytes at 3.35e12 byte/s."""
    status, out, _ = asked(capsys, "memory_time", "--json", sets=("W=3.35 TB/s", *MEMORY))
    found = json.loads(out)
    assert status == 0
    assert found["value"] == pytest.approx((671e9 + 64 * 4000 * 70e3) / 3.35e12)
    assert (found["unit"], found["shown"], found["missing"]) == ("s", "206 ms", [])
    assert found["given"]["W"] == 3.35e12
    assert found["given"]["N_total"] == 671e9


def test_bare_numbers_are_in_base_units(capsys):
    """And give the same."""
    sets = ("W=3.35e12", "N_total=671e9", "b_w=1", "B=64", "L_ctx=4000", "b_kv=70000")
    _, out, _ = asked(capsys, "memory_time", "--json", sets=sets)
    _, again, _ = asked(capsys, "memory_time", "--json", sets=("W=3.35TB/s", *MEMORY))
    assert json.loads(out)["value"] == json.loads(again)["value"]


def test_elasticities_stand_beside_a_value(capsys):
    """Weights are 671 of 688.92 gigabytes; bandwidth divides all of it."""
    _, out, _ = asked(capsys, "memory_time", "--json", sets=("W=3.35 TB/s", *MEMORY))
    slopes = json.loads(out)["elasticities"]
    assert slopes["W"] == pytest.approx([-1, -1])
    assert slopes["N_total"] == pytest.approx([671 / 688.92] * 2)
    assert slopes["B"] == pytest.approx([17.92 / 688.92] * 2)
    _, out, _ = asked(capsys, "memory_time", sets=("W=3.35 TB/s", *MEMORY))
    assert "T_mem = 206 ms   (0.205648 s)" in out
    assert "W        -1.000" in out
    assert "W = 3.35 TB/s" in out


def test_both_slopes_are_told_at_a_kink(capsys):
    """Where the branches of a Max tie."""
    status, out, _ = asked(capsys, "step_time", sets=("T_comp=2 ms", "T_mem=2 ms"))
    assert status == 0
    assert "T_comp  +1.000  (at a kink: +0.000 per percent less)" in out


def test_the_branch_that_decides_is_named(capsys):
    """Memory takes longer here."""
    _, out, _ = asked(capsys, "step_time", sets=("T_comp=2 ms", "T_mem=5 ms"))
    assert "T_step = 5 ms   (0.005 s; T_mem decides)" in out


def test_what_is_still_missing_is_said(capsys):
    """Some values are no mistake; the formula is shown with them."""
    status, out, _ = asked(capsys, "memory_time", sets=("W=3.35 TB/s", "B=64"))
    assert status == 0
    assert "W = 3.35 TB/s" in out
    assert out.rstrip().endswith("for a value of T_mem, still give N_total, b_w, L_ctx, b_kv")
    _, out, _ = asked(capsys, "memory_time", "--json", sets=("W=3.35 TB/s", "B=64"))
    assert json.loads(out)["value"] is None
    assert json.loads(out)["missing"] == ["N_total", "b_w", "L_ctx", "b_kv"]


def test_a_symbol_computed_on_the_way_may_be_given(capsys):
    """The time of a step instead of everything it is made of."""
    sets = ("T_step=50 ms", "B=64", "g=1", "n_chips=8", "p_chip=$3.60/hour")
    status, out, _ = asked(capsys, "token_cost", "--json", sets=sets)
    assert status == 0
    assert json.loads(out)["value"] == pytest.approx(8 * 1e-3 * 0.05 / 64)
    status, _, err = asked(capsys, "token_cost", sets=(*sets, "W=3.35 TB/s"))
    assert status == 2
    assert "--set W: not needed: the other given symbols determine the value" in err


def test_an_equation_is_turned_round(capsys):
    """The batch that fills 250 ms; put back it gives 250 ms."""
    sets = ("T_mem=250 ms", "W=3.35 TB/s", *(each for each in MEMORY if each[0] != "B"))
    _, out, _ = asked(capsys, "memory_time", "--solve-for", "B", "--json", sets=sets)
    found = json.loads(out)
    assert found["value"] == pytest.approx((0.25 * 3.35e12 - 671e9) / (4000 * 70e3))
    assert found["solved_for"] == "B"
    assert found["text"].startswith("B = ")
    back = (f"B={found['value']}", *(each for each in sets if each[:5] != "T_mem"))
    _, out, _ = asked(capsys, "memory_time", "--json", sets=back)
    assert json.loads(out)["value"] == pytest.approx(0.25)


def test_an_equation_is_turned_round_for_what_it_gives(capsys):
    """Which is the equation itself."""
    status, out, _ = asked(capsys, "memory_time", "--solve-for", "T_mem")
    assert status == 0
    assert "T_mem = (N_total*b_w + B*L_ctx*b_kv)/W" in out


def test_an_approximate_result_is_not_written_as_equal(capsys):
    """The short rule for the critical batch."""
    _, out, _ = asked(capsys, "critical_batch")
    assert "B_crit ≈ " in out
    assert "assumes: drop B*L_ctx*b_kv/W: short context" in out


def test_an_infinity_that_is_meant_is_an_answer(capsys):
    """Beyond L_never no batch is arithmetic-bound."""
    sets = ("F=1e15", "W=1e12", "N_total=1e11", "N_active=1e10", "b_w=1", "c_fwd=2", "m_pos=1",
            "L_ctx=1M", "b_kv=100 kB", "a_kv=1")  # fmt: skip
    status, out, _ = asked(capsys, "critical_batch_anywhere", sets=sets)
    assert status == 0
    assert "B_crit = ∞" in out
    _, out, _ = asked(capsys, "critical_batch_anywhere", "--json", sets=sets)
    assert json.loads(out)["value"] is None


@pytest.mark.parametrize(
    ("name", "solve_for", "sentence"),
    [
        ("critcal_batch", None, "no equation 'critcal_batch'; did you mean 'critical_batch'?"),
        (
            "memory_time",
            "b_kw",
            "'b_kw' does not occur in time of the memory traffic of one step; did you mean",
        ),
        ("memory_time", "F", "'F' (arithmetic rate of the domain) [flop/s] does not occur in"),
        ("step_time", "B", "where T_mem decides, B = (T_step*W - N_total*b_w)/(L_ctx*b_kv)"),
        ("step_time", "F", "where T_mem decides, F does not occur"),
        ("critical_batch_anywhere", "F", "no solution in closed form for 'F'"),
    ],
    ids=["unknown name", "misspelt", "not in it", "branches", "not in a branch", "pieces"],
)
def test_what_cannot_be_turned_round_is_said_in_a_sentence(capsys, name, solve_for, sentence):
    """Status 2, nothing on standard output."""
    words = (name,) if solve_for is None else (name, "--solve-for", solve_for)
    status, out, err = asked(capsys, *words)
    assert (status, out) == (2, "")
    assert err.startswith("planner: ")
    assert sentence in err


@for_all(
    ("given", "sentence"),
    [
        ("W=50 ms", 'memory bandwidth of the domain is in byte/s, such as "3.35 TB/s"; got "50 ms" '
                    "(seconds)"),
        ("W=3 TFLOP/s", '; got "3 TFLOP/s" (FLOP per second)'),
        ("W=70B", '; got "70B" (bytes)'),
        ("L_ctx=4 s", "tokens of context held per sequence is in token/seq"),
        ("B=85%", "(a number without unit)"),
        ("W=nan", 'got "nan", which does not begin with a number'),
        ("W=-3 TB/s", 'got "-3 TB/s", which is negative'),
        ("W=1e999", 'got "1e999", which is not finite'),
        ("W=3.35 TB/x", "unknown unit 'x'"),
        ("W=", "got an empty text"),
        ("W", "expected SYMBOL=VALUE, such as B=64"),
        ("=3", "expected SYMBOL=VALUE"),
        ("b_kw=1", "'b_kw' does not occur here; did you mean 'b_"),
        ("F=1", "[flop/s] does not occur here; it has"),
        ("T_mem=1 s", "it is what this equation gives; ask for another symbol with --solve-for"),
    ],
    ids=lambda text: text if "=" in text and len(text) < 14 else "",
)  # fmt: skip
def test_a_value_that_is_not_the_symbols_is_refused(capsys, given, sentence):
    """With the symbol's meaning and unit, an example, and what was got."""
    status, out, err = asked(capsys, "memory_time", sets=(given,))
    assert (status, out) == (2, "")
    assert err.startswith("planner: --set ")
    assert sentence in err


def test_a_symbol_given_twice_is_refused(capsys):
    """Rather than one value taken."""
    status, _, err = asked(capsys, "memory_time", sets=("B=1", "B=2"))
    assert (status, err) == (2, "planner: --set B: given twice\n")


@pytest.mark.parametrize(
    ("words", "sets", "sentence"),
    [
        (("memory_time",), ("W=0", *MEMORY), "W is 0 there, and it is divided by"),
        (("memory_time", "--solve-for", "B"),
         ("T_mem=10 ms", "W=3 TB/s", "N_total=70B", "b_w=1", "L_ctx=0", "b_kv=70 kB"),
         "L_ctx is 0 there, and it is divided by"),
        (("memory_time", "--solve-for", "B"),
         ("T_mem=10 ms", "W=3 TB/s", "N_total=70B", "b_w=1", "L_ctx=4k", "b_kv=70 kB"),
         "it would be negative, -142.857; there is no real solution above zero"),
        (("critical_batch_with_kv",),
         ("F=600", "W=1", "b_w=1", "N_total=8", "N_active=1", "c_fwd=2", "m_pos=1", "b_kv=1",
          "L_ctx=1"), "it would be negative"),
        (("expert_coverage", "--solve-for", "k_experts"),
         ("B=2", "m_pos=1", "coverage=1.5", "n_experts=8"), "has no real root"),
        (("memory_time",), ("W=1e-300", "N_total=1e200", "b_w=1", "B=1", "L_ctx=1", "b_kv=1"),
         "it is infinite, or too large for a number"),
    ],
    ids=["singular", "singular inverse", "negative", "no roof meets", "root", "overflow"],
)  # fmt: skip
def test_a_point_without_a_value_is_refused(capsys, words, sets, sentence):
    """Singular points and equations without a real solution: which part, and why."""
    status, out, err = asked(capsys, *words, sets=sets)
    assert (status, out) == (2, "")
    assert "no value for " in err
    assert "at this point: " in err
    assert sentence in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("wrong", ["x_wide=-1", "T_pf_read=1 s", "nobody=3", "x_wide"])
def test_values_are_refused_before_anything_is_solved(monkeypatch, wrong):
    """Turning the cubic of shared reads took 15 s before a negative share was looked at."""
    monkeypatch.setattr(Equation, "solve_for", None)
    with pytest.raises(InputError, match="--set"):
        formula_card("reading_beside", "T_pf_read", ["n_pr=1.5", wrong])


def test_an_equation_turned_round_is_code(capsys, tmp_path):
    """Run as Python, it gives what the card gives."""
    sets = ("b_w=1", "N_total=8e11", "N_active=1e11", "F=6e15", "B_crit=2400", "c_fwd=1", "m_pos=1")
    _, out, _ = asked(capsys, "critical_batch", "--solve-for", "W", "--json", sets=sets)
    status, text, _ = asked(capsys, "critical_batch", "--solve-for", "W", "--format", "python")
    (tmp_path / "code.py").write_text(text)
    room = runpy.run_path(str(tmp_path / "code.py"))
    (function,) = [each for name, each in room.items() if name.endswith("solved_for_w")]
    values = dict(each.split("=") for each in sets)
    assert status == 0
    assert function(**{x: float(v) for x, v in values.items()}) == json.loads(out)["value"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("critical_batch", "--format", "fortran"), "known: python, c, js, julia"),
        (("--format", "c"), "--format writes one equation"),
        (("critical_batch", "--format", "c", "--json"), "leave out the rest"),
        (("critical_batch", "--format", "c", "--solve-for", "x_no"), "does not occur"),
    ],
)
def test_code_that_cannot_be_written_is_refused(capsys, words, told):
    """One sentence, exit status 2."""
    status, out, err = asked(capsys, *words)
    assert (status, out) == (2, "")
    assert told in err
