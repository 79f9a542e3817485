"""The one reader of text files: rows of CSV and NDJSON as text, the same rows for every engine.

The state of quoting is known from the first byte on, so that a field may hold line breaks, at any
place and in any size: nothing looks for the beginning of a row in the middle of a file. This module
imports nothing of sfumato: Spark sends it to its executors by value.
"""

from __future__ import annotations

import gzip
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.csv

# CSV is read in blocks of the first size, from a row on that does not fit in blocks of the second.
# Half of a block is kept free for bytes that are not ASCII: rows of up to 2**26 bytes are read.
BLOCKS = (2**23, 2**27)
# Lines of JSON are handed on in batches of this many.
LINES = 2**15
# The decimal numbers every engine reads alike. Left to themselves, DuckDB takes "1_000" for a
# thousand, Spark "1d" for one. Forty digits are more than a double has, and with two of exponent
# none is out of its range, which PostgreSQL would stop at.
DECIMAL = r"^[+-]?([0-9]{1,40}([.][0-9]{0,40})?|[.][0-9]{1,40})([eE][+-]?[0-9]{1,2})?$"
# Stands for a character 0; Latin-1 has none of this name.
NUL = "\u0100"
# A header is looked for in the first mebibyte.
LONGEST_HEADER = 2**20
BLANKS = " \t\n\r\v\f"
# Numbers above 10**DIGITS, or below its inverse, keep an exponent.
DIGITS = 40


