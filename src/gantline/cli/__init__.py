"""The command line. Importing makes many objects and no garbage, so that is looked for seldom: it took a tenth of a short command."""

import gc

gc.set_threshold(200_000, 20, 100)  # before anything else is imported
