"""Mutation tests, run by `make mutate`: change the code in one place, and see whether a test notices.

`mutations.toml` lists the changes. A change is caught if a test in one of its test files fails with it, and
passes without it. All work is done in other checkouts.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_name("mutations.toml")
TARGET = 0.95

# Compiled kernels (*.nbi, *.nbc) are copied: compiling them takes a minute. Bytecode is neither copied nor
# written: Python would use that of a file which has the same size and was changed within the same second.
_NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv*", "*.pyc", ".*_cache", ".hypothesis", "build", "dist", "htmlcov", "corral-demo", "results"
)

# One core for each job.
_ENVIRONMENT = {
    "PYTHONDONTWRITEBYTECODE": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "LOKY_MAX_CPU_COUNT": "1",
}


@dataclass(frozen=True)
class Mutation:
    """One change, as `mutations.toml` describes it."""

    id: int
    about: str
    file: str
    old: str
    new: str
    tests: list[str]


@dataclass(frozen=True)
class Outcome:
    """What happened to a mutation: "caught", "survived", "timeout" or "error", and the test that failed."""

    mutation: Mutation
    result: str
    test: str
    seconds: float


def read_mutations(path: Path = LIST) -> list[Mutation]:
    """Read the list."""
    return [Mutation(**entry) for entry in tomllib.loads(path.read_text(encoding="utf-8"))["mutation"]]


def find_problems(mutations: list[Mutation], checkout: Path = ROOT) -> list[str]:
    """Sentences about mutations that cannot be made."""
    problems = []
    ids = [mutation.id for mutation in mutations]
    for mutation in mutations:
        path = checkout / "src" / "corral" / mutation.file
        name = f"mutation {mutation.id} ({mutation.about})"
        if ids.count(mutation.id) > 1:
            problems.append(f"{name}: another mutation has the same id.")
        if mutation.old == mutation.new:
            problems.append(f"{name} changes nothing.")
        if not path.is_file():
            problems.append(f"{name}: there is no file src/corral/{mutation.file}.")
        elif (n_times := path.read_text(encoding="utf-8").count(mutation.old)) != 1:
            problems.append(
                f"{name}: {mutation.old!r} stands {n_times} times in src/corral/{mutation.file}, not once."
            )
        problems += [
            f"{name}: there is no file tests/{test}."
            for test in mutation.tests
            if not (checkout / "tests" / test).is_file()
        ]
        if not mutation.tests:
            problems.append(f"{name} has no tests.")
    return problems


def run_tests(checkout: Path, tests: list[str], timeout: float) -> tuple[int | None, str]:
    """Exit code of pytest, None after a timeout, and the first test that failed, "" if none did."""
    cache = checkout / ".pytest_cache"
    shutil.rmtree(cache, ignore_errors=True)
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-o", f"cache_dir={cache}", *tests]
    environment = {**os.environ, **_ENVIRONMENT, "PYTHONPATH": str(checkout / "src")}
    process = subprocess.Popen(
        command,
        cwd=checkout,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        code = process.wait(timeout)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)  # with the processes that tests have started
        process.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            return None, ""
        raise
    failed = cache / "v" / "cache" / "lastfailed"
    names = list(json.loads(failed.read_text(encoding="utf-8"))) if failed.is_file() else []
    return code, names[0] if names else ""


def try_mutation(mutation: Mutation, checkout: Path, timeout: float) -> Outcome:
    """Change a copy of the checkout, run the tests, and restore it."""
    start = time.monotonic()
    path = checkout / "src" / "corral" / mutation.file
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    try:
        code, test = run_tests(checkout, [f"tests/{name}" for name in mutation.tests], timeout)
    finally:
        path.write_text(text, encoding="utf-8")
    if code == 1 and "::" in test:
        # A test that fails without the mutation as well shows nothing.
        healthy, _ = run_tests(checkout, [test], timeout)
        result = "caught" if healthy == 0 else "error"
    else:
        result = {0: "survived", None: "timeout"}.get(code, "error")
    return Outcome(mutation, result, test, time.monotonic() - start)


def try_all(mutations: list[Mutation], n_jobs: int, timeout: float) -> list[Outcome]:
    """Try mutations in `n_jobs` checkouts, and print each outcome."""
    with tempfile.TemporaryDirectory(prefix="corral-mutate-") as folder:
        duplicates: SimpleQueue[Path] = SimpleQueue()
        for k in range(n_jobs):
            copy = Path(folder) / str(k)
            shutil.copytree(ROOT, copy, ignore=_NOT_COPIED)
            duplicates.put(copy)

        def try_one(mutation: Mutation) -> Outcome:
            checkout = duplicates.get()
            try:
                outcome = try_mutation(mutation, checkout, timeout)
            finally:
                duplicates.put(checkout)
            print(describe(outcome), flush=True)
            return outcome

        print(f"{'id':>4}  {'result':8}  {'time':>6}  mutation", flush=True)
        pool = ThreadPoolExecutor(n_jobs)
        try:
            return list(pool.map(try_one, mutations))
        finally:
            pool.shutdown(cancel_futures=True)


def describe(outcome: Outcome) -> str:
    """A line of the table, and below it the test that failed or, of a survivor, the tests that passed."""
    mutation = outcome.mutation
    line = f"{mutation.id:4}  {outcome.result:8}  {outcome.seconds:5.0f}s  {mutation.file}: {mutation.about}"
    if outcome.result == "caught":
        return f"{line}\n{'':24}{outcome.test}"
    return (
        f"{line}\n{'':24}- {mutation.old}\n{'':24}+ {mutation.new}\n{'':24}{outcome.test or mutation.tests}"
    )


def main() -> int:
    """Exit code 1 if the list is out of date or too few mutations are caught."""
    parser = argparse.ArgumentParser(prog="make mutate", description=__doc__)
    parser.add_argument("--only", metavar="IDS", help="numbers of mutations, with commas between them")
    parser.add_argument("--jobs", type=int, default=1, help="mutations at a time (default: 1)")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds for the tests of one mutation")
    options = parser.parse_args()
    mutations = read_mutations()
    problems = find_problems(mutations)
    if options.only:
        ids = {int(number) for number in options.only.split(",")}
        if unknown := ids - {mutation.id for mutation in mutations}:
            parser.error(f"no mutation has the id {min(unknown)}.")
        mutations = [mutation for mutation in mutations if mutation.id in ids]
    if problems:
        print(*problems, sep="\n")
        return 1
    outcomes = try_all(mutations, max(options.jobs, 1), options.timeout)
    n_caught = sum(outcome.result == "caught" for outcome in outcomes)
    score = n_caught / len(outcomes)
    print(f"caught {n_caught} of {len(outcomes)}: score {score:.2f}, target {TARGET}")
    return int(score < TARGET)


if __name__ == "__main__":
    sys.exit(main())
