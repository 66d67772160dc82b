"""Sealed runs: the same words, the same question, one payment, and exactly the release that there would have been."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

import privsolve as ps
from privsolve.domains.trees import TreeQuestions
from privsolve.errors import LedgerError, SealedRunError
from privsolve.models.leaves import LabelLeaves
from privsolve.noise import sealed as module
from privsolve.noise.discrete import DiscreteLaplace
from privsolve.noise.fingerprints import fingerprint
from privsolve.noise.journal import Journal
from privsolve.noise.sealed import was_committed
from privsolve.privacy.adjacency import Adjacency
from privsolve.problems.unions import UnionProblem
from sealed_processes import draw_until_killed
from small_tables import INDICATORS, patients


class Killed(BaseException):
    """Stands for the end of a process."""


def table_of(seed: int = 0, rows: int = 30) -> ps.PatternTable:
    rng = np.random.default_rng(seed)
    features = np.column_stack([rng.integers(0, 2, (rows, 4)), np.ones(rows, dtype=int)])
    return ps.PatternTable(features, *rng.integers(0, 9, (2, rows)), ranges=[*[(0, 1)] * 4, (1, 1)])


TABLE = table_of()
CARDS = ps.Problem(TABLE, ps.SparsePoints(5, 2, 2, (-2, 2)))
RISKS = ps.Problem(TABLE, CARDS.domain, ps.BrierLoss(0.7))
TREES = ps.DecisionTrees(TreeQuestions.plain(4), 2, LabelLeaves(["no", "yes"]))
GROWN = ps.TreeProblem.from_table(TABLE, TREES)
BALL = ps.Problem(TABLE, ps.IntegerBall(5, 2))

RUNS: dict[str, Callable[..., ps.Run]] = {
    "cards": lambda **how: ps.exponential(CARDS, 0.1, **how),
    "ball": lambda **how: ps.exponential(BALL, 0.1, method="tree", **how),
    "list": lambda **how: ps.exponential(BALL, 0.1, method="enumeration", **how),
    "risks": lambda **how: ps.exponential(RISKS, 0.3, **how),
    "tree": lambda **how: ps.private_tree(GROWN, 0.1, **how),
    "union": lambda **how: ps.private_union(UnionProblem(TABLE, CARDS.domain, TREES), 0.1, **how),
    "opdisc": lambda **how: ps.opdisc(BALL, 0.5, **how),
    "rspm": lambda **how: ps.rspm(ps.Problem(TABLE, ps.SignCube(5)), 0.5, **how),
    "one of three": lambda **how: ps.choose({"a": 1, "b": 2, "c": 3}, 1, 0.5, **how),
    "own loss": lambda **how: ps.exponential(
        ps.DiscreteProblem(ps.IntegerGrid([-1], [1]), np.arange(6).reshape(2, 3) % 4, bound=3), 0.5, **how
    ),
}


def sealed_release(path: Path, run: Callable[..., ps.Run], *, killed: bool = False, **options: Any) -> str:
    """One process of a run: its release as it would be written. A killed one dies after that."""
    found = ""
    try:
        with ps.SealedRun(path, **options) as sealed:
            found = run(random_state=sealed.randomness, budget=sealed).release.to_json()
            if killed:
                raise Killed
    except Killed:
        pass
    return found


@pytest.mark.parametrize("name", RUNS)
def test_a_resumed_run_gives_its_release_and_pays_once(tmp_path: Path, name: str) -> None:
    ledger, path = ps.Ledger.create(tmp_path / "ledger", 9.0), tmp_path / "run.sealed"
    first = sealed_release(path, RUNS[name], killed=True, budget=ledger)
    assert path.stat().st_mode & 0o777 == 0o600
    again = [sealed_release(path, RUNS[name], killed=True, budget=ledger) for _ in range(2)]
    assert [entry.outcome for entry in ledger.history()] == ["spent"]
    assert [*again, sealed_release(path, RUNS[name], budget=ledger)] == [first] * 3
    assert [entry.outcome for entry in ledger.history()] == ["released"]
    assert "seeded" not in first or '"seeded": false' in first
    assert sorted(place.name for place in tmp_path.iterdir()) == ["ledger", "ledger.mark"]


@pytest.mark.parametrize("name", RUNS)
def test_it_is_the_release_that_there_would_have_been(tmp_path: Path, name: str) -> None:
    """Killed at the first, the second, ... look at the disk; a seed says what should come out."""
    for seed in range(3):
        expected = RUNS[name](random_state=seed).release.to_json()
        blocks, killed = [0], True
        while killed:
            killed = _killed_at_block(tmp_path / "run.sealed", RUNS[name], seed, blocks)
        assert sealed_release(tmp_path / "run.sealed", RUNS[name], random_state=seed) == expected
        assert blocks[0] >= 1


def _killed_at_block(path: Path, run: Callable[..., ps.Run], seed: int, blocks: list[int]) -> bool:
    """Go on until one more block of words than before was written, then die; False if there was none."""
    append, at = Journal.append, blocks[0]

    def dying(journal: Journal, number: int, words: bytes) -> None:
        append(journal, number, words)
        if number >= at:
            blocks[0] = number + 1
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "append", dying)
        patch.setattr(module, "FIRST_BLOCK", 64)
        before = blocks[0]
        sealed_release(path, run, killed=True, random_state=seed)
    return blocks[0] > before


OTHERS: dict[str, tuple[Callable[..., ps.Run], str]] = {
    "data": (lambda **how: ps.exponential(ps.Problem(table_of(1), CARDS.domain), 0.1, **how), "data"),
    "epsilon": (lambda **how: ps.exponential(CARDS, 0.2, **how), "epsilon"),
    "prior": (lambda **how: ps.exponential(CARDS, 0.1, prior=ps.SparsePrior(), **how), "prior"),
    "adjacency": (lambda **how: ps.exponential(CARDS, 0.1, adjacency="add-remove", **how), "adjacency"),
    "domain": (
        lambda **how: ps.exponential(ps.Problem(TABLE, ps.SparsePoints(5, 3, 2, (-2, 2))), 0.1, **how),
        "domain",
    ),
    "costs": (lambda **how: ps.exponential(ps.Problem(TABLE, CARDS.domain, ps.ZeroOneLoss(1, 2)), 0.1, **how), "loss"),
    "mechanism": (lambda **how: ps.opdisc(CARDS, 0.1, **how), "noise, penalty"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_question_is_refused_and_nothing_is_paid(tmp_path: Path, name: str) -> None:
    ledger, path = ps.Ledger.create(tmp_path / "ledger", 9.0), tmp_path / "run.sealed"
    first = sealed_release(path, RUNS["cards"], killed=True, budget=ledger)
    other, words = OTHERS[name]
    before = path.read_bytes()
    with pytest.raises(SealedRunError, match=f"the difference is in: {words}. Give the same") as refused:
        sealed_release(path, other, budget=ledger)
    assert "delete the file" in str(refused.value)
    assert len(ledger.history()) == 1
    assert path.read_bytes() == before
    assert sealed_release(path, RUNS["cards"], budget=ledger) == first


def test_another_version_seed_or_ledger_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, path = ps.Ledger.create(tmp_path / "ledger", 9.0), tmp_path / "run.sealed"
    first = sealed_release(path, RUNS["cards"], killed=True, budget=ledger)
    with monkeypatch.context() as patch:
        patch.setattr(module, "__version__", "0.0.1")
        with pytest.raises(SealedRunError, match="in: version of privsolve"):
            sealed_release(path, RUNS["cards"], budget=ledger)
    with pytest.raises(SealedRunError, match="in: seed"):
        sealed_release(path, RUNS["cards"], budget=ledger, random_state=3)
    with pytest.raises(SealedRunError, match="paid from another ledger"):
        sealed_release(path, RUNS["cards"], budget=ps.Ledger.create(tmp_path / "other", 9.0))
    with pytest.raises(SealedRunError, match="paid from a ledger: give the same"):
        sealed_release(path, RUNS["cards"])
    assert sealed_release(path, RUNS["cards"], budget=ledger) == first
    assert len(ledger.history()) == 1


def test_a_part_that_is_lacking_is_another_question(tmp_path: Path) -> None:
    path = tmp_path / "run.sealed"

    def with_holdout(**how: Any) -> ps.Run:
        how["random_state"].ask({"holdout": 0.2})
        return RUNS["cards"](**how)

    sealed_release(path, with_holdout, killed=True)
    with pytest.raises(SealedRunError, match="in: holdout"):
        sealed_release(path, RUNS["cards"])


def test_killed_between_the_payment_and_its_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, path = ps.Ledger.create(tmp_path / "ledger", 9.0), tmp_path / "run.sealed"
    state = Journal.state

    def dying(journal: Journal, name: str, value: bytes) -> None:
        if name == "ledger":
            raise Killed
        state(journal, name, value)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "state", dying)
        assert sealed_release(path, RUNS["cards"], budget=ledger) == ""
    assert was_committed(path)
    assert len(ledger.history()) == 1
    assert sealed_release(path, RUNS["cards"], budget=ledger)
    assert [entry.outcome for entry in ledger.history()] == ["released"]


def test_a_refused_payment_can_be_made_later(tmp_path: Path) -> None:
    small, path = ps.Ledger.create(tmp_path / "small", 0.05), tmp_path / "run.sealed"
    with pytest.raises(ps.BudgetExceeded):
        sealed_release(path, RUNS["cards"], budget=small)
    assert small.history() == ()
    assert not path.exists()
    with pytest.raises(ps.BudgetExceeded):
        sealed_release(path, RUNS["cards"], budget=ps.Accountant(0.05))
    assert not path.exists()
    assert sealed_release(path, RUNS["cards"], budget=ps.Ledger.create(tmp_path / "large", 1.0))


def test_a_payment_that_may_have_been_made_is_not_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger pays, and then says that it cannot be used."""
    ledger, path, spend = ps.Ledger.create(tmp_path / "ledger", 9.0), tmp_path / "run.sealed", ps.Ledger.spend

    def lying(*given: Any) -> NoReturn:
        spend(*given)
        raise LedgerError("the disk has gone")

    with monkeypatch.context() as patch:
        patch.setattr(ps.Ledger, "spend", lying)
        with pytest.raises(LedgerError):
            sealed_release(path, RUNS["cards"], budget=ledger)
    assert was_committed(path)
    assert sealed_release(path, RUNS["cards"], budget=ledger)
    assert [entry.outcome for entry in ledger.history()] == ["released"]


