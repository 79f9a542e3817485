"""A local map with what was promised, how sure it is, and how it is drawn and written."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.figures import TOPS, Frame, Overlay, Words, heatmap_figure, png_of, round_number
from sfumato.files import write_file, write_json
from sfumato.heatmap.accuracy import ErrorInterval, ErrorName, Uncertainty, drawn_errors, on_scale
from sfumato.heatmap.accuracy.uncertainty import SIGMA, uncertainty
from sfumato.heatmap.analysis import smooth
from sfumato.heatmap.export.picture import hatch_text, rings_text
from sfumato.heatmap.inference import CountsPosterior
from sfumato.heatmap.local.collect import Collector, Tally
from sfumato.heatmap.local.decoder import decode
from sfumato.heatmap.local.question import Question
from sfumato.heatmap.local.rounds import design, evidence_of, next_question
from sfumato.heatmap.measure import amount_of
from sfumato.heatmap.tiles import Tiles, dense_tiles
from sfumato.privacy import Guarantee, PureDP, ReplaceUser
from sfumato.privacy.accounting import encode_guarantee
from sfumato.spaces import Area, area_of_plane

FORMAT = "sfumato-local-map/1"
LEVEL = 7
UNDONE = "nothing was written"
# How many these are nobody knows: that somebody was not there must not show.
OUTSIDE = "Devices without a place in the bounds are in it too, spread evenly over the map."
# What the truth of simulated cities was, in half widths of the interval that draws of the posterior
# give, on a scale of logarithms (distances) or logits (Similarity): low, middle, high.
CORRECTIONS: dict[ErrorName, tuple[float, float, float]] = {
    "emd": (-1.0, 0.3, 1.9),
    "similarity": (-4.8, 0.3, 3.4),
}


@dataclass(frozen=True, eq=False)
class LocalMap:
    """The map of all who answered; nothing in it was ever seen but randomised reports.

    Attributes:
        questions: What was asked.
        tally: What was counted.
        posterior: Maps that could have led to these reports.
    """

    questions: tuple[Question, ...]
    tally: Tally
    posterior: CountsPosterior = field(repr=False)

    @property
    def users(self) -> int:
        """How many answers count."""
        return sum(self.tally.counted)

    @property
    def guarantee(self) -> Guarantee:
        """What every device was promised for this campaign."""
        return Guarantee(PureDP(self.questions[0].epsilon), ReplaceUser(), "user", "local")

    @cached_property
    def area(self) -> Area:
        """The square of the questions, as a plane."""
        return area_of_plane(self.questions[0].bounds, LEVEL, square=False)

    @cached_property
    def tiles(self) -> Tiles:
        """The mean map, in users."""
        return dense_tiles(self.area.grid, LEVEL, self.posterior.means(LEVEL))

    def image(self, level: int = LEVEL, *, sigma: float = 0.0) -> FloatArray:
        """Shares of the cells of a level [row, column], row 0 at the lowest y, smoothed if asked."""
        return smooth(self.tiles.normalized().image(level), sigma)

    @cached_property
    def uncertainty(self) -> Uncertainty:
        """Bands, places that are busy for sure, and where the map says nothing."""
        return uncertainty(self.posterior, self.area, level=6)

    @cached_property
    def errors(self) -> dict[ErrorName, ErrorInterval]:
        """How far off the map is, smoothed by 0.02: the middle, and intervals meant to hold nine in ten.

        From draws of the posterior, corrected by what the truth of simulated cities was.
        """
        found = drawn_errors(self.posterior, self.tiles.normalized(), self.area)
        return {name: _corrected(found[name], name) for name in CORRECTIONS}

    def to_json(self) -> dict[str, Any]:
        """The map, the promise, the counts it was decoded to, and how sure it is."""
        return {
            "format": FORMAT,
            "campaign": self.questions[0].campaign,
            "questions": [one.digest for one in self.questions],
            "users": self.users,
            "answers": self.tally.to_json(),
            "guarantee": encode_guarantee(self.guarantee),
            "statement": str(self.guarantee),
            "outside": OUTSIDE,
            "bounds": list(self.questions[0].bounds),
            "error": {
                name: {"value": one.value, "low": one.low, "high": one.high}
                for name, one in self.errors.items()
            },
            "uncertainty": self.uncertainty.to_json(),
            "tiles": self.tiles.to_json(),
        }

    def png(self) -> bytes:
        """The picture: smoothed shares, hatch, rings, and the promise under it."""
        shares = self.image(sigma=SIGMA)
        shown, bounds = self.uncertainty.shown, self.questions[0].bounds
        top = round_number(max(float(shares.max()), 1e-12) * self.users, TOPS) / self.users
        low_x, low_y, high_x, high_y = bounds
        over = Overlay(
            silent=shown.silent,
            extent=bounds,
            rings=tuple((mark.x, mark.y) for mark in shown.marks),
            dashed=shown.untested,
            reach=(shown.reach * (high_x - low_x), shown.reach * (high_y - low_y)),
            hatch_says=hatch_text() if shown.silent.any() else "",
            rings_say=rings_text(shown),
        )
        error = self.errors["emd"]
        words = Words(
            title=f"Local heatmap: {self.questions[0].campaign}",
            subtitle=f"{amount_of(self.users, 'devices')} · {self.guarantee.loss} each, on the device",
            legend=f"smoothed share of all devices in a cell of 1/{1 << LEVEL} of a side",
            caption=f"Guarantee: {self.guarantee}.\nOff by {error.low:.3f} to {error.high:.3f} of a side "
            f"in earth mover's distance, with a chance of about 90%. {OUTSIDE}\n"
            f"Smoothed by a Gaussian of {100 * SIGMA:g}% of the side.",
        )
        frame = Frame(extent=bounds, window=bounds)
        return png_of(heatmap_figure(shares, frame, words=words, top=top, overlay=over))

    def write(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the map: .json holds all of it, .png is a picture, .npy the shares of 128 x 128 cells.

        Args:
            path: Where; its ending says what.
            overwrite: Whether a file of that name gives way.

        Raises:
            InvalidParameter: The ending is another.

        """
        target = Path(path)
        match target.suffix.lower():
            case ".json":
                write_json(target, self.to_json(), overwrite=overwrite)
            case ".png":
                write_file(target, self.png(), overwrite=overwrite)
            case ".npy":
                import io

                held = io.BytesIO()
                np.save(held, self.image())
                write_file(target, held.getvalue(), overwrite=overwrite)
            case _:
                raise InvalidParameter(
                    f"a local map is written as .json, .png or .npy, got {target.name}; {UNDONE}"
                )


