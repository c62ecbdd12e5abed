"""A module of a program that ``test_hidden_state`` keeps state in."""

VALUE = None
BOX: dict[str, str] = {}


def write(name):
    """Keep ``name`` in a global."""
    BOX["value"] = name


def read():
    """Return what was kept last."""
    return BOX["value"]
