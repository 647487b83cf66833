"""What a run recorded of single requests, in the formats of others: vLLM's benchmark, Vidur, Mooncake.

From the table `requests`, so from a run of one's own or from its folder. vLLM's names are those of
`vllm bench serve --save-result --save-detailed`. `itls`, and what it tells beside the mean, are left out where the run
has not kept the gaps of all its requests (it does so for the first 2,000).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sim.load_tables import REQUESTS
from sim.report.context import ServiceLimits
from topology.errors import refuse

Floats = NDArray[np.float64]
MOONCAKE_BLOCK_TOKENS = 512
S_PER_NS, MS_PER_S = 1e-9, 1e3
NEEDS_RECORDS = "write `serving.windows.record: 1000` (as many requests as you want) into the scenario and run it again"


def export_text(
    tables: Mapping[str, pd.DataFrame],
    form: str,
    *,
    service: str | None = None,
    settings: Mapping[str, str] | None = None,
    limits: Mapping[str, ServiceLimits] | None = None,
) -> str:
    """The recorded requests of one service as the text of a file in format `form`: vllm, vidur or mooncake.

    `service` may be left out where there is one only; `settings` are the swept keys of the sweep point that is meant;
    `limits` of the services give vLLM's goodput. InputError where nothing was recorded or the choice is not clear.
    """
    if form not in WRITERS:
        raise refuse("--format", f"`{form}` is no format of requests", f"write one of {', '.join(WRITERS)}")
    rows = _recorded(tables, service, settings or {})
    return WRITERS[form](rows, (limits or {}).get(str(rows["service"].iloc[0])))


def export_note(
    tables: Mapping[str, pd.DataFrame],
    form: str,
    *,
    service: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> str:
    """What a file of `export_text` can not tell of its requests: those without a whole answer, and attempts."""
    rows = _recorded(tables, service, settings or {})
    short = rows.loc[rows["status"] != "completed", "status"].value_counts(sort=False)
    again = int((rows["attempts"] > 1).sum())
    notes = []
    if short.sum():
        kinds = ", ".join(f"{count:,} {status}" for status, count in sorted(short.items()))
        notes.append(f"{short.sum():,} of {len(rows):,} requests have no whole answer ({kinds}): {SHORT[form]}")
    if again:
        notes.append(f"{again:,} were sent more than once: one row each, times since the first arrival")
    return "; ".join(notes)


def _recorded(tables: Mapping[str, pd.DataFrame], service: str | None, settings: Mapping[str, str]) -> pd.DataFrame:
    """The recorded requests of one service at one sweep point, in order of arrival; InputError as `export_text`."""
    table = tables.get("requests")
    if table is None or table.empty:
        raise refuse("requests", "the run has kept no single requests", NEEDS_RECORDS)
    for key, value in settings.items():
        if key in table.columns:
            table = table[table[key] == value]
    services = list(dict.fromkeys(str(name) for name in table["service"]))
    if service is None and len(services) > 1:
        raise refuse("--service", "the run has several services", f"write one of {', '.join(services)}")
    chosen = services[0] if service is None else service
    rows = table[table["service"] == chosen].sort_values(["arrival_ns", "request"]).reset_index(drop=True)
    if rows.empty:
        raise refuse("--service", f"`{chosen}` has no recorded requests", f"write one of {', '.join(services)}")
    if rows["request"].duplicated().any():
        swept = [str(key) for key in rows.columns if str(key) not in REQUESTS.names]
        raise refuse("--point", f"the run sweeps {', '.join(swept)}", "name one sweep point by its number")
    return rows


def _seconds(rows: pd.DataFrame, column: str) -> Floats:
    """A column of times in seconds, nan where blank."""
    return np.array(rows[column].astype("Float64").astype("float64"), dtype=np.float64) * S_PER_NS


def vllm_text(rows: pd.DataFrame, limits: ServiceLimits | None = None) -> str:
    """The result file of vLLM's benchmark: lists by request in seconds, statistics in milliseconds."""
    arrival_s = _seconds(rows, "arrival_ns")
    done = (rows["status"] == "completed").to_numpy(dtype=bool)
    ttft_s = _seconds(rows, "first_token_ns") - arrival_s
    latency_s = _seconds(rows, "last_token_ns") - arrival_s
    inputs, outputs = rows["input_tokens"].to_numpy(dtype=np.int64), rows["output_tokens"].to_numpy(dtype=np.int64)
    later = outputs[done] - 1
    after_s = (latency_s - ttft_s)[done]
    tpot_s = np.divide(after_s, later, out=np.zeros(later.size), where=later > 0)
    duration_s = float(np.nanmax(_seconds(rows, "last_token_ns"))) - float(arrival_s[0]) if done.any() else 0.0
    good = None if limits is None else int(np.sum((ttft_s[done] <= limits.ttft_s) & (tpot_s <= limits.tpot_s)))
    result: dict[str, Any] = {
        "backend": "opticube",
        "num_prompts": len(rows),
        "request_rate": _per(len(rows) - 1, float(arrival_s[-1] - arrival_s[0])),
        "duration": duration_s,
        "completed": int(done.sum()),
        "failed": int((~done).sum()),
        "total_input_tokens": int(inputs[done].sum()),
        "total_output_tokens": int(outputs[done].sum()),
        "request_throughput": _per(int(done.sum()), duration_s),
        "request_goodput": None if good is None else _per(good, duration_s),
        "output_throughput": _per(int(outputs[done].sum()), duration_s),
        "total_token_throughput": _per(int((inputs + outputs)[done].sum()), duration_s),
        "input_lens": inputs.tolist(),
        "output_lens": np.where(done, outputs, 0).tolist(),
        "start_times": _rounded(arrival_s),
        "ttfts": _rounded(np.where(done, ttft_s, 0.0)),
        "latencies": _rounded(np.where(done, latency_s, 0.0)),
        "errors": ["" if ok else str(status) for ok, status in zip(done, rows["status"], strict=True)],
    }
    measured = {"ttft": ttft_s[done], "tpot": tpot_s[later > 0], "e2el": latency_s[done]}
    for name, values in measured.items():
        result |= _statistics(name, values)
    result["mean_itl_ms"] = float(after_s.sum() / later.sum()) * MS_PER_S if later.sum() else None
    gaps_s = _gaps_s(rows)
    if gaps_s is not None:
        result["itls"] = [_rounded(gaps) if ok else [] for ok, gaps in zip(done, gaps_s, strict=True)]
        kept = [gaps for ok, gaps in zip(done, gaps_s, strict=True) if ok]
        result |= _statistics("itl", np.concatenate(kept) if kept else np.zeros(0))
    return json.dumps(result) + "\n"


