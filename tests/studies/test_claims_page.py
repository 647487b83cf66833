"""The page of claims: well formed, complete, and current for all that is decided by direct computation."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.claims.page import CLAIMS, HEAD, claims_page, line_of
from sim.claims.verdicts import Claim, Finding, Verdict, verdict_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "claims.md"


def test_the_page_is_well_formed() -> None:
    """Goal: every claim stands on the page with a verdict. Method: its lines against the registry, in order."""
    text = PAGE.read_text(encoding="utf-8")
    assert text.startswith(HEAD)
    lines = text.removeprefix(HEAD).splitlines()
    assert len(lines) == len(CLAIMS)
    for claim, line in zip(CLAIMS, lines, strict=True):
        statement, verdict, numbers, scenario = (cell.strip() for cell in line.strip("|").split(" | "))
        assert (statement, scenario) == (claim.statement, claim.scenario)
        assert verdict.strip("*") in [each.value for each in Verdict]
        assert any(character.isdigit() for character in numbers)


@pytest.mark.parametrize("claim", [claim for claim in CLAIMS if claim.cheap], ids=lambda claim: claim.decide.__name__)
def test_cheap_claims_are_current(claim: Claim) -> None:
    """Goal: the page says what is computed now. Method: each cheap claim decided again; `make claims` mends it."""
    assert line_of(claim, claim.decide()) in PAGE.read_text(encoding="utf-8").splitlines()


def test_verdicts() -> None:
    """Goal: holds, fails, depends. Method: all cases of two outcomes; a page of one claim."""
    assert verdict_of([True, True]) is Verdict.HOLDS
    assert verdict_of([False, False]) is Verdict.FAILS
    assert verdict_of([True, False]) is Verdict.DEPENDS
    finding = Finding(verdict=Verdict.FAILS, numbers="1 | 2")
    one = Claim(statement="a", scenario="b", decide=lambda: finding, cheap=True)
    assert claims_page([one]).endswith("| a | **fails** | 1 / 2 | b |\n")
