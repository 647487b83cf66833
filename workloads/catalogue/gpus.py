"""GPUs of NVIDIA. `link_bytes_per_s` is what a chip sends one way over all its NVLinks (PCIe where it has none)."""

from __future__ import annotations

from dataclasses import replace

from workloads.catalogue.chip import Chip, Interconnect, OnChip
from workloads.provenance import Mark, Source

KIB = 2.0**10
MB = 1e6
_A100 = "NVIDIA A100 data sheet, as quoted in secondary texts"
_A100_L2 = "NVIDIA A100 white paper: L2 of 40 MB, 5,120 B per clock at 1.41 GHz; "
_VIDUR = "Vidur profiles of A100 servers"
_H100 = "NVIDIA H100 data sheet, as quoted in secondary texts"
_ADA = "data base of processors waredb.com and reviews, quoting NVIDIA's Ada data sheet"
_POD = "DGX SuperPOD: eight GPUs and eight 200 Gb/s InfiniBand ports per node"


def _each(fields: str, mark: Mark, text: str) -> tuple[Source, ...]:
    return tuple(Source(field, mark, text) for field in fields.split())


_BASE = "peak_flops_per_s int8_ops_per_s hbm_bytes hbm_bytes_per_s"
_SWITCHED = (Source("axes", Mark.ASSUMED, "a switch is one axis"), Source("ring_chips", Mark.ASSUMED, "no rings"))

A100_80GB = Chip(
    key="a100_80gb",
    name="A100-80GB SXM",
    family="a100",
    interconnect=Interconnect.SWITCH,
    peak_flops_per_s=312e12,
    int8_ops_per_s=624e12,
    hbm_bytes=80e9,
    hbm_bytes_per_s=2039e9,
    link_bytes_per_s=300e9,
    hop_s=5e-6,
    axes=1,
    ring_chips=1,
    node_chips=8,
    host_link_bytes_per_s=32e9,
    network_bytes_per_s=25e9,
    network_hop_s=24e-6,
    on_chip=(
        OnChip(name="SM", bytes=108 * 192 * KIB, units=108, bytes_per_s=19e12),
        OnChip(name="L2", bytes=40 * MB, bytes_per_s=5120 * 1.41e9),
    ),
    sources=(
        Source("interconnect", Mark.SECONDARY, _A100 + ": NVSwitch joins eight"),
        *_each(f"{_BASE} host_link_bytes_per_s", Mark.SECONDARY, _A100),
        Source("link_bytes_per_s", Mark.SECONDARY, _A100 + ": 12 NVLink3 links, 300 GB/s each way in total"),
        Source("hop_s", Mark.DERIVED, _VIDUR + ": all-reduce of a small array on 2 GPUs in 10 us, there and back"),
        Source("network_hop_s", Mark.DERIVED, _VIDUR + ": 43 us of an all-reduce on two servers, 27 us of a send"),
        Source("node_chips", Mark.SECONDARY, _A100 + ": eight behind NVSwitch"),
        Source("network_bytes_per_s", Mark.VERIFIED, "FasterTransformer docs/gpt_guide.md: " + _POD),
        Source("on_chip", Mark.SECONDARY, _A100_L2 + "SRAM of 19 TB/s in FlashAttention, as quoted"),
        *_SWITCHED,
    ),
)

A100_40GB = replace(A100_80GB, key="a100_40gb", name="A100-40GB SXM", hbm_bytes=40e9, hbm_bytes_per_s=1555e9)

H100 = Chip(
    key="h100",
    name="H100 SXM",
    family="h100",
    interconnect=Interconnect.SWITCH,
    peak_flops_per_s=989e12,
    int8_ops_per_s=1979e12,
    fp8_flops_per_s=1979e12,
    hbm_bytes=80e9,
    hbm_bytes_per_s=3350e9,
    link_bytes_per_s=450e9,
    hop_s=5e-6,
    axes=1,
    ring_chips=1,
    node_chips=8,
    host_link_bytes_per_s=64e9,
    network_bytes_per_s=50e9,
    network_hop_s=24e-6,
    on_chip=(
        OnChip(name="SM", bytes=132 * 228 * KIB, units=132),
        OnChip(name="L2", bytes=50 * MB),
    ),
    sources=(
        Source("interconnect", Mark.SECONDARY, _H100 + ": NVSwitch joins eight"),
        *_each(f"{_BASE} fp8_flops_per_s link_bytes_per_s host_link_bytes_per_s on_chip", Mark.SECONDARY, _H100),
        *_each("hop_s network_hop_s", Mark.ASSUMED, "as on the A100"),
        Source("node_chips", Mark.SECONDARY, _H100 + ": eight behind NVSwitch"),
        Source("network_bytes_per_s", Mark.RECALLED, "general knowledge: eight 400 Gb/s ports per node"),
        *_SWITCHED,
    ),
)

H200 = replace(
    H100,
    key="h200",
    name="H200 SXM",
    hbm_bytes=141e9,
    hbm_bytes_per_s=4800e9,
    sources=tuple(
        Source("hbm_bytes", Mark.VERIFIED, "MLPerf v4.1, H200 system file") if source.field == "hbm_bytes" else source
        for source in H100.sources
    ),
)

RTX_4090 = Chip(
    key="rtx_4090",
    name="GeForce RTX 4090",
    family="rtx_4090",
    interconnect=Interconnect.SWITCH,
    peak_flops_per_s=165.2e12,
    int8_ops_per_s=660.6e12,
    fp8_flops_per_s=330.3e12,
    hbm_bytes=24e9,
    hbm_bytes_per_s=1008e9,
    link_bytes_per_s=32e9,
    hop_s=5e-6,
    axes=1,
    ring_chips=1,
    node_chips=8,
    host_link_bytes_per_s=32e9,
    on_chip=(
        OnChip(name="SM", bytes=128 * 128 * KIB, units=128),
        OnChip(name="L2", bytes=72 * MB),
    ),
    sources=(
        Source("interconnect", Mark.ASSUMED, "no NVLink: chips meet over PCIe"),
        *_each(f"{_BASE} fp8_flops_per_s", Mark.SECONDARY, _ADA + " (GDDR6X; FP32 accumulation)"),
        *_each("link_bytes_per_s host_link_bytes_per_s", Mark.SECONDARY, _ADA + ": PCIe 4.0 x16, 32 GB/s each way"),
        Source("hop_s", Mark.ASSUMED, "as on the A100"),
        Source("node_chips", Mark.ASSUMED, "eight PCIe slots of a server"),
        Source("on_chip", Mark.SECONDARY, _ADA + ": 128 SMs with 128 KiB each, L2 of 72 MB"),
        *_SWITCHED,
    ),
)

GPUS = (A100_40GB, A100_80GB, H100, H200, RTX_4090)
