#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every failure case of the sections that the storage core and the layer groups answer for stands in the name of a test ("case 21: ...",
"(cases 121, 122)"), in the comment of a compile-fail test, or in tests/pending.txt with the room it waits for.

usage: check_cases.py [--list]
"""
import pathlib
import re
import sys

TESTS = pathlib.Path(__file__).resolve().parent
SECTIONS = {  # section: first and last case
    "A identity": (1, 4), "H full hit": (21, 24), "I partial blocks": (25, 28), "J publish": (29, 32), "K references": (33, 38),
    "O windows": (53, 56), "P block sizes of groups": (57, 60), "Q rings": (61, 66), "R sinks": (67, 68), "S position rules": (69, 70),
    "T position edits": (71, 74), "U rows": (75, 78), "V speculation": (79, 82), "W forks": (83, 84), "X turns": (85, 86),
    "AC eviction": (105, 110), "AE overflow": (115, 116), "AF zero": (117, 118), "AG long windows": (119, 120),
    "AH block sizes": (121, 124), "AI stale data": (125, 128), "AJ every position": (129, 130), "AL cross caches": (135, 136),
    "AM reference counts": (137, 138), "AO shared layers": (143, 144)}


def numbers(text: str) -> set[int]:
    """The numbers behind "case" and "cases" in a text."""
    return {int(n) for group in re.findall(r"\b[Cc]ases?((?:[ ,]+(?:and )?\d+\b)+)", text) for n in re.findall(r"\d+", group)}


def main() -> int:
    tested: dict[int, list[str]] = {}
    wrong = []
    for path in sorted(TESTS.rglob("*.cpp")) + sorted((TESTS.parent / "property_tests").rglob("*.cpp")):
        text = path.read_text()
        if path.parent.name == "compile_fail":
            found = [" ".join(re.findall(r"^//(.*)$", text, re.MULTILINE))]
        else:
            found = re.findall(r'(?:TEST_CASE|prop)\(\s*"((?:[^"\\]|\\.)*)"', text)
        for name in found:
            if path.parent.name != "compile_fail" and re.search(r"[;\[\]]", name):
                wrong.append(f"{path.name}: CMake splits a test name at ; [ and ]: {name}")
            for number in numbers(name):
                tested.setdefault(number, []).append(f"{path.relative_to(TESTS.parent)}: {name.strip()}")
    pending: dict[int, str] = {}
    for number, line in enumerate((TESTS / "pending.txt").read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = re.fullmatch(r"(\d+) ([a-z]+): (\S.*)", line)
        if match is None:
            wrong.append(f"pending.txt:{number}: expected 'number room: what it waits for'")
            continue
        pending[int(match[1])] = line
    for section, (first, last) in SECTIONS.items():
        for case in range(first, last + 1):
            if case in tested and case in pending:
                wrong.append(f"case {case} ({section}) is tested and pending: {tested[case][0]}")
            elif case not in tested and case not in pending:
                wrong.append(f"case {case} ({section}) has no test and no line in pending.txt")
            elif "--list" in sys.argv:
                print(case, tested.get(case, [pending.get(case)])[0])
    print("\n".join(wrong) if wrong else f"{len(tested)} cases have tests, {len(pending)} are pending")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
