"""Private non-convex and combinatorial optimisation, with exact solvers as oracles.

The names are listed in `__init__.pyi`, for type checkers and for `lazy_loader`, which imports each when it is first asked for.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
