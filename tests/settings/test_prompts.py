"""Prompts: templates, averages of them, and their names."""

from zsntta_cli.settings.prompts import (
    ensembles,
    prompt_label,
    prompt_template,
    templates_of,
)


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


def test_a_label_of_a_long_prompt_is_short_and_no_others():
    templates = ensembles()["clip-7"]
    one, other = " | ".join(templates[:6]), " | ".join([*templates[:5], templates[6]])
    assert prompt_label(one).startswith("itap of a {}. | a bad photo of the {}. | ")
    assert prompt_label(one) != prompt_label(other)
    assert len(prompt_label(one)) == 60
    plain = "a photo of a {}, " + "very " * 20
    for prompt in ("clip-80", "a {} | the {}", plain):
        assert prompt_label(prompt) == prompt
