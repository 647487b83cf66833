"""No link of any page of the project leads nowhere."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from tests.docs.pages import FENCE, ROOT

LINK = re.compile(r"\[[^\]]*\]\(([^()\s]+(?:\([^()\s]*\))?)\)|(?:src|srcset|href)=\"([^\"]+)\"")
HEADING = re.compile(r"^#{1,6} +(.*?) *#*$", re.M)
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@cache
def anchors_of(page: Path) -> frozenset[str]:
    """What GitHub makes of the headings of a page: lower case, no punctuation, dashes, numbers for the second."""
    found: list[str] = []
    for heading in HEADING.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        plain = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()).replace(" ", "-")
        again = sum(re.sub(r"-\d+$", "", other) == plain for other in found)
        found.append(f"{plain}-{again}" if again else plain)
    return frozenset(found)


def links_of(page: Path) -> list[str]:
    """Relative links of a page, code left out."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    links = [match[1] or match[2] for match in LINK.finditer(text)]
    return [link for link in links if not re.match(r"[a-z]+:", link)]


def dead_links(page: Path, root: Path = ROOT) -> list[str]:
    """Relative links of a page that lead to no file within `root`, or to no heading."""
    dead = []
    for link in links_of(page):
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        inside = target.is_relative_to(root) and target.exists()
        if not inside or (anchor and (target.suffix != ".md" or anchor not in anchors_of(target))):
            dead.append(f"{page.relative_to(root)}: {link}")
    return dead


def test_no_link_is_dead() -> None:
    """Goal: every link leads somewhere. Method: every relative link of every page, with its heading."""
    assert len(PAGES) > 10
    assert [dead for page in PAGES for dead in dead_links(page)] == []


def test_dead_links_are_found(tmp_path: Path) -> None:
    """Goal: the look itself works. Method: a page with good and bad links to files and headings."""
    page, other = tmp_path / "a.md", tmp_path / "b.md"
    other.write_text("# Two words, and `code_x`\n\n## Again\n\n## Again\n")
    good = ["b.md", "b.md#two-words-and-code_x", "b.md#again-1", "#here", "https://example.org/none"]
    bad = ["c.md", "b.md#three-words", "#there", "../b.md", "b.md#again-2"]
    page.write_text("# Here\n" + "\n".join(f"[x]({link})" for link in [*good, *bad]) + "\n```\n[x](none.md)\n```\n")
    assert dead_links(page, tmp_path) == [f"a.md: {link}" for link in bad]


def test_every_page_is_reached_from_the_readme() -> None:
    """Goal: nobody has to guess that a page is there. Method: follow the links from the README on."""
    reached, waiting = set[Path](), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md" or not page.exists():
            continue
        reached.add(page)
        waiting += [(page.parent / link.partition("#")[0]).resolve() for link in links_of(page)]
    assert [str(page.relative_to(ROOT)) for page in PAGES if page not in reached] == []
