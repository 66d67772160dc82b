"""Exact solvers of our own.

`coordinates` branches on one weight after the other, `supports` on the columns of a scorecard before their points. Both
minimise and sample with the same bounds, in the semirings of `semirings`; `rejection` is the loop of their samplers.
"""
