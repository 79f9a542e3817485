"""Readings with noise: plan, quantise, charge, draw, seal."""
