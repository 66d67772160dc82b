"""A small card on top of scores that the records already have: all supports listed, every sum exact (theory, stages)."""
