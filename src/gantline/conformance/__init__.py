"""The conformance suite: rules that every policy and every placement rule keeps, ours or a user's, as a report with a line per rule."""

from gantline.conformance.placement import check_placement
from gantline.conformance.report import Breach, ConformanceReport
from gantline.conformance.suite import check_policy

__all__ = ["Breach", "ConformanceReport", "check_placement", "check_policy"]