def _corrected(drawn: ErrorInterval, name: ErrorName) -> ErrorInterval:
    value, low, high = (on_scale(name, one) for one in (drawn.value, drawn.low, drawn.high))
    half = (high - low) / 2
    ends = [_off_scale(name, value + part * half) for part in CORRECTIONS[name]]
    return ErrorInterval(ends[1], min(ends), max(ends))


def _off_scale(name: ErrorName, number: float) -> float:
    return math.exp(number) if name == "emd" else 1 / (1 + math.exp(-number))


def decode_answers(collector: Collector) -> LocalMap:
    """The map of all answers that count, decoded together.

    Args:
        collector: What was gathered.

    Returns:
        The map.

    Raises:
        InvalidInput: No answer counts.

    """
    users = sum(collector.tally.counted)
    if not users:
        raise InvalidInput("no answer counts: a map needs at least 1; nothing was decoded")
    evidence = [
        evidence_of(question, held)
        for question, held in zip(collector.questions, collector.reports, strict=True)
        if held
    ]
    return LocalMap(tuple(collector.questions), collector.tally, decode(evidence, users))


def ask_next(collector: Collector) -> Question:
    """The question of round 2, from the answers to round 1.

    Args:
        collector: What was gathered of round 1.

    Returns:
        The question.

    Raises:
        InvalidInput: Round 2 was asked already, or no answer counts.
        InvalidParameter: So few users at this epsilon have one round.

    """
    if len(collector.questions) != 1:
        raise InvalidInput("the second question was asked already; no further one was made")
    (first,) = collector.questions
    plan = design(first.users, first.epsilon)
    if not plan.cells:
        raise InvalidParameter(
            f"{amount_of(first.users, 'users')} at epsilon {first.epsilon} have one round: ask for a map "
            "instead; no question was made"
        )
    return next_question(plan, first, decode_answers(collector).posterior)
