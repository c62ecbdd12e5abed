"""Exit statuses of the command line, and its warnings.

Owns the numbers and where a warning goes; must not know which command ends with which.
"""

import click

FOUND, USAGE, UNFINISHED, DIVERGED, INTERRUPTED = 1, 2, 3, 4, 130


def warn(line: str) -> None:
    """Print one line on standard error."""
    click.echo(f"harness: {line}", err=True)
