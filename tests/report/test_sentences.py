"""The answer in plain words: said where it holds, said otherwise where it does not, silent where nothing is known."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from sim.report.context import ReportContext
from sim.report.page import render_page
from sim.report.plots import pictures_of
from sim.report.sentences import answer_sentences, sentence
from sim.report.service_sentences import bigger_words, queue_words, service_lines, size_sentences, smallest_slice_words
from sim.report.terminal import availability_table_text
from tests.report import closed

Tables = dict[str, pd.DataFrame]


def test_the_headline_numbers_of_the_closed_form(tables: Tables) -> None:
    """Goal: the sentence carries the published-size answer. Method: closed forms for C = 64 in, known numbers out."""
    text = sentence(tables)
    assert (
        "three 1024-chip slices 97 % of the time takes 63 / 56 / 51 reconfigurable or 1,424 / 368 / 96 static" in text
    )
    assert "holds 75 % of its chips 97 % of the time, a static one 0 / 0 / 25 %" in text
    assert "At 64 chips wiring changes nothing." in text
    assert "optics give all but 0.3 points of an ideal switch" in text
    assert "at 512 / 1024 / 3072 chips for static slices and at 4096 chips for reconfigurable slices" in text


def test_host_availabilities_are_named_once(tables: Tables) -> None:
    """Goal: no litany. Method: count the mention of the three availabilities."""
    assert sentence(tables).count("hosts up 99.0 / 99.5 / 99.9 %") == 1


def test_claims_turn_when_the_numbers_turn() -> None:
    """Goal: no claim is fixed text. Method: tables in which wiring matters at 64 chips, and not for the promise."""
    availability = closed.availability(hosts=(0.99,))
    small = (availability["slice_chips"] == 64) & (availability["fabric"] == "static_aligned")
    availability.loc[small & (availability["form"] == "expected"), "value"] -= 0.05
    promise = closed.promise(hosts=(0.99,), sizes=(64,))
    promise["cubes"] = pd.array([70] * len(promise), dtype="Int64")
    text = sentence({"availability": availability, "promise": promise})
    assert "wiring changes nothing" not in text.split("At 64 chips")[1]
    assert "At 64 chips reconfigurable wiring gives up to 5.0 points more than static." in text
    assert "takes 70 cubes, reconfigurable or static (hosts up 99.0 %): wiring changes nothing." in text


def test_worse_than_static_is_said_too() -> None:
    """Goal: a loss is reported as a loss. Method: lower the reconfigurable values at the smallest size."""
    availability = closed.availability(hosts=(0.99,))
    rows = (availability["slice_chips"] == 64) & (availability["fabric"] == "reconfigurable")
    availability.loc[rows, "value"] -= 0.02
    assert "gives up to 2.0 points less than static" in sentence({"availability": availability})


def test_unknown_cubes_are_called_unknown() -> None:
    """Goal: a blank is not a number, and no picture. Method: blank one fabric's cubes, then all."""
    promise = closed.promise(hosts=(0.99,), sizes=(64,))
    promise.loc[promise["fabric"] == "static_aligned", "cubes"] = pd.NA
    assert "for static ones this run gives no number" in sentence({"promise": promise})
    promise["cubes"] = pd.array([pd.NA] * len(promise), dtype="Int64")
    assert "is not known here: no closed form holds (`opticube size --scenario`" in sentence({"promise": promise})
    assert pictures_of({"promise": promise}) == []
    assert pictures_of({"promise": closed.promise(hosts=(0.99,), sizes=(64,))}) == ["promise"]


def test_without_tables_the_answer_says_so() -> None:
    """Goal: nothing fails on a bare run. Method: no tables, and empty tables."""
    assert answer_sentences({}) == [
        "Not in this run: no availability curves: the scenario has no `study.availability`."
    ]
    empty = {name: table.iloc[:0] for name, table in closed.all_tables().items()}
    assert answer_sentences(empty) == answer_sentences({})


@pytest.mark.parametrize(
    ("sooner", "dearer", "start"),
    [
        (2.0, 1.5, "bigger slices buy time to first token, not cheaper tokens"),
        (2.0, 0.7, "bigger slices buy time to first token and cheaper tokens"),
        (1.0, 0.7, "bigger slices buy cheaper tokens, not time to first token"),
        (0.8, 1.2, "bigger slices buy neither"),
    ],
)
def test_what_bigger_slices_buy(sooner: float, dearer: float, start: str) -> None:
    """Goal: the statement on big slices is computed. Method: all four outcomes."""
    assert bigger_words(sooner, dearer).startswith(start)


def test_smallest_slices(tables: Tables) -> None:
    """Goal: fits, meets, or neither, in words. Method: the made table, then none meets, then none fits."""
    rows = tables["slice_sizes"]
    rows = rows[rows["service"] == "long_documents"].copy()
    assert smallest_slice_words(rows) == (
        "the smallest slice that fits and meets its limits is 8x8x16, 1,024 chips (its model fits from 4x4x8 on)"
    )
    rows["meets"] = False
    assert smallest_slice_words(rows).startswith("no slice tried meets its limits")
    rows["fits"] = False
    assert smallest_slice_words(rows) == "its model fits none of the slices tried"


def test_queues_are_named_by_their_worst(tables: Tables) -> None:
    """Goal: an overloaded queue is named, with where. Method: shares of windows by verdict."""
    rows = pd.DataFrame(
        [
            {"fabric": fabric, "measure": f"queue_{verdict}", "value": share}
            for fabric, shares in (("reconfigurable", (0, 0, 1)), ("static_aligned", (0.4, 0, 0.6)))
            for verdict, share in zip(("overloaded", "backlogged", "stable"), shares, strict=True)
        ]
    )
    assert queue_words(rows) == "queue overloaded 40 % of the time (static aligned)"
    assert queue_words(rows[rows["fabric"] == "reconfigurable"]) == "queue stable"
    assert queue_words(rows.iloc[:0]) == ""
    assert len(service_lines(tables)) == 2


