"""TPT, "Test-Time Prompt Tuning for Zero-Shot Generalization", arXiv 2209.07511.

Each sample that passes the filter gets augmented views. One step on the entropy of the mean
probability of the most confident views tunes the embeddings of the words before the class name. The
sample is classified by the tuned prompt, and the prompt is reset.

Time is saved in several ways. The filter uses the frozen model with the initial prompt, which is in
the cache, so a sample that does not pass costs nothing. View 0, the image itself, is in the cache
too. The other views are encoded once, without gradients. Gradients flow through prompts that are
cut to the longest. If views are drawn for each image, the prompt is tuned on it once, and the
answer serves every stream (cache/answers.py).
"""

from collections.abc import Generator, Sequence

import numpy as np
import torch

from zsntta_cli.cache.answers import Answers
from zsntta_cli.encoders.clip import Encoder
from zsntta_cli.errors import SettingsError
from zsntta_cli.methods.base import Decisions
from zsntta_cli.methods.live import base as live
from zsntta_cli.methods.live.settings import TPT
from zsntta_cli.methods.live.tuned import TunedStream
from zsntta_cli.methods.live.views import load_views
from zsntta_cli.methods.method import Live
from zsntta_cli.settings.prompts import class_prompts

_LARGE_ON_CPU = 16  # views in a pass: 1.3 times as fast as 63 for a ViT-B/16, as layers stay cached


def run(method: Live) -> Generator[Decisions]:
    """Decide on every item; yield the items up to each one on which the prompt is tuned."""
    data, options = method.data, method.options
    rule, clean = method.threshold.settings, data.truly_clean
    stream = TunedStream(data.stream, options, rule, data.answers, clean, data.match_bias)
    start = 0
    with live.adapting(data.encoder, []):  # everything is frozen, so there are no gradients
        tuning, items = PromptTuning(data, options), stream.unanswered
        views_of = load_views(data, items, options.views - 1, options.augmix, options.views_by)
        for item, views in views_of:
            stream.answers.add(item, answer_of(tuning(item, views)))
            yield stream.decide(slice(start, item + 1))
            start = item + 1
    yield stream.decide(slice(start, len(data)))


def answer_of(logits: torch.Tensor) -> Answers:
    """The answer (5,) by the logits (1, C) of a tuned prompt."""
    class_index, u = live.zero_shot_scores(logits)
    best_logit, best_class = logits.max(dim=-1)
    values = class_index[0], u[0], best_class.item(), best_logit.item(), live.entropy(logits).item()
    return np.array(values, np.float64)


class PromptTuning:
    """Classify a sample by a prompt that is tuned on its views and then reset."""

    def __init__(self, data: live.LiveData, options: TPT.Settings) -> None:
        self._data, self._options = data, options
        self._tokens, self._context = prompt_context(data.encoder, data.prompt, data.class_names)
        self._initial_text = data.text_features()
        is_large = data.encoder.device.type == "cpu" and data.encoder.image_size >= 224
        self._at_once = _LARGE_ON_CPU if is_large else options.views

    def __call__(self, item: int, views: torch.Tensor) -> torch.Tensor:
        """The logits (1, C) of an item, given its augmented views (V - 1, 3, H, W)."""
        data = self._data
        cached = data.stream.features(slice(item, item + 1))
        image_feature = torch.from_numpy(cached).to(data.encoder.device)
        with torch.no_grad():
            parts = torch.split(views, self._at_once) if len(views) else ()
            encoded = [data.encoder.image_features(part) for part in parts]
        features = torch.cat([image_feature, *encoded])
        # The views of lowest entropy by the initial prompt.
        entropies = live.entropy(data.logits(features, self._initial_text))
        confident = entropies.argsort()[: max(1, int(len(features) * self._options.keep))]
        return data.logits(image_feature, self._tuned_text(features[confident]))

    def _tuned_text(self, features: torch.Tensor) -> torch.Tensor:
        """The text features (C, D) by a context that is tuned on these views' features."""
        encoder, options = self._data.encoder, self._options
        context = self._context.clone().requires_grad_()
        optimizer = torch.optim.AdamW([context], lr=options.learning_rate)
        for _ in range(options.steps):
            text = encoder.text.features(self._tokens, context)
            live.step(optimizer, live.mean_entropy(self._data.logits(features, text)))
        with torch.no_grad():
            return encoder.text.features(self._tokens, context)


def prompt_context(
    encoder: Encoder, template: str, class_names: Sequence[str]
) -> tuple[torch.Tensor, torch.Tensor]:
    """The tokens (C, L) of all prompts, and the embeddings (n, W) of the words before the name.

    Raises:
        SettingsError: there are no such words.
        EncoderError: prompts of this text tower cannot be tuned.
    """
    encoder.text.check_tunable()
    tokens = encoder.text.tokens(class_prompts(template, class_names))
    prefix = encoder.text.tokens([template.partition("{")[0].strip()])
    words = prefix[:, 1 : int(prefix.argmax(dim=1))]
    context = tokens[:1, 1 : 1 + words.shape[1]]
    if not words.numel() or not (tokens[:, 1 : 1 + words.shape[1]] == words).all():
        raise SettingsError(
            f"tpt tunes the words before the class name, and the prompt '{template}' has none: "
            "choose another with --prompt"
        )
    return tokens, encoder.text.word_embeddings(context)[0]
