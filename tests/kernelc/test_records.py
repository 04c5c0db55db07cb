"""Records are what frozen dataclasses are: the same class made both ways behaves the same."""

import copy
import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, replace
from typing import Any

import pytest

from kernelc.records import entity, record


def _pair(decorate: Any, name: str) -> type:
    class Base:
        kind: str

    body: dict[str, Any] = {
        "__annotations__": {"a": int, "b": str, "c": list}, "b": "x", "c": field(default_factory=list),
        "__module__": __name__, "__qualname__": name,
    }  # fmt: skip
    return decorate(type(name, (Base,), body))


Record, Data = _pair(record, "Record"), _pair(dataclass(frozen=True), "Data")


@record
class Longer(Record):
    d: float = 0.5

    def __repr__(self) -> str:
        return "its own"


@entity
class Same:
    a: int


@pytest.mark.parametrize("args", [(1,), (1, "y"), (1, "y", [2])])
def test_fields_defaults_and_text_are_those_of_a_dataclass(args: tuple[Any, ...]) -> None:
    ours, theirs = Record(*args), Data(*args)
    assert vars(ours) == vars(theirs)
    assert repr(ours) == repr(theirs).replace("Data", "Record")
    assert Record(**vars(ours)) == ours and Record(1).c is not Record(1).c


def test_they_are_compared_and_hashed_by_value_unless_they_are_entities() -> None:
    assert Longer(1, "y", (), 2.0) == Longer(1, "y", (), 2.0) != Longer(1, "y", (), 3.0)
    assert hash(Longer(1, c=())) == hash(Longer(1, c=())) and Record(1, c=()) != Longer(1, c=())
    assert Same(1) != Same(1) and len({Same(1), Same(1)}) == 2
    assert (Record(1) == 1) is False and repr(Longer(1)) == "its own"


def test_they_cannot_be_changed_but_copied() -> None:
    one = Same(3)
    with pytest.raises(FrozenInstanceError, match="'a' of Same cannot be changed"):
        one.a = 4
    with pytest.raises(FrozenInstanceError):
        del one.a
    assert replace(Record(1, "y"), a=2) == Record(2, "y") and asdict(one) == {"a": 3}
    again = pickle.loads(pickle.dumps(Longer(1, d=2.0)))
    assert again == Longer(1, d=2.0) == copy.deepcopy(again)


@pytest.mark.parametrize(
    ("args", "named"), [((), {}), ((1, 2, 3, 4), {}), ((1,), {"e": 2}), ((1,), {"a": 2})]
)  # fmt: skip
def test_wrong_arguments_are_refused_as_by_a_dataclass(args: tuple[Any, ...], named: dict[str, Any]) -> None:
    for cls in (Record, Data):
        with pytest.raises(TypeError):
            cls(*args, **named)
