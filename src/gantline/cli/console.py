"""What commands print: data on stdout, messages on stderr; tables for people, plain text for pipes, JSON and CSV for programs."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from gantline.core.fields import harmless

if TYPE_CHECKING:
    import polars as pl

#: control characters and changes of direction that JSON may hold as they are
_UNSEEN = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
Form = Annotated[
    Literal["table", "json", "csv"],
    Parameter(name=["--output", "-o"], help="How to print the result: a table for people (tab-separated when piped), or for programs."),
]


@dataclass(frozen=True)
class Column:
    """One column of a sheet; `title` and `spell` give its name and its values for people."""

    name: str
    right: bool = False
    spell: Callable[[Any], str] | None = None
    title: str | None = None
    whole: bool = False  # never broken into lines


@dataclass(frozen=True)
class Sheet:
    """Rows under named columns."""

    columns: tuple[Column, ...]
    rows: Sequence[Sequence[Any]] = field(default_factory=list)

    @staticmethod
    def of(names: str, rows: Sequence[Sequence[Any]]) -> Sheet:
        """A sheet whose columns are the words of `names`."""
        return Sheet(tuple(map(Column, names.split())), rows)

    @staticmethod
    def of_frame(frame: pl.DataFrame) -> Sheet:
        """All rows and columns of a frame."""
        return Sheet(tuple(map(Column, frame.columns)), frame.rows())

    def records(self) -> list[dict[str, Any]]:
        """A record per row."""
        return [dict(zip((column.name for column in self.columns), row)) for row in self.rows]


def say(message: str) -> None:
    """One line for the person, on stderr."""
    print("gantline: " + printable(" ".join(message.split())), file=sys.stderr, flush=True)


def is_watched() -> bool:
    """Whether a person looks at stdout."""
    if any(name in os.environ for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")):
        return console().is_terminal
    return sys.stdout.isatty() and console().is_terminal  # rich is only loaded for a terminal


def console() -> Console:
    """Stdout as rich sees it; NO_COLOR is honoured."""
    return Console(file=sys.stdout)


def chart_width() -> int:
    """How many characters wide a chart may be beside its words."""
    return max(8, min(60, console().width - 22))


def show(sheet: Sheet, form: str) -> None:
    """Print a sheet in the form asked for."""
    names = [column.name for column in sheet.columns]
    if form == "json":
        show_json(sheet.records())
    elif form == "csv":
        write(csv_text(names, sheet.rows))
    elif is_watched():
        console().print(table(sheet))
    else:
        for row in (names, *sheet.rows):
            print("\t".join(printable(plain_cell(cell)) for cell in row))


def show_object(record: Mapping[str, Any], form: str) -> None:
    """Print one record: an object, a CSV file of one row, or a line per key."""
    if form == "json":
        show_json(record)
    elif form == "csv":
        write(csv_text(list(record), [list(record.values())]))
    else:
        for key, value in record.items():
            print(f"{key}\t{printable(plain_cell(value))}")


def show_about(facts: Mapping[str, Any], below: str, sheet: Sheet, lines: Mapping[str, Any], form: str) -> None:
    """Print what is known of one thing, and a sheet under the key `below`: where programs read lines, as these `lines`."""
    if form == "csv":
        show(sheet, form)
    elif form == "json":
        show_object({**facts, below: sheet.records()}, form)
    elif is_watched():
        rows = [(key, ", ".join(value) if isinstance(value, list) else value) for key, value in facts.items() if value]
        for part in (table(Sheet((Column(""), Column("")), rows)), "", table(sheet) if sheet.rows else f"It has no {below}."):
            show_text(part)
    else:
        show_object({**facts, **lines}, form)


def show_json(value: Any) -> None:
    """Print a value as JSON; what JSON cannot hold (NaN, infinities) becomes null, and control characters are written as escapes."""
    text = json.dumps(jsonable(value), indent=2, ensure_ascii=False, allow_nan=False)
    print(_UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def write(text: str) -> None:
    """Write a text that others wrote: as it is where a program reads it, without control characters on a terminal."""
    sys.stdout.write(lines_of(text) if is_terminal() else text)


def is_terminal() -> bool:
    return sys.stdout.isatty()


def show_text(text: RenderableType) -> None:
    """Print something for people."""
    console().print(text)


def table(sheet: Sheet) -> RenderableType:
    """A sheet for people; where its columns would have to break words and numbers, a block of lines per row."""
    titles = [column.name if column.title is None else column.title for column in sheet.columns]
    rows = [
        [printable(column.spell(cell) if column.spell else plain_cell(cell)) for column, cell in zip(sheet.columns, row)]
        for row in sheet.rows
    ]
    if _narrowest(sheet.columns, titles, rows) > console().width:
        return _blocks(titles, rows)
    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for column, title in zip(sheet.columns, titles):
        drawn.add_column(title, justify="right" if column.right else "left", overflow="fold", no_wrap=column.whole)
    for cells in rows:
        drawn.add_row(*map(Text, cells))
    return drawn


def _narrowest(columns: Sequence[Column], titles: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """The width in characters that a table needs if neither words nor numbers with their units are to be broken."""
    found = 2 * (len(columns) - 1)
    for at, column in enumerate(columns):
        words = titles[at].split()
        for row in rows:
            words += [row[at]] if column.right or column.whole else row[at].split()
        found += max(map(len, words), default=0)
    return found


def _blocks(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> RenderableType:
    """Each row as lines of its own: the title of a column and its value; those without one are left out."""
    drawn = Table.grid(padding=(0, 2, 0, 0))
    drawn.add_column(style="dim", overflow="fold")
    drawn.add_column(overflow="fold")
    for number, row in enumerate(rows):
        if number:
            drawn.add_row()
        for title, cell in zip(titles, row):
            if cell:
                drawn.add_row(title, Text(cell))
    return drawn


def csv_text(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Rows as CSV; lists and records become JSON in their cell, and nothing is a formula."""
    held = io.StringIO()
    writer = csv.writer(held, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([harmless(plain_cell(cell)) for cell in row] for row in rows)
    return held.getvalue()


def plain_cell(value: Any) -> str:
    """A value as text: nothing for what is not known, JSON for lists and records."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (str, int, float)) else json.dumps(jsonable(value), ensure_ascii=False)


def jsonable(value: Any) -> Any:
    """A value that JSON can hold."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [jsonable(item) for item in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    if hasattr(value, "tolist"):  # NumPy's arrays and scalars
        return jsonable(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def printable(text: str) -> str:
    """The text without control characters: a job may be called anything."""
    return text if text.isprintable() else "".join(sign if sign.isprintable() else "�" for sign in text)


def lines_of(text: str) -> str:
    """The same for a text of several lines, with tabs; a progress bar that goes back to the start of its line begins a new one."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))
