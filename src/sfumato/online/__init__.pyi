from .adapters import BatchMixture, StreamMixture
from .chooser import Chooser
from .laws import Exponential, Frechet, Gaussian, Gumbel, Laplace, Pareto, Perturbation, Weibull
from .perturbations import excess, perturbation
from .regrets import (
    best_loss,
    doubling_bound,
    first_order_bound,
    hedge_rate,
    play_doubling,
    regret,
    regret_bound,
    tuned_epsilon,
)
from .sequences import SEQUENCES, fair_coins, leader_killer, one_good
from .simplex import (
    expected_play,
    hedge,
    leader,
    lookahead_play,
    perturbed_leader,
    play,
    totals_before,
)
from .thinning import Views, thin

__all__ = [
    "SEQUENCES",
    "BatchMixture",
    "Chooser",
    "Exponential",
    "Frechet",
    "Gaussian",
    "Gumbel",
    "Laplace",
    "Pareto",
    "Perturbation",
    "StreamMixture",
    "Views",
    "Weibull",
    "best_loss",
    "doubling_bound",
    "excess",
    "expected_play",
    "fair_coins",
    "first_order_bound",
    "hedge",
    "hedge_rate",
    "leader",
    "leader_killer",
    "lookahead_play",
    "one_good",
    "perturbation",
    "perturbed_leader",
    "play",
    "play_doubling",
    "regret",
    "regret_bound",
    "thin",
    "totals_before",
    "tuned_epsilon",
]
