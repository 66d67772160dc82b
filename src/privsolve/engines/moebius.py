"""From moments to cells by inclusion and exclusion: the Möbius transform over subsets.

The *moment* of a set of columns is a sum over the rows that have all of them, the *cell* of a set the sum over the rows that
have exactly these of the columns at hand. Bit i of an index is column i.
"""

# mypy: disallow_untyped_defs=False

from __future__ import annotations

from privsolve.compiled import compiled, inlined


@inlined
def invert(moments, n_cells):
    """Moments to cells in place, one column at a time; a constant number of cells becomes straight vector code."""
    half = 1
    while half < n_cells:
        for block in range(0, n_cells, 2 * half):
            for c in range(block, block + half):
                moments[c] -= moments[c + half]
        half *= 2


@compiled
def invert_rows(rows):
    """The same for many sets of cells side by side: `rows[c]` holds cell c of each."""
    half = 1
    while half < len(rows):
        for c in range(len(rows)):
            if c & half == 0:
                without, having = rows[c], rows[c + half]
                for k in range(len(without)):
                    without[k] -= having[k]
        half *= 2
