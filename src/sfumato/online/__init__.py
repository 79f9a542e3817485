"""Follow-the-perturbed-leader learners whose regret follows from privacy."""

from sfumato.online.adapters import BatchMixture, StreamMixture
from sfumato.online.ball import (
    ball_best_loss,
    ball_excess,
    ball_play,
    ball_play_ahead,
    gaussian_first_order_bound,
    gaussian_regret_bound,
    tuned_sigma,
)
from sfumato.online.chooser import Chooser
from sfumato.online.ensemble import gaussian_orthogonal, symmetric_laplace
from sfumato.online.pca import be, draw_projection, exponentiated_gradient, follow, pca_regret
from sfumato.online.perturbations import (
    Exponential,
    Frechet,
    Gaussian,
    Gumbel,
    Laplace,
    Pareto,
    Perturbation,
    Weibull,
    excess,
    perturbation,
)
from sfumato.online.regret import (
    doubling_bound,
    first_order_bound,
    play_doubling,
    regret,
    regret_bound,
    tuned_epsilon,
)
from sfumato.online.simplex import expected_play, hedge, leader, perturbed_leader, play, play_ahead
from sfumato.online.stability import OneStep, consistency, lipschitz_bound, one_step_privacy
from sfumato.online.thin import Views, thin

__all__ = [
    "BatchMixture",
    "Chooser",
    "Exponential",
    "Frechet",
    "Gaussian",
    "Gumbel",
    "Laplace",
    "OneStep",
    "Pareto",
    "Perturbation",
    "StreamMixture",
    "Views",
    "Weibull",
    "ball_best_loss",
    "ball_excess",
    "ball_play",
    "ball_play_ahead",
    "be",
    "consistency",
    "doubling_bound",
    "draw_projection",
    "excess",
    "expected_play",
    "exponentiated_gradient",
    "first_order_bound",
    "follow",
    "gaussian_first_order_bound",
    "gaussian_orthogonal",
    "gaussian_regret_bound",
    "hedge",
    "leader",
    "lipschitz_bound",
    "one_step_privacy",
    "pca_regret",
    "perturbation",
    "perturbed_leader",
    "play",
    "play_ahead",
    "play_doubling",
    "regret",
    "regret_bound",
    "symmetric_laplace",
    "thin",
    "tuned_epsilon",
    "tuned_sigma",
]
