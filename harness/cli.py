"""The command line: one group, its commands, and how errors end it.

Owns exit statuses of errors and what goes to which stream; must not know what a command does.

Exit status: 0 nothing found, 1 a violation, 2 wrong usage, 3 the budget ended before the answer, 4 a
replay diverged or went another way; 130 interrupted.
"""

from __future__ import annotations

import logging
import sys

import click

from harness import __version__
from harness.commands.catalogue import catalogue
from harness.commands.explain import explain_command
from harness.commands.export import export_command
from harness.commands.grade import grade_command
from harness.commands.listing import list_command
from harness.commands.prove import prove
from harness.commands.replay import replay_command
from harness.commands.search import search_command
from harness.commands.status import DIVERGED, INTERRUPTED, USAGE
from harness.commands.versions import versions
from harness.model.errors import DivergenceError, HarnessError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="harness")
def app() -> None:
    """Find the orders in which an asyncio program breaks its promises.

    SCENARIO is a file, file.py::name, the name of a scenario in ./scenarios, or module:attribute.
    """
    logging.getLogger().addHandler(logging.NullHandler())  # programs under test log their failures


for command in (
    list_command,
    search_command,
    replay_command,
    catalogue,
    versions,
    grade_command,
    explain_command,
    export_command,
    prove,
):
    app.add_command(command)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its status."""
    try:
        status = app(arguments, standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        status = USAGE
    except click.ClickException as error:
        click.echo(f"harness: {error.format_message()}", err=True)
        status = USAGE
    except DivergenceError as error:
        click.echo(f"harness: {error}", err=True)
        status = DIVERGED
    except HarnessError as error:
        click.echo(f"harness: {error}", err=True)
        status = USAGE
    except (KeyboardInterrupt, click.Abort):
        click.echo("harness: interrupted", err=True)
        status = INTERRUPTED
    # CPython notes an interrupt that left an exec() of text, such as that of a dataclass, and `python -m` then ends
    # by the signal whatever status is asked for; another exec() resets the note.
    exec("")
    sys.exit(status if isinstance(status, int) else 0)


if __name__ == "__main__":
    main()
