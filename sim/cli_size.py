"""The command `size`: cubes needed to promise a set of slices, per fabric, by closed form."""

from __future__ import annotations

from typing import Any

from sim.cli_output import say, say_json, say_table
from sim.closed_forms import CubeOdds, cubes_for_promise
from sim.exit_codes import ExitStatus
from sim.quantities import AdviceError, parse_quantity
from sim.report.words import fabric_words
from topology.errors import Fault, InputError
from topology.fabric import Fabric
from topology.pod import CHIPS_PER_CUBE
from topology.shape import Shape, parse_shape
from topology.units import Unit

SHARE = Unit("1", low=0.0, high=1.0, open_ends=True)


def size_command(slices: str, time_share: str, host_availability: str, as_json: bool) -> int:
    """Print cubes and chips per fabric; blank where no closed form exists or no number of cubes is enough."""
    faults: list[Fault] = []
    shapes = shapes_and_counts(slices, faults)
    share = _share("--time-share", time_share, faults)
    host = _share("--host-availability", host_availability, faults)
    if faults:
        raise InputError(faults)
    odds = CubeOdds(host=host)
    wanted: dict[int, int] = {}
    for shape, count in shapes:
        wanted[shape.chips] = wanted.get(shape.chips, 0) + count
    chips = sum(size * count for size, count in wanted.items())
    rows: list[dict[str, Any]] = []
    for fabric in Fabric:
        cubes = cubes_for_promise(fabric, wanted, odds, share)
        rows.append(
            {"fabric": fabric.value, "cubes": cubes, "chips": None if cubes is None else cubes * CHIPS_PER_CUBE}
        )
    if as_json:
        say_json(
            {
                "slices": [{"shape": str(shape), "chips": shape.chips, "count": count} for shape, count in shapes],
                "time_share": share,
                "host_availability": host,
                "cube_availability": odds.cube,
                "promised_chips": chips,
                "fabrics": rows,
            }
        )
        return ExitStatus.DONE
    listed = ", ".join(f"{count} x {shape}" for shape, count in shapes)
    typed = f"for {time_share.strip()} of the time, hosts up {host_availability.strip()} of theirs"
    say(f"To hold {listed} ({chips:,} chips) {typed}:")
    table = [(fabric_words(row["fabric"]), row["cubes"], row["chips"], _over(row["chips"], chips)) for row in rows]
    say_table(("fabric", "cubes", "chips", "times the bare need"), table)
    say("Independent hosts, nothing else failing; limits of switch ports are ignored. Blank: no closed form, or never.")
    return ExitStatus.DONE


def _over(chips: int | None, promised: int) -> float | None:
    return None if chips is None else round(chips / promised, 3)


def shapes_and_counts(text: str, faults: list[Fault]) -> list[tuple[Shape, int]]:
    """Shapes and counts from `8x8x16:3,8x8x8:6`; adds a fault for each part that is wrong."""
    found: list[tuple[Shape, int]] = []
    for part in text.split(","):
        shape, colon, count = part.strip().partition(":")
        if not colon or not (count.isascii() and count.isdigit()) or not 0 < int(count) <= 10_000:
            faults.append(Fault("--slices", f"`{part.strip()}` is no SHAPE:NUMBER", "write for example `8x8x16:3`"))
            continue
        try:
            found.append((parse_shape(shape, "--slices"), int(count)))
        except InputError as error:
            faults.extend(error.faults)
    return found


def _share(option: str, text: str, faults: list[Fault]) -> float:
    """A share strictly between 0 and 1; adds a fault where it is none."""
    try:
        return parse_quantity(text, SHARE)
    except AdviceError as advice:
        faults.append(Fault(option, advice.what, advice.write))
        return 0.5
