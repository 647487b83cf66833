"""Tables of a whole run, and its pictures, made once."""

from __future__ import annotations

import pandas as pd
import pytest

from sim.report.context import ReportContext, ServiceLimits
from sim.report.plots import Picture, draw_pictures
from tests.report import closed


@pytest.fixture(scope="session")
def tables() -> dict[str, pd.DataFrame]:
    return closed.all_tables()


@pytest.fixture(scope="session")
def context() -> ReportContext:
    return ReportContext(
        name="availability <of> slices",
        description="static & reconfigurable",
        settings=[("detection", "60 s", "assumption"), ("pod", "v4", "published")],
        warnings=["the queue of long_documents is overloaded"],
        limits={"long_documents": ServiceLimits(ttft_s=10.0, tpot_s=0.1, attainment=0.99)},
        version="0.1.0",
        seed=1,
        wall_time_s=42.0,
    )


@pytest.fixture(scope="session")
def pictures(tables: dict[str, pd.DataFrame], context: ReportContext) -> dict[str, Picture]:
    return draw_pictures(tables, limits=context.limits)
