"""Choose again and again among a few candidates, learning from what each would have cost.

The rate needs no tuning. A round is played with w = the chances of argmin(L - Z / rate), and would
have been played with w+ had its losses been known; looking ahead would have saved <w - w+, l>. The
rate is

    rate = excess / (all that looking ahead would have saved so far),        excess = E max Z - E Z,

so it is infinite (follow the leader) until something is lost, never rises, and scales with the
losses. With Gumbel noise it is Hedge, at about 1 / sqrt(2) of the rate of AdaHedge [derooij14, sec.
2]: a round at a small rate saves rate times the variance of its losses, of which AdaHedge counts
half. For FTRL see [orabona18].

Why `Chooser.bound` holds, for any noise with a finite mean. V(L) = E min(L - Z / rate) + E Z / rate
+ excess / rate is the least <w, L> + p(w) / rate over w, for a convex p with values in [0, excess].
It is concave with gradient w, so <w+, l> is at most its growth in the round; it is 0 at L = 0 and
rises where the rate falls. Summed up, looking ahead pays at most V at the end, which is at most L*
+ excess / (last rate) [mcmillan18, eq. 12.1, with a rate that falls]. Regret is at most that excess
and what looking ahead would have saved.

Why `Chooser.worst_case` does. With D the sum of what was saved, D**2 is the sum of saved**2 + 2
saved D before, and D before = excess / rate. One-step privacy [mcmillan18, prop. 13.4] says w+ >=
exp(-rate S) w, S the range of the losses, so saved <= min(1, rate S) h, where h <= S is what was
paid above the least loss. So D**2 <= (1 + 2 excess) times the sum of S h, at most (1 + 2 excess)
times the sum of S**2; and with A = (1 + 2 excess) times the largest S and B the best candidate's
loss above the least of each round, D**2 <= A (B + 2 D), as regret is at most 2 D.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from sfumato._types import FloatArray
from sfumato.errors import InvalidInput, InvalidParameter
from sfumato.figures import regret_picture
from sfumato.online._words import counted
from sfumato.online.laws import Gumbel
from sfumato.online.perturbations import draws, excess, perturbation
from sfumato.online.simplex import expected_play, leader
from sfumato.privacy import SystemNoise

C = TypeVar("C", bound=Hashable)

Mark = tuple[int, float, float]

FORMAT = "sfumato-chooser/1"
POINTS = 2048  # of the path that is kept for the picture: then every second is dropped
NEVER = 1e-150  # noise so large is taken never to come: a candidate that needs it has chance 0
# How far losses of a round may differ, if they do; the bounds are then doubles.
MIN_RANGE, MAX_RANGE = 1e-290, 1e290
PLAIN = (str, int, float)


@dataclass(frozen=True, slots=True)
class State:
    """All that a chooser has learnt, as plain numbers.

    `losses` are totals above the least loss of each round; `paid` is what the plays cost by the
    same count; `saved` and `saved_before` are what looking ahead would have saved, to the last
    round and without it. `widest` is the widest range of losses in a round, `length` the root of
    the sum of all their squares.
    """

    losses: list[float]
    rounds: int = 0
    paid: float = 0.0
    saved: float = 0.0
    saved_before: float = 0.0
    widest: float = 0.0
    length: float = 0.0


class Chooser(Generic[C]):
    """Pick one of several candidates each day, and do nearly as well as the best of them, whatever happens.

    Call `choose()`, use what it returns, then tell `observe` what each candidate would have cost.
    Losses may be in any unit, also negative; those of a round may differ by 0, or by 1e-290 to
    1e290. Nothing needs tuning. `regret` is what was lost against the best single candidate so far,
    on average over the chooser's own dice; it is never above `bound`.

    >>> chooser = Chooser(["north", "south"])
    >>> for day in range(100):
    ...     today = chooser.choose()
    ...     chooser.observe({"north": 3.0 if day % 3 else 0.0, "south": 2.5})
    >>> chooser.rounds, chooser.regret <= chooser.bound <= chooser.worst_case
    (100, True)
    >>> max(chooser.probabilities, key=chooser.probabilities.get)
    'north'

    Not private by itself. Noise makes choices stable: one round changes each chance by a factor of
    at most e**(rate * range of its losses). The thesis calls that one-step privacy. It protects one
    round from the next choice only, not a person: the rate is learnt from the losses, a person is
    in many rounds, and all later choices tell of them. `regret`, `bound`, `probabilities`, `repr`,
    `plot()` and `to_dict()` have no noise at all: each is a function of the losses as they were
    told. So score candidates on released data only: then all of these are functions of releases and
    cost nothing. `thin` makes two views of a Gaussian release: fit on the first, score on the
    second; the release itself must not be used for the fit.

    `noise` is "gumbel" (Hedge), "laplace", "exponential", "weibull", "frechet" or "pareto". Noise
    is fresh in every round, from the operating system, or from `rng` in simulations.
    """

    def __init__(
        self,
        candidates: Sequence[C],
        noise: str = "gumbel",
        *,
        rng: np.random.Generator | None = None,
    ) -> None:
        self.candidates: tuple[C, ...] = _different(candidates)
        if not self.candidates:
            raise InvalidParameter(
                f"candidates must be at least one, hashable and all different, got {candidates!r}; "
                "no chooser was made"
            )
        # Of all that draws numbers in numpy and Python only a Generator has `integers`.
        if rng is not None and not hasattr(rng, "integers"):
            raise InvalidParameter(
                f"rng must be a numpy Generator, got {rng!r}; no chooser was made"
            )
        self.noise = noise
        self._unit = perturbation(noise, 1.0, count=len(self.candidates))
        self._excess = excess(self._unit, len(self.candidates))
        self._far = float(self._unit.isf(NEVER))
        self._rng = rng
        self._begin(State([0.0] * len(self.candidates)), [])

    def _begin(self, state: State, path: list[Mark]) -> None:
        self.state = state
        self._path, self._stride = path, max(1, path[0][0] if path else 1)
        self._chances = self._play(np.array(state.losses), self.rate)

    def __repr__(self) -> str:
        chances = self.probabilities
        first = max(chances, key=lambda one: chances[one])
        return (
            f"Chooser({counted(len(self.candidates), 'candidate')}, noise={self.noise!r}: "
            f"after {counted(self.rounds, 'round')} {first!r} with chance {chances[first]:.2f}, "
            f"regret {self.regret:.4g} of at most {self.bound:.4g})"
        )

    @property
    def rounds(self) -> int:
        """How many rounds were observed."""
        return self.state.rounds

    @property
    def rate(self) -> float:
        """What noise is divided by, in one over the unit of losses; infinite until something is lost."""
        return _ratio(self._excess, self.state.saved)

    @property
    def probabilities(self) -> dict[C, float]:
        """How likely `choose` is to return each candidate, exactly."""
        return dict(zip(self.candidates, self._chances.tolist(), strict=True))

    @property
    def regret(self) -> float:
        """What the plays cost so far, on average over the noise, above the best single candidate.

        It may be negative: then changing was better than any of them.
        """
        return self.state.paid - min(self.state.losses)

    @property
    def bound(self) -> float:
        """What the regret is at most: what looking ahead would have saved, to the last round and before it.

        Holds for every sequence of losses, also one made to spite the chances; proof in the module.
        What the choices themselves cost is that on average, where losses do not answer to the dice
        of their own round.
        """
        return self.state.saved + self.state.saved_before

    @property
    def worst_case(self) -> float:
        """What `bound` is at most, by the losses alone, however the chooser played; proof in the module.

        With S the widest range of losses in a round, B the best candidate's loss above the least of
        each round and A = (1 + 2 excess) S: 2 (A + sqrt(A**2 + A B)), or 2 sqrt((1 + 2 excess) sum
        of S**2).
        """
        times = 1 + 2 * self._excess
        a, best = times * self.state.widest, min(self.state.losses)
        return min(
            2 * (a + math.sqrt(a) * math.sqrt(a + best)), 2 * math.sqrt(times) * self.state.length
        )

    def choose(self) -> C:
        """One candidate, by fresh noise."""
        count = len(self.candidates)
        uniforms = (
            np.array(SystemNoise().uniform(2**53, count)) / 2**53
            if self._rng is None
            else self._rng.random(count)
        )
        behind = _behind(np.array(self.state.losses), self.rate)
        return self.candidates[int(np.argmin(behind - draws(self._unit, uniforms)))]

    def observe(self, losses: Mapping[C, float] | Sequence[float] | FloatArray) -> None:
        """Learn what each candidate would have cost in this round, by name (dict, Series) or in order."""
        numbers = self._numbers(losses)
        before, now = self.state, self._chances
        low, totals = float(numbers.min()), np.array(before.losses)
        widest = float(numbers.max()) - low
        usable = widest == 0 or MIN_RANGE <= widest <= MAX_RANGE
        if not usable or widest + float(totals.max()) > MAX_RANGE:
            raise InvalidParameter(
                f"losses must differ by 0 or by {MIN_RANGE} to {MAX_RANGE}, and by no more than that in all, "
                f"these by {widest:g}; nothing was learnt"
            )
        above = numbers - low
        totals += above
        ahead = self._play(totals, self.rate)
        # Never negative: a small sum of digits lost is taken for nothing.
        saved = before.saved + max(0.0, float((now - ahead) @ above))
        state = State(
            totals.tolist(),
            before.rounds + 1,
            before.paid + float(now @ above),
            saved,
            before.saved,
            max(before.widest, widest),
            math.hypot(before.length, widest),
        )
        # Both or neither: a play that cannot be computed leaves everything as it was.
        self.state, self._chances = state, self._play(totals, _ratio(self._excess, saved))
        if self.rounds % self._stride == 0:
            self._path.append(self._mark())
        if len(self._path) >= POINTS:
            self._path, self._stride = self._path[1::2], 2 * self._stride

    def plot(self, *, caption: str = "") -> bytes:
        """A picture (PNG) of the regret so far against its bound."""
        if not self.rounds:
            raise InvalidParameter("there is no regret before the first round; nothing was drawn")
        path = (
            self._path
            if self._path and self._path[-1][0] == self.rounds
            else [*self._path, self._mark()]
        )
        rounds, regret, bound = np.array(path).T
        name = f"{self.noise}, {counted(len(self.candidates), 'candidate')}"
        text = (
            caption
            or "Regret on average over the dice, against the best single candidate until then."
        )
        return regret_picture({name: regret}, {name: bound}, rounds=rounds, caption=text)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the dice, as JSON can hold it; candidates must be text or numbers for that."""
        if not all(isinstance(one, PLAIN) for one in self.candidates):
            raise InvalidParameter(
                "a chooser is saved with candidates that are text or numbers, got others; choose among their "
                "names instead; nothing was saved"
            )
        named = {"format": FORMAT, "candidates": list(self.candidates), "noise": self.noise}
        return {**named, **asdict(self.state), "path": [list(mark) for mark in self._path]}

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], *, rng: np.random.Generator | None = None
    ) -> Chooser[C]:
        """The chooser that `to_dict` saved, to go on with.

        >>> import json
        >>> saved = json.dumps(Chooser(["a", "b"]).to_dict())
        >>> Chooser.from_dict(json.loads(saved)).probabilities
        {'a': 0.5, 'b': 0.5}
        """
        try:
            given = _fields(data)
            made = cls(given.pop("candidates"), given.pop("noise"), rng=rng)
            path = [
                (int(at), float(regret), float(bound)) for at, regret, bound in given.pop("path")
            ]
            losses = list(given.pop("losses"))
            numbers = [*losses, *given.values(), *np.ravel(path).tolist()]
            if len(losses) != len(made.candidates) or not all(map(math.isfinite, numbers)):
                raise ValueError("its numbers are not finite, or not one for each candidate")
            state = State([float(loss) for loss in losses], **given)
            if type(state.rounds) is not int or min([*state.losses, *given.values()]) < 0:
                raise ValueError("its rounds are not a whole number, or a total is below 0")
            if state.saved_before > state.saved:
                raise ValueError("more was saved before the last round than with it")
        except (OverflowError, TypeError, ValueError) as problem:
            raise InvalidInput(f"not a saved chooser: {problem}; nothing was read") from problem
        made._begin(state, path)
        return made

    def _mark(self) -> Mark:
        return self.rounds, self.regret, self.bound

    def _play(self, losses: FloatArray, rate: float) -> FloatArray:
        """The chances of each candidate at these totals."""
        if math.isinf(rate):
            return leader(losses)
        behind = _behind(losses, rate)
        if isinstance(self._unit, Gumbel):
            # What `hedge` plays, without its checks, for every round of a stream.
            weights = np.exp(-behind)
            return np.asarray(weights / weights.sum())
        # Held at its last chance, a candidate would pay on and on while looking ahead saved
        # nothing.
        near = behind <= self._far
        return expected_play(np.where(near, behind, self._far), self._unit) * near

    def _numbers(self, losses: Mapping[C, float] | Sequence[float] | FloatArray) -> FloatArray:
        items = getattr(losses, "items", None)
        if callable(items):  # of a dict, or of a pandas Series
            named, known = list(items()), set(self.candidates)
            given = dict(named)
            unknown = [f"unknown {name!r}" for name in given if name not in known]
            missing = [f"none for {name!r}" for name in self.candidates if name not in given]
            wrong = [*unknown, *missing, *(["two of one name"] if len(given) < len(named) else [])]
            if wrong:
                raise InvalidParameter(
                    f"losses must be of the candidates, each of them, got {wrong[0]}; "
                    "nothing was learnt"
                )
            losses = [given[name] for name in self.candidates]
        try:
            told = np.asarray(losses)
            if told.dtype.kind not in "biufO" or any(
                isinstance(one, str | bytes) for one in _objects(told)
            ):
                raise TypeError("text is no number, even if it looks like one")
            numbers = told.astype(np.float64)
        except OverflowError:
            raise InvalidParameter(
                f"losses must differ by at most {MAX_RANGE}, got one that no double holds; nothing was learnt"
            ) from None
        except (TypeError, ValueError):
            raise InvalidParameter(
                "losses must be numbers, got something else; nothing was learnt"
            ) from None
        if numbers.shape != (len(self.candidates),):
            raise InvalidParameter(
                f"losses must be one number for each of {len(self.candidates)} candidates, "
                f"got shape {numbers.shape}; nothing was learnt"
            )
        if not np.isfinite(numbers).all():
            at = np.flatnonzero(~np.isfinite(numbers))[0]
            raise InvalidParameter(
                f"losses must be finite, got {numbers[at]} for {self.candidates[at]!r}; "
                "nothing was learnt"
            )
        return numbers


