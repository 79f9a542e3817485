"""Split and mix: the theorem's number of messages, held against exact enumeration of tiny cases."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import InvalidParameter
from sfumato.privacy import Shuffled
from sfumato.privacy.accounting import mixed_delta, mixing_distance, mixing_messages
from sfumato.privacy.noise import PolyaLaw, add_messages, centred, split_into_messages

View = tuple[int, ...]
# Devices, messages and q: all messages of all devices are enumerated.
TINY = [
    (2, 2, 2),
    (2, 3, 2),
    (2, 4, 2),
    (2, 3, 3),
    (2, 3, 4),
    (2, 4, 4),
    (3, 2, 3),
    (3, 3, 2),
    (3, 4, 2),
]


def compositions(n: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for rest in compositions(n - first, parts - 1):
            yield (first, *rest)


def expected_power(n: int, d: int, q: int) -> Fraction:
    """E[q**C]: colorings of nodes with q colors under which no arrow joins two, as the proof counts them."""
    total = Fraction(0)
    for sizes in compositions(n, q):
        ways = Fraction(math.factorial(n), math.prod(map(math.factorial, sizes)))
        kept = Fraction(
            math.prod(math.factorial(d * size) for size in sizes), math.factorial(d * n)
        )
        total += ways * kept
    return total


def components(n: int, arrows: list[tuple[int, int]]) -> int:
    of = list(range(n))
    for a, b in arrows:
        old, new = of[a], of[b]
        of = [new if one == old else one for one in of]
    return len(set(of))


def views(values: tuple[int, ...], messages: int, q: int) -> dict[View, Fraction]:
    """The law of the mixed messages: a multiset, which is what a uniform permutation leaves."""
    n, found = len(values), Counter[View]()
    for drawn in itertools.product(range(q), repeat=n * (messages - 1)):
        rows = [drawn[i * (messages - 1) : (i + 1) * (messages - 1)] for i in range(n)]
        sent = [one for row in rows for one in row]
        sent += [(value - sum(row)) % q for value, row in zip(values, rows, strict=True)]
        found[tuple(sorted(sent))] += 1
    return {view: Fraction(many, q ** (n * (messages - 1))) for view, many in found.items()}


def apart(a: dict[View, Fraction], b: dict[View, Fraction]) -> Fraction:
    return sum((abs(a.get(v, Fraction(0)) - b.get(v, Fraction(0))) for v in a | b), Fraction(0)) / 2


def mean(laws: list[dict[View, Fraction]]) -> dict[View, Fraction]:
    found: dict[View, Fraction] = {}
    for law in laws:
        for view, chance in law.items():
            found[view] = found.get(view, Fraction(0)) + chance / len(laws)
    return found


@pytest.mark.unit
@pytest.mark.parametrize(("n", "d", "q"), [(2, 2, 3), (2, 3, 2), (3, 2, 2), (3, 2, 4), (4, 2, 2)])
def test_components_are_counted_by_colorings(n: int, d: int, q: int) -> None:
    """Against every matching of arrows' ends."""
    ends = [node for node in range(n) for _ in range(d)]
    matchings = list(itertools.permutations(range(n * d)))
    powers = [
        q ** components(n, [(ends[i], ends[j]) for i, j in enumerate(one)]) for one in matchings
    ]
    assert Fraction(sum(powers), len(powers)) == expected_power(n, d, q)


@pytest.mark.unit
@pytest.mark.parametrize(("n", "messages", "q"), TINY)
def test_mixed_messages_are_close_to_a_function_of_their_sum(n: int, messages: int, q: int) -> None:
    """The theorem, exactly: every law of the messages is so close to the simulator of its sum."""
    bound = (expected_power(n, messages - 1, q) / q - 1) / 4  # the square of it
    worst = Fraction(0)
    for total in range(q):
        same = [x for x in itertools.product(range(q), repeat=n) if sum(x) % q == total]
        laws = [views(x, messages, q) for x in same]
        simulated = mean(laws)
        worst = max(worst, *(apart(law, simulated) for law in laws))
    assert 0 < worst**2 <= bound


@pytest.mark.unit
@pytest.mark.parametrize(("n", "d", "bits"), [(6, 14, 2), (8, 12, 3), (12, 9, 2), (100, 12, 1)])
def test_the_closed_form_is_above_the_exact_one(n: int, d: int, bits: int) -> None:
    exact = (expected_power(n, d, 2**bits) / 2**bits - 1) / 4
    bound = mixing_distance(n, d + 1, bits) ** 2
    assert exact <= bound < 1
    assert n < 100 or bound < Fraction("1.01") * exact  # of many devices nothing is given away


@pytest.mark.unit
def test_more_devices_and_messages_only_help() -> None:
    """The guarantee counts honest devices from below."""
    for bits, messages in [(10, 8), (26, 11), (46, 14)]:
        sizes = [*range(20, 400), *range(400, 100_000, 997)]
        found = [mixing_distance(n, messages, bits) for n in sizes]
        assert found == sorted(found, reverse=True)
    more = [mixing_distance(1000, messages, 26) for messages in range(3, 40)]
    assert more == sorted(more, reverse=True)
    assert more[0] == 1


