"""The compiled core of `posterior`: particles, each a set of sources, from the prior to the posterior.

With H = M'M / sigma**2 and c = M'y / sigma**2, sources f have log likelihood c'f - f'Hf / 2. A
particle is `count` sources with cells and masses, and keeps `gain` = c - Hf: one more source of
mass w in cell j changes its log likelihood by w gain[j] - w**2 H[j, j] / 2, which is all that a
move needs. Masses are `top`, or (`free`) uniform between a floor and `top`, where the floor is
uniform on (0, top) itself and drawn along.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato._compiled import inner, njit

HALF_LOG_2PI = 0.9189385332046727
ROOT_HALF = 0.7071067811865476
ROOT_HALF_PI = 1.2533141373155003
# Cells whose log weight is so far below the best are left out: of 1,024 cells, all that is left out
# is at most 1e-4 of the best one.
NEGLIGIBLE = 16.0
TRIES = 1000  # draws of a rejection sampler that accepts every third or so; the mode after that
STAGES = 200  # 5 to 15 are usual; as many are needed where noise is 1e-50 of the readings
LONGEST_WALK = 6  # a walk takes 1, 2, 4 .. 2**5 steps


@njit(nogil=True)
def log_mean(b, h, width):
    """The logarithm of the mean of exp(b w - h w**2 / 2) over w in (0, width)."""
    scale = math.sqrt(h)
    if scale * width < 1e-5:
        x = b * width
        if abs(x) < 1e-6:
            return x / 2
        return x + math.log(-math.expm1(-x) / x) if x > 0 else math.log(math.expm1(x) / x)
    low, high = -b / scale, (width - b / h) * scale
    if low >= 0:  # falls all the way
        return _log_tail(low, high) - math.log(scale * width)
    if high <= 0:  # rises all the way
        return (
            b * width - 0.5 * h * width * width + _log_tail(-high, -low) - math.log(scale * width)
        )
    inside = 0.5 * (math.erf(high * ROOT_HALF) - math.erf(low * ROOT_HALF))
    return 0.5 * b * b / h + math.log(inside) + HALF_LOG_2PI - math.log(scale * width)


@inner(nogil=True)
def _log_tail(low, high):
    """The logarithm of the integral of exp((low**2 - x**2) / 2) over (low, high), with 0 <= low < high."""
    span = high - low
    fall = span * (low + 0.5 * span)
    if fall < 1e-2:  # nearly flat
        return math.log(span) - 0.5 * fall
    if low > 8.0:
        return math.log(_mills(low) - math.exp(-fall) * _mills(high))
    inside = 0.5 * (math.erfc(low * ROOT_HALF) - math.erfc(high * ROOT_HALF))
    return math.log(inside) + 0.5 * low * low + HALF_LOG_2PI


@inner(nogil=True)
def _mills(x):
    """The tail of a Gaussian over its density, far out: to 1e-5 from 8 on."""
    return (1 - (1 - (3 - 15 / x**2) / x**2) / x**2) / x


@njit(nogil=True)
def draw_mass(b, h, width, rng):
    """A number in (0, width) whose density is in proportion to exp(b w - h w**2 / 2)."""
    scale = math.sqrt(h)
    if (
        scale * width > 2.0 and b > 0 and b < h * width
    ):  # a bell with its top inside: at worst half of it
        middle = b / h
        for _ in range(TRIES):
            found = middle + rng.standard_normal() / scale
            if 0 < found < width:
                return found
        return middle
    if scale * width <= 2.0 and -h * width < b < 2 * h * width:  # flat to e**2
        best = min(max(b / h, 0.0), width)
        for _ in range(TRIES):
            found = width * rng.random()
            if math.log(1 - rng.random()) < (found - best) * (b - 0.5 * h * (found + best)):
                return found
        return best
    # Falls from one end: half a bell if that is the steeper part of it, else an exponential;
    # thinned.
    rises = b > 0
    rate = b - h * width if rises else -b
    if rate < scale:
        for _ in range(TRIES):
            away = abs(rng.standard_normal()) / scale
            if away < width and math.log(1 - rng.random()) < -rate * away:
                return width - away if rises else away
        return width if rises else 0.0
    for _ in range(TRIES):
        away = -math.log1p(rng.random() * math.expm1(-rate * width)) / rate if rate * width > 1e-9 else (
            width * rng.random()
        )  # fmt: skip
        if math.log(1 - rng.random()) < -0.5 * h * away * away:
            return width - away if rises else away
    return width if rises else 0.0


@inner(nogil=True)
def weigh(gain, own, beta, mass, free, floor, top, sums):
    """The logarithm of how much likelier one more source makes it, on average over all cells.

    Of this mass, or (`free`) over all masses between floor and top. `sums` gets running sums of the
    weights of cells, from which `pick` draws one.
    """
    cells, width = gain.size, top - floor
    best, at_best = -np.inf, 0
    for j in range(cells):
        if free:
            # The mass between floor and top that fits best; no mean is above it.
            fits = gain[j] / own[j] if own[j] > 0 else top
            mass = min(max(fits, floor), top)
        sums[j] = beta * mass * (gain[j] - 0.5 * mass * own[j])
        if sums[j] > best:
            best, at_best = sums[j], j
    if free:
        best = _log_mean_above(gain[at_best], own[at_best], beta, floor, width)
    total = 0.0
    for j in range(cells):
        if sums[j] > best - NEGLIGIBLE:
            if free:
                total += _mean_above(gain[j], own[j], beta, floor, width, best)
            else:
                total += math.exp(sums[j] - best)
        sums[j] = total
    return best + math.log(total / cells)


@inner(nogil=True)
def _log_mean_above(gain, own, beta, floor, width):
    at_floor = beta * floor * (gain - 0.5 * floor * own)
    return at_floor + log_mean(beta * (gain - floor * own), beta * own, width)


@inner(nogil=True)
def _mean_above(gain, own, beta, floor, width, best):
    """exp(_log_mean_above - best), where that needs no logarithm: most of the work of a move."""
    h = beta * own
    b = beta * gain - floor * h
    scale = math.sqrt(h)
    span = scale * width
    if span > 1e-5:
        low = -b / scale
        high = low + span
        # What lies to one side of the bell falls from its nearer end.
        near = low if low > 0 else -high if high < 0 else 0.0
        if near < 8.0 and span * (near + 0.5 * span) > 1e-2:
            if near > 0:
                inside = math.erfc(near * ROOT_HALF) - math.erfc((near + span) * ROOT_HALF)
            else:
                inside = math.erf(high * ROOT_HALF) - math.erf(low * ROOT_HALF)
            at_floor = beta * floor * (gain - 0.5 * floor * own)
            return math.exp(at_floor + 0.5 * low * low - best) * inside * ROOT_HALF_PI / span
    return math.exp(_log_mean_above(gain, own, beta, floor, width) - best)


@inner(nogil=True)
def pick(sums, rng):
    """A cell, each as likely as its weight in running sums."""
    return min(np.searchsorted(sums, rng.random() * sums[-1], side="right"), sums.size - 1)


@inner(nogil=True)
def draw_floor(masses, count, top, rng):
    """The floor given the masses: its density is in proportion to (top - floor)**-count below all of them."""
    least = top
    for s in range(count):
        least = min(least, masses[s])
    room = max(1 - least / top, 1e-9)
    u = rng.random()
    if count == 1:
        return top * (1 - math.exp(u * math.log(room)))
    return top * (1 - (1 + u * (room ** (1.0 - count) - 1)) ** (-1.0 / (count - 1)))


@njit(nogil=True)
def move(cells, masses, count, gain, gram, own, beta, free, top, log_prior, first, to, rng, sums):
    """One random move that leaves the posterior at inverse temperature beta as it is; the new count."""
    floor = draw_floor(masses, count, top, rng) if free else 0.0
    kind = rng.random()
    if kind < 0.125:
        return _birth(
            cells, masses, count, gain, gram, own, beta, free, floor, top, log_prior, rng, sums
        )
    if kind < 0.25:
        return _death(
            cells, masses, count, gain, gram, own, beta, free, floor, top, log_prior, rng, sums
        )
    one = rng.integers(0, count)
    if kind < 0.45 or count == 1:
        _put_anew(one, cells, masses, gain, gram, own, beta, free, floor, top, rng, sums)
        return count
    other = rng.integers(0, count - 1)
    other += other >= one
    if kind < 0.8 or not free:
        _walk(
            one, other, cells, masses, gain, gram, own, beta, free, floor, top, first, to, rng, sums
        )
    else:
        _transfer(one, other, cells, masses, gain, gram, own, beta, floor, top, rng)
    return count


@inner(nogil=True)
def _birth(cells, masses, count, gain, gram, own, beta, free, floor, top, log_prior, rng, sums):
    if count + 1 >= log_prior.size:
        return count
    better = weigh(gain, own, beta, top, free, floor, top, sums)
    if math.log(1 - rng.random()) >= log_prior[count + 1] - log_prior[count] + better:
        return count
    cell = pick(sums, rng)
    mass = _mass_at(cell, gain, own, beta, floor, top, rng) if free else top
    cells[count], masses[count] = cell, mass
    gain -= mass * gram[cell]
    return count + 1


@inner(nogil=True)
def _death(cells, masses, count, gain, gram, own, beta, free, floor, top, log_prior, rng, sums):
    if count == 1:
        return count
    gone = rng.integers(0, count)
    gain += masses[gone] * gram[cells[gone]]
    better = weigh(gain, own, beta, top, free, floor, top, sums)
    if math.log(1 - rng.random()) >= log_prior[count - 1] - log_prior[count] - better:
        gain -= masses[gone] * gram[cells[gone]]
        return count
    cells[gone], masses[gone] = cells[count - 1], masses[count - 1]
    return count - 1


@inner(nogil=True)
def _mass_at(cell, gain, own, beta, floor, top, rng):
    slope = beta * (gain[cell] - floor * own[cell])
    return floor + draw_mass(slope, beta * own[cell], top - floor, rng)


@inner(nogil=True)
def _put_anew(one, cells, masses, gain, gram, own, beta, free, floor, top, rng, sums):
    """Gibbs: a source leaves and comes back anywhere, with its mass or (half of the time) another."""
    afresh = free and rng.random() < 0.5
    mass = masses[one]
    gain += mass * gram[cells[one]]
    weigh(gain, own, beta, mass, afresh, floor, top, sums)
    cell = pick(sums, rng)
    if afresh:
        mass = _mass_at(cell, gain, own, beta, floor, top, rng)
    cells[one], masses[one] = cell, mass
    gain -= mass * gram[cell]


@inner(nogil=True)
def _walk(one, other, cells, masses, gain, gram, own, beta, free, floor, top, first, to, rng, sums):
    """Two sources in balance: one walks some steps, the other is put where it then fits."""
    start = cells[one]
    end = start
    for _ in range(1 << rng.integers(0, LONGEST_WALK)):
        end = to[first[end] + rng.integers(0, first[end + 1] - first[end])]
    if end == start:
        return
    afresh = free and rng.random() < 0.5
    mass, left, weight = masses[one], cells[other], masses[other]
    gain += weight * gram[left]
    before = weigh(gain, own, beta, weight, afresh, floor, top, sums)
    step = gram[start, start] + gram[end, end] - 2 * gram[start, end]
    shift = beta * mass * (gain[end] - gain[start] - 0.5 * mass * step)
    gain += mass * (gram[start] - gram[end])
    after = weigh(gain, own, beta, weight, afresh, floor, top, sums)
    # A walk is as likely back as there, but for the numbers of neighbors at its ends.
    ways = math.log((first[start + 1] - first[start]) / (first[end + 1] - first[end]))
    if math.log(1 - rng.random()) >= shift + after - before + ways:
        gain += mass * (gram[end] - gram[start]) - weight * gram[left]
        return
    cell = pick(sums, rng)
    if afresh:
        weight = _mass_at(cell, gain, own, beta, floor, top, rng)
    cells[one], cells[other], masses[other] = end, cell, weight
    gain -= weight * gram[cell]


@inner(nogil=True)
def _transfer(one, other, cells, masses, gain, gram, own, beta, floor, top, rng):
    """Gibbs along the line on which two sources share their mass."""
    here, there = cells[one], cells[other]
    low = max(floor - masses[one], masses[other] - top)
    width = min(top - masses[one], masses[other] - floor) - low
    step = own[here] + own[there] - 2 * gram[here, there]
    if width <= 1e-12 * top or not step > 1e-12 * own[here]:
        return
    moved = low + draw_mass(beta * (gain[here] - gain[there] - step * low), beta * step, width, rng)
    masses[one] += moved
    masses[other] -= moved
    gain -= moved * (gram[here] - gram[there])


@njit(nogil=True)
def anneal(gram, score, log_prior, free, top, particles, moves, last, first, to, rng):
    """Particles of the posterior, the logarithm of the evidence, and the number of stages [delmoral06].

    From the prior (beta 0) to the posterior (beta 1): beta grows as far as half of the particles
    would still count, they are drawn again by their weights, and each makes so many moves; `last`
    moves at the end.
    """
    size = score.size
    most = log_prior.size - 1
    own = np.diag(gram).copy()
    cells, masses = np.full((particles, most), -1), np.zeros((particles, most))
    counts, gains = np.empty(particles, np.int64), np.empty((particles, size))
    sums, level = np.empty(size), np.empty(particles)
    below = np.cumsum(np.exp(log_prior))
    for p in range(particles):
        counts[p] = max(1, pick(below, rng))
        gains[p] = score
        floor = top * rng.random() if free else top
        for s in range(counts[p]):
            cells[p, s] = rng.integers(0, size)
            masses[p, s] = floor + (top - floor) * rng.random()
            gains[p] -= masses[p, s] * gram[cells[p, s]]
    beta, evidence, stages = 0.0, 0.0, 0
    while beta < 1:
        for p in range(particles):
            level[p] = 0.0
            for s in range(counts[p]):
                level[p] += 0.5 * masses[p, s] * (score[cells[p, s]] + gains[p, cells[p, s]])
        if stages == STAGES or not np.isfinite(level).all():
            return cells, masses, counts, np.nan, stages  # beyond what doubles can tell
        step = _step(level, 1 - beta)
        weights = np.exp(step * (level - level.max()))
        evidence += step * level.max() + math.log(weights.mean())
        beta = 1.0 if step >= 1 - beta else beta + step
        kept = _again(weights, rng)
        cells, masses, counts, gains = cells[kept], masses[kept], counts[kept], gains[kept]
        for p in range(particles):
            for _ in range(moves if beta < 1 else last):
                counts[p] = move(
                    cells[p], masses[p], counts[p], gains[p], gram, own, beta, free, top, log_prior, first,
                    to, rng, sums,
                )  # fmt: skip
        stages += 1
    return cells, masses, counts, evidence, stages


@inner(nogil=True)
def _step(level, most):
    """How far beta may grow such that half of the particles still count: (sum w)**2 / sum w**2 >= half."""
    reach = level.max() - level.min()
    # A thousandth of the reach changes no weight by more than that, and a thousand times it leaves
    # but one.
    low, high = min(most, 1e-3 / max(reach, 1e-300)), min(most, 1e3 / max(reach, 1e-300))
    step = high
    for _ in range(60):
        weights = np.exp(step * (level - level.max()))
        if weights.sum() ** 2 >= 0.5 * level.size * (weights**2).sum():
            low = step
        else:
            high = step
        if high - low <= 1e-3 * high:
            break
        step = 0.5 * (low + high)
    return low


@inner(nogil=True)
def _again(weights, rng):
    """Which particles go on: each as often as its weight says, up to one (systematic resampling)."""
    total, start = weights.sum(), rng.random()
    kept = np.empty(weights.size, np.int64)
    so_far, q = 0.0, 0
    for p in range(weights.size):
        so_far += weights[p] / total * weights.size
        while q < weights.size and start + q < so_far:
            kept[q] = p
            q += 1
    kept[q:] = weights.size - 1
    return kept
