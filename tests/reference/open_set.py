"""ROSITA item by item as its equations say: lists, loops, two views encoded together."""

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods.live import views
from zsntta_cli.methods.live.adaptation import adapting, norm_layers
from zsntta_cli.methods.live.base import LiveData
from zsntta_cli.simulation.runs import RunSettings


def best_split(scores: np.ndarray) -> float:
    """The first of 0, 0.01 … 0.99 of least variance within the groups weighted by size."""
    best, found = np.inf, 0.0
    for cut in np.arange(100) / 100:
        high, low = scores[scores >= cut], scores[scores < cut]
        if len(high) and len(low):
            within = (len(high) * high.var() + len(low) * low.var()) / len(scores)
            if within < best - 1e-12:
                best, found = within, cut
    return float(found)


def rosita(data: LiveData, settings: RunSettings) -> Decisions:
    options, text = settings.options, torch.from_numpy(data.stream.pool.text_features)
    k, scores, desired, undesired, parts = options.rosita_neighbours, [], [], [], []
    singles = [np.array([i]) for i in range(len(data))]
    crops = views.load_views(data, np.arange(len(data)), 1, False, "stream")
    with adapting(data.encoder, list(norm_layers(data.encoder.model.visual).values())) as changed:
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
