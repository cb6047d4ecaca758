"""Open arrivals on a replica: how busy its readers of prompts are, and how long requests wait."""

from collections.abc import Mapping

import numpy as np

from planner.problems.serving.step.kernels import fed, lowered

# Shares of the requests that wait longer than the quantile of that name.
TAILS = {"ttft_p95": 0.05, "ttft_p99": 0.01}


def queue(values: Mapping[str, float | np.ndarray]) -> dict[str, np.ndarray]:
    """Utilisation of the readers [-], mean wait and its quantiles `TAILS` [s], shaped as they are.

    `values` holds every symbol that the queue needs, `x_load` requests per second of a replica
    among them. Where readers cannot keep up the wait has no end: it is infinite, and so are its
    quantiles.
    """
    values = {**values, "x_load": np.maximum(values["x_load"], np.finfo(float).tiny)}
    values |= fed(lowered("prefill_queue"), values)
    busy = values["rho_pf"]
    endless = (busy >= 1) | (values["r_pf"] >= 1)
    # Those that cannot keep up are computed as if nothing arrived, and then put to infinity.
    ready = {**values, **{n: np.where(endless, 0.0, values[n]) for n in ("rho_pf", "r_pf")}}
    ready |= fed(lowered("mean_wait"), ready)
    tails = np.where(endless, np.inf, _quantiles(ready))
    wait = np.where(endless, np.inf, ready["T_wait"])
    return {"readers": busy, "wait": wait, **dict(zip(TAILS, tails, strict=True))}


def _quantiles(values: dict) -> np.ndarray:
    """The waits that the shares of `TAILS` exceed [s], along the first axis.

    Fewer than the share wait in line where readers are idler than it.
    """
    kernel = lowered("wait_quantile")
    dimensions = max(np.ndim(values[name]) for name in kernel.names if name in values)
    shares = np.array(list(TAILS.values())).reshape(-1, *[1] * dimensions)
    at = {**values, "rho_pf": np.maximum(values["rho_pf"], shares), "x_tail": shares}
    return np.asarray(fed(kernel, at)["T_tail"])
