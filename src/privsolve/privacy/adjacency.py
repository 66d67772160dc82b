"""Which data sets count as neighbours."""

from __future__ import annotations

from enum import StrEnum

from privsolve.checks import check_choice


class Adjacency(StrEnum):
    """What may differ between two neighbouring data sets (theory, section 0)."""

    REPLACE = "replace"
    """One record holds other values; the number of records is public."""

    ADD_REMOVE = "add-remove"
    """One record more or less."""

    @classmethod
    def of(cls, value: object) -> Adjacency:
        """The adjacency of this name, or an error that names the choices."""
        return check_choice("adjacency", value, cls)

    @property
    def words(self) -> str:
        """What is done to get a neighbour."""
        return "changing one record" if self is Adjacency.REPLACE else "adding or removing one record"

    @property
    def range_factor(self) -> int:
        """Δ for losses in [0, 1]: how far the difference of two total losses can move (theory, section 0)."""
        return 2 if self is Adjacency.REPLACE else 1
