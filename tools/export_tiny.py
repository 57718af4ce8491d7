"""Turn the last checkpoint of train_tiny.py into the package's assets.

    python tools/export_tiny.py --work /tmp/tiny --seed 0
    python tools/export_tiny.py --work /tmp/sigmoid --folder /tmp/tiny-sigmoid

With `--folder` it writes open_clip's format instead, for `--model local-dir:/tmp/tiny-sigmoid`.

Two changes, which preserve every cosine, make the features resemble CLIP's: a random rotation of
the common space spreads their energy over all 512 dimensions, and the image projection is scaled so
that a raw image feature has a norm of about 10.
"""

import argparse
import json
import os
import platform
from pathlib import Path

import numpy as np
import open_clip
import timm
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from sklearn.metrics import roc_auc_score
from tiny_captions import CONCEPTS, vocabulary
from tiny_validation import FAMILIES, Validation, gaussian_noise, image_features, softmax
from torch import Tensor
from torch.nn import functional
from train_tiny import CONFIG, build_model

from zsntta_cli.datasets.catalogue import BUILTIN
from zsntta_cli.datasets.drawn.builtin import VERSION, render
from zsntta_cli.encoders.weights import load_weights
from zsntta_cli.settings import TINY, EncoderChoice

WEIGHTS = CONFIG.with_name("tiny.safetensors")
RECORD = CONFIG.with_name("tiny-training.json")
NORM = 10.0  # of a raw image feature, about that of CLIP's ViT-B/16


def spread(model: open_clip.CLIP, pixels: NDArray[np.uint8], seed: int) -> None:
    """Rotate the common space at random and scale image features to norm 10, in place."""
    dim = model.text_projection.shape[1]
    gaussian = torch.randn(dim, dim, generator=torch.Generator().manual_seed(seed))
    rotation, upper = torch.linalg.qr(gaussian)
    rotation = rotation * upper.diagonal().sign()
    norm = float(np.linalg.norm(image_features(model, pixels), axis=1).mean())
    projection = model.visual.head.proj.weight
    with torch.no_grad():
        projection.copy_((NORM / norm) * rotation @ projection)
        model.text_projection.copy_(model.text_projection @ rotation.T)


def compact(model: open_clip.CLIP) -> dict[str, Tensor]:
    """Return the weights to store: matrices in half precision, and only the words in use."""
    state = dict(model.state_dict())
    rows = state.pop("token_embedding.weight")
    small = {k: v.half() if v.ndim > 1 else v for k, v in state.items()}
    words = torch.from_numpy(vocabulary())
    small |= {"token_embedding.ids": words, "token_embedding.rows": rows.half()}
    return {name: value.contiguous() for name, value in small.items()}


def write_folder(model: open_clip.CLIP, folder: Path) -> None:
    """Write a model in open_clip's format, with embeddings for its whole vocabulary."""
    config = json.loads(CONFIG.read_text())
    if model.logit_bias is not None:
        config["init_logit_bias"] = 0.0  # without it open_clip would create none
    state = dict(model.state_dict())
    rows = state.pop("token_embedding.weight")
    table = torch.zeros(config["text_cfg"]["vocab_size"], rows.shape[1])
    table[torch.from_numpy(vocabulary())] = rows
    state = {name: value.contiguous() for name, value in state.items()}
    folder.mkdir(parents=True, exist_ok=True)
    save_file(state | {"token_embedding.weight": table}, folder / "open_clip_model.safetensors")
    described = {"model_cfg": config, "preprocess_cfg": {}}
    (folder / "open_clip_config.json").write_text(json.dumps(described, indent=2) + "\n")


def load_tiny() -> open_clip.CLIP:
    """Load the assets with the package's own loader."""
    model: open_clip.CLIP = load_weights(EncoderChoice(TINY)).model
    return model.eval()


