"""Estimators by name: the protocol, the problem they solve, and how others add their own."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Protocol

from sfumato._registry import Registry
from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidParameter
from sfumato.sensing.model.operators.protocol import Operator
from sfumato.sensing.recovery.answer import Answer
from sfumato.sensing.recovery.certificate import Recovery

DEFAULT_ESTIMATOR = "bayes-median"


@dataclass(frozen=True, slots=True, eq=False)
class RecoveryProblem:
    """What an estimator answers: noisy readings of sources through an operator.

    Attributes:
        operator: Maps masses of cells to readings of sensors.
        readings: One noisy number for each sensor, in the operator's unit.
        noise: Standard deviation of the noise of each reading; None where it is unknown.
        max_mass: The largest mass that one source may have.
        certificate: R of the same readings, the least mass that explains them, with its proof.
        rng: A NumPy generator, for estimators that draw.
        count: The number of sources, where the caller knows it.
        max_sources: The most sources to consider; None for the estimator's own limit.
        labels: On a graph, the community of each node, or None.
        offset: Whether all readings may share an offset still: what was fitted of it is taken off, and is
            not known for sure. Who counts that says so in the answer's `offset`.
    """

    operator: Operator
    readings: FloatArray
    noise: float | None
    max_mass: float
    certificate: Recovery
    rng: Any
    count: int | None = None
    max_sources: int | None = None
    labels: IntArray | None = None
    offset: bool = False

    def known_noise(self, who: str) -> float:
        """The deviation of the noise, for estimators that cannot do without."""
        return required_noise(self.noise, who)


class Estimator(Protocol):
    """A way to turn noisy readings into sources; `register_estimator` adds one.

    Attributes:
        name: How `recover_sources` and `--estimator` call it.
        options: Which of the options "count" and "max_sources" it takes; others are refused.
        needs_certificate: Whether it can answer only where R has an answer.
    """

    @property
    def name(self) -> str:
        """How users call it."""

    @property
    def options(self) -> Collection[str]:
        """The names of the options it takes."""

    @property
    def needs_certificate(self) -> bool:
        """Whether it can answer only where R has an answer."""

    def unsuitable(self, operator: Operator, noise: float | None) -> str:
        """Why it cannot answer here ("takes at most 5 cells"), so that R answers instead; or ""."""

    def estimate(self, problem: RecoveryProblem) -> Answer:
        """The sources that explain the readings."""


def _made(_: str, found: Any) -> Estimator:
    """Entry points name an estimator, or a class of one that takes no arguments."""
    estimator: Estimator = found() if isinstance(found, type) else found
    _check(estimator)
    return estimator


_HERE = "sfumato.sensing.recovery.estimators"
ESTIMATORS = Registry[Estimator](
    "estimator",
    "sfumato.estimators",
    {
        "bayes-median": f"{_HERE}.bayes_median:ESTIMATOR",
        "least": f"{_HERE}.least_mass:ESTIMATOR",
        "off-grid": f"{_HERE}.off_grid:ESTIMATOR",
        "mixture": f"{_HERE}.mixture:ESTIMATOR",
    },
    made=_made,
)


def register_estimator(estimator: Estimator, *, replace: bool = False) -> Estimator:
    """Make an estimator known by its name to `recover_sources`, the command line and the tables.

    A package can also name one in its entry points, group `sfumato.estimators`: an object with
    the attributes of `Estimator`, or a class of it that takes no arguments.

    Args:
        estimator: An object with the attributes and methods of `Estimator`.
        replace: Whether it may take the place of one with the same name.

    Returns:
        The estimator itself.

    Raises:
        InvalidParameter: If the name is taken, or the object is no estimator.
    """
    _check(estimator)
    ESTIMATORS.add(estimator.name, estimator, replace=replace)
    return estimator


def _check(estimator: Estimator) -> None:
    missing = [
        part
        for part in ("name", "options", "needs_certificate", "unsuitable", "estimate")
        if not hasattr(estimator, part)
    ]
    if missing:
        raise InvalidParameter(f"an estimator needs {missing[0]!r}; nothing was registered")


def unregister_estimator(name: str) -> None:
    """Forget the estimator that was registered under this name.

    Args:
        name: The name it was registered under; an estimator of the package stays.

    Raises:
        InvalidParameter: None was registered under it.
    """
    ESTIMATORS.remove(name)


def estimator_named(name: str) -> Estimator:
    """The estimator of this name; underscores count as hyphens.

    Args:
        name: "bayes-median", "least", "off-grid", "mixture", or one that was registered.

    Returns:
        The estimator.

    Raises:
        InvalidParameter: If there is none of this name.

    >>> estimator_named("bayes_median").name
    'bayes-median'
    """
    for wanted in dict.fromkeys((name, name.replace("_", "-"))):
        if wanted in estimator_names():
            return ESTIMATORS.get(wanted)
    known = ", ".join(estimator_names())
    raise InvalidParameter(f"`estimator` is one of {known}, got {name!r}; nothing was recovered")


def estimator_names() -> list[str]:
    """The names of all estimators: the package's, then those that others have added.

    Returns:
        Names that `estimator_named` knows.
    """
    return list(ESTIMATORS.names())


def added_estimators() -> list[str]:
    """The names of the estimators that are not the package's own.

    Returns:
        Names that `estimator_named` knows.
    """
    return estimator_names()[len(ESTIMATORS.own) :]


def required_noise(noise: float | None, who: str) -> float:
    """The deviation of the noise, or an error that says who needs it."""
    if not noise:
        raise InvalidParameter(f"{who} needs the sigma of the noise; nothing was recovered")
    return noise
