"""Chips and models of one's own in a scenario: services name them; faults are told at their line."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.scenario import load_scenario, resolved_yaml
from sim.studies.service_parts import service_config
from topology.errors import InputError

SCENARIO = """
name: own
pod: {cubes: 8, grid: 2x2x2}
serving:
  weights: healthy
  services:
    - name: chat
      model: my_model
      chip: my_chip
      slice: 4x4x4
      load: 0.5
      requests:
        input: {kind: fixed, tokens: 100}
        output: {kind: fixed, tokens: 10}
      slo: {ttft: 2 s, tpot: 60 ms}
chips:
  my_chip: {like: tpu_v4, hbm_bytes: 64 GiB}
models:
  my_model: {like: llama3_70b, layers: 40}
"""


def write(path: Path, text: str) -> Path:
    """A scenario file."""
    path.write_text(text)
    return path


def test_services_name_entries_of_ones_own(tmp_path: Path) -> None:
    """Goal: the kernel gets costs and blocks of the own model on the own chip. Method: twice the memory and half the
    layers of the catalogue's give more than four times its blocks; the resolved scenario loads as the same."""
    scenario = load_scenario(write(tmp_path / "own.yaml", SCENARIO))
    assert scenario.serving is not None
    section = scenario.serving.services[0]
    own = service_config(scenario, section, section.shape(), 1)
    usual = section.model_copy(update={"model": "llama3_70b", "chip": "tpu_v4"})
    catalogue = service_config(scenario, usual, section.shape(), 1)
    assert own is not None
    assert catalogue is not None
    assert own.costs.model == "my_model"
    assert own.costs.kv_bytes_per_token == catalogue.costs.kv_bytes_per_token / 2
    assert own.blocks > 4 * catalogue.blocks
    again = load_scenario(write(tmp_path / "again.yaml", resolved_yaml(scenario)))
    assert again == scenario


@pytest.mark.parametrize(
    ("old", "new", "advice"),
    [
        ("model: my_model", "model: my_modl", "write `my_model`"),
        ("chip: my_chip", "chip: your_chip", "chip `your_chip` is not known"),
        ("layers: 40", "layers: 40, kv_heads: 7", "multiple of kv_heads"),
        ("hbm_bytes: 64 GiB", "hbm_bytes: 64", "64 has no unit"),
        ("hbm_bytes: 64 GiB", "hbm_bytes: 1 GiB", "leaves 0 tokens of cache"),
        ("like: tpu_v4, hbm_bytes: 64 GiB", "like: rtx_4090", "network is unknown"),
        ("my_chip: {like", "My Chip: {like", "My Chip"),
    ],
)
def test_bad_entries_are_refused_at_their_line(old: str, new: str, advice: str, tmp_path: Path) -> None:
    """Goal: what is wrong with an entry, or with a name, where it was written. Method: one change each."""
    path = write(tmp_path / "own.yaml", SCENARIO.replace(old, new))
    with pytest.raises(InputError) as told:
        load_scenario(path)
    text = str(told.value)
    assert advice in text
    assert "own.yaml:" in text
