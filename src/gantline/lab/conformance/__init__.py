"""The conformance suite: rules that every policy and every placement rule keeps, ours or a user's, as a report with a line per rule."""

from gantline.lab.conformance.placement import check_placement
from gantline.lab.conformance.report import Breach, ConformanceReport
from gantline.lab.conformance.suite import check_policy

__all__ = ["Breach", "ConformanceReport", "check_placement", "check_policy"]
