"""Who is trusted, and what it costs: maps of one city under several trust models, side by side.

python -m experiments.heatmaps.trust [--quick] [--trials N] [--only local] [--people 1000]
    [--page docs/reference/trust.md]

The same samples of one made-up city are released at epsilon 1 in every model of MODELS, with noise of
its exact law from hashes of what it is for: all numbers but seconds are the same on every run. Another
model is one more entry of MODELS; `--only` runs some models, `--people` some numbers
of people, and other rows of the page stay.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from experiments.heatmaps.joint import AtOnce
from experiments.heatmaps.protocol import chance, generator

from sfumato._types import FloatArray
from sfumato.heatmap import release_sums
from sfumato.heatmap.analysis import emd_share, similarity, smooth
from sfumato.heatmap.benchmark import Place, known_noise, sample_sums, synthetic_places
from sfumato.heatmap.local import (
    RandomBytes,
    design,
    first_question,
    plan_local,
    report_of,
    simulate_local_map,
)
from sfumato.heatmap.methods import (
    JointMethod,
    MapMethod,
    PyramidMethod,
    ShuffledMethod,
    method_named,
)
from sfumato.heatmap.shuffled import Device, Keys, Round, ShufflePlan, added_up, plan_shuffled
from sfumato.privacy import REHEARSAL, ApproxDP, Joint, Ledger, Noise, Shuffled
from sfumato.privacy.accounting import Model
from sfumato.records import CellSums, guard_sums
from sfumato.spaces import Area, Grid

AREA = Area(Grid(6), (0.0, 0.0, 1.0, 1.0), "plane")
USERS = (1_000, 10_000, 100_000, 1_000_000)
EPSILON, BUDGET, SIGMA = Fraction(1), ApproxDP(1, "1e-6"), 0.02
CITY = 100_000
ROW = 16
"""Bytes of a place: two doubles."""
KEYS = Keys(bytes(32)), Keys(bytes([1] * 32))


@dataclass(frozen=True, slots=True)
class Cost:
    """What one map takes beside its arithmetic.

    Attributes:
        sent: Bytes that a device sends.
        device: CPU seconds of a device.
        servers: CPU seconds of servers, beside making the map.

    """

    sent: int
    device: float = 0.0
    servers: float = 0.0


@dataclass(frozen=True, slots=True)
class TrustedModel:
    """A row of the table.

    Attributes:
        name: What it is called.
        method: The method of its maps.
        release: The blurred map of some people's sums; the words are what its noise is for.
        cost: What it takes with so many people.

    """

    name: str
    method: str
    release: Callable[[CellSums, tuple[object, ...]], FloatArray]
    cost: Callable[[int], Cost]


@dataclass(frozen=True, slots=True)
class Row:
    """Means over trials of one model with so many people."""

    name: str
    method: str
    users: int
    emd: float
    similarity: float
    cost: Cost
    seconds: float


def shuffled_trust(users: int) -> Shuffled:
    """A tenth may drop out, and a twentieth of all be read by others."""
    return Shuffled(users * 9 // 10, users, users // 20)


def released(method: MapMethod[Any], sums: CellSums, *, noise: Noise, model: Model) -> FloatArray:
    """A rehearsal, which protects nobody: its map, blurred."""
    made = release_sums(
        guard_sums(sums, source=REHEARSAL),
        AREA,
        ledger=Ledger.rehearsal(BUDGET, model=model),
        epsilon=EPSILON,
        method=method,
        noise=noise,
    )[0]
    return made.image(sigma=SIGMA)


def central(name: str) -> TrustedModel:
    """One hand gathers all rows."""

    def release(sums: CellSums, words: tuple[object, ...]) -> FloatArray:
        return released(
            method_named(name), sums, noise=known_noise("central", name, *words), model="central"
        )

    return TrustedModel("central", name, release, lambda _: Cost(ROW))


def joint(curious: int) -> TrustedModel:
    """Three parties keep their rows."""
    trust = Joint(3, curious)

    def release(sums: CellSums, words: tuple[object, ...]) -> FloatArray:
        noise = AtOnce(trust, generator("joint", curious, *words))
        return released(JointMethod(method_named("zoom"), trust), sums, noise=noise, model=trust)

    return TrustedModel(f"joint, {curious} of 3 curious", "zoom", release, lambda _: Cost(ROW))


def shuffled(width: int) -> TrustedModel:
    """Devices behind a shuffler, which follow so many cells of a level."""

    def release(sums: CellSums, words: tuple[object, ...]) -> FloatArray:
        trust = shuffled_trust(int(sums.units.sum() >> 20))
        noise = AtOnce(trust, generator("shuffled", width, *words))
        return released(ShuffledMethod(PyramidMethod(width), trust), sums, noise=noise, model=trust)

    def cost(users: int) -> Cost:
        return shuffled_cost(shuffled_plan(users, width))

    return TrustedModel("shuffled", f"pyramid, width {width}", release, cost)


def local() -> TrustedModel:
    """Devices randomise before they send: nobody is trusted."""

    def release(sums: CellSums, words: tuple[object, ...]) -> FloatArray:
        rng = generator("local", *words)
        # One place of each, from the mass of all: this varies a little more than each drawing its own.
        shares = sums.units / sums.units.sum()
        codes = rng.choice(sums.codes, int(sums.units.sum() >> 20), p=shares)
        fine = codes * 16 + rng.integers(0, 16, codes.size)
        means = simulate_local_map(fine, EPSILON, rng=rng).means(AREA.grid.levels)
        return smooth(AREA.grid.image(means / means.sum()), SIGMA)

    return TrustedModel("local", "two rounds", release, local_cost)


def local_cost(users: int) -> Cost:
    """Bytes by the plan; seconds of drawing a report."""
    question = first_question(design(users, EPSILON), bounds=AREA.bounds, campaign="trust")
    masses = [1] + [0] * (len(question.cells) - 1)
    began = time.process_time()
    for _ in range(100):
        report_of(question.channel, masses, RandomBytes())
    device = (time.process_time() - began) / 100
    return Cost(plan_local(users, EPSILON).answer_bytes, device)


def shuffled_plan(users: int, width: int) -> ShufflePlan:
    """The plan of such a map."""
    return plan_shuffled(
        AREA,
        epsilon=EPSILON,
        trust=shuffled_trust(users),
        adder=KEYS[0].public,
        shuffler=KEYS[1].public,
        width=width,
    ).plan


def shuffled_cost(plan: ShufflePlan) -> Cost:
    """Bytes by the plan; seconds of messages sealed and opened here, times how many there are."""
    sealed, opened = message_seconds(plan)
    many = plan.cells * plan.messages
    return Cost(plan.bytes_a_device, sealed * many, opened * many * plan.trust.devices)


def message_seconds(plan: ShufflePlan) -> tuple[float, float]:
    """CPU seconds to make one message, of a whole report, and to open one: medians, after one to warm up."""
    asked = Round(plan.first_level, np.arange(4**plan.first_level))
    many = asked.cells.size * plan.messages
    signed, times = asked.signed(plan, KEYS[0]), []
    for _ in range(6):
        device = Device(plan, [(0.5, 0.5)])
        began = time.process_time()
        report = device.report(signed, bytes(16))
        sealed = time.process_time()
        told = KEYS[1].unseal(report, plan.digest + bytes(16)) or b""
        opens = time.process_time()
        added_up(plan, asked, memoryview(told[-many * plan.record :]), KEYS[0])
        times.append(((sealed - began) / many, (time.process_time() - opens) / many))
    made, opened = zip(*times[1:], strict=True)
    return median(made), median(opened)


PAGE = """\
# Who is trusted, and what it costs

