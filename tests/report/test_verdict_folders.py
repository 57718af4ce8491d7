"""Images in folders by their verdicts: nothing is moved, deleted or replaced."""

import pytest
from made import Notes
from reviewed import run_of

from zsntta_cli.detection.runs.detecting import Batch
from zsntta_cli.detection.sources.item import Item, failed, of_file
from zsntta_cli.errors import StoreError
from zsntta_cli.report.verdict_folders import Sorter, folder_names


def test_safe_folders_for_classes():
    names = folder_names([
        "cat", "a/b", "a_b", "../x", "..", "_noise", "_Unsure", "CAT", "ö ä", "x" * 300,
    ])  # fmt: skip
    assert list(names.values()) == [
        "cat", "a_b", "a_b-2", "_x", "class", "_noise-2", "_Unsure-2", "CAT-2", "ö ä", "x" * 80,
    ]  # fmt: skip


@pytest.mark.parametrize("links", [False, True])
def test_images_are_copied_or_linked_and_nothing_is_replaced(tmp_path, links):
    files = {"a/1.png": b"one", "b/1.png": b"two", "c/1.png": b"one", "d/2.png": b"noise"}
    items = []
    for name, content in files.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(content)
        items.append(of_file(tmp_path / name))
    items += [Item("a.mp4", None, frame=0), failed("none", "gone")]
    answers = ["clean", "clean", "unsure", "noise", "clean"]
    rows = [
        {"error": None, "answer": answer, "class": "c/t", "source": str(i)}
        for i, answer in enumerate(answers)
    ]
    rows.append({"error": "gone", "answer": None, "class": None, "source": "none"})
    notes, run = Notes(), run_of("c/t")
    out = tmp_path / "out"
    (out / "_noise").mkdir(parents=True)
    (out / "_noise/2.png").write_bytes(b"mine")
    for _ in range(2):  # the second time all is there
        sorter = Sorter(out, links, notes)
        sorter.open(run)
        sorter.take(Batch(items, rows))
        sorter.close()
        found = {p.relative_to(out).as_posix(): p.read_bytes() for p in out.rglob("*.png")}
        assert found == {
            "c_t/1.png": b"one", "c_t/1-2.png": b"two", "_unsure/1.png": b"one",
            "_noise/2.png": b"mine", "_noise/2-2.png": b"noise",
        }  # fmt: skip
        assert all(p.is_symlink() == (links and p.name != "2.png") for p in out.rglob("*.png"))
    word = "linked" if links else "copied"
    assert notes.notes == [f"note: 1 not {word}: no files of their own."] * 2
    assert {n: (tmp_path / n).read_bytes() for n in files} == files
    (tmp_path / "file").write_text("x")
    sorter = Sorter(tmp_path / "file", links, notes)
    sorter.open(run)
    with pytest.raises(StoreError, match="cannot write"):
        sorter.take(Batch(items[:1], rows[:1]))
