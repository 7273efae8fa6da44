"""The command line.

Importing makes many objects and no garbage, so the collector runs seldom: it would take a tenth of a short command.
"""

import gc

gc.set_threshold(200_000, 20, 100)
