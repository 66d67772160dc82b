"""Families of classes that files name by a word: each class enters itself when it is defined, users' own too."""

from __future__ import annotations

from typing import Any


def enter(kinds: dict[str, Any], cls: Any, family: str) -> None:
    """Enter a class under its `kind`. Defining the same class again, as in a notebook, takes the old one's place."""
    if not isinstance(cls.kind, str) or not cls.kind:
        raise TypeError(f"{cls.__name__}.kind must be a text that names this kind of {family} in files")
    known = kinds.get(cls.kind, cls)
    if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise TypeError(
            f"{family} kind {cls.kind!r} belongs to {known.__module__}.{known.__qualname__}: choose another"
        )
    kinds[cls.kind] = cls


def look_up(kinds: dict[str, Any], description: object, family: str) -> Any:
    """The class that a description names by its `kind`, or an error that lists the known ones."""
    kind = description.get("kind") if isinstance(description, dict) else None
    if not isinstance(kind, str) or kind not in kinds:
        known = ", ".join(map(repr, kinds))
        raise ValueError(f"{family} must be an object whose kind is one of {known}, got kind {kind!r}")
    return kinds[kind]
