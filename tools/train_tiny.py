"""Train the embedded encoder on pictures that the package draws.

    nice python tools/train_tiny.py --steps 18000 --work /tmp/tiny
    python tools/export_tiny.py --work /tmp/tiny

`--loss sigmoid` trains as SigLIP does: each pair of a picture and a caption is a separate yes or
no, with a learned scale and bias.

The model is open_clip's CLIP class (`zsntta_cli/encoders/assets/tiny.json`) with timm's
`test_resnet` as image tower. One process draws, and this one trains. A caption is a positive of
every picture of the batch of which it is true. Every picture is used twice, the second time some
hundred steps later, because drawing costs as much as the network. Interrupted training resumes from
the last checkpoint (with other repeats than the uninterrupted run).
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import open_clip
import torch
from numpy.typing import NDArray
from tiny_captions import GROUPS, facts, true_of, vocabulary, write_caption
from tiny_drawing import TRAINING, draw
from tiny_validation import Validation
from torch import Tensor
from torch.nn import functional
from torch.utils.data import DataLoader, IterableDataset

CONFIG = Path(__file__).parents[1] / "zsntta_cli" / "encoders" / "assets" / "tiny.json"
FRESH = 128  # new pictures per step; as many are repeated, without their captions
MEMORY = 300  # steps whose pictures can be repeated
SMOOTHING = 0.1  # of the captions' targets: a picture is equally far from all that is not true
SIGMOID_START = {"init_logit_scale": float(np.log(10)), "init_logit_bias": -10.0}  # as SigLIP's
MEAN = torch.tensor(open_clip.OPENAI_DATASET_MEAN).view(1, 3, 1, 1)
STD = torch.tensor(open_clip.OPENAI_DATASET_STD).view(1, 3, 1, 1)


class Pairs(NamedTuple):
    """Pictures, each with a caption."""

    pixels: NDArray[np.uint8]  # (B, 32, 32, 3)
    shown: NDArray[np.int16]  # (B, 6) what the picture shows
    claims: NDArray[np.int16]  # (B, 6) what the caption says, -1 = nothing
    tokens: NDArray[np.int32]  # (B, CONTEXT)


def draw_pairs(count: int, gen: np.random.Generator) -> Pairs:
    """Draw `count` pictures of the training distribution and write their captions."""
    shares = np.cumsum([share for _, share in GROUPS])
    rows = []
    for _ in range(count):
        group = GROUPS[int(np.searchsorted(shares, gen.random() * shares[-1], side="right"))][0]
        drawing = draw(group[int(gen.random() * len(group))], TRAINING, gen)
        caption = write_caption(drawing, gen)
        rows.append((drawing.pixels, facts(drawing), caption.claims, caption.tokens))
    return Pairs(*(np.stack(column) for column in zip(*rows, strict=True)))


class Studio(IterableDataset[Pairs]):
    """Draws the fresh pictures of every step, each step from its own seed."""

    def __init__(self, seed: int, start: int, stop: int) -> None:
        self.seed, self.start, self.stop = seed, start, stop

    def __iter__(self) -> Iterator[Pairs]:
        for step in range(self.start, self.stop):
            yield draw_pairs(FRESH, np.random.Generator(np.random.PCG64((self.seed, step))))


def build_model(vocabulary_size: int, loss: str = "softmax") -> open_clip.CLIP:
    """Build the tiny CLIP, with embeddings only for the words in use."""
    config = json.loads(CONFIG.read_text()) | (SIGMOID_START if loss == "sigmoid" else {})
    config["text_cfg"]["vocab_size"] = vocabulary_size
    model = open_clip.CLIP(**config)
    return model.to(memory_format=torch.channels_last)


def normalise(pixels: NDArray[np.uint8]) -> Tensor:
    """Normalise bytes as open_clip's inference transform does for a 32 x 32 image."""
    images = torch.from_numpy(pixels).permute(0, 3, 1, 2).float().div_(255)
    return images.sub_(MEAN).div_(STD).contiguous(memory_format=torch.channels_last)


def encode_captions(model: open_clip.CLIP, tokens: Tensor) -> Tensor:
    """Encode texts without the padding that causal attention never reads."""
    end = tokens.argmax(dim=1)
    length = int(end.max()) + 1
    x = model.token_embedding(tokens[:, :length]) + model.positional_embedding[:length]
    x = model.ln_final(model.transformer(x, attn_mask=model.attn_mask[:length, :length]))
    return functional.normalize(x[torch.arange(len(x)), end] @ model.text_projection, dim=-1)


def compare(model: open_clip.CLIP, pairs: Pairs, words: NDArray[np.int32]) -> tuple[Tensor, Tensor]:
    """Logits of every picture and distinct caption, and whether it is true, 0 or 1 (B, captions).

    Only the captions of the new pictures take part (the text tower is half of the cost).
    """
    tokens, first = np.unique(pairs.tokens[:FRESH], axis=0, return_index=True)
    true = torch.from_numpy(true_of(pairs.claims[first], pairs.shown)).T.float()
    with torch.autocast("cpu", torch.bfloat16):
        image = model.visual(normalise(pairs.pixels))
    image = functional.normalize(image.float(), dim=-1)
    text = encode_captions(model, torch.from_numpy(np.searchsorted(words, tokens)))
    return model.logit_scale.exp() * image @ text.T, true


