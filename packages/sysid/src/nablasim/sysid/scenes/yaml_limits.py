"""What a scene file may not be: YAML that is small and becomes huge, that contains itself, or that no number can hold.

Events are looked at one by one, before anything is built: they need neither a deep stack nor much memory.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

DEEPEST = 40
"""Lists and entries inside of each other."""
MOST = 20_000
"""Entries in all, with those that an alias repeats."""
LONGEST = 2_000_000
"""Characters."""


class TooMuch(yaml.MarkedYAMLError):  # type: ignore[misc]
    """YAML as it should be, and more than a scene file can have."""


class SceneLoader(yaml.SafeLoader):  # type: ignore[misc]
    """Python's own errors about values (5,000 digits, the 99th of May) get a line as well."""

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep=deep)
        except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError) as error:
            kind = str(node.tag).rpartition(":")[2]
            written = f"{node.value[:20]}…" if len(str(node.value)) > 20 else str(node.value)
            # Without the advice to change a setting of Python.
            why = str(error).partition(";")[0]
            said = f"{written!r} cannot be read as {kind}: {why}; write it shorter, or in quotes if it is a text"
            raise TooMuch(problem=said, problem_mark=node.start_mark) from error

    def construct_decimal(self, node: Any) -> Any:
        """YAML 1.1 would take 010 for 8, 1:30 for 90 and 1_5 for 15."""
        if re.match(r"[-+]?0[0-9xob]", node.value) or re.search(r"[:_]", node.value):
            said = f"{node.value!r} may mean several numbers: write digits and a point alone, or a text in quotes"
            raise TooMuch(problem=said, problem_mark=node.start_mark)
        whole = node.tag == "tag:yaml.org,2002:int"
        return self.construct_yaml_int(node) if whole else self.construct_yaml_float(node)


for _kind in ("int", "float"):
    SceneLoader.add_constructor(f"tag:yaml.org,2002:{_kind}", SceneLoader.construct_decimal)


def check_extent(text: str) -> None:
    """Raise `TooMuch` with the line where a file goes too far."""
    if len(text) > LONGEST:
        raise TooMuch(problem=f"it has {len(text):,} characters: a scene file has less than {LONGEST:,}")
    open_anchors: list[str | None] = []
    counts: list[int] = [0]
    known: dict[str, int] = {}
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        size = 1
        if isinstance(event, yaml.CollectionStartEvent):
            open_anchors.append(event.anchor)
            counts.append(1)
            if len(open_anchors) > DEEPEST:
                said = f"more than {DEEPEST} lists or entries are inside of each other: close some brackets before"
                raise TooMuch(problem=said, problem_mark=event.start_mark)
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            size, anchor = counts.pop(), open_anchors.pop()
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor in open_anchors:
                said = f"*{event.anchor} stands inside of &{event.anchor}: an entry cannot contain itself"
                raise TooMuch(problem=said, problem_mark=event.start_mark)
            size, anchor = known.get(event.anchor, 1), None
        elif isinstance(event, yaml.ScalarEvent):
            anchor = event.anchor
        else:
            continue
        if anchor is not None:
            known[anchor] = size
        counts[-1] += size
        if counts[-1] > MOST:
            said = f"this makes more than {MOST:,} entries, with what its aliases repeat: write less"
            raise TooMuch(problem=said, problem_mark=event.start_mark)
