"""Compiled draws of paths of a hidden Markov model: one, two at once near where they are, who was who."""

from __future__ import annotations

import numpy as np

from sfumato._compiled import inner, njit

NEGLIGIBLE = 1e-20  # of chances that total 1: all such cells together, of 2,000, are below rounding


@njit
def draw_path(fit, step, chances):
    """A path from its posterior: filter forward, then draw backward [carter94].

    fit: rounds by cells, logarithms of likelihoods. step: the chance of going from row to column.
    chances: a uniform number for each round.
    """
    rounds, n = fit.shape
    filtered, ahead = np.empty((rounds, n)), np.full(n, 1.0 / n)
    for at in range(rounds):
        if at > 0:
            ahead[:] = 0.0
            for cell in range(n):  # few are likely at all
                chance = filtered[at - 1, cell]
                if chance > NEGLIGIBLE:
                    for to in range(n):
                        ahead[to] += chance * step[cell, to]
        best, total = fit[at].max(), 0.0
        for cell in range(n):
            filtered[at, cell] = ahead[cell] * np.exp(fit[at, cell] - best)
            total += filtered[at, cell]
        filtered[at] /= total
    path = np.empty(rounds, dtype=np.int64)
    for at in range(rounds - 1, -1, -1):
        weights = filtered[at].copy()
        if at < rounds - 1:
            for cell in range(n):
                weights[cell] *= step[cell, path[at + 1]]
        aim = chances[at] * weights.sum()
        reached, chosen = 0.0, n - 1
        for cell in range(n):
            reached += weights[cell]
            if reached > aim:
                chosen = cell
                break
        path[at] = chosen
    return path


@njit
def draw_swaps(gain, keep, swap, chances):
    """In which rounds two sources trade places, from its posterior: filter forward, then draw backward.

    All in logarithms. gain: for each round, by how much readings are likelier if they trade places
    in it. keep, swap: for each step, how likely both are if they trade in both of its rounds or in
    neither, and if in one of them. chances: a uniform number for each round.
    """
    rounds = len(gain)
    stayed, traded = np.empty(rounds), np.empty(rounds)
    stayed[0], traded[0] = 0.0, gain[0]
    for at in range(1, rounds):
        likely, other = keep[at - 1], swap[at - 1]
        stayed[at] = np.logaddexp(stayed[at - 1] + likely, traded[at - 1] + other)
        traded[at] = np.logaddexp(stayed[at - 1] + other, traded[at - 1] + likely) + gain[at]
    out = np.empty(rounds, dtype=np.bool_)
    for at in range(rounds - 1, -1, -1):
        odds = traded[at] - stayed[at]
        if at < rounds - 1:
            odds += (1.0 if out[at + 1] else -1.0) * (keep[at] - swap[at])
        out[at] = chances[at] * (1.0 + np.exp(-odds)) < 1.0
    return out


@inner
def _draw_near(path, near, first, back, rng):
    """For each round the cells near one that a cell is near to: of `back`, from `first` on."""
    out = np.empty((len(path), near.shape[1]), dtype=np.int64)
    for at in range(len(path)):
        out[at] = near[back[rng.integers(first[path[at]], first[path[at] + 1])]]
    return out


@inner
def _pair_parts(left, weights, rows, ones, others, first):
    """What readings say of two sources in cells near where they are: the terms of a quadratic of their masses.

    left: what is read besides both, rounds by sensors. ones, others: the cells of each in each round.
    A draw of cells near a cell is as likely from all of them, but for the number of draws that each is
    in: its logarithm is taken off.
    """
    rounds, wide = ones.shape
    sensors = left.shape[1]
    linear, square = np.zeros((2, rounds, wide)), np.zeros((2, rounds, wide))
    mixed, rare = np.zeros((rounds, wide, wide)), np.empty((2, rounds, wide))
    weighed, units = np.empty((wide, sensors)), np.empty((wide, sensors))
    for at in range(rounds):
        for which in range(2):
            cells = ones[at] if which == 0 else others[at]
            for i in range(wide):
                cell = cells[i]
                rare[which, at, i] = 1.0 / (first[cell + 1] - first[cell])
                total, own = 0.0, 0.0
                for m in range(sensors):
                    unit = rows[cell, m]
                    heavy = weights[at, m] * unit
                    total += heavy * left[at, m]
                    own += heavy * unit
                    if which == 0:
                        weighed[i, m] = heavy
                    else:
                        units[i, m] = unit
                linear[which, at, i], square[which, at, i] = total, own
        mixed[at] = weighed @ units.T
    return linear, square, mixed, rare


