"""What was learned, as copies and states: of objects from a grammar, and of damaged states."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from zsntta_cli.methods.learned import copied, equal, restored, state_of

TYPES = (np.float64, np.float32, np.int64, np.bool_)


@dataclass(frozen=True)
class Given:
    """What a method was given: no part of what it learned."""

    text: np.ndarray


class Node:
    """An object with the attributes that it is made of."""

    def __init__(self, **attributes):
        vars(self).update(attributes)


def arrays():
    shapes = hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3)
    plain = st.sampled_from(TYPES).flatmap(lambda kind: hnp.arrays(kind, shapes))
    return plain | plain.map(np.asfortranarray)


VALUES = arrays() | st.integers(0, 2**40) | st.floats() | st.booleans() | st.text(max_size=3)
FIXED = st.just(None) | st.just(len) | st.just(Given) | st.just(Given(np.ones(2)))
NAMES = st.sampled_from("abcde")
OBJECTS = st.recursive(
    st.dictionaries(NAMES, VALUES | FIXED, min_size=1).map(lambda a: Node(**a)),
    lambda inner: st.dictionaries(NAMES, VALUES | inner, min_size=1).map(lambda a: Node(**a)),
    max_leaves=5,
)


def learnt(node):
    """All attributes of an object and of those within it that are no objects."""
    for value in vars(node).values():
        if isinstance(value, Node):
            yield from learnt(value)
        elif isinstance(value, np.ndarray | float | int | str):
            yield value


def changed(node):
    """Change every array of an object in place, and every number."""
    for name, value in vars(node).items():
        if isinstance(value, Node):
            changed(value)
        elif isinstance(value, np.ndarray):
            value[...] = ~value if value.dtype == np.bool_ else 77
        elif isinstance(value, int | float) and not isinstance(value, bool):
            vars(node)[name] = type(value)(78)


@given(OBJECTS)
def test_a_copy_is_equal_and_learns_separately(node):
    before = state_of(node)
    copy = copied(node)
    assert equal(copy, node)
    changed(copy)
    assert state_of(node).keys() == before.keys()
    for name, value in state_of(node).items():
        np.testing.assert_array_equal(value, before[name])


@given(OBJECTS)
def test_a_state_has_what_was_learned_and_brings_it_back(node):
    state = state_of(node)
    assert len(state) == len(list(learnt(node)))
    new = copied(node)
    changed(new)
    again = restored(new, state)
    assert equal(again, node)
    for name, value in state_of(again).items():
        if isinstance(value, np.ndarray):
            assert value.flags.fnc == state[name].flags.fnc, "products depend on the order"


@given(OBJECTS, st.data())
def test_equal_sees_one_changed_number(node, data):
    other = copied(node)
    holders, found = [other], []
    while holders:
        holder = holders.pop()
        for name, value in vars(holder).items():
            if isinstance(value, Node):
                holders.append(value)
            elif isinstance(value, np.ndarray) and value.size:
                found.append((holder, name))
    if not found:
        return
    holder, name = data.draw(st.sampled_from(found))
    value = vars(holder)[name]
    one = value.flat[0]
    value.flat[0] = (not one) if value.dtype == np.bool_ else (0 if one == 1 else 1)
    assert not equal(node, other)


class Fitted(Node):
    """An object that knows which of its states are possible."""

    def check_learned(self):
        if self.count > 9:
            raise ValueError("count is above 9")


def detector():
    queue = Node(score=np.empty(0), rows=np.empty((0, 3), np.float32))
    return Node(
        weight=np.arange(3.0), count=4, rate=0.5, rule="mean", on=True, given=Given(np.ones(9)),
        queue=queue, inner=Fitted(count=3),
    )  # fmt: skip


FULL = {"queue.score": np.ones(2), "queue.rows": np.ones((2, 3), np.float32)}


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ({"weight": np.arange(4.0)}, r"weight is float64 \(4,\), must be float64 \(3,\)"),
        ({"weight": np.arange(3)}, "weight is int64"),
        ({"weight": np.arange(3.0)[None]}, "weight is float64"),
        ({"weight": 3.0}, "weight is 3.0, must be float64"),
        ({"weight": None}, "weight is None"),
        ({"count": -1}, "count is -1, must be a count"),
        ({"count": 2**70}, "must be a count"),
        ({"count": 1.5}, "count is 1.5, must be a count"),
        ({"count": True}, "count is True, must be a number"),
        ({"rate": True}, "rate is True, must be a number"),
        ({"rate": "x" * 999}, "rate is 'xxx"),
        ({"rate": np.ones(1)}, "rate is float64"),
        ({"rule": 3}, "rule is 3, must be 'mean'"),
        ({"on": 2}, "on is 2, must be true or false"),
        ({"more": 1}, "more is unknown"),
        ({"given": np.ones(9)}, "given is unknown"),
        ({"queue": 1}, "queue is unknown"),
        ({"inner.count": 10}, "count is above 9"),
        ({"queue.rows": np.ones((2, 4), np.float32)}, "queue.rows is float32"),
        ({"queue.score": np.ones(3)}, "queue has columns of several lengths"),
    ],
)
def test_a_state_that_is_damaged_is_refused_and_changes_nothing(damage, words):
    new = detector()
    before = state_of(new)
    assert equal(restored(new, {**before, **FULL}).inner, new.inner), "without the damage"
    with pytest.raises(ValueError, match=words) as refused:
        restored(new, {**before, **FULL, **damage})
    assert len(str(refused.value)) < 200
    for name, value in state_of(new).items():
        np.testing.assert_array_equal(value, before[name])


@pytest.mark.parametrize("name", list(state_of(detector())))
def test_a_state_that_lacks_a_name_is_refused(name):
    state = state_of(detector())
    del state[name]
    with pytest.raises(ValueError, match=f"{name} is missing"):
        restored(detector(), state)


@pytest.mark.parametrize("value", [[1], {1: 2}, {1}, 1j, b"x"])
def test_what_no_state_can_have_is_said(value):
    with pytest.raises(TypeError, match=f"inner.x is a {type(value).__name__}: no state has such"):
        state_of(Node(inner=Node(x=value)))
