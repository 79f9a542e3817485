"""Black boxes: functions, commands and files of samples, run as they are."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.audit.boxes import CommandBox, FunctionBox, function_box, parse_output, read_samples
from sfumato.errors import InvalidInput, InvalidParameter

pytestmark = pytest.mark.unit


def double(data: int) -> int:
    return 2 * data


def many(data: int, runs: int) -> list[int]:
    return [data] * runs


def few(data: int, n: int) -> list[int]:
    return [data] * (n - 1)


def test_a_function_is_run_again_and_again_or_at_once() -> None:
    assert function_box(double).run(3, 4) == [6, 6, 6, 6]
    assert function_box(many).run(3, 4) == [3, 3, 3, 3]
    with pytest.raises(InvalidParameter, match="must give 4 outputs when asked for them, got 3"):
        function_box(few).run(3, 4)


def test_a_function_without_a_signature_is_run_one_by_one() -> None:
    assert list(FunctionBox(max, "max").run([1, 5], 2)) == [5, 5]


def test_a_target_names_a_function() -> None:
    box = function_box("math:sqrt")
    assert (box.name, box.run(4.0, 2)) == ("math:sqrt", [2.0, 2.0])
    assert function_box("numpy:linalg.norm").run([3.0, 4.0], 1) == [5.0]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("math", "module:function"),
        (":sqrt", "module:function"),
        ("math:cuberoot", "cannot load"),
        ("no_such_module:f", "cannot load"),
        ("math:pi", "is not a function"),
    ],
)
def test_a_target_that_is_none_is_refused(target: str, message: str) -> None:
    with pytest.raises((InvalidParameter, InvalidInput), match=message) as refusal:
        function_box(target)
    assert "nothing was run" in str(refusal.value)


def test_a_command_is_run_without_a_shell() -> None:
    box = CommandBox(f"{sys.executable} -c 'print({{data}} * 2)'", "twice")
    assert box.run(21, 2) == [42.0, 42.0]
    # What looks like a second command is an argument, not run.
    echo = CommandBox(f"{sys.executable} -c 'import sys; print(len(sys.argv))' {{data}} ; echo no", "words")
    assert echo.run("a; rm", 1) == [5.0]
    for template in ("no-such-command {data}", f"{sys.executable} -c 'raise SystemExit(3)'"):
        with pytest.raises(InvalidInput, match="did not run to its end"):
            CommandBox(template, "broken").run(1, 1)


@pytest.mark.parametrize(
    ("text", "output"),
    [("1.5\n", 1.5), ("1, 2 3", (1.0, 2.0, 3.0)), ("yes\n", "yes"), ("", ""), ("1 x", "1 x")],
)
def test_printed_output_is_numbers_or_words(text: str, output: Any) -> None:
    assert parse_output(text) == output


def test_samples_are_used_once(tmp_path: Path) -> None:
    for name, numbers in (("a", range(4)), ("b", range(10, 14))):
        (tmp_path / name).write_text("\n".join(map(str, numbers)) + "\n")
    box = read_samples(tmp_path / "a", tmp_path / "b")
    assert box.run(0, 3) == [0.0, 1.0, 2.0]
    assert box.run(1, 2) == [10.0, 11.0]
    assert box.run(0, 1) == [3.0]
    with pytest.raises(InvalidInput, match="holds 4 outputs, asked for 5"):
        box.run(0, 1)
    with pytest.raises(InvalidInput, match="cannot read"):
        read_samples(tmp_path / "a", tmp_path / "none")


def test_arrays_come_through(rng: np.random.Generator) -> None:
    noisy: Callable[..., Any] = lambda data, size: data + rng.normal(size=size)  # noqa: E731
    assert np.asarray(function_box(noisy).run(5.0, 7)).shape == (7,)
