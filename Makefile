# Needs Python 3.11 or newer with pip, and make; everything else is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_FLAGS := --quiet --disable-pip-version-check
# The other supported versions are tested too, where they are installed.
OTHERS := $(shell $(PYTHON) scripts/find_pythons.py 3.11 3.12 3.13)

.PHONY: race test lint unit others long browser neighbours bench clean

# The main job: search microsoft/agent-framework #9615 on every storage. Status 1 means "found".
race: $(VENV)/.installed
	@$(BIN)/harness search scenarios/issue_9615.py --no-shapes || test $$? -eq 1

test: lint unit

lint: $(VENV)/.installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# The other Pythons are tested meanwhile; what they print comes after.
unit: $(VENV)/.installed
	@mkdir -p build; \
	$(MAKE) --no-print-directory OTHERS="$(OTHERS)" others > build/others.log 2>&1 & others=$$!; \
	trap 'kill $$others 2>/dev/null; exit 130' INT TERM; \
	echo '$(BIN)/python -m pytest tests scenarios -m "not long"'; \
	status=0; $(BIN)/python -m pytest tests scenarios -m "not long" || status=$$?; \
	wait $$others || status=$$?; \
	cat build/others.log; exit $$status

others:
	@set -e; trap 'kill $$tests 2>/dev/null; exit 143' TERM; \
	for python in $(OTHERS); do \
	    venv=$(VENV)-$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	    $(MAKE) --no-print-directory PYTHON=$$python VENV=$$venv OTHERS= $$venv/.installed; \
	    echo "$$venv/bin/python -m pytest tests"; \
	    $$venv/bin/python -m pytest tests & tests=$$!; \
	    wait $$tests; \
	done

# Tests that take minutes.
long: $(VENV)/.installed
	$(BIN)/python -m pytest tests -m long

# Pages in a real browser: needs Chromium (Debian: apt-get install chromium), or its path in CHROMIUM.
browser: $(VENV)/.installed
	$(BIN)/python -m pytest tests -m browser -rs

# Tests and scenarios of other frameworks, on affected releases in an environment of their own.
NEIGHBOURS := tests/unit/adapters/test_langgraph.py tests/quality/test_neighbours.py \
    scenarios/langgraph_8039.py scenarios/openai_agents_1658.py scenarios/pydantic_graph_1684.py
neighbours: $(VENV)-neighbours/.installed
	$(VENV)-neighbours/bin/python -m pytest $(NEIGHBOURS) -m "not long"

$(VENV)-neighbours/.installed: requirements-neighbours.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)-neighbours
	$(VENV)-neighbours/bin/python -m pip install $(PIP_FLAGS) -r requirements-neighbours.txt
	$(VENV)-neighbours/bin/python -m pip install $(PIP_FLAGS) --no-deps --no-build-isolation -e .
	@touch $@

bench: $(VENV)/.installed
	$(BIN)/python benchmarks/speed.py

$(VENV)/.installed: requirements.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install $(PIP_FLAGS) -r requirements.txt
	$(BIN)/python -m pip install $(PIP_FLAGS) --no-deps --no-build-isolation -e .
	@touch $@

clean:
	rm -rf .venv .venv-* build dist *.egg-info
