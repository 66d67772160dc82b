"""The mechanisms to choose from, in the order in which they are offered: to add one, import its module here."""

from privsolve.mechanisms import exponential, opdisc, rspm
from privsolve.mechanisms.base import Mechanism, all_mechanisms, mechanism_names, mechanism_of

__all__ = ["Mechanism", "all_mechanisms", "exponential", "mechanism_names", "mechanism_of", "opdisc", "rspm"]
