"""Prompts to text features: as fast as their lengths allow, and with a context to be tuned."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.errors import EncoderError

if TYPE_CHECKING:
    import open_clip
    import torch

BATCH = 256  # prompts at a time
_GROUP, _GROUPS = 32, 8  # the least prompts of about one length, and the most groups


class TextTower:
    """The text side of a CLIP model."""

    def __init__(
        self,
        model: "open_clip.CLIP",
        tokenize: Callable[[list[str]], "torch.Tensor"],
        device: "torch.device",
    ) -> None:
        self._model, self._tokenize, self._device = model, tokenize, device

    def encode(self, prompts: Sequence[str]) -> NDArray[np.float32]:
        """Unit-norm text features (C, D) of prompts."""
        import torch

        parts = []
        with torch.inference_mode():
            for start in range(0, len(prompts), BATCH):
                features = self.features(self.tokens(prompts[start : start + BATCH]))
                parts.append(features.cpu().numpy())
        return np.concatenate(parts)

    def tokens(self, prompts: Sequence[str]) -> "torch.Tensor":
        """Tokens (C, L) of prompts, padded to the text tower's length."""
        return self._tokenize(list(prompts)).to(self._device)

    def features(
        self, tokens: "torch.Tensor", context: "torch.Tensor | None" = None
    ) -> "torch.Tensor":
        """Unit-norm text features (C, D) float32 of tokens (C, L).

        `context` (n, W) stands in for the embeddings of tokens 1 … n of every prompt. Gradients
        flow through it. Prompts of about the same length go together, cut to the longest of them.
        """
        import torch

        lengths = tokens.argmax(dim=1)  # the end-of-text token is the largest
        order = lengths.argsort(stable=True)
        groups = min(max(len(tokens) // _GROUP, 1), _GROUPS)
        with self._replacing(context):
            features = torch.cat([self._cut(tokens[rows]) for rows in order.tensor_split(groups)])
        return torch.nn.functional.normalize(features.float(), dim=-1)[order.argsort()]

    def _cut(self, tokens: "torch.Tensor") -> "torch.Tensor":
        """Text features of tokens (C, L), cut to the longest prompt: the rest is padding.

        Attention is causal and the feature is read at the end-of-text token, so what comes after it
        cannot matter; 77 tokens for prompts of ten would take seven times as long.
        """
        import open_clip
        from torch.func import functional_call

        model = self._model
        if type(model) is not open_clip.CLIP or model.text_pool_type != "argmax":
            return model.encode_text(tokens)
        length = int(tokens.argmax(dim=1).max()) + 1
        cut = {
            "positional_embedding": model.positional_embedding[:length],
            "attn_mask": model.attn_mask[:length, :length],
        }
        _, features, *_ = functional_call(model, cut, (), {"text": tokens[:, :length]})
        return features

    def word_embeddings(self, tokens: "torch.Tensor") -> "torch.Tensor":
        """Embeddings (C, L, W) float32 of tokens (C, L).

        Raises:
            EncoderError: the text tower is none of open_clip's own.
        """
        return self._word_table(tokens).detach().float()

    @property
    def _word_table(self) -> "torch.nn.Embedding":
        table = getattr(getattr(self._model, "text", self._model), "token_embedding", None)
        if table is None:
            raise EncoderError("this text tower embeds no words: tpt cannot tune its prompt.")
        return table

    @contextmanager
    def _replacing(self, context: "torch.Tensor | None") -> Iterator[None]:
        """Put `context` where the embeddings of the tokens after the first one would be."""
        import torch

        if context is None:
            yield
            return
        rows = context

        def replace(_module: Any, _tokens: Any, words: "torch.Tensor") -> "torch.Tensor":
            new = rows.to(words.dtype).expand(len(words), -1, -1)
            return torch.cat([words[:, :1], new, words[:, 1 + len(rows) :]], dim=1)

        handle = self._word_table.register_forward_hook(replace)
        try:
            yield
        finally:
            handle.remove()
