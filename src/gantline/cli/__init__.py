"""The command line. Before anything else is imported, what a start need not do is put off.

Importing makes many objects and no garbage, so the collector runs seldom: it would take a tenth of a short command.
"""

import gc

from gantline.cli.deferred_methods import defer_methods

gc.set_threshold(200_000, 20, 100)
defer_methods()
