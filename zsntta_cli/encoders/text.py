"""The text side of encoders: prompts become text features, also with a tuned context."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.datasets.words import built_in_words, limited_words
from zsntta_cli.errors import EncoderError, counted
from zsntta_cli.settings import AMP, FP32
from zsntta_cli.settings.prompts import class_prompts, templates_of

if TYPE_CHECKING:
    import torch

Encode = Callable[[Sequence[str]], NDArray[np.float32]]

BATCH = 256  # prompts at a time
_SHOWN = 30  # letters of a long prompt's beginning and end in a line
_GROUP, _GROUPS = 32, 8  # the fewest prompts in a group of similar length, and the most groups


def autocast(device: "torch.device", precision: str) -> AbstractContextManager[Any]:
    """The context in which an encoder's operations run: with amp, autocast to float16.

    Autocast computes matrix products and convolutions in float16, from weights that stay float32.
    Leave it once features or logits are computed, and convert these to float32: norms and softmax,
    which come next, are computed in float32 by CUDA's autocast, but not by the CPU's.
    """
    import torch

    return torch.autocast(device.type, torch.float16) if precision == AMP else nullcontext()


class TextTower:
    """The text side of a CLIP model, which turns prompts into features."""

    def __init__(
        self,
        model: Any,
        tokenize: Callable[..., "torch.Tensor"],
        device: "torch.device",
        precision: str = FP32,
    ) -> None:
        """Take a model of open_clip, and what turns prompts into tokens (C, L), of length L."""
        self._model, self._tokenize, self._device = model, tokenize, device
        self._precision = precision
        self.tell: Callable[[str], object] = warnings.warn  # gets the notes on truncated prompts
        self._told = set[str]()

    def encode(self, prompts: Sequence[str]) -> NDArray[np.float32]:
        """Encode prompts to unit-norm text features (C, D).

        On the CPU one thread computes: with several, features differ by 2e-8, and text features
        are stored unrounded.

        Raises:
            EncoderError: two of them are equal after they are truncated.
        """
        import torch

        self.check_length(prompts)
        parts, threads = [], torch.get_num_threads()
        if self._device.type == "cpu":
            torch.set_num_threads(1)
        try:
            with torch.inference_mode():
                for start in range(0, len(prompts), BATCH):
                    features = self.features(self.tokens(prompts[start : start + BATCH]))
                    parts.append(features.cpu().numpy())
        finally:
            torch.set_num_threads(threads)
        return np.concatenate(parts)

    def check_length(self, prompts: Sequence[str]) -> None:
        """Tell how many prompts are longer than the text tower reads, and which is the first.

        A prompt is truncated if its tokens differ from the beginning of its tokens in twice the
        length. A token has at least one byte, so short prompts are not tokenized.

        Raises:
            EncoderError: two of them differ only after the cut, so their features would be equal.
        """
        length = self._tokenize([""]).shape[1]
        long = [p for p in dict.fromkeys(prompts) if len(p.encode(errors="replace")) > length - 4]
        if not long:
            return
        read = self._tokenize(long)
        is_cut = (read != self._tokenize(long, 2 * length)[:, :length]).any(dim=1)
        cut: dict[tuple[int, ...], str] = {}
        for row in is_cut.nonzero().flatten().tolist():
            other = cut.setdefault(tuple(read[row].tolist()), long[row])
            if other != long[row]:
                both = f"'{_ends(other)}' and '{_ends(long[row])}'"
                raise EncoderError(
                    f"the encoder reads only {length} tokens of a text, and {both} differ only "
                    f"after them, so their features would be equal: shorten the prompt template "
                    f"or the names."
                )
        if cut:
            text = (
                f"note: the encoder reads {length} tokens of a text and truncates {len(cut):,} of "
                f"{counted(len(prompts), 'prompt')}, such as '{_ends(next(iter(cut.values())))}'"
            )
            if text not in self._told:
                self._told.add(text)
                self.tell(text)

    def tokens(self, prompts: Sequence[str]) -> "torch.Tensor":
        """Turn prompts into tokens (C, L), padded to the text tower's length."""
        return self._tokenize(list(prompts)).to(self._device)

    def features(
        self, tokens: "torch.Tensor", context: "torch.Tensor | None" = None
    ) -> "torch.Tensor":
        """Encode tokens (C, L) to unit-norm text features (C, D) in float32.

        `context` (n, W) replaces the embeddings of tokens 1 … n of every prompt, and gradients flow
        through it. Prompts of similar length are encoded together, cut to the longest of them.
        """
        import open_clip
        import torch

        model = self._model
        # A tower whose input can be cut reads its feature at the largest token, the end of text.
        is_plain = type(model) is open_clip.CLIP and model.text_pool_type == "argmax"
        cuts = is_plain and model.attn_mask is not None
        lengths = tokens.argmax(dim=1) if cuts else torch.zeros(len(tokens))
        order = lengths.argsort(stable=True)
        groups = min(max(len(tokens) // _GROUP, 1), _GROUPS)
        encode = self._cut if cuts else model.encode_text
        replaced = nullcontext() if context is None else self._replacing(context)
        with replaced, autocast(self._device, self._precision):
            features = torch.cat([encode(tokens[rows]) for rows in order.tensor_split(groups)])
        return torch.nn.functional.normalize(features.float(), dim=-1)[order.argsort()]

    def _cut(self, tokens: "torch.Tensor") -> "torch.Tensor":
        """Encode tokens (C, L), cut to the longest prompt, to features: the rest is padding.

        Attention is causal and the feature is read at the end-of-text token, so later tokens cannot
        change it; 77 tokens for prompts of ten would take seven times as long. If attention is not
        causal (SigLIP, MobileCLIP) or the feature is the last token's, padding does change it.
        """
        from torch.func import functional_call

        model = self._model
        length = int(tokens.argmax(dim=1).max()) + 1
        cut = {
            "positional_embedding": model.positional_embedding[:length],
            "attn_mask": model.attn_mask[:length, :length],
        }
        _, features, *_ = functional_call(model, cut, (), {"text": tokens[:, :length]})
        return features

    def check_tunable(self) -> None:
        """Raise EncoderError unless the words after a start token can be tuned."""
        import open_clip

        has_start = isinstance(self._tokenize, open_clip.SimpleTokenizer)
        if not has_start or self._word_table is None:
            reason = "which this text tower does not have"
            raise EncoderError(f"tpt tunes the words after CLIP's start token, {reason}.")

    def word_embeddings(self, tokens: "torch.Tensor") -> "torch.Tensor":
        """Embed tokens (C, L) as (C, L, W) in float32; the tower must be tunable."""
        embedded: torch.Tensor = self._word_table(tokens)
        return embedded.detach().float()

    @property
    def _word_table(self) -> Any:
        """What embeds words, of the model or its separate text tower; None if nothing is known."""
        return getattr(getattr(self._model, "text", self._model), "token_embedding", None)

    @contextmanager
    def _replacing(self, context: "torch.Tensor") -> Iterator[None]:
        """Replace the embeddings of the tokens after the first one by `context`, within."""
        import torch

        def replace(_module: Any, _tokens: Any, words: "torch.Tensor") -> "torch.Tensor":
            new = context.to(words.dtype).expand(len(words), -1, -1)
            return torch.cat([words[:, :1], new, words[:, 1 + len(context) :]], dim=1)

        handle = self._word_table.register_forward_hook(replace)
        try:
            yield
        finally:
            handle.remove()


def _ends(prompt: str) -> str:
    """A long prompt's beginning and end."""
    return prompt if len(prompt) <= 2 * _SHOWN else f"{prompt[:_SHOWN]} … {prompt[-_SHOWN:]}"


def prompt_features(encode: Encode, prompt: str, words: Sequence[str]) -> NDArray[np.float32]:
    """Encode words under a prompt to unit-norm text features (W, D), averaged over its templates.

    `encode` gives unit-norm features (P, D) of prompts. As in CLIP (Radford et al., 2021, Sec.
    3.1.4), each template's features have norm 1 before they are averaged, and so has their mean.
    """
    first, *rest = templates_of(prompt)
    total = encode(class_prompts(first, words))
    for template in rest:
        total = total + encode(class_prompts(template, words))
    if not rest:
        return total
    mean = total / np.float32(len(rest) + 1)
    return (mean / np.linalg.norm(mean, axis=1, keepdims=True)).astype(np.float32)


def generic_text(encode: Encode) -> tuple[NDArray[np.float32], str]:
    """An encoder's generic text (D,), to compare classes with, and its prompt and words.

    It is the mean of the unit features of 256 nouns of WordNet, chosen at random but always the
    same: any 50 words in any prompt are as good as a thousand, but with 20 the mean depends on
    them. It is not normalised, or a third of the clean images would seem to fit no class.
    """
    prompt, words = "a photo of a {}.", limited_words(built_in_words("wordnet-nouns"), 256)
    features = prompt_features(encode, prompt, words)
    return features.mean(0, dtype=np.float64).astype(np.float32), f"{prompt} {', '.join(words)}"
