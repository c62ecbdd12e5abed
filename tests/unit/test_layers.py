"""The layers of the design, as data, and the imports that keep to them."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "harness"

# A layer imports only what is listed for it; ``asyncio`` and third parties are named where they are allowed.
LAYERS = {
    "model": {"harness.model"},
    "schedulers": {"harness.model"},
    "oracles": {"harness.model"},
    "runtime": {"harness.model", "harness.runtime", "asyncio"},
    "search": {"harness.model", "harness.runtime", "harness.schedulers", "harness.oracles", "harness.search"},
    "report": {"harness.model", "harness.search", "harness.report"},
}
FREE = {"adapters", "commands", "cli", "plugin", "__init__", "__main__"}


def layer_of(path: Path) -> str:
    """Return the folder or file name directly below the package."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    """Return every module that a file imports, also inside functions and under TYPE_CHECKING."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            if node.module == "harness.runtime":
                found.update(f"harness.runtime.{alias.name}" for alias in node.names)
    return found


def is_allowed(module: str, allowed: set[str]) -> bool:
    """Return whether a layer may import ``module``."""
    top = module.partition(".")[0]
    if top == "harness":
        return any(module == name or module.startswith(name + ".") for name in allowed)
    return (top in sys.stdlib_module_names and top != "asyncio") or top in allowed


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_file_imports_only_what_its_layer_may(path):
    """A layer never reaches down: the core knows no third party."""
    layer = layer_of(path)
    if layer in FREE:
        return
    wrong = sorted(module for module in imports_of(path) if not is_allowed(module, LAYERS[layer]))
    # a report and the model never touch the loop
    assert wrong == []


def loaded_after(statement: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter loads for ``statement``."""
    code = f"import sys; {statement}; print(' '.join(sorted({{name.partition('.')[0] for name in sys.modules}})))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    return set(output.split())


def test_importing_harness_loads_no_third_party_and_no_asyncio():
    """``import harness`` is cheap."""
    loaded = loaded_after("import harness")
    assert not loaded & {"asyncio", "hypothesis", "pytest", "freezegun", "agent_framework", "rich", "click"}


def test_importing_the_plugin_loads_only_pytest():
    """The plugin costs nothing where nobody uses it."""
    loaded = loaded_after("import harness.plugin")
    assert not loaded & {"hypothesis", "freezegun", "agent_framework", "rich", "click"}
