"""A flat list of array operations: what expressions become before numbers are put in.

A tape is plain data (strings and numbers): it is written to files and read back without SymPy, it
needs no generated code, and its sums and products stay n-ary, so that `block_executor` can order
them by the shapes that arrive — scalars first, full arrays last.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Node = tuple  # (operation, *operands); operands are slots, except in "constant" and "argument"
PlainTape = tuple[list[Node], dict[str, int]]  # as JSON holds it: groups of slots are lists there


@dataclass
class Tape:
    """Nodes in topological order: each needs only earlier nodes.

    `sum` and `product` hold two groups of slots: added and subtracted, over and under the line.
    """

    nodes: list[Node] = field(default_factory=list)
    outputs: dict[str, int] = field(default_factory=dict)

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names that must be given, in order of first use."""
        return tuple(node[1] for node in self.nodes if node[0] == "argument")

    def only(self, output: str) -> Tape:
        """The part of the tape that `output` needs; its other slots hold a constant."""
        needed = {self.outputs[output]}
        for place in range(len(self.nodes) - 1, -1, -1):
            operation, *operands = self.nodes[place]
            if place in needed and operation not in ("constant", "argument"):
                for operand in operands:
                    needed.update(operand if isinstance(operand, tuple) else (operand,))
        nodes = [x if i in needed else ("constant", 0.0) for i, x in enumerate(self.nodes)]
        return Tape(nodes, {output: self.outputs[output]})

    def plain(self) -> PlainTape:
        """The tape as JSON holds it."""
        return self.nodes, self.outputs

    @classmethod
    def of_plain(cls, document: PlainTape) -> Tape:
        """Rebuild the tape from the output of `plain` after a JSON round trip."""
        listed, outputs = document
        nodes = [
            (name, *(tuple(x) if isinstance(x, list) else x for x in operands))
            for name, *operands in listed
        ]
        return cls(nodes, dict(outputs))
