"""Losses, neighbors and guarantees; composition, conversion, calibration."""
