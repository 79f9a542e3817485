"""From noisy counts to maps: posterior, priors, uncertainty, tree fits."""
