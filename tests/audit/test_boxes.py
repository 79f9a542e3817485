"""Black boxes: functions, commands and files of samples, run as they are."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.audit.boxes.box import (
    CommandBox,
    FunctionBox,
    function_box,
    parse_output,
    read_samples,
)
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


def binned(data: list[float], size: int = 16) -> list[int]:
    return [len(data)] * size


def of_n(n: int) -> int:
    return n


def by_default(data: int, runs: int = 3) -> list[int]:
    return [data] * runs


def test_a_size_with_a_default_and_a_first_parameter_are_the_functions_own() -> None:
    assert function_box(binned).run([1.0], 2) == [[1] * 16] * 2
    assert function_box(of_n).run(5, 2) == [5, 5]
    assert function_box(by_default).run(5, 2) == [5, 5]


def test_a_command_is_run_by_a_shell_that_takes_the_data_as_they_are() -> None:
    box = CommandBox(f"{sys.executable} -c 'print({{data}} * 2)'", "twice")
    assert box.run(21, 2) == [42.0, 42.0]
    assert CommandBox("echo {data} | tr a b; echo c", "two").run("a", 1) == ["b\nc"]
    # Nothing is on standard input, where a program would wait for it.
    assert CommandBox("cat; echo {data}", "waits").run(1, 1) == [1.0]
    awkward = """a; echo no 'x' "y" $HOME `id` \\ | cat"""
    for template in (
        "printf %s {data}",
        "printf %s '{data}'",
        'printf %s "{data}"',
        "printf %s \\'{data}",
    ):
        found = CommandBox(template, "says").run(awkward, 1)
        assert found == ["'" * (template[10] == "\\") + awkward]
    assert CommandBox("printf '%s|%s' {data} '{data}'", "list").run([1, 2], 1) == ["[1, 2]|[1, 2]"]


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("no-such-command {data}", r"failed with exit code 127 on the input \[1, 2\]: .*not found"),
        (
            "echo some >&2; echo why >&2; exit 3 {data}",
            r"exit code 3 on the input \[1, 2\]: why; nothing",
        ),
        ("exit 4 {data}", "exit code 4 on the input .*: it said nothing; nothing was concluded"),
        ("sleep 60; echo {data}", "did not run to its end within 0.2 s on the input"),
    ],
)
def test_a_command_that_fails_says_on_what_and_why(template: str, message: str) -> None:
    seconds = 0.2 if "sleep" in template else 60.0
    with pytest.raises(InvalidInput, match=message):
        CommandBox(template, "broken", seconds).run([1, 2], 1)


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("1.5\n", 1.5),
        ("1, 2 3", (1.0, 2.0, 3.0)),
        ("yes\n", "yes"),
        ("", ""),
        ("1 x", "1 x"),
        ("a,1.5", ("a", 1.5)),
        ('"a, b",2', ("a, b", 2.0)),
        ("so, no", "so, no"),
        ("a,\n1", "a,\n1"),
    ],
)
def test_printed_output_is_numbers_or_words(text: str, output: Any) -> None:
    assert parse_output(text) == output


def test_samples_are_used_once(tmp_path: Path) -> None:
    for name, numbers in (("a", range(4)), ("b", range(10, 14))):
        (tmp_path / name).write_text("\n".join(map(str, numbers)) + "\n")
    box = read_samples(tmp_path / "a", tmp_path / "b")
    assert sorted([*box.run(0, 3), *box.run(0, 1)]) == [0.0, 1.0, 2.0, 3.0]
    assert set(box.run(1, 2)) < {10.0, 11.0, 12.0, 13.0}
    with pytest.raises(InvalidInput, match="holds 4 outputs, asked for 5"):
        box.run(0, 1)
    with pytest.raises(InvalidInput, match="cannot read"):
        read_samples(tmp_path / "a", tmp_path / "none")


def test_an_empty_line_is_an_empty_output(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("yes\n\n\nno\n\n")
    (tmp_path / "b").write_text("\r\nno", newline="")
    (tmp_path / "c").write_text("\n")
    box = read_samples(tmp_path / "a", tmp_path / "b")
    assert sorted(box.first) == ["", "", "", "no", "yes"]
    assert sorted(box.second) == ["", "no"]
    assert list(read_samples(tmp_path / "c", tmp_path / "a").first) == []


def test_files_are_shuffled_by_place_alone(tmp_path: Path) -> None:
    for name, begin in (("a", 0), ("b", 1000)):
        (tmp_path / name).write_text("".join(f"{begin + number}\n" for number in range(1000)))
    box, again = (read_samples(tmp_path / "a", tmp_path / "b") for _ in range(2))
    assert (box.first, box.second) == (again.first, again.second)
    orders = np.array(box.first), np.array(box.second) - 1000
    for order in orders:
        assert sorted(order) == list(range(1000))
        # Rank correlation with the place: its standard deviation is 1 / sqrt(999), its law all but
        # normal.
        assert abs(np.corrcoef(order, np.arange(1000))[0, 1]) < 5 / np.sqrt(999)
    assert abs(np.corrcoef(*orders)[0, 1]) < 5 / np.sqrt(999)


@pytest.mark.parametrize(("header", "line"), [("value", "1.5"), ("x,y", "1,2"), ("kind,x", "a,2")])
def test_a_header_is_refused(tmp_path: Path, header: str, line: str) -> None:
    (tmp_path / "a").write_text(f"{header}\n{line}\n{line}\n")
    (tmp_path / "b").write_text(f"{line}\n{header}\n{line}\n")
    with pytest.raises(
        InvalidInput, match=r"take the line away if it is a header.*nothing was tested"
    ):
        read_samples(tmp_path / "b", tmp_path / "a")
    (tmp_path / "a").write_text(f"{line}\n")
    assert header in read_samples(tmp_path / "a", tmp_path / "b").second


def test_the_same_file_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(
        InvalidInput, match=r"samples are two files, got .* twice; nothing was tested"
    ):
        read_samples(tmp_path / "a", tmp_path / "b")


def test_arrays_come_through(rng: np.random.Generator) -> None:
    noisy: Callable[..., Any] = lambda data, size: data + rng.normal(size=size)  # noqa: E731
    assert np.asarray(function_box(noisy).run(5.0, 7)).shape == (7,)
