"""The planted faults: each one still fits the code, and is what an import gets."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.simulation import mutations
from tests.simulation.mutation_table import Row
from tests.simulation.mutations import (
    MUTATIONS,
    Finder,
    Mutation,
    main,
    outcome_of_test,
    plant,
)

ELECTION = MUTATIONS["epoch-not-raised-at-an-election"]


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_changes_one_place(name: str) -> None:
    mutation = MUTATIONS[name]
    assert mutation.old != mutation.new
    compile(mutation.text, str(mutation.path), "exec")


@pytest.mark.parametrize("name", [name for name, each in MUTATIONS.items() if each.test])
def test_a_unit_test_finds_what_clusters_seldom_reach(name: str) -> None:
    assert outcome_of_test(name) == 1


def test_a_text_that_is_not_there_once_is_refused() -> None:
    for old in ("no such text", "def "):
        with pytest.raises(ValueError, match="times"):
            _ = Mutation(ELECTION.module, old, "").text


def test_an_import_gets_the_fault() -> None:
    spec = Finder(ELECTION).find_spec(ELECTION.module, None)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    state = module.LeaderAndIsr(1, 5, (1, 2), 1, 0)
    assert module.offline(module.Vote(state, (1, 2), {2}, 1), None).state.leader_epoch == 5


def test_other_imports_do_not() -> None:
    assert Finder(ELECTION).find_spec("kafka08.controller.states", None) is None


def test_a_module_that_is_imported_already_is_refused() -> None:
    assert importlib.import_module(ELECTION.module)
    with pytest.raises(ValueError, match="imported already"):
        plant(ELECTION)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(SystemExit, match="no-such-fault"):
        main(["no-such-fault"])


def test_processes_take_turns_until_all_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = list(MUTATIONS)[:2]

    def rows(row: Row, runs: int) -> Iterator[Row]:
        yield row._replace(spent=row.spent + 60, seed=row.seed + 1)
        if row.spent or row.name == names[0]:
            yield row._replace(spent=row.spent + 90, said="lost")

    monkeypatch.setattr(mutations, "_rows", rows)
    assert main([*names, "--table", str(tmp_path / "table")]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[-2:] == [str(Row(names[0], 90, 1, "lost")), str(Row(names[1], 150, 2, "lost"))]
    assert main([*names, "--table", str(tmp_path / "table")]) == 0
    assert main([*names, "--minutes", "0"]) == 1
