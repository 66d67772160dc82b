"""Privately choose which roads to keep open from where people travel.

    python examples/spanning_tree.py

The town's road graph is public; each person's daily roads are private. Winter service keeps a spanning tree open, the one
that keeps the most used roads: a maximum spanning tree, chosen exactly under noise. A person counts for at most three roads,
which is public and sets the noise.
"""

import numpy as np

import privsolve as ps
from privsolve.oracles import SpanningTreeOracle

SIDE, PEOPLE, ROADS_PER_PERSON = 4, 20_000, 3


def grid_graph(side: int) -> list[tuple[int, int]]:
    """Roads between neighbouring crossings of a square town."""
    across = [(side * i + j, side * i + j + 1) for i in range(side) for j in range(side - 1)]
    down = [(side * i + j, side * (i + 1) + j) for i in range(side - 1) for j in range(side)]
    return across + down


def made_up_trips(roads: int) -> np.ndarray:
    """1 where a person uses a road, at most ROADS_PER_PERSON each."""
    rng = np.random.default_rng(1)
    popularity = rng.dirichlet(np.full(roads, 0.5))
    uses = np.zeros((PEOPLE, roads), dtype=np.int64)
    for person in uses:
        person[rng.choice(roads, size=ROADS_PER_PERSON, replace=False, p=popularity * 0.8 + 0.2 / roads)] = 1
    return uses


def main() -> None:
    edges = grid_graph(SIDE)
    domain = ps.SpanningTrees(SIDE * SIDE, edges)
    uses = made_up_trips(len(edges))
    # an open road that a person uses is a gain of 1, so no choice of tree matters to a person by more than their roads
    problem = ps.LinearProblem(-uses, domain, largest=ROADS_PER_PERSON, names=[f"{a}-{b}" for a, b in edges])
    run = ps.opdisc(problem, epsilon=1.0, oracle=SpanningTreeOracle())
    kept = [name for name, chosen in zip(problem.names, run.release.weights, strict=True) if chosen]
    print(f"{PEOPLE:,} people, {len(edges)} roads, {domain.size:,} spanning trees to choose from.")
    print(f"Roads kept open: {', '.join(kept)}\n")
    print(run.release.guarantee)
    open_share = (uses @ run.release.weights).sum() / uses.sum()
    best = SpanningTreeOracle().minimise(problem, ps.Perturbation.zero(domain)).weights
    print(f"\nFor the curator only: {open_share:.1%} of the daily road uses stay open; ", end="")
    print(f"without privacy {(uses @ best).sum() / uses.sum():.1%}.")


if __name__ == "__main__":
    main()
