"""``python -m gantline``: the command line."""

import sys

from gantline.cli.main import main

sys.exit(main())
