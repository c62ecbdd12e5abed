"""Print the paths of the interpreters of the given versions that can be run, one per line.

Looks for ``pythonX.Y`` on PATH and among pyenv's versions. The version that runs this script is left out.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path


def version_of(path: str) -> str:
    """Return ``X.Y`` of an interpreter, or "" when it does not run."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        return subprocess.run([path, "-c", code], capture_output=True, text=True, timeout=30, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def candidates(version: str) -> list[str]:
    """Return the paths where ``version`` may be."""
    found = [shutil.which(f"python{version}") or ""]
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found += [str(path / "bin" / "python") for path in sorted(root.glob(f"versions/{version}.*"), reverse=True)]
    return [path for path in found if path]


for wanted in sys.argv[1:]:
    if wanted == "{}.{}".format(*sys.version_info[:2]):
        continue
    usable = next((path for path in candidates(wanted) if version_of(path) == wanted), None)
    if usable is not None:
        print(usable)
