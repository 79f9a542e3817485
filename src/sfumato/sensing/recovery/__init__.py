"""From noisy readings to sources: estimators, certificates, and their check."""
