"""What fuzzers share: values that nobody should pass, calls of which one argument is changed, and how many got in."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import privsolve as ps
from privsolve.data import Bins, Categories, Category, Label, Number, Schema

DOCUMENTED = (ValueError, TypeError, ps.PrivsolveError)

TABLE = ps.PatternTable([[1, 0], [1, 1], [0, 1]], [6, 1, 1], [1, 2, 5], names=("a", "b"))
PROBLEM = ps.Problem(TABLE, ps.IntegerBall(2, 2))
SCHEMA = Schema(
    [
        Categories("colour", [Category("red", ("red", "rouge")), "blue"], other="other", missing="unknown"),
        Bins("age", [30, 50], "intervals", whole=True),
        Number("hours", 0, 99, scale=99),
    ],
    Label("ill", positive="yes", negative="no"),
)
FRAME = pd.DataFrame({"colour": ["red", "blue"], "age": [20, 60], "hours": [10, 40], "ill": ["yes", "no"]})


@contextmanager
def only(*more: type[Exception]) -> Iterator[None]:
    """Anything but the documented errors goes through; warnings to users (privacy, names of columns) are no errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            yield
        except (*DOCUMENTED, *more) as error:
            message = str(error)
        else:
            message = "no error"
    assert message, "an error without a message"


@dataclass
class Share:
    """How many calls got in: a fuzzer whose every call is turned away at the door tests nothing but the door."""

    calls: int = 0
    accepted: int = 0

    @contextmanager
    def only(self, *more: type[Exception]) -> Iterator[None]:
        self.calls += 1
        with only(*more):
            yield
            self.accepted += 1

    def check(self, least: float, most: float = 0.95) -> None:
        assert least <= self.accepted / self.calls <= most, f"{self.accepted} of {self.calls} got in"


def fuzz(examples: int, shrink: bool = True) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return settings(
        max_examples=examples,
        phases=[Phase.explicit, Phase.generate, *([Phase.shrink] if shrink else [])],
        derandomize=True,
        deadline=None,  # a busy machine is no bug
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
    )


# --- values that nobody should pass ---------------------------------------------------------------------------------


class Odd:
    """An object of no use, with every comparison of its own."""

    def __repr__(self) -> str:
        return "Odd()"


ORDINARY = (0, 1, -1, 2, 3, 17, 0.1, 0.5, -0.5, 1.5, True, False)
EXTREME = (1e-300, 1e-12, 1e6, 1e300, 1.7e308, math.nan, math.inf, -math.inf)
LONG = (2**31, 2**53 + 1, 2**63, -(2**63), 2**64, 10**30, 10**400, -(10**400))
TYPED = (np.float64(0.3), np.float64("nan"), np.float32("nan"), np.int64(2), np.uint64(2**64 - 1))
NUMBER_VALUES = (*ORDINARY, *EXTREME, *LONG, *TYPED)
NUMBERS = st.sampled_from(NUMBER_VALUES)
TEXTS = st.one_of(
    st.text(max_size=6),
    st.sampled_from(["", " ", "replace", "gamma", "tree", "nan", "\x00", "é", "\ud800", "a" * 3000]),
)
PLAIN = st.one_of(st.none(), NUMBERS.filter(lambda x: type(x) in (int, float, bool)), st.integers(), st.floats(), TEXTS)
NESTED = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4), max_leaves=8
)
ANYTHING = st.one_of(
    NESTED,
    NUMBERS,
    st.builds(Odd),
    st.sampled_from(
        [b"", b"\x00", (), (1, 2), {1, 2}, 1j, np.array([1.5]), np.array("x"), print, Odd, range(3), pd.NaT]
    ),
)


@st.composite
def one_changed(draw: st.DrawFn, valid: dict[str, list[Any]]) -> dict[str, Any]:
    """Arguments of a valid call, then one of them anything (rarely two): often something that also occurs in valid calls."""
    call = {name: draw(st.sampled_from(values)) for name, values in valid.items()}
    others = st.sampled_from([value for values in valid.values() for value in values])
    for _ in range(draw(st.sampled_from([1, 1, 1, 2]))):
        name = draw(st.sampled_from(sorted(call)))
        call[name] = draw(draw(st.sampled_from([st.sampled_from(valid[name]), others, ANYTHING])))
    return call


def check_share(
    examples: int,
    values: st.SearchStrategy[Any],
    use: Callable[[Any], object],
    *more: type[Exception],
    least: float = 0.1,
    shrink: bool = True,
) -> None:
    """Use many values, of which all end in a documented error but a fair share that gets in."""
    share = Share()

    @fuzz(examples, shrink)
    @given(values)
    def run(value: Any) -> None:
        with share.only(*more):
            use(value)

    run()
    share.check(least)
