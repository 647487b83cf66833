"""The replay of a pod: at every instant it shows what the table says, by keyboard and by mouse, without a server."""

from __future__ import annotations

import random
from html import unescape
from pathlib import Path

import pandas as pd
import pytest

from ocs.circuits import circuits_of
from sim.build import build_setup
from sim.metrics.pod_story import story_of, story_rows
from sim.report.replay import Replay, replay_data, replay_html
from sim.run_tables import SPECS
from sim.scenario import expand
from sim.studies.delivered import play
from tests.browser import chromium, faults_of_access
from tests.run.cases import MACHINE, loaded
from topology.placement import joined
from topology.shape import parse_shape

DAY_S = 86_400
PAGE = "<!doctype html><html lang='en'><head><title>x</title></head><body><main><h1>x</h1>{}</main></body></html>"


def story(seed: int, fabrics: tuple[str, ...] = ("reconfigurable", "static_aligned"), cubes: int = 8) -> pd.DataFrame:
    """Cubes that run jobs, lose them and stand free, drawn."""
    draw, rows = random.Random(seed), []
    for fabric in fabrics:
        for cube in range(cubes):
            now = draw.randrange(2000)
            while now < 3 * DAY_S:
                what = draw.choice(("running", "running", "restoring", "unusable", "drained", "shared"))
                job = -1 if what in ("drained", "shared") else draw.randrange(40)
                end = now + draw.randrange(60, 40_000)
                rows.append((fabric, 0.99, cube, what, job, float(now), float(end)))
                now = end + draw.choice((0, 0, 5000))
    return pd.DataFrame(rows, columns=["fabric", "host_availability", "cube", "what", "job", "start_s", "end_s"])


def played(days: int = 10) -> dict[str, pd.DataFrame]:
    """The three tables of eight cubes through bad days: twisted slices of two, light and fixed wiring."""
    rows: dict[str, list[dict[str, object]]] = {}
    for point in expand(
        loaded(MACHINE, "failures.host.availability=98 %", "sweep={pod.fabric: [reconfigurable, static_aligned]}")
    ):
        setup = build_setup(point.scenario)
        place = {"fabric": setup.fabric.value, "host_availability": 0.98}
        trace = play(setup, 128, 0, days * DAY_S * 1_000_000)
        for name, found in story_rows(story_of(trace, 10**9), 128).items():
            rows[name] = rows.get(name, []) + [place | row for row in found]
    return {name: SPECS[name].make(found) for name, found in rows.items()}


def shown_at(table: pd.DataFrame, fabric: str, cube: int, time_s: int) -> tuple[str, int] | None:
    """State and job of a cube at an instant, looked up row by row."""
    own = table[(table["fabric"] == fabric) & (table["cube"] == cube)]
    now = own[(own["start_s"] <= time_s) & (time_s < own["end_s"])]
    return None if now.empty else (str(now["what"].iloc[0]), int(now["job"].iloc[0]))


def test_nothing_where_there_is_no_story() -> None:
    """Goal: no empty frame on pages of other runs. Method: no table."""
    assert replay_html({}, (4, 4, 4)) == ""


def test_the_numbers_are_those_of_the_table() -> None:
    """Goal: every stretch is there, in order. Method: the data of the page against the table; halls that do not fit."""
    table = story(1)
    data = replay_data(replay_html({"cube_story": table}, (2, 2, 2)))
    assert data["hall"] == [2, 2, 2]
    assert [each["name"] for each in data["stories"]] == ["reconfigurable", "static aligned"]
    for fabric, told in zip(("reconfigurable", "static_aligned"), data["stories"], strict=True):
        own = table[table["fabric"] == fabric]
        assert sum(end - start for *_, start, end in told["rows"]) == int((own["end_s"] - own["start_s"]).sum())
        assert [row[3] for row in told["rows"]] == sorted(row[3] for row in told["rows"])
    for hall in (None, (1, 1, 2), (2, 2)):
        assert replay_data(replay_html({"cube_story": table}, hall))["hall"] == [1, 1, 8]
    assert replay_data(replay_html({"cube_story": story(2, cubes=20)}, None))["hall"] == [1, 3, 8]


