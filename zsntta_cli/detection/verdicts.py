"""What a detector says of images: arrays for many, plain values for one, and rows for files."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import (
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

from zsntta_cli.methods.base import Decisions, StreamData

Stage = Literal["warm-up", "adapted"]
WARM_UP: Stage = "warm-up"
ADAPTED: Stage = "adapted"


@dataclass(frozen=True)
class Verdict:
    """What is said of one image."""

    source: str | None  # where it is from, if that is known
    class_name: str  # the class, should it be clean
    class_index: int
    noise: bool  # whether it belongs to none of the classes
    score: float  # higher = more noise; only scores of one stage compare
    threshold: float  # noise iff the score is above it
    stage: Stage  # "warm-up" as long as ZS-CLIP decides in the method's stead
    top: tuple[tuple[str, float], ...]  # the likeliest classes and their softmax probabilities

    @property
    def margin(self) -> float:
        """How far the score is above the threshold: above 0 for noise."""
        return self.score - self.threshold


@dataclass(frozen=True)
class Verdicts:
    """What is said of N images; goes through as `Verdict`s."""

    class_names: Sequence[str]  # (C,)
    class_index: NDArray[np.int32]  # (N,)
    noise: NDArray[np.bool_]  # (N,)
    score: NDArray[np.float64]  # (N,)
    threshold: NDArray[np.float64]  # (N,)
    adapted: NDArray[np.bool_]  # (N,) whether the method's own rule decided, and not ZS-CLIP's
    top_index: NDArray[np.int32]  # (N, K) the K = min(5, C) likeliest classes, best first
    top_score: NDArray[np.float64]  # (N, K) their softmax probabilities
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
        """One of them by its number, or some of them by a slice, numbers or a mask."""
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
    def rank(self) -> NDArray[np.int64]:
        """Rank (N,) of suspicion from 1, by the margin: what is called noise comes first."""
        ranks = np.empty(len(self), np.int64)
        ranks[np.argsort(-self.margin, kind="stable")] = np.arange(1, len(self) + 1)
        return ranks

    @property
    def stage(self) -> list[Stage]:
        """The stage of each (N,)."""
        return [ADAPTED if adapted else WARM_UP for adapted in self.adapted.tolist()]

    @classmethod
    def of(
        cls,
        data: StreamData,
        decisions: Decisions,
        class_names: Sequence[str],
        sources: Sequence[str | None] = (),
    ) -> "Verdicts":
        """Those of decisions on a stream that the frozen model has scored."""
        own, threshold = decisions.detector_threshold, decisions.zero_shot_threshold
        assert decisions.is_noise is not None
        assert threshold is not None
        adapted = np.ones(len(data), bool) if own is None else ~np.isnan(own)
        if own is not None:
            threshold = np.where(adapted, own, threshold)
        detail = data.detail(slice(None))
        likely = np.exp((detail.top_logits - detail.top_logits[:, :1]).astype(np.float64))
        return cls(
            class_names, decisions.class_index, decisions.is_noise, 1 - decisions.id_score,
            1 - (1 - threshold),  # rounded as the score is
            adapted, detail.top_classes, likely * (1 - data.noise_score)[:, None], tuple(sources),
        )  # fmt: skip

    def _one(self, i: int) -> Verdict:
        likely = zip(self.top_index[i].tolist(), self.top_score[i].tolist(), strict=True)
        class_index = int(self.class_index[i])
        return Verdict(
            self.sources[i] if self.sources else None,
            self.class_names[class_index],
            class_index,
            bool(self.noise[i]),
            float(self.score[i]),
            float(self.threshold[i]),
            ADAPTED if self.adapted[i] else WARM_UP,
            tuple((self.class_names[c], p) for c, p in likely),
        )


_COLUMNS = (
    "class_index", "noise", "score", "threshold", "adapted", "top_index", "top_score",
)  # fmt: skip


# Verdict rows. Their fields, types and words make docs/verdict.schema.json and the columns of
# files; they are frozen: a change is another format.

FORMAT: Final = 1
_JUDGED = object()  # marks a field that is null where an image could not be read

LikelyClass = TypedDict(
    "LikelyClass", {"class": str, "score": Annotated[float, {"minimum": 0, "maximum": 1}]}
)
VerdictRow = TypedDict("VerdictRow", {
    "format": Literal[1],
    "source": Annotated[
        str, "path of the file; archive and path within it; id in a cached set"
    ],
    "frame": Annotated[int | None, {"minimum": 0}, "number in a video"],
    "time_s": Annotated[float | None, "in a video, by the frame's own time stamp"],
    "class": Annotated[str, _JUDGED, "the class, should the image be clean"],
    "class_index": Annotated[int, _JUDGED, {"minimum": 0}],
    "noise": Annotated[bool, _JUDGED, "whether the image belongs to none of the classes"],
    "rank": Annotated[
        int, _JUDGED, {"minimum": 1},
        "of suspicion, 1 = most; on arrival among the images up to this one",
    ],
    "score": Annotated[float, _JUDGED, "higher = more noise; scores of one stage compare"],
    "threshold": Annotated[float, _JUDGED, "noise if the score is above it"],
    "margin": Annotated[float, _JUDGED, "score less threshold"],
    "stage": Annotated[Stage, _JUDGED, "warm-up: by ZS-CLIP's rule"],
    "top": Annotated[
        list[LikelyClass], _JUDGED, {"maxItems": 5},
        "the likeliest classes and their softmax probabilities",
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
            if mark is _JUDGED:
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
