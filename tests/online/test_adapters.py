"""Mixtures work as models of river and of scikit-learn do, and are nearly as good as their best model."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

from sfumato.errors import InvalidParameter
from sfumato.online.adapters import BatchMixture, StreamMixture
from sfumato.online.chooser import Chooser


class Constant:
    """A model that always says the same, in both manners, and counts what it is taught."""

    def __init__(self, value: float) -> None:
        self.value = value
        self.seen = 0

    def learn_one(self, *_: Any) -> None:
        self.seen += 1

    def predict_one(self, x: Any) -> float:  # noqa: ARG002 - river calls it by name
        return self.value

    def partial_fit(self, _: Any, y: Any) -> None:
        self.seen += len(y)

    def predict(self, X: Any) -> Any:  # noqa: N803
        return np.full(len(X), self.value)


def constants() -> list[Constant]:
    return [Constant(value) for value in (0.0, 1.0, 2.0)]


def best_of_five() -> list[float]:
    """Weights after five rounds of y = 60 by hand: Hedge at rate ln 3 / saved, losses 236, 117 and 0."""
    losses, saved = np.array([236.0, 117.0, 0.0]), 0.0
    weights = np.full(3, 1 / 3)
    for number in range(1, 6):
        ahead = np.exp(-np.log(3) / saved * number * losses) if saved else np.array([0.0, 0.0, 1.0])
        saved += float((weights - ahead / ahead.sum()) @ losses)
        weights = np.exp(-np.log(3) / saved * number * losses)
        weights /= weights.sum()
    assert weights[2] > 0.9
    return [float(weight) for weight in weights]


def stream(rng: np.random.Generator, rounds: int) -> list[tuple[dict[str, float], float]]:
    x = rng.normal(size=(rounds, 2))
    y = x @ [1.0, -2.0] + 0.1 * rng.normal(size=rounds)
    return [({"a": float(a), "b": float(b)}, float(c)) for (a, b), c in zip(x, y, strict=True)]


@pytest.mark.unit
def test_models_begin_alike_and_the_best_wins() -> None:
    models = constants()
    mixture = StreamMixture(models)
    assert mixture.predict_one({}) == 1.0
    for _ in range(5):
        mixture.learn_one({}, 60)
    assert [model.seen for model in models] == [5, 5, 5]
    assert mixture.weights == pytest.approx(best_of_five(), rel=1e-12)
    assert mixture.predict_one({}) == pytest.approx(mixture.weights[1] + 2 * mixture.weights[2])


def absolute(true: float, told: float) -> float:
    return abs(told - true)


@pytest.mark.unit
def test_a_stream_that_spites_the_mixture_keeps_to_the_bound() -> None:
    mixture = StreamMixture([Constant(0.0), Constant(1.0)], loss=absolute)
    lost, each = 0.0, np.zeros(2)
    for _ in range(300):
        y = float(mixture.weights[1] < 0.5)
        lost += absolute(y, mixture.predict_one({}))
        each += [y, 1 - y]
        mixture.learn_one({}, y)
    assert 0 < lost - each.min() <= mixture.chooser.bound


@pytest.mark.unit
def test_batches_that_spite_the_mixture_keep_to_the_bound() -> None:
    """A batch is predicted with one list of weights. Learnt row by row the bound is of another game."""
    mixture = BatchMixture([Constant(0.0), Constant(1.0)], loss=absolute).fit([[0]], [0.0])
    lost, each = 0.0, np.zeros(2)
    rows, by_rows, rival = Chooser(range(2)), 0.0, np.zeros(2)
    for _ in range(40):
        y = np.full(100, float(mixture.weights_[1] < 0.5))
        lost += float(np.abs(mixture.predict(y[:, None]) - y).sum())
        each += [y.sum(), (1 - y).sum()]
        mixture.partial_fit(y[:, None], y)
        against = float(rows.probabilities[1] < 0.5)
        by_rows += 100 * abs(rows.probabilities[1] - against)
        rival += [100 * against, 100 * (1 - against)]
        for _ in range(100):
            rows.observe([against, 1 - against])
    assert mixture.chooser_.rounds == 40
    assert 0 < lost - each.min() <= mixture.chooser_.bound
    assert by_rows - rival.min() > 2 * rows.bound


@pytest.mark.reference
def test_river_forgets_its_models_where_we_do_not() -> None:
    """EWARegressor 0.26: weights begin at 1 each, not 1/3, and five losses of 3,400 make them all 0."""
    ensemble: Any = import_module("river.ensemble")
    base: Any = import_module("river.base")

    class Fixed(Constant, base.Regressor):  # type: ignore[misc]
        pass

    theirs = ensemble.EWARegressor([Fixed(value) for value in (0.0, 1.0, 2.0)])
    ours = StreamMixture([Fixed(value) for value in (0.0, 1.0, 2.0)])
    assert (theirs.predict_one({}), ours.predict_one({})) == (3.0, 1.0)
    for _ in range(5):
        theirs.learn_one({}, 60)
        ours.learn_one({}, 60)
    assert theirs.predict_one({}) == 0
    assert ours.weights == pytest.approx(best_of_five(), rel=1e-12)


@pytest.mark.reference
def test_it_is_a_model_to_river(rng: np.random.Generator) -> None:
    names = ("base", "evaluate", "linear_model", "metrics", "optim", "preprocessing")
    river: tuple[Any, ...] = tuple(import_module(f"river.{name}") for name in names)
    base, evaluate, linear_model, metrics, optim, preprocessing = river
    base.Regressor.register(StreamMixture)
    data = stream(rng, 300)

    def models() -> list[Any]:
        rates = (1e-4, 1e-2, 0.1)
        return [linear_model.LinearRegression(optim.SGD(rate), intercept_lr=0.1) for rate in rates]

    mixture = StreamMixture(models(), loss=optim.losses.Squared())
    piped = preprocessing.StandardScaler() | mixture
    error = evaluate.progressive_val_score(data, piped, metrics.MSE()).get()
    alone = [
        evaluate.progressive_val_score(
            data, preprocessing.StandardScaler() | model, metrics.MSE()
        ).get()
        for model in models()
    ]
    # By Jensen the mean of predictions lost no more than the plays, which the bound is of.
    assert mixture.chooser.rounds == 300
    assert 300 * error <= 300 * min(alone) + mixture.chooser.bound * (1 + 1e-9)
    assert error < sorted(alone)[1] < np.mean(alone)


@pytest.mark.reference
def test_it_is_a_model_to_scikit_learn(rng: np.random.Generator) -> None:
    base, linear_model, selection, pipeline, preprocessing = (
        import_module(f"sklearn.{name}")
        for name in ("base", "linear_model", "model_selection", "pipeline", "preprocessing")
    )

    class Mixture(base.RegressorMixin, BatchMixture, base.BaseEstimator):  # type: ignore[misc, name-defined]
        pass

    x = rng.normal(size=(400, 3))
    y = x @ [1.0, 2.0, 3.0]
    models = [linear_model.SGDRegressor(alpha=alpha, random_state=0) for alpha in (1e-4, 1.0, 10.0)]
    mixture = Mixture(models)
    for begin in range(0, 400, 20):
        assert mixture.partial_fit(x[begin : begin + 20], y[begin : begin + 20]) is mixture
    assert mixture.chooser_.rounds == 19
    assert np.argmax(mixture.weights_) == 0
    alike = np.mean([model.predict(x) for model in mixture.models_], axis=0)
    assert np.mean((mixture.predict(x) - y) ** 2) < np.mean((alike - y) ** 2) / 2
    assert mixture.score(x, y) == pytest.approx(
        1 - np.mean((mixture.predict(x) - y) ** 2) / np.var(y)
    )
    copied = base.clone(mixture)
    assert not hasattr(copied, "chooser_")
    assert copied.models[1] is not models[1]
    assert copied.models[1].alpha == 1.0
    piped = pipeline.make_pipeline(preprocessing.StandardScaler(), Mixture(models[:1])).fit(x, y)
    assert piped.predict(x).shape == (400,)
    # A mixture of one model is that model.
    scores = selection.cross_val_score(Mixture(models[:1]), x, y, cv=2)
    half = base.clone(models[0]).partial_fit(x[200:], y[200:])
    assert scores[0] == pytest.approx(half.score(x[:200], y[:200]))
    assert not hasattr(models[0], "coef_"), "models given are left as they are"


@pytest.mark.unit
def test_batches_are_weighed_before_they_are_learnt() -> None:
    models = constants()
    mixture = BatchMixture(models)
    with pytest.raises(InvalidParameter, match="fitted first"):
        mixture.predict([[0]])
    mixture.partial_fit([[0]] * 4, [0.0] * 4)
    assert mixture.weights_ == [1 / 3] * 3
    mixture.partial_fit([[0]] * 4, [0.0] * 4)
    # One round, of the sums 0, 4 and 16: 20/3 was paid, all of which looking ahead would have
    # saved.
    assert mixture.chooser_.rounds == 1
    weights = 3 ** (-3 / 20 * np.array([0.0, 4.0, 16.0]))
    assert mixture.weights_ == pytest.approx(list(weights / weights.sum()), rel=1e-12)
    assert [vars(model)["seen"] for model in mixture.models_] == [8, 8, 8]
    assert [model.seen for model in models] == [0, 0, 0]
    assert mixture.predict([[0]] * 2) == pytest.approx([mixture.predict([[0]])[0]] * 2)
    assert mixture.fit([[0]], [0.0]).weights_ == [1 / 3] * 3


@pytest.mark.unit
def test_any_loss_will_do() -> None:
    mixture = BatchMixture(constants(), loss=lambda true, told: abs(told - true))
    mixture.fit([[0]], [2.0]).partial_fit([[0]], [2.0])
    # Losses 2, 1, 0 of chances 1/3: 1 was paid above the least, all of which looking ahead would
    # have saved.
    assert mixture.chooser_.bound == pytest.approx(1)


@pytest.mark.unit
def test_parameters_are_what_it_was_made_with() -> None:
    models = constants()
    mixture = BatchMixture(models, "laplace")
    assert mixture.get_params() == {"models": models, "noise": "laplace", "loss": None}
    assert mixture.set_params(noise="gumbel") is mixture
    assert mixture.noise == "gumbel"
    with pytest.raises(InvalidParameter, match="got 'rate'"):
        mixture.set_params(rate=0.5)
    with pytest.raises(InvalidParameter, match="at least one model"):
        mixture.set_params(noise="laplace", models=[])
    assert (mixture.noise, mixture.models) == ("gumbel", models)


@pytest.mark.unit
def test_what_cannot_be_learnt_is_refused() -> None:
    mixture = BatchMixture(constants()).fit([[0]], [0.0])
    for y, rule in (
        ([0.0], "one y for each"),
        ([0.0, np.nan], "y must be finite, got nan; nothing was learnt"),
        ([[0.0], [1.0]], "got shape"),
        (["much", "more"], "y must be numbers"),
        ([0.0, 1e200], "losses must be finite, got inf for 0"),
    ):
        with pytest.raises(InvalidParameter, match=rule):
            mixture.partial_fit([[0], [0]], y)
    with pytest.raises(InvalidParameter, match="y must be finite, got nan"):
        mixture.fit([[0]], [np.nan])
    assert mixture.chooser_.rounds == 0
    assert [vars(model)["seen"] for model in mixture.models_] == [1, 1, 1]
    streamed = StreamMixture(constants())
    with pytest.raises(InvalidParameter, match="y must be finite, got nan"):
        streamed.learn_one({}, np.nan)
    assert streamed.chooser.rounds == 0
    for act, undone in (
        (lambda x: mixture.partial_fit(x, [0.0]), "learnt"),
        (mixture.predict, "predicted"),
    ):
        mixture.models_[1] = Constant(np.inf)
        with pytest.raises(
            InvalidParameter, match=f"of model 1 must be finite, got inf; nothing was {undone}"
        ):
            act([[0]])


@pytest.mark.unit
@pytest.mark.parametrize("made", [StreamMixture, BatchMixture])
def test_what_cannot_be_mixed_is_refused_at_once(made: Any) -> None:
    models: Any
    for models in ([], None, 3, Constant(1.0)):
        with pytest.raises(InvalidParameter, match=r"a list of at least one model, got (?!range)"):
            made(models)
    for wrong, named in ((1, "int"), (Constant, "type"), ("model", "str"), (object(), "object")):
        with pytest.raises(
            InvalidParameter, match=f"and predict.*, got {named} at place 1; no mixture"
        ):
            made([Constant(1.0), wrong])


@pytest.mark.reference
def test_scikit_learns_models_that_cannot_learn_in_parts_are_refused() -> None:
    linear_model: Any = import_module("sklearn.linear_model")
    with pytest.raises(
        InvalidParameter, match="must have partial_fit and predict, got LinearRegression"
    ):
        BatchMixture([linear_model.LinearRegression()])


@pytest.mark.unit
def test_mixtures_say_where_they_stand() -> None:
    batch = BatchMixture(constants()[:1], "laplace")
    assert repr(batch) == "BatchMixture(1 model, noise='laplace': not fitted)"
    said = "after 0 rounds model 0 counts 1.00, regret at most 0"
    assert repr(batch.fit([[0]], [0.0])) == f"BatchMixture(1 model, noise='laplace': {said})"
    mixture = StreamMixture([Constant(0.0), Constant(1.0)])
    mixture.learn_one({}, 1.0)
    said = "after 1 round model 1 counts 0.80, regret at most 0.5"
    assert repr(mixture) == f"StreamMixture(2 models, noise='gumbel': {said})"


@pytest.mark.reference
def test_a_clone_has_learnt_nothing() -> None:
    base, linear_model, preprocessing = (
        import_module(f"river.{name}") for name in ("base", "linear_model", "preprocessing")
    )
    base.Regressor.register(StreamMixture)
    mixture = StreamMixture(
        [linear_model.LinearRegression() for _ in range(2)], "laplace", loss=absolute
    )
    mixture.learn_one({"x": 1.0}, 5.0)
    fresh = mixture.clone()
    assert (fresh.chooser.rounds, fresh.noise, fresh.loss) == (0, "laplace", absolute)
    assert fresh.predict_one({"x": 1.0}) == 0 != mixture.predict_one({"x": 1.0})
    assert mixture.clone({"noise": "gumbel"}).noise == "gumbel"
    same = mixture.clone(include_attributes=True)
    assert same.chooser.rounds == 1
    assert same.models[0] is not mixture.models[0]
    assert (preprocessing.StandardScaler() | mixture).clone().predict_one({"x": 1.0}) == 0
    with pytest.raises(InvalidParameter, match="other parameters than the new"):
        mixture.clone({"noise": "gumbel"}, include_attributes=True)
    with pytest.raises(InvalidParameter, match="got 'rate'; nothing was cloned"):
        mixture.clone({"rate": 0.5})
    with pytest.raises(InvalidParameter, match="must have `clone`"):
        StreamMixture(constants()).clone()


@pytest.mark.reference
def test_a_plain_mixture_is_scored_and_cloned_as_scikit_learn_does(
    rng: np.random.Generator,
) -> None:
    base, linear_model, scores = (
        import_module(f"sklearn.{name}") for name in ("base", "linear_model", "metrics")
    )
    x, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    mixture = BatchMixture([linear_model.SGDRegressor(random_state=0)]).fit(x, y)
    assert mixture.score(x, y) == pytest.approx(scores.r2_score(y, mixture.predict(x)), rel=1e-12)
    copied = base.clone(mixture)
    assert repr(copied) == "BatchMixture(1 model, noise='gumbel': not fitted)"
    assert copied.models[0] is not mixture.models[0]
    # y that is always the same has no variance to explain.
    fixed = BatchMixture([Constant(1.0)]).fit([[0]], [1.0])
    assert [fixed.score([[0]] * 2, [value] * 2) for value in (1.0, 2.0)] == [1.0, 0.0]
    for told in ([1.0], [1.0, 2.0, 3.0]):
        with pytest.raises(InvalidParameter, match="nothing was scored"):
            fixed.score([[0]] * len(told[:2]), told)
