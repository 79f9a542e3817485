"""Real rooms: are answers right, or do they say that they are not? The table of `docs/how-to/building.md`.

Readings are taken as they are, without the noise of a promise: what can be wrong here is the physics. The data
is not part of the project; without it nothing is run.

    python -m experiments.sensors.rooms DATA [--only lab] [--picture docs/pictures/array.png]
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
import pandas as pd

from sfumato.sensing import Sensors, Site, calibrate_site, describe_site, recover_rounds
from sfumato.sensing.results import RecoveredRounds

CROWD = 20
"""Persons in the lab by day beyond which a number is wrong; by night nobody is there."""
PIXEL_NOISE = 0.4
"""Degrees by which a pixel is off."""
SHOWN = {
    "2016-06-13T21:54:01Z": "lying in the shower",
    "2016-06-13T21:57:02Z": "at the sink",
    "2016-06-13T22:00:00Z": "on the toilet",
    "2016-06-13T21:48:37Z": "there, winter clothes",
    "2016-06-13T22:10:00Z": "nobody",
}
"""Rounds of the bathroom that are drawn, and what is known of them."""
Outcome = Literal["right", "said", "unsaid"]
Judge = Callable[[str, list[dict[str, Any]]], bool]


@dataclass(frozen=True, eq=False)
class Room:
    """Readings in degrees, a row for each round; `right` judges the sources told for a time."""

    name: str
    site: Site
    read: pd.DataFrame
    right: Judge
    noise: float
    max_mass: float
    fit: tuple[Literal["offset"], ...] = ()


def above_level(site: Site, read: pd.DataFrame) -> Any:
    """Degrees above what sensors read where nobody is: rounds by sensors."""
    names = list(site.sensors.names)
    if site.level is None:
        return read[names].to_numpy()
    outside = read.get(site.level.running, pd.Series(0.0, read.index))
    level = np.array([float(one) for one in site.level.of(names, 0.0)])
    return read[names].sub(outside, axis=0).to_numpy() - level


def recovered(room: Room) -> RecoveredRounds:
    """What sources explain each round; an operator reads in units of what a source adds."""
    site, names = room.site, list(room.site.sensors.names)
    gain = float(site.per_source or 1)
    table = room.read[["time"]].copy()
    table[names] = above_level(site, room.read) / gain
    long = table.melt("time", names, "sensor", "value")
    return recover_rounds(
        long,
        site=site,
        noise=room.noise / gain,
        estimator="least",
        max_mass=room.max_mass,
        fit=room.fit,
    )


def judged(room: Room) -> tuple[Counter[Outcome], Counter[str]]:
    """How many rounds are right, wrong or untold and say so, wrong and do not; and their verdicts."""
    outcomes: Counter[Outcome] = Counter()
    verdicts: Counter[str] = Counter()
    for one in recovered(room).rounds:
        result = one.recovery
        kind = "failed" if result is None else result.verdict.kind
        sources = [] if result is None or result.answer is None else result.sources()
        fine = kind != "misfit" and room.right(one.time, sources)
        outcomes["right" if fine else "unsaid" if kind == "rely" else "said"] += 1
        verdicts[kind] += 1
    return outcomes, verdicts


def arrays(data: Path) -> Iterator[Room]:
    """A thermal array of 4 x 4 pixels over a bathroom and a bedroom, with people in known postures."""
    frames = pd.read_parquet(data / "thermal_array_4x4_people.parquet")
    frames = frames[frames.pec_ok == 1]
    names = [f"p{number:02}" for number in range(1, 17)]
    places = np.array([(number % 4 + 0.5, number // 4 + 0.5) for number in range(16)])
    pixels = [f"t{number:02}_dC" for number in range(1, 17)]
    for what, room, day in (
        ("array: bathroom, 66 minutes", "bathroom", 1),
        ("array: bedroom, 5 hours", "bedroom", 2),
        ("array: bedroom, May to October", "bedroom", None),
    ):
        some = frames[(frames.room == room) & ((frames.day == day) | (day is None))]
        table = pd.DataFrame((some[pixels].to_numpy() / 10), columns=names)
        table["chip"] = some.ambient_dC.to_numpy() / 10
        table["time"] = some.time.dt.strftime("%Y-%m-%dT%H:%M:%SZ").to_numpy()
        nobody = some.posture.isin(["8", "16", "None-After-Sleeping"]).to_numpy()
        site = _levels(
            describe_site(
                room, sensors=Sensors(places, names), grid=3, bounds=(0, 0, 4, 4),
                diffusion_time=0.15, radius="1/2", beside="5C", baseline="chip", step="0.1",
            ).site,
            table[nobody].drop_duplicates("time"),
        )  # fmt: skip
        minutes = "1min" if room == "bathroom" else "5min"
        first = ~some.time.dt.floor(minutes).duplicated().to_numpy()
        read, empty = table[first].reset_index(drop=True), nobody[first]
        yield Room(what, site, read, _over_the_warmest(site, read, places, empty), PIXEL_NOISE, 2.0)


def _over_the_warmest(site: Site, read: pd.DataFrame, places: Any, empty: Any) -> Judge:
    """Nobody: no answer, or little. Somebody: the largest mass is within a pixel of the warmest.

    Who lies is warm in several places: pixels within twice the noise of the warmest are as warm.
    """
    above = above_level(site, read)
    warm = above >= above.max(axis=1, keepdims=True) - 2 * PIXEL_NOISE
    warmest = {time: places[at] for time, at in zip(read["time"], warm, strict=True)}
    nobody = dict(zip(read["time"], empty, strict=True))

    def right(time: str, sources: list[dict[str, Any]]) -> bool:
        if nobody[time]:
            return bool(sum(one["mass"] for one in sources) < 0.5)
        if not sources:
            return False
        most = max(sources, key=lambda one: float(one["mass"]))
        ways = np.abs(np.array([most["x"], most["y"]]) - warmest[time])
        return bool(ways.max(axis=1).min() <= 1)

    return right


def labs(data: Path) -> Iterator[Room]:
    """The Intel lab, of whose people nothing is known but that by night there are none."""
    motes = pd.read_csv(data / "intel_lab_mote_positions.csv")
    motes = motes[motes.in_temperature_file == 1]
    names = [f"m{mote}" for mote in motes.mote]
    whole = pd.read_parquet(data / "intel_lab_temperature_30s.parquet")
    table = pd.DataFrame(
        whole[[f"mote_{mote:02}" for mote in motes.mote]].to_numpy(np.float64), columns=names
    )
    moments = pd.Timestamp("2004-02-28") + pd.to_timedelta(whole.step * 30, unit="s")
    table["time"] = moments.dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    bare = describe_site(
        "lab", sensors=Sensors(motes[["x_m", "y_m"]].to_numpy(float), names), grid=4,
        bounds=(0, 0, 41, 32), diffusion_time=4.0, radius=1, beside="1C", ambient="20C", step="0.01",
    ).site  # fmt: skip
    site = _levels(bare, table.iloc[0:240:10])  # the first two hours of the first night

    def right(time: str, sources: list[dict[str, Any]]) -> bool:
        day = 8 <= int(time[11:13]) < 20
        return bool(sources or not day) and sum(one["mass"] for one in sources) < (
            CROWD if day else 0.5
        )

    for what, rows in (
        ("lab: an hour of night", slice(2880, 3000, 10)),
        ("lab: an hour at noon", slice(4320, 4440, 10)),
        ("lab: a day", slice(2880, 5760, 120)),
        ("lab: all five days", slice(0, 14400, 480)),
    ):
        for fit in ((), ("offset",)):
            more = ", `--fit offset`" if fit else ""
            yield Room(what + more, site, table.iloc[rows], right, 0.25, 1.5, fit)


def weather(data: Path) -> Iterator[Room]:
    """Days of 45 stations in Sweden: the weather is no sum of sources, and every place told is wrong."""
    stations = pd.read_csv(data / "smhi_sweden_daily_temperature.csv")
    names = [f"s{station}" for station in stations.station]
    north = stations.lat.to_numpy()
    east = (stations.lon.to_numpy() - 17) * np.cos(np.radians(62))
    places = 111_195 * np.column_stack([east, north - 62])
    site = describe_site(
        "sweden", sensors=Sensors(places, names), grid=4, bounds=(-4e5, -8e5, 4e5, 8e5),
        diffusion_time=2e10, radius=50_000, beside="5C", ambient="0C", step="0.1",
    ).site  # fmt: skip
    table = stations.filter(like="day_").T.set_axis(names, axis=1).reset_index(names="time")
    for what, days in (("a day", 1), ("a week", 7), ("62 days", 62)):
        for fit in ((), ("offset",)):
            more = ", `--fit offset`" if fit else ""
            yield Room(
                f"weather: {what}{more}", site, table[:days], lambda *_: False, 0.5, 5.0, fit
            )


def draw(room: Room, times: dict[str, str], file: Path) -> None:
    """Some rounds of a thermal array: what its pixels read, and the mass that was recovered, by titles."""
    import matplotlib.pyplot as plt

    found = recovered(room)
    above = dict(zip(room.read["time"], above_level(room.site, room.read), strict=True))
    figure, axes = plt.subplots(1, len(times), figsize=(2.3 * len(times), 2.9), dpi=90)
    for axis, time in zip(axes, times, strict=True):
        image = axis.imshow(
            above[time].reshape(4, 4),
            origin="lower",
            extent=(0, 4, 0, 4),
            cmap="YlOrBr",
            vmin=0,
            vmax=7,
        )
        result = found.round_at(time)
        for one in [] if result.answer is None else result.sources():
            axis.scatter(one["x"], one["y"], 250 * one["mass"], "none", edgecolors="#0b5394", lw=2)
        axis.set(title=f"{times[time]}\nverdict: {result.verdict.kind}", xticks=[], yticks=[])
        axis.title.set_fontsize(9)
    bar = figure.colorbar(image, ax=list(axes), shrink=0.7)
    bar.set_label("degrees above the empty room", fontsize=8)
    figure.savefig(file, bbox_inches="tight")


def _levels(site: Site, empty: pd.DataFrame) -> Site:
    """The site with what its sensors read where nobody is."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "empty.csv")
        empty.to_csv(file, index=False)
        return calibrate_site(site, file, public=True).site


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description="Real rooms: are answers right, or do they say so?"
    )
    parser.add_argument("data", type=Path, help="the folder with the files of sensors")
    parser.add_argument("--only", default="", help="rooms whose name begins so")
    parser.add_argument("--picture", type=Path, help="draw rounds of the bathroom here, and stop")
    asked = parser.parse_args(argv)
    if asked.picture:
        draw(next(arrays(asked.data)), SHOWN, asked.picture)
        return
    print(
        "| readings | rounds | right | not told, or wrong, and said | wrong and unsaid | verdicts |"
    )
    print("|---|---|---|---|---|---|")
    for rooms in (arrays, labs, weather):
        for room in rooms(asked.data):
            if room.name.startswith(asked.only):
                outcomes, verdicts = judged(room)
                told = ", ".join(f"{kind} {count}" for kind, count in sorted(verdicts.items()))
                numbers = [outcomes[one] for one in ("right", "said", "unsaid")]
                print(
                    f"| {room.name} | {sum(numbers)} |", *(f"{n} |" for n in numbers), f"{told} |"
                )


if __name__ == "__main__":
    main()