def test_accounts_in_memory_pay_once_each(tmp_path: Path) -> None:
    path, one, other = tmp_path / "run.sealed", ps.Accountant(1.0), ps.Accountant(1.0)
    first = sealed_release(path, RUNS["cards"], killed=True, budget=one)
    assert sealed_release(path, RUNS["cards"], killed=True, budget=one) == first
    assert len(one.history) == 1
    assert sealed_release(path, RUNS["cards"], budget=other) == first
    assert len(other.history) == 1


def test_a_run_that_fails_before_it_pays_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.sealed"
    with pytest.raises(ValueError, match="epsilon"), ps.SealedRun(path) as sealed:
        ps.exponential(CARDS, -1.0, random_state=sealed.randomness, budget=sealed)
    assert not path.exists()


def test_words_are_on_the_disk_before_they_are_seen(tmp_path: Path) -> None:
    """Processes that draw without pause are killed (-9); whoever goes on sees all that they saw."""
    path, shown = tmp_path / "run.sealed", tmp_path / "shown"
    with ps.SealedRun(path) as sealed:
        sealed.randomness.ask({"data": 1})
        sealed.pay(ps.promised(ps.exponential, CARDS, 0.1))  # the file stays
        sealed.close()
    context = multiprocessing.get_context("fork")
    seen = b""
    for i in range(4):
        worker = context.Process(target=draw_until_killed, args=(str(path), str(shown)))
        worker.start()
        deadline = time.monotonic() + 60
        while (not shown.exists() or not shown.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(0.02 * i)
        worker.kill()
        worker.join()
        now = shown.read_bytes()
        assert now
        length = min(len(seen), len(now)) // 8 * 8
        assert now[:length] == seen[:length]
        seen = max(seen, now, key=len)
        shown.unlink()
    words = np.frombuffer(seen[: len(seen) // 8 * 8], dtype=np.uint64)
    assert len(np.unique(words)) == len(words)
    copied = tmp_path / "copy.sealed"
    for end in ("", "-journal"):  # what was half written when the process was killed is taken back by the second
        if (beside := path.with_name(path.name + end)).exists():
            shutil.copy(beside, copied.with_name(copied.name + end))
    tails = []
    for place in (path, copied):
        with ps.SealedRun(place) as sealed:
            sealed.randomness.ask({"data": 1})
            assert np.array_equal(sealed.randomness.words(len(words)), words)
            stored = sealed._open.written() // 8
            sealed.randomness.words(stored - len(words))
            tails.append(sealed.randomness.words(100).tolist())
            sealed.close()
    assert not set(tails[0]) & set(tails[1])  # beyond what was written, everybody draws afresh


def test_one_file_one_release_one_owner(tmp_path: Path) -> None:
    path = tmp_path / "run.sealed"
    with ps.SealedRun(path) as sealed:
        with pytest.raises(SealedRunError, match="in use by another process"):
            ps.SealedRun(path).__enter__()
        for copied in (copy.deepcopy, copy.copy, pickle.dumps):
            with pytest.raises(TypeError, match="cannot be copied"):
                copied(sealed.randomness)
        RUNS["cards"](random_state=sealed.randomness, budget=sealed)
        with pytest.raises(ps.PrivsolveError, match="holds one release"):
            RUNS["cards"](random_state=sealed.randomness, budget=sealed)
        caught: list[BaseException] = []

        def elsewhere() -> None:
            try:
                sealed.randomness.words(1)
            except ps.PrivsolveError as error:
                caught.append(error)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert "belong to the thread that opened it" in str(caught[0])
    assert not path.exists()
    with pytest.raises(ps.PrivsolveError, match="inside its block only"):
        _ = sealed.randomness


def test_what_does_not_say_its_question_is_refused_before_it_pays(tmp_path: Path) -> None:
    ledger = ps.Ledger.create(tmp_path / "ledger", 9.0, 1e-6)
    with (
        pytest.raises(ps.PrivsolveError, match="cannot be sealed"),
        ps.SealedRun(tmp_path / "run.sealed", budget=ledger) as sealed,
    ):
        ps.private_draft(
            patients(), ps.Label("ill", "yes", "no"), 1.0, 1e-9, random_state=sealed.randomness, budget=sealed
        )
    assert ledger.history() == ()


def test_words_are_handed_out_for_a_question_only(tmp_path: Path) -> None:
    """A mechanism that says none would get the same words for other data, or for another epsilon."""
    with pytest.raises(ps.PrivsolveError, match="cannot be sealed"), ps.SealedRun(tmp_path / "run.sealed") as sealed:
        DiscreteLaplace(Fraction(2)).draws(sealed.randomness, 1)


def test_a_file_left_before_it_was_paid_for_begins_anew(tmp_path: Path) -> None:
    words = []
    for data in (1, 2):
        with ps.SealedRun(tmp_path / "run.sealed") as sealed:
            sealed.randomness.ask({"data": data})
            words.append(sealed.randomness.words(4).tolist())
            sealed.close()  # as if it was killed
    assert not set(words[0]) & set(words[1])


def test_a_question_with_a_function_cannot_be_sealed(tmp_path: Path) -> None:
    """Nobody could tell that it is another one when the run is resumed."""
    with (
        pytest.raises(TypeError, match="run it without a sealed file"),
        ps.SealedRun(tmp_path / "run.sealed") as sealed,
    ):
        sealed.randomness.ask({"loss": lambda record: 0})


def test_foreign_and_damaged_files_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "run.sealed"
    path.write_text("a letter")
    with pytest.raises(SealedRunError, match="not a sealed run"):
        sealed_release(path, RUNS["cards"])
    assert path.read_text() == "a letter"
    path.unlink()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE t (x)")
    other.close()
    with pytest.raises(SealedRunError, match="not a sealed run"):
        sealed_release(path, RUNS["cards"])
    path.unlink()
    sealed_release(path, RUNS["cards"], killed=True)
    content = bytearray(path.read_bytes())
    content[100:200] = bytes(100)
    path.write_bytes(content)
    with pytest.raises(SealedRunError, match="damaged"):
        sealed_release(path, RUNS["cards"])
    with pytest.raises(SealedRunError, match="choose another file"):
        sealed_release(tmp_path / "nowhere" / "run.sealed", RUNS["cards"])


def test_a_full_disk_stops_the_run_and_not_its_noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, append = tmp_path / "run.sealed", Journal.append

    def full(*_: object) -> NoReturn:
        raise SealedRunError("cannot write")

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", full)
        with pytest.raises(SealedRunError):
            sealed_release(path, RUNS["cards"], random_state=2)
    assert Journal.append is append
    assert sealed_release(path, RUNS["cards"], random_state=2) == RUNS["cards"](random_state=2).release.to_json()


def test_estimators_are_sealed_by_the_same_two_arguments(tmp_path: Path) -> None:
    path, ledger, frame = tmp_path / "run.sealed", ps.Ledger.create(tmp_path / "ledger", 9.0), patients()

    def card(seed: int = 0, **how: Any) -> ps.Run:
        data = patients(seed=seed)
        model = ps.PrivateShortCard(0.5, schema=INDICATORS, max_features=2, **how).fit(
            data.drop(columns="ill"), data["ill"]
        )
        return ps.Run(model.release_, model.diagnostics_)

    first = sealed_release(path, card, killed=True, budget=ledger)
    with pytest.raises(SealedRunError, match="in: data"):
        sealed_release(path, lambda **how: card(1, **how), budget=ledger)
    assert sealed_release(path, card, budget=ledger) == first
    assert len(ledger.history()) == 1
    assert len(frame) == 300


KEY = bytes(32)


def test_fingerprints_tell_values_apart_and_know_equal_ones() -> None:
    different: list[Any] = [
        None, True, 1, 2, 0.5, "1", "None", b"1", [1], [1, 2], [[1], 2], [1, [2]], {"a": 1}, {"a": 2}, {"b": 1}, {1, 2}, "", [],
        np.array([1, 2]), np.array([[1, 2]]), np.array([1.0, 2.0]), ps.ZeroOneLoss(), ps.ZeroOneLoss(1, 2), ps.BrierLoss(0.5),
        ps.SparsePrior(), ps.UniformPrior(), TABLE, table_of(1), INDICATORS, float("inf"), ps.ZeroOneLoss,
        ["ab", "c"], ["a", "bc"], np.array(["a", None], dtype=object), np.array([["a"], [None]], dtype=object),
    ]  # fmt: skip
    found = [fingerprint(KEY, value) for value in different]
    assert len(set(found)) == len(found)
    equal = [(0.5, Fraction(1, 2)), ((1, 2), [1, 2]), (np.int64(2), 2), ("replace", Adjacency.REPLACE),
             ({"a": 1, "b": 2}, {"b": 2, "a": 1}), (TABLE, copy.deepcopy(TABLE))]  # fmt: skip
    for one, other in equal:
        assert fingerprint(KEY, one) == fingerprint(KEY, other)
    order = np.random.default_rng(0).permutation(len(TABLE.features))
    shuffled = ps.PatternTable(
        TABLE.features[order], TABLE.positives[order], TABLE.negatives[order], ranges=TABLE.ranges
    )
    assert fingerprint(KEY, shuffled) == fingerprint(KEY, TABLE)
    assert fingerprint(b"k" * 32, TABLE) != fingerprint(KEY, TABLE)
    with pytest.raises(TypeError, match="no fingerprint"):
        fingerprint(KEY, object())
    for function in (fingerprint, lambda x: x, len, Fraction(1).__add__):
        with pytest.raises(TypeError, match="whether a function is still the same"):
            fingerprint(KEY, function)
