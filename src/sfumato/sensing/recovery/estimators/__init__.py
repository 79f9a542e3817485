"""Estimators of sources from noisy readings, one file each."""
