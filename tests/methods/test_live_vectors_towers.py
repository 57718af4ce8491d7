"""The released code's decisions and logits of Tent and SoTTA: a ResNet, a ViT of 24 blocks."""

import made
import numpy as np
import open_clip.factory
import pytest
import released
import torch
from made import CONFIG, PROMPT

from zsntta_cli.encoders.clip import load_encoder
from zsntta_cli.methods.base import Decisions, Pool, StreamData
from zsntta_cli.methods.live import sotta, tent
from zsntta_cli.methods.live.base import LiveData
from zsntta_cli.methods.scores import zero_shot
from zsntta_cli.settings import EncoderChoice
from zsntta_cli.settings.prompts import class_prompts
from zsntta_cli.simulation.runs import build_run

VECTORS = released.load("live-towers")
NAMES = [str(name) for name in VECTORS["class_names"]]
VISION = {
    "deep": {**CONFIG["vision_cfg"], "layers": 24},
    "resnet": {"layers": [1, 1, 1, 1], "width": 16, "image_size": 64, "patch_size": None},
}
LOGITS_WITHIN = {"deep": 1e-3, "resnet": 2e-2}  # batch statistics amplify rounding


class Ready(LiveData):
    """A stream whose encoder input is there already."""

    def batches(self, batches):
        return ((items, self.encoder.inputs[items]) for items in batches)


@pytest.fixture(scope="module", params=VISION)
def tower(request, tmp_path_factory):
    """Its name; its encoder, with its input; which items are ID."""
    name, path = request.param, tmp_path_factory.mktemp("weights") / "clip.pt"
    state, images, targets = released.tower(name)
    torch.save(state, path)
    config = {**CONFIG, "vision_cfg": VISION[name], "quick_gelu": True}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(open_clip.factory._MODEL_CONFIGS, f"clip-{name}", config)
        encoder = load_encoder(EncoderChoice(f"clip-{name}", str(path)), "cpu")
    encoder.layout = torch.contiguous_format  # see `order_of_sums`
    encoder.model.visual.to(memory_format=encoder.layout)
    encoder.inputs = images
    return name, encoder, targets >= 0


@pytest.fixture(autouse=True)
def order_of_sums(monkeypatch):
    """The released run's, as far as may be: the learning rates amplify rounding.

    With two threads, with oneDNN or with channels last the ResNet's logits of SoTTA are 0.1 away.
    """
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def case_run(name, case):
    method, _, pipeline = case.partition("-")
    values = {"batch_size": 32}
    if method == "sotta":
        values = {"memory": 512, "confidence": float(VECTORS[f"{name}/{case}/confidence"])}
    return build_run(
        method, "", "shapes", None, PROMPT, "official",
        learning_rate=1e-3, pipeline=pipeline, **values,
    )  # fmt: skip


def live_data(encoder, count, truly_clean):
    features = encoder.encode_images(encoder.inputs[:count])
    text = encoder.encode_texts(class_prompts(PROMPT, NAMES))
    scale = encoder.identity["logit_scale"]
    pool = Pool(features, text, scale, zero_shot(features, text, scale))
    stream = StreamData(pool, np.arange(count), np.zeros(count, bool))
    return Ready(stream, encoder, None, NAMES, PROMPT, truly_clean=truly_clean)


@pytest.mark.parametrize(
    "case", ["tent-normal", "tent-gt", "tent-all", "sotta-normal", "sotta-all"]
)
def test_decisions_and_logits_are_the_released_codes(case, tower, monkeypatch):
    name, encoder, truly_clean = tower
    module, seen = {"tent": tent, "sotta": sotta}[case.partition("-")[0]], []
    scores = module.zero_shot_scores
    monkeypatch.setattr(
        module, "zero_shot_scores", lambda z: seen.append(z.detach().clone()) or scores(z)
    )
    logits = VECTORS[f"{name}/{case}/logits"]
    clean = truly_clean[: len(logits)] if case.endswith("gt") else None
    data = live_data(encoder, len(logits), clean)
    found = Decisions.joined(list(made.decisions(data, case_run(name, case))))
    assert np.array_equal(found.class_index, VECTORS[f"{name}/{case}/class_index"])
    assert np.array_equal(found.is_noise, VECTORS[f"{name}/{case}/is_noise"])
    np.testing.assert_allclose(torch.cat(seen), logits, atol=LOGITS_WITHIN[name])
