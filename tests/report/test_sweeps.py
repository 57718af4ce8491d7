"""A note below a table whose best value is the best of several settings of a method."""

import pytest

SWEPT = "were run on the streams that this table reports, so the best of them is optimistic"


@pytest.mark.parametrize(
    ("options", "swept"),
    [
        (("--threshold", 0.6, "--threshold", 0.9), "zs-clip (threshold)"),
        (("--threshold", 0.6, "--threshold", 0.9, "--ratio", 0.2, "--ratio", 0.5),
         "zs-clip (threshold)"),
        (("--threshold", 0.6, "--threshold", 0.9, "--queue", 9, "--queue", 90),
         "zs-clip (threshold, queue)"),
        (("--threshold", 0.6), ""),
        (("--threshold", 0.6, "--method", "ridge"), ""),
        (("--ratio", 0.2, "--ratio", 0.5, "--seed", 0, "--seed", 1), ""),
        (("--order", "class", "--order", "burst"), ""),
        (("--preset", "paper", "--preset", "official"), ""),
        (("--prompt", "code", "--prompt", "art of a {}."), ""),
        # The best is of another method: no setting of this one is shown off.
        (("--method", "ridge", "--set", "zs-clip.threshold=0", "--set",
          "zs-clip.threshold=0.01"), None),
    ],
)  # fmt: skip
def test_the_best_of_several_settings_is_noted_where_it_is_marked(simulate, options, swept):
    result = simulate("--method", "zs-clip", "--id", "pets", "--ood", "sky", *options,
                      "--columns", "acc_h", "--format", "markdown")  # fmt: skip
    assert result.exit_code == 0, result.output
    assert result.stdout.count(SWEPT) == bool(swept)
    if swept:
        assert f"Several settings of {swept} {SWEPT}: choose settings on" in result.stdout
    if swept is None:
        assert "| ridge" in result.stdout
        [best] = [line for line in result.stdout.splitlines() if "**" in line and "|" in line]
        assert best.startswith("| ridge")


def test_the_page_says_it_too(simulate, zsntta, tmp_path):
    options = ("--id", "pets", "--ood", "sky", "--threshold", 0.6, "--threshold", 0.9)
    assert simulate("--method", "zs-clip", *options).exit_code == 0
    result = zsntta("report", "kept.sqlite", "--output", "page.html")
    assert result.exit_code == 0, result.output
    assert SWEPT in (tmp_path / "page.html").read_text()