@inner
def _steps_near(step, cells):
    """The chance of each step between the cells near where a source is in one round, and in the next."""
    rounds, wide = cells.shape
    out = np.ones((rounds, wide, wide))
    for at in range(1, rounds):
        for i in range(wide):
            for j in range(wide):
                out[at, i, j] = step[cells[at - 1, i], cells[at, j]]
    return out


@inner(fastmath=True)
def _filter_pair(mass, other, linear, square, mixed, rare, first, second, filtered):
    """Filter two paths forward over cells near where they are; the logarithm of how likely the masses are.

    first, second: the chances of steps of each source, from `_steps_near`.
    """
    rounds, wide = mixed.shape[:2]
    ahead, half = np.ones((wide, wide)), np.empty((wide, wide))
    evidence = 0.0
    for at in range(rounds):
        if at > 0:
            half[:] = 0.0
            for i in range(wide):  # the first source goes: half[j, k], k where it then is
                for j in range(wide):
                    before = filtered[at - 1, i, j]
                    for k in range(wide):
                        half[j, k] += before * first[at, i, k]
            ahead[:] = 0.0
            for j in range(wide):  # and the other
                for k in range(wide):
                    before = half[j, k]
                    for i in range(wide):
                        ahead[k, i] += before * second[at, j, i]
        best = -1e300
        for i in range(wide):
            own = mass * (linear[0, at, i] - 0.5 * mass * square[0, at, i])
            for j in range(wide):
                fit = own + other * (
                    linear[1, at, j] - 0.5 * other * square[1, at, j] - mass * mixed[at, i, j]
                )
                filtered[at, i, j] = fit
                best = max(best, fit)
        total = 0.0
        for i in range(wide):
            for j in range(wide):
                weight = np.exp(filtered[at, i, j] - best) * ahead[i, j]
                weight *= rare[0, at, i] * rare[1, at, j]
                filtered[at, i, j] = weight
                total += weight
        for i in range(wide):
            for j in range(wide):
                filtered[at, i, j] /= total
        evidence += best + np.log(total)
    return evidence


@inner
def _draw_pair(filtered, ones, others, first, second, path, another, rng):
    """Two paths backward from what `_filter_pair` left, in place."""
    rounds, wide = ones.shape
    weights, one, other = np.empty((wide, wide)), 0, 0
    for at in range(rounds - 1, -1, -1):
        for i in range(wide):
            for j in range(wide):
                weights[i, j] = filtered[at, i, j]
                if at < rounds - 1:
                    weights[i, j] *= first[at + 1, i, one] * second[at + 1, j, other]
        aim, reached, chosen = rng.random() * weights.sum(), 0.0, wide * wide - 1
        for place in range(wide * wide):
            reached += weights[place // wide, place % wide]
            if reached > aim:
                chosen = place
                break
        one, other = chosen // wide, chosen % wide
        path[at], another[at] = ones[at, one], others[at, other]


@njit
def lean(
    path, masses, off, one, other, rows, weights, near, first, back, step, least, most, width, rng
):
    """Draw what mass goes from one source to another with both paths near where they are, all at once.

    What one gives to the other must be made up for by where both are: of two near each other, mass
    given paths and paths given mass hardly move. Each path may go to the cells of one draw of those
    near it [neal04]; summed over all of them, the mass is drawn by a slice so wide [neal03]. All in
    place, `off` (what is left of the readings) too; returns the mass that went.
    """
    rounds = len(path)
    here, there = path[:, one].copy(), path[:, other].copy()
    for at in range(rounds):
        off[at] += masses[one] * rows[here[at]] + masses[other] * rows[there[at]]
    ones = _draw_near(here, near, first, back, rng)
    others = _draw_near(there, near, first, back, rng)
    linear, square, mixed, rare = _pair_parts(off, weights, rows, ones, others, first)
    goes, comes = _steps_near(step, ones), _steps_near(step, others)
    filtered = np.empty_like(mixed)
    begin = width * rng.random()
    low = max(least - masses[one], masses[other] - most, -begin)
    high = min(most - masses[one], masses[other] - least, width - begin)
    aim = np.log(1 - rng.random())
    aim += _filter_pair(
        masses[one], masses[other], linear, square, mixed, rare, goes, comes, filtered
    )
    while True:
        given = low + (high - low) * rng.random()
        likely = _filter_pair(
            masses[one] + given, masses[other] - given, linear, square, mixed, rare, goes, comes,
            filtered,
        )  # fmt: skip
        if given == 0.0 or likely >= aim:
            break
        if given < 0:
            low = given
        else:
            high = given
    _draw_pair(filtered, ones, others, goes, comes, here, there, rng)
    masses[one] += given
    masses[other] -= given
    for at in range(rounds):
        off[at] -= masses[one] * rows[here[at]] + masses[other] * rows[there[at]]
        path[at, one], path[at, other] = here[at], there[at]
    return abs(given)
