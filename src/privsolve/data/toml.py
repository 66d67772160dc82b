"""Schema files: the little of TOML that they need, written with comments. Reading is the standard library's."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
WIDTH = 100


MOST_PARTS = 8
"""Of a dotted key: parsers take time and memory by the square of their number; schemas need three."""

_PART = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\[^\n])*"|'[^'\n]*')"""
_LONG_KEY = re.compile(rf"(?m)(?:^[\[ \t]*|[{{,][ \t]*){_PART}(?:[ \t]*\.[ \t]*{_PART}){{{MOST_PARTS}}}")


def read(text: str) -> dict[str, Any]:
    """The values of a TOML text."""
    if found := _LONG_KEY.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise ValueError(
            f"not a schema: line {line:,} has a key of more than {MOST_PARTS} parts with dots between them"
        )
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("not a schema: its values are nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"not a valid TOML file: {error}") from None


def write(schema: Mapping[str, Any], comments: Mapping[str, Sequence[str]]) -> str:
    """The text of a schema description, with comments above the whole (`""`), a table by its name, and columns."""
    lines = _comments(comments.get("", ()))
    lines += [f"intercept = {_value(schema['intercept'])}"]
    if "paid" in schema:
        lines += ["", *_comments(comments.get("paid", ())), "[paid]", *_settings(schema["paid"])]
    if "about" in schema:
        lines += ["", *_comments(comments.get("about", ())), "[about]", *_settings(schema["about"])]
    if "label" in schema:
        lines += ["", *_comments(comments.get("label", ())), "[label]", *_settings(schema["label"])]
    for name, settings in schema["columns"].items():
        lines += ["", *_comments(comments.get(name, ())), f"[columns.{_key(name)}]", *_settings(settings)]
    return "\n".join(lines) + "\n"


def comment(text: str) -> str:
    """One line of comment, whatever the text holds."""
    return f"# {_CONTROL.sub(' ', text)}".rstrip()


def _comments(texts: Sequence[str]) -> list[str]:
    return [comment(text) for text in texts]


def _settings(settings: Mapping[str, Any]) -> list[str]:
    return [f"{_key(key)} = {_value(value)}" for key, value in settings.items()]


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + " }"
    items = [_value(item) for item in value]
    line = f"[{', '.join(items)}]"
    return line if len(line) <= WIDTH else "[\n" + "".join(f"  {item},\n" for item in items) + "]"
