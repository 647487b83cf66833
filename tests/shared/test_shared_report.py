"""What a shared pod says of itself: sentences, tables, picture, from tables made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from sim.report.alt_texts import alt_text
from sim.report.shared_pictures import shared_pod_day
from sim.report.shared_tables_html import shared_pod_html, shared_waits_html
from sim.report.shared_words import shared_pod_sentences, shared_pod_text
from sim.run_tables import make_table

PLACE = {"fabric": "reconfigurable", "host_availability": 0.995}
MACHINES = {"shared": 64, "fixed": 64, "fixed_equal_money": 66}


def by_hand() -> dict[str, pd.DataFrame]:
    """A shared pod that trains 60,000 chip-hours a day, divided ones 40,000 and 48,000."""
    rows: dict[str, list[dict[str, Any]]] = {"shared_pod": [], "shared_pod_waits": [], "shared_pod_differences": []}
    trained = dict(zip(MACHINES, (60_000.0, 40_000.0, 48_000.0), strict=True))
    for machine, cubes in MACHINES.items():
        at = {"machine": machine, "cubes": cubes, "n": 4, "better": "higher"}
        values = [("chat", "pod_tokens_in_time", "1", 0.99), ("chat", "pod_start_mean_s", "s", 300.0)]
        values.append(("chat", "pod_usd_per_million_tokens", "USD", cubes / 100))
        for service, measure, unit, value in [
            *values,
            (None, "training_chip_hours_per_day", "chip h/day", trained[machine]),
        ]:
            rows["shared_pod"].append(
                PLACE | at | {"service": service, "measure": measure, "unit": unit, "value": value}
                | {"ci_low": 0.9 * value, "ci_high": 1.1 * value}
            )  # fmt: skip
        causes = {"no_cube": 0.0, "drain": 100.0, "circuits": 10.0, "preflight": 600.0, "weights": 290.0, "move": 0.0,
                  "detecting": 0.0, "evicting": 0.0}  # fmt: skip
        rows["shared_pod_waits"] += [
            PLACE
            | {"machine": machine, "service": "chat", "cause": cause, "seconds_per_day": spent, "share": spent / 1e3}
            for cause, spent in causes.items()
        ]
        if machine != "shared":
            gained = 60_000 - trained[machine]
            for service, measure, more in (
                ("chat", "pod_tokens_in_time", -0.0002),
                (None, "training_chip_hours_per_day", gained),
            ):
                rows["shared_pod_differences"].append(
                    PLACE | {"machine": "shared", "against": machine, "service": service, "measure": measure}
                    | {"difference": more, "ci_low": more - 400, "ci_high": more + 400, "replications": 4}
                )  # fmt: skip
    rows["shared_pod_day"] = [
        PLACE
        | {"machine": machine, "service": "chat", "time_s": 600.0 * look, "demand_per_s": 100.0 + look}
        | {"replicas_wanted": 10.0, "replicas_up": 9.0 + (look > 5), "training_cubes": 30.0, "cubes_out": 1.0}
        | {"serving_losses": float(look == 5), "training_losses": 0.0}
        for machine in MACHINES
        for look in range(12)
    ]
    return {name: make_table(name, found, {}) for name, found in rows.items()}


def test_sentences_are_computed() -> None:
    """Goal: the words bear the numbers. Method: relative gains with their half-widths by hand: 20,000 and 12,000 of
    40,000 and 48,000 chip-hours; causes of at least 5 % of the waiting, the largest first."""
    same, money, tokens, waits = shared_pod_sentences(by_hand())
    assert "A million tokens in time of chat cost 0.64 USD shared, 0.64 USD divided" in tokens
    assert "0.66 USD divided, equal money" in tokens
    assert "64 cubes give +50.0±1.0 % useful training over as many cubes" in same
    assert "99 % of the tokens in time, -0.02" in same
    assert "give +25.0±0.8 % useful training over the 66 cubes that the same money buys without light" in money
    assert waits.endswith("60 % preflight, 29 % weights and start and 10 % a job that saves and makes way.")
    assert "up 5 min after it is wanted" in waits


def test_tables_have_a_column_per_machine() -> None:
    """Goal: machines stand side by side. Method: heads and one row, in the terminal and on the page."""
    tables = by_hand()
    text = shared_pod_text(tables)
    assert "shared (64 cubes)" in text
    assert "divided, equal money (66 cubes)" in text
    page = shared_pod_html(tables)
    assert page.heads[1:] == ["shared (64 cubes)", "divided (64 cubes)", "divided, equal money (66 cubes)"]
    row = next(row for row in page.rows if row[0].startswith("useful training"))
    assert row[1:] == ["60,000±6,000", "40,000±4,000", "48,000±4,800"]
    waits = shared_waits_html(tables)
    assert ["preflight", *["600 (60 %)"] * 3] in waits.rows


def test_the_day_is_drawn_and_described() -> None:
    """Goal: the picture shows what the table holds. Method: three panels, a line per machine with the table's values,
    losses marked at their looks; words for those who do not see it."""
    tables = by_hand()
    for narrow in (False, True):
        demand, replicas, cubes = shared_pod_day(tables, narrow=narrow)
        assert np.asarray(demand.lines[0].get_ydata()).tolist() == [100.0 + look for look in range(12)]
        labels = [str(line.get_label()) for line in replicas.lines]
        assert labels == ["wanted", "up, shared", "up, divided", "up, divided, equal money", "losses"]
        assert np.asarray(replicas.lines[1].get_ydata()).tolist() == [9.0] * 6 + [10.0] * 6
        assert np.asarray(replicas.lines[4].get_xdata()).tolist() == [3000.0 / 3600]
        assert "losses" not in [line.get_label() for line in cubes.lines]
    told = alt_text("shared_day", tables)
    assert "between 9 and 10 up" in told
    assert "1 losses of replicas" in told
