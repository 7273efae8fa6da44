"""A figure as a caller has it: its values, and how it is drawn and saved."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from gantline.lab.report.figures.panels import DARK, LIGHT, Drawing


class Chart(Drawing):
    """A figure that draws itself in a notebook, where matplotlib is installed; `save` writes it as a file."""

    def save(self, path: str | Path, *, dark: bool = False, **look: Any) -> Path:
        """Write it as PNG, SVG or PDF, by the ending; `look` is as in `with_matplotlib.Look`: size, font, title, preset.

        >>> chart.save("figure.pdf", preset="column", title="")
        """
        from gantline.lab.report.figures.with_matplotlib import Look, save

        return save(self, Path(path), DARK if dark else LIGHT, look=Look.of(**look))

    def __repr__(self) -> str:
        return f"Chart('{self.name}': {self.title})"

    def _repr_svg_(self) -> str | None:
        try:
            from gantline.lab.report.figures.with_matplotlib import draw
        except ModuleNotFoundError:
            return None
        held = io.StringIO()
        draw(self).savefig(held, format="svg")
        return held.getvalue()
