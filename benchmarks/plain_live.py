"""Tent, SoTTA and TPT as the released code runs them, with which the package must agree.

Each pass encodes all prompts again, with all 77 tokens, and TPT encodes all views of every sample,
whether it tunes on the sample or not.
"""

import random
from contextlib import nullcontext

import numpy as np
import torch
from numpy.typing import NDArray

from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods.live import sotta, tpt, tuned
from zsntta_cli.methods.live.base import LiveData, adapting, batch_statistics, norm_layers
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.settings.prompts import class_prompts
from zsntta_cli.simulation.runs import RunSettings


class Plain:
    """The whole model, run in full at every call."""

    def __init__(self, data: LiveData, settings: RunSettings) -> None:
        self.data, self.encoder = data, data.encoder
        self.options, self.pipeline = settings.options, settings.options.pipeline
        self.threshold = OnlineThreshold(
            settings.threshold, getattr(settings.options, "batch_size", 1) or 1
        )
        self.tokens = self.encoder.text.tokens(class_prompts(settings.prompt, data.class_names))

    def text(self, context: torch.Tensor | None = None) -> torch.Tensor:
        words = nullcontext() if context is None else self.encoder.text._replacing(context)
        with words:
            features = self.encoder.model.encode_text(self.tokens).float()
        return features / features.norm(dim=-1, keepdim=True)

    def logits(self, images: torch.Tensor, context: torch.Tensor | None = None) -> torch.Tensor:
        features = self.encoder.image_features(images)
        features = features / features.norm(dim=-1, keepdim=True)
        return self.data.stream.logit_scale * features @ self.text(context).T

    def decide(self, logits: torch.Tensor) -> Decisions:
        probability, class_index = logits.detach().softmax(dim=1).max(dim=1)
        u = 1 - probability.double().cpu().numpy()
        found = self.threshold(u)
        return Decisions(class_index.int().cpu().numpy(), u > found, 1 - u, found)


def adapts_on(
    plain: Plain, items: NDArray[np.int64], is_noise: NDArray[np.bool_] | None
) -> NDArray[np.bool_]:
    data = plain.data
    assert is_noise is not None
    return tuned.adapts_on(data.stream, plain.pipeline, items, is_noise, data.truly_clean)


def minimise(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()


def entropies(logits: torch.Tensor, inside: float = 0.0) -> torch.Tensor:
    probability = logits.softmax(dim=1)
    return -(probability * (probability + inside).log()).sum(dim=1)


def tent(data: LiveData, settings: RunSettings) -> Decisions:
    plain, size = Plain(data, settings), settings.options.batch_size
    items = np.arange(len(data))
    batches = [items[i : i + size] for i in range(0, len(items), size)]
    tower = data.encoder.model.visual
    parts = []
    with adapting(data.encoder, list(norm_layers(tower).values())) as parameters:
        optimizer = torch.optim.Adam(parameters, settings.options.learning_rate)
        for batch, images in data.batches(batches):
            with batch_statistics(tower, 0.0):
                logits = plain.logits(images)  # of the whole batch, whose statistics BatchNorm has
                parts.append(plain.decide(logits))
                chosen = adapts_on(plain, batch, parts[-1].is_noise)
                if chosen.any():
                    minimise(optimizer, entropies(logits[torch.from_numpy(chosen)]).mean())
    return Decisions.joined(parts)


def sotta_by_items(data: LiveData, settings: RunSettings) -> Decisions:
    plain, options = Plain(data, settings), settings.options
    tower = data.encoder.model.visual
    layers = list(sotta.adapted_layers(tower, options.frozen_blocks).values())
    chance = random.Random(data.stream.seed)
    memory: list[tuple[int, torch.Tensor]] = []
    parts = []
    with adapting(data.encoder, layers) as parameters:
        optimizer = torch.optim.Adam(
            parameters, options.learning_rate, weight_decay=options.weight_decay
        )
        for batch, image in data.batches([np.array([i]) for i in range(len(data))]):
            with torch.no_grad():
                parts.append(plain.decide(plain.logits(image)))
            (one,) = parts[-1].class_index.tolist()
            enters = adapts_on(plain, batch, parts[-1].is_noise)[0]
            if enters and parts[-1].id_score[0] >= options.confidence:
                if len(memory) == options.memory:
                    drop(memory, one, chance)
                memory.append((one, image))
            if (batch[0] + 1) % options.update_every == 0 and memory:
                with batch_statistics(tower, 0.2):  # every BatchNorm, adapted or not
                    sharpness_step(plain, torch.cat([i for _, i in memory]), parameters, optimizer)
    return Decisions.joined(parts)


def drop(memory: list[tuple[int, torch.Tensor]], own: int, chance: random.Random) -> None:
    classes = [c for c, _ in memory]
    largest = [
        c for c in dict.fromkeys(classes) if classes.count(c) == max(map(classes.count, classes))
    ]
    leaving = own if own in largest else chance.choice(largest)
    del memory[chance.choice([i for i, c in enumerate(classes) if c == leaving])]


def sharpness_step(plain, images, parameters, optimizer) -> None:  # type: ignore[no-untyped-def]
    rho = plain.options.rho
    gradients = torch.autograd.grad(entropies(plain.logits(images), 1e-6).mean(), parameters)
    norm = torch.cat([g.flatten() for g in gradients]).norm() + 1e-12
    here = [p.detach().clone() for p in parameters]
    with torch.no_grad():
        for p, g in zip(parameters, gradients, strict=True):
            p.add_(rho * g / norm)
    optimizer.zero_grad()
    entropies(plain.logits(images), 1e-6).mean().backward()  # type: ignore[no-untyped-call]
    with torch.no_grad():
        for p, value in zip(parameters, here, strict=True):
            p.copy_(value)
    optimizer.step()


def tpt_by_items(data: LiveData, settings: RunSettings) -> Decisions:
    plain, options = Plain(data, settings), settings.options
    data.encoder.model.requires_grad_(False)
    _, initial = tpt.prompt_context(data.encoder, settings.prompt, data.class_names)
    asked = OnlineThreshold(settings.threshold)
    parts = []
    itself = (images for _, images in data.batches([np.array([i]) for i in range(len(data))]))
    augmented = tpt.load_views(
        data, np.arange(len(data)), options.views - 1, options.augmix, options.views_by
    )
    for image, (item, others) in zip(itself, augmented, strict=True):
        views = torch.cat([image, others])
        with torch.no_grad():
            features = data.encoder.image_features(views)
            features = features / features.norm(dim=-1, keepdim=True)
            scale = data.stream.logit_scale
            u = 1 - (scale * features[:1] @ plain.text().T).softmax(dim=1).max(dim=1).values
        context = initial.clone().requires_grad_()
        uncertainty = u.double().cpu().numpy()
        is_noise = uncertainty >= asked(uncertainty)
        if adapts_on(plain, np.array([item]), is_noise)[0]:
            optimizer = torch.optim.AdamW([context], options.learning_rate)
            logits = scale * features @ plain.text(context).T
            kept = entropies(logits).argsort()[: max(1, int(len(views) * options.keep))]
            mean = logits[kept].softmax(dim=1).mean(dim=0, keepdim=True)
            minimise(optimizer, entropies(mean.log()).mean())
        with torch.no_grad():
            parts.append(plain.decide(plain.logits(image, context)))
    data.encoder.model.requires_grad_(True)
    return Decisions.joined(parts)


PLAIN = {"tent": tent, "sotta": sotta_by_items, "tpt": tpt_by_items}