@torch.no_grad()
def _texts(model: open_clip.CLIP, name: str) -> NDArray[np.float32]:
    prompt, class_names = BUILTIN[name].prompt, render(name).class_names
    tokens = open_clip.tokenize([prompt.format(class_name) for class_name in class_names])
    text = model.encode_text(tokens[:, : model.context_length])
    return functional.normalize(text, dim=-1).numpy()


def judge(model: open_clip.CLIP, limit: int | None) -> dict[str, dict[str, float]]:
    """Measure zero-shot accuracy on the built-in sets, and MCM AUROC with `shapes` as ID."""
    scale, shapes = model.logit_scale.exp().item(), _texts(model, "shapes")
    figures, scores = {}, {}
    for name in BUILTIN:
        images = render(name)
        count = min(len(images), limit or len(images))
        pixels = np.stack([np.asarray(images.read(i)) for i in range(count)])
        raw = image_features(model, pixels)
        unit = raw / np.linalg.norm(raw, axis=1, keepdims=True)
        right = (unit @ _texts(model, name).T).argmax(1) == images.labels[:count]
        scores[name] = softmax(scale * unit @ shapes.T).max(1)
        figures[name] = {"accuracy": right.mean(), "norm": np.linalg.norm(raw, axis=1).mean()}
    raw = image_features(model, gaussian_noise(1000, np.random.default_rng(9)))
    unit = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    figures["gaussian noise"] = {}
    scores["gaussian noise"] = softmax(scale * unit @ shapes.T).max(1)
    for name, values in scores.items():
        figures[name]["noise score"] = 1 - values.mean()
        truth = np.repeat([1, 0], [len(scores["shapes"]), len(values)])
        if name != "shapes":
            both = np.concatenate([scores["shapes"], values])
            figures[name]["auroc"] = roc_auc_score(truth, both)
    return {k: {n: round(float(v), 4) for n, v in row.items()} for k, row in figures.items()}


def main() -> None:
    """Export, load again, check and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, required=True, help="folder of the checkpoints")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--judge", action="store_true", help="also measure on the built-in sets")
    parser.add_argument("--limit", type=int, help="images per set to measure on")
    parser.add_argument("--folder", type=Path, help="folder for a model in open_clip's format")
    parser.add_argument("--note", action="append", default=[], help="a line for the record")
    options = parser.parse_args()
    torch.set_num_threads(1)
    saved = torch.load(options.work / "checkpoint.pt", weights_only=True)
    loss = "sigmoid" if "logit_bias" in saved["model"] else "softmax"
    model = build_model(len(vocabulary()), loss)
    model.load_state_dict(saved["model"])
    model.eval()
    validation = Validation(options.seed + 1)
    pixels = np.concatenate([validation.pixels["easy", name] for name in FAMILIES])
    before = image_features(model, pixels[:64])
    spread(model, pixels, options.seed)
    if options.folder:
        write_folder(model, options.folder)
        return
    save_file(compact(model), WEIGHTS)
    WEIGHTS.chmod(0o644)
    after = image_features(load_tiny(), pixels[:64])
    cosines = [functional.normalize(torch.from_numpy(x), dim=-1) for x in (before, after)]
    shift = float((cosines[0] @ cosines[0].T - cosines[1] @ cosines[1].T).abs().max())
    assert shift < 0.01, f"the export changed cosines by {shift:.3f}"
    figures = {k: v for k, v in saved.items() if k not in ("model", "optimiser", "schedule")}
    record = {
        "seed": options.seed,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "versions": {m.__name__: m.__version__ for m in (torch, open_clip, timm, np)},
        "rendering": VERSION,
        "concepts": len(CONCEPTS),
        "words": len(vocabulary()),
        "notes": options.note,
        "training": figures,
    }
    if options.judge:
        record["built-in sets"] = judge(load_tiny(), options.limit)
    RECORD.write_text(json.dumps(record, indent=2) + "\n")
    print(json.dumps(record, indent=2))


if __name__ == "__main__":
    main()
