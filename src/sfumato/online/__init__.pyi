from .adapters import BatchMixture, StreamMixture
from .ball import (
    ball_best_loss,
    ball_excess,
    ball_play,
    ball_play_ahead,
    gaussian_first_order_bound,
    gaussian_regret_bound,
    tuned_sigma,
)
from .chooser import Chooser
from .ensemble import gaussian_orthogonal, symmetric_laplace
from .pca import be, draw_projection, exponentiated_gradient, follow, pca_regret
from .perturbations import (
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
from .regrets import (
    doubling_bound,
    first_order_bound,
    play_doubling,
    regret,
    regret_bound,
    tuned_epsilon,
)
from .simplex import expected_play, hedge, leader, perturbed_leader, play, play_ahead
from .stability import OneStep, consistency, lipschitz_bound, one_step_privacy
from .thinning import Views, thin

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
