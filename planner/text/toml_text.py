"""Values as TOML text, for the files that the program writes; the caller says how numbers look."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Integral, Real

NumberFormat = Callable[[float], str]


def toml_lines(values: Mapping[str, object], number: NumberFormat) -> Iterator[str]:
    """Yield `key = value` for each value."""
    yield from (f"{toml_key(name)} = {toml_value(value, number)}" for name, value in values.items())


def toml_value(value: object, number: NumberFormat) -> str:
    """The text of a value; `number` writes floats, and whatever is no TOML type is its text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        return number(float(value))
    if isinstance(value, Mapping):
        return f"{{{', '.join(toml_lines(value, number))}}}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(toml_value(each, number) for each in value)}]"
    # TOML reads the string escapes of JSON; a file's name may hold invalid Unicode.
    text = str(value).encode("utf-8", "replace").decode()
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_key(name: str) -> str:
    """A key, quoted where TOML asks for it."""
    bare = name.replace("_", "").replace("-", "")
    return name if bare.isascii() and bare.isalnum() else toml_value(name, str)