@dataclass(frozen=True, slots=True)
class TextRows:
    """The columns `wanted` of text files whose columns are `names`, some as `numbers`, the others as text.

    Each reading begins anew.
    """

    format: Literal["CSV", "JSON"]
    paths: tuple[str, ...]
    names: tuple[str, ...]
    wanted: tuple[str, ...]
    numbers: frozenset[str] = frozenset()
    delimiter: str = ","

    @property
    def schema(self) -> pa.Schema:
        """Numbers are doubles."""
        kinds = (pa.float64() if name in self.numbers else pa.string() for name in self.wanted)
        return pa.schema(list(zip(self.wanted, kinds, strict=True)))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, file by file."""
        for path in self.paths:
            yield from self.batches_of(path)

    def batches_of(self, path: str) -> Iterator[pa.RecordBatch]:
        """The rows of one file, for engines that give each file to another worker."""
        parts = self._csv(path) if self.format == "CSV" else self._json(path)
        for read in parts:
            columns = [
                as_numbers(column) if name in self.numbers else column
                for name, column in zip(self.wanted, read, strict=True)
            ]
            yield pa.record_batch(columns, schema=self.schema)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self.schema, self.batches())
        return reader.__arrow_c_stream__(requested_schema)

    def _csv(self, path: str) -> Iterator[list[pa.Array]]:
        """RFC 4180: fields in quotes hold anything, a quote in them is doubled; lines end in LF, CR or both.

        Rows with another number of fields than the header are left out, empty lines too. Bytes are
        read as Latin-1, in which all of them are text, so that none can stop the reader.
        """
        read = 0
        for block in BLOCKS:
            left = read
            try:
                for batch in self._csv_in_blocks(path, block):
                    new, left = batch.slice(left), max(0, left - batch.num_rows)
                    read += new.num_rows
                    yield new.columns
            except pa.ArrowInvalid as error:
                if "straddling" not in str(error) or block == BLOCKS[-1]:
                    raise
            else:
                return

    def _csv_in_blocks(self, path: str, block: int) -> Iterator[pa.RecordBatch]:
        # By place, not by name: names may hold anything.
        places = [str(place) for place in range(len(self.names))]
        wanted = [str(self.names.index(name)) for name in self.wanted]
        with _opened(path) as file:
            rows = _Latin1(file)
            if rows.at_end():
                return
            for batch in pyarrow.csv.open_csv(
                pa.PythonFile(rows, mode="r"),
                read_options=pyarrow.csv.ReadOptions(column_names=places, block_size=block),
                parse_options=pyarrow.csv.ParseOptions(
                    delimiter=self.delimiter,
                    newlines_in_values=True,
                    invalid_row_handler=lambda _: "skip",
                ),
                convert_options=pyarrow.csv.ConvertOptions(
                    column_types=dict.fromkeys(places, pa.string()),
                    include_columns=wanted,
                    check_utf8=False,
                ),
            ):
                # All that is in a batch has been read by now.
                if rows.all_plain:
                    yield batch
                else:
                    yield pa.record_batch(
                        [_from_latin_1(column) for column in batch.columns], names=wanted
                    )

    def _json(self, path: str) -> Iterator[list[pa.Array]]:
        """One object per line; a line that is none, or no UTF-8, is left out; a key that is missing is null.

        Text stays text, numbers are written in one way (1, 1.0 and 10e-1 are all 1), lists and
        objects within are null.
        """
        decoder = json.JSONDecoder(
            parse_int=plain_number, parse_float=plain_number, parse_constant=lambda _: None
        )
        with _opened(path) as file:
            lines = iter(file.readline, b"")
            first = True
            while lot := list(islice(lines, LINES)):
                if first:
                    lot[0], first = lot[0].removeprefix(b"\xef\xbb\xbf"), False
                objects = [found for line in lot if (found := _object(line, decoder)) is not None]
                yield [texts([_text(one.get(name)) for one in objects]) for name in self.wanted]


class _Latin1:
    """The rows of a CSV after its header, every byte as a character that Arrow has no trouble with.

    Bytes are taken for Latin-1 and given as UTF-8. Arrow has two troubles at the ends of its
    blocks: it takes an LF at the beginning of one for the rest of a line's end, also within quotes,
    so that no piece ends in a CR that an LF follows; and it overlooks quotes near a character 0,
    which is given as another one.
    """

    closed = False

    def __init__(self, file: Any) -> None:
        self.file, self.all_plain = file, True
        # A header has no line break in quotes: it ends with the first line.
        line = file.readline(LONGEST_HEADER)
        end = re.search(rb"\r\n?|\n", line)
        if end is None and len(line) == LONGEST_HEADER:
            raise ValueError("the header does not end")
        self.kept: bytes = line[end.end() :] if end else b""

    def read(self, size: int) -> bytes:
        piece = self._take(max(1, size // 2 - 2))
        if piece.endswith(b"\r"):
            piece += self._take(1)
        if piece.endswith(b"\r\r"):
            piece, self.kept = piece[:-1], b"\r" + self.kept
        if piece.isascii() and b"\0" not in piece:
            return piece
        self.all_plain = False
        return piece.decode("latin-1").replace("\0", NUL).encode()

    def at_end(self) -> bool:
        self.kept = self._take(1) + self.kept
        return not self.kept

    def close(self) -> None:
        self.file.close()

    def _take(self, count: int) -> bytes:
        taken, self.kept = self.kept[:count], self.kept[count:]
        return taken + self.file.read(count - len(taken)) if len(taken) < count else taken


def as_numbers(texts: pa.Array) -> pa.Array:
    """The doubles that texts are in decimal, with blanks around them or not; null where they are none."""
    import pyarrow.compute as pc  # loaded for text alone

    quick = _as_numbers_at_once(texts)
    if quick is not None:
        return quick
    bare = pc.utf8_trim(texts, BLANKS)
    return pc.cast(pc.if_else(pc.match_substring_regex(bare, DECIMAL), bare, None), pa.float64())


def _as_numbers_at_once(texts: pa.Array) -> pa.Array | None:
    """The same, if no text is anything but sign, digits and point; or none. It has to be quick."""
    import pyarrow.compute as pc

    if texts.null_count or not len(texts):
        return None
    _, ends, letters = texts.buffers()
    places = np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    used = np.frombuffer(letters, np.uint8)[places[0] : places[-1]]
    if np.diff(places).max() > DIGITS or np.any(used | 0x20 == ord("e")):
        return None
    try:
        found = pc.cast(texts, pa.float64())
    except pa.ArrowInvalid:
        return None
    # Arrow takes "inf" and "nan" for numbers.
    return found if pc.all(pc.is_finite(found)).as_py() else None


def plain_number(text: str) -> str:
    """A decimal number in the one way it is written here: without needless zeros, a plus or an exponent.

    >>> [plain_number(text) for text in ("1.0", "-0", "15e-1", "100", "1E+300")]
    ['1', '0', '1.5', '100', '1e300']
    """
    if text.isdecimal() and text[0] != "0":
        return text
    number = Decimal(text)
    if not number:
        return "0"
    if abs(number.adjusted()) > DIGITS:
        sign, digits, exponent = number.as_tuple()
        bare = "".join(map(str, digits))
        short = bare.rstrip("0")
        return f"{'-' * sign}{short}e{int(exponent) + len(bare) - len(short)}"
    plain = format(number, "f")
    return (plain.rstrip("0").rstrip(".") if "." in plain else plain).removeprefix("+")


def _opened(path: str) -> gzip.GzipFile | io.BufferedReader:
    return gzip.open(path) if path.lower().endswith(".gz") else open(path, "rb")


def _from_latin_1(column: pa.Array) -> pa.Array:
    """What was read as Latin-1 as the UTF-8 it is; null where it is none."""
    import pyarrow.compute as pc

    if pc.all(pc.string_is_ascii(column), min_count=0).as_py():
        return column
    coded = column.dictionary_encode()
    return pa.array([_utf8(text) for text in coded.dictionary.to_pylist()], pa.string()).take(
        coded.indices
    )


def _utf8(text: str) -> str | None:
    try:
        return text.replace(NUL, "\0").encode("latin-1").decode()
    except UnicodeDecodeError:
        return None


def _object(line: bytes, decoder: json.JSONDecoder) -> dict[str, Any] | None:
    try:
        found = decoder.decode(line.decode())
    except (ValueError, RecursionError, ArithmeticError):
        return None
    return found if isinstance(found, dict) else None


def texts(values: list[str | None]) -> pa.Array:
    """Text as Arrow, null where it is no text: half of a surrogate pair is no character."""
    try:
        return pa.array(values, pa.string())
    except UnicodeEncodeError:
        return pa.array(
            [text if text is None or _encodes(text) else None for text in values], pa.string()
        )


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else None


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
