"""Decision trees: exact draws and certified optima over all trees of a depth (docs/theory/04-trees.md)."""
