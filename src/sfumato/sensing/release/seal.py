"""Sealing: noise that the holder of the master key can take off exactly, and nobody else.

A sealed snapshot says which draws its noise was (key, device, step, epoch, first draw), and carries
a code that shows any change. The guarantee is computational (docs/proofs/keyed-noise.md).
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NoReturn

from sfumato._types import FloatArray, IntArray
from sfumato.errors import InvalidInput, InvalidParameter, Unguarded
from sfumato.privacy import DiscreteLaplace, GaussianLaw, KeyedNoise, Release, RoundedGaussianLaw
from sfumato.privacy.accounting import Number, canonical, exact
from sfumato.privacy.ledger import lattice
from sfumato.privacy.noise import EPOCH_BYTES, LaplaceLaw, Law, keyed_draws
from sfumato.sensing.release.keys import Device, MasterKey, mac, mac_key, noise_key


@dataclass(frozen=True, slots=True)
class Seal:
    """Which draws of which key a snapshot's noise was, and the code that shows a change."""

    key_id: str
    device: str
    step: int
    epoch: str
    first: int
    code: str

    def to_json(self) -> dict[str, Any]:
        """The seal as it is sent."""
        return asdict(self)

    @staticmethod
    def from_json(data: Any) -> Seal:
        """The seal that a JSON object states."""
        try:
            seal = Seal(
                str(data["key_id"]),
                str(data["device"]),
                int(data["step"]),
                str(data["epoch"]),
                int(data["first"]),
                str(data["code"]),
            )
            if len(bytes.fromhex(seal.epoch)) != EPOCH_BYTES:
                raise ValueError("its epoch has another length")
        except (KeyError, TypeError, ValueError) as problem:
            raise InvalidInput(f"not a whole seal: {problem}") from None
        return seal


class Unsealed:
    """Readings without their noise, for the holder of the key: private again, and no exporter takes them.

    `reveal()` gives the numbers; from there on they are in your hands.
    """

    __slots__ = ("__exponent", "__gains", "__values", "names")

    names: tuple[str, ...]

    def __init__(
        self,
        names: tuple[str, ...],
        values: IntArray,
        exponent: int,
        gains: FloatArray | None = None,
    ) -> None:
        self.names = names
        self.__values = values
        self.__exponent = exponent
        self.__gains = gains

    def reveal(self) -> FloatArray:
        """The readings as they were quantised, exactly; without the gains of their sensors, to a double."""
        found = lattice(self.__values, self.__exponent)
        return found if self.__gains is None else found / self.__gains

    def __repr__(self) -> str:
        return f"Unsealed({len(self.names)} private readings)"

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise Unguarded(
            "unsealed readings are private: they are not exported; use reveal() where you mean it"
        )

    __array__ = __iter__ = __len__ = __getitem__ = __reduce__ = __reduce_ex__ = __getstate__ = (
        _refuse
    )
    to_json = write = _refuse
    __array_ufunc__ = None


class SealedNoise:
    """The stream of a device for one snapshot; remembers which draws it gave."""

    def __init__(self, noise: KeyedNoise) -> None:
        self._noise = noise
        self.known = noise.known
        self.distance = noise.distance
        self.drawn: list[tuple[bytes, int]] = []

    def laplace(self, scale: Number, size: int) -> IntArray:
        """The next draws of `LaplaceLaw(scale)`."""
        return self._draw(LaplaceLaw(scale), size)

    def gaussian(self, sigma: Number, size: int) -> IntArray:
        """The next draws of `GaussianLaw(sigma)`."""
        return self._draw(GaussianLaw(sigma), size)

    def rounded_gaussian(self, sigma: Number, size: int) -> IntArray:
        """The next draws of `RoundedGaussianLaw(sigma)`."""
        return self._draw(RoundedGaussianLaw(sigma), size)

    def uniform(self, below: int, size: int) -> list[int]:
        """Refused: only noise that is added can be taken off."""
        raise Unguarded(f"a seal cannot take off {size} choices below {below}; nothing was drawn")

    def _draw(self, law: Law, size: int) -> IntArray:
        draws, epoch, first = self._noise.numbered(law, size)
        self.drawn.append((epoch, first))
        return draws


