"""Writes web data sets in the layout of CLIP_benchmark's builder; none of it is a test."""

import io

import numpy as np
from made import pack
from PIL import Image


def encoded(pixels, form="webp"):
    """A picture file; webp without loss, as the builder takes it."""
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, form, **({"lossless": True} if form == "webp" else {}))
    return file.getvalue()


def pictures(count, seed=0):
    """Pixels of so many small pictures, no two alike."""
    generator = np.random.default_rng(seed)
    return [generator.integers(0, 256, (12 + i, 14, 3), np.uint8) for i in range(count)]


def write_split(folder, samples, a_shard=4):
    """Write samples, each of texts and pictures by their endings, `a_shard` of them to a shard.

    Keys are counted over all shards.
    """
    folder.mkdir(parents=True)
    starts = range(0, len(samples), a_shard)
    for shard, start in enumerate(starts):
        files = {
            f"s{i:07d}.{ending}": content
            for i, sample in enumerate(samples[start : start + a_shard], start)
            for ending, content in sample.items()
        }
        pack(folder / f"{shard}.tar", files)
    (folder / "nshards.txt").write_text(f"{len(starts)}\n")


def write_web_set(root, labels, names, templates=(), split="test", form="webp", a_shard=4):
    """Write a labelled set whole: names and templates above the split, a line each."""
    samples = [
        {form: encoded(pixels, form), "cls": str(label).encode()}
        for pixels, label in zip(pictures(len(labels)), labels, strict=True)
    ]
    write_split(root / split, samples, a_shard)
    (root / "classnames.txt").write_text("\n".join(names), encoding="utf-8")
    if templates:
        (root / "zeroshot_classification_templates.txt").write_text("\n".join(templates))
