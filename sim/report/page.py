"""The report page of a run: one HTML file with everything in it, for any width, light or dark, eye or ear."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup, escape

from sim.report.context import ReportContext, Tables
from sim.report.html_tables import definitions_html, settings_html
from sim.report.palette import PAGE_COLOURS
from sim.report.sections import Section, facts_of, sections_of
from sim.report.sentences import answer_sentences
from sim.report.service_sentences import counted

if TYPE_CHECKING:
    from sim.report.plots import Picture
    from sim.report.rendering import Rendering

LONG_TABLE_ROWS = 14
VERY_LONG_TABLE_ROWS = 60
WIDE_SCALE = 1.25


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A picture as the template needs it."""

    title: str
    alt: str
    wide: Markup
    narrow: Markup | None


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A section with its picture, where there is one, and the words that go with it."""

    section: Section
    words: list[str]
    picture: Drawn | None


def render_page(tables: Tables, context: ReportContext, plots: Mapping[str, Picture | Rendering]) -> str:
    """The page as text. `plots` are the pictures of `plots.draw_pictures`; missing ones are left out and said so."""
    light = {name: colour for colour, (name, _) in PAGE_COLOURS.items()}
    dark = dict(PAGE_COLOURS.values())
    template, answer, sections = _template(), answer_sentences(tables), sections_of(tables, context)
    return template.render(  # pictures come last: they may be drawn elsewhere until now
        context=context,
        facts=facts_of(context),
        answer=answer,
        warnings=list(context.warnings),
        warned=counted(len(context.warnings), "warning"),
        sections=[_shown(each, plots) for each in sections if each.has_something(plots)],
        settings=settings_html(context),
        definitions=definitions_html(tables),
        light=light,
        dark=dark,
        long_table=LONG_TABLE_ROWS,
        very_long_table=VERY_LONG_TABLE_ROWS,
    )


@lru_cache(maxsize=1)
def _template() -> Template:
    text = files("sim.report").joinpath("page.html.j2").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["coded"] = _coded
    environment.filters["tight"] = lambda head: head.replace(" %", "\N{NO-BREAK SPACE}%")
    environment.filters["breaking"] = lambda head: Markup(escape(head).replace("_", Markup("_<wbr>")))
    return environment.from_string(text)


def _coded(text: str) -> Markup:
    """A text with what stands between backticks, a key or a name, as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def _shown(section: Section, plots: Mapping[str, Picture | Rendering]) -> Shown:
    if section.shows not in plots:
        return Shown(section=section, words=section.words, picture=None)
    picture = _drawn(plots[section.shows], section.ident)
    return Shown(section=section, words=section.words_with_picture, picture=picture)


def _drawn(picture: Picture | Rendering, ident: str) -> Drawn:
    narrow = None if picture.narrow_svg is None else Markup(inline_svg(picture.narrow_svg, f"{ident}-n"))
    return Drawn(
        title=picture.title,
        alt=picture.alt,
        wide=Markup(inline_svg(picture.wide_svg, f"{ident}-w", scale=WIDE_SCALE)),
        narrow=narrow,
    )


def inline_svg(svg: str, prefix: str, *, scale: float = 1.0) -> str:
    """An SVG file as an element for a page: no prologue, its own ids, colours as CSS variables with defaults.

    `scale` enlarges it where the page has room for it.
    """
    text = svg[svg.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', text)
    text = re.sub(r'(href="#|url\(#)([^")]+)', rf"\1{prefix}-\2", text)
    for colour, (name, _) in PAGE_COLOURS.items():
        text = text.replace(colour, f"var(--{name}, {colour})")
    width = re.search(r'width="([0-9.]+)pt" height="[0-9.]+pt"', text)
    assert width is not None
    placed = f'aria-hidden="true" focusable="false" style="width: {float(width[1]) * scale:g}pt"'
    return text.replace(width[0], placed, 1)