`python -m experiments.heatmaps.trust --page docs/reference/trust.md` makes this page: maps of one
made-up city at epsilon 1, 64 x 64 cells, means of {trials} samples, with noise of the law of each
model. EMD is in sides of the map and similarity is 1 for a perfect map, both seen through a blur of
2 % of the side. The city has 100,000 people, in the rows of 1,000,000 as many (then, and with 100,000,
all of them are asked, and samples differ in noise alone). All numbers but seconds (CPU, about) come
again on every run.

| people | model | method | EMD | similarity | bytes a device | s a device | s of servers |
|---|---|---|---|---|---|---|---|
{rows}

- **central**: whoever gathers the rows sees them. A device sends a place, two doubles.
- **joint** ([how](../how-to/joint.md)): three parties see their own rows; so many of them may use all
  that they see, and 0 protects against outsiders only. Parties exchange some 30 bytes for each count;
  their secure sums are not in the seconds (`benchmarks/joint.py`).
- **shuffled** ([how](../how-to/shuffled.md)): nobody sees rows; a tenth of the devices may drop out and
  a twentieth be read by others; delta is below 1e-10. Maps are pyramids: compare them with the central
  one, of width 20. Seconds of servers are those of opening all messages, one after another. Seconds
  of messages are those of one, measured, times how many there are: about, within a factor of 4.
- **local** ([how](../how-to/local.md)): nobody sees rows, and there is nobody to trust. Seconds of servers are
  those of the decoder and of simulating all devices. How it stands to other local maps: [rivals](local.md).
