"""A JSON Schema as tables of keys, one for every record, which link to each other."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from _extension.markdown import code, table, words

TYPES = {"null": "nothing", "object": "mapping", "string": "text"}
Schema = Mapping[str, Any]


def reference(shape: Schema) -> str:
    """The name of the record that a schema refers to."""
    return str(shape["$ref"]).rpartition("/")[2]


@dataclass(frozen=True)
class SchemaTables:
    """Tables of keys; `prefix` is that of the names by which pages link to them."""

    prefix: str
    definitions: Mapping[str, Schema]

    def page(self, top: Schema) -> str:
        """The keys of a record, then of every one that it leads to, in order of reach."""
        parts, reached, queue = [], set[str](), [("", top)]
        while queue:
            name, record = queue.pop(0)
            anchor = f"({self.prefix}-{name.lower()})=\n\n## {name}\n\n"
            parts.append(anchor if name else "## Keys\n\n")
            parts.append(words(record.get("description", "").split("\n\n")[0]) + "\n\n")
            parts.append(self._keys(record))
            for inner in self._records(record["properties"]):
                if inner not in reached:
                    reached.add(inner)
                    queue.append((inner, self.definitions[inner]))
        return "".join(parts)

    def _records(self, shape: object) -> Iterator[str]:
        """Names of the records that a schema leads to."""
        if isinstance(shape, Mapping):
            if "$ref" in shape and "properties" in self.definitions[reference(shape)]:
                yield reference(shape)
            shape = shape.values()
        if not isinstance(shape, str) and isinstance(shape, Iterable):
            for inner in shape:
                yield from self._records(inner)

    def _keys(self, record: Schema) -> str:
        required = record.get("required", ())
        optional = len(required) < len(record["properties"])
        rows = []
        for name, shape in record["properties"].items():
            about = [words(shape["description"])] if "description" in shape else []
            about += [words(f"[{shape['unit']}]")] if shape.get("unit", "1") != "1" else []
            if optional and name in required:
                about.append("**required**")
            elif shape.get("default") is not None:
                about.append(f"default {code(json.dumps(shape['default']))}")
            rows.append((code(name), "; ".join(about), self.takes(shape)))
        return table(("key", "meaning", "takes"), rows)

    def takes(self, shape: Schema) -> str:
        """What a key takes, in a few words."""
        if "$ref" in shape:
            name = reference(shape)
            inner = self.definitions[name]
            linked = f"[{name}](#{self.prefix}-{name.lower()})"
            return linked if "properties" in inner else self.takes(inner)
        if "const" in shape or "enum" in shape:
            return " or ".join(code(str(x)) for x in shape.get("enum", (shape.get("const"),)))
        if "examples" in shape:
            return "such as " + ", ".join(code(str(x)) for x in shape["examples"])
        for several in ("anyOf", "oneOf"):
            if several in shape:
                choices = [self.takes(each) for each in shape[several]]
                return " or ".join(dict.fromkeys(x for x in choices if x != "nothing"))
        return self._of_type(shape)

    def _of_type(self, shape: Schema) -> str:
        kind, values = shape.get("type", "any value"), shape.get("additionalProperties")
        if kind == "array" and "items" in shape:
            return f"list of {self.takes(shape['items'])}"
        if kind == "object" and "properties" in shape:
            return code("{" + ", ".join(shape["properties"]) + "}")
        if kind == "object" and isinstance(values, Mapping):
            return f"mapping to {self.takes(values)}"
        names = [kind] if isinstance(kind, str) else [x for x in kind if x != "null"]
        return " or ".join(TYPES.get(x, x) for x in names)
