"""Probabilities as people read them."""

from __future__ import annotations


def percent(probability: float) -> str:
    """A probability for people; one that is not quite sure is never rounded to sure.

    >>> percent(0.912), percent(0.9999), percent(1.0)
    ('91 %', '>99 %', '>99 %')
    """
    if probability < 0.005:
        return "<1 %"
    return f"{100 * probability:.0f} %" if probability < 0.995 else ">99 %"
