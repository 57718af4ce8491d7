"""ROSITA, UniEnt and OSTTA as their equations say: lists, loops, a second tower as it came."""

import copy

import numpy as np
import torch
from sklearn.cluster import KMeans
from torch.nn.functional import cross_entropy

from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods.live import views
from zsntta_cli.methods.live.adaptation import adapting, batch_statistics, norm_layers
from zsntta_cli.methods.live.base import LiveData
from zsntta_cli.methods.threshold import OnlineThreshold
from zsntta_cli.simulation.runs import RunSettings


def within(scores: np.ndarray, cut: float) -> float:
    """The variance within the two groups of a cut, weighted by size; of one group infinity."""
    groups = scores[scores >= cut], scores[scores < cut]
    if not all(map(len, groups)):
        return np.inf
    return sum(len(group) * float(group.var()) for group in groups) / len(scores)


def best_split(scores: np.ndarray) -> float:
    """The first of 0, 0.01 … 0.99 of least variance within the groups; 0 where all are in one."""
    best = 0.0
    for cut in np.arange(100) / 100:
        if within(scores, cut) < within(scores, best) - 1e-12:
            best = float(cut)
    return best


def rosita(data: LiveData, settings: RunSettings) -> Decisions:
    options, text = settings.options, torch.from_numpy(data.stream.pool.text_features)
    k, scores, desired, undesired, parts = options.rosita_neighbours, [], [], [], []
    singles = [np.array([i]) for i in range(len(data))]
    crops = views.load_views(data, np.arange(len(data)), 1, False, "stream")
    norms = norm_layers(data.encoder.model.visual)
    main = [layer for name, layer in norms.items() if "downsample" not in name]
    with adapting(data.encoder, main) as changed:
        optimizer = torch.optim.SGD(changed, options.learning_rate)
        for (items, image), (_, crop) in zip(data.batches(singles), crops, strict=True):
            features = data.encoder.image_features(torch.cat([image, crop]))
            features = features / features.norm(dim=1, keepdim=True)
            cosines = features @ text.T
            q, label = float(cosines[0].detach().max()), int(cosines[0].argmax())
            scores = [*scores, q][-settings.threshold.queue :]
            fixed = settings.threshold.fixed
            cut = best_split(np.array(scores)) if fixed is None else fixed
            high = [score for score in scores if score >= cut]
            low = [score for score in scores if score < cut]
            loss = torch.zeros(())
            if high and low and not data.stream.injected[items[0]]:
                if q >= cut and q > np.mean(high):
                    desired = [*desired, (features[0].detach(), label)][-k * len(text) :]
                    loss = cross_entropy(cosines, torch.tensor([label, label]), reduction="sum")
                    loss = loss + neighbours(features[0], desired, undesired, options, label)
                elif q < cut and q < np.mean(low):
                    undesired = [*undesired, (features[0].detach(), label)]
                    undesired = undesired[-options.rosita_undesired :]
                    loss = neighbours(features[0], undesired, desired, options, None)
            if loss.requires_grad:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            with torch.no_grad():
                label = int((data.encoder.image_features(image) @ text.T).argmax())
            parts.append((label, q < cut, q, 1 - cut))
    columns = [np.array(column) for column in zip(*parts, strict=True)]
    return Decisions(columns[0].astype(np.int32), *columns[1:])


def neighbours(feature, own, other, options, label):  # type: ignore[no-untyped-def]
    k = options.rosita_neighbours
    if len(own) <= k or len(other) <= k:
        return torch.zeros(())
    near = sorted(own, key=lambda kept: -float(feature.detach() @ kept[0]))[:k]
    far = sorted(other, key=lambda kept: -float(feature.detach() @ kept[0]))[:k]
    away = torch.stack([(feature @ kept).exp() for kept, _ in far]).sum().log()
    total = torch.zeros(())
    for kept, kept_label in near:
        if label is None or kept_label == label:
            total = total + away - feature @ kept
    return options.rosita_weight * total / k


