"""What was decided on images: a column each, and the rows of files."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.errors import SettingsError, short
from zsntta_cli.methods.base import Decisions, StreamData

NOISE: Final = "noise"
UNSURE: Final = "unsure"
CLEAN: Final = "clean"
ANSWERS: Final = (NOISE, UNSURE, CLEAN)  # in the order of suspicion
WARM_UP, ADAPTED, JUDGED = "warm-up", "adapted", "judged"  # stages
_DECIMALS = 12  # of an image's numbers: what is beyond comes from rounding

# How many to call noise in place of the method's own decision: a share below 1, a number, or either
# as it is typed ("5%", "50").
Flag = float | int | str | None
_TYPED_FLAG = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?(%?)", re.ASCII)


@dataclass(frozen=True)
class Verdicts:
    """What was decided on N images; docs/api.md explains the columns."""

    names: tuple[str, ...]  # (C,) the classes
    class_index: NDArray[np.int32]  # (N,) the class, if the image is clean
    answer: NDArray[np.str_]  # (N,) noise by its own evidence; unsure by the other images alone
    score: NDArray[np.float64]  # (N,) higher = more noise; only scores of one stage compare
    threshold: NDArray[np.float64]  # (N,) noise or unsure iff the score is above it
    stage: NDArray[np.str_]  # (N,) warm-up: ZS-CLIP decides in the method's stead; adapted
    # (N,) nats by which one of the classes is likelier than any other text, and the level below
    # which an image is noise; nan where they are not known.
    evidence: NDArray[np.float64]
    level: NDArray[np.float64]
    sure: NDArray[np.bool_]  # (N,) whether an image is noise, and not unsure, if it is flagged
    top_index: NDArray[np.int32]  # (N, K) the K = min(5, C) likeliest classes, best first
    top_score: NDArray[np.float64]  # (N, K) their softmax probabilities
    is_asked: bool = False  # whether a flag, and not the method, said how many are noise

    def __len__(self) -> int:
        return len(self.score)

    @property
    def noise(self) -> NDArray[np.bool_]:
        """Which images (N,) belong to none of the classes, by the answer."""
        return self.answer == NOISE

    @property
    def unsure(self) -> NDArray[np.bool_]:
        """Which images (N,) are above their threshold by the other images alone."""
        return self.answer == UNSURE

    @property
    def flagged(self) -> NDArray[np.bool_]:
        """Which images (N,) are noise or unsure."""
        return self.answer != CLEAN

    @property
    def margin(self) -> NDArray[np.float64]:
        """How far each score (N,) is above its threshold."""
        return self.score - self.threshold

    @property
    def rank(self) -> NDArray[np.int64]:
        """Rank (N,) of suspicion from 1, by the margin: what is flagged comes first.

        Where most images are noise by their own evidence, this ranks them: those that fit a class
        best come last. Where a flag says how many are noise, margins alone rank.
        """
        is_by_fit = 2 * (self.evidence < self.level).sum() > len(self) and not self.is_asked
        suspicion = -self.evidence if is_by_fit else self.margin
        ranks = np.empty(len(self), np.int64)
        ranks[np.argsort(-suspicion, kind="stable")] = np.arange(1, len(self) + 1)
        return ranks

    @classmethod
    def of(cls, data: StreamData, decisions: Decisions, names: tuple[str, ...]) -> "Verdicts":
        """The verdicts for decisions on a stream that the frozen model has scored.

        Raises:
            SettingsError: the method does not decide, or has no threshold.
        """
        adapted_threshold, threshold = decisions.detector_threshold, decisions.zero_shot_threshold
        threshold = adapted_threshold if threshold is None else threshold  # an own method's score
        if decisions.is_noise is None or threshold is None:
            raise SettingsError(
                "the method returns no is_noise or no threshold, but verdicts need both: return "
                "Decisions with detector_threshold=self.threshold(1 - id_score, learn)."
            )
        adapted = np.ones(len(data), bool)
        if adapted_threshold is not None:
            adapted = ~np.isnan(adapted_threshold)
            threshold = np.where(adapted, adapted_threshold, threshold)
        score = 1 - decisions.id_score
        threshold = 1 - (1 - threshold)  # rounded as the score is
        evidence, level = decisions.evidence, decisions.level
        if evidence is None or level is None:  # the method's answer stands
            evidence = level = np.full(len(data), np.nan)
            sure = np.ones(len(data), bool)
        else:
            sure = evidence < level
        flagged = decisions.is_noise | (score > threshold)  # a cautious method flags no doubt
        detail = data.zero_shot
        likely = np.exp((detail.top_logits - detail.top_logits[:, :1]).astype(np.float64))
        return cls(
            names, decisions.class_index, answers(flagged, sure), score, threshold,
            np.where(adapted, ADAPTED, WARM_UP), evidence, level, sure,
            detail.top_classes, likely * (1 - data.noise_score)[:, None],
        )  # fmt: skip

    def by_odds(self, odds: NDArray[np.float64], *, knows_noise: bool) -> "Verdicts":
        """These images by the log odds of noise (N,) that people's answers teach.

        If a person labelled any image as noise (`knows_noise`), images above the threshold are
        noise, even those that are so by the other images alone.
        """
        answer = answers(odds > 0, self.sure | knows_noise)
        return replace(self, score=odds, threshold=np.zeros_like(odds), answer=answer)

    def with_flag(self, wanted: float | int | None) -> "Verdicts":
        """As many of a whole folder called noise as wanted, at least one; none is unsure then.

        `wanted` is as `parsed_flag` gives it. Thresholds differ between images, so images are
        ranked by their margin. All thresholds move by one amount, which keeps the ranks.
        """
        if wanted is None or not len(self):
            return self
        share = max(int(wanted * len(self) + 0.5), 1) if wanted < 1 else int(wanted)
        count, asked = min(share, len(self)), replace(self, is_asked=True)
        margins = np.sort(self.margin)[::-1]
        below = margins[count] if count < len(self) else margins[-1] - 1
        threshold = self.threshold + (margins[count - 1] + below) / 2
        answer = np.where(asked.rank <= count, NOISE, CLEAN)
        return replace(asked, answer=answer, threshold=threshold)

    def rows(self) -> list[dict[str, Any]]:
        """A dict of plain values for each image: the part of its row from "class" to "top"."""
        columns = (
            self.class_index, self.answer, self.rank, self.score, self.threshold, self.stage,
            self.evidence, self.level, self.top_index, self.top_score,
        )  # fmt: skip
        names, rows = self.names, []
        for image in zip(*map(np.ndarray.tolist, columns), strict=True):
            class_index, answer, rank, score, threshold, stage, evidence, level, *likely = image
            if _as_read(score) != _as_read(threshold):  # else they would not say which is above
                score, threshold = _as_read(score), _as_read(threshold)
            margin = score - threshold
            top = [{"class": names[i], "score": _as_read(p)} for i, p in zip(*likely, strict=True)]
            rows.append({
                "class": names[class_index], "class_index": class_index,
                "answer": answer, "noise": answer == NOISE, "rank": rank,
                "score": score, "threshold": threshold, "margin": _as_read(margin) or margin,
                "stage": stage,
                "evidence": None if np.isnan(evidence) else _as_read(evidence),
                "level": None if np.isnan(level) else _as_read(level),
                "top": top,
            })  # fmt: skip
        return rows

    @classmethod
    def joined(cls, parts: "Sequence[Verdicts]") -> "Verdicts":
        """The verdicts of one detector on consecutive images, together."""
        columns: dict[str, Any] = {}
        for field in fields(cls):
            values = [getattr(part, field.name) for part in parts]
            is_column = isinstance(values[0], np.ndarray)
            columns[field.name] = np.concatenate(values) if is_column else values[0]
        return cls(**columns)


def answers(flagged: NDArray[np.bool_], sure: NDArray[np.bool_]) -> NDArray[np.str_]:
    """The answers (N,) about images that are flagged, and noise if that is sure."""
    return np.where(flagged, np.where(sure, NOISE, UNSURE), CLEAN)


def _as_read(value: float) -> float:
    """A number as people read it: 0.01, where binary sums gave 0.010000000000000009."""
    return round(value, _DECIMALS)


def parsed_flag(flag: Flag) -> float | int | None:
    """A share of all images, above 0 and below 1, or a number of them; None: the method decides.

    Raises:
        SettingsError: it is neither.
    """
    value: Any = flag
    if isinstance(flag, str) and (typed := _TYPED_FLAG.fullmatch(flag.strip())):
        value = float(typed[1]) / 100 if typed[2] else int(typed[1]) if typed[1].isdigit() else -1
    is_share = isinstance(value, float | np.floating) and 0 < value < 1
    is_number = isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 1
    if not (value is None or is_share or is_number):
        raise SettingsError(f"flag is {short(repr(flag))}, must be a share (5%) or a number (50).")
    return None if value is None else float(value) if is_share else int(value)


# The columns of rows. docs/verdict.schema.json describes them; they are frozen: a change is another
# format. Of an image that could not be read those from "class" to "top" are None.
FORMAT: Final = 1
FIELDS: Final = (
    "format", "source", "class", "class_index", "answer", "noise", "rank", "score", "threshold",
    "margin", "stage", "evidence", "level", "top", "content", "note", "error", "encoder",
)  # fmt: skip
Row = dict[str, Any]
