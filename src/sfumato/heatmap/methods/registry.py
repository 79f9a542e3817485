"""Map methods by name: those of the package, those a program registered, and those of plugins.

A package adds a method by an entry point of the group `sfumato.map_methods`, whose name is that of
the method and whose value is its class; a program by `register_method`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, get_type_hints

from sfumato._registry import Registry
from sfumato.errors import InvalidParameter
from sfumato.privacy.accounting import exact

if TYPE_CHECKING:
    from sfumato.heatmap.methods.protocol import MapMethod

Make = Callable[..., "MapMethod[Any]"]
Flag = tuple[str, Callable[[Any], Any]]


@dataclass(frozen=True, slots=True)
class MethodEntry:
    """A method by name: what makes it, and which flags of the command line are its parameters.

    Attributes:
        name: The word by which it is chosen.
        load: Gives the class of the method, or a function of its parameters.
        flags: For a flag of the command line, the parameter it sets and how its text is read.

    """

    name: str
    load: Callable[[], Make]
    flags: Mapping[str, Flag] = field(default_factory=dict)

    def make(
        self, flags: Mapping[str, Any] | None = None, options: Mapping[str, Any] | None = None
    ) -> MapMethod[Any]:
        """The method with these parameters; flags that belong to other methods are passed over."""
        make = self.load()
        found = {
            self.flags[flag][0]: self.flags[flag][1](value)
            for flag, value in (flags or {}).items()
            if flag in self.flags
        }
        readers = _readers(make)
        for name, value in (options or {}).items():
            if name not in readers:
                known = ", ".join(readers) or "none"
                raise InvalidParameter(
                    f"method {self.name} has no option {name!r}, it has {known}; nothing was charged"
                )
            found[name] = readers[name](value) if isinstance(value, str) else value
        return make(**found)


def _percent(text: Any) -> Fraction:
    return exact(text, name="top") / 100


FLAGS: dict[str, dict[str, Flag]] = {
    "pyramid": {"width": ("width", int)},
    "coarse": {"users": ("users", int)},
    "top": {"top": ("share", _percent)},
    "gaussian": {"delta": ("delta", lambda text: exact(text, name="delta"))},
}
"""For each method that has some, the options of the command line that are its parameters."""
_HERE = "sfumato.heatmap.methods"
METHODS = Registry[Make](
    "map method",
    "sfumato.map_methods",
    {
        "zoom": f"{_HERE}.zoom:ZoomMethod",
        "pyramid": f"{_HERE}.pyramid:PyramidMethod",
        "privtree": f"{_HERE}.baselines.privtree:PrivTreeMethod",
        "adaptive": f"{_HERE}.baselines.adaptive_grid:AdaptiveGridMethod",
        "hierarchy": f"{_HERE}.baselines.hierarchy:HierarchyMethod",
        "coarse": f"{_HERE}.baselines.coarse:CoarseMethod",
        "laplace": f"{_HERE}.baselines.flat:FlatMethod",
        "top": f"{_HERE}.baselines.flat:TopMethod",
        "gaussian": f"{_HERE}.baselines.flat:GaussianMethod",
    },
)


def register_method(make: Make, *, name: str = "") -> None:
    """Make a map method known by name: to commands, the leaderboard and `release_heatmap`.

    Args:
        make: The class of the method, or a function of its parameters that returns one. Fields of a
            dataclass are its options on the command line (`--method-option field=value`).
        name: The word by which it is chosen; the class's own `name` if none is given.

    Raises:
        InvalidParameter: It has no name, or a method of this name is there already.

    """
    chosen = name or getattr(make, "name", "")
    if not (isinstance(chosen, str) and chosen.isidentifier()):
        raise InvalidParameter(f"a map method needs a name of one word, got {chosen!r}")
    METHODS.add(chosen, make)


def unregister_method(name: str) -> None:
    """Forget a method that `register_method` made known.

    Args:
        name: Its word.

    Raises:
        InvalidParameter: None of this name was registered; those of the package stay.

    """
    METHODS.remove(name)


def registered_methods() -> dict[str, MethodEntry]:
    """Every map method by name: of the package, registered, and of installed plugins.

    Returns:
        The entries, the package's first; a plugin does not replace a name that is taken.

    """
    return {
        name: MethodEntry(name, partial(METHODS.get, name), FLAGS.get(name, {}))
        for name in METHODS.names()
    }


def method_named(
    name: str,
    *,
    flags: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> MapMethod[Any]:
    """The method of this name with these parameters.

    Args:
        name: Its word, one of `registered_methods`.
        flags: Values of flags of the command line (width, delta, users, top); those that do not
            belong to the method are passed over.
        options: Values of the method's own parameters, by name; text is read as their type.

    Returns:
        The method.

    Raises:
        InvalidParameter: There is no such method or option, or a value is out of range.

    Example:
        >>> method_named("pyramid", options={"width": "40"}).width
        40

    """
    check_method_name(name)
    return registered_methods()[name].make(flags, options)


def check_method_name(name: str) -> None:
    """Refuse a name that no method has, without loading one.

    Args:
        name: The word by which a method is chosen.

    Raises:
        InvalidParameter: No method has this name.

    """
    known = METHODS.names()
    if name not in known:
        raise InvalidParameter(
            f"a map method is one of {', '.join(known)}, got {name!r}; nothing was charged"
        )


def as_method(method: str | MapMethod[Any]) -> MapMethod[Any]:
    """A method, or the one of this name with its defaults."""
    found = method_named(method) if isinstance(method, str) else method
    if isinstance(found, type):
        raise InvalidParameter(
            f"a method is a value like ZoomMethod(blur=0.02), got the class {found.__name__}: write "
            f"{found.__name__}(); nothing was charged"
        )
    if not hasattr(found, "mechanism"):
        raise InvalidParameter(
            f"a method is a value like ZoomMethod(blur=0.02), got {method!r}; nothing was charged"
        )
    return found


def _readers(make: Make) -> dict[str, Callable[[str], Any]]:
    """How the text of each parameter of a dataclass is read, by its type."""
    if not is_dataclass(make):
        return {}
    types = get_type_hints(make)
    return {one.name: _reader(one.name, types[one.name]) for one in fields(make) if one.init}


def _reader(name: str, kind: Any) -> Callable[[str], Any]:
    if kind is Fraction:
        return lambda text: exact(text, name=name)
    if kind is bool:
        return lambda text: _truth(name, text)
    if kind not in (int, float):
        return str

    def read(text: str) -> Any:
        try:
            return kind(text)
        except ValueError:
            raise InvalidParameter(
                f"{name} is a number, got {text!r}; nothing was charged"
            ) from None

    return read


def _truth(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise InvalidParameter(f"{name} is true or false, got {text!r}; nothing was charged")
    return text.lower() == "true"
