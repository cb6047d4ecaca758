"""Keys of listed prices: a price per token, a multiple of another, a tier by price and speed."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from planner.scenario.keys.fields import Kind, Quantity, Record
from planner.text.errors import quoted
from planner.text.quantities import parse

CHEAPEST, DEAREST = 1e-9, 7e-4  # USD/token of any price on a sheet: 0.001 to 700 per million
MILLION = 1e6
MOST_TIMES = 1000.0  # that a price is of another on one sheet


@dataclass(frozen=True)
class TokenPrice(Kind):
    """A price per token [USD/token]; `free` where nothing may be charged."""

    free: bool = False

    def read(self, value: object) -> float:
        """The price [USD/token].

        Raises ValueError for one that no list would have, with what was probably meant.
        """
        price = parse(value, "token_price")
        if (price == 0 and self.free) or CHEAPEST <= price <= DEAREST:
            return price
        meant = price / MILLION
        hint = f'; did you mean "${price:g}/Mtok"?' if CHEAPEST <= meant <= DEAREST else ""
        raise ValueError(
            f'expected a price per token such as "$3/Mtok", from $0.001 to $700 per million '
            f"tokens, got {quoted(value)}, which is ${price * MILLION:,.10g} per million{hint}"
        )

    def schema(self) -> dict[str, object]:
        """Text or a number."""
        return {
            "type": ["string", "number"],
            "description": "a price per token [USD/token]",
            "examples": ["$3/Mtok"],
        }


@dataclass(frozen=True)
class Multiple(Kind):
    """A multiple of the sheet's price, such as 6x; or a price, which stays text until it is one."""

    priced: bool = True

    def read(self, value: object) -> float | str:
        """The multiple [-], or the price as it is written.

        Raises ValueError for neither.
        """
        text = value.strip() if isinstance(value, str) else value
        if isinstance(text, str) and text[-1:] in ("x", "×"):
            text = text[:-1].strip()
        elif isinstance(text, str) and self.priced and "/" in text:
            TokenPrice().read(text)
            return text
        number = Quantity("number").read(text)
        if number > MOST_TIMES:
            raise ValueError(f"expected a multiple such as 2.5x, got {quoted(value)}")
        return number

    def schema(self) -> dict[str, object]:
        """Text or a number."""
        return {"type": ["string", "number"], "examples": ["2.5x"]}


Factor = Annotated[float | str, Multiple()]


class PriceTier(Record):
    """A mode of the same model at another price, perhaps at another speed."""

    name: str = Field(description="fast, batch, flex, ...")
    price: Factor = Field(description="of the standard price, such as 6x, or an output price")
    speed: Annotated[float, Multiple(priced=False)] | None = Field(
        None, description="tokens per second over those of the standard tier, such as 2.5x"
    )


def relative(price: float | str, standard: float | None) -> float:
    """A multiple as it is; a price over the standard one [-]."""
    if not isinstance(price, str):
        return price
    amount = TokenPrice().read(price)
    return amount / (standard or amount)
