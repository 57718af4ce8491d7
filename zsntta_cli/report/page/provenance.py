"""How each row came to be: settings in full, the command that repeats it, features, versions."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from zsntta_cli.report.page.entries import Entry, all_settings, set_place
from zsntta_cli.report.page.headline import name_of
from zsntta_cli.report.page.markup import cell, details, heads, number, row, row_head, table, text
from zsntta_cli.report.page.rows import Row
from zsntta_cli.results.frame import shown
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


Said = tuple[tuple[str, Any], ...]  # settings by name


def settings(rows: Sequence[Row]) -> str:
    """All settings: first those that all rows have alike, then of each label what it has besides.

    What differs between the rows of one method is bold.
    """
    cards: dict[tuple[str, Said], list[Row]] = {}
    for one in rows:
        run = one.first.settings
        flat = {"prompt": run.prompt, **all_settings(run)}
        said = tuple((name, value) for name, value in flat.items() if name not in _VARYING)
        cards.setdefault((one.label, said), []).append(one)
    everywhere = set.intersection(*(set(said) for _, said in cards))
    by_method: dict[str, list[set[tuple[str, Any]]]] = {}
    for (_, said), some in cards.items():
        by_method.setdefault(some[0].method, []).append(set(said))
    first = next(iter(cards))[1]
    parts = [_card("All rows", "", [one for one in first if one in everywhere], everywhere)]
    for (label, said), some in cards.items():
        alike = set.intersection(*by_method[some[0].method])
        sets = ", ".join(dict.fromkeys(one.spot.stream.id_set for one in some))
        parts.append(_card(label, f"on {sets}", [x for x in said if x not in everywhere], alike))
    return "".join(parts)


def _card(label: str, where: str, said: Sequence[tuple[str, Any]], alike: set[Any]) -> str:
    """Some settings; those that are not alike in all rows of the method are bold."""
    lines = []
    for name, value in said:
        words = text(shown(name, value))
        words = words if (name, value) in alike else f"<b>{words}</b>"
        lines.append(row(row_head(name), f'<td class="t">{words}'))
    if not lines:
        return f"<p>{text(label)}: no settings of its own.</p>\n"
    summary = f"{text(label)} <small>{text(where)}</small>"
    caption = f"{text(label)}: settings; bold where rows of the method differ"
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
        "Features that were seen; text/SET: class text, logit scale, whether normalised",
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