@pytest.mark.unit
def test_numbers_of_messages_by_hand() -> None:
    """2 + (2 sigma + log2 q - 2) / log2 n, or so, is what it takes."""
    assert mixing_messages(1000, 24, distance=Fraction(1, 2**50)) == 13
    table = {(100, 20): 17, (900, 20): 13, (9000, 20): 11, (90_000, 26): 10}  # of the proof page
    for (devices, bits), messages in table.items():
        assert mixing_messages(devices, bits, distance=Fraction(1, 2**50)) == messages
    needed = mixing_messages(1000, 24, distance=Fraction(1, 2**50))
    assert mixing_distance(1000, needed - 1, 24) > Fraction(1, 2**50)
    with pytest.raises(InvalidParameter, match="2 honest devices are too few"):
        mixing_messages(2, 24, distance=Fraction(1, 2**50))
    assert mixed_delta(Fraction(0), Fraction(1, 100), 3) == pytest.approx(0.06)


@pytest.mark.unit
@pytest.mark.parametrize("bad", [(1, 3, 4), (3, 0, 4), (3, 3, 0), (3.0, 3, 4)])
def test_numbers_out_of_range_are_refused(bad: tuple[int, int, int]) -> None:
    with pytest.raises(InvalidParameter, match="whole number"):
        mixing_distance(*bad)


@pytest.mark.property
@given(
    st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=5),
    st.integers(1, 9),
    st.integers(42, 62),
)
def test_messages_add_up(values: list[int], messages: int, bits: int) -> None:
    parts = split_into_messages(np.array(values), messages, bits=bits)
    assert parts.shape == (messages, len(values))
    assert int(parts.max()) < 2**bits
    assert add_messages(parts[::-1], bits=bits).tolist() == values


@pytest.mark.unit
def test_sums_are_read_around_zero() -> None:
    words = np.array([0, 1, 7, 8, 15, 16, 2**64 - 1], dtype=np.uint64)
    assert centred(words, bits=4).tolist() == [0, 1, 7, -8, -1, 0, -1]
    with pytest.raises(InvalidParameter, match="bits must be"):
        centred(words, bits=63)


@pytest.mark.statistical
def test_messages_but_one_are_uniform() -> None:
    """Of a device that always has the same integer: pairs of messages are uniform, and all three are not."""
    from scipy import stats

    parts = split_into_messages(np.full(40_000, 3), 3, bits=2).astype(int)
    for a, b in [(0, 1), (0, 2), (1, 2)]:
        seen = np.bincount(4 * parts[a] + parts[b], minlength=16)
        assert stats.chisquare(seen).pvalue > 1e-6
    together = np.bincount(16 * parts[0] + 4 * parts[1] + parts[2], minlength=64)
    assert stats.chisquare(together).pvalue < 1e-6


def seen_by_the_adder(
    values: tuple[int, ...], messages: int, q: int, law: PolyaLaw | None
) -> dict[View, float]:
    """The law of what the adder sees of devices with noise in shares, added to their values."""
    found: dict[View, float] = {}
    reach = 40
    chances = [0.0] * q
    for z in range(-reach, reach + 1):
        chances[z % q] += float(law.pmf(z)) if law is not None else float(z == 0)
    for noise in itertools.product(range(q), repeat=len(values)):
        chance = math.prod(chances[one] for one in noise)
        if chance == 0:
            continue
        noisy = tuple((a + b) % q for a, b in zip(values, noise, strict=True))
        for view, share in known_views(noisy, messages, q).items():
            found[view] = found.get(view, 0.0) + chance * float(share)
    return found


@cache
def known_views(values: tuple[int, ...], messages: int, q: int) -> dict[View, Fraction]:
    return views(values, messages, q)


def loss_beyond(a: dict[View, float], b: dict[View, float], epsilon: float) -> float:
    """The least delta for epsilon: what one law has more than e**epsilon times the other."""
    return sum(
        max(0.0, chance - math.exp(epsilon) * b.get(view, 0.0)) for view, chance in a.items()
    )


def either_way(laws: list[dict[View, float]], epsilon: float) -> float:
    return max(loss_beyond(laws[0], laws[1], epsilon), loss_beyond(laws[1], laws[0], epsilon))


@pytest.mark.unit
@pytest.mark.parametrize("messages", [2, 3, 4])
def test_an_exact_audit_of_what_the_adder_sees(messages: int) -> None:
    """Two honest devices, one of which has a place or none: epsilon and delta hold for the view itself."""
    q, epsilon = 4, Fraction(1)
    trust = Shuffled(2)
    law = PolyaLaw(1 / epsilon, trust.share_shape)
    bound = (expected_power(2, messages - 1, q) / q - 1) / 4
    delta = float(mixed_delta(epsilon, Fraction(math.isqrt(int(bound * 10**12)) + 1, 10**6), 1))
    laws = [seen_by_the_adder(values, messages, q, law) for values in ((0, 0), (1, 0))]
    worst = either_way(laws, float(epsilon))
    assert worst <= delta + 1e-9


@pytest.mark.unit
def test_the_same_audit_refutes_what_is_broken() -> None:
    """No noise, or no splitting: the view tells neighbors apart far beyond what four messages add."""
    law = PolyaLaw(1, Shuffled(2).share_shape)
    good, bare, whole = (
        [seen_by_the_adder(values, messages, 4, noise) for values in ((0, 0), (1, 0))]
        for messages, noise in ((4, law), (4, None), (1, law))
    )
    losses = [either_way(two, 1.0) for two in (good, bare, whole)]
    assert losses[0] < 0.02 < 0.1 < min(losses[1:]), "too few messages tell more than their sum"


@pytest.mark.unit
@pytest.mark.parametrize(
    ("epsilon", "distance", "sums"), [(1, 1, 0), (1, 1, -3), (1, -1, 1), (-1, 1, 1)]
)
def test_no_delta_is_made_of_less_than_nothing(epsilon: int, distance: int, sums: int) -> None:
    with pytest.raises(InvalidParameter, match="1 or more sums"):
        mixed_delta(Fraction(epsilon), Fraction(distance), sums)