def adapted_in_batches(data: LiveData, settings: RunSettings, loss_of) -> Decisions:  # type: ignore[no-untyped-def]
    """Tent's loop on a copy of the tower that came; `loss_of` the logits, the first ones, items."""
    options, tower = settings.options, data.encoder.model.visual
    original = copy.deepcopy(tower)
    threshold = OnlineThreshold(settings.threshold, options.batch_size)
    text = torch.from_numpy(data.stream.pool.text_features)

    def logits_by(a_tower: torch.nn.Module, images: torch.Tensor) -> torch.Tensor:
        features = a_tower(images)
        features = features / features.norm(dim=1, keepdim=True)
        return data.stream.pool.logit_scale * features @ text.T

    parts, every = [], np.arange(len(data))
    starts = range(0, len(data), options.batch_size)
    with (
        adapting(data.encoder, list(norm_layers(tower).values())) as changed,
        batch_statistics(tower, 0.0),
        batch_statistics(original, 0.0),
    ):
        optimizer = torch.optim.Adam(changed, options.learning_rate)
        for items, images in data.batches([every[i : i + options.batch_size] for i in starts]):
            logits = logits_by(tower, images)
            probability, label = logits.detach().softmax(dim=1).max(dim=1)
            u = 1 - probability.double().numpy()
            cut = threshold(u)
            parts.append(Decisions(label.int().numpy(), u > cut, 1 - u, cut))
            with torch.no_grad():
                before = logits_by(original, images)
            counted = [row for row, item in enumerate(items) if not data.stream.injected[item]]
            if counted:
                loss = loss_of(logits[counted], before[counted], items[counted])
                if loss is not None:
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
    return Decisions.joined(parts)


def shannon(probability: torch.Tensor) -> torch.Tensor:
    return -(probability * probability.log()).sum()


def ostta(data: LiveData, settings: RunSettings) -> Decisions:
    def loss(logits, before, _items):  # type: ignore[no-untyped-def]
        answers, first = logits.softmax(dim=1), before.softmax(dim=1)
        chosen = [
            shannon(now)
            for now, was in zip(answers, first, strict=True)
            if now[was.argmax()] >= was.max()
        ]
        mean = torch.stack(chosen).mean() if chosen else 0
        return mean - settings.options.ostta_marginal * shannon(answers.mean(dim=0))

    return adapted_in_batches(data, settings, loss)


def unient(data: LiveData, settings: RunSettings) -> Decisions:
    options = settings.options

    def loss(logits, before, _items):  # type: ignore[no-untyped-def]
        some = before.max(dim=1).values.double().numpy()
        if some.max() == some.min():
            return None
        is_id = of_the_higher((some - some.min()) / (some.max() - some.min()), data.stream.seed)
        total = -options.unient_marginal * shannon(logits.softmax(dim=1).mean(dim=0))
        each = [shannon(answer) for answer in logits.softmax(dim=1)]
        if options.unient_soft:
            for entropy, p in zip(each, is_id, strict=True):
                total = total + (p - options.unient_ood * (1 - p)) * entropy / len(each)
            return total
        inside = [entropy for entropy, p in zip(each, is_id, strict=True) if p >= 0.5]
        outside = [entropy for entropy, p in zip(each, is_id, strict=True) if p < 0.5]
        if inside:
            total = total + torch.stack(inside).mean()
        if outside:
            total = total - options.unient_ood * torch.stack(outside).mean()
        return total

    return adapted_in_batches(data, settings, loss)


def of_the_higher(scores: np.ndarray, seed: int) -> list[float]:
    """Expectation and maximisation in plain Python, from the two clusters of k-means."""
    start = KMeans(2, n_init=1, random_state=np.random.RandomState(seed))
    cluster = start.fit(np.array(scores)[:, None]).labels_
    upper = int(scores[cluster == 1].mean() > scores[cluster == 0].mean())
    is_high = [float(own == upper) for own in cluster]
    last, is_last = -np.inf, False
    for _ in range(100):
        groups = []
        for weights in ([1 - p for p in is_high], is_high):
            total = sum(weights) + 10 * np.finfo(float).eps
            mean = sum(w * s for w, s in zip(weights, scores, strict=True)) / total
            variance = (
                1e-6
                + sum(w * (s - mean) ** 2 for w, s in zip(weights, scores, strict=True)) / total
            )
            groups.append((total / len(scores), mean, variance))
        densities = [
            [share * np.exp(-((s - mean) ** 2) / 2 / var) / np.sqrt(2 * np.pi * var)
             for share, mean, var in groups]
            for s in scores
        ]  # fmt: skip
        is_high = [high / (low + high) for low, high in densities]
        bound = float(np.mean([np.log(low + high) for low, high in densities]))
        if is_last:
            break
        last, is_last = bound, abs(bound - last) < 1e-3
    return is_high