def test_a_log_without_a_set_availability(tables: Tables) -> None:
    """Goal: runs from logs speak too. Method: host availability NaN everywhere."""
    availability = closed.availability(hosts=(0.99,)).assign(host_availability=np.nan)
    assert "(hosts as logged)" in sentence({"availability": availability})


def test_a_service_that_light_serves_worse(tables: Tables) -> None:
    """Goal: no flattery. Method: take tokens in time from the reconfigurable fabric at one host availability."""
    service = tables["service"].copy()
    mine = (
        (service["service"] == "chat")
        & (service["fabric"] == "reconfigurable")
        & (service["host_availability"] == 0.99)
    )
    service.loc[mine & (service["measure"] == "tokens_in_time"), "value"] = 0.4
    lines = service_lines({"service": service})
    assert "40.0 / 99.8 / 99.8 % reconfigurable" in lines[1]
    assert "worse than static at 99.0 %" in lines[1]
    assert "worse" not in lines[0]


def test_cheapest_slice_is_named(tables: Tables) -> None:
    """Goal: the size on which a token costs least is said. Method: a table whose cheapest row is known."""
    sizes = tables["slice_sizes"]
    name = str(sizes["service"].iloc[0])
    rows = sizes[(sizes["service"] == name) & (sizes["chip_s_per_token"] > 0)]
    cheapest = rows.loc[rows["chip_s_per_token"].idxmin()]
    line = next(text for text in size_sentences(tables) if f"cheapest on {cheapest['shape']}" in text)
    assert f"{int(cheapest['chips']):,} chips" in line


FABRICS = ("reconfigurable", "static_aligned", "static_contiguous", "any_host")
SUBSETS = [subset for count in range(1, 5) for subset in itertools.combinations(FABRICS, count)]
FORMS = [(), ("delivered",), ("guaranteed",), ("delivered", "guaranteed"), ("expected_with_light",)]


def of_fabrics(tables: Tables, fabrics: tuple[str, ...]) -> Tables:
    """The rows of some fabrics in every table that has any."""
    return {
        name: table[table["fabric"].isin(fabrics)].reset_index(drop=True) if "fabric" in table else table
        for name, table in tables.items()
    }


@pytest.mark.parametrize("fabrics", SUBSETS, ids="+".join)
def test_any_fabrics_can_be_spoken_of(tables: Tables, fabrics: tuple[str, ...]) -> None:
    """Goal: whatever is run can be told. Method: every subset of fabrics with every subset of forms gives sentences,
    none of which says that there are no curves, or names a fabric that is not there.
    """
    for forms in FORMS:
        chosen = of_fabrics(tables, fabrics)
        availability = chosen["availability"]
        chosen["availability"] = availability[availability["form"].isin(("expected", *forms))]
        text = sentence(chosen)
        assert "Not in this run" not in text
        assert ("delivered" not in forms) or "-chip jobs get" in text
        assert ("guaranteed" not in forms) or "-chip slices a" in text
        for fabric, word in (("reconfigurable", "reconfigurable"), ("any_host", "ideal switch")):
            assert fabric in fabrics or word not in text.replace("for reconfigurable ones", "")
        assert {"static_aligned", "static_contiguous"} & set(fabrics) or "static" not in text.replace("for static", "")


def swept(tables: Tables, key: str, values: tuple[str, ...]) -> Tables:
    """Every table once per value of a swept key, with that key as a further column."""
    return {
        name: pd.concat([table.assign(**{key: value}) for value in values], ignore_index=True)
        for name, table in tables.items()
    }


def test_other_swept_keys_are_told_one_by_one(tables: Tables) -> None:
    """Goal: no row hides another. Method: sweep a key that no table has a place for; shift the second value's shares;
    both are printed, each under its own label, in sentences, terminal and page.
    """
    both = swept(tables, "health.detection", ("60 s", "2 h"))
    second = both["availability"]["health.detection"] == "2 h"
    both["availability"].loc[second, "value"] /= 2
    text = sentence(both)
    assert text.count("With health.detection 60 s: ") == text.count("With health.detection 2 h: ") == 1
    assert text.split("With health.detection 2 h: ")[0] == f"With health.detection 60 s: {sentence(tables)} "
    table = availability_table_text(both)
    assert "With health.detection 2 h:" in table
    assert availability_table_text(tables) in table
    page = render_page(both, ReportContext(name="swept"), {})
    assert all(f"With health.detection {value}: Availability of slices" in page for value in ("60 s", "2 h"))


def test_keys_that_the_tables_show_are_not_told_again(tables: Tables) -> None:
    """Goal: no litany. Method: a swept key that is known from the host availability leaves everything as it was."""
    known = {
        name: table.assign(rate=table["host_availability"].astype(str)) if "host_availability" in table else table
        for name, table in tables.items()
    }
    assert answer_sentences(known) == answer_sentences(tables)
    assert availability_table_text(known) == availability_table_text(tables)


def test_many_swept_keys_are_counted(tables: Tables) -> None:
    """Goal: the terminal is not flooded. Method: twenty values give eight blocks and a count of the others."""
    text = sentence(swept(tables, "run.seed", tuple(map(str, range(20)))))
    assert text.count("With run.seed ") == 8
    assert text.endswith("12 more combinations of the swept keys are in the tables and in summary.csv.")