def test_the_page_knows_every_slice_and_switch() -> None:
    """Goal: a page shows the circuits of the log. Method: the numbers of the page against the tables, and the rings of
    its shapes against the circuits that `ocs` makes of them."""
    tables = played()
    data = replay_data(replay_html(tables, (2, 2, 2)))
    light, fixed = data["stories"]
    assert (light["light"], fixed["light"], fixed["switches"]) == (True, False, [])
    slices = tables["slice_story"].query("fabric == 'reconfigurable'").sort_values(["start_s", "job"], kind="stable")
    assert len(light["slices"]) == len(slices) > 8
    for told, row in zip(light["slices"], slices.to_dict("records"), strict=True):
        assert [told[0], data["shapes"][told[1]]["name"], told[2], told[4]] == [
            row["job"], row["shape"], round(row["start_s"]), round(row["end_s"])
        ]  # fmt: skip
        cubes = told[5:]
        assert " ".join(map(str, cubes)) == row["cubes"]
        rings = data["shapes"][told[1]]["next"]
        joins = {(dimension * 16 + position, cube, cubes[rings[dimension][place]])
                 for dimension in range(3) for position in range(16) for place, cube in enumerate(cubes)}  # fmt: skip
        assert joins == set(map(tuple, circuits_of(joined(parse_shape(row["shape"]), cubes)).tolist()))
    assert len(light["switches"]) == len(tables["switch_story"]) > 4
    assert "Slices of 128 chips" in replay_html(tables, None)