def _gaps_s(rows: pd.DataFrame) -> list[Floats] | None:
    """Gaps between tokens by request; None where those of a request were not kept."""
    if "gaps_ns" not in rows or rows["gaps_ns"].isna().any():
        return None
    return [np.array(text.split(), dtype=np.float64) * S_PER_NS for text in rows["gaps_ns"]]


def _per(count: int, seconds: float) -> float | None:
    return count / seconds if seconds > 0 else None


def _rounded(values_s: Floats) -> list[float]:
    """Seconds to the nanosecond."""
    return [round(float(value), 9) for value in values_s]


def _statistics(name: str, values_s: Floats) -> dict[str, float | None]:
    """What the benchmark prints of one quantity, in ms; nothing is known of no values."""
    kinds: dict[str, Callable[[Floats], Any]] = {
        "mean": np.mean, "median": np.median, "std": np.std, "p99": lambda values: np.percentile(values, 99)
    }  # fmt: skip
    return {
        f"{kind}_{name}_ms": float(of(values_s)) * MS_PER_S if values_s.size else None for kind, of in kinds.items()
    }


def vidur_text(rows: pd.DataFrame, limits: ServiceLimits | None = None) -> str:
    """A trace for Vidur: seconds and lengths, and what was measured under the names of its own metrics."""
    arrival_s = _seconds(rows, "arrival_ns")
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["arrived_at", "num_prefill_tokens", "num_decode_tokens", "prefill_e2e_time", "request_e2e_time"])
    columns = (
        arrival_s,
        rows["input_tokens"],
        rows["output_tokens"],
        _seconds(rows, "first_token_ns") - arrival_s,
        _seconds(rows, "last_token_ns") - arrival_s,
    )
    for time_s, prompt, answer, first_s, whole_s in zip(*columns, strict=True):
        measured = ["" if np.isnan(value) else f"{value:.9f}" for value in (first_s, whole_s)]
        writer.writerow([f"{time_s:.9f}", prompt, answer, *measured])
    return out.getvalue()


def mooncake_text(rows: pd.DataFrame, limits: ServiceLimits | None = None) -> str:
    """A trace as Mooncake's: milliseconds (rounded) and the blocks of 512 tokens of each prompt.

    Blocks of another size are told apart at the ends of blocks of 512 tokens; what is shared with nobody has numbers
    of its own. Numbers count from 0 in order of their first appearance.
    """
    numbers: dict[object, int] = {}
    lines = []
    for place, row in enumerate(rows.to_dict("records")):
        own = _blocks_of(row)
        blocks = -(-int(row["input_tokens"]) // MOONCAKE_BLOCK_TOKENS)
        keys = [own.get(block, (place, block, "own")) for block in range(blocks)]
        line = {
            "timestamp": round(int(row["arrival_ns"]) / 1e6),
            "input_length": int(row["input_tokens"]),
            "output_length": int(row["output_tokens"]),
            "hash_ids": [numbers.setdefault(key, len(numbers)) for key in keys],
        }
        lines.append(json.dumps(line))
    return "\n".join(lines) + "\n"


def _blocks_of(row: Mapping[Any, Any]) -> dict[int, object]:
    """What is equal where the blocks of 512 tokens of a prompt are, by their number; blocks left out are its own."""
    if pd.isna(row["prefix_blocks"]) or pd.isna(row["prefix_block_tokens"]):
        return {}
    ids, size = str(row["prefix_blocks"]).split(), int(row["prefix_block_tokens"])
    found: dict[int, object] = {}
    for block in range(-(-int(row["input_tokens"]) // MOONCAKE_BLOCK_TOKENS)):
        if size == MOONCAKE_BLOCK_TOKENS:
            place, sub = block, 0
        elif MOONCAKE_BLOCK_TOKENS % size == 0:
            place, sub = (block + 1) * (MOONCAKE_BLOCK_TOKENS // size) - 1, 0
        elif size % MOONCAKE_BLOCK_TOKENS == 0:
            place, sub = divmod(block, size // MOONCAKE_BLOCK_TOKENS)
        else:
            break
        if place < len(ids):
            found[block] = (ids[place], sub)
    return found


WRITERS: Mapping[str, Callable[[pd.DataFrame, ServiceLimits | None], str]] = {
    "vllm": vllm_text,
    "vidur": vidur_text,
    "mooncake": mooncake_text,
}
"""Writers by the name of the format."""

SHORT: Mapping[str, str] = {
    "vllm": "failures there, without lengths of answers, so a reader leaves them out of the load",
    "vidur": "rows like the others, with the answer that was asked for and no end",
    "mooncake": "rows like the others, with the answer that was asked for",
}
"""By format, how a request without a whole answer stands there."""

SUFFIXES = {"vllm": "json", "vidur": "csv", "mooncake": "jsonl"}
