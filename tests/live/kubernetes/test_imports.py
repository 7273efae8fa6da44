"""Whoever does not use Kubernetes imports nothing of it."""

import subprocess
import sys


def test_gantline_and_its_list_of_runners_import_none_of_it() -> None:
    code = "import sys, gantline, gantline.live.runners.registry, gantline.live.watch.sources\n"
    code += "print([n for n in sys.modules if 'kubernetes' in n])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
