"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key, such as run.seed=7. Repeatable.")
]
Workers = Annotated[
    int | None, typer.Option("--workers", min=1, metavar="N", help="Processes; one per core if left out.")
]
