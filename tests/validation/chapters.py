"""All chapters of the page, and what no published number covers."""

from __future__ import annotations

from tests.validation.machine import machine_chapters
from tests.validation.models import model_chapters
from tests.validation.real_logs import log_chapters
from tests.validation.rows import Chapter, page

CLOSING = """## What is not validated

- **Times of recovery.** Detection, eviction, circuits, preflight and restore are assumptions, marked so: no text
  that we know prints them for such machines. Nor are repair times of hosts, cables and switches published for v4.
- **Curves of the published figure** between 64 and 512 chips: its caption and text are met, its plotted values
  could not be read.
- **A pod in operation.** Waits, goodput and fragmentation under policies are held against queueing theory and
  accounts that must close, not against a measured pod. Published goodputs (95 % scheduling, 97 % runtime) lack
  their set-up.
- **Prices and power** are assumptions or quoted figures; no bill of such a machine is published beside the two
  shares.
- **Single operations** (products, all-reduces, attention of three chips) are held against measured times with
  errors of 6 to 15 %, in `tests/workloads/test_operation_times.py` and docs/costs.md.
- **Recalled rows** (R) of Pope et al. agree with themselves, but were seen in no text. Their rows of MT-NLG may
  count 118 layers in place of 105.
- **Chips without a measured pass:** TPU v2, v3, v5p, 7x take the constants of v4; v5e and v6e are checked end to
  end and by single operations only; H200 and H100 beyond two GPUs take shares of the A100.
- **Layouts that gather weights along one or two axes, attention split by heads and batch or by context, experts on
  chips of their own, pipelines on TPUs:** formulas by hand are tested, no published time is.
- **Disaggregation, prefix sharing, swap, priorities, clients that try again:** exact against a second, naive
  program; of published gains only orders of size can be compared, since the set-ups are not printed.
- **Dead light and serving:** no published time of a pass on a slice with a dead switch; step slowdowns rest on
  mixes of traffic that are ours.
- **Correlated failures** are replayed from logs; no law of theirs is fitted to more than one public trace.
"""


def cheap_chapters() -> list[Chapter]:
    """Those without real files: their rows that are not marked slow are computed again in every `make test`."""
    return [*machine_chapters(), *model_chapters()]


def whole_page() -> str:
    """The page; takes a minute and the files of `../shared/data`."""
    return page([*cheap_chapters(), *log_chapters()], CLOSING)
