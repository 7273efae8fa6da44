"""Writes the profiles beside this file, as `gantline.models.goodput.example` makes them up: ``python examples/profiles/make.py``."""

from __future__ import annotations

import csv
from pathlib import Path

from gantline.models.goodput.example import NETWORKS, tables

HERE = Path(__file__).parent


def main() -> None:
    """Write all files."""
    for network in NETWORKS:
        (HERE / network).mkdir(exist_ok=True)
        for name, (columns, rows) in tables(network).items():
            with (HERE / network / name).open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerow(columns.split())
                writer.writerows(rows)


if __name__ == "__main__":
    main()
