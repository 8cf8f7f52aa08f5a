"""CSV files as they are found: which table each is, its encoding, its delimiter and its header.

Only looks; the one thing it writes is a copy in UTF-8 of a file that is not. Never guesses a row away: what
does not read as it should is an error that names the file and the line.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from charset_normalizer import from_bytes

from connectors.file_options import FileOptions
from connectors.rows import decode, decode_cp1252
from workspace.errors import CatalogueError

SUFFIXES = (".csv", ".tsv")
LONGEST_LINE = 16_000_000
"""Bytes; a longer one is taken for a quote, or a bracket, that nobody closed."""
_SAMPLE_BYTES = 1 << 20
_SAMPLE_RECORDS = 500
_DELIMITERS = ",;\t|"
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# What legacy systems write besides cp1252; without a list charset-normalizer tells near relatives apart by luck.
_ENCODINGS = [
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "koi8_r", "mac_roman"),
    *("utf_16_le", "utf_16_be", "shift_jis", "euc_jp", "gb18030", "big5", "euc_kr"),
]
# A sample may hold one field only; the library's own limit is an eighth of that.
csv.field_size_limit(max(csv.field_size_limit(), 2 * _SAMPLE_BYTES))
_VALUE = re.compile(r"-?\d+([.,]\d+)?|\d{4}-\d\d-\d\d.*|\d\d?[./]\d\d?[./]\d{2,4}.*|\S+@\S+\.\S+")


@dataclass(frozen=True)
class CsvFile:
    """One file, as DuckDB is to read it. `encoding` is Python's name, or "mixed" for UTF-8 with lines of cp1252 among it.

    `place` is how a person knows the file. `escape` is the character that stands before a quote inside quotes: `"` or a
    backslash. `line_end` is what ends the header where it goes over several lines, else "". Of a file without a header
    `written` names the columns as they stand in each line, as far as it goes, "" for one that is none.
    """

    path: Path
    place: str
    encoding: str
    delimiter: str
    escape: str
    columns: tuple[str, ...]
    line_end: str = ""
    written: tuple[str, ...] = ()


def look(path: Path, options: FileOptions, place: str) -> CsvFile:
    """What a file is, by reading a sample and checking that all of it is UTF-8. CatalogueError for a file without a
    header."""
    encoding = options.encoding or encoding_of(path)
    sample = _sample(path, encoding)
    escape = "\\" if _backslashes(sample) else '"'
    delimiter = options.delimiter or ("\t" if path.suffix.lower() == ".tsv" else _delimiter(sample, escape))
    header = next(_records(sample, delimiter, escape), [])
    columns = _columns(header, place)
    return CsvFile(path, place, encoding, delimiter, escape, columns, _line_end(sample, delimiter, escape))


def write_utf8(path: Path, encoding: str, copy: Path, place: str) -> None:
    """A copy of the file in UTF-8. CatalogueError names the first line that isn't in the encoding."""
    with open(path, "rb") as source, open(copy, "w", encoding="utf-8", newline="") as out:
        if encoding == "mixed":
            out.writelines(decode(line) for line in source)
        elif encoding == "cp1252":
            out.writelines(decode_cp1252(line) for line in source)
        else:
            out.writelines(_strictly(source, encoding, place))


