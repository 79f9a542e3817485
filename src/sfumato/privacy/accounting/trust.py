"""Trust models: who had to be trusted with what, as part of a guarantee.

Model = "central" | "local" | Joint | Shuffled
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, assert_never, get_args

from sfumato.errors import InvalidInput, InvalidParameter

MOST_PARTIES = 1024
MOST_DEVICES = 2**24
MOST_NOISE = 16  # times the central variance: the law of larger shapes is not worked out


@dataclass(frozen=True, slots=True)
class Joint:
    """Parties that keep their own rows and add noise in shares; so many of them may pool what they know.

    A party knows its own share, so the shares of the others alone must be noise enough: each has
    shape 1 / (parties - curious), and the sum of all has shape parties / (parties - curious).
    Proof: docs/proofs/shared-noise.md

    >>> Joint(3).share_shape, Joint(3).sum_shape
    (Fraction(1, 2), Fraction(3, 2))
    """

    parties: int
    curious: int = 1

    def __post_init__(self) -> None:
        for name in ("parties", "curious"):
            if type(getattr(self, name)) is not int:
                raise InvalidParameter(
                    f"{name} must be a whole number, got {getattr(self, name)!r}; nothing was charged"
                )
        if not 2 <= self.parties <= MOST_PARTIES:
            raise InvalidParameter(
                f"parties must be 2 to {MOST_PARTIES}, got {self.parties}; nothing was charged"
            )
        if not 0 <= self.curious < self.parties:
            raise InvalidParameter(
                f"curious must lie in 0..{self.parties - 1}, since somebody's noise must stay unknown, got "
                f"{self.curious}; nothing was charged"
            )
        if self.sum_shape > MOST_NOISE:
            raise InvalidParameter(
                f"with {self.curious} of {self.parties} parties curious the noise has {self.sum_shape} times "
                f"the variance of a central map; at most {MOST_NOISE} are drawn; nothing was charged"
            )

    @property
    def honest(self) -> int:
        """How many parties' shares are noise enough."""
        return self.parties - self.curious

    @property
    def share_shape(self) -> Fraction:
        """The shape of one party's share."""
        return Fraction(1, self.honest)

    @property
    def sum_shape(self) -> Fraction:
        """The shape of the noise on what is released: the variance is so many times the central one."""
        return Fraction(self.parties, self.honest)


@dataclass(frozen=True, slots=True)
class Shuffled:
    """Devices that add noise in shares and send through a shuffler, which mixes at least `batch` of them.

    Of any `batch` reports at most `curious` are of devices that somebody else reads, or that add no
    noise: the shares of the others are noise enough, each of shape 1 / (batch - curious). At most
    `devices` report; whoever adds up draws the shares of those that did not, so that the noise has
    shape devices / (batch - curious). Proof: docs/proofs/shuffled-sums.md

    >>> Shuffled(900, devices=1000, curious=100).sum_shape
    Fraction(5, 4)
    """

    batch: int
    devices: int = 0
    curious: int = 0

    def __post_init__(self) -> None:
        if type(self.batch) is not int or not 2 <= self.batch <= MOST_DEVICES:
            raise InvalidParameter(
                f"batch must be a whole number of 2 to {MOST_DEVICES} devices, got {self.batch!r}; nothing was "
                "charged"
            )
        if self.devices == 0 and type(self.devices) is int:
            object.__setattr__(self, "devices", self.batch)
        if type(self.devices) is not int or not self.batch <= self.devices <= MOST_DEVICES:
            raise InvalidParameter(
                f"devices must be a whole number of {self.batch} (the batch) to {MOST_DEVICES}, got "
                f"{self.devices!r}; nothing was charged"
            )
        if type(self.curious) is not int or not 0 <= self.curious <= self.batch - 2:
            raise InvalidParameter(
                f"curious must lie in 0..{self.batch - 2}, since two devices at least must be mixed, got "
                f"{self.curious!r}; nothing was charged"
            )
        if self.sum_shape > MOST_NOISE:
            raise InvalidParameter(
                f"with {self.honest} honest of {self.devices} devices the noise has "
                f"{float(self.sum_shape):.3g} times the variance of a central map; at most {MOST_NOISE} are "
                "drawn; nothing was charged"
            )

    @property
    def honest(self) -> int:
        """How many devices' shares are noise enough."""
        return self.batch - self.curious

    @property
    def share_shape(self) -> Fraction:
        """The shape of one device's share."""
        return Fraction(1, self.honest)

    @property
    def sum_shape(self) -> Fraction:
        """The shape of the noise on what is released: the variance is so many times the central one."""
        return Fraction(self.devices, self.honest)


