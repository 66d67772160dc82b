"""Which tests are slow: they draw thousands of times, start processes or a browser, or compile an engine."""

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
QUICK = ("architecture", "datasets", "evaluation", "models", "privacy", "problems", "support")
QUICK_MODULES = (
    "cards/test_scorecard.py",
    "data/test_headers.py",
    "data/test_patterns.py",
    "data/test_quotes.py",
    "data/test_schema.py",
    "domains/test_domains.py",
    "learn/test_labels.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow whatever is not in a quick folder or module."""
    for item in items:
        path = item.path.relative_to(TESTS)
        if path.parts[0] not in QUICK and path.as_posix() not in QUICK_MODULES:
            item.add_marker(pytest.mark.slow)
