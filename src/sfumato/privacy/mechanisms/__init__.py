"""Mechanisms: small frozen values that know their cost and how they sample."""
