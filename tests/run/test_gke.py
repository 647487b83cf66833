"""`opticube export --format gke`: slices as manifests, read back as YAML, with the numbers that GKE asks for."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from sim.cli import command_status
from sim.gke import ACCELERATORS, CHIPS_OF_PODS, WantedSlices, gke_text, held_slices
from sim.result import Result
from topology.errors import InputError
from topology.pod import POD_GENERATIONS
from topology.shape import parse_shape

LABEL = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")


def documents(text: str) -> list[dict[str, Any]]:
    """What a reader of YAML finds in an export."""
    return list(yaml.safe_load_all(text))


def slices_of(document: dict[str, Any]) -> tuple[str, str, int, int]:
    """Accelerator, topology, hosts and replicas of a JobSet, its fixed parts checked."""
    assert (document["apiVersion"], document["kind"]) == ("jobset.x-k8s.io/v1alpha2", "JobSet")
    assert LABEL.fullmatch(document["metadata"]["name"])
    assert all(isinstance(value, str) for value in document["metadata"]["annotations"].values())
    (job,) = document["spec"]["replicatedJobs"]
    spec = job["template"]["spec"]
    assert spec["completions"] == spec["parallelism"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert container["resources"] == {"requests": {"google.com/tpu": 4}, "limits": {"google.com/tpu": 4}}
    chosen = pod["nodeSelector"]
    assert list(chosen) == ["cloud.google.com/gke-tpu-accelerator", "cloud.google.com/gke-tpu-topology"]
    return *chosen.values(), spec["completions"], job["replicas"]


def test_every_size_asks_for_all_its_hosts() -> None:
    """Goal: a slice is whole. Method: shapes of each chip: hosts times four is the product of the topology."""
    assert set(CHIPS_OF_PODS) == set(POD_GENERATIONS)
    assert set(CHIPS_OF_PODS.values()) == set(ACCELERATORS)
    shapes = ["1x2x2", "2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8", "4x4x8_twisted", "8x8x16", "12x16x16"]
    for chip, accelerator in ACCELERATORS.items():
        wanted = [WantedSlices(name=f"a {shape}", chip=chip, shape=parse_shape(shape), replicas=3) for shape in shapes]
        found = documents(gke_text("run", wanted))
        for shape, document in zip(shapes, found, strict=True):
            name, topology, hosts, replicas = slices_of(document)
            assert (name, replicas) == (accelerator, 3)
            assert math.prod(map(int, topology.split("x"))) == 4 * hosts == parse_shape(shape).chips
            assert (document["metadata"]["annotations"].get("opticube/twisted") == "true") == ("twisted" in shape)
        assert documents(gke_text("run", wanted[:1]))[0]["metadata"]["name"] == "a-1x2x2"
    assert slices_of(documents(gke_text("run", wanted[:1]))[0])[1] == "2x2x1"


def test_what_gke_has_not_is_refused() -> None:
    """Goal: no manifest that nothing can run. Method: other chips, less than a host, no slices at all."""
    shape = parse_shape("4x4x4")
    for chip in ("a100_80gb", "tpu_v5e", "tpu_v3"):
        with pytest.raises(InputError, match=f"no slices of three axes of {chip}; name a run with tpu_v4"):
            gke_text("run", [WantedSlices(name="chat", chip=chip, shape=shape)])
    with pytest.raises(InputError, match="whole hosts of four chips"):
        gke_text("run", [WantedSlices(name="chat", chip="tpu_v4", shape=parse_shape("1x1x2"))])
    with pytest.raises(InputError, match="neither services nor slices"):
        gke_text("run", held_slices(pd.DataFrame(), "tpu_v4"))
    odd = documents(gke_text("run", [WantedSlices(name="7 Ü_x" * 20, chip="tpu_v4", shape=shape)]))
    assert slices_of(odd[0])[2] == 16


def test_a_run_by_command_and_in_python(served: Result, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: the slices of the run. Method: its service, and the slices that the table says are held at the end."""
    text = served.export("gke", point=0)
    service, *held = documents(text)
    assert service["metadata"]["name"] == "chat"
    assert slices_of(service) == ("tpu-v4-podslice", "4x4x8", 32, 3)
    rows = served.tables["slice_story"].query("fabric == 'reconfigurable'")
    last = rows[rows["end_s"] == rows["end_s"].max()].sort_values("job")
    assert len(held) == len(last) > 0
    for document, row in zip(held, last.to_dict("records"), strict=True):
        assert document["metadata"]["name"] == f"job-{row['job']}"
        assert document["metadata"]["annotations"]["opticube/cubes"] == row["cubes"]
        assert slices_of(document) == ("tpu-v4-podslice", row["shape"], parse_shape(row["shape"]).hosts, 1)
    fixed = documents(served.export("gke", point=1))
    assert "opticube/cubes" in fixed[-1]["metadata"]["annotations"]
    with pytest.raises(InputError, match="the run has points 0 to 1; name one by its number"):
        served.export("gke")
    with pytest.raises(InputError, match="slices of the whole run are written"):
        served.export("gke", service="chat", point=0)
    with pytest.raises(InputError, match="the run has no point 7"):
        served.export("gke", point=7)


def test_a_pod_of_no_generation(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Goal: no chip is made up. Method: jobs on a pod of eight cubes, by the command; then the same as a v5p."""
    command = ["export", str(stored), "--format", "gke", "--point", "0"]
    assert command_status(command) == 2
    assert "nobody knows its chips; run it with one of v4, v5p, tpu7x" in capsys.readouterr().err
    scenario = stored / "scenario.yaml"
    scenario.write_text(scenario.read_text().replace("cubes: 8, grid: 2x2x2", "generation: v5p"))
    assert command_status(command) == 0
    written = Path(capsys.readouterr().out.strip())
    assert written == stored / "export" / "gke_point0.yaml"
    assert {slices_of(each)[0] for each in documents(written.read_text())} == {"tpu-v5p-slice"}
