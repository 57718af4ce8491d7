"""Verdicts of a detector: arrays for many, plain values for one, and rows for files."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    TypedDict,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

import numpy as np
from numpy.typing import NDArray

from zsntta_cli.errors import SettingsError
from zsntta_cli.methods.base import Decisions, StreamData

if TYPE_CHECKING:
    import pandas as pd

NOISE: Final = "noise"
UNSURE: Final = "unsure"
CLEAN: Final = "clean"
VerdictAnswer = Literal["noise", "unsure", "clean"]
Stage = Literal["warm-up", "adapted", "judged"]
WARM_UP: Stage = "warm-up"
ADAPTED: Stage = "adapted"
JUDGED: Stage = "judged"
_DECIMALS = 12  # of one image's numbers: all that is beyond is of rounding


@dataclass(frozen=True)
class Verdict:
    """The verdict on one image; docs/api.md explains its fields."""

    source: str | None  # where it is from, if that is known
    class_name: str  # the class, should it be clean
    class_index: int
    answer: VerdictAnswer  # noise by its own evidence; unsure: by the other images alone
    noise: bool = field(init=False)  # whether it belongs to none of the classes, by the answer
    score: float  # higher = more noise; only scores of one stage compare
    threshold: float  # noise or unsure iff the score is above it
    margin: float = field(init=False)  # how far above: score less threshold
    stage: Stage  # "warm-up": ZS-CLIP decides in the method's stead; "judged": a person did
    evidence: float | None  # nats by which one of the classes is likelier than any other text
    level: float | None  # noise where the evidence is below it; both None: they are not known
    top: tuple[tuple[str, float], ...]  # the likeliest classes and their softmax probabilities

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise", self.answer == NOISE)  # it is frozen
        margin = self.score - self.threshold
        object.__setattr__(self, "margin", _as_read(margin) or margin)

    def as_row(self, rank: int) -> dict[str, Any]:
        """The part of a verdict row from "class" to "top", for an image with this rank."""
        return {
            "class": self.class_name,
            "class_index": self.class_index,
            "answer": self.answer,
            "noise": self.noise,
            "rank": rank,
            "score": self.score,
            "threshold": self.threshold,
            "margin": self.margin,
            "stage": self.stage,
            "evidence": self.evidence,
            "level": self.level,
            "top": [{"class": name, "score": score} for name, score in self.top],
        }


def _as_read(value: float) -> float:
    """A plain number as people read it: 0.01, where binary sums gave 0.010000000000000009."""
    return round(float(value), _DECIMALS)


@dataclass(frozen=True)
class Verdicts:
    """The verdicts on N images; iterating gives `Verdict`s. docs/api.md explains the fields."""

    class_names: Sequence[str]  # (C,)
    class_index: NDArray[np.int32]  # (N,)
    noise: NDArray[np.bool_]  # (N,) whether they belong to none of the classes
    unsure: NDArray[np.bool_]  # (N,) above the threshold by the other images alone
    score: NDArray[np.float64]  # (N,)
    threshold: NDArray[np.float64]  # (N,)
    adapted: NDArray[np.bool_]  # (N,) whether the method's own rule decided, and not ZS-CLIP's
    top_index: NDArray[np.int32]  # (N, K) the K = min(5, C) likeliest classes, best first
    top_score: NDArray[np.float64]  # (N, K) their softmax probabilities
    # (N,) nats by which one of the classes is likelier than any other text, and the level below
    # which an image is noise; nan where they are not known.
    evidence: NDArray[np.float64]
    level: NDArray[np.float64]
    sure: NDArray[np.bool_]  # (N,) whether an image is noise, and not unsure, if it is flagged
    judged: NDArray[np.bool_]  # (N,) whether a person said what they are
    sources: Sequence[str | None] = ()  # (N,), or nothing where no image has one

    def __len__(self) -> int:
        return len(self.noise)

    def __iter__(self) -> Iterator[Verdict]:
        return map(self._one, range(len(self)))

    @overload
    def __getitem__(self, which: int) -> Verdict: ...

    @overload
    def __getitem__(self, which: slice | NDArray[np.integer] | NDArray[np.bool_]) -> "Verdicts": ...

    def __getitem__(
        self, which: int | slice | NDArray[np.integer] | NDArray[np.bool_]
    ) -> "Verdict | Verdicts":
        """One verdict by its index, or several by a slice, indices or a mask."""
        if isinstance(which, int | np.integer):
            return self._one(range(len(self))[which])
        rows = np.arange(len(self))[which]
        columns = {name: getattr(self, name)[rows] for name in _COLUMNS}
        sources = [self.sources[i] for i in rows] if self.sources else ()
        return replace(self, **columns, sources=sources)

    @property
    def margin(self) -> NDArray[np.float64]:
        """How far each score (N,) is above its threshold."""
        return self.score - self.threshold

    @property
    def flagged(self) -> NDArray[np.bool_]:
        """Which images (N,) are above their threshold: noise, and unsure ones."""
        return self.noise | self.unsure

    @property
    def answer(self) -> list[VerdictAnswer]:
        """The answer (N,) for each image."""
        return [_answer(*pair) for pair in zip(self.noise, self.unsure, strict=True)]

    @property
    def rank(self) -> NDArray[np.int64]:
        """Rank (N,) of suspicion from 1, by the margin: what is flagged comes first.

        Where most images are noise by their own evidence, this ranks them: those that fit a class
        best come last.
        """
        is_by_fit = 2 * (self.evidence < self.level).sum() > len(self)
        return _ranks(-self.evidence if is_by_fit else self.margin)

    @property
    def margin_rank(self) -> NDArray[np.int64]:
        """Rank (N,) from 1 by the margin alone."""
        return _ranks(self.margin)

    @property
    def stage(self) -> list[Stage]:
        """The stage (N,) of each image."""
        return [_stage(*pair) for pair in zip(self.adapted, self.judged, strict=True)]

    def as_judged(self, truths: Mapping[int, bool]) -> "Verdicts":
        """These verdicts with a person's answers: whether the image with an index is noise.

        Scores, thresholds and classes stay unchanged.
        """
        noise, unsure, judged = self.noise.copy(), self.unsure.copy(), self.judged.copy()
        for i, is_noise in truths.items():
            noise[i], unsure[i], judged[i] = is_noise, False, True
        return replace(self, noise=noise, unsure=unsure, judged=judged)

    def as_noise(self) -> "Verdicts":
        """These verdicts, with unsure images called noise."""
        return replace(self, noise=self.noise | self.unsure, unsure=np.zeros(len(self), bool))

    def to_pandas(self) -> "pd.DataFrame":
        """A table with a row for each image, with the columns of verdict files.

        Raise SettingsError if pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise SettingsError("to_pandas needs pandas: pip install pandas.") from error
        rows = [one.as_row(rank) for one, rank in zip(self, self.rank.tolist(), strict=True)]
        columns = {
            name: pd.Series([row[name] for row in rows], dtype=kind)
            for name, kind in _COLUMN_TYPES.items()
        }
        sources = pd.Series(self.sources or [None] * len(self), dtype=object)
        return pd.DataFrame({"source": sources, **columns})

    @classmethod
    def joined(cls, parts: Sequence["Verdicts"]) -> "Verdicts":
        """Join verdicts of one detector; sources are left out."""
        if len(parts) == 1:
            return parts[0]
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS
        }
        return replace(parts[0], **columns)

    @classmethod
    def of(
        cls,
        data: StreamData,
        decisions: Decisions,
        class_names: Sequence[str],
        sources: Sequence[str | None] = (),
    ) -> "Verdicts":
        """The verdicts for decisions on a stream that the frozen model has scored."""
        by_detector, threshold = decisions.detector_threshold, decisions.zero_shot_threshold
        assert decisions.is_noise is not None
        assert threshold is not None
        adapted = np.ones(len(data), bool) if by_detector is None else ~np.isnan(by_detector)
        if by_detector is not None:
            threshold = np.where(adapted, by_detector, threshold)
        score = 1 - decisions.id_score
        threshold = 1 - (1 - threshold)  # rounded as the score is
        evidence, level = decisions.evidence, decisions.level
        if evidence is None or level is None:  # the method's answer stands
            evidence = level = np.full(len(data), np.nan)
            sure = np.ones(len(data), bool)
        else:
            sure = evidence < level
        flagged = decisions.is_noise | (score > threshold)  # a cautious method flags no doubt
        detail = data.detail(slice(None))
        likely = np.exp((detail.top_logits - detail.top_logits[:, :1]).astype(np.float64))
        return cls(
            class_names, decisions.class_index, flagged & sure, flagged & ~sure, score, threshold,
            adapted, detail.top_classes, likely * (1 - data.noise_score)[:, None],
            evidence, level, sure, np.zeros(len(data), bool), tuple(sources),
        )  # fmt: skip

    def _one(self, i: int) -> Verdict:
        likely = zip(self.top_index[i].tolist(), self.top_score[i].tolist(), strict=True)
        class_index = int(self.class_index[i])
        score, threshold = float(self.score[i]), float(self.threshold[i])
        if _as_read(score) != _as_read(threshold):  # else they would no longer say which is above
            score, threshold = _as_read(score), _as_read(threshold)
        return Verdict(
            self.sources[i] if self.sources else None,
            self.class_names[class_index],
            class_index,
            _answer(self.noise[i], self.unsure[i]),
            score,
            threshold,
            _stage(self.adapted[i], self.judged[i]),
            None if np.isnan(self.evidence[i]) else _as_read(self.evidence[i]),
            None if np.isnan(self.level[i]) else _as_read(self.level[i]),
            tuple((self.class_names[c], _as_read(p)) for c, p in likely),
        )


