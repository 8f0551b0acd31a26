#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `./run test -R …` builds: cmake/test_targets.py on a small project, and the commands that `run` starts then.

A copy of `run` is called in a folder whose cmake and ctest are stubs that record their arguments.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PROJECT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT / "cmake"))
sys.dont_write_bytecode = True
import test_targets  # noqa: E402

STUB = """#!/bin/sh
case "$*" in *--show-only=json-v1*) cat "$LISTING"; exit ;; esac
printf '%s\\n' "$(basename "$0") $*" >>"$LOG"
"""
SOURCES = {
    "tests/storage/pool.test.cpp": 'TEST_CASE("S24: the last release") {\n}\nTEST_CASE(\n    "S24: it says \\"no\\" "\n    "twice") {\n}\n',
    "tests/storage/deep/down.test.cpp": 'TEST_CASE("S99: far down") {\n}\n',
    "tests/core/strong.test.cpp": 'TEMPLATE_TEST_CASE("S1: ids", "", (tree<one, two>),\n                   flat) {\n}\nSECTION("S24: no test") {}\n',
    "property_tests/pool.prop.cpp": 'TEST_CASE("S24: any calls") {\n}\n',
}
PROGRAMS = ("test_storage", "test_core", "property_pool", "example_plan", "standalone_abort", "link_twice",
            "all_verify_interface_header_sets")
CASES = (  # arguments, targets; None: everything
    ([], None),
    (["-V", "-E", "storage"], None),
    (["-R", "S24"], ["property_pool", "test_storage"]),
    (["--tests-regex", "^storage/S24"], ["test_storage"]),
    (["-R", "S99: far down$"], ["test_storage"]),
    (["-R", 'says "no" twice$'], ["test_storage"]),
    (["-R", "S24", "-E", "any"], ["test_storage"]),
    (["-R", "S24", "-L", "property"], ["property_pool"]),
    (["-R", "S24", "-LE", "unit"], ["property_pool"]),
    (["-L", "unit", "-L", "prop"], None),  # no test has both
    (["-R", "S1: ids$"], ["test_core"]),
    (["-R", "tree<one, two>"], ["test_core"]),
    (["-R", "old name"], ["test_core"]),  # built from other sources
    (["-R", "plan"], ["example_plan"]),
    (["-R", "missing"], []),  # an example whose packages are not there
    (["-R", "standalone/"], ["standalone_abort"]),
    (["-R", "static/"], ["all_verify_interface_header_sets", "link_twice"]),
    (["-R", "cases"], []),
    (["-R", "NOT_BUILT"], None),
    (["-R", "no test"], None),  # a section is none
    (["-R", "("], None),
    (["-R", "S24", "--rerun-failed"], None),
    (["-R", "S24", "-I", "1,2"], None),
    (["-R", "S99", "-R", "S1: "], ["test_core"]),
)


def main() -> int:
    failures = []

    def check(what: str, holds: bool, found: object) -> None:
        if not holds:
            failures.append(f"{what}: {found}")

    for source in (*(PROJECT / "tests").glob("*/**/*.test.cpp"), *(PROJECT / "property_tests").glob("*.prop.cpp")):
        text = source.read_text()
        begun = re.findall(r"^\w*TEST_CASE\w*\(", text, re.MULTILINE)
        seen = test_targets.TEST_CASE.findall(text)
        check(f"every TEST_CASE of {source.name} is seen", len(seen) == len(begun), (len(seen), len(begun)))

    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve() / "project"
        build = root / "build" / "dev"
        tools = root / "tools"
        for made in (build, tools, root / "cmake"):
            made.mkdir(parents=True)
        shutil.copy(PROJECT / "run", root / "run")
        shutil.copy(PROJECT / "cmake" / "test_targets.py", root / "cmake")
        for name, text in SOURCES.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        for name, text in (("cmake", STUB), ("ctest", STUB), ("dpkg-query", "#!/bin/sh\nprintf installed\n")):
            (tools / name).write_text(text)
            (tools / name).chmod(0o755)
        (build / "build.ninja").write_text("".join(f"build {name}: phony somewhere/{name}\n" for name in PROGRAMS))
        tests = [{"name": name, "command": command, "properties": [{"name": "LABELS", "value": [label]}]} for name, label, command in (
            ("core/S1: old name", "unit", [f"{build}/tests/test_core", "S1: old name"]),
            ("standalone/abort", "unit", ["cmake", f"-DPROGRAM={build}/tests/standalone_abort"]),
            ("example/plan", "example", [f"{build}/examples/plan"]),
            ("example/missing", "example", [f"{build}/examples/missing"]),
            ("static/cases", "static", ["python3", "check_cases.py"]),
            ("static/header_budget", "static", ["python3", "header_times.py", str(build)]))]
        tests += [{"name": "static/link_twice", "properties": [{"name": "LABELS", "value": ["static"]}]},  # not built: no command
                  {"name": "test_storage_NOT_BUILT-b12d07c"}]
        listing = root / "listing.json"
        listing.write_text(json.dumps({"tests": tests}))
        log = root / "log"

        known = test_targets.in_sources(root) + test_targets.in_ctest(json.loads(listing.read_text()), build)
        for arguments, expected in CASES:
            found = test_targets.targets(known, arguments, set(PROGRAMS))
            check(f"{arguments} builds {expected}", found == expected, found)

        def run(*arguments: str) -> tuple[int, list[str]]:
            log.write_text("")
            done = subprocess.run([str(root / "run"), "test", *arguments], cwd=root, check=False, text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  env={**os.environ, "LOG": str(log), "LISTING": str(listing), "PATH": f"{tools}:{os.environ['PATH']}"})
            return done.returncode, [re.sub(r" -j \d+", "", line) for line in log.read_text().splitlines()][1:] + [done.stdout]

        configure = "cmake --preset dev"  # twice: once to know the tests, once by the build
        for arguments, expected in (
                ([], [configure, "cmake --build --preset dev", "ctest --preset dev"]),
                (["-R", "S24", "-V"], [configure, "cmake --build --preset dev --target property_pool test_storage",
                                       "ctest --preset dev -R S24 -V -E _NOT_BUILT"]),
                (["-R", "S24", "-E", "any"], [configure, "cmake --build --preset dev --target test_storage",
                                              "ctest --preset dev -R S24 -E (any)|_NOT_BUILT"]),
                (["-R", "cases"], ["ctest --preset dev -R cases -E _NOT_BUILT"]),
                (["-R", "nothing such"], [configure, "cmake --build --preset dev", "ctest --preset dev -R nothing such"])):
            code, started = run(*arguments)
            check(f"./run test {arguments} starts {expected}", code == 0 and started[:-1] == expected, (code, started))
    print("\n".join(failures) if failures else "what a choice of tests needs is built, and nothing else")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
