"""TPUs, v2 to 7x. Links of the scaling book are usable rates; where a table lacks them the nominal rate is named."""

from __future__ import annotations

from workloads.catalogue.chip import GIB, Chip, Interconnect, OnChip
from workloads.provenance import Mark, Source

_BOOK = "JAX scaling book, chapter on TPUs"
_V4_PAPER = "Jouppi et al., TPU v4, ISCA 2023, Table 4"
_CLOUD = "Google Cloud TPU pages"
_GENERAL = "general knowledge, seen in no text"
MIB = 2.0**20

_HOP = Source("hop_s", Mark.VERIFIED, _BOOK + ": about 1 us per hop")
_TORUS = "links along the axes of a torus"


def _each(fields: str, mark: Mark, text: str) -> tuple[Source, ...]:
    return tuple(Source(field, mark, text) for field in fields.split())


_BASE = "interconnect peak_flops_per_s hbm_bytes hbm_bytes_per_s"

TPU_V2 = Chip(
    key="tpu_v2",
    name="TPU v2",
    family="tpu",
    interconnect=Interconnect.TORUS,
    peak_flops_per_s=46e12,
    hbm_bytes=16 * GIB,
    hbm_bytes_per_s=700e9,
    link_bytes_per_s=62e9,
    hop_s=1e-6,
    axes=2,
    ring_chips=16,
    on_chip=(OnChip(name="VMEM", bytes=2 * 16 * MIB, units=2),),
    sources=(
        *_each(f"{_BASE} link_bytes_per_s axes ring_chips on_chip", Mark.RECALLED, _GENERAL),
        _HOP,
    ),
)

TPU_V3 = Chip(
    key="tpu_v3",
    name="TPU v3",
    family="tpu",
    interconnect=Interconnect.TORUS,
    peak_flops_per_s=123e12,
    hbm_bytes=32 * GIB,
    hbm_bytes_per_s=900e9,
    link_bytes_per_s=100e9,
    hop_s=1e-6,
    axes=2,
    ring_chips=32,
    on_chip=(OnChip(name="VMEM", bytes=2 * 16 * MIB, units=2),),
    sources=(
        *_each(f"{_BASE} axes", Mark.VERIFIED, _CLOUD + ": v3, 2D torus of 1,024 chips"),
        Source("link_bytes_per_s", Mark.VERIFIED, _BOOK + " (70 to 82 GB/s in other accounts)"),
        Source("ring_chips", Mark.DERIVED, "1,024 chips as 32 x 32"),
        Source("on_chip", Mark.RECALLED, _GENERAL + ": 16 MiB per core, two cores"),
        _HOP,
    ),
)

TPU_V4I = Chip(
    key="tpu_v4i",
    name="TPU v4i",
    family="tpu",
    interconnect=Interconnect.TORUS,
    peak_flops_per_s=138e12,
    int8_ops_per_s=138e12,
    hbm_bytes=8 * GIB,
    hbm_bytes_per_s=614e9,
    link_bytes_per_s=50e9,
    hop_s=1e-6,
    axes=1,
    ring_chips=4,
    on_chip=(OnChip(name="VMEM", bytes=16 * MIB), OnChip(name="CMEM", bytes=128 * MIB)),
    sources=(
        *_each(f"{_BASE} int8_ops_per_s link_bytes_per_s", Mark.RECALLED, _GENERAL),
        Source("axes", Mark.SECONDARY, "Jouppi et al., ISCA 2021, as quoted: two ICI links"),
        Source("ring_chips", Mark.ASSUMED, "two links per chip close four chips of a board to a ring"),
        Source("on_chip", Mark.SECONDARY, "Jouppi et al., ISCA 2021, as quoted: 144 MiB, of which CMEM 128"),
        _HOP,
    ),
)