"""

MODELS: list[TrustedModel] = [
    central("zoom"),
    central("pyramid"),
    joint(0),
    joint(1),
    shuffled(20),
    shuffled(64),
    local(),
]


def city(many: int) -> Place:
    """The made-up city: of 100,000 people, or of as many as are asked for if they are more."""
    return synthetic_places(1, people=max(many, CITY), chance=chance)[0]


def samples_of(many: int, trials: int) -> list[CellSums]:
    """Samples of the city; where all of it is asked for, it is the same every time."""
    place = city(many)
    found = [
        sample_sums(place, many, AREA.grid, rng=generator("trust", many, trial))
        for trial in range(1 if many == place.users else trials)
    ]
    return found * (trials // len(found))


def run(
    users: Sequence[int],
    trials: int,
    *,
    models: Sequence[TrustedModel],
    watch: Callable[[str], None],
) -> list[Row]:
    """These models with every number of people."""
    rows = []
    for many in users:
        samples = samples_of(many, trials)
        for model in models:
            model.release(samples[0], ("compiled",))  # what is compiled once is in no row
            began = time.process_time()
            maps = [model.release(one, (many, trial)) for trial, one in enumerate(samples)]
            seconds = (time.process_time() - began) / trials
            scores = [judged(made, sums) for made, sums in zip(maps, samples, strict=True)]
            emd, shared = np.mean(scores, axis=0).tolist()
            rows.append(Row(model.name, model.method, many, emd, shared, model.cost(many), seconds))
            watch(f"{many} people, {model.name} by {model.method}: EMD {emd:.4f}")
    return rows


def judged(shown: FloatArray, sums: CellSums) -> tuple[float, float]:
    """EMD in sides, and similarity, both through the blur."""
    truth = np.zeros(AREA.grid.size)
    truth[sums.codes] = sums.units / sums.units.sum()
    seen = smooth(AREA.grid.image(truth), SIGMA)
    return emd_share(shown, seen, AREA, level=5), similarity(shown, seen)


def page(rows: Sequence[Row], trials: int, *, kept: Sequence[str] = ()) -> str:
    """The table as a page; lines that are kept are those of models that were not run."""
    made = [
        f"| {row.users:,} | {row.name} | {row.method} | {row.emd:.4f} | {row.similarity:.3f} | "
        f"{row.cost.sent:,} | {about(row.cost.device)} | {about(row.seconds + row.cost.servers)} |"
        for row in rows
    ]
    order = [(model.name, model.method) for model in MODELS]

    def place(line: str) -> tuple[int, int]:
        users, name, method = (word.strip() for word in line.split("|")[1:4])
        return int(users.replace(",", "")), order.index((name, method))

    return PAGE.format(trials=trials, rows="\n".join(sorted([*made, *kept], key=place)))


def kept_lines(path: Path, models: Sequence[TrustedModel], users: Sequence[int]) -> list[str]:
    """Lines of a page that are not of these models with so many people, or with any if none are given."""
    names, many = [model.name for model in models], [f"{one:,}" for one in users]
    lines = [line for line in path.read_text("utf-8").splitlines() if line.startswith("| 1")]
    words = [[word.strip() for word in line.split("|")[1:3]] for line in lines]
    return [
        line
        for line, (people, name) in zip(lines, words, strict=True)
        if name not in names or (many and people not in many)
    ]


def about(seconds: float) -> str:
    """Seconds to one digit."""
    if seconds == 0:
        return "0"
    digit = float(f"{seconds:.0e}")
    return f"{digit:,.0f}" if digit >= 1 else f"{digit:g}"


def main(argv: list[str] | None = None) -> int:
    """Run, and write or print the page."""
    parser = argparse.ArgumentParser(description="Maps of one city under several trust models")
    parser.add_argument("--quick", action="store_true", help="few people, in seconds")
    parser.add_argument("--trials", type=int, default=20, help="samples of the city")
    parser.add_argument("--page", type=Path, help="write the page here")
    parser.add_argument("--only", help="run the models of one name; the page keeps its other rows")
    parser.add_argument(
        "--people", type=int, nargs="*", choices=USERS, help="some numbers of people; likewise"
    )
    given = parser.parse_args(argv)
    users = (200,) if given.quick else tuple(given.people or USERS)
    trials = 1 if given.quick else given.trials
    models = [model for model in MODELS if given.only in (None, model.name)]
    if not models:
        raise SystemExit(f"there is no model {given.only!r}; nothing was run")

    def watch(step: str) -> None:
        print(step, file=sys.stderr, flush=True)

    part = given.page and (given.only or given.people)
    kept = kept_lines(given.page, models, given.people or ()) if part else []
    found = page(run(users, trials, models=models, watch=watch), trials, kept=kept)
    if given.page is None:
        print(found, end="")
    else:
        given.page.write_text(found, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
