"""Figures of real traces by name: quantiles of their prompts and answers, enough to draw lengths without the file.

`azure_2023_conv_*`: source and licence stand in `workloads.load.azure_2023`; answers here are of all prompts together.
`mooncake_conversation_*` come from the first 20 minutes (3,658 requests) of
`FAST25-release/traces/conversation_trace.jsonl` of kvcache-ai/Mooncake, licence Apache-2.0. Credit: "Mooncake: Trading
More Storage for Less Computation - A KVCache-centric Architecture for Serving LLM Chatbot", FAST 2025. Changed:
quantiles only, at 0, 1, ..., 99 % and at 99.5, 99.9, 100 %.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from workloads.load.azure_2023 import prompt_probabilities, prompt_quantiles

_AZURE_ANSWERS = """
7 16 24 32 38 41 44 47 49 52 54 57 59 62 64 67 69 71 73 75 77 79 81 82 84 85 86 87 89 90 91 92 93 94 95 96 97 99 100
101 103 105 107 108 110 113 116 118 122 125 129 133 137 141 145 151 156 161 163 169 177 182 190 202 216 217 237 371
375 378 384 387 390 393 394 395 396 396 397 398 400 402 404 407 410 411 414 415 417 420 424 428 429 433 442 451 468
509 540 601 643 954 1000
"""

_MOONCAKE_PROMPTS = """
891 894 896 897 899 900 903 910 925 939 980 1038 1103 1204 1275 1350 1428 1513 1605 1714 1819 1902 2061 2238 2430
2652 2831 3045 3268 3646 3920 4109 4319 4485 4693 4846 5008 5155 5309 5514 5722 5919 6080 6299 6526 6688 6917 7129
7384 7648 7888 8104 8400 8643 8857 9175 9414 9654 9956 10268 10704 11008 11338 11669 11976 12230 12639 13216 13644
14015 14405 15108 15517 15979 16543 16984 17449 18019 18555 19037 19696 20434 21165 22345 23381 24243 24990 26239
27203 28090 29091 30834 33486 36125 40092 43574 51471 66570 75136 94862 112515 121626 123192
"""

_MOONCAKE_ANSWERS = """
1 3 3 3 7 9 12 14 18 21 24 27 31 35 40 48 58 68 79 90 98 109 119 129 142 155 172 184 197 208 217 226 237 246 255 265
272 279 285 294 302 309 316 322 327 332 338 344 349 355 358 363 367 371 378 384 389 392 396 401 405 410 413 418 424
429 435 440 445 450 455 459 463 467 472 479 484 494 502 508 514 522 531 538 547 556 565 572 583 593 606 621 636 656
671 701 740 794 906 1161 1723 2000 2000
"""


@dataclass(frozen=True)
class QuantileTable:
    """Lengths in tokens, `quantiles`, that belong to the `shares` of requests, 0 to 1; neither falls."""

    shares: NDArray[np.float64]
    quantiles: NDArray[np.float64]


def _percentiles(text: str) -> QuantileTable:
    """Lengths at 0, 1, ..., 99 % and at 99.5, 99.9, 100 %."""
    return QuantileTable(
        np.concatenate([np.linspace(0.0, 1.0, 101)[:-1], [0.995, 0.999, 1.0]]), np.array(text.split(), dtype=np.float64)
    )


FIGURES: dict[str, Callable[[], QuantileTable]] = {
    "azure_2023_conv_prompts": lambda: QuantileTable(prompt_probabilities(), prompt_quantiles()),
    "azure_2023_conv_answers": lambda: _percentiles(_AZURE_ANSWERS),
    "mooncake_conversation_prompts": lambda: _percentiles(_MOONCAKE_PROMPTS),
    "mooncake_conversation_answers": lambda: _percentiles(_MOONCAKE_ANSWERS),
}
"""Tables by name."""


@lru_cache(maxsize=len(FIGURES))
def quantile_table(name: str) -> QuantileTable:
    """The figures of that name; ValueError lists the names that there are."""
    if name not in FIGURES:
        raise ValueError(f"no figures are called {name[:60]!r}: write one of {', '.join(FIGURES)}")
    return FIGURES[name]()
