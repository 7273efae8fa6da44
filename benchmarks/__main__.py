"""``python -m benchmarks NAME``: one benchmark, or all of them without a name."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

NAMES = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("_"))

if len(sys.argv) > 1 and sys.argv[1] not in NAMES:
    sys.exit(f"no benchmark '{sys.argv[1]}' (known: {', '.join(NAMES)})")
chosen = sys.argv[1:2] or NAMES
rest = sys.argv[2:]
for name in chosen:
    print(f"== {name}", flush=True)
    sys.argv = [name, *rest]
    runpy.run_module(f"benchmarks.{name}", run_name="__main__")
