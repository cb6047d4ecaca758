"""Configuration reader that tracks its keys: values are checked, unread keys accounted for.

`Reader.finish` refuses every key that looks like structure (`num_*`, `*_size`, `*experts*`, ...),
says something (is not null, zero, false or empty), repeats nothing known and was never read: an
unknown structural key means that the layers built from the known ones would be wrong. Other keys
that nobody knows are returned, to be named beside the count.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import NoReturn, TypeVar

from planner.architecture.quantization import Precision, torch_dtype
from planner.text.errors import Mistake, ModelError, did_you_mean, quote
from planner.text.tables import table

T = TypeVar("T")
Keys = str | tuple[str, ...]  # a key, or all names of one thing
MAX_LAYERS = 4096
MAX_COUNT = 2**31

_TABLE = table("planner.architecture", "config_keys.toml")
_KEYS = {name: re.compile("|".join(patterns)) for name, patterns in _TABLE["patterns"].items()}


class Reader:
    """A configuration and the keys already read from it; `where` names the file in errors."""

    def __init__(self, values: Mapping[str, object], where: str) -> None:
        self._values = values
        self._read: set[str] = set()
        self.where = where

    def fail(self, key: str, problem: str) -> ModelError:
        """Return the error that names this file, the key and the problem."""
        return ModelError(Mistake(self.where, None, None, key, problem))

    def has(self, key: str) -> bool:
        """True if the key is given and not null."""
        return self._values.get(key) is not None

    def is_set(self, key: str) -> bool:
        """True if the key is given, null included."""
        return key in self._values

    def keys(self) -> list[str]:
        """The keys of this mapping, all counted as read."""
        self._read.update(self._values)
        return [str(key) for key in self._values]

    def ignore(self, *keys: Keys) -> None:
        """Accept keys that this family carries but whose value changes no layer."""
        self._read.update(name for key in keys for name in key_names(key))

    def value(self, keys: Keys) -> object:
        """Value under the first of the names that is given and not null, else None.

        Raises ModelError where two names of the same thing disagree.
        """
        names = key_names(keys)
        self._read.update(names)
        present = [(name, self._values[name]) for name in names if self.has(name)]
        for name, value in present[1:]:
            if value != present[0][1]:
                raise self.fail(
                    name, f"is {quote(value)}, but {present[0][0]} is {quote(present[0][1])}"
                )
        return present[0][1] if present else None

    def whole(
        self, keys: Keys, default: int | None = None, *, least: int = 1, most: int = MAX_COUNT
    ) -> int:
        """A whole number in [least, most]; raises ModelError if missing without a default."""
        value = self.optional(keys, least=least, most=most)
        if value is not None:
            return value
        if default is None:
            unread = [key for key in self._values if key not in self._read]
            hint = did_you_mean(key_names(keys)[0], unread)
            raise self.fail(key_names(keys)[0], f"is missing; expected a whole number{hint}")
        return default

    def optional(self, keys: Keys, *, least: int = 1, most: int = MAX_COUNT) -> int | None:
        """A whole number in [least, most], or None where the key is absent or null."""
        value = self.value(keys)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.fail(key_names(keys)[0], f"is {quote(value)}, expected a whole number")
        if not least <= value <= most:
            raise self.fail(key_names(keys)[0], f"is {quote(value)}, expected {least} to {most}")
        return value

    def number(self, key: str) -> float:
        """A positive number up to MAX_COUNT; raises ModelError if missing."""
        value = self.value(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.fail(key, f"is {quote(value)}, expected a number")
        if not 0 < value <= MAX_COUNT:
            raise self.fail(key, f"is {quote(value)}, expected more than 0, up to {MAX_COUNT}")
        return float(value)

    def flag(self, keys: Keys, default: bool) -> bool:
        """A truth value."""
        value = self.value(keys)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.fail(key_names(keys)[0], f"is {quote(value)}, expected true or false")
        return value

    def text(self, keys: Keys, default: str = "") -> str:
        """A word."""
        value = self.value(keys)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.fail(key_names(keys)[0], f"is {quote(value)}, expected text")
        return value

    def precision(self, key: str, default: str) -> Precision:
        """A number format by the name checkpoints use (`bfloat16`, `float32`)."""
        name = self.text(key, default)
        precision = torch_dtype(name)
        if precision is None:
            raise self.fail(key, f"is {quote(name)}, expected a number format such as bfloat16")
        return precision

    def words(self, key: str, length: int, meanings: Mapping[str, T]) -> list[T] | None:
        """Meanings of a list of `length` words, or None if the key is absent."""
        value = self.value(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise self.fail(key, f"is {quote(value)}, expected a list of words")
        if len(value) != length:
            raise self.fail(key, f"has {len(value)} entries for {length} layers")
        for word in value:
            if word not in meanings:
                expected = ", ".join(meanings)
                raise self.fail(key, f"names {quote(word)}, expected one of {expected}")
        return [meanings[word] for word in value]

    def wholes(self, key: str, *, most: int = MAX_COUNT) -> list[int] | None:
        """A list of whole numbers from 0 to `most`, or None where absent."""
        value = self.value(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(_is_whole(item, 0, most) for item in value):
            raise self.fail(key, f"is {quote(value)}, expected a list of numbers up to {most}")
        return value

    def flags(self, key: str, length: int) -> list[bool] | None:
        """A list of `length` zeros and ones, or None where absent."""
        listed = self.wholes(key, most=1)
        if listed is not None and len(listed) != length:
            raise self.fail(key, f"has {len(listed)} entries for {length} layers")
        return None if listed is None else list(map(bool, listed))

    def per_layer(
        self, keys: Keys, count: int, default: int | None = None, *, least: int = 1
    ) -> list[int]:
        """A whole number for each of `count` layers: one number for all, or a list of them."""
        value = self.value(keys)
        if not isinstance(value, list):
            return [self.whole(keys, default, least=least)] * count
        first = key_names(keys)[0]
        if len(value) != count:
            raise self.fail(first, f"has {len(value)} entries for {count} layers")
        for item in value:
            if not _is_whole(item, least, MAX_COUNT):
                raise self.fail(first, f"names {quote(item)}, expected whole numbers from {least}")
        return value

    def section(self, key: str) -> Reader | None:
        """A nested mapping as its own reader, or None where absent."""
        value = self.value(key)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise self.fail(key, f"is {quote(value)}, expected a mapping")
        return Reader(value, f"{self.where}  {key}")

    def finish(self) -> list[str]:
        """Return the unknown unread keys; raises ModelError if an unread key is structural."""
        unread = self.unread()
        structural = [key for key in unread if self.structural(key)]
        if structural:
            self.refuse(structural)
        return [key for key in unread if not _KEYS["harmless"].search(key)]

    def unread(self) -> list[str]:
        """The keys that say something, were never read, and repeat nothing that others say.

        Raises ModelError where a key that repeats others says something else than they do.
        """
        return sorted(
            str(key)
            for key, value in self._values.items()
            if key not in self._read
            and value not in (None, False, 0, "", [], {})
            and not self._redundant(str(key), value)
        )

    def structural(self, key: str) -> bool:
        """True if the name of the key marks it as determining the layers."""
        if _KEYS["decisive"].search(key):
            return True
        return bool(_KEYS["structural"].search(key)) and not _KEYS["harmless"].search(key)

    def beside(self, inner: Mapping[str, object]) -> list[str]:
        """Structural keys outside a nested language model, which belong to other towers.

        Raises ModelError for one that decides of a language model and is not said `inner` alike.
        """
        keys = [key for key in self.unread() if self.structural(key)]
        keys = [key for key in keys if key not in inner or inner[key] != self._values[key]]
        lost = [key for key in keys if _KEYS["decisive"].search(key)]
        lost = [key for key in lost if not _KEYS["tower"].search(key)]
        if lost:
            self.refuse(lost)
        return keys

    def refuse(self, keys: list[str]) -> NoReturn:
        """Raise ModelError naming the keys (five at most), each with the nearest key read."""
        read_keys = sorted(self._read)
        hints = [f"{quote(key)}{did_you_mean(key, read_keys)}" for key in keys[:5]]
        more = f" and {len(keys) - 5} more" if len(keys) > 5 else ""
        raise ModelError(
            f"{self.where}  structural key not understood: {', '.join(hints)}{more};"
            " the layers cannot be built without guessing"
        )

    def _redundant(self, key: str, value: object) -> bool:
        """True if a key is switched off by a flag, has its usual value or follows from others."""
        for pattern, switches in _TABLE["switched_off"].items():
            if re.search(pattern, key) and any(
                name in self._values and not self._values[name] for name in switches
            ):
                return True
        usual = _TABLE["usual"].get(key, ())
        if value in usual or (isinstance(value, list) and all(each in usual for each in value)):
            return True
        formulas = _TABLE["derived"].get(key, ())
        worths = {words: worth for words in formulas if (worth := self._worth(words)) is not None}
        if worths and value not in worths.values():
            words, worth = next(iter(worths.items()))
            raise self.fail(key, f"is {quote(value)}, but {words} is {worth:g}")
        return bool(worths)

    def _worth(self, words: str) -> float | None:
        first, *rest = words.split()
        values = [self._number_of(name) for name in (first, *rest[1:])]
        if None in values or (rest[:1] == ["/"] and not values[-1]):
            return None
        numbers = [value for value in values if value is not None]
        return float(_OPERATORS[rest[0]](*numbers)) if rest else numbers[0]

    def _number_of(self, name: str) -> float | None:
        for key in _TABLE["names"].get(name, (name,)):
            value = self._values.get(key)
            if isinstance(value, int | float) and not isinstance(value, bool):
                return float(value)
        return None


_OPERATORS: Mapping[str, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip


def key_names(keys: Keys) -> tuple[str, ...]:
    """Alternative names of a key; errors use the first."""
    return (keys,) if isinstance(keys, str) else keys


def _is_whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