_COLUMNS = (
    "class_index", "noise", "unsure", "score", "threshold", "adapted", "top_index", "top_score",
    "evidence", "level", "sure", "judged",
)  # fmt: skip
_COLUMN_TYPES: dict[str, Any] = {  # of a table, by the names of `Verdict.as_row`
    "class": object, "class_index": int, "answer": object, "noise": bool, "rank": int,
    "score": float, "threshold": float, "margin": float, "stage": object, "evidence": float,
    "level": float, "top": object,
}  # fmt: skip


def _ranks(suspicion: NDArray[np.float64]) -> NDArray[np.int64]:
    ranks = np.empty(len(suspicion), np.int64)
    ranks[np.argsort(-suspicion, kind="stable")] = np.arange(1, len(suspicion) + 1)
    return ranks


def _stage(adapted: bool | np.bool_, judged: bool | np.bool_) -> Stage:
    return JUDGED if judged else ADAPTED if adapted else WARM_UP


def _answer(noise: bool | np.bool_, unsure: bool | np.bool_) -> VerdictAnswer:
    return NOISE if noise else UNSURE if unsure else CLEAN


# Verdict rows. Their fields, types and words make docs/verdict.schema.json and the columns of
# files; they are frozen: a change is another format.

FORMAT: Final = 1
_DECIDED = object()  # marks a field that is null where an image could not be read

