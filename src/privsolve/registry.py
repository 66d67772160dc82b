"""Families of classes that files and options name by a word: each class enters itself when it is defined, users' own too."""

from __future__ import annotations

from typing import Any


def enter(classes: dict[str, Any], cls: Any, family: str, attribute: str = "kind") -> None:
    """Enter a class under its `attribute`. Defining the same class again, as in a notebook, takes the old one's place."""
    word = getattr(cls, attribute)
    if not isinstance(word, str) or not word:
        raise TypeError(f"{cls.__name__}.{attribute} must be a text that names this kind of {family}")
    known = classes.get(word, cls)
    if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise TypeError(
            f"{family} {attribute} {word!r} belongs to {known.__module__}.{known.__qualname__}: choose another"
        )
    classes[word] = cls


def look_up(kinds: dict[str, Any], description: object, family: str) -> Any:
    """The class that a description names by its `kind`, or an error that lists the known ones."""
    kind = description.get("kind") if isinstance(description, dict) else None
    if not isinstance(kind, str) or kind not in kinds:
        known = ", ".join(map(repr, kinds))
        raise ValueError(f"{family} must be an object whose kind is one of {known}, got kind {kind!r}")
    return kinds[kind]
