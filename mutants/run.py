#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants the bugs of mutants/*.txt one by one; each must turn a named test red.

A bug is a block of lines, separated from the next by a blank line:

    # forgotten decrement
    file: include/quire/block/block_pool.hpp
    tu: tests/storage/block/block_pool.test.cpp
    test: S24: the last release frees the block
    - --holders_[index];
    + ;

The first line names the bug; more lines with "#" are remarks. `test` is the Catch2 test that must notice it; "*" at its
ends is a wildcard. (A first line "# name: kills test" says both.) Lines after "-" are the old text, lines after "+" the
new (none: the text is removed). The old lines must occur exactly once in the file; indentation does not count, and a
single old line may be a part of one. `tu` is the one source that is compiled and run: a unit test, a property test, or
a file of tests/compile_fail, which notices the bug by compiling after all (`test` then repeats its name). A test that
fails, crashes or hangs has noticed. A bug that does not compile proves nothing and counts as an error, unless
`test: static_assert` says that a static assertion must notice it.

usage: mutants/run.py [--room NAME] [--only REGEX] [--jobs N] [--budget SECONDS] [--timeout SECONDS] [--list]
"""
from __future__ import annotations

import argparse
import atexit
import concurrent.futures
import dataclasses
import itertools
import os
import pathlib
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "mutants" / str(os.getpid())  # two runs at once do not meet
COMPILER = os.environ.get("CXX", "g++")
FLAGS = ["-std=c++20", "-Og", "-DXXH_NO_INLINE_HINTS", "-w", '-DQUIRE_CONTRACT_INCLUDE="support/throwing_contract.hpp"']
PROPERTY = "seed=20260101 max_success=100"
STATIC = "static_assert"
COPIED = ("include", "tests", "property_tests", "examples")


@dataclasses.dataclass
class Mutant:
    room: str
    line: int
    name: str
    test: str
    file: str = ""
    tu: str = ""
    old: list[str] = dataclasses.field(default_factory=list)
    new: list[str] = dataclasses.field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.room}: {self.name}"

    @property
    def compile_fail(self) -> bool:
        return self.tu.startswith("tests/compile_fail/")


def parse(path: pathlib.Path) -> list[Mutant]:
    mutants: list[Mutant] = []
    current: Mutant | None = None

    def wrong(number: int, why: str) -> None:
        sys.exit(f"{path.name}:{number}: {why}")

    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip():
            current = None
        elif line.startswith("#"):
            if current is None:
                name, _, test = line.lstrip("# ").partition(": kills ")
                current = Mutant(path.stem, number, name.strip(), test.strip())
                mutants.append(current)
        elif current is None:
            wrong(number, "a bug starts with '# name'")
        elif field := re.fullmatch(r"(file|tu|test): +(.*\S) *", line):
            setattr(current, field[1], field[2])
        elif line == "-" or line.startswith("- "):
            if current.new:
                wrong(number, "old lines come before new ones")
            current.old.append(line[2:])
        elif line == "+" or line.startswith("+ "):
            current.new.append(line[2:])
        else:
            wrong(number, f"not understood: {line}")
    mutants = [m for m in mutants if m.file or m.tu or m.old]  # the others are remarks
    for mutant in mutants:
        if not (mutant.file and mutant.tu and mutant.test and mutant.old):
            wrong(mutant.line, "file, tu, test and at least one '- ' line are needed")
    return mutants


def patched(mutant: Mutant, text: str) -> str | None:
    """The text with the bug in it, or None unless the old lines occur exactly once."""
    lines = text.split("\n")
    stripped = [line.strip() for line in lines]
    old = [line.strip() for line in mutant.old]
    at = [i for i in range(len(lines) - len(old) + 1) if stripped[i : i + len(old)] == old]
    if len(at) == 1:
        return "\n".join(lines[: at[0]] + mutant.new + lines[at[0] + len(old) :])
    if not at and len(old) == 1 and text.count(old[0]) == 1:  # a part of a line
        return text.replace(old[0], "\n".join(line.strip() for line in mutant.new))
    return None


def run(command: list[str], cwd: pathlib.Path, timeout: float, **environment: str) -> tuple[int | None, str]:
    """Exit code (None: it hung) and output."""
    process = subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        env=os.environ | {"LC_ALL": "C"} | environment, start_new_session=True)
    try:
        output, _ = process.communicate(timeout=timeout)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return None, ""


class Tree:
    """A private copy of the sources, in which one bug at a time is planted."""

    def __init__(self, number: int) -> None:
        self.path = WORK / f"tree{number}"
        for folder in COPIED:
            if (ROOT / folder).exists():
                shutil.copytree(ROOT / folder, self.path / folder)

    def includes(self) -> list[str]:
        return ["-Iinclude", "-Itests", "-Iexamples"]

    def build(self, tu: str) -> tuple[bool, str]:
        libraries = catch_libraries()
        precompiled = "catch"
        if tu.endswith(".prop.cpp"):
            libraries = ["-lrapidcheck", *libraries]
            precompiled = "property"
        code, output = run(
            [COMPILER, *FLAGS, f"-I{WORK / precompiled}", "-include", "test_framework.hpp", *self.includes(), tu,
             str(WORK / "counting_allocator.o"), "-o", "program", *libraries, "-pthread"], self.path, 600)
        return code == 0, output

    def passes(self, mutant: Mutant, timeout: float) -> tuple[str, str]:
        """Builds and runs the test of a bug: ('passed' | 'failed' | 'hung' | 'no build' | 'no test', output)."""
        if mutant.compile_fail:
            expect = re.search(r"^// expect: (.*)$", (self.path / mutant.tu).read_text(), re.MULTILINE)
            code, output = run([COMPILER, "-std=c++20", "-fsyntax-only", *self.includes(), mutant.tu], self.path, 120)
            refused = code != 0 and expect is not None and re.search(expect[1], output) is not None
            # refused for the same reason: the bug was not noticed; compiles: it was; anything else proves nothing
            return ("passed" if refused else "failed" if code == 0 else "no build"), output
        built, output = self.build(mutant.tu)
        if mutant.test == STATIC:
            return ("passed" if built else "failed" if "static assertion failed" in output else "no build"), output
        if not built:
            return "no build", output
        code, output = run(["./program", escaped(mutant.test)], self.path, timeout, RC_PARAMS=PROPERTY)
        if code is None:
            return "hung", output
        if "No test cases matched" in output or "No tests ran" in output:
            return "no test", output
        return ("passed" if code == 0 else "failed"), output

    def check(self, mutant: Mutant, timeout: float) -> tuple[str, str]:
        """Plants the bug, runs its test and takes it out again."""
        path = self.path / mutant.file
        original = path.read_text()
        text = patched(mutant, original)
        if text is None:
            return "no match", "the old lines must occur exactly once in " + mutant.file
        try:
            path.write_text(text)
            outcome, output = self.passes(mutant, timeout)
        finally:
            path.write_text(original)
        return {"passed": "survived", "failed": "killed", "hung": "killed"}.get(outcome, outcome), output


def escaped(test: str) -> str:
    """A Catch2 test specification: all is literal but a "*" at an end."""
    return re.sub(r'([\\,\[\]"~])', r"\\\1", test)


_libraries: list[str] | None = None


def catch_libraries() -> list[str]:
    assert _libraries is not None
    return _libraries


def prepare(property_tests: bool) -> None:
    """What all bugs share: the allocator, the precompiled test frameworks, the libraries of the Catch2 at hand."""
    global _libraries
    WORK.mkdir(parents=True)
    atexit.register(shutil.rmtree, WORK, ignore_errors=True)
    includes = ["-Iinclude", "-Itests"]

    def must(command: list[str]) -> None:
        code, output = run(command, ROOT, 600)
        if code != 0:
            sys.exit(f"{output}\nfailed: {' '.join(command)}")

    must([COMPILER, *FLAGS, *includes, "-c", "tests/support/counting_allocator.cpp",
          "-o", str(WORK / "counting_allocator.o")])
    headers = {"catch": "#include <support/catch_compat.hpp>\n",
               "property": "#include <support/rc_prop.hpp>\n#include <rapidcheck/state.h>\n"}
    for name, text in headers.items():
        (WORK / name).mkdir()
        source = WORK / name / "test_framework.hpp"
        source.write_text(text)
        if name == "catch" or property_tests:
            must([COMPILER, *FLAGS, *includes, "-x", "c++-header", str(source), "-o", f"{source}.gch"])
    probe = WORK / "probe.cpp"
    probe.write_text('#include <test_framework.hpp>\nTEST_CASE("probe") { SUCCEED(); }\n')
    for candidate in (["-lCatch2WithMain"], ["-lCatch2Main", "-lCatch2"]):
        if run([COMPILER, *FLAGS, f"-I{WORK / 'catch'}", *includes, str(probe), "-o", str(WORK / "probe"), *candidate],
               ROOT, 600)[0] == 0:
            _libraries = candidate
            return
    sys.exit("Catch2 does not link")


def interleaved(mutants: list[Mutant]) -> list[Mutant]:
    """Rooms in turn, so that a run that ends early has seen each of them."""
    rooms: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        rooms.setdefault(mutant.room, []).append(mutant)
    return [m for row in itertools.zip_longest(*rooms.values()) for m in row if m is not None]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--room", action="append", help="only mutants/NAME.txt; may be repeated")
    parser.add_argument("--only", default="", metavar="REGEX", help="only bugs whose 'room: name' matches")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--budget", type=float, default=float("inf"), help="start no new bug after so many seconds")
    parser.add_argument("--timeout", type=float, default=60, help="seconds after which a test has hung")
    parser.add_argument("--list", action="store_true", help="print the bugs and stop")
    options = parser.parse_args()

    mutants = []
    for path in sorted((ROOT / "mutants").glob("*.txt")):
        if not options.room or path.stem in options.room:
            mutants += parse(path)
    mutants = interleaved([m for m in mutants if re.search(options.only, str(m))])
    if options.list:
        print("\n".join(f"{m}  ->  {m.test}" for m in mutants))
        return 0
    if not mutants:
        print("no planted bugs")
        return 0

    start = time.monotonic()
    prepare(any(m.tu.endswith(".prop.cpp") for m in mutants))
    trees: queue.Queue[Tree] = queue.Queue()
    for number in range(min(options.jobs, len(mutants))):
        trees.put(Tree(number))

    def within(work):
        tree = trees.get()
        try:
            return work(tree)
        finally:
            trees.put(tree)

    by_tu: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        by_tu.setdefault(mutant.tu, []).append(mutant)
    locks = {tu: threading.Lock() for tu in by_tu}
    red_of: dict[str, dict[int, str]] = {}

    def green(group: list[Mutant]) -> dict[int, str]:
        """The tests of one unit without a bug: what is red by itself proves nothing. Compiles once."""
        def work(tree: Tree) -> dict[int, str]:
            wrong: dict[int, str] = {}
            first = group[0]
            if first.compile_fail:
                outcome, output = tree.passes(first, options.timeout)
                return {} if outcome == "passed" else {id(m): output for m in group}
            built, output = tree.build(first.tu)
            if not built:
                return {id(m): output for m in group}
            for test in sorted({m.test for m in group} - {STATIC}):
                code, output = run(["./program", escaped(test)], tree.path, options.timeout, RC_PARAMS=PROPERTY)
                if code != 0 or "No test cases matched" in output:
                    wrong |= {id(m): output or "hung" for m in group if m.test == test}
            return wrong
        return within(work)

    def check(mutant: Mutant) -> tuple[str, str]:
        if time.monotonic() - start > options.budget:
            return "not run", ""
        for path in (mutant.tu, mutant.file):
            if not (ROOT / path).is_file():
                return "test not green", f"no such file: {path}"
        with locks[mutant.tu]:  # before the first bug of a unit, so that a budget is spent on bugs
            if mutant.tu not in red_of:
                red_of[mutant.tu] = green(by_tu[mutant.tu])
        if id(mutant) in red_of[mutant.tu]:
            return "test not green", red_of[mutant.tu][id(mutant)]
        return within(lambda tree: tree.check(mutant, options.timeout))

    counts: dict[str, int] = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for mutant, (outcome, output) in zip(mutants, pool.map(check, mutants)):
            counts[outcome] = counts.get(outcome, 0) + 1
            print(f"{outcome:<14} {str(mutant):<60} {mutant.test}", flush=True)
            if outcome not in ("killed", "survived", "not run"):
                print("\n".join("    " + line for line in output.splitlines()[:15]), flush=True)

    print(", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items())),
          f"in {time.monotonic() - start:.0f} s")
    return 0 if set(counts) <= {"killed", "not run"} else 1


if __name__ == "__main__":
    sys.exit(main())