LikelyClass = TypedDict(
    "LikelyClass", {"class": str, "score": Annotated[float, {"minimum": 0, "maximum": 1}]}
)
VerdictRow = TypedDict("VerdictRow", {
    "format": Literal[1],
    "source": Annotated[
        str,
        "path of the file; archive and path within it; id in a cached set",
    ],
    "class": Annotated[str, _DECIDED, "the class, should the image be clean"],
    "class_index": Annotated[int, _DECIDED, {"minimum": 0}],
    "answer": Annotated[
        VerdictAnswer, _DECIDED,
        "noise: by its own evidence; unsure: above the threshold by the other images alone",
    ],
    "noise": Annotated[bool, _DECIDED, "whether the answer is noise"],
    "rank": Annotated[
        int, _DECIDED, {"minimum": 1},
        "of suspicion, 1 = most; on arrival among the images up to this one",
    ],
    "score": Annotated[float, _DECIDED, "higher = more noise; scores of one stage compare"],
    "threshold": Annotated[float, _DECIDED, "noise or unsure if the score is above it"],
    "margin": Annotated[float, _DECIDED, "score less threshold"],
    "stage": Annotated[
        Stage, _DECIDED, "warm-up: by ZS-CLIP's rule; judged: by a person"
    ],
    "evidence": Annotated[
        float | None,
        "nats by which one of the classes is likelier than any other text; null: not known",
    ],
    "level": Annotated[float | None, "in nats: below it the evidence is of noise"],
    "top": Annotated[
        list[LikelyClass], _DECIDED, {"maxItems": 5},
        "the likeliest classes and their softmax probabilities",
    ],
    "content": Annotated[str | None, "SHA-256 of the file's content, where it is a file"],
    "note": Annotated[
        str | None, "what was done to read the image, where it is not as its file has it"
    ],
    "error": str | None,
    "encoder": Annotated[str, "folder name of the encoder's features"],
})  # fmt: skip
FIELDS = tuple(VerdictRow.__annotations__)


def row_schema() -> dict[str, Any]:
    """The JSON schema of a verdict row."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"A verdict of zsntta detect, format {FORMAT}",
        "description": (
            "One object a line. What could not be read has an error and no verdict: all of "
            "class … top are null."
        ),
        **_schema_of(VerdictRow),
    }


_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}


def _schema_of(hint: Any) -> dict[str, Any]:
    """The JSON schema of a type, by its annotations."""
    if isinstance(hint, type) and issubclass(hint, dict):
        fields = get_type_hints(hint, include_extras=True)
        properties = {name: _schema_of(field) for name, field in fields.items()}
        closed = {"type": "object", "additionalProperties": False}
        return {**closed, "required": list(fields), "properties": properties}
    kind, arguments = get_origin(hint), get_args(hint)
    if kind is Annotated:
        schema = _schema_of(arguments[0])
        for mark in arguments[1:]:
            if mark is _DECIDED:
                schema = _nullable(schema)
            else:
                schema |= {"description": mark} if isinstance(mark, str) else mark
        return schema
    if kind is list:
        return {"type": "array", "items": _schema_of(arguments[0])}
    if kind is Literal:
        allowed = {"enum": [*arguments]} if len(arguments) > 1 else {"const": arguments[0]}
        return {"type": _JSON_TYPES[type(arguments[0])], **allowed}
    return _nullable(_schema_of(arguments[0])) if arguments else {"type": _JSON_TYPES[hint]}


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    allowed = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [schema["type"], "null"], **allowed}
