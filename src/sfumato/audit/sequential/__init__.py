"""Refutation by betting: stakes, bets, and confirmation on fresh runs."""
