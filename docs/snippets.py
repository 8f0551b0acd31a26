#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the C++ code in the documentation: the first block of README.md is examples/readme.cpp, each block of
docs/concepts/*.md compiles by itself, those of embedding.md as one program, which is run as well.  usage: docs/snippets.py [compiler and its options...]"""
import pathlib
import re
import subprocess
import sys
import tempfile

DOCS = pathlib.Path(__file__).resolve().parent
COMPILER = sys.argv[1:] or ["g++"]
OPTIONS = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-Werror",
           "-Wno-unused-variable", "-Wno-unused-but-set-variable", f"-I{DOCS.parent / 'include'}"]


def blocks(page):
    return re.findall(r"```cpp\n(.*?)```", page.read_text(encoding="utf-8"), re.S)


def program(parts):
    """Declarations go before main, everything else into it, in the order of the page."""
    outside, inside = [], []
    for part in parts:
        first = next(line for line in part.splitlines() if line.strip() and not line.startswith("//"))
        (outside if re.match(r"#include|struct|class|template|using", first) else inside).append(part)
    return "\n".join([*outside, "auto main() -> int {", *inside, "}", ""])


def check(name, source, run):
    with tempfile.TemporaryDirectory() as folder:
        file, binary = pathlib.Path(folder) / f"{name}.cpp", pathlib.Path(folder) / name
        file.write_text(source, encoding="utf-8")
        mode = ["-o", str(binary)] if run else ["-fsyntax-only"]
        failed = subprocess.run([*COMPILER, *OPTIONS, str(file), *mode], check=False).returncode
        if not failed and run:
            failed = subprocess.run([str(binary)], check=False).returncode
    print(f"{name}: {'FAILED' if failed else 'ok'}")
    return failed == 0


def same_as_example():
    code = (DOCS.parent / "examples" / "readme.cpp").read_text(encoding="utf-8")
    same = blocks(DOCS.parent / "README.md")[0].strip() == code.split("\n", 1)[1].strip()  # without the licence line
    print(f"README.md: {'ok' if same else 'FAILED: its first block is not examples/readme.cpp'}")
    return same


good = [same_as_example(), check("embedding", program(blocks(DOCS / "embedding.md")), run=True)]
for page in sorted((DOCS / "concepts").glob("*.md")):
    good += [check(f"{page.stem}_{i}", source, run=False) for i, source in enumerate(blocks(page))]
sys.exit(0 if all(good) else 1)
