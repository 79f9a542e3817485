"""Tests of a fixed number of runs: events, exact ratio tests, lower bounds, delta profiles."""
