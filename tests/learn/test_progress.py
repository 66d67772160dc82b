"""How far a run is, where it runs: in a log file, on a terminal, in a notebook's kernel."""

import io
import pickle
import warnings
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

import privsolve as ps
from privsolve.engines.coordinates.minimise import Progress
from privsolve.engines.rejection import SamplingProgress
from privsolve.learn.progress import progress_words
from small_tables import INDICATORS, patients


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_every_kind_of_progress_has_words() -> None:
    for state, words in (
        (SamplingProgress(0, 1200, 1.0), "listing: 1,200 nodes"),
        (SamplingProgress(3, 1200, 1.0), "sampling: 3 attempts, 1,200 nodes"),
        (Progress(10.0, 4.0, 8, 1.0), "best 10.0, bound 4.0, gap 6.0, 8 nodes"),
        (0.25, "summing over trees: 25%"),
    ):
        assert progress_words(state) == words


def test_a_log_file_has_lines_and_a_terminal_one_line() -> None:
    log, terminal = io.StringIO(), Terminal()
    for file in (log, terminal):
        show = ps.ShowProgress(file, seconds=0)
        for attempts in (1, 2):
            show(SamplingProgress(attempts, 5, 0.0))
    assert log.getvalue().splitlines() == [f"privsolve: sampling: {n} attempts, 5 nodes, 0 s" for n in (1, 2)]
    assert terminal.getvalue().count("\n") == 0
    assert terminal.getvalue().endswith("sampling: 2 attempts, 5 nodes, 0 s\r")
    quiet = io.StringIO()
    show = ps.ShowProgress(quiet)  # little is said unless asked
    for attempts in range(1000):
        show(SamplingProgress(attempts, 5, 0.0))
    assert quiet.getvalue() == ""


def test_in_a_notebook_the_cell_changes(tmp_path: Path) -> None:
    """In a real kernel: one output, which is what was shown last."""
    code = "import privsolve as ps\nshow = ps.ShowProgress(seconds=0)\nshow(0.5)\nshow(1.0)"
    code += "\nimport io\nlog = io.StringIO()\nps.ShowProgress(log, seconds=0)(0.5)\nassert log.getvalue().endswith('0 s\\n')"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    place = {"metadata": {"path": tmp_path}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the machinery of notebooks
        nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources=place).execute()
    (output,) = notebook.cells[0].outputs
    assert output["data"]["text/plain"] == "privsolve: summing over trees: 100%, 0 s"


TREE = ps.PrivateTreeClassifier(1.0, depth=2), "summing over trees: 100%"


@pytest.mark.parametrize(("estimator", "word"), [(ps.PrivateShortCard(1.0, max_features=2), "sampling"), TREE])
def test_estimators_show_it(estimator: Any, word: str) -> None:
    log = io.StringIO()
    estimator.set_params(schema=INDICATORS, random_state=1, progress=ps.ShowProgress(log, seconds=0))
    estimator.fit(patients())
    assert word in log.getvalue()
    assert log.getvalue().startswith("privsolve: ")
    assert pickle.loads(pickle.dumps(estimator)).progress is not None
