"""A finished picture as texts and bytes, which travel between processes as figures do not."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Rendering:
    """A picture for wide and narrow pages as SVG, the wide one as PNG too; `alt` says what it shows in words."""

    name: str
    title: str
    alt: str
    wide_svg: str
    narrow_svg: str | None
    wide_png: bytes
