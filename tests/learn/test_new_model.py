"""A new model is one new file: with its recipe alone it is held out, paid for, sealed, written, read and evaluated."""

import importlib.util
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

import privsolve as ps
from privsolve import Bins, Categories, Label, Schema
from privsolve.learn.evaluating import HoldOut, evaluate_frame
from privsolve.learn.recipe import Recipe, encode
from privsolve.safety.folder import load_release, output_folder

NEW_FILE = '''
"""A tally: one point for or against every feature, by the sign of a noisy count."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from privsolve.data import EncodedTable, Schema
from privsolve.domains import TernaryCube
from privsolve.learn.recipe import with_outside
from privsolve.losses import ZeroOneLoss
from privsolve.noise.discrete import DiscreteLaplace
from privsolve.noise.entropy import as_randomness
from privsolve.privacy.accounting import charged
from privsolve.privacy.adjacency import Adjacency
from privsolve.privacy.guarantee import Guarantee
from privsolve.privacy.profiles import profile_of
from privsolve.problems.problem import Problem
from privsolve.releases import Diagnostics, Release, Run


@dataclass(frozen=True)
class TallyRecipe:
    """One changed record moves every count by at most 2, so all together by at most twice the number of features."""

    epsilon: float

    def encoding(self, schema: Schema) -> Schema:
        return replace(schema, intercept=False)

    def run(self, encoded: EncodedTable, *, random_state=None, progress=None, budget=None) -> Run:
        table, rng = encoded.table, as_randomness(random_state)
        law = DiscreteLaplace(2 * table.dim / Fraction(self.epsilon))
        guarantee = Guarantee(
            profile_of(self.epsilon, 0.0), Adjacency.REPLACE, "tally", "discrete Laplace noise", theory="1",
            oracle="none", seeded=rng.is_seeded,
        )
        with charged(budget, guarantee, draft=encoded.schema.paid):
            counts = (table.positives - table.negatives) @ table.rows + law.draws(rng, table.dim)
        problem = Problem(table, TernaryCube(table.dim), ZeroOneLoss(), encoded.schema)
        weights = np.sign(counts)
        release = Release(problem.model(weights), guarantee, problem.setting)
        return with_outside(Run(release, Diagnostics(0.0, problem.quality(weights), {})), encoded)
'''


@pytest.fixture
def tally(tmp_path: Path) -> Iterator[ModuleType]:
    """The new file, as if it lay in the package."""
    file = tmp_path / "tally_recipe.py"
    file.write_text(NEW_FILE)
    spec = importlib.util.spec_from_file_location("privsolve.learn.tally_recipe", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture
def people() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"age": rng.integers(20, 90, 3000), "smoker": rng.choice(["yes", "no"], 3000)})
    ill = (table.age >= 55) | (table.smoker == "yes")
    return table.assign(ill=np.where(rng.random(3000) < 0.1, ~ill, ill).astype(bool))


SCHEMA = Schema([Bins("age", [55]), Categories("smoker", ["yes"], no="no")], Label("ill", True, False))


def test_one_file_is_enough(tally: ModuleType, people: pd.DataFrame, tmp_path: Path) -> None:
    recipe: Recipe = tally.TallyRecipe(1.0)
    whole = encode(recipe, SCHEMA, people)
    test = HoldOut.of(0.2, 1.0, None, whole.schema)
    assert test is not None
    ledger = ps.Ledger.create(tmp_path / "a.ledger", epsilon=1.0)
    with output_folder(tmp_path / "out") as folder, ps.SealedRun(folder.sealed, budget=ledger) as sealed:
        run = sealed.run(partial(test.fitted, recipe.run, whole, (whole.table,), "replace"))
        folder.write(run)
    assert ledger.totals().epsilon == 1
    release = load_release(tmp_path / "out" / "release.json")
    assert release.evaluation is not None
    assert release.evaluation.accuracy.value > 0.8
    assert "tally" in (tmp_path / "out" / "scorecard.html").read_text()
    assert (release.predict(people) == people["ill"]).mean() > 0.8
    again = evaluate_frame(release, people, people["ill"].to_numpy(), 1.0, tested="other records")
    assert again.auc.value > 0.8
