"""OpenAI's weights are known by their content, whatever their file is called."""

from dataclasses import replace
from pathlib import Path

import pytest

from zsntta_cli.cache import folder
from zsntta_cli.files import sha256
from zsntta_cli.paper.cells import PaperEncoder, cells
from zsntta_cli.paper.printed.tables import find_table
from zsntta_cli.settings import PAPER_ENCODERS, EncoderChoice, published


@pytest.fixture
def weights(tmp_path, monkeypatch):
    """A file that counts as OpenAI's ViT-B-16."""
    path = tmp_path / "fetched by hand.pt"
    path.write_bytes(b"weights")
    monkeypatch.setitem(published.OPENAI_SHA256, "ViT-B-16", sha256(path))
    return path


def choice(path, model="ViT-B-16", **more):
    return EncoderChoice(model, str(path), **more)


def test_the_digests_are_those_that_open_clip_checks():
    """`download_pretrained_from_url` holds the whole digest against a file of OpenAI's."""
    from open_clip.pretrained import _PRETRAINED

    urls = {model: tags.get("openai", {}).get("url", "") for model, tags in _PRETRAINED.items()}
    theirs = {model: url.split("/")[-2] for model, url in urls.items() if "openaipublic" in url}
    plain = {model: digest for model, digest in theirs.items() if "quickgelu" not in model}
    assert plain == published.OPENAI_SHA256
    twins = {model.removesuffix("-quickgelu"): digest for model, digest in theirs.items()}
    assert twins == plain
    assert {encoder.model for encoder in PAPER_ENCODERS} <= set(plain)


def test_a_file_is_known_by_its_content(weights, tmp_path):
    openai = EncoderChoice("ViT-B-16")
    assert choice(weights).as_published == openai
    assert choice(weights, precision="bf16").as_published == replace(openai, precision="bf16")
    assert choice(weights, "ViT-B-16-quickgelu").as_published.slug == "ViT-B-16-quickgelu-openai"
    for model in ("ViT-B-32", "ViT-L-14", "RN50", "my-own"):
        assert choice(weights, model).as_published == choice(weights, model), model
    for other in (openai, EncoderChoice(folder="mine"), EncoderChoice("tiny"), choice("nowhere")):
        assert other.as_published == other


def test_another_file_of_the_name_is_another_encoder(weights):
    assert choice(weights).as_published.pretrained == "openai"
    weights.write_bytes(b"WEIGHTS")  # as large, a moment later
    assert choice(weights).as_published.pretrained == str(weights)


def test_a_digest_is_computed_once(weights, monkeypatch):
    digests = []
    monkeypatch.setattr(published, "sha256", lambda path: digests.append(path) or sha256(path))
    published._digest.cache_clear()
    for _ in range(3):
        assert choice(weights).as_published.pretrained == "openai"
    assert len(digests) == 1


def test_features_go_where_those_of_the_tag_are(weights, tmp_path):
    assert folder.folder_name(choice(weights)) == "ViT-B-16-openai"
    digest = sha256(weights)[:8]
    name = folder.folder_name(choice(weights, "ViT-B-32"))
    assert name == f"ViT-B-32-fetched-by-hand-{digest}"


def is_published(encoder, number="2"):
    return {bool(cell.published) for cell in cells(find_table(number), PaperEncoder(encoder))}


def test_the_papers_numbers_stand_beside_it(weights):
    table = "10"
    of_tag = cells(find_table(table), PaperEncoder(EncoderChoice("ViT-B-16", precision="bf16")))
    of_file = cells(find_table(table), PaperEncoder(choice(weights, precision="bf16")))
    assert of_file == of_tag
    assert is_published(choice(weights), table) == {True}
    weights.write_bytes(b"others")
    assert is_published(choice(weights), table) == {False}
    assert is_published(choice(Path(__file__)), table) == {False}
