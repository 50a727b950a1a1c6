"""The list of mutations is up to date; `make mutate` takes too long to run here."""

from dataclasses import replace

from mutate import find_problems, read_mutations


def test_every_mutation_can_be_made():
    """A refactoring that rewrites such a place updates tests/mutations.toml."""
    mutations = read_mutations()
    assert len(mutations) >= 47
    assert find_problems(mutations) == []


def test_mutations_that_cannot_be_made_are_named():
    first, second, *_ = read_mutations()
    bad = [
        replace(first, old="text that is nowhere"),
        replace(second, old="import", new="import", tests=["test_nothing.py"]),
        replace(first, file="data/nothing.py", tests=[]),
    ]
    for problem, words in zip(
        find_problems(bad),
        [
            "another mutation has the same id",
            "stands 0 times in",
            "changes nothing",
            "times in src/corral/markers/rank_tests.py, not once",
            "there is no file tests/test_nothing.py",
            "another mutation has the same id",
            "there is no file src/corral/data/nothing.py",
            "has no tests",
        ],
        strict=True,
    ):
        assert words in problem
