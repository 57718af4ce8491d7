"""Records that somebody changed: any value at any place, and files that are no records."""

import copy
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from torture.tool import SETS, examples

DEEP = 100_000
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 300), st.floats(), st.text(max_size=20),
    st.sampled_from([10**400, -(10**30), 1.5, 1e308, 2**63, "x" * 300_000, "../../etc/passwd",
                     "", "\x1b[31m", "a\nb", "\ud800", "pets", "sky", "adand", "tent", "nan"]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=4,
)
CHANGES = st.lists(
    st.tuples(st.sampled_from(["set", "remove", "add"]), st.randoms(use_true_random=False), VALUES),
    min_size=1, max_size=3,
)  # fmt: skip


@pytest.fixture(scope="module")
def record(zsntta, place):
    answer = zsntta(
        "simulate", *SETS, "--method", "adand", "--set", "warmup=2", "--set", "update-every=16",
        "--format", "json", cwd=place,
    )  # fmt: skip
    return json.loads(answer.check().stdout)[0]


def places(tree, before=()):
    """The paths of all values of a tree of objects."""
    for key, value in tree.items():
        yield (*before, key)
        if isinstance(value, dict):
            yield from places(value, (*before, key))


def changed(record, changes):
    record = copy.deepcopy({key: record[key] for key in ("settings", "digests")})
    for how, random, value in changes:
        *path, key = random.choice(list(places(record)) or [("settings",)])
        at = record
        for step in path:
            at = at[step]
        if how == "remove":
            at.pop(key, None)
        else:
            at[key if how == "set" else str(value)[:40]] = value
    return record


def run(zsntta, place, content: bytes):
    (place / "record.json").write_bytes(content)
    answer = zsntta("simulate", "--from", "record.json", "--format", "json", cwd=place).check()
    assert max(map(len, answer.stderr.splitlines()), default=0) <= 400, answer
    return answer


@given(changes=CHANGES)
@examples(15, 300)
def test_changed_records(zsntta, place, record, changes):
    """What ran is what the record says, or nothing ran."""
    changed_record = changed(record, changes)
    answer = run(zsntta, place, json.dumps(changed_record).encode())
    if answer.code:
        return
    wanted = changed_record["settings"]
    exported = zsntta("records", "export", "--format", "json", cwd=place).check()
    kept = [ran for ran in json.loads(exported.stdout) if is_of(ran["settings"], wanted)]
    assert kept, wanted
    if wanted == record["settings"]:
        assert [ran["accuracies"] for ran in kept] == [record["accuracies"]]


def is_of(settings, wanted):
    """Whether a run has all values that a record names."""
    return all(
        settings[name][key] == one if key else settings[name] == one
        for name, value in wanted.items()
        for key, one in (value.items() if isinstance(value, dict) else [("", value)])
    )


@given(content=st.binary(max_size=300))
@example(content=b"[" * DEEP)
@example(content=b'{"settings":' * DEEP)
@example(content=b"[]")
@example(content=b"\xff\xfe" + b"x" * 300_000)
@example(content=b'{"settings": {"' + b"k" * 300_000 + b'": 1}, "digests": {}}')
@example(content=b'{"settings": {}, "digests": ["x"]}')
@example(content=b"9" * 5000)
@examples(3, 100)
def test_what_is_no_record(zsntta, place, content):
    assert run(zsntta, place, content).code == 1