def contrastive_loss(model: open_clip.CLIP, pairs: Pairs, words: NDArray[np.int32]) -> Tensor:
    """Cross-entropy in both directions, with the target divided evenly among all true partners.

    A repeated picture of which no caption is true has no partner.
    """
    logits, true = compare(model, pairs, words)
    some = true.sum(1) > 0
    target = (1 - SMOOTHING) * true / true.sum(1, keepdim=True) + SMOOTHING / true.shape[1]
    to_text = functional.cross_entropy(logits[some], target[some])
    to_image = functional.cross_entropy(logits.T, true.T / true.T.sum(1, keepdim=True))
    return (to_text + to_image) / 2


def sigmoid_loss(model: open_clip.CLIP, pairs: Pairs, words: NDArray[np.int32]) -> Tensor:
    """SigLIP's loss (Zhai et al., 2023), where each pair is a yes or no; the mean over B."""
    logits, true = compare(model, pairs, words)
    yes_or_no = functional.binary_cross_entropy_with_logits(
        logits + model.logit_bias, true, reduction="sum"
    )
    return yes_or_no / len(true)


LOSSES: dict[str, Callable[[open_clip.CLIP, Pairs, NDArray[np.int32]], Tensor]] = {
    "softmax": contrastive_loss,
    "sigmoid": sigmoid_loss,
}


def make_optimiser(
    model: open_clip.CLIP, steps: int
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    """AdamW with a rate of 2e-3 after 200 steps of warm-up, which then follows a cosine to 0."""
    decayed = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": 0.05}, {"params": plain, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=2e-3, betas=(0.9, 0.98))

    def rate(step: int) -> float:
        return float(min(step / 200, 1) * 0.5 * (1 + np.cos(np.pi * min(step / steps, 1))))

    return optimiser, torch.optim.lr_scheduler.LambdaLR(optimiser, rate)


def repeat_some(fresh: Pairs, memory: list[Pairs], gen: np.random.Generator) -> Pairs:
    """Add the pictures of a random earlier step to new ones, and remember the new ones."""
    old = memory[int(gen.random() * len(memory))] if memory else fresh
    if len(memory) < MEMORY:
        memory.append(fresh)
    else:
        memory[int(gen.random() * MEMORY)] = fresh
    return Pairs(*(np.concatenate([new, past]) for new, past in zip(fresh, old, strict=True)))


def train(seed: int, steps: int, work: Path, every: int, loss_name: str) -> None:
    """Train to the end, from the last checkpoint in `work` if there is one."""
    torch.manual_seed(seed)
    words = vocabulary()
    model = build_model(len(words), loss_name)
    optimiser, schedule = make_optimiser(model, steps)
    checkpoint = work / "checkpoint.pt"
    start, spent = 0, 0.0
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        start, spent = saved["step"], saved["seconds"]
        for part, name in ((model, "model"), (optimiser, "optimiser"), (schedule, "schedule")):
            part.load_state_dict(saved[name])
    loader = DataLoader(
        Studio(seed, start, steps), batch_size=None, num_workers=1, prefetch_factor=16
    )
    validation = Validation(seed + 1)
    memory: list[Pairs] = []
    gen, began, smooth = np.random.default_rng((seed, start)), time.monotonic() - spent, 5.0
    for step, fresh in enumerate(loader, start + 1):
        fresh = Pairs(*(np.asarray(column) for column in fresh))
        loss = LOSSES[loss_name](model, repeat_some(fresh, memory, gen), words)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        schedule.step()
        with torch.no_grad():
            model.logit_scale.clamp_(max=float(np.log(100)))
        smooth += 0.01 * (loss.item() - smooth)
        if step % every == 0 or step == steps:
            figures = {"step": step, "seconds": round(time.monotonic() - began), "loss": smooth}
            figures |= validation.measure(model, words)
            with (work / "log.jsonl").open("a") as log:
                log.write(json.dumps(figures) + "\n")
            save(checkpoint, model, optimiser, schedule, figures)


def save(
    path: Path,
    model: open_clip.CLIP,
    optimiser: torch.optim.Optimizer,
    schedule: torch.optim.lr_scheduler.LRScheduler,
    figures: dict[str, float],
) -> None:
    """Write a checkpoint, completely or not at all."""
    parts = {"model": model, "optimiser": optimiser, "schedule": schedule}
    state = {name: part.state_dict() for name, part in parts.items()}
    torch.save(state | figures, path.with_suffix(".tmp"))
    path.with_suffix(".tmp").replace(path)


def main() -> None:
    """Parse the command line and train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=18_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path, required=True, help="checkpoints and log")
    parser.add_argument("--every", type=int, default=1000, help="steps between checkpoints")
    parser.add_argument("--loss", choices=sorted(LOSSES), default="softmax")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(options.threads)
    train(options.seed, options.steps, options.work, options.every, options.loss)


if __name__ == "__main__":
    main()
