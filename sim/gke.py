"""Slices as manifests of Google Kubernetes Engine: a JobSet for each service and each slice that a job holds.

Keys: node labels `cloud.google.com/gke-tpu-accelerator` and `-topology` and the resource `google.com/tpu` (GKE's
documentation, "Plan TPUs in GKE"); `jobset.x-k8s.io/v1alpha2` and its annotation for one slice per node pool (JobSet's
documentation). What GKE has no key for (which cubes, a twist) stands in annotations `opticube/...`. GKE chooses cubes
itself: a manifest asks for slices such as the run had, not for these.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import yaml

from topology.errors import refuse
from topology.pod import CHIPS_PER_HOST
from topology.shape import Shape, parse_shape

GKE = "gke"
"""Name of the format."""
ACCELERATORS = {"tpu_v4": "tpu-v4-podslice", "tpu_v5p": "tpu-v5p-slice", "tpu_7x": "tpu7x"}
"""GKE's names of the chips whose slices have three axes, four chips to a node, by their keys here."""
CHIPS_OF_PODS = {"v4": "tpu_v4", "v5p": "tpu_v5p", "tpu7x": "tpu_7x"}
"""Chips of the pods by generation."""
IMAGE = "us-docker.pkg.dev/cloud-tpu-images/jax-ai-image/tpu:latest"
"""What the containers run, to be replaced: it counts its chips."""
TPU_PORT = 8471
"""By which the hosts of a slice meet (GKE's examples of multi-host slices)."""
COUNT_CHIPS = "import jax; print('chips:', jax.device_count())"
LONGEST_NAME = 40
"""Letters of a name: those of its pods, which are longer, must have at most 63."""


@dataclass(frozen=True, kw_only=True)
class WantedSlices:
    """So many equal slices under one name; `chip` by its key, `told` for annotations."""

    name: str
    chip: str
    shape: Shape
    replicas: int = 1
    told: Mapping[str, str] = field(default_factory=dict)


def held_slices(story: pd.DataFrame, chip: str) -> list[WantedSlices]:
    """The slices that jobs hold when the story ends, from rows of the table `slice_story` of one point."""
    if story.empty:
        return []
    last = story[story["end_s"] == story["end_s"].max()].sort_values("job")
    return [
        WantedSlices(
            name=f"job-{int(job)}",
            chip=chip,
            shape=parse_shape(str(shape)),
            told={"opticube/cubes": str(cubes), "opticube/held-since-s": f"{float(start):.0f}"},
        )
        for job, shape, cubes, start in zip(last["job"], last["shape"], last["cubes"], last["start_s"], strict=True)
    ]


def gke_text(run: str, wanted: Sequence[WantedSlices]) -> str:
    """One YAML document per JobSet; InputError where there is none, for chips that GKE has not, and for less than a
    host."""
    if not wanted:
        what = "the run has neither services nor slices of whole cubes"
        raise refuse(run, what, "name a run with `serving`, `study.delivered` or `study.operations`")
    documents = [_jobset(each) for each in wanted]
    head = (
        "# Slices of an opticube run as JobSets of GKE: each service, and the slices that jobs held at the end of the\n"
        "# first replication. Replace image and command. GKE chooses cubes; `opticube/cubes` has those of the run.\n"
    )
    return head + yaml.safe_dump_all(documents, sort_keys=False, explicit_start=True, width=120)


def topology_text(shape: Shape) -> str:
    """The topology as GKE writes it: 2x2x1 is a host, larger ones rise along the axes, a twist is not told."""
    if shape.chips < CHIPS_PER_HOST:
        raise refuse(str(shape), "GKE gives whole hosts of four chips", "write a slice of at least 4 chips")
    return "2x2x1" if shape.chips == CHIPS_PER_HOST else "x".join(map(str, shape.dimensions))


def _jobset(wanted: WantedSlices) -> dict[str, Any]:
    if wanted.chip not in ACCELERATORS:
        known = ", ".join(ACCELERATORS)
        raise refuse(wanted.name, f"GKE has no slices of three axes of {wanted.chip}", f"name a run with {known}")
    told = dict(wanted.told) | ({"opticube/twisted": "true"} if wanted.shape.twisted else {})
    container = {
        "name": "work",
        "image": IMAGE,
        "command": ["python", "-c", COUNT_CHIPS],
        "ports": [{"containerPort": TPU_PORT}],
        "resources": {name: {"google.com/tpu": CHIPS_PER_HOST} for name in ("requests", "limits")},
    }
    pod = {
        "restartPolicy": "Never",
        "nodeSelector": {
            "cloud.google.com/gke-tpu-accelerator": ACCELERATORS[wanted.chip],
            "cloud.google.com/gke-tpu-topology": topology_text(wanted.shape),
        },
        "containers": [container],
    }
    hosts = wanted.shape.hosts
    job = {"parallelism": hosts, "completions": hosts, "backoffLimit": 0, "template": {"spec": pod}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {
            "name": _name(wanted.name),
            "annotations": {"alpha.jobset.sigs.k8s.io/exclusive-topology": "cloud.google.com/gke-nodepool"} | told,
        },
        "spec": {"replicatedJobs": [{"name": "slice", "replicas": wanted.replicas, "template": {"spec": job}}]},
    }


def _name(text: str) -> str:
    """A name that Kubernetes takes: small letters, digits and dashes, a letter first."""
    found = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return (found if found[:1].isalpha() else f"s-{found}")[:LONGEST_NAME].strip("-")