Plain = Literal["central", "local"]
InShares = Joint | Shuffled
"""Models in which nobody adds all of the noise."""
Model = Plain | InShares


def checked_model(model: Any) -> Model:
    """The model itself; anything that is none is refused.

    Args:
        model: "central", "local", a `Joint` or a `Shuffled`.

    Returns:
        The model.

    Raises:
        InvalidParameter: It is none of them.

    """
    if isinstance(model, Joint | Shuffled) or model in get_args(Plain):
        found: Model = model
        return found
    raise InvalidParameter(
        f"model must be 'central' or 'local', a Joint or a Shuffled, got {model!r}; nothing was charged"
    )


def model_name(model: Model) -> str:
    """What a model is called.

    Args:
        model: The trust model.

    Returns:
        A few words.

    Example:
        >>> model_name("central"), model_name(Joint(3))
        ('central model', 'joint model of 3 parties, 1 of them curious')

    """
    match model:
        case "central" | "local":
            return f"{model} model"
        case Joint(parties, curious):
            return f"joint model of {parties} parties, {curious or 'none'} of them curious"
        case Shuffled():
            return (
                f"shuffled model, {model.batch} devices mixed at least, {model.curious or 'none'} of them "
                f"curious, {model.devices} at most"
            )
        case _:
            assert_never(model)


def who_is_trusted(model: Model, unit: str) -> str:
    """Who is trusted with what, and what is not covered.

    Args:
        model: The trust model.
        unit: The unit of privacy: what a person is called.

    Returns:
        Words for the end of a guarantee; the name alone for the central and the local model.

    """
    match model:
        case "central" | "local":
            return model_name(model)
        case Joint(parties, curious):
            if curious == 0:
                pooled = "it protects against outsiders only, since a party that looks knows part of the noise"
            elif curious == 1:
                pooled = "any 1 of them may use all that it sees"
            else:
                pooled = f"any {curious} of them may pool all that they see"
            return (
                f"joint model: {parties} parties keep their own rows, add their own shares of the noise and "
                f"are trusted to keep to the protocol (honest but curious): {pooled}; a {unit} whom "
                "several parties know has mass 1 in each and loses so much once for each; not covered: a "
                "party that lies about its rows, or stops"
            )
        case Shuffled():
            return (
                f"shuffled model: {model.batch} to {model.devices} devices add their own shares of the noise, "
                f"at most {model.curious} of a batch are read by others; a shuffler, to which reports are "
                "sealed, is trusted to mix them, to forget who sent what, and not to work with whoever adds "
                f"them up; who takes part is not hidden: a {unit} removed is a device that sends noise and no "
                "place; not covered: devices that lie about places, or a shuffler and an adder in one hand"
            )
        case _:
            assert_never(model)


def encode_model(model: Model) -> str | dict[str, Any]:
    """A model as JSON: a word, or an object that says its kind.

    Args:
        model: The trust model.

    Returns:
        What `decode_model` reads.

    Example:
        >>> encode_model("central"), encode_model(Joint(3))
        ('central', {'kind': 'joint', 'parties': 3, 'curious': 1})

    """
    match model:
        case "central" | "local":
            return model
        case Joint(parties, curious):
            return {"kind": "joint", "parties": parties, "curious": curious}
        case Shuffled(batch, devices, curious):
            return {"kind": "shuffled", "batch": batch, "devices": devices, "curious": curious}
        case _:
            assert_never(model)


def decode_model(data: Any) -> Model:
    """The model that JSON states.

    Args:
        data: What `encode_model` gave.

    Returns:
        The model.

    Raises:
        InvalidInput: It states none that this version knows.

    """
    try:
        if isinstance(data, str):
            return checked_model(data)
        rest = dict(data)
        kinds: dict[str, type[Joint | Shuffled]] = {"joint": Joint, "shuffled": Shuffled}
        return kinds[rest.pop("kind")](**rest)
    except (KeyError, TypeError, ValueError) as problem:
        raise InvalidInput(f"not a trust model: {str(data)[:200]}; nothing was read") from problem
