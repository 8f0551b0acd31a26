#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what has to be built before `ctest ARGUMENTS` can run, so that one test does not wait for all programs.

usage: test_targets.py BUILD_FOLDER [ctest arguments]

Only -R and -L narrow down what is built, less what -E and -LE exclude. The output is a line of targets; an empty line if
the chosen tests run without any; "all" if nothing is chosen by name or label, if no test matches, or if an argument
chooses in a way that is not understood here.

A program tells ctest the names of its tests when it is built. Before that they stand in the sources: the name of a
TEST_CASE behind "<folder>/" or "property/", and of one that is a template the types, which become a part of its names.
What ctest knows already counts as well: tests without a program, and those of a program built from other sources.
"""
from __future__ import annotations

import dataclasses
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LITERAL = r'"(?:[^"\\]|\\.)*"'
TEST_CASE = re.compile(rf"^(\w*TEST_CASE\w*)\(\s*({LITERAL}(?:\s*{LITERAL})*)(.*?)\)\s*\{{",
                       re.MULTILINE | re.DOTALL)
OPTIONS = {"-R": "names", "--tests-regex": "names", "-E": "not_names", "--exclude-regex": "not_names",
           "-L": "labels", "--label-regex": "labels", "-LE": "not_labels", "--label-exclude": "not_labels"}
NOT_UNDERSTOOD = {"-I", "--tests-information", "-U", "--union", "--rerun-failed"}


@dataclasses.dataclass(frozen=True)
class Test:
    name: str
    target: str  # empty: nothing has to be built
    labels: tuple[str, ...]


def in_source(path: pathlib.Path, prefix: str, target: str, label: str) -> list[Test]:
    """The tests of one source."""
    found = []
    for macro, name, rest in TEST_CASE.findall(path.read_text()):
        name = "".join(re.sub(r"\\(.)", r"\1", part[1:-1]) for part in re.findall(LITERAL, name))
        types = " - " + " ".join(rest.split()) if macro.startswith("TEMPLATE") else ""
        found.append(Test(prefix + name + types, target, (label,)))
        if types:
            found.append(Test(prefix + name, target, (label,)))  # for a regex that ends with the name
    return found


def in_sources(root: pathlib.Path) -> list[Test]:
    tests = []
    for path in sorted((root / "tests").glob("*/**/*.test.cpp")):
        folder = path.relative_to(root / "tests").parts[0]
        tests += in_source(path, f"{folder}/", f"test_{folder}", "unit")
    for path in sorted((root / "property_tests").glob("*.prop.cpp")):
        tests += in_source(path, "property/", f"property_{path.name.removesuffix('.prop.cpp')}", "property")
    return tests


def in_ctest(listing: dict, folder: pathlib.Path) -> list[Test]:
    """The tests that ctest knows: from its --show-only=json-v1."""
    tests = []
    for test in listing["tests"]:
        name = test["name"]
        if "_NOT_BUILT" in name:
            continue
        labels = next((p["value"] for p in test.get("properties", []) if p["name"] == "LABELS"), [])
        program = pathlib.Path(test.get("command", [""])[0])
        kind = name.partition("/")[0]
        if name == "static/header_budget":  # reads how long every header took
            target = "all_verify_interface_header_sets"
        elif kind == "static":  # a program, if it is called as the test
            target = name.partition("/")[2]
        elif kind in ("example", "standalone"):
            target = name.replace("/", "_", 1)
        else:
            target = program.name if program.is_relative_to(folder) else ""
        tests.append(Test(name, target, tuple(labels)))
    return tests


def choice(arguments: list[str]) -> dict[str, list[re.Pattern]] | None:
    """The regexes of each kind, or None if all has to be built."""
    chosen: dict[str, list[re.Pattern]] = {kind: [] for kind in OPTIONS.values()}
    rest = iter(arguments)
    for argument in rest:
        if argument in NOT_UNDERSTOOD:
            return None
        if argument in OPTIONS:
            try:
                chosen[OPTIONS[argument]].append(re.compile(next(rest, "")))
            except re.error:  # ctest may understand it
                return None
    return chosen if chosen["names"] or chosen["labels"] else None


def matches(test: Test, chosen: dict[str, list[re.Pattern]]) -> bool:
    def labelled(regexes: list[re.Pattern]) -> bool:  # ctest wants every regex to match some label
        return all(any(r.search(label) for label in test.labels) for r in regexes)

    if chosen["names"] and not chosen["names"][-1].search(test.name):  # of several -R the last one counts
        return False
    if chosen["not_names"] and chosen["not_names"][-1].search(test.name):
        return False
    return labelled(chosen["labels"]) and not (chosen["not_labels"] and labelled(chosen["not_labels"]))


def targets(tests: list[Test], arguments: list[str], known: set[str]) -> list[str] | None:
    """What to build for the tests that the arguments choose; None: everything."""
    chosen = choice(arguments)
    if chosen is None:
        return None
    wanted = [test for test in tests if matches(test, chosen)]
    return sorted({test.target for test in wanted} & known) if wanted else None


def main() -> int:
    folder = pathlib.Path(sys.argv[1]).resolve()
    arguments = sys.argv[2:]
    if choice(arguments) is None:
        print("all")
        return 0
    listing = subprocess.run(["ctest", "--test-dir", str(folder), "--show-only=json-v1"], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
    known = set(re.findall(r"^build ([^\s/]+): phony", (folder / "build.ninja").read_text(), re.MULTILINE))
    tests = in_sources(ROOT) + in_ctest(json.loads(listing), folder)
    found = targets(tests, arguments, known)
    print("all" if found is None else " ".join(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
