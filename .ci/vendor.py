"""Fetch the browser's libraries that a `vendored.json` lists, and put their files beside it; what has another SHA-256 is refused.

python .ci/vendor.py src/gantline/live/dashboard/static/vendor
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path


def check(name: str, content: bytes, wanted: str) -> bytes:
    """The content, if it is what was reviewed."""
    found = hashlib.sha256(content).hexdigest()
    if found != wanted:
        sys.exit(f"{name}: SHA-256 is {found}, expected {wanted}; review the new content before you change vendored.json")
    return content


def fetch(folder: Path) -> None:
    """Download each package once, and copy the listed files out of it."""
    for name, package in json.loads((folder / "vendored.json").read_text(encoding="utf-8")).items():
        with tempfile.TemporaryDirectory() as temporary:
            wanted = f"{name}@{package['version']}"
            subprocess.run(["npm", "pack", "--silent", wanted], cwd=temporary, check=True, stdout=subprocess.DEVNULL)
            (archive,) = Path(temporary).glob("*.tgz")
            check(wanted, archive.read_bytes(), package["package_sha256"])
            with tarfile.open(archive) as packed:
                for target, file in package["files"].items():
                    member = packed.extractfile(f"package/{file['from']}")
                    assert member is not None, f"{wanted} has no {file['from']}"
                    (folder / target).write_bytes(check(target, member.read(), file["sha256"]))
        print(f"{wanted}: {', '.join(package['files'])}")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        fetch(Path(argument))
