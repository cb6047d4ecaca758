"""Tokens, requests and context that a replica's KV cache holds: lines of every serving answer."""

from dataclasses import dataclass
from typing import Annotated

from planner.protocol.document import Unit

TokenEnds = Annotated[tuple[int, int], Unit("token")]


@dataclass(frozen=True)
class HeldRequests:
    """Capacity of a replica's KV cache, from the low to the high end of its engine's room.

    `requests` are of `context` tokens each, `longest` is the longest single one, in the blocks of
    `engine`; the verdict is of those that are to be held at once. `least_chips` of a replica and
    `least_share` of a chip's memory hold them too, None where none does.
    Where no rule was read for the kinds of layers they count as if every layer held the whole
    context, and `tokens_by_layers` are those of the layers' own bytes.
    """

    verdict: str
    engine: str
    context: Annotated[int, Unit("token")]
    tokens: TokenEnds
    requests: Annotated[tuple[float, float], Unit("seq")]
    longest: TokenEnds
    least_chips: Annotated[int, Unit("chip")] | None
    least_share: Annotated[float, Unit("1")] | None
    tokens_by_layers: TokenEnds | None

    @property
    def words(self) -> str:
        """In a sentence."""
        tokens, longest = (f"{low:,} to {high:,}" for low, high in (self.tokens, self.longest))
        fewest, most = self.requests
        share = f", from a share of {self.least_share:.3f}" if self.least_share else ""
        plural = "s" * (self.least_chips != 1)
        chips = f", on {self.least_chips} chip{plural} or more" if self.least_chips else ""
        if self.tokens_by_layers:
            ends = " to ".join(f"{x:,}" for x in self.tokens_by_layers)
            chips += f"; no rule was read for its kinds of layers: by their own bytes {ends} tokens"
        return (
            f"{self.engine} holds {tokens} tokens a replica: {fewest:,.0f} to {most:,.0f} requests "
            f"of {self.context:,}, or one of {longest}; one {self.verdict}{share}{chips}"
        )
