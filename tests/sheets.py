"""Sheets of any size, for tests of the forms."""

from hypothesis import strategies as st

from zsntta_cli.report.sheet import AVERAGE, Best, Close, Marked, Sheet

NAMES = st.text("abcdefgh", min_size=1, max_size=14)
VALUES = st.builds(
    lambda kind, text: kind(text),
    st.sampled_from([str, Best, Close]),
    st.sampled_from(["-", "7.25", "81.50", "100.00", "81.50±0.25", "100.00±12.25"]),
) | st.sampled_from([Marked("+1.50="), Marked("-10.25±0.50!")])


@st.composite
def sheets_of_any_size(draw):
    """Tables of 1 to 3 labels, 1 to 6 sets with or without their average, 1 to 5 metrics."""
    labels = draw(st.integers(1, 3))
    metrics = tuple(draw(st.lists(NAMES, min_size=1, max_size=5)))
    names = draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
    columns = dict.fromkeys([*names, *[AVERAGE] * draw(st.booleans())], metrics)
    sheet = Sheet("title", ("Method", "Noise", "warmup")[:labels], columns)
    for _ in range(draw(st.integers(1, 4))):
        texts = [draw(st.text("xyz ", min_size=1, max_size=30)) for _ in range(labels)]
        sheet.add(texts, {name: [draw(VALUES) for _ in heads] for name, heads in columns.items()})
    return sheet
