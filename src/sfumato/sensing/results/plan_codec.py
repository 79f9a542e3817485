"""The parts of a plan of sensors that are read back from JSON: its design, and what was simulated."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np

from sfumato.privacy.accounting import decode_loss, encode
from sfumato.sensing.model.site import Site
from sfumato.sensing.planning.design import Curve, Design
from sfumato.sensing.planning.forecast import (
    ESTIMATORS,
    ErrorForecast,
    RecoveryForecast,
)
from sfumato.sensing.planning.ratio import ErrorRatio
from sfumato.sensing.planning.requirement import Requirement
from sfumato.sensing.planning.synthetic import SyntheticOptions
from sfumato.sensing.release.noise_plan import SensorLoss


def design_json(
    design: Design,
    total: SensorLoss,
    readings: int | None,
    options: SyntheticOptions | None,
) -> dict[str, Any]:
    """The design, with its whole site."""
    asked = None if options is None else asdict(options)
    if asked is not None and asked["radius"] is not None:
        asked["radius"] = str(asked["radius"])
    return {
        "site": design.site.to_json(),
        "loss": encode(design.loss),
        "sources": design.sources,
        "masses": design.masses,
        "calibration": design.calibration,
        "total": encode(total),
        "readings": readings,
        "options": asked,
    }


def read_design(data: Any) -> Design:
    """The design that `design_json` states."""
    loss = decode_loss(data["loss"])
    if not isinstance(loss, SensorLoss):
        raise ValueError(f"its loss is neither rho nor epsilon: {loss}")
    site = Site.from_json(data["site"])
    return Design(site, loss, data["sources"], data["masses"], data["calibration"])


def read_options(data: Any) -> SyntheticOptions | None:
    """What a made-up site was asked to be."""
    return None if data is None else SyntheticOptions(**data)


def read_forecast(data: Any) -> RecoveryForecast:
    """Simulated errors, as `forecast_json` states them."""
    found = {name: _error_forecast(one) for name, one in data["estimators"].items()}
    ratio, (quick, slow) = data["ratio"], ESTIMATORS
    return RecoveryForecast(
        found[quick],
        found.get(slow),
        data["even"],
        data["why_no_bayes_median"],
        None if ratio is None else _ratio(ratio),
        tuple(one for name, one in found.items() if name not in ESTIMATORS),
        tuple(data.get("left_out", {}).items()),
    )


def read_requirement(data: Any) -> Requirement:
    """What a target error takes, as `required_json` states it."""
    renamed = {"target": data["want"], "enough": _number(data["within_a_tenth"])}
    otherwise = ("want", "within_a_tenth", "least")
    kept = {name: value for name, value in data.items() if name not in otherwise}
    return Requirement(
        **kept
        | renamed
        | {
            "tried": tuple(data["tried"]),
            "best": _number(data["best"]),
            "best_error": _error_forecast(data["least"]),
            "means": {one["value"]: _error_forecast(one) for one in data["means"]},
        }
    )


def read_curve(data: Any) -> Curve:
    """How errors move with a number of the design, as `curves_json` states it."""
    return Curve(
        data["axis"],
        tuple(data["values"]),
        {name: np.array(found, dtype=np.float64) for name, found in data["errors"].items()},
        {name: tuple(map(_error_forecast, some)) for name, some in data["estimators"].items()},
        tuple(data["papers_upper_up_to_a_constant"]),
        tuple(data["papers_lower"]),
        np.array(data["errors_without_reading"], dtype=np.float64),
        data["best_by"],
    )


def _error_forecast(data: Any) -> ErrorForecast:
    # What is not finite is written as None: only the end of an interval is ever infinite.
    return ErrorForecast(
        data["estimator"],
        _number(data["mean"]),
        _number(data["low"]),
        _number(data["high"], beyond=math.inf),
        _number(data["deviation"]),
        data["trials"],
        data["failed"],
    )


def _ratio(data: Any) -> ErrorRatio:
    high = _number(data["high"], beyond=math.inf)
    return ErrorRatio(data["better"], data["value"], data["low"], high, data["trials"])


def _number(value: float | None, *, beyond: float = math.nan) -> float:
    return beyond if value is None else value
