"""Scenarios that require what is not installed."""

from dataclasses import replace

import pytest

from harness.adapters.loading import missing_requirement
from harness.adapters.targets import scenario_target
from harness.model.errors import UsageError
from harness.model.scenario import Scenario


def requiring(*requires):
    """Return a scenario that requires distributions."""

    async def program(_durable):
        """Do nothing."""

    return Scenario("needy", program, {"memory": None}, requires=requires)


@pytest.mark.parametrize(
    ("requires", "said"),
    [
        ([], ""),
        (["pytest>=8"], ""),
        (["pytest>=8", "no-such-framework>=2"], "needs no-such-framework>=2, which is not installed"),
        (["pytest<1"], f"needs pytest<1, but {pytest.__version__} is installed"),
    ],
)
def test_what_is_missing_is_named(requires, said):
    """With the version that is installed."""
    assert missing_requirement(requiring(*requires)) == said


def test_its_package_is_required_when_it_states_a_range():
    """Without a range the package is a default that nobody may have meant."""
    plain = replace(requiring(), package="no-such-framework")
    assert missing_requirement(plain) == ""
    assert missing_requirement(replace(plain, affected="<2")) == "needs no-such-framework, which is not installed"


def test_such_a_scenario_is_not_searched():
    """One line says why."""
    with pytest.raises(UsageError, match=r"^scenario 'needy' needs no-such-framework, which is not installed$"):
        scenario_target(requiring("no-such-framework"), "memory")
    with pytest.raises(UsageError, match=r"^scenario 'needy': requires='>1' is no requirement$"):
        missing_requirement(requiring(">1"))
