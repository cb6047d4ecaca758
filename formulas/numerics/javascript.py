"""A tape written out as JavaScript: functions parted by what an operation depends on.

Every node of a tape is computed as early as what it needs is there: with the scenario, with a
layout, or with a batch. Sums and products are split along the same lines, so that a call of the
last function costs what a batch changes and nothing else. The text holds numbers, the arithmetic
of `Math` and no name that comes from outside.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from formulas.numerics.tape import Tape

SCENARIO, LAYOUT, BATCH = range(3)
_CALLS = {
    "maximum": "Math.max", "minimum": "Math.min", "sqrt": "Math.sqrt", "exp": "Math.exp",
    "log": "Math.log", "log1p": "Math.log1p", "expm1": "Math.expm1", "ceil": "Math.ceil",
    "floor": "Math.floor", "absolute": "Math.abs", "power": "Math.pow",
}  # fmt: skip
_RELATIONS = {
    "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "===",
    "not_equal": "!==", "logical_and": "&&", "logical_or": "||",
}  # fmt: skip


@dataclass(frozen=True)
class StagedScript:
    """A tape as JavaScript functions, and the order of their arguments and outputs.

    Attributes:
        text: An object literal of functions: `scenario(a)` of the scenario's values in their order
            gives an array; `layout(s, a, o, l)` writes what batches need into `l` from place `o`
            on; each other function `(s, l, o, b, r)` writes outputs into `r`, in the order of
            `outputs`.
        names: The values that each of the three stages takes, in their order.
        width: Numbers of one layout.
        outputs: {function: its outputs in the order in which `r` holds them}.
    """

    text: str
    names: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
    width: int
    outputs: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class _Step:
    """One operation of a stage: a value by its number, written with the words of its operands.

    What is `whole` needs no brackets inside another.
    """

    stage: int
    operands: tuple[int, ...]
    write: Callable[[Sequence[str]], str]
    whole: bool = False


@dataclass
class _Stages:
    """Operations in topological order: each uses only earlier operations."""

    stage_of: Mapping[str, int]
    steps: list[_Step] = field(default_factory=list)
    words: dict[int, str] = field(default_factory=dict)  # of constants, which need no operation
    numbers: dict[object, int] = field(default_factory=dict)

    def add(self, tape: Tape) -> dict[str, int]:
        """The numbers of the outputs of a tape."""
        slots: list[int] = []
        for operation, *operands in tape.nodes:
            slots.append(self._node(operation, operands, slots))
        return {name: slots[slot] for name, slot in tape.outputs.items()}

    def _node(self, operation: str, operands: list, slots: Sequence[int]) -> int:
        if operation == "constant":
            number = self._step(("constant", operands[0]), SCENARIO, (), lambda _: "")
            self.words[number] = _literal(operands[0])
            return number
        if operation == "argument":
            name = operands[0]
            return self._step(
                ("argument", name), self.stage_of.get(name, SCENARIO), (), lambda _: name
            )
        if operation in ("sum", "product"):
            over, under = ([slots[s] for s in group] for group in operands)
            return self._folded(operation == "sum", over, under)
        return self._plain(operation, [slots[s] for s in operands])

    def _plain(self, operation: str, numbers: list[int]) -> int:
        stage = max(self.steps[n].stage for n in numbers)
        key = (operation, *numbers)
        if operation == "negative":
            return self._step(key, stage, numbers, lambda w: f"-{w[0]}")
        if operation == "logical_not":
            return self._step(key, stage, numbers, lambda w: f"!{w[0]}")
        if operation == "where":
            return self._step(key, stage, numbers, lambda w: f"{w[0]}?{w[1]}:{w[2]}")
        if operation in _RELATIONS:
            sign = _RELATIONS[operation]
            return self._step(key, stage, numbers, sign.join)
        call = _CALLS[operation]
        return self._step(key, stage, numbers, lambda w: f"{call}({','.join(w)})", whole=True)

    def _folded(self, adds: bool, over: list[int], under: list[int]) -> int:
        """A sum or product, of the operands of each stage by themselves and then of the parts."""
        result: int | None = None
        for stage in (SCENARIO, LAYOUT, BATCH):
            ups = [n for n in over if self.steps[n].stage == stage]
            downs = [n for n in under if self.steps[n].stage == stage]
            for numbers, up in ((ups, True), (downs, False)):
                if not numbers:
                    continue
                part = self._chain("+" if adds else "*", stage, numbers)
                result = self._joined(adds, result, part, up)
        if result is None:
            raise ValueError("an empty sum or product")
        return result

    def _chain(self, sign: str, stage: int, numbers: list[int]) -> int:
        if len(numbers) == 1:
            return numbers[0]
        return self._step((sign, *numbers), stage, numbers, sign.join)

    def _joined(self, adds: bool, result: int | None, part: int, up: bool) -> int:
        stage = max(self.steps[n].stage for n in (part, *([] if result is None else [result])))
        if result is None:
            if up:
                return part
            first = "-" if adds else "1/"
            return self._step((first, part), stage, (part,), lambda w: f"{first}{w[0]}")
        sign = ("+" if up else "-") if adds else ("*" if up else "/")
        return self._step((sign, result, part), stage, (result, part), sign.join)

    def _step(
        self,
        key: object,
        stage: int,
        operands: Iterable[int],
        write: Callable[[Sequence[str]], str],
        *,
        whole: bool = False,
    ) -> int:
        if key not in self.numbers:
            self.numbers[key] = len(self.steps)
            self.steps.append(_Step(stage, tuple(operands), write, whole))
        return self.numbers[key]

    def needed(self, wanted: Iterable[int]) -> set[int]:
        """All operations that some values need."""
        every = set(wanted)
        for number in range(len(self.steps) - 1, -1, -1):
            if number in every:
                every.update(self.steps[number].operands)
        return every


def to_javascript(
    tape: Tape, stage_of: Mapping[str, int], functions: Mapping[str, Sequence[str]]
) -> StagedScript:
    """A tape as functions of the scenario, of a layout and of a batch.

    Raises ValueError for an empty sum; KeyError for an operation that JavaScript does not have, or
    an output that the tape does not.

    Args:
        stage_of: {argument: its stage}; those of the scenario may be left out.
        functions: {name of a function of a batch: the outputs that it gives}.
    """
    stages = _Stages(stage_of)
    outputs = stages.add(tape)
    wanted = {name: [outputs[each] for each in given] for name, given in functions.items()}
    every = {number for numbers in wanted.values() for number in numbers}
    live = stages.needed(every)
    names: tuple[list[str], list[str], list[str]] = ([], [], [])
    # Storage index of the values that a later stage needs, by stage.
    places: tuple[dict[int, int], dict[int, int]] = ({}, {})
    for number in sorted(live):
        for operand in stages.steps[number].operands:
            stage = stages.steps[operand].stage
            if operand not in stages.words and stage < stages.steps[number].stage:
                places[stage].setdefault(operand, len(places[stage]))
    for number in sorted(every):
        stage = stages.steps[number].stage
        if stage < BATCH and number not in stages.words:
            places[stage].setdefault(number, len(places[stage]))
    texts = []
    for stage, head in ((SCENARIO, "scenario(a)"), (LAYOUT, "layout(s,a,o,l)")):
        texts.append(f"{head}{{{_body(stages, live, stage, places, names)}}}")
    for function, numbers in wanted.items():
        body = _body(stages, live & stages.needed(numbers), BATCH, places, names, numbers)
        word = _words(stages, places, BATCH)
        ends = "".join(f"r[{k}]={word(n)};" for k, n in enumerate(numbers))
        texts.append(f"{function}(s,l,o,b,r){{{body}{ends}}}")
    taken = (tuple(names[SCENARIO]), tuple(names[LAYOUT]), tuple(names[BATCH]))
    text = ",\n".join(texts)
    results = {name: tuple(each) for name, each in functions.items()}
    return StagedScript(f"{{{text}}}", taken, len(places[LAYOUT]), results)


def _words(
    stages: _Stages, places: tuple[dict[int, int], dict[int, int]], stage: int
) -> Callable[[int], str]:
    """Return the function that writes the JavaScript reference of a value within a stage."""

    def word(number: int) -> str:
        of = stages.steps[number].stage
        if number in stages.words:
            return stages.words[number]
        if of == stage:
            return _name(number)
        return f"s[{places[of][number]}]" if of == SCENARIO else f"l[o+{places[of][number]}]"

    return word


def _body(
    stages: _Stages, live: set[int], stage: int, places: tuple[dict[int, int], dict[int, int]],
    names: tuple[list[str], list[str], list[str]], outputs: Sequence[int] = (),
) -> str:  # fmt: skip
    """JavaScript body of one stage: its operations, and the values it passes to later stages.

    A value that one other needs is written where it is needed.
    """
    uses = Counter(operand for number in live if stages.steps[number].stage == stage
                   for operand in stages.steps[number].operands)  # fmt: skip
    inside: dict[int, str] = {}
    named, lines = _words(stages, places, stage), []
    stays = {*outputs, *(places[stage] if stage < BATCH else ())}

    def word(number: int) -> str:
        return inside.pop(number, "") or named(number)

    for number in sorted(live):
        step = stages.steps[number]
        if step.stage != stage or number in stages.words:
            continue
        if step.operands:
            text = step.write([word(operand) for operand in step.operands])
        else:
            name = step.write(())
            if name not in names[stage]:
                names[stage].append(name)
            text = f"{'b' if stage == BATCH else 'a'}[{names[stage].index(name)}]"
        if uses[number] == 1 and number not in stays:
            inside[number] = text if step.whole or not step.operands else f"({text})"
        else:
            lines.append(f"{_name(number)}={text}")
    body = f"const {','.join(lines)};" if lines else ""
    if stage == SCENARIO:
        return f"{body}return [{','.join(map(_name, places[SCENARIO]))}];"
    if stage == LAYOUT:
        body += "".join(f"l[o+{place}]={_name(n)};" for n, place in places[LAYOUT].items())
    return body


def _name(number: int) -> str:
    from numpy import base_repr

    return f"V{base_repr(number, 36).lower()}"


def _literal(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "(-Infinity)"
    text = repr(value).removesuffix(".0")
    return f"({text})" if value < 0 else text
