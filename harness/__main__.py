"""``python -m harness``.

Owns nothing; must not know anything but the command line.
"""

from harness.cli import main

main()
