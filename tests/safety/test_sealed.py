"""Sealed runs: the same noise, the same question, one payment, and exactly the release that there would have been."""

import copy
import multiprocessing
import pickle
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

import privsolve as ps
from privsolve import Run
from privsolve.domains.trees import TreeQuestions
from privsolve.errors import LedgerError, OracleNotCertified, SealedRunError
from privsolve.models.leaves import LabelLeaves
from privsolve.noise.entropy import Randomness
from privsolve.privacy.adjacency import Adjacency
from privsolve.safety import sealed as module
from privsolve.safety.fingerprint import fingerprint
from small_tables import INDICATORS, LABEL, patients

Patch = pytest.MonkeyPatch


class Killed(BaseException):
    """Stands for the end of a process."""


def table_of(seed: int = 0, rows: int = 30) -> ps.PatternTable:
    rng = np.random.default_rng(seed)
    features = np.column_stack([rng.integers(0, 2, (rows, 4)), np.ones(rows, dtype=int)])
    return ps.PatternTable(features, *rng.integers(0, 9, (2, rows)), ranges=[*[(0, 1)] * 4, (1, 1)])


TABLE, DATA = table_of(), patients()
CARDS = ps.Problem(TABLE, ps.SparsePoints(5, 2, 2, (-2, 2)))
TREES = ps.DecisionTrees(TreeQuestions.plain(4), 2, LabelLeaves(["no", "yes"]))
BALL = ps.Problem(TABLE, ps.IntegerBall(5, 2))
OWN = ps.DiscreteProblem(ps.IntegerGrid([-1], [1]), np.arange(6).reshape(2, 3) % 4, bound=3)

Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
RUNS: dict[str, Call] = {
    "cards": (ps.exponential, (CARDS, 0.1), {}),
    "list": (ps.exponential, (BALL, 0.1), {"method": "enumeration"}),
    "tree": (ps.private_tree, (ps.TreeProblem.from_table(TABLE, TREES), 0.1), {}),
    "opdisc": (ps.opdisc, (BALL, 0.5), {}),
    "rspm": (ps.rspm, (ps.Problem(TABLE, ps.SignCube(5)), 0.5), {}),
    "own loss": (ps.exponential, (OWN, 0.5), {}),
    "draft": (ps.private_draft, (DATA, LABEL, 0.5), {"bounds": {"age": (0, 100)}}),
}


def published(answer: Any) -> str:
    return answer.release.to_json() if isinstance(answer, ps.Run) else answer.to_toml()


def sealed_release(path: Path, call: Call, *, killed: bool = False, **options: Any) -> str:
    """One process of a run: what it would publish. A killed one dies after that."""
    found, (mechanism, args, settings) = "", call
    try:
        with ps.SealedRun(path, **options) as sealed:
            found = published(sealed.run(mechanism, *args, **settings))
            if killed:
                raise Killed
    except Killed:
        pass
    return found


def killed_at_the_note(path: Path, call: Call, monkeypatch: Patch, *, noted: bool = True, **options: Any) -> None:
    """The process ends when it has paid and has not drawn yet, after or before it noted the payment."""
    add = module._File.add

    def dying(file: Any, **facts: Any) -> None:
        if noted or "paid" not in facts:
            add(file, **facts)
        if "paid" in facts:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(module._File, "add", dying)
        assert sealed_release(path, call, **options) == ""


@pytest.fixture
def ledger(tmp_path: Path) -> ps.Ledger:
    return ps.Ledger.create(tmp_path / "ledger", 9.0, 1e-6)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.sealed"


def outcomes(ledger: ps.Ledger) -> list[str]:
    return [entry.outcome for entry in ledger.history()]


@pytest.mark.parametrize("name", RUNS)
def test_a_resumed_run_gives_its_release_and_pays_once(
    path: Path, ledger: ps.Ledger, name: str, monkeypatch: Patch
) -> None:
    killed_at_the_note(path, RUNS[name], monkeypatch, budget=ledger)
    assert path.stat().st_mode & 0o777 == 0o600
    other = shutil.copy(path, path.with_name("copy.sealed"))
    first = sealed_release(path, RUNS[name], killed=True, budget=ledger)
    assert outcomes(ledger) == ["spent"]
    assert sealed_release(Path(other), RUNS[name], killed=True, budget=ledger) == first  # drawn once more
    assert sealed_release(path, RUNS[name], budget=ledger) == first  # kept
    assert outcomes(ledger) == ["released"]
    assert "seeded = true" not in first
    assert '"seeded": true' not in first
    assert not path.exists()


