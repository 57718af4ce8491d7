"""What the built-in pictures can show, and the words for it."""

from dataclasses import dataclass
from functools import partial

from zsntta_cli.datasets.drawn.outlines import DIGITS
from zsntta_cli.datasets.drawn.outlines import SHAPES as _SHAPES
from zsntta_cli.datasets.drawn.textures import TEXTURES

PALETTE: dict[str, tuple[float, float, float]] = {
    "red": (0.86, 0.12, 0.12),
    "orange": (0.97, 0.55, 0.08),
    "yellow": (0.96, 0.88, 0.16),
    "green": (0.15, 0.65, 0.2),
    "turquoise": (0.15, 0.78, 0.76),
    "blue": (0.13, 0.25, 0.85),
    "purple": (0.5, 0.15, 0.65),
    "pink": (0.97, 0.55, 0.72),
    "brown": (0.45, 0.27, 0.12),
    "white": (0.96, 0.96, 0.96),
    "grey": (0.5, 0.5, 0.5),
    "black": (0.05, 0.05, 0.05),
}

STYLES = (
    "plain", "outlined", "sketched", "handwritten", "blurry", "grainy", "dark", "faded",
    "pixelated", "colourless",
)  # fmt: skip

# Styles that a kind of concept cannot have: a pen writes digits only.
IMPOSSIBLE: dict[str, tuple[str, ...]] = {
    "shape": ("handwritten",),
    "letter": ("handwritten", "sketched"),
    "digit": ("sketched",),
    "texture": ("handwritten", "sketched", "outlined"),
    "static": STYLES[1:],
}


@dataclass(frozen=True)
class Concept:
    """Something that can be drawn: `kind` is shape, letter, digit, texture or static."""

    kind: str
    name: str

    @property
    def article(self) -> str:
        """The article its noun takes in a caption."""
        return {"letter": "the", "digit": "the", "static": ""}.get(self.kind, "a")

    @property
    def noun(self) -> str:
        """How a caption calls it."""
        if self.kind in ("letter", "digit"):
            return f"{self.kind} {self.name}"
        nouns = {"texture": f"{self.name} texture", "static": "random static"}
        return nouns.get(self.kind, self.name)

    @property
    def character(self) -> str:
        """What is printed for a letter or a digit."""
        return str(DIGITS.index(self.name)) if self.kind == "digit" else self.name


SHAPES = tuple(map(partial(Concept, "shape"), _SHAPES[:10]))
OTHER_SHAPES = tuple(map(partial(Concept, "shape"), _SHAPES[10:]))
# Without the letters that look like a shape: C, I, O, T, V, X.
LETTERS = tuple(map(partial(Concept, "letter"), "ABDEFGHJKLMNPQRSUWYZ"))
NUMERALS = tuple(map(partial(Concept, "digit"), DIGITS))
SURFACES = tuple(map(partial(Concept, "texture"), TEXTURES))
STATIC = Concept("static", "static")
