"""Rates, times and counts as a picture says them."""


def rate_text(value: float) -> str:
    """A bandwidth [byte/s] as people write it.

    >>> rate_text(45e9), rate_text(1.8e12)
    ('45 GB/s', '1.8 TB/s')
    """
    for scale, letter in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= scale * 0.9995:
            return f"{value / scale:.4g} {letter}B/s"
    return f"{value:.4g} B/s"


def time_text(value: float) -> str:
    """A latency [s] as people write it.

    >>> time_text(2.5e-6), time_text(0.0)
    ('2.5 us', '0 s')
    """
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")):
        if value >= scale * 0.9995:
            return f"{value / scale:.3g} {unit}"
    return f"{value:.3g} s"


def counted_text(count: int, singular: str, many: str | None = None) -> str:
    """A number and what it counts.

    >>> counted_text(1, "chip"), counted_text(9216, "chip")
    ('1 chip', '9,216 chips')
    """
    plural = many or (
        f"{singular}es" if singular.endswith(("ch", "sh", "x", "s")) else f"{singular}s"
    )
    return f"{count:,} {singular if count == 1 else plural}"
