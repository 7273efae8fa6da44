"""Measured and predicted completion times as a picture: ``python figure.py FOLDER picture.svg`` (needs ``gantline[plot]``)."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot
from predict import predict

from gantline.files.bundles import read_bundle


def draw(folder: Path, picture: Path) -> None:
    """A bar for what was measured, a dot for each run of it, a line for what the simulator said."""
    told, bundle = json.loads((folder / "live.json").read_text()), read_bundle(folder / "profiles.json")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "gantline", "font.family": "sans-serif"})
    figure, axes = pyplot.subplots(figsize=(7.0, 3.2), layout="constrained")
    for place, (policy, runs) in enumerate(told["policies"].items()):
        means = [statistics.fmean(row["jct"] for row in rows) for rows in runs]
        said = statistics.fmean(jct for rows in runs for jct in predict(bundle, told, policy, [row["arrival"] for row in rows]))
        last = place == len(told["policies"]) - 1
        axes.bar(place, statistics.fmean(means), 0.6, color="#9dbfdd", label="measured, mean" if last else None)
        axes.plot([place] * len(means), means, "o", color="#1f4e79", markersize=4, label="each run" if last else None)
        axes.plot([place - 0.36, place + 0.36], [said, said], color="#c0392b", linewidth=2, label="predicted" if last else None)
    axes.set_xticks(range(len(told["policies"])), list(told["policies"]))
    axes.set_ylabel("mean completion time, s")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left", ncols=3, bbox_to_anchor=(0.0, 1.12))
    figure.savefig(picture, metadata={"Date": None})


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(sys.argv[2]))
