"""ECALP, "Efficient and Context-Aware Label Propagation", ICLR 2025: classes by a graph of images.

The nodes are the class texts and the last N images. A new image is connected to its nearest texts
and images; the weight of an edge is a power of their cosine. Labels move three steps along the
edges, W̃ = D^-½ (W + Wᵀ) D^-½. Texts keep their labels, an earlier image starts with a fifth of its
largest label, and the new one has none. Products weight each dim by its variance over texts.

The paper's graph grows with the stream; ours keeps only the last 10,000 images. Since α is 1 and an
image starts with one label, a new image's labels are sums over paths of three edges, which the
kernel follows. An item that is not offered is classified and then removed from the graph.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.kernels.compiled import compiled
from zsntta_cli.methods.base import StreamData
from zsntta_cli.methods.classifiers.blocks import Frozen, blocks
from zsntta_cli.methods.scores import unit
from zsntta_cli.methods.settings import ECALPSettings

_KEPT_LABEL = 0.2  # share of its largest label that an earlier image keeps
_NONE = -1


def classes(
    data: StreamData, options: ECALPSettings, offered: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """Classify T items by propagated labels; those that are `offered` (T,) stay in the graph."""
    o, text = options, data.pool.text_features.astype(np.float64)
    weights = text.std(axis=0) if len(text) > 1 else np.ones(text.shape[1])
    text = unit(text * weights)
    rows, graph = np.zeros((o.ecalp_images, text.shape[1])), _empty_graph(o, len(text))
    place = np.zeros(1, np.int64)  # the place of the next image
    class_index = np.empty(len(data), np.int32)
    for part in blocks(len(data)):
        frozen = Frozen.of(data, part)
        features = unit(frozen.features * weights)
        owner = np.full(o.ecalp_images, _NONE, np.int64)  # the block's item in each place
        class_index[part] = frozen.logits.argmax(axis=1)
        _propagate(
            class_index[part], features @ rows.T, features @ features.T, features @ text.T,
            offered[part], owner, place, float(o.ecalp_sharpness), *graph,
        )  # fmt: skip
        new = np.flatnonzero(owner != _NONE)
        rows[new] = features[owner[new]]
    return class_index


def _empty_graph(o: ECALPSettings, texts: int) -> tuple[NDArray[Any], ...]:
    """Arrays for the edges of N images, lists of the edges to each image, degrees and labels.

    The last ones are work space: for nearest images, scores, and the mass and ends of paths.
    """
    images, edges = o.ecalp_images, o.ecalp_neighbours
    to_image, to_text = (np.full((images, n), _NONE) for n in (edges, min(o.ecalp_texts, texts)))
    weights = np.zeros(to_image.shape), np.zeros(to_text.shape)
    following, previous = (np.full(images * edges, _NONE) for _ in "fp")
    first, degrees = np.full(images, _NONE), (np.zeros(images), np.zeros(texts))
    labels = np.full(images, _NONE), np.zeros(images)
    room = np.zeros(edges), np.zeros(texts), np.zeros((2, images)), np.zeros((2, images), np.int64)
    return to_image, to_text, *weights, following, previous, first, *degrees, *labels, *room


@compiled
def _propagate(  # type: ignore[no-untyped-def]
    best, cosines, among, text_cosines, offered, owner, next_place, sharpness, to_image, to_text,
    image_weight, text_weight, following, previous, first, degree, text_degree, label, value,
    height, scores, mass, reached,
):  # fmt: skip
    """Write the classes (B,) of a block's items, and keep the offered items in the graph.

    `cosines` (B, N) are those with the images in the N places at the block's start, `among` (B, B)
    those between its items. A place without a label is empty.
    """
    for i in range(len(best)):
        place = next_place[0]
        if label[place] != _NONE:
            _leave(place, to_image, to_text, image_weight, text_weight, following, previous, first,
                   degree, text_degree, label)  # fmt: skip
        _join_images(place, i, cosines, among, owner, sharpness, to_image, image_weight, following,
                     previous, first, degree, label, height)  # fmt: skip
        _join_texts(place, text_cosines[i], sharpness, to_text, text_weight, degree, text_degree)
        label[place], value[place] = 0, 0.0
        _spread(place, scores, to_image, to_text, image_weight, text_weight, following, first,
                degree, text_degree, label, value, mass, reached)  # fmt: skip
        top = 0
        for c in range(len(scores)):
            if scores[c] > scores[top]:
                top = c
        if scores[top] > 0:
            best[i] = top
        if offered[i]:
            label[place], value[place] = best[i], _KEPT_LABEL * scores[top]
            owner[place] = i
            next_place[0] = (place + 1) % len(label)
        else:
            _leave(place, to_image, to_text, image_weight, text_weight, following, previous, first,
                   degree, text_degree, label)  # fmt: skip


def _join_images(  # type: ignore[no-untyped-def]
    place, i, cosines, among, owner, sharpness, to_image, image_weight, following, previous, first,
    degree, label, height,
) -> None:  # fmt: skip
    """Connect an item to the nearest images; of equally near ones the earlier place comes first."""
    edges, nearest, count = to_image.shape[1], to_image[place], 0
    for n in range(len(label)):
        if label[n] == _NONE:
            continue
        cosine = cosines[i, n] if owner[n] == _NONE else among[i, owner[n]]
        if count == edges and cosine <= height[edges - 1]:
            continue
        rank = min(count, edges - 1)
        count = min(count + 1, edges)
        while rank > 0 and height[rank - 1] < cosine:
            height[rank], nearest[rank] = height[rank - 1], nearest[rank - 1]
            rank -= 1
        height[rank], nearest[rank] = cosine, n
    degree[place], first[place] = 0.0, _NONE
    for e in range(count, edges):
        nearest[e] = _NONE
    for e in range(count):
        weight, target, edge = max(height[e], 0.0) ** sharpness, nearest[e], place * edges + e
        image_weight[place, e] = weight
        previous[edge], following[edge] = _NONE, first[target]
        if first[target] != _NONE:
            previous[first[target]] = edge
        first[target] = edge
        degree[target] += weight
        degree[place] += weight


def _join_texts(  # type: ignore[no-untyped-def]
    place, cosines, sharpness, to_text, text_weight, degree, text_degree
) -> None:
    """Connect an item to the nearest texts."""
    for e in range(to_text.shape[1]):
        top = _NONE
        for c in range(len(cosines)):
            is_taken = False
            for before in range(e):
                is_taken |= to_text[place, before] == c
            if not is_taken and (top == _NONE or cosines[c] > cosines[top]):
                top = c
        weight = max(cosines[top], 0.0) ** sharpness
        to_text[place, e], text_weight[place, e] = top, weight
        text_degree[top] += weight
        degree[place] += weight


def _leave(  # type: ignore[no-untyped-def]
    place, to_image, to_text, image_weight, text_weight, following, previous, first, degree,
    text_degree, label,
) -> None:  # fmt: skip
    """Remove an image from the graph, with all edges from it and to it."""
    edges = to_image.shape[1]
    for e in range(edges):
        target, edge = to_image[place, e], place * edges + e
        if target == _NONE:
            continue
        degree[target] -= image_weight[place, e]
        if previous[edge] == _NONE:
            first[target] = following[edge]
        else:
            following[previous[edge]] = following[edge]
        if following[edge] != _NONE:
            previous[following[edge]] = previous[edge]
    for e in range(to_text.shape[1]):
        text_degree[to_text[place, e]] -= text_weight[place, e]
    edge = first[place]
    while edge != _NONE:
        source = edge // edges
        degree[source] -= image_weight[source, edge % edges]
        to_image[source, edge % edges] = _NONE
        edge = following[edge]
    label[place] = _NONE


def _spread(  # type: ignore[no-untyped-def]
    place, scores, to_image, to_text, image_weight, text_weight, following, first, degree,
    text_degree, label, value, mass, reached,
) -> None:  # fmt: skip
    """Write the labels (C,) of the image in a place after three steps: sums over paths.

    A path ends at a text, or after three edges at an image; its mass is the product of its edges.
    """
    edges, count, now = to_image.shape[1], 1, 0
    scores[:] = 0
    reached[0, 0], mass[0, place] = place, 1.0
    for _step in range(3):
        following_count = 0
        for r in range(count):
            node = reached[now, r]
            outgoing, mass[now, node] = mass[now, node], 0.0
            if degree[node] <= 0:
                continue
            outgoing /= np.sqrt(degree[node])
            for e in range(to_text.shape[1]):
                text = to_text[node, e]
                if text_weight[node, e] > 0:
                    scores[text] += outgoing * text_weight[node, e] / np.sqrt(text_degree[text])
            edge, e = first[node], 0
            while e < edges or edge != _NONE:
                if e < edges:
                    neighbour, weight = to_image[node, e], image_weight[node, e]
                    e += 1
                else:
                    neighbour, weight = edge // edges, image_weight[edge // edges, edge % edges]
                    edge = following[edge]
                if neighbour == _NONE or weight <= 0:
                    continue
                if mass[1 - now, neighbour] == 0:
                    reached[1 - now, following_count] = neighbour
                    following_count += 1
                mass[1 - now, neighbour] += outgoing * weight / np.sqrt(degree[neighbour])
        now, count = 1 - now, following_count
    for r in range(count):
        node = reached[now, r]
        scores[label[node]] += mass[now, node] * value[node]
        mass[now, node] = 0.0
