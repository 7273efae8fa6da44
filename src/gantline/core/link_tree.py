"""A tree of links: every node to its rack, every rack to one switch; nodes without a rack are on the switch themselves."""

from __future__ import annotations

from collections.abc import Sequence

from gantline.core.errors import UsageError
from gantline.core.link_ends import RACK, SWITCH, TREE
from gantline.core.nodes import Link, Node

CORE = f"{SWITCH}core"


def tree_links(nodes: Sequence[Node], text: str, where: str) -> tuple[Link, ...]:
    """The links that ``tree:6.25/18.75`` means: GB/s of every node's link and of every rack's."""
    try:
        of_node, of_rack = (float(piece) for piece in text.removeprefix(TREE).split("/"))
    except ValueError:
        raise UsageError(f"'{text}' is no tree", where=where, fix="GB/s of a node's link and of a rack's: tree:6.25/18.75") from None
    racks = dict.fromkeys(node.rack for node in nodes if node.rack)
    leaves = [Link(node.name, RACK + node.rack if node.rack else CORE, of_node) for node in nodes]
    return (*leaves, *(Link(RACK + rack, CORE, of_rack) for rack in racks))
