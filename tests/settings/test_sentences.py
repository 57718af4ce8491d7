"""Prompts that are a file: what is read, what it is filed under, what is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zsntta_cli.errors import SettingsError
from zsntta_cli.settings.prompts import (
    averaged_prompt,
    class_prompts,
    ensembles,
    join_templates,
    prompt_label,
    prompt_template,
    templates_of,
)
from zsntta_cli.settings.sentences import Sentences, filed_as, is_filed, read_sentences

TEXTS = st.text(st.characters(categories=("L", "N", "P", "Zs")), min_size=1).filter(str.strip)
FILES = st.dictionaries(
    st.from_regex(r"[a-z]+( [a-z]+)?", fullmatch=True), st.lists(TEXTS, min_size=1, max_size=4),
    min_size=1, max_size=5,
)  # fmt: skip


def written(folder, content, name="cupl.json"):
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@given(FILES)
def test_any_file_is_read_as_it_is(tmp_path_factory, content):
    path = written(tmp_path_factory.mktemp("prompts"), content)
    read = read_sentences(path)
    names = list(content)
    assert read.of("own", names) == [tuple(content[name]) for name in names]
    assert is_filed(read.filed)
    assert prompt_template(read.filed) == read.filed
    turned = written(path.parent, dict(reversed(content.items())))
    assert read_sentences(turned).filed == read.filed, "the order of classes is nothing"


def test_names_are_met_without_case_and_underscores():
    read = Sentences("cupl", {"great white shark": ("teeth",)})
    assert read.of("own", ["Great_White  shark"]) == [("teeth",)]


def test_another_sentence_is_another_prompt(tmp_path):
    one = read_sentences(written(tmp_path, {"cat": ["a", "b"]})).filed
    assert one.startswith("cupl@")
    assert one != read_sentences(written(tmp_path, {"cat": ["b", "a"]})).filed
    assert one != read_sentences(written(tmp_path, {"cat": ["a", "b"]}, "menon.json")).filed


@pytest.mark.parametrize(
    ("content", "why"),
    [("", "it is no JSON at column 1"), ("[]", "it holds nothing"), ('["a"]', "it holds list"),
     ("{}", "it holds nothing"), ('{"cat": []}', "'cat' has no list of sentences"),
     ('{"cat": "meow"}', "'cat' has no list"), ('{"cat": [1]}', "'cat' has no list"),
     ('{"cat": [" "]}', "'cat' has no list"), ('{"cat": ["a"], "cat": ["b"]}', "there twice"),
     ('{"a_b": ["a"], "A B": ["b"]}', "'A B' is there twice"), ("[" * 200_000, "recursion"),
     ('{"cat": ["a"', "JSON at column 13"), ('{"cat": ["\\ud800"]}', "surrogates"),
     ('{"\\ud800": ["a"]}', "surrogates")],
)  # fmt: skip
def test_what_is_no_such_file_is_told_in_a_line(tmp_path, content, why):
    with pytest.raises(SettingsError, match=r"is not \{class name: \[sentence, …\]\}") as told:
        read_sentences(written(tmp_path, content))
    assert why in str(told.value)
    assert "\n" not in str(told.value)


def test_a_file_that_there_is_not_and_one_with_an_odd_name(tmp_path):
    with pytest.raises(SettingsError, match="cannot read"):
        read_sentences(tmp_path / "cupl.json")
    with pytest.raises(SettingsError, match="cannot name prompts"):
        read_sentences(tmp_path / "a@b{}.json")


def test_classes_that_it_has_not_are_named():
    read = Sentences("cupl", {"cat": ("a",)})
    with pytest.raises(SettingsError) as told:
        read.of("pets", ["cat", "dog", "ox", "owl", "emu"])
    assert str(told.value) == (
        "the prompts of 'cupl' are not of pets: they have no sentences for 'dog', 'ox', 'owl' and "
        "1 more of its 5 classes."
    )


def test_classes_that_only_the_file_has_are_counted():
    read = Sentences("cupl", dict.fromkeys(("cat", "dog", "ox", "owl", "emu"), ("a",)))
    assert read.surplus(["Cat"]) == "4 ('dog', 'emu', 'owl', …)"
    assert read.surplus(["CAT", "dog", "ox", "owl"]) == "1 ('emu')"
    assert read.surplus(["cat", "dog", "ox", "owl", "emu", "more"]) == ""


def test_a_files_name_stands_for_the_one_that_is_cached():
    cached = ("a photo of a {}.", "cupl@0123abcd", "menon@00000000", "menon@11111111")
    assert filed_as("cupl", cached) == "cupl@0123abcd"
    assert filed_as("cupl@0123abcd", cached) == "cupl@0123abcd"
    assert filed_as("a {}", cached) == "a {}"
    with pytest.raises(SettingsError, match="the name of 2 files: name one, menon@00000000, menon"):
        filed_as("menon", cached)


def test_ensembles_are_open_clips():
    import open_clip

    for name, templates in (("clip-80", open_clip.OPENAI_IMAGENET_TEMPLATES),
                            ("clip-7", open_clip.SIMPLE_IMAGENET_TEMPLATES)):  # fmt: skip
        assert [template("{}") for template in templates] == ensembles()[name]
    assert {name: len(templates) for name, templates in ensembles().items()} == {
        "clip-80": 80, "clip-7": 7, "clip-cifar": 18, "clip-cars": 8, "clip-aircraft": 2,
    }  # fmt: skip
    for name in ensembles():
        assert prompt_template(name) == name
        assert templates_of(name) == ensembles()[name]


def test_what_stands_for_several_is_no_template():
    for prompt in ("clip-80", "cupl@0123abcd"):
        with pytest.raises(SettingsError, match=r"stands for several templates: give one"):
            class_prompts(prompt, ["cat"])


def test_templates_that_are_averaged_may_be_named_and_count_once():
    assert averaged_prompt(["code", "the {}"]) == "a photo of a {}. | the {}"
    assert averaged_prompt(["the {}", "code", "the {}"]) == "the {} | a photo of a {}."
    assert averaged_prompt(["the {}"]) == "the {}"
    assert averaged_prompt([*reversed(ensembles()["clip-7"])]) == "clip-7"
    assert averaged_prompt(["clip-aircraft", "the {}"]).endswith(", a type of aircraft. | the {}")
    for wrong in ("the", "clip-81", "cupl@0123abcd", "{} {}"):
        with pytest.raises(SettingsError, match=r"neither one of|sentences of a file"):
            averaged_prompt(["a {}", wrong])


def test_a_label_of_many_templates_is_short_and_no_others():
    templates = ensembles()["clip-7"]
    one, other = join_templates(*templates[:6]), join_templates(*templates[:5], templates[6])
    assert prompt_label(one).startswith("itap of a {}. | 5 more (")
    assert prompt_label(one) != prompt_label(other)
    assert len(prompt_label(one)) <= 60
    plain = "a photo of a {}, " + "very " * 20
    for prompt in ("clip-80", "cupl@0123abcd", "a {} | the {}", plain):
        assert prompt_label(prompt) == prompt
