"""Sinks of verdict rows: each is opened, takes rows and is closed, whatever it does with them."""

from reviewed import run_of, unread, verdict

from zsntta_cli.cli.detection.detecting import Outputs, Screen
from zsntta_cli.detection.detecting.run import Batch, RowSink

BATCH = Batch([None] * 3, [verdict("a.png", 0.5), verdict("b.png", -0.5), unread("c.png")])


class Kept(RowSink):
    """A sink of one's own."""

    def __init__(self):
        self.done = []

    def open(self, run):
        self.done.append(run.detector.class_names)

    def take(self, batch):
        self.done.append([row["source"] for row in batch.rows])

    def close(self):
        self.done.append("closed")


def test_a_sink_takes_the_rows_that_are_asked_for_or_all(capsys):
    wanted, everything = Kept(), Kept()
    screen = Screen(print0=False, has_file=False, is_alone=False)
    outputs = Outputs([wanted], [everything], "noise", screen)
    outputs.open(run_of("cat", "dog"))
    outputs.take(BATCH)
    outputs.take(BATCH)
    outputs.close()
    names = ("cat", "dog")
    assert wanted.done == [names, ["a.png"], ["a.png"], "closed"]
    everyone = ["a.png", "b.png", "c.png"]
    assert everything.done == [names, everyone, everyone, "closed"]
    said = capsys.readouterr()
    assert said.out.count("\n") == said.out.count("a.png") == 2
    assert said.err.startswith("6 images, 2 flagged as noise (ridge, 2 classes), 2 not read")


def test_rows_go_to_a_file_or_to_standard_output(capsys):
    for has_file, print0, expected in ((True, False, ""), (True, True, "a.png\0b.png\0")):
        outputs = Outputs([], [], None, Screen(print0, has_file, is_alone=not has_file))
        outputs.open(run_of("cat"))
        outputs.take(BATCH)
        outputs.close()
        assert capsys.readouterr().out == expected
