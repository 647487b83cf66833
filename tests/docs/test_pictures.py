"""The pictures of the pages: small, well formed, for light and dark pages, and what the code draws today."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from sim.report.palette import INK, PAGE_COLOURS
from tests.docs.pages import DOCS
from tests.docs.pictures import DARK, FOLDER, PICTURES, dark, files_of

MOST_BYTES = 200_000
NUMBER = re.compile(r"-?\d+\.\d+")
"""Coordinates: other processors round the last digits of turns in space in other ways."""


def test_pictures_are_small_and_well_formed() -> None:
    """Goal: a clone stays small, every browser shows them. Method: size and XML of each file."""
    files = sorted(FOLDER.iterdir())
    assert [file.name for file in files] == sorted(f"{room}{end}.svg" for room in PICTURES for end in ("", DARK))
    for file in files:
        assert file.stat().st_size < MOST_BYTES
        assert ElementTree.parse(file).getroot().tag == "{http://www.w3.org/2000/svg}svg"


@pytest.mark.parametrize("room", PICTURES)
def test_dark_pages_get_dark_pictures(room: str) -> None:
    """Goal: nobody reads black on black. Method: the dark file is the light one with the colours of dark pages; the
    page shows one or the other, with words for those who see neither."""
    light = (FOLDER / f"{room}.svg").read_text(encoding="utf-8")
    other = (FOLDER / f"{room}-dark.svg").read_text(encoding="utf-8")
    assert other == dark(light)
    assert INK in light
    assert INK not in other
    assert PAGE_COLOURS[INK][1] in other
    page = (DOCS / "rooms" / f"{room}.md").read_text(encoding="utf-8")
    assert f'srcset="../pictures/{room}-dark.svg"' in page
    (alt,) = re.findall(rf'<img alt="([^"]+)" src="\.\./pictures/{room}\.svg">', page)
    assert len(alt) > 80


@pytest.mark.parametrize(
    "room", [pytest.param(room, marks=() if room == "ocs" else pytest.mark.slow) for room in PICTURES]
)
def test_pictures_are_what_the_code_draws(room: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: a picture never shows an older version. Method: draw it again (`make docs` writes them): the same to a
    hundredth of a point."""
    monkeypatch.chdir(tmp_path)
    for name, text in files_of(room).items():
        stored = (FOLDER / name).read_text(encoding="utf-8")
        assert NUMBER.sub("0", text) == NUMBER.sub("0", stored), "run `make docs`"
        drawn, kept = (np.array([float(each) for each in NUMBER.findall(one)]) for one in (text, stored))
        np.testing.assert_allclose(drawn, kept, rtol=0, atol=0.01, err_msg="run `make docs`")