def test_a_story_that_was_cut_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: no hall of free cubes after the end of what is kept. Method: a limit of as many stretches as there are."""
    tables = played()
    assert [each["end"] for each in replay_data(replay_html(tables, None))["stories"]] == [0, 0]
    few = len(tables["cube_story"].query("fabric == 'reconfigurable'"))
    monkeypatch.setattr("sim.report.replay.STRETCHES_MAX", few)
    first, _ = replay_data(replay_html(tables, None))["stories"]
    assert first["end"] == 10 * DAY_S


def test_words_of_a_plug_in_can_not_break_out() -> None:
    """Goal: a page shows what it is given, and runs none of it. Method: a fabric and a state with markup in them."""
    table = story(3, ("</script><script>alert(1)</script>",))
    table["what"] = "<b>odd</b>"
    page = replay_html({"cube_story": table}, None)
    assert "<script>alert" not in page
    assert "<b>odd" not in page


def test_in_a_notebook() -> None:
    """Goal: the same replay inline, apart from the notebook's own scripts. Method: the frame's text, unescaped."""
    replay = Replay(replay_html({"cube_story": story(6)}, (2, 2, 2)))
    frame = replay._repr_html_()
    assert frame.startswith("<iframe ")
    inside = unescape(frame.split('srcdoc="')[1].split('"')[0])
    assert str(replay) in inside
    assert "no cubes over time" in Replay("")._repr_html_()


@pytest.mark.slow
def test_in_a_browser(tmp_path: Path) -> None:
    """Goal: cubes show what they do at each instant; keys, buttons and faults of access. Method: chromium, two widths;
    40 drawn instants and every cube against the table."""
    table, file = story(4), tmp_path / "replay.html"
    file.write_text(PAGE.format(replay_html({"cube_story": table}, (2, 2, 2))), encoding="utf-8")
    draw = random.Random(5)
    with chromium() as browser:
        for width, scheme in ((1280, "light"), (400, "dark")):
            view = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
            told: list[str] = []
            view.on("console", lambda message, told=told: told.append(message.text))
            view.on("pageerror", lambda error, told=told: told.append(str(error)))
            view.goto(file.as_uri())
            assert view.evaluate("document.documentElement.scrollWidth") <= width
            assert faults_of_access(view) == []
            for number, fabric in enumerate(("reconfigurable", "static_aligned")):
                view.locator("[data-part=story]").select_option(str(number))
                for time_s in draw.sample(range(3 * DAY_S), 20):
                    view.evaluate(
                        "time => { const bar = document.querySelector('[data-part=time]');"
                        " bar.value = time; bar.dispatchEvent(new Event('input')); }",
                        time_s,
                    )
                    labels = view.evaluate(
                        "[...document.querySelectorAll('.cube')].map(key => [+key.dataset.cube, key.ariaLabel])"
                    )
                    assert len(labels) == 8
                    for cube, label in labels:
                        assert label == f"cube {cube}: {words(shown_at(table, fabric, cube, time_s))}", time_s
            view.locator("[data-part=next]").click()
            first = view.locator("[data-part=clock]").inner_text()
            assert first.startswith("day ")
            view.locator("[data-part=back]").click()
            assert view.locator("[data-part=clock]").inner_text() != first
            view.locator(".cube[data-cube='0']").focus()
            view.keyboard.press("ArrowRight")
            view.keyboard.press("Enter")
            assert view.locator("[data-part=past] strong").inner_text().startswith("Cube ")
            assert view.locator(".cube[aria-pressed=true]").count() == 1
            view.locator("[data-part=play]").click()
            assert view.locator("[data-part=play]").inner_text() == "Pause"
            view.locator("[data-part=play]").click()
            assert faults_of_access(view) == []
            assert told == []


LEAP = (
    "time => { const bar = document.querySelector('[data-part=time]');"
    " bar.value = time; bar.dispatchEvent(new Event('input')); }"
)


@pytest.mark.slow
def test_light_in_a_browser(tmp_path: Path) -> None:
    """Goal: a slice's circuits, switch by switch, by mouse, keys and ear. Method: chromium and axe at two widths; drawn
    instants, slices and switches against the circuits that `ocs` makes, and switches that are out against the table."""
    tables, file, draw = played(), tmp_path / "replay.html", random.Random(6)
    file.write_text(PAGE.format(replay_html(tables, (2, 2, 2))), encoding="utf-8")
    slices, out = tables["slice_story"].query("fabric == 'reconfigurable'"), tables["switch_story"]
    moments = [
        round(row.lit_s + draw.random() * (row.end_s - row.lit_s))
        for row in slices.sample(3, random_state=1).itertuples()
    ]
    moments += [round((row.start_s + row.end_s) / 2) for row in out.sample(2, random_state=1).itertuples()]
    with chromium() as browser:
        for width, scheme in ((1280, "light"), (400, "dark")):
            view = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
            told: list[str] = []
            view.on("pageerror", lambda error, told=told: told.append(str(error)))
            view.goto(file.as_uri())
            for time_s in moments:
                view.evaluate(LEAP, time_s)
                now = slices[(slices["lit_s"].round() <= time_s) & (time_s < slices["end_s"].round())]
                options = view.locator("[data-part=slice] option")
                assert len(now) <= options.count() - 1
                for row in now.itertuples():
                    view.locator("[data-part=slice]").select_option(str(row.job))
                    cubes = list(map(int, str(row.cubes).split()))
                    circuits = circuits_of(joined(parse_shape(str(row.shape)), cubes))
                    switch = draw.randrange(48)
                    view.locator(f".switch[data-switch='{switch}']").click()
                    own = [(plus, minus) for number, plus, minus in circuits.tolist() if number == switch]
                    lines = view.locator("[data-part=circuits] li").all_text_contents()
                    assert lines == [f"+ of cube {a} (port {a}) to - of cube {b} (port {b + 8})" for a, b in own]
                    heard = view.locator("[data-part=ports]").get_attribute("aria-label")
                    assert f"job {row.job} holds + ports {', '.join(str(a) for a, _ in own)} and - ports" in heard
                    assert view.locator(".ports i.same").count() == 2 * len(cubes)
                dead = out[(out["start_s"].round() <= time_s) & (time_s < out["end_s"].round())]
                assert view.locator(".switch.dead").count() == len(dead)
                for row in dead.itertuples():
                    heard = view.locator(f".switch[data-switch='{row.switch}']").get_attribute("aria-label")
                    assert heard.endswith(f"; {row.what}")
            assert faults_of_access(view) == []
            view.locator(".switch[data-switch='0']").focus()
            view.keyboard.press("ArrowDown")
            view.keyboard.press("ArrowRight")
            view.keyboard.press("Enter")
            assert view.locator("[data-part=switchtold]").inner_text().startswith("Switch 17 (axis y, position 1)")
            view.locator("[data-part=story]").select_option("1")
            assert "no switches" in view.locator("[data-part=lighttold]").inner_text()
            assert view.evaluate("document.documentElement.scrollWidth") <= width
            assert faults_of_access(view) == []
            assert told == []


def words(found: tuple[str, int] | None) -> str:
    """A state as the replay tells it."""
    if found is None:
        return "free"
    what, job = found
    return what + (f", job {job}" if job >= 0 else "")
