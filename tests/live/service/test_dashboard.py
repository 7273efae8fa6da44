"""The dashboard asks for metrics that there are, and the page lists them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from tests.live.service.asking import started

from gantline.live.service.client import Client

DOCS = Path(__file__).parents[3] / "docs"


def test_every_panel_asks_for_a_metric_that_is_there(owner: Client) -> None:
    id = started(owner)
    families = list(text_string_to_metric_families(owner.metrics()))
    known = {sample.name for family in families for sample in family.samples} | {family.name for family in families}
    owner.cancel(id)
    board = json.loads((DOCS / "_static" / "grafana-dashboard.json").read_text(encoding="utf-8"))
    asked = {name for panel in board["panels"] for target in panel["targets"] for name in re.findall(r"gantline_\w+", target["expr"])}
    assert len(asked) >= 15
    assert asked <= known
    page = (DOCS / "live.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(gantline_\w+)", page)) <= known
