"""The sections of a report, in order: words, tables and the name of a picture, for every form of report."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from sim.report import html_tables as tables_of_page
from sim.report.context import ReportContext, Tables, absence, is_absent, table_of
from sim.report.effect_words import HEADS, effect_cells, effect_services
from sim.report.fleet_words import one_queue_sentences, own_queue_sentences
from sim.report.flows import flows_html, prices_html
from sim.report.html_tables import HtmlTable
from sim.report.ideal_words import ideal_html
from sim.report.money_words import money_lines
from sim.report.operations_tables import (
    differences_html,
    failures_felt_html,
    job_profiles_html,
    job_sizes_html,
    large_job_html,
    operations_differences,
    operations_html,
    promise_months_html,
)
from sim.report.pass_html import errors_html, grid_html, times_html
from sim.report.pass_words import about_passes_alone, has_several
from sim.report.replay import replay_html
from sim.report.service_sentences import size_sentences
from sim.report.shared_tables_html import fleet_html, fleet_queues_html, shared_pod_html, shared_waits_html
from sim.report.shared_words import shared_pod_sentences
from sim.report.token_html import floor_html, traffic_html
from sim.report.token_words import floor_sentences, life_sentences, traffic_sentences
from sim.report.variants import Variant, opening, shown_variants, variants_of
from sim.report.waterfall_words import waterfall_html, waterfall_lines
from sim.report.words import category_words, seconds


@dataclass(frozen=True, kw_only=True)
class Section:
    """One section: heading, words, a picture, tables; `absent` says why it is empty.

    `shows` is the name of its picture, `label` the combination of swept keys that the picture is of; `live` is HTML.
    """

    ident: str
    heading: str
    words: list[str] = field(default_factory=list)
    tables: list[HtmlTable] = field(default_factory=list)
    absent: str = ""
    shows: str = ""
    label: str = ""
    live: str = ""

    def has_something(self, pictures: Container[str]) -> bool:
        """Whether there is anything under its heading where these pictures are drawn: some show a picture alone."""
        return bool(self.absent or self.words or self.tables or self.live) or self.shows in pictures

    @property
    def words_with_picture(self) -> list[str]:
        """Its words where its picture is there: they tell of which combination that is."""
        first = f"The picture shows the first combination of the swept keys: {self.label}."
        return [*self.words, first] if self.label else self.words


def sections_of(tables: Tables, context: ReportContext) -> list[Section]:
    """All sections of a run, those that say what it has not among them."""
    section: MakeSection = partial(_section, tables, *shown_variants(tables))
    sections = [
        *([] if is_absent(tables, "effects") else [_effects(tables)]),
        *([] if is_absent(tables, "disturbance") else [_SLOWED]),
        section("availability-table", "Availability, the table", "availability", "", _availability),
        section("curves", "Availability over slice size", "availability", "availability"),
        *([] if is_absent(tables, "waterfall") else [_waterfall(section)]),
        section("promises", "What a promise takes", "promise", "promise", _promises),
        section("failure", "Tokens through a failure", "failure_story", "failure"),
        section("slice-sizes", "What a bigger slice buys", "slice_sizes", "slice_sizes", _slice_sizes),
        section("services", "Services", "service", "", _services),
        *_load(tables, section),
        *_tokens(tables, section),
        section("ledgers", "Where the seconds of a request go", "ledger", "ledger", _ledgers),
        section("chip-hours", "What the chips did", "chip_hours", "chip_hours", _chip_hours),
        *_operations(section),
        *([] if is_absent(tables, "fleet") else _several_pods(section)),
        *_replay(tables, context),
        *([] if is_absent(tables, "shared_pod") else _shared_pod(section)),
        *([] if is_absent(tables, "ideal") else [section("ideal", "Avoidable causes", "ideal", "", _ideal)]),
        section("flows", "Four flows", "flows", "", _flows),
    ]
    passes = _passes(section, tables)
    return passes if about_passes_alone(tables) else [*sections, *passes]


def facts_of(context: ReportContext) -> list[str]:
    """Version, seed and run time, as far as they are known."""
    facts = [f"opticube {context.version}"] if context.version else ["opticube"]
    if context.seed is not None:
        facts.append(f"seed {context.seed}")
    if context.wall_time_s is not None:
        facts.append(f"ran for {seconds(context.wall_time_s)}")
    return facts


Fill = Callable[[Tables], tuple[list[str], list[HtmlTable]]]


MakeSection = Callable[..., Section]


def _nothing(tables: Tables) -> tuple[list[str], list[HtmlTable]]:
    return [], []


def _section(
    tables: Tables,
    variants: Sequence[Variant],
    left: str,
    ident: str,
    heading: str,
    table: str,
    picture: str,
    fill: Fill = _nothing,
) -> Section:
    """A section about one table; `picture` is the name of its picture, or empty."""
    if is_absent(tables, table):
        return Section(ident=ident, heading=heading, absent=absence(table))
    words: list[str] = []
    shown: list[HtmlTable] = []
    filled_by_label = [(label, *fill(own)) for label, own in variants]
    if all(filled[1:] == filled_by_label[0][1:] for filled in filled_by_label):  # what is swept does not show here
        filled_by_label, left = [("", *filled_by_label[0][1:])], ""
    same = [each for each in filled_by_label[0][2] if all(each in filled for *_, filled in filled_by_label)]
    for label, said, filled in filled_by_label:
        words += [f"{opening(label)}{text}" for text in said]
        shown += [replace(each, caption=f"{opening(label)}{each.caption}") for each in filled if each not in same]
    shown += same  # tables in which what is swept does not show: once
    return Section(
        ident=ident,
        heading=heading,
        words=[*words, left] if left else words,
        tables=shown,
        shows=picture,
        label=variants[0].label,
    )


def _availability(tables: Tables) -> tuple[list[str], list[HtmlTable]]:
    return [], [tables_of_page.availability_html(tables)]


def _promises(tables: Tables) -> tuple[list[str], list[HtmlTable]]:
    shown = [tables_of_page.promise_html(tables)]
    if not is_absent(tables, "cliff"):
        shown.append(tables_of_page.cliff_html(tables))
    return [], shown


def _slice_sizes(tables: Tables) -> tuple[list[str], list[HtmlTable]]:
    return size_sentences(tables), [tables_of_page.slice_sizes_html(tables)]


def _services(tables: Tables) -> tuple[list[str], list[HtmlTable]]:
    return [], [tables_of_page.service_html(tables)]


def _ledgers(tables: Tables) -> tuple[list[str], list[HtmlTable]]:
    scopes = [scope for scope in ("all", "caught") if (table_of(tables, "ledger")["scope"] == scope).any()]
    return [], [tables_of_page.ledger_html(tables, scope) for scope in scopes]


def _chip_hours(tables: Tables) -> tuple[list[str], list[HtmlTable]]:
    return [], [tables_of_page.chip_hours_html(tables)]


def _waterfall(section: MakeSection) -> Section:
    title = "From the peak to tokens in time"
    return section("waterfall", title, "waterfall", "waterfall", _waterfall_tables)


def _waterfall_tables(tables: Tables) -> tuple[list[str], list[HtmlTable]]:
    return waterfall_lines(tables), [waterfall_html(tables)]


def _ideal(tables: Tables) -> tuple[list[str], list[HtmlTable]]:
    return [], [ideal_html(tables)]


def _flows(tables: Tables) -> tuple[list[str], list[HtmlTable]]:
    return money_lines(tables), [flows_html(tables), prices_html(tables)]


def _load(tables: Tables, section: MakeSection) -> list[Section]:
    """How latencies are spread, and what happens as requests come faster; only in runs that have them."""
    curve = section("goodput", "Requests in time over the rate", "load_curve", "goodput", _load_curve)
    spread = section("latencies", "How latencies are spread", "latencies", "latencies")
    return [each for each in (curve, spread) if not each.absent]


def _load_curve(tables: Tables) -> tuple[list[str], list[HtmlTable]]:
    return [], [tables_of_page.load_curve_html(tables)]


def _tokens(tables: Tables, section: MakeSection) -> list[Section]:
    """What a token moves and takes, and one request token by token; only in runs that have them."""
    return [
        section(ident, heading, table, ident, fill)
        for ident, heading, table, fill in (
            ("traffic", "What a token moves through each memory", "traffic", _traffic),
            ("floor", "Time per token over chips, down to its floor", "token_floor", _floor),
            ("life", "One request, token by token", "request_life", lambda own: (life_sentences(own), [])),
        )
        if not is_absent(tables, table)
    ]


_SLOWED = Section(ident="disturbance", heading="Through a slowdown", shows="disturbance")


def _effects(tables: Tables) -> Section:
    """How combinations of swept values compare: of the whole run, whatever else is shown of single ones."""
    shown = [
        HtmlTable(
            caption=f"{category_words(service).capitalize()}, {measure}: combinations with paired 95 % intervals",
            heads=list(HEADS),
            rows=[effect_cells(measure, row) for row in rows],
        )
        for service, (measure, rows) in effect_services(tables).items()
    ]
    return Section(ident="effects", heading="What changes do alone and together", tables=shown, shows="effects")


def _traffic(tables: Tables) -> tuple[list[str], list[HtmlTable]]:
    return traffic_sentences(tables), [traffic_html(tables)]


def _floor(tables: Tables) -> tuple[list[str], list[HtmlTable]]:
    return floor_sentences(tables), [floor_html(tables)]


def _operations(section: MakeSection) -> list[Section]:
    """The sections of a pod in operation; one that says so where the run has none."""
    large = section("large-job", "One very large job", "large_job", "", lambda own: ([], [large_job_html(own)]))
    first = section("operations", "A pod in operation", "operations", "", _operations_tables)
    shown = [] if large.absent else [large]
    if first.absent:
        return shown or [first]
    pictures = [
        section("operations-chips", "Its chip-hours", "operations_chip_hours", "operations"),
        section("cubes", "Its cubes over time", "cube_story", "cubes"),
        section("recovery", "A recovery, stage by stage", "recovery_stages", "recovery"),
    ]
    return [
        first,
        *pictures,
        *shown,
        section("wait", "Wait over load", "operations", "wait"),
    ]


def _replay(tables: Tables, context: ReportContext) -> list[Section]:
    live = replay_html(variants_of(tables)[0].tables, context.hall)
    return [Section(ident="replay-of-the-pod", heading="The pod, replayed", live=live)] if live else []


def _passes(section: MakeSection, tables: Tables) -> list[Section]:
    """The sections of single passes; only in runs that asked for them."""
    pictures = [name for name, column in PASS_PICTURES if has_several(tables, column)]
    sections = [
        section("measured-times", "Beside measured times", "measured_times", "measured_times", _measured_times),
        *(section(name, DRAWN_OF_PASSES[name], "passes", name) for name in pictures),
        section("passes", "Passes, the table", "passes", "", lambda own: ([], [grid_html(own)])),
    ]
    return [each for each in sections if not each.absent]


PASS_PICTURES = (("models", "model"), ("contexts", "context_tokens"))
DRAWN_OF_PASSES = {"models": "Models by size", "contexts": "A token over the context"}


def _measured_times(tables: Tables) -> tuple[list[str], list[HtmlTable]]:
    return [], [errors_html(tables), times_html(tables)]


def _several_pods(section: MakeSection) -> list[Section]:
    """The sections of several pods; that of one queue only where it was asked for."""
    sections = [
        section("fleet", "Several pods", "fleet", "", lambda own: ([*own_queue_sentences(own)], [fleet_html(own)])),
        section("one-queue", "Several pods behind one queue", "fleet_queues", "fleet_waits", _one_queue),
    ]
    return [each for each in sections if not each.absent]


def _one_queue(tables: Tables) -> tuple[list[str], list[HtmlTable]]:
    return [*one_queue_sentences(tables)], [fleet_queues_html(tables)]


def _shared_pod(section: MakeSection) -> list[Section]:
    """The sections of a pod that serves and trains; only in runs that asked for it."""
    return [
        section("shared-pod", "A pod that serves and trains", "shared_pod", "", _shared_tables),
        section("shared-day", "Two days of it", "shared_pod_day", "shared_day"),
    ]


def _shared_tables(tables: Tables) -> tuple[list[str], list[HtmlTable]]:
    return [*shared_pod_sentences(tables)], [shared_pod_html(tables), shared_waits_html(tables)]


def _operations_tables(tables: Tables) -> tuple[list[str], list[HtmlTable]]:
    shown = [operations_html(tables)]
    shown += [] if operations_differences(tables).empty else [differences_html(tables)]
    shown += [] if is_absent(tables, "promise_months") else [promise_months_html(tables)]
    shown += [] if is_absent(tables, "job_sizes") else [job_sizes_html(tables)]
    shown += [] if is_absent(tables, "job_profiles") else [job_profiles_html(tables)]
    return [], shown if is_absent(tables, "failures_felt") else [*shown, failures_felt_html(tables)]