TPU_V4 = Chip(
    key="tpu_v4",
    name="TPU v4",
    family="tpu",
    interconnect=Interconnect.TORUS,
    peak_flops_per_s=275e12,
    int8_ops_per_s=275e12,
    hbm_bytes=32 * GIB,
    hbm_bytes_per_s=1200e9,
    link_bytes_per_s=45e9,
    hop_s=1e-6,
    host_link_bytes_per_s=16e9,
    on_chip=(OnChip(name="VMEM", bytes=2 * 16 * MIB, units=2), OnChip(name="CMEM", bytes=128 * MIB)),
    sources=(
        Source("interconnect", Mark.VERIFIED, "Jouppi et al., TPU v4, ISCA 2023, 2.2"),
        *_each("peak_flops_per_s int8_ops_per_s hbm_bytes hbm_bytes_per_s", Mark.VERIFIED, _V4_PAPER),
        Source("link_bytes_per_s", Mark.VERIFIED, _BOOK + ": 45 GB/s usable one way of a nominal 50"),
        *_each("axes ring_chips", Mark.VERIFIED, "Jouppi et al., TPU v4, ISCA 2023: 3D torus of 4x4x4 cubes"),
        Source("host_link_bytes_per_s", Mark.VERIFIED, _BOOK + ": PCIe, 16 GB/s each way"),
        Source("on_chip", Mark.SECONDARY, _V4_PAPER + ", as quoted: 16 MiB per TensorCore, CMEM of 128 MiB"),
        _HOP,
    ),
)

TPU_V5E = Chip(
    key="tpu_v5e",
    name="TPU v5e",
    family="tpu",
    interconnect=Interconnect.TORUS,
    peak_flops_per_s=197e12,
    int8_ops_per_s=393e12,
    hbm_bytes=16e9,
    hbm_bytes_per_s=819e9,
    link_bytes_per_s=45e9,
    hop_s=1e-6,
    axes=2,
    ring_chips=16,
    on_chip=(OnChip(name="VMEM", bytes=128 * MIB, bytes_per_s=22 * 819e9),),
    sources=(
        *_each(f"{_BASE} int8_ops_per_s", Mark.VERIFIED, _CLOUD + ", v5e"),
        *_each("link_bytes_per_s axes ring_chips", Mark.VERIFIED, _BOOK + ": rings only on a full axis of 16"),
        Source("on_chip", Mark.VERIFIED, _BOOK + ": VMEM of 128 MiB at about 22 times the rate of HBM"),
        _HOP,
    ),
)

TPU_V5P = Chip(
    key="tpu_v5p",
    name="TPU v5p",
    family="tpu",
    interconnect=Interconnect.TORUS,
    peak_flops_per_s=459e12,
    int8_ops_per_s=918e12,
    hbm_bytes=95e9,
    hbm_bytes_per_s=2765e9,
    link_bytes_per_s=90e9,
    hop_s=1e-6,
    network_bytes_per_s=50e9 / 8,
    sources=(
        *_each(f"{_BASE} int8_ops_per_s network_bytes_per_s", Mark.VERIFIED, _CLOUD + ", v5p"),
        *_each("link_bytes_per_s axes ring_chips", Mark.VERIFIED, _BOOK),
        _HOP,
    ),
)

TPU_V6E = Chip(
    key="tpu_v6e",
    name="TPU v6e",
    family="tpu",
    interconnect=Interconnect.TORUS,
    peak_flops_per_s=918e12,
    int8_ops_per_s=1836e12,
    hbm_bytes=32e9,
    hbm_bytes_per_s=1638e9,
    link_bytes_per_s=90e9,
    hop_s=1e-6,
    axes=2,
    ring_chips=16,
    host_link_bytes_per_s=32e9,
    sources=(
        *_each(f"{_BASE} int8_ops_per_s", Mark.VERIFIED, _CLOUD + ", v6e"),
        *_each("link_bytes_per_s axes ring_chips", Mark.VERIFIED, _BOOK),
        Source("host_link_bytes_per_s", Mark.VERIFIED, _BOOK + ": PCIe Gen5, about 32 GB/s"),
        _HOP,
    ),
)

TPU_7X = Chip(
    key="tpu_7x",
    name="TPU7x",
    family="tpu",
    interconnect=Interconnect.TORUS,
    peak_flops_per_s=2307e12,
    fp8_flops_per_s=4614e12,
    hbm_bytes=192 * GIB,
    hbm_bytes_per_s=7370e9,
    link_bytes_per_s=100e9,
    hop_s=1e-6,
    sources=(
        *_each("interconnect peak_flops_per_s fp8_flops_per_s hbm_bytes axes", Mark.VERIFIED, _CLOUD + ", TPU7x"),
        Source("hbm_bytes_per_s", Mark.SECONDARY, "TPU7x in secondary texts"),
        Source("link_bytes_per_s", Mark.DERIVED, "nominal: 1,200 GB/s per chip, both ways of six links (V2)"),
        Source("ring_chips", Mark.ASSUMED, "cubes of 4x4x4 as on v4"),
        _HOP,
    ),
)

TPUS = (TPU_V2, TPU_V3, TPU_V4I, TPU_V4, TPU_V5E, TPU_V5P, TPU_V6E, TPU_7X)
