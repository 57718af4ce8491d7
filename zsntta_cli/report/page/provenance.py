"""How each row came to be: settings in full, the command that repeats it, features, versions."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from zsntta_cli.report.page.entries import Entry, all_settings, set_place
from zsntta_cli.report.page.headline import name_of
from zsntta_cli.report.page.markup import cell, details, heads, number, row, row_head, table, text
from zsntta_cli.report.page.rows import Row
from zsntta_cli.report.titles import shown
from zsntta_cli.simulation.runs import RunSettings

Command = Callable[[Sequence[RunSettings]], str]
_MIB = 2**20
_VARYING = ("seed", "ratio")  # of the rows that share a card


def commands(rows: Sequence[Row], command: Command) -> str:
    """For each line of the headline tables: what repeats it, how long it took, on what."""
    lines: dict[tuple[Any, ...], list[Row]] = {}
    for one in rows:
        lines.setdefault((one.spot.stream, one.spot.ratio, one.label), []).append(one)
    bodies: dict[str, list[str]] = {}
    for (stream, _, _), some in lines.items():
        bodies.setdefault(name_of(stream), []).append(_line(some, command))
    names = ["Method", "Noise", "Command", "Runs", "s a run", "Peak MiB", "Device"]
    return "".join(
        table(f"{text(name)}: the commands", heads(names), ["".join(body)], kind="commands")
        for name, body in bodies.items()
    )


def _line(rows: Sequence[Row], command: Command) -> str:
    """One line; OOD sets that were run with other seeds take a command of their own."""
    entries = [entry for one in rows for entry in one.entries]
    by_seeds: dict[tuple[int, ...], list[RunSettings]] = {}
    for one in rows:
        seeds = tuple(one.by_seed)
        by_seeds.setdefault(seeds, []).extend(e.record.settings for e in one.entries)
    typed = "<br>".join(f"<code>{text(command(some))}</code>" for some in by_seeds.values())
    seconds = math.fsum(entry.record.seconds for entry in entries) / len(entries)
    return row(
        row_head(rows[0].label),
        number(shown("ratio", rows[0].spot.ratio)),
        f'<td class="t">{typed}',
        number(str(len(entries))),
        number(f"{seconds:.3g}"),
        number(f"{max(entry.record.memory for entry in entries) / _MIB:,.0f}"),
        cell(", ".join(sorted({entry.record.device for entry in entries}))),
    )


def settings(rows: Sequence[Row]) -> str:
    """All settings of each label, and where it was run; what other cards have not is marked."""
    cards: dict[tuple[Any, ...], list[Row]] = {}
    for one in rows:
        run = one.first.settings
        flat = tuple((k, v) for k, v in all_settings(run).items() if k not in _VARYING)
        cards.setdefault((one.label, run.prompt, flat), []).append(one)
    seen: dict[tuple[str, str], set[Any]] = {}
    for (_, _, flat), some in cards.items():
        for name, value in flat:
            seen.setdefault((some[0].method, name), set()).add(value)
    return "".join(
        _card(label, prompt, flat, some, seen) for (label, prompt, flat), some in cards.items()
    )


def _card(
    label: str, prompt: str, flat: Any, rows: Sequence[Row], seen: dict[tuple[str, str], set[Any]]
) -> str:
    id_sets = list(dict.fromkeys(one.spot.stream.id_set for one in rows))
    lines = [row(row_head("prompt"), cell(prompt))]
    for name, value in flat:
        differs = len(seen[rows[0].method, name]) > 1
        said = text(shown(name, value))
        lines.append(
            row(
                row_head(name),
                f'<td class="t"><b>{said}</b>' if differs else f'<td class="t">{said}',
            )
        )
    caption = f"{text(label)}: settings; bold where rows of the method differ"
    summary = f"{text(label)} <small>on {text(', '.join(id_sets))}</small>"
    return details(summary, table(caption, heads(["Setting", "Value"]), ["".join(lines)]))


def features(entries: Sequence[Entry]) -> str:
    """The digests of all features that the runs saw."""
    found: dict[tuple[str, str, str], int] = {}
    for entry in entries:
        for name, digest in entry.record.digests.items():
            key = (entry.record.settings.encoder, name, digest)
            found[key] = found.get(key, 0) + 1
    ordered = sorted(found, key=lambda key: (key[0], *set_place(key[1]), key[2]))
    body = "".join(
        row(
            row_head(name), cell(encoder), f'<td class="t"><code>{text(digest)}</code>',
            number(str(found[encoder, name, digest])),
        )
        for encoder, name, digest in ordered
    )  # fmt: skip
    names = ["Features", "Encoder", "SHA-256", "Runs"]
    return table(
        "Features that were seen; text/SET also says which of a run’s files are normalised",
        heads(names),
        [body],
    )


def versions(entries: Sequence[Entry]) -> str:
    """By what the runs were made, and when."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for entry in entries:
        record = entry.record
        made_by = ", ".join(f"{name} {v}" for name, v in sorted(record.versions.items()))
        key = (made_by, record.device, record.revision)
        found.setdefault(key, []).append(record.created[:10])
    body = "".join(
        row(
            row_head(made_by), cell(device), cell(revision), cell(min(days)), cell(max(days)),
            number(str(len(days))),
        )
        for (made_by, device, revision), days in sorted(found.items())
    )  # fmt: skip
    names = ["Made by", "Device", "Revision", "First", "Last", "Runs"]
    return table("Versions and devices", heads(names), [body])