@pytest.mark.parametrize("name", RUNS)
def test_it_is_the_release_that_there_would_have_been(path: Path, name: str, monkeypatch: Patch) -> None:
    mechanism, args, options = RUNS[name]
    for seed in range(2):
        expected = published(mechanism(*args, **options, random_state=seed))
        killed_at_the_note(path, RUNS[name], monkeypatch, random_state=seed)
        assert sealed_release(path, RUNS[name], random_state=seed) == expected


def test_words_are_those_of_the_key_and_no_others() -> None:
    keys = [bytes([number]) * 32 for number in range(3)]
    drawn = [Randomness.expanded(key).words(5000) for key in keys]
    assert len(np.unique(drawn)) == 15000
    for sizes in ([5000], [1, 1023, 1024, 1025, 1927], [0, 4999, 1]):
        again = Randomness.expanded(keys[0])
        assert np.array_equal(np.concatenate([again.words(size) for size in sizes]), drawn[0])
    bits = np.unpackbits(np.concatenate(drawn).view(np.uint8))
    assert abs(bits.mean() - 0.5) < 5 * 0.5 / np.sqrt(bits.size)
    assert not Randomness.expanded(keys[0]).is_seeded


OTHERS: dict[str, Call] = {
    "data": (ps.exponential, (ps.Problem(table_of(1), CARDS.domain), 0.1), {}),
    "epsilon": (ps.exponential, (CARDS, 0.2), {}),
    "prior": (ps.exponential, (CARDS, 0.1), {"prior": ps.SparsePrior()}),
    "adjacency": (ps.exponential, (CARDS, 0.1), {"adjacency": "add-remove"}),
    "domain": (ps.exponential, (ps.Problem(TABLE, ps.SparsePoints(5, 3, 2, (-2, 2))), 0.1), {}),
    "costs": (ps.exponential, (ps.Problem(TABLE, CARDS.domain, ps.ZeroOneLoss(1, 2)), 0.1), {}),
    "mechanism": (ps.opdisc, (CARDS, 0.1), {}),
    "max_nodes": (ps.exponential, (CARDS, 0.1), {"max_nodes": 7}),
    "max_attempts": (ps.exponential, (CARDS, 0.1), {"max_attempts": 99}),
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_question_is_refused_and_nothing_is_paid(path: Path, ledger: ps.Ledger, name: str) -> None:
    first = sealed_release(path, RUNS["cards"], killed=True, budget=ledger)
    before = path.read_bytes()
    with pytest.raises(SealedRunError, match="sealed for another run: give the same data") as refused:
        sealed_release(path, OTHERS[name], budget=ledger)
    assert "delete the file" in str(refused.value)
    assert len(ledger.history()) == 1
    assert path.read_bytes() == before
    assert sealed_release(path, RUNS["cards"], budget=ledger) == first


def test_another_oracle_is_another_question(path: Path) -> None:
    sealed_release(path, (ps.opdisc, (BALL, 0.5), {"oracle": "tree"}), killed=True)
    for oracle in ("enumeration", ps.oracles.get("highs")):
        with pytest.raises(SealedRunError, match="another run"):
            sealed_release(path, (ps.opdisc, (BALL, 0.5), {"oracle": oracle}))


def test_another_version_seed_or_ledger_is_refused(path: Path, ledger: ps.Ledger, monkeypatch: Patch) -> None:
    killed_at_the_note(path, RUNS["cards"], monkeypatch, budget=ledger)
    with monkeypatch.context() as patch:
        patch.setattr(module, "__version__", "0.0.1")
        with pytest.raises(SealedRunError, match="versions"):
            sealed_release(path, RUNS["cards"], budget=ledger)
    with pytest.raises(SealedRunError, match="seed"):
        sealed_release(path, RUNS["cards"], budget=ledger, random_state=3)
    other = ps.Ledger.create(path.with_name("other"), 9.0)
    with pytest.raises(SealedRunError, match="was not paid from"):
        sealed_release(path, RUNS["cards"], budget=other)
    with pytest.raises(SealedRunError, match="and ledger as before"):
        sealed_release(path, RUNS["cards"])
    assert sealed_release(path, RUNS["cards"], budget=ledger)
    assert (outcomes(ledger), outcomes(other)) == (["released"], [])


def test_a_ledger_refuses_a_second_release_for_one_payment(path: Path, ledger: ps.Ledger, monkeypatch: Patch) -> None:
    """As if a copy of the file, on another machine, came to another answer."""
    killed_at_the_note(path, RUNS["cards"], monkeypatch, budget=ledger)
    other = Path(shutil.copy(path, path.with_name("copy.sealed")))
    sealed_release(path, RUNS["cards"], budget=ledger)
    monkeypatch.setattr(Randomness, "expanded", classmethod(lambda cls, key: cls.seeded(key[0])))
    with pytest.raises(LedgerError, match="has paid for another release"):
        sealed_release(other, RUNS["cards"], budget=ledger)
    assert outcomes(ledger) == ["released"]


def test_killed_between_the_payment_and_its_note(path: Path, ledger: ps.Ledger, monkeypatch: Patch) -> None:
    killed_at_the_note(path, RUNS["cards"], monkeypatch, noted=False, budget=ledger)
    assert outcomes(ledger) == ["spent"]
    assert sealed_release(path, RUNS["cards"], budget=ledger)
    assert outcomes(ledger) == ["released"]


def test_a_refused_payment_can_be_made_later(path: Path, tmp_path: Path) -> None:
    small = ps.Ledger.create(tmp_path / "small", 0.05)
    for budget in (small, ps.Accountant(0.05)):
        with pytest.raises(ps.BudgetExceeded):
            sealed_release(path, RUNS["cards"], budget=budget)
        assert not path.exists()
    assert small.history() == ()
    assert sealed_release(path, RUNS["cards"], budget=ps.Ledger.create(tmp_path / "large", 1.0))


def test_a_payment_that_may_have_been_made_is_not_taken_back(path: Path, ledger: ps.Ledger, monkeypatch: Patch) -> None:
    """The ledger pays, and then says that it cannot be used."""
    spend = ps.Ledger.spend

    def lying(*given: Any, **options: Any) -> NoReturn:
        spend(*given, **options)
        raise LedgerError("the disk has gone")

    with monkeypatch.context() as patch:
        patch.setattr(ps.Ledger, "spend", lying)
        with pytest.raises(LedgerError):
            sealed_release(path, RUNS["cards"], budget=ledger)
    assert sealed_release(path, RUNS["cards"], budget=ledger)
    assert outcomes(ledger) == ["released"]


def test_accounts_in_memory_pay_once_each(path: Path, monkeypatch: Patch) -> None:
    one, other = ps.Accountant(1.0), ps.Accountant(1.0)
    for budget in (one, one, other):
        killed_at_the_note(path, RUNS["cards"], monkeypatch, budget=budget)
        path.write_bytes(b"".join(path.read_bytes().splitlines(True)[:1]))  # the payment was not noted
    assert sealed_release(path, RUNS["cards"], budget=other)
    assert [len(account.history) for account in (one, other)] == [1, 1]


@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_fails_before_it_pays_leaves_nothing(path: Path, ledger: ps.Ledger, name: str) -> None:
    mechanism, (*rest, _), options = RUNS[name]
    with pytest.raises(ValueError, match="epsilon"):
        sealed_release(path, (mechanism, (*rest, -1.0), options), budget=ledger)
    assert ledger.history() == ()
    assert not path.exists()


def test_an_estimator_that_fails_before_it_pays_leaves_nothing(path: Path, ledger: ps.Ledger) -> None:
    model = ps.PrivateShortCard(0.1, schema=INDICATORS, max_features=2)
    with pytest.raises(ValueError, match="no record has a value"), ps.SealedRun(path, budget=ledger) as sealed:
        model.set_params(budget=sealed).fit(DATA.drop(columns="ill"), ["perhaps"] * len(DATA))
    assert ledger.history() == ()
    assert not path.exists()


def test_one_file_one_release_one_owner(path: Path) -> None:
    with ps.SealedRun(path) as sealed:
        for _ in range(2):  # a refused open does not drop the lock
            with pytest.raises(SealedRunError, match="in use by another process"):
                ps.SealedRun(path).__enter__()
        worker = multiprocessing.get_context("fork").Process(target=ps.SealedRun(path).__enter__)
        worker.start()
        worker.join(60)
        assert worker.exitcode == 1
        sealed.run(ps.exponential, CARDS, 0.1)
        with pytest.raises(ps.PrivsolveError, match="holds one release"):
            sealed.run(ps.exponential, CARDS, 0.1)
    assert not path.exists()
    with pytest.raises(ps.PrivsolveError, match="inside its block only"):
        ps.SealedRun(path).run(ps.exponential, CARDS, 0.1)


def test_words_of_a_key_belong_to_one_thread_and_cannot_be_copied() -> None:
    words, caught = Randomness.expanded(bytes(32)), list[BaseException]()
    for copied in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied"):
            copied(words)

    def elsewhere() -> None:
        try:
            words.words(1)
        except ps.PrivsolveError as error:
            caught.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert "belong to the thread that opened it" in str(caught[0])


def mine(problem: ps.Problem, **options: Any) -> Run:
    return ps.exponential(problem, 0.1, **options)


PARTS = ([1, 2], lambda records: CARDS, ps.Parts(1000, 1.0, 1e-3))
REFUSED: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str]] = {
    "a function of one's own": (mine, (CARDS,), "whether a function is still the same"),
    "a lambda": (lambda **options: None, (), "cannot be sealed"),
    "a problem made by a function": (ps.release_or_failure, PARTS, "whether a function is still the"),
    "an object": (ps.exponential, (object(), 0.1), "object has no fingerprint"),
    "no mechanism": (ps.exponential_utility_bound, (ps.SignCube(2), 0.5), "cannot be sealed"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_known_again_is_refused_before_it_pays(path: Path, ledger: ps.Ledger, name: str) -> None:
    mechanism, args, words = REFUSED[name]
    with pytest.raises(TypeError, match=words), ps.SealedRun(path, budget=ledger) as sealed:
        sealed.run(mechanism, *args)
    assert ledger.history() == ()
    assert not path.exists()


def test_a_sealed_run_is_no_plain_budget(path: Path) -> None:
    with ps.SealedRun(path) as sealed:
        with pytest.raises(ps.PrivsolveError, match=r"sealed\.run\(ps\.exponential"):
            ps.exponential(CARDS, 0.1, budget=sealed)
        with pytest.raises(ValueError, match="budget is that of the sealed run"):
            sealed.run(ps.exponential, CARDS, 0.1, budget=ps.Accountant(1.0))
    for budget in (3, "ledger", object()):
        with pytest.raises(TypeError, match="budget must be an Accountant or a Ledger"):
            ps.SealedRun(path, budget=budget)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="random_state"):
        ps.SealedRun(path, random_state="now")  # type: ignore[arg-type]


@dataclass(frozen=True)
class Unsure:
    """An oracle that never proves its answer."""

    def minimise(self, *_: object) -> NoReturn:
        raise OracleNotCertified("no proof")


def test_a_retry_is_the_answer_of_the_sealed_run(path: Path, ledger: ps.Ledger) -> None:
    call: Call = (ps.opdisc, (BALL, 0.5), {"oracle": Unsure()})
    with suppress(Killed), ps.SealedRun(path, budget=ledger) as sealed:
        with pytest.raises(OracleNotCertified) as failed:
            sealed.run(call[0], *call[1], **call[2])
        assert failed.value.retry is not None
        first = published(failed.value.retry("tree"))
        raise Killed
    assert sealed_release(path, call, budget=ledger) == first
    assert outcomes(ledger) == ["released"]


def test_foreign_and_damaged_files_are_left_alone(path: Path, monkeypatch: Patch) -> None:
    for foreign in (b"a letter", b"SQLite format 3\0", b"a letter\nwith two lines\nand more"):
        path.write_bytes(foreign)
        with pytest.raises(SealedRunError, match="not a sealed run"):
            sealed_release(path, RUNS["cards"])
        assert path.read_bytes() == foreign
    path.unlink()
    first = sealed_release(path, RUNS["cards"], killed=True)
    sound = path.read_bytes()
    for place in (30, 200, sound.index(b"\n") + 90):
        path.write_bytes(sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :])
        with pytest.raises(SealedRunError, match="damaged"):
            sealed_release(path, RUNS["cards"])
    for cut in (1, 100, len(sound) // 2):  # the end of the process cut the last line short
        path.write_bytes(sound[:-cut])
        assert sealed_release(path, RUNS["cards"], killed=True) == first
        assert path.read_bytes().splitlines()[:2] == sound.splitlines()[:2]
    with pytest.raises(SealedRunError, match="choose another file"):
        sealed_release(path.parent / "nowhere" / "run.sealed", RUNS["cards"])


def test_a_full_disk_stops_the_run_and_not_its_noise(path: Path, monkeypatch: Patch) -> None:
    add = module._File.add

    def full(file: Any, **facts: Any) -> None:
        if "answer" in facts:
            raise SealedRunError("cannot write")
        add(file, **facts)

    with monkeypatch.context() as patch:
        patch.setattr(module._File, "add", full)
        with pytest.raises(SealedRunError):
            sealed_release(path, RUNS["cards"], random_state=2)
    assert sealed_release(path, RUNS["cards"], random_state=2) == published(ps.exponential(CARDS, 0.1, random_state=2))


def test_estimators_and_evaluations_take_a_sealed_run_as_their_budget(path: Path, ledger: ps.Ledger) -> None:
    def card(seed: int = 0, *, killed: bool = False) -> ps.PrivateShortCard:
        data = patients(seed=seed)
        with ps.SealedRun(path, budget=ledger) as sealed:
            model = ps.PrivateShortCard(0.5, schema=INDICATORS, max_features=2, budget=sealed)
            model.fit(data.drop(columns="ill"), data["ill"])
            if killed:
                raise Killed
        return model

    with pytest.raises(ValueError, match="schema must be given in a sealed run"), ps.SealedRun(path) as sealed:
        ps.PrivateShortCard(0.5, budget=sealed).fit(DATA.drop(columns="ill"), DATA["ill"])
    with pytest.raises(Killed):
        card(killed=True)
    with pytest.raises(SealedRunError, match="another run"):
        card(1)
    fitted = card()
    assert outcomes(ledger) == ["released"]
    assert fitted.diagnostics_.training_records == len(DATA)
    evaluations = []
    for killed in (True, False):
        with suppress(Killed), ps.SealedRun(path, budget=ledger) as sealed:
            found = fitted.evaluate(DATA.drop(columns="ill"), DATA["ill"], 0.5, budget=sealed)
            evaluations.append(found.to_dict())
            raise Killed
        assert killed or evaluations[0] == evaluations[1]
    assert outcomes(ledger) == ["released", "spent"]


KEY = bytes(32)


def test_fingerprints_tell_values_apart_and_know_equal_ones() -> None:
    plain = [None, True, 1, 2, 0.5, "1", "None", b"1", "", float("inf"), Path("1")]
    lists = [[], [1], [1, 2], [[1], 2], [1, [2]], ["ab", "c"], ["a", "bc"], {"a": 1}, {"a": 2}, {"b": 1}, {1, 2}]
    texts = np.array(["a", None], dtype=object)
    arrays = [np.array([1, 2]), np.array([[1, 2]]), np.array([1.0, 2.0]), texts, texts[:, None]]
    losses = [ps.ZeroOneLoss, ps.ZeroOneLoss(), ps.ZeroOneLoss(1, 2)]
    ours = [ps.SparsePrior(), ps.UniformPrior(), TABLE, table_of(1), INDICATORS, ps.exponential, ps.opdisc]
    frames = [DATA, DATA[:-1], DATA.rename(columns={"age": "years"})]
    different: list[Any] = [*plain, *lists, *arrays, *losses, *ours, *frames]
    found = [fingerprint(KEY, value) for value in different]
    assert len(set(found)) == len(found)
    equal = [
        (0.5, Fraction(1, 2)),
        ((1, 2), [1, 2]),
        (np.int64(2), 2),
        ("replace", Adjacency.REPLACE),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (TABLE, copy.deepcopy(TABLE)),
        (DATA, DATA.copy()),
    ]
    for one, other in equal:
        assert fingerprint(KEY, one) == fingerprint(KEY, other)
    order = np.random.default_rng(0).permutation(len(TABLE.features))
    parts = (part[order] for part in (TABLE.features, TABLE.positives, TABLE.negatives))
    shuffled = ps.PatternTable(*parts, ranges=TABLE.ranges)
    assert fingerprint(KEY, shuffled) == fingerprint(KEY, TABLE)
    assert fingerprint(b"k" * 32, TABLE) != fingerprint(KEY, TABLE)
    with pytest.raises(TypeError, match="no fingerprint"):
        fingerprint(KEY, object())
    for function in (mine, lambda x: x):
        with pytest.raises(TypeError, match="whether a function is still the same"):
            fingerprint(KEY, function)
