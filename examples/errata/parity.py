"""Gaussian scales that ignore the dimension: the true epsilon on the parity data sets, in closed form and as drawn.

Run: python examples/errata/parity.py [--figure errata-parity.svg]
"""

import argparse
import math
import warnings

import numpy as np
from scipy.special import log_ndtr

import privsolve as ps
from privsolve import audit
from privsolve.noise.entropy import Randomness
from privsolve.privacy import calibration

DELTA = 1e-6


def true_epsilon(dim: int, scale: float) -> float:
    """The smallest epsilon of the parity pair at DELTA, where the coefficient of each coordinate has deviation `scale`.

    `Pr[odd|D] = 1 - p/2` and `Pr[odd|D'] = p/2` with `p = (2Φ(-1/2s))^d` (theory, section 2.3), so that epsilon is
    `ln((1 - p/2 - δ)/(p/2))`.
    """
    x = 1 / (2 * scale)
    # log1p keeps the relative precision of a small x, log_ndtr that of a large one
    log_p = dim * (math.log1p(-math.erf(x / math.sqrt(2))) if x < 1 else math.log(2) + float(log_ndtr(-x)))
    excess = -math.expm1(log_p) - 2 * DELTA  # (2 - p - 2δ) - 1
    return max(0.0, math.log1p(excess) - log_p)


def opdisc(dim: int, share: float = 1.0) -> float:
    """What OPDisc loses with `share` of the published scale, where epsilon = 1 is claimed."""
    sigma = share * calibration.gaussian_sigma_published(dim, 0.5, 2.0, 1.0, DELTA)
    return true_epsilon(dim, sigma / math.sqrt(dim))


def rspm(dim: int) -> float:
    """The same for RSPM with one separator per coordinate."""
    sigma = calibration.separator_sigma_published(dim, 1.0, DELTA)
    return true_epsilon(dim, sigma / 2)


def proved(dim: int) -> float:
    """The same for OPDisc with the Gaussian scale of theory section 2.2."""
    sigma = calibration.gaussian_sigma(dim, calibration.sphere_shift(2, dim, 4), 1.0, DELTA)
    return true_epsilon(dim, sigma / math.sqrt(dim))


def first_broken(true_epsilon) -> int:  # type: ignore[no-untyped-def]
    return next(dim for dim in range(1, 10_000) if true_epsilon(dim) > 1)


def drawn(dim: int, runs: int) -> audit.Finding:
    """The published scale attacked by drawing its noise and minimising exactly."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.PrivacyWarning)
        law = ps.sphere_noise(ps.SignCube(dim), 1.0, delta=DELTA, noise="gaussian-published")
    case, rng = audit.parity(dim), Randomness.seeded(0)
    return audit.lower_bound(
        lambda problem, n: audit.parity_draws(problem, law, n, rng), case.data, case.neighbour, runs, DELTA
    )


def draw_figure(path: str) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "privsolve"  # the same figure gives the same file
    import matplotlib.pyplot as plt

    dims = np.unique(np.geomspace(10, 10_000, 60).astype(int))
    figure, axes = plt.subplots(figsize=(6.4, 3.8))
    curves = (
        (opdisc, "OPDisc, published", "tab:red", "-"),
        (lambda d: opdisc(d, 0.5), "OPDisc, half of that scale", "tab:red", "--"),
        (rspm, "RSPM, published", "tab:orange", "-"),
        (proved, "OPDisc, proved (section 2.2)", "tab:green", "-"),
    )
    for curve, label, colour, style in curves:
        axes.loglog(dims, [curve(int(d)) for d in dims], style, color=colour, label=label)
    axes.axhline(1.0, color="black", linewidth=0.8, label="claimed")
    axes.set(xlabel="dimension d", ylabel="true epsilon at delta = 1e-6", ylim=(0.1, 40))
    axes.legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", help="also write the plot of epsilon against d to this file")
    options = parser.parse_args(arguments)
    print("true epsilon on the parity data sets, where epsilon = 1, delta = 1e-6 is claimed")
    print("     d   OPDisc published   half of its scale   RSPM published   OPDisc proved")
    for dim in (23, 100, 300, 1000, 3000, 10000):
        print(f"{dim:6}{opdisc(dim):19.3f}{opdisc(dim, 0.5):20.3f}{rspm(dim):17.3f}{proved(dim):16.3f}")
    print(f"above 1 from d = {first_broken(opdisc)} (OPDisc), d = {first_broken(rspm)} (RSPM)")
    found = drawn(1000, 4000)
    print(
        f"d = 1000, noise drawn and minimised exactly, 4,000 runs each: epsilon >= {found.epsilon:.2f}, confidence 0.999"
    )
    if options.figure:
        draw_figure(options.figure)


if __name__ == "__main__":
    main()