def seal(about: list[Any], release: Release[IntArray], noise: SealedNoise, device: Device) -> Seal:
    """The seal of what was just released with a device's noise; `about` is what else it covers."""
    ((epoch, first),) = noise.drawn
    blank = Seal(device.key_id, device.name, device.step, epoch.hex(), first, "")
    return Seal(*_parts(blank), device.sign(_message(about, release, blank)))


def unseal(
    names: tuple[str, ...],
    about: list[Any],
    release: Release[IntArray],
    seal: Seal,
    master: MasterKey,
    *,
    gains: FloatArray | None = None,
) -> Unsealed:
    """The quantised readings, exactly, for the holder of the master key; on any machine.

    A seal of another key, and anything changed since it was sealed, are refused.
    """
    if seal.key_id != master.id:
        raise InvalidInput(
            f"the readings are sealed under key {seal.key_id}, this one is {master.id}; nothing was unsealed"
        )
    key = master.device(seal.device, step=seal.step)
    code = mac(mac_key(key), _message(about, release, seal))
    epoch = bytes.fromhex(seal.epoch)
    if not hmac.compare_digest(code.encode(), seal.code.encode()) or epoch[
        :4
    ] != seal.step.to_bytes(4, "big"):
        raise InvalidInput("the readings were changed since they were sealed; nothing was unsealed")
    noise = keyed_draws(
        noise_key(key), epoch, law_of(release), first=seal.first, size=release.value.size
    )
    return Unsealed(names, release.value - noise, release.exponent, gains)


class StepKeys:
    """The keys of one start of a device, for the key holder: they tell codes, and take noise off."""

    def __init__(self, master: MasterKey, device: str, step: int) -> None:
        key = master.device(device, step=step)
        self._noise, self._mac, self._step = noise_key(key), mac_key(key), step

    def sign(self, message: bytes) -> str:
        """The code of a message, as the device makes it."""
        return mac(self._mac, message)

    def take_off(
        self, values: Sequence[int], *, epoch: bytes, first: int, law: str, sigma: float
    ) -> list[int]:
        """Lattice integers without their noise, exactly; check their code before.

        Args:
            values: What was sent.
            epoch: The run of the stream that the noise is of; it begins with the step.
            first: The number of the first draw.
            law: "gaussian", "rounded-gaussian" or "laplace": packets carry no other.
            sigma: The law's parameter, in lattice units.

        Returns:
            The quantised readings.

        Raises:
            InvalidInput: The epoch is of another step.
            InvalidParameter: There is no such law.
        """
        if epoch[:4] != self._step.to_bytes(4, "big"):
            raise InvalidInput("the epoch is of another step; nothing was unsealed")
        laws: dict[str, type[GaussianLaw] | type[RoundedGaussianLaw] | type[LaplaceLaw]] = {
            "gaussian": GaussianLaw,
            "rounded-gaussian": RoundedGaussianLaw,
            "laplace": LaplaceLaw,
        }
        if law not in laws:
            raise InvalidParameter(f"noise of a seal is {' or '.join(laws)}, got {law!r}")
        noise = keyed_draws(self._noise, epoch, laws[law](sigma), first=first, size=len(values))
        return [value - draw for value, draw in zip(values, noise.tolist(), strict=True)]


def law_of(release: Release[IntArray]) -> GaussianLaw | RoundedGaussianLaw | LaplaceLaw:
    """The law of the noise on each reading, from the entry that paid for it."""
    name = "scale" if release.entry.mechanism == DiscreteLaplace.name else "sigma"
    try:
        width = exact(release.entry.parameters[name], name=name)
    except (KeyError, InvalidParameter):
        raise InvalidInput(
            "the entry of these readings does not say how wide the noise is"
        ) from None
    match release.entry.mechanism:
        case "rounded-gaussian/1":
            return RoundedGaussianLaw(width)
        case "discrete-gaussian/1":
            return GaussianLaw(width)
        case DiscreteLaplace.name:
            return LaplaceLaw(width)
        case other:
            raise InvalidInput(f"readings have Gaussian or Laplace noise, the entry says {other}")


def _parts(seal: Seal) -> tuple[str, str, int, str, int]:
    return seal.key_id, seal.device, seal.step, seal.epoch, seal.first


def _message(about: list[Any], release: Release[IntArray], seal: Seal) -> bytes:
    """All that is sent, with one spelling: what it is about, the release, and the seal without its code."""
    return canonical([*about, release.to_json(), list(_parts(seal))]).encode()
