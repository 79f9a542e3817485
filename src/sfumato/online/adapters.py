"""Mixtures of models that learn as data comes, in the manners of river and of scikit-learn.

Neither package is imported or needed: anything with `learn_one` and `predict_one`, or with
`partial_fit` and `predict`, can be mixed. A prediction is the mean of the models' predictions,
weighted with the chances of a `Chooser`. For a loss that is convex in the prediction the mean costs
at most what a choice by those chances costs on average, so `chooser.bound` also bounds how much
more the mixture lost than its best model. A batch is predicted with one list of weights, so it is
one round: its loss is the sum over its examples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from sfumato._types import FloatArray
from sfumato.errors import InvalidParameter
from sfumato.online._words import counted
from sfumato.online.chooser import Chooser

Loss = Callable[[float, float], float]
M = TypeVar("M", bound="BatchMixture")
S = TypeVar("S", bound="StreamMixture")

STREAM, BATCH = ("learn_one", "predict_one"), ("partial_fit", "predict")


class StreamModel(Protocol):
    """A regressor of river."""

    def learn_one(self, x: Any, y: Any, /) -> object:
        """Learn from one example."""

    def predict_one(self, x: Any, /) -> Any:
        """The prediction for one example."""


class BatchModel(Protocol):
    """A regressor of scikit-learn that learns in parts."""

    def partial_fit(self, X: Any, y: Any, /) -> object:  # noqa: N803 - their name
        """Learn from some examples."""

    def predict(self, X: Any, /) -> Any:  # noqa: N803
        """The predictions for some examples."""


def squared(y_true: float, y_pred: float) -> float:
    """The squared error, which is convex in the prediction.

    >>> squared(3.0, 1.0)
    4.0
    """
    return (y_pred - y_true) * (y_pred - y_true)


class StreamMixture:
    """Mix regressors of river, so that predictions are nearly as good as those of the best of them.

    Use it as `river.ensemble.EWARegressor`, without a learning rate: `predict_one(x)`,
    `learn_one(x, y)`. `loss` is any function of the truth and a prediction, such as one of
    `river.optim.losses`; it should be convex in the prediction. For river's own `evaluate` and
    metrics, say once `river.base.Regressor.register(StreamMixture)`.
    """

    _supervised = True  # river asks

    def __init__(
        self, models: Sequence[StreamModel], noise: str = "gumbel", *, loss: Loss | None = None
    ) -> None:
        _require_models(models, STREAM)
        self.models = models
        self.noise = noise
        self.loss = loss
        self.chooser = _chooser(len(models), noise)

    def __repr__(self) -> str:
        return _summary(self, self.chooser)

    @property
    def weights(self) -> list[float]:
        """What each model counts for; they add up to 1."""
        return list(self.chooser.probabilities.values())

    def predict_one(self, x: Any) -> float:
        """The weighted mean of the models' predictions."""
        return float(
            sum(
                weight * float(model.predict_one(x))
                for weight, model in zip(self.weights, self.models, strict=True)
            )
        )

    def learn_one(self, x: Any, y: float) -> None:
        """Weigh the models by what they predict for x before they see y, then let each learn it."""
        _vector("y", [y])
        loss = self.loss or squared
        self.chooser.observe([float(loss(y, float(model.predict_one(x)))) for model in self.models])
        for model in self.models:
            model.learn_one(x, y)

    def clone(
        self: S, new_params: Mapping[str, Any] | None = None, include_attributes: bool = False
    ) -> S:
        """A mixture made like this one that has learnt nothing, or all the same, as river's models do it."""
        if include_attributes:
            if new_params:
                raise InvalidParameter(
                    f"what was learnt is of other parameters than the new {sorted(new_params)}; "
                    "nothing was cloned"
                )
            return deepcopy(self)
        unknown = (new_params or {}).keys() - {"models", "noise", "loss"}
        if unknown:
            raise InvalidParameter(
                f"a mixture has models, noise and loss, got {min(unknown)!r}; nothing was cloned"
            )
        if not all(hasattr(model, "clone") for model in self.models):
            raise InvalidParameter(
                "models must have `clone`, as river's do, not all have; nothing was cloned"
            )
        models: list[Any] = [cast(Any, model).clone() for model in self.models]
        given = {"models": models, "noise": self.noise, "loss": self.loss, **(new_params or {})}
        return type(self)(**given)


