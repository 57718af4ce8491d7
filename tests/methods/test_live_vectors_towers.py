"""The released code's decisions and logits of Tent and SoTTA: a ResNet, a ViT of 24 blocks."""

import pytest
import released
import torch
import towers
from made import CONFIG

from zsntta_cli.encoders.clip import load_encoder
from zsntta_cli.settings import EncoderChoice

VECTORS = released.load("live-towers")
NAMES = [str(name) for name in VECTORS["class_names"]]
VISION = {
    "deep": {**CONFIG["vision_cfg"], "layers": 24},
    "resnet": {"layers": [1, 1, 1, 1], "width": 16, "image_size": 64, "patch_size": None},
}
# Of the ResNet's the released run's own rounding, in float32: see `in_double_precision`.
LOGITS_WITHIN = {
    ("deep", "tent"): 1e-3, ("deep", "sotta"): 1e-3,
    ("resnet", "tent"): 0.03, ("resnet", "sotta"): 0.25,
}  # fmt: skip


class Ready(towers.Ready):
    """In the precision of the encoder."""

    @property
    def text_features(self):
        return super().text_features.to(self.encoder.model.logit_scale.dtype)


@pytest.fixture(scope="module", params=VISION)
def tower(request, tmp_path_factory):
    """Its name; its encoder; its input; which items are ID."""
    name, path = request.param, tmp_path_factory.mktemp("weights") / "clip.pt"
    state, images, targets = released.tower(name)
    torch.save(state, path)
    config = {**CONFIG, "vision_cfg": VISION[name], "quick_gelu": True}
    with towers.registered({f"clip-{name}": config}):
        encoder = load_encoder(EncoderChoice(f"clip-{name}", str(path)), "cpu")
    if name == "resnet":
        if released.checksum(state, images) != VECTORS["resnet/checksum"]:
            pytest.skip("torch draws normal numbers with other last bits here")
        in_double_precision(encoder)
    return name, encoder, images, targets >= 0


def in_double_precision(encoder):
    """The same numbers whatever the threads and the CPU's instructions.

    Adam's first steps and batch statistics amplify rounding. In float32 the order of sums moves
    logits by 0.2 and one decision in a hundred; so do the last bits of the input.
    """
    encoder.model.double()
    encoder.image_features = lambda images: encoder.model.encode_image(images.double())


def case_run(name, case):
    method, _, pipeline = case.partition("-")
    values = {"batch_size": 32}
    if method == "sotta":
        values = {"memory": 512, "confidence": float(VECTORS[f"{name}/{case}/confidence"])}
    return towers.live_run(method, "official", learning_rate=1e-3, pipeline=pipeline, **values)


@pytest.mark.parametrize(
    "case", ["tent-normal", "tent-gt", "tent-all", "sotta-normal", "sotta-all"]
)
def test_decisions_and_logits_are_the_released_codes(case, tower, monkeypatch):
    name, encoder, images, truly_clean = tower
    expected = released.part(VECTORS, f"{name}/{case}")
    count = len(expected["logits"])
    clean = truly_clean[:count] if case.endswith("gt") else None
    data = towers.of_inputs(encoder, images[:count], NAMES, clean, kind=Ready)
    within = LOGITS_WITHIN[name, case.partition("-")[0]]
    towers.decided_as_released(data, case_run(name, case), expected, monkeypatch, within)