def _different(candidates: Any) -> tuple[Any, ...]:
    """The candidates if they can be told apart, or none."""
    try:
        named = tuple(candidates)
        return named if len(set(named)) == len(named) else ()
    except TypeError:  # no list, or of what has no hash and can name nothing
        return ()


def _objects(told: npt.NDArray[Any]) -> list[Any]:
    """What numpy has not taken for numbers or text by itself."""
    return list(told.flat) if told.dtype.kind == "O" else []


def _fields(data: Any) -> dict[str, Any]:
    """All that was saved of a chooser but its format, if it is all there and nothing else is."""
    if not isinstance(data, Mapping):
        raise TypeError(f"it is no mapping, but {type(data).__name__}")
    if data.get("format", FORMAT) != FORMAT:
        raise ValueError(f"its format is not {FORMAT}")
    names = ["format", "candidates", "noise", *(one.name for one in fields(State)), "path"]
    missing = [name for name in names if name not in data]
    unknown = [name for name in data if name not in names]
    if missing or unknown:
        raise ValueError(
            f"it has no {missing[0]!r}" if missing else f"{unknown[0]!r} is not part of one"
        )
    return {name: data[name] for name in names[1:]}


def _behind(losses: FloatArray, rate: float) -> FloatArray:
    """How far each candidate is behind the leaders, in units of the noise; at an infinite rate infinitely."""
    gaps = losses - losses.min()
    if math.isinf(rate):
        return np.where(gaps > 0, np.inf, 0.0)
    with np.errstate(over="ignore"):
        return np.asarray(gaps * rate)


def _ratio(excess: float, saved: float) -> float:
    """The rate excess / saved, infinite where nothing or too little for a double was saved."""
    return excess / saved if saved > excess * 1e-300 else math.inf
