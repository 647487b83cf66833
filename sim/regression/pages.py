"""Verdicts for CI: JUnit XML, Markdown, and benchmark JSON (name, unit, value, range)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from sim.files import write_whole
from sim.metrics.intervals import mean_estimate
from sim.regression.judging import Judged, Verdict
from sim.regression.wording import count_text, difference_words, line_of, need_words, place_text, told, values_text

_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
MOST_ROWS = 200
"""Rows of a Markdown table: comments of CI are bounded."""


@dataclass(frozen=True, kw_only=True)
class Pages:
    """Files to write, None for none."""

    junit: Path | None = None
    markdown: Path | None = None
    benchmark: Path | None = None

    def write(self, title: str, rows: Sequence[Judged], notes: Sequence[str], *, strict: bool) -> None:
        """Write those that are asked for; `notes` are said above the table."""
        if self.junit is not None:
            write_whole(self.junit, junit_text(title, rows, notes, strict=strict))
        if self.markdown is not None:
            write_whole(self.markdown, markdown_text(title, rows, notes))
        if self.benchmark is not None:
            write_whole(self.benchmark, benchmark_text(rows))


def junit_text(title: str, rows: Sequence[Judged], notes: Sequence[str], *, strict: bool) -> str:
    """A test case per judged or new measure: a failure, or skipped where inconclusive (a failure with `strict`)."""
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", name=_xml(title))
    failures = skipped = count = 0
    for row in rows:
        if row.verdict is Verdict.NOT_JUDGED:
            continue
        count += 1
        name = _xml(place_text(row.pair) or "run")
        case = ElementTree.SubElement(suite, "testcase", classname=_xml(row.pair.measure), name=name, time="0")
        if row.verdict is Verdict.FAIL or (strict and row.fails_strictly):
            failures += 1
            ElementTree.SubElement(case, "failure", type=row.verdict.value, message=_xml(line_of(row)))
        elif row.verdict is Verdict.INCONCLUSIVE:
            skipped += 1
            ElementTree.SubElement(case, "skipped", message=_xml(line_of(row)))
        elif row.is_changed:
            ElementTree.SubElement(case, "system-out").text = _xml(line_of(row))
    ElementTree.SubElement(suite, "system-out").text = _xml("\n".join(notes))
    for element in (suites, suite):
        for key, number in (("tests", count), ("failures", failures), ("skipped", skipped), ("errors", 0), ("time", 0)):
            element.set(key, str(number))
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def _xml(text: str) -> str:
    """A text without what XML can not hold."""
    return _NOT_XML.sub("?", text)


def markdown_text(title: str, rows: Sequence[Judged], notes: Sequence[str]) -> str:
    """What changed as a table, the worst first, for the summary of a job or a comment."""
    shown = told(rows)
    lines = [f"## {title}", "", f"{count_text(rows) or 'no measure'}.", ""]
    lines += [line for note in notes for line in (_cell(note), "")]
    if shown:
        lines += ["| verdict | measure | where | before -> now | difference | needs |", "| --- " * 6 + "|"]
    for row in shown[:MOST_ROWS]:
        cells = (
            row.verdict.value, row.pair.measure, place_text(row.pair), values_text(row.pair), difference_words(row),
            need_words(row),
        )  # fmt: skip
        lines.append("| " + " | ".join(map(_cell, cells)) + " |")
    if len(shown) > MOST_ROWS:
        lines += ["", f"... and {len(shown) - MOST_ROWS} more."]
    return "\n".join(lines).rstrip() + "\n"


def _cell(text: str) -> str:
    return " ".join(re.sub(r"([|<>`*_\\])", r"\\\1", text).split())


def benchmark_text(rows: Sequence[Judged]) -> str:
    """The values of the second run, for tools that draw benchmarks over commits; `extra` says which way is better."""
    entries = []
    for row in rows:
        series = row.pair.now
        if series is None or not math.isfinite(series.value):
            continue
        own = series.replications[~np.isnan(series.replications)]
        half = mean_estimate(own).half_width if len(own) > 1 else math.nan
        where = f" at {place_text(row.pair)}" if row.pair.place else ""
        entry: dict[str, str | float] = {
            "name": f"{row.pair.measure}{where}", "unit": row.pair.unit, "value": series.value,
            "range": f"± {half:.3g}" if math.isfinite(half) else "",
        }  # fmt: skip
        if row.pair.better:
            entry["extra"] = f"{row.pair.better} is better"
        entries.append(entry)
    return json.dumps(entries, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
