# Every developer command. Each one sets up what it needs: `make test` works on a fresh checkout.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.setup
SETUP_TEST := $(VENV)/.setup-test
SETUP_DEV := $(VENV)/.setup-dev
SETUP_BUILD := $(VENV)/.setup-build
SETUP_DOCS := $(VENV)/.setup-docs
SETUP_COMPILE := $(VENV)/.setup-compile
SETUP_INTEGRATION := $(VENV)/.setup-integration
SETUP_CONSTRAINTS := $(VENV)/.setup-constraints
BYTECODE := $(VENV)/.bytecode
COMPILED := $(VENV)/.compiled
# PEP 517, because pyspark comes as source and older ways to build it are deprecated.
# The versions that the tests ran with; a Python without a file gets the newest ones.
CONSTRAINTS := $$(file=constraints/$$($(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])').txt; test -f $$file && echo "-c $$file")
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --use-pep517 $(CONSTRAINTS)

# These variables are meant for another Python of the caller.
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP

# ZooKeeper and Spark run on a JVM; without one on the machine, a wheel brings it.
JAVA := $(shell test -x "$${JAVA_HOME:-/none}/bin/java" || command -v java > /dev/null || echo ,java)

.PHONY: setup quickstart quickstart-cluster test test-compiled simulate lint types licences check check-all house integration bench docs format clean spark-zip wheel release constraints

setup: $(SETUP) $(BYTECODE) $(COMPILED)

# The packages of servers and scripts: enough for the quick start.
# A C compiler is used where there is one, for the modules of kafka08/_native.
$(SETUP): setup.cfg pyproject.toml $(wildcard constraints/*.txt kafka08/_native/*.pyx kafka08/_native/*.h)
	@echo "Installing into $(VENV); this takes some minutes"
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	@$(INSTALL) -e '.[progress,web,zookeeper$(JAVA)]'
	@touch $@

$(SETUP_TEST): $(SETUP)
	@$(INSTALL) -e '.[spark,test]'
	@touch $@

$(SETUP_DEV): $(SETUP)
	@$(INSTALL) -e '.[dev]'
	@touch $@

$(SETUP_BUILD): $(SETUP)
	@$(INSTALL) -e '.[build]'
	@touch $@

$(SETUP_DOCS): $(SETUP)
	@$(INSTALL) -e '.[docs]'
	@touch $@

$(SETUP_CONSTRAINTS): $(SETUP)
	@$(INSTALL) -e '.[constraints]'
	@touch $@

$(SETUP_INTEGRATION): $(SETUP_TEST)
	@$(INSTALL) -e '.[integration]'
	@touch $@

# A broker's user may lack the permission to write __pycache__, and many images of containers set
# PYTHONDONTWRITEBYTECODE: each start would then compile all modules.
$(BYTECODE): $(SETUP) $(shell find kafka08 zk tools -name '*.py')
	@$(BIN)/python -m compileall -q kafka08 zk tools
	@touch $@

# The broker's hot modules as machine code. Without a C compiler they run as they are, and the next
# command that would use machine code tries again.
$(SETUP_COMPILE): $(SETUP)
	@if $(BIN)/python -m kafka08.compiled --ready; then $(INSTALL) -e '.[compile]' && touch $@; fi

$(COMPILED): $(SETUP_COMPILE) $(BYTECODE) $(shell find kafka08 -name '*.py')
	@if $(BIN)/python -m kafka08.compiled; then touch $@; fi

# The published quick start, from empty directories to a killed broker.
quickstart: $(SETUP)
	$(BIN)/python -m integration.quickstart

# Its second half: three brokers, a replicated topic, the leader killed; then a client of 0.8 and one of
# today on one topic.
quickstart-cluster: $(SETUP)
	$(BIN)/python -m integration.quickstart_cluster
	$(BIN)/python -m integration.quickstart_clients

# Unit tests run on every processor, a file on one of them; UNIT_WORKERS=0 runs them in one process.
# ARGS="-m slow" runs those that take minutes, which are left out otherwise.
UNIT_WORKERS ?= auto
UNIT_TESTS := $(BIN)/python -m pytest -q -n $(UNIT_WORKERS) --maxprocesses 8 --dist loadfile \
	--no-loadscope-reorder -m "not slow" tests

test: $(SETUP_TEST)
	$(UNIT_TESTS) $(ARGS)

# The same tests on the compiled modules, where there is a compiler.
test-compiled: $(SETUP_TEST) $(COMPILED)
	KAFKA08_TEST_COMPILED=1 $(UNIT_TESTS) $(ARGS)

# Clusters on simulated time, disturbed again and again; a failure is repeated by its seed.
# ARGS='--faults 10000 --seed 7', or --minutes 3 for new seeds.
simulate: $(SETUP_TEST)
	$(BIN)/python -m tests.simulation.command $(ARGS)

lint: $(SETUP_DEV)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(SETUP_DEV)
	$(BIN)/mypy

# Every installed package has one of these licences, or may be used under one of them.
LICENCES := 0BSD;Apache;BSD;CC0;ISC;LGPL;Lesser General Public;MIT;MPL;Mozilla;PSF;Public Domain;Python Software Foundation;ZPL
licences: $(SETUP_DEV)
	@$(BIN)/pip-licenses --ignore-packages kafka08 --partial-match --allow-only="$(LICENCES)" > $(VENV)/.licences

# Before each commit: of the unit tests those that the branch touches. REVISION is where it left main.
check: lint types $(SETUP_TEST)
	$(BIN)/python -m pytest -q $$($(BIN)/python -m tests.affected $(REVISION)) $(ARGS)

check-all: lint types licences test

# The structure of the code in figures, each with its limit; `make house ARGS=-v` shows every finding.
house:
	@$(PYTHON) -m tests.house $(ARGS)

# Real servers and foreign clients, WORKERS files at a time: the tests wait more than they compute.
# They run in the order of their names, as some of the longest files have few tests.
# ARGS="-m 'not slow'" leaves out the tests that take minutes.
WORKERS ?= 4
integration: $(SETUP_INTEGRATION) $(SETUP_DOCS) $(COMPILED)
	$(BIN)/python -m pytest -q integration -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

# WHAT is a module of integration/bench: clients, cores, failover, hour, later, metrics, real, spark,
# spark_connector, steady, storage, waiting. Without it, kafka08 and the original 0.8.2.2 are measured
# beside each other.
WHAT ?=
bench: $(SETUP_INTEGRATION) $(COMPILED)
	$(BIN)/python -m integration.bench$(addprefix .,$(WHAT)) $(ARGS)

bench-%:
	@$(MAKE) --no-print-directory bench WHAT=$*

# Packages that run without this checkout: an sdist, and a wheel built from it, in dist/. The wheel's
# name says with which C libraries it runs.
wheel: $(SETUP_BUILD)
	$(BIN)/python -m build
	@$(BIN)/python -m tools.wheel.manylinux dist

# A tag of this checkout's version, here only: nothing is pushed. The version is in setup.cfg alone.
release: $(SETUP_BUILD)
	@$(BIN)/python .ci/release.py --check
	@$(MAKE) --no-print-directory wheel
	@$(BIN)/python .ci/release.py

# The newest versions of all dependencies that setup.cfg allows, for each Python that is served. Install
# and test with them before they are committed.
constraints: $(SETUP_CONSTRAINTS)
	@for version in 3.10 3.11 3.12 3.13; do \
	  $(BIN)/python -m uv pip compile --quiet --upgrade --no-annotate --no-header --all-extras \
	    --python-version $$version --python-platform x86_64-manylinux2014 \
	    pyproject.toml --output-file constraints/$$version.txt || exit 1; \
	done

# The modules that executors import, for spark-submit --py-files.
spark-zip: $(SETUP)
	$(BIN)/python -m kafka08.spark.package dist/kafka08-spark.zip

# The pages that are made from the code, then the site in build/site. A warning fails: a page that is
# not in docs/site/navigation.py, or a link that leads nowhere.
docs: $(SETUP) $(SETUP_DOCS)
	$(BIN)/python -m kafka08.settings.docs docs/settings.md
	$(BIN)/python -m kafka08.protocol.docs > docs/protocol.md
	$(BIN)/python -m kafka08.metrics.docs > docs/metrics.md
	$(BIN)/python docs/make_files.py docs/files.md
	$(BIN)/python -m sphinx -q -W --keep-going -c docs/site -d build/site-trees . build/site
	@echo "The site is in build/site: open build/site/index.html"

format: $(SETUP_DEV)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf kafka08/_native/*.c kafka08/_native/*.so $(VENV) build dist logs .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