class BatchMixture:
    """Mix regressors of scikit-learn that have `partial_fit`, so that nearly the best of them predicts.

    Models are weighed by how well they predict each new batch before they learn from it. The first
    batch is only learnt, so after `fit`, which is one batch from the start, all count alike. A
    batch is one round of `chooser_`, whose `bound` is of the sum of all losses: small batches let
    weights follow sooner. The models given stay as they are; `models_` are copies that learn. In
    pipelines and cross-validation scikit-learn wants its own base classes: `class
    Mixture(RegressorMixin, BatchMixture, BaseEstimator): pass`.
    """

    def __init__(
        self, models: Sequence[BatchModel], noise: str = "gumbel", *, loss: Loss | None = None
    ) -> None:
        _require_models(models, BATCH)
        self.models = models
        self.noise = noise
        self.loss = loss

    def __repr__(self) -> str:
        return _summary(self, getattr(self, "chooser_", None))

    @property
    def weights_(self) -> list[float]:
        """What each model counts for; they add up to 1."""
        if not hasattr(self, "chooser_"):
            raise InvalidParameter("a mixture must be fitted first; nothing was predicted")
        return list(self.chooser_.probabilities.values())

    def fit(self: M, X: Any, y: Any) -> M:  # noqa: N803
        """Forget everything, and let a copy of each model learn from these examples."""
        _vector("y", y)
        self.chooser_ = _chooser(len(self.models), self.noise)
        self.models_ = [deepcopy(model) for model in self.models]
        return self._learn(X, y)

    def partial_fit(self: M, X: Any, y: Any) -> M:  # noqa: N803
        """Weigh the models by what they predict for X before they see y, then let each learn it."""
        if not hasattr(self, "chooser_"):
            return self.fit(X, y)
        truth, predicted = _vector("y", y), self._predictions(X)
        if predicted.shape[1] != truth.size:
            raise InvalidParameter(
                f"there must be one y for each example, got {truth.size} for {predicted.shape[1]}; "
                "nothing was learnt"
            )
        loss = self.loss or squared
        pairs = zip(truth.tolist(), predicted.T.tolist(), strict=True)
        losses = np.array(
            [[loss(true, one) for one in row] for true, row in pairs], dtype=np.float64
        )
        self.chooser_.observe(losses.reshape(-1, len(self.models_)).sum(axis=0))
        return self._learn(X, y)

    def predict(self, X: Any) -> FloatArray:  # noqa: N803
        """The weighted mean of the models' predictions."""
        weights = np.array(self.weights_)
        return np.asarray(weights @ self._predictions(X, "predicted"), dtype=np.float64)

    def score(self, X: Any, y: Any) -> float:  # noqa: N803
        """R**2 of the predictions, as scikit-learn's regressors: 1 is perfect, 0 what the mean of y gets."""
        truth, predicted = _vector("y", y, "scored"), self.predict(X)
        if truth.size != predicted.size or truth.size < 2:
            raise InvalidParameter(
                "there must be one y for each example, and two at least, got "
                f"{truth.size} for {predicted.size}; nothing was scored"
            )
        left, all_of_it = (
            float(((truth - predicted) ** 2).sum()),
            float(((truth - truth.mean()) ** 2).sum()),
        )
        return 1 - left / all_of_it if all_of_it else float(left == 0)

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - scikit-learn calls it so
        """What the mixture was made with."""
        return {"models": self.models, "noise": self.noise, "loss": self.loss}

    def set_params(self: M, **params: Any) -> M:
        """Change what the mixture was made with; weights are kept until the next `fit`."""
        unknown = params.keys() - self.get_params().keys()
        if unknown:
            raise InvalidParameter(
                f"a mixture has models, noise and loss, got {min(unknown)!r}; nothing was set"
            )
        _require_models(params.get("models", self.models), BATCH)
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def _predictions(self, X: Any, undone: str = "learnt") -> FloatArray:  # noqa: N803
        """Predictions, models by examples."""
        rows = enumerate(model.predict(X) for model in self.models_)
        return np.stack(
            [_vector(f"predictions of model {place}", row, undone) for place, row in rows]
        )

    def _learn(self: M, X: Any, y: Any) -> M:  # noqa: N803
        for model in self.models_:
            model.partial_fit(X, y)
        return self


def _chooser(count: int, noise: str) -> Chooser[int]:
    """A chooser among models by their places; models need not be comparable, or hashable."""
    return Chooser(range(count), noise)


def _require_models(models: Any, needs: tuple[str, str]) -> None:
    """Refuse what cannot be mixed, before anything is learnt."""
    if not isinstance(models, Sequence) or not models:
        raise InvalidParameter(
            f"models must be a list of at least one model, got {models!r}; no mixture was made"
        )
    for place, model in enumerate(models):
        if isinstance(model, type) or not all(
            callable(getattr(model, name, None)) for name in needs
        ):
            raise InvalidParameter(
                f"models must have {needs[0]} and {needs[1]}, got {type(model).__name__} at place {place}; "
                "no mixture was made"
            )


def _summary(mixture: StreamMixture | BatchMixture, chooser: Chooser[int] | None) -> str:
    """What a mixture prints: its model that counts most, and how far it may be behind the best."""
    begun = (
        f"{type(mixture).__name__}({counted(len(mixture.models), 'model')}, noise={mixture.noise!r}"
    )
    if chooser is None:
        return f"{begun}: not fitted)"
    chances = chooser.probabilities
    first = max(chances, key=lambda place: chances[place])
    return (
        f"{begun}: after {counted(chooser.rounds, 'round')} model {first} counts {chances[first]:.2f}, "
        f"regret at most {chooser.bound:.4g})"
    )


def _vector(name: str, values: Any, undone: str = "learnt") -> FloatArray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):
        raise InvalidParameter(
            f"{name} must be numbers, got something else; nothing was {undone}"
        ) from None
    if not np.isfinite(array).all():
        wrong = array[~np.isfinite(array)].flat[0]
        raise InvalidParameter(f"{name} must be finite, got {wrong}; nothing was {undone}")
    if array.ndim != 1:
        raise InvalidParameter(
            f"{name} must be one number for each example, got shape {array.shape}; nothing was {undone}"
        )
    return array
