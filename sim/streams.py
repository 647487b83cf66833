"""Named streams of random numbers: no draw depends on the order in which things are built.

A stream is named, never ordered. Its seed is `SeedSequence(seed, spawn_key=(replication, four words of a 128-bit hash
of the name, block))`. Draw k of component c is uniform c of block k of its population's stream, and new components
append; so two machines that differ in fabric, policy or spares see the same bad luck.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray


@lru_cache(maxsize=4096)
def name_words(name: str) -> tuple[int, int, int, int]:
    """Four 32-bit words of a 128-bit hash of a stream's name (a CRC would collide)."""
    digest = hashlib.blake2b(name.encode(), digest_size=16).digest()
    words = [int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4)]
    return words[0], words[1], words[2], words[3]


@dataclass(frozen=True)
class Streams:
    """All streams of one replication of a scenario: `seed` is the scenario's, `replication` counts from 0."""

    seed: int
    replication: int
    prefix: str = ""
    """Put before every name: the streams of one of several machines."""

    def generator(self, name: str, block: int = 0) -> np.random.Generator:
        """A fresh generator at the start of block `block` of the stream `name`."""
        sequence = np.random.SeedSequence(
            self.seed, spawn_key=(self.replication, *name_words(self.prefix + name), block)
        )
        return np.random.Generator(np.random.PCG64(sequence))

    def of(self, prefix: str) -> Streams:
        """The streams of one of several machines of this replication."""
        return replace(self, prefix=self.prefix + prefix)

    def uniforms(self, name: str, block: int, count: int) -> NDArray[np.float64]:
        """`count` uniforms in [0, 1): the first of a block are the same whatever `count` is."""
        return self.generator(name, block).random(count)