def _strictly(source: BinaryIO, encoding: str, place: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(encoding)()
    ends = 0
    while True:
        raw = source.read(_SAMPLE_BYTES)
        try:
            text = decoder.decode(raw, final=not raw)
        except UnicodeError as error:
            if isinstance(error, UnicodeDecodeError):
                ends += codecs.decode(error.object[: error.start], error.encoding, "ignore").count("\n")
            raise CatalogueError(
                f"the line isn't {encoding}", where=f"{place}:{ends + 1}",
                advice="name the file's own encoding: ?encoding=cp1252, or mend the line",
            ) from None  # fmt: skip
        yield text
        ends += text.count("\n")
        if not raw:
            return


def has_long_lines(path: Path) -> bool:
    """Whether a line may be longer than 1 MiB; one of 2 MiB is."""
    with open(path, "rb") as file:
        while block := file.read(_SAMPLE_BYTES):
            if len(block) == _SAMPLE_BYTES and b"\n" not in block and b"\r" not in block:
                return True
    return False


def encoding_of(path: Path) -> str:
    """A file's encoding, by its mark, else by looking at all of it: utf-8, mixed (see CsvFile), or the likeliest other."""
    with open(path, "rb") as file:
        start = file.read(4)
        for mark, name in _BOMS:
            if start.startswith(mark):
                return name
        file.seek(0)
        checker = codecs.getincrementaldecoder("utf-8")()
        try:
            while block := file.read(_SAMPLE_BYTES):
                checker.decode(block)
            checker.decode(b"", final=True)
            return "utf-8"
        except UnicodeDecodeError:
            pass
        file.seek(0)
        head = file.read(4096)
        file.seek(0)
        if b"\0" in head:
            return "utf-16-le" if head[1::2].count(0) > head[::2].count(0) else "utf-16-be"
        foreign = list(islice((line for line in file if not line.isascii()), 2000))
    if sum(map(_is_utf8, foreign)) * 2 > len(foreign):
        return "mixed"
    return _legacy_encoding(b"".join(foreign)[:_SAMPLE_BYTES])


def _legacy_encoding(sample: bytes) -> str:
    """The likeliest encoding of text that is not UTF-8; cp1252 unless another is clearly better."""
    matches = from_bytes(sample, cp_isolation=_ENCODINGS)
    best = matches.best()
    western = next((match for match in matches if "cp1252" in {match.encoding, *match.could_be_from_charset}), None)
    if best is None or (
        western is not None and western.chaos <= best.chaos + 0.02 and western.coherence >= best.coherence
    ):
        return "cp1252"
    return best.encoding


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _sample(path: Path, encoding: str) -> str:
    with open(path, "rb") as file:
        raw = file.read(_SAMPLE_BYTES)
    if encoding == "mixed":
        return decode(raw)
    return codecs.getincrementaldecoder(encoding)("replace").decode(raw)


def _backslashes(sample: str) -> bool:
    """Whether quotes inside quotes are written `\\"` here and never doubled inside a value."""
    return bool(re.search(r'[^\\"]\\"[^,;\t|\r\n]', sample)) and not re.search(r'[^,;\t|\r\n"]""[^,;\t|\r\n"]', sample)


def _delimiter(sample: str, escape: str) -> str:
    """The delimiter that splits the header most, first of those that split nine records in ten as often.

    A header that none splits is one column: its delimiter is one that no text holds, so that a comma in
    a value splits nothing.
    """
    best, score = "\x1f", (False, 1)
    for delimiter in _DELIMITERS:
        widths = [len(record) for record in _records(sample, delimiter, escape) if record]
        if not widths:
            continue
        fitting = sum(width == widths[0] for width in widths) * 10 >= len(widths) * 9
        if widths[0] > 1 and (fitting, widths[0]) > score:
            best, score = delimiter, (fitting, widths[0])
    return best


def _line_end(sample: str, delimiter: str, escape: str) -> str:
    """What ends the header's record (escaped, as DuckDB wants it) where it goes over several lines; else ""."""
    lines = list(io.StringIO(sample, newline=""))
    reader = _reader(lines, delimiter, escape)
    next(reader, None)
    if reader.line_num < 2:
        return ""
    last = lines[reader.line_num - 1]
    return next((repr(end)[1:-1] for end in ("\r\n", "\n", "\r") if last.endswith(end)), "")


def _records(sample: str, delimiter: str, escape: str) -> islice[list[str]]:
    return islice(_reader(io.StringIO(sample, newline=""), delimiter, escape), _SAMPLE_RECORDS)


def _reader(lines: Iterable[str], delimiter: str, escape: str) -> Any:
    if escape == "\\":
        return csv.reader(lines, delimiter=delimiter, doublequote=False, escapechar="\\")
    return csv.reader(lines, delimiter=delimiter)


def _columns(header: list[str], place: str) -> tuple[str, ...]:
    names = [name.strip() for name in header]
    valued = next((name for name in names if _VALUE.fullmatch(name)), None)
    if valued is not None or not any(names):
        raise CatalogueError(
            "the file has no header" + (f": its first line holds {valued!r}" if valued else ""),
            where=f"{place}:1",
            advice="put the columns' names in its first line",
        )
    names = [name or f"column_{place}" for place, name in enumerate(names, 1)]
    twice = next((name for name, n in Counter(map(str.casefold, names)).items() if n > 1), None)
    if twice is not None:
        raise CatalogueError(
            f"two columns have the name {twice}", where=f"{place}:1", advice="give each a name of its own"
        )
    return tuple(names)
