"""Losses, relations, guarantees and mechanisms as JSON: exact fractions as text, one shape everywhere."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

from sfumato.errors import InvalidInput
from sfumato.privacy.accounting.guarantee import Guarantee
from sfumato.privacy.accounting.losses import ZCDP, ApproxDP, Loss, PureDP
from sfumato.privacy.accounting.neighbors import (
    AddRemoveUser,
    FlippedEdge,
    MovedMass,
    Neighbors,
    ReplaceUser,
    SwappedCells,
)
from sfumato.privacy.accounting.numbers import exact, written
from sfumato.privacy.accounting.trust import Joint, Shuffled, decode_model, encode_model

LOSSES: dict[str, type[Loss]] = {kind.__name__: kind for kind in (PureDP, ApproxDP, ZCDP)}
NEIGHBORS: dict[str, type[Neighbors]] = {
    kind.__name__: kind
    for kind in (AddRemoveUser, ReplaceUser, MovedMass, SwappedCells, FlippedEdge)
}


def parameters(value: Any) -> dict[str, Any]:
    """The fields of a frozen value; fractions as text.

    Args:
        value: A frozen dataclass.

    Returns:
        Its fields by name; fractions as text, losses, trust models and mechanisms as objects.

    Example:
        >>> parameters(PureDP("1/3"))
        {'epsilon': '1/3'}

    """
    found = ((field.name, getattr(value, field.name)) for field in fields(value))
    return {name: _plain(item) for name, item in found}


def _plain(item: Any) -> Any:
    if isinstance(item, Fraction):
        return written(item)
    if isinstance(item, tuple):
        return [_plain(part) for part in item]
    if isinstance(item, Joint | Shuffled):
        return encode_model(item)
    if type(item).__name__ in LOSSES:
        return encode(item)
    # A mechanism inside another says its own name.
    name = getattr(item, "name", None)
    return {"name": name, **parameters(item)} if is_dataclass(item) else item


def encode(value: Loss | Neighbors) -> dict[str, Any]:
    """A loss or relation as a JSON object that says its own kind.

    Args:
        value: A loss or a neighbor relation.

    Returns:
        Its kind and its parameters, fractions as text.

    Example:
        >>> encode(PureDP(1))
        {'kind': 'PureDP', 'epsilon': '1'}

    """
    return {"kind": type(value).__name__, **parameters(value)}


def decode_loss(data: Any) -> Loss:
    """The loss a JSON object states.

    Args:
        data: What `encode` gave.

    Returns:
        The loss.

    Raises:
        InvalidInput: The object states no loss.

    """
    found: Loss = _decode(data, LOSSES, "loss")
    return found


def decode_neighbors(data: Any) -> Neighbors:
    """The neighbor relation a JSON object states.

    Args:
        data: What `encode` gave.

    Returns:
        The relation.

    Raises:
        InvalidInput: The object states no relation.

    """
    found: Neighbors = _decode(data, NEIGHBORS, "neighbor relation")
    return found


def encode_guarantee(guarantee: Guarantee) -> dict[str, Any]:
    """A guarantee as a JSON object, its numbers exact; its sentence is `str(guarantee)`.

    Args:
        guarantee: The guarantee.

    Returns:
        Loss, neighbors, unit, model and computational distance.

    Example:
        >>> encode_guarantee(Guarantee(PureDP(1), AddRemoveUser(), "user"))["loss"]
        {'kind': 'PureDP', 'epsilon': '1'}

    """
    distance = guarantee.computational
    return {
        "loss": encode(guarantee.loss),
        "neighbors": encode(guarantee.neighbors),
        "unit": guarantee.unit,
        "model": encode_model(guarantee.model),
        "computational": None if distance is None else written(distance),
    }


def decode_guarantee(data: Any) -> Guarantee:
    """The guarantee a JSON object states; a missing part is a KeyError that names it.

    Args:
        data: What `encode_guarantee` gave.

    Returns:
        The guarantee.

    Raises:
        InvalidInput: The object states no guarantee.
        KeyError: A part is missing.

    """
    distance = data["computational"]
    if not isinstance(data["unit"], str):
        raise InvalidInput(
            f"the unit of a guarantee is a name, got {json.dumps(data['unit'])[:200]}"
        )
    return Guarantee(
        loss=decode_loss(data["loss"]),
        neighbors=decode_neighbors(data["neighbors"]),
        unit=data["unit"],
        model=decode_model(data["model"]),
        computational=None if distance is None else exact(distance),
    )


def _decode(data: Any, kinds: dict[str, Any], what: str) -> Any:
    try:
        rest = dict(data)
        return kinds[rest.pop("kind")](**rest)
    except (KeyError, TypeError, ValueError) as problem:
        raise InvalidInput(f"not a {what}: {json.dumps(data, default=str)[:200]}") from problem


def canonical(data: Any) -> str:
    """JSON with one spelling only, so that it can be hashed.

    Args:
        data: What JSON holds; numbers must be finite.

    Returns:
        The text: keys sorted, no blanks, ASCII.

    Raises:
        ValueError: A number is not finite.

    """
    return json.dumps(
        data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )
