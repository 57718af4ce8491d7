"""What is said of runs before they start, and runs of methods that ask for texts."""

import json

PAIR = ("--id", "pets", "--ood", "sky", "--noise", "none")
OFFLINE = "note: etlt sees the whole stream before it decides: a reference, no online method."


def test_a_method_that_is_offline_is_said_to_be_once(simulate):
    methods = ("--method", "etlt", "--method", "zs-clip")
    result = simulate(*methods, *PAIR, "--ratio", 0.25, "--ratio", 0.5, "--jobs", 1)
    assert result.exit_code == 0, result.stderr
    said = [line for line in result.stderr.splitlines() if "sees the whole" in line]
    assert said == [OFFLINE]


def test_a_stream_within_the_warm_up_of_any_method_is_told(simulate):
    methods = [("ridge", "ridge-first"), ("syde", "warmup x update-every"), ("oodd", "")]
    chosen = [word for name, _ in methods for word in ("--method", name)]
    result = simulate(*chosen, *PAIR, "--limit", 40, "--jobs", 1)
    assert result.exit_code == 0, result.stderr
    said = [line for line in result.stderr.splitlines() if "throughout" in line]
    assert len(said) == 2
    for line, (method, settings) in zip(said, methods, strict=False):
        assert line.startswith(f"note: {method} decides as zs-clip does throughout: a stream of ")
        assert line.endswith(f"({settings}).")


def test_cma_takes_the_list_that_is_named(simulate):
    result = simulate("--method", "cma", "--words", "nouns", *PAIR, "--format", "json")
    assert result.exit_code == 0, result.stderr
    [record] = json.loads(result.stdout)
    assert record["settings"]["options"] == {"words": "nouns", "cma_times": 1}
    missing = simulate("--method", "cma", *PAIR)
    assert missing.exit_code == 1
    assert "words-cma" in missing.stderr or "'cma'" in missing.stderr
