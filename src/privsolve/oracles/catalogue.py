"""What is known about an oracle and its solver without importing any native code."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from dataclasses import dataclass
from types import ModuleType

from privsolve.domains import Domain, FiniteSet, KnapsackDomain, domain_kinds
from privsolve.errors import PrivsolveError


class SolverUnavailable(PrivsolveError, ImportError):
    """A solver is not installed, or cannot be loaded into this process; the message says what to do."""


@dataclass(frozen=True)
class Solver:
    """The entry of an oracle, stated by its class (`Oracle.about`). `module` is None for privsolve's own."""

    name: str
    licence: str
    arithmetic: str
    note: str
    module: str | None = None
    distribution: str | None = None
    takes: tuple[type[Domain], ...] = (KnapsackDomain, FiniteSet)

    @property
    def domains(self) -> tuple[str, ...]:
        """The kinds of domain that it solves, users' own included."""
        return domain_kinds(self.takes)

    @property
    def extra(self) -> str | None:
        """The optional dependency that installs it."""
        return None if self.module is None else self.name

    @property
    def installed(self) -> bool:
        """Whether its package can be found; nothing is imported."""
        return self.module is None or importlib.util.find_spec(self.module.split(".")[0]) is not None

    @property
    def version(self) -> str | None:
        """Version of the installed package, or None."""
        if self.distribution is None or not self.installed:
            return None
        try:
            return importlib.metadata.version(self.distribution)
        except importlib.metadata.PackageNotFoundError:
            return None

    @property
    def status(self) -> str:
        """Built in, the installed version, or how to install it."""
        if self.module is None:
            return "built in"
        if not self.installed:
            return f"missing: pip install 'privsolve[{self.extra}]'"
        return self.version or "installed"


EXACT = "integers, exact"
TRUSTED = "floating point, trusts the solver's bound"
TRUSTED_INTEGERS = "integers, trusts the solver's bound"


def require(entry: Solver) -> ModuleType:
    """Import the solver's module, or raise `SolverUnavailable` with what to do about it."""
    if entry.module is None:
        raise ValueError(f"oracle {entry.name!r} is part of privsolve: there is nothing to import")
    if not entry.installed:
        raise SolverUnavailable(
            f"oracle {entry.name!r} needs the package {entry.distribution}, which is not installed: "
            f"pip install 'privsolve[{entry.extra}]', or use oracle='tree'"
        )
    try:
        return importlib.import_module(entry.module)
    except ImportError as error:
        raise SolverUnavailable(
            f"{entry.distribution} {entry.version} is installed but cannot be loaded here ({error}): "
            "reinstall it, or use oracle='tree'"
        ) from error
