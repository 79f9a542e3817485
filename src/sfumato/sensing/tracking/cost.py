"""What several rounds of readings cost a source that was there in all of them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from sfumato.errors import InvalidParameter, NotComparable
from sfumato.privacy import ZCDP, ApproxDP, Loss, compose, gaussian_sigma
from sfumato.privacy.accounting import exact, plain
from sfumato.sensing.release.readings import Readings
from sfumato.sensing.release.rounds import cost_after

DELTA = "1e-6"  # at which a rho is said as an epsilon


def losses_of(read: Sequence[Readings]) -> list[Loss | None]:
    """What each round cost, by its receipts; None where they do not say one number.

    Devices that read at one time share one promise, so a time costs what its dearest receipt says.

    Args:
        read: Readings of all devices.

    Returns:
        A loss for each time.
    """
    times: dict[str, list[Loss]] = {}
    for number, snapshot in enumerate(snapshot for one in read for snapshot in one.snapshots):
        times.setdefault(snapshot.time or str(number), []).append(snapshot.guarantee.loss)
    return [dearest(losses) for losses in times.values()]


def dearest(losses: Sequence[Loss]) -> Loss | None:
    """The loss of the least noise among those of one time: more noise costs no more than it.

    An epsilon with a delta is compared by the deviation it takes: neither number alone says which
    is dearer. None for losses of different kinds, and for such as no Gaussian noise has.
    """
    different = list(dict.fromkeys(losses))
    if len(different) == 1:
        return different[0]
    if len({type(loss) for loss in different}) > 1:
        return None

    def noise(loss: Loss) -> float | Fraction:
        if isinstance(loss, ApproxDP):
            return gaussian_sigma(loss.epsilon, loss.delta)
        return -(loss.rho if isinstance(loss, ZCDP) else loss.epsilon)

    try:
        return min(different, key=noise)
    except InvalidParameter:  # an epsilon or a delta of 0
        return None


def cost_of(losses: Sequence[Loss | None]) -> tuple[Loss | None, str]:
    """What all rounds cost one source that was there all the time: as ledgers add it up, and in words.

    Rounds that all cost the same have a tighter statement too, which the words end with, rounded
    up.

    None in `losses` is a round whose cost is not one number; the sum is None where no number bounds it.
    """
    head = f"{len(losses)} rounds together, for a source that was there in all: "
    known = [loss for loss in losses if loss is not None]
    if len(known) < len(losses):
        return None, f"{head}devices of one round promised in ways that one number does not bound"
    try:
        whole = compose(known)
    except (NotComparable, InvalidParameter):  # of different kinds, or with deltas that add up to 1
        return None, f"{head}their costs do not add up to a promise"
    words = str(whole)
    same = known[0]
    if isinstance(same, ZCDP | ApproxDP) and all(loss == same for loss in known):
        delta = same.delta if isinstance(same, ApproxDP) else exact(DELTA)
        (row,) = cost_after(same, [len(known)], delta=delta)
        words += f"; it is at most epsilon {plain(Fraction(row.epsilon))} at delta {plain(delta)}"
    return whole, head + words
