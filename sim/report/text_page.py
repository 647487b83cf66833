"""The report as Markdown: the answer, the availability table, warnings, settings, and links to the pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sim.report.context import is_absent
from sim.report.flows import flows_html, markdown_table, prices_html
from sim.report.sentences import answer_sentences
from sim.report.terminal import table_texts
from sim.report.variants import shown_variants

if TYPE_CHECKING:
    from sim.report.context import ReportContext, Tables
    from sim.report.plots import Picture
    from sim.report.rendering import Rendering


def render_text_page(tables: Tables, context: ReportContext, pictures: Mapping[str, Picture | Rendering]) -> str:
    """One Markdown document; pictures are linked under `plots/`."""
    lines = [f"# {context.name}", "", context.description, ""]
    lines += [f"{text}\n" for text in answer_sentences(tables)]
    lines += ["## Tables", ""]
    for text in table_texts(tables):
        lines += ["```", text, "```", ""]
    for picture in pictures.values():
        lines += [f"## {picture.title}", "", f"![{picture.alt}](plots/{picture.name}.png)", ""]
    if not is_absent(tables, "flows"):
        variants, _ = shown_variants(tables)
        lines += ["## Four flows", ""]
        for label, own in variants:
            lines += [f"With {label}", ""] if label else []
            lines += [line for table in (flows_html(own), prices_html(own)) for line in markdown_table(table)]
    if context.warnings:
        lines += ["## Warnings", "", *(f"- {warning}" for warning in context.warnings), ""]
    lines += ["## Configuration", "", "| setting | value | source |", "| --- | --- | --- |"]
    lines += [f"| {s.label} | {s.value} | {s.mark} |" for s in context.marked_settings()]
    lines += ["", f"opticube {context.version}, seed {context.seed}"]
    return "\n".join(lines) + "\n"
