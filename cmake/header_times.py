#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what including a header costs: the compile time of each header alone (the units of
all_verify_interface_header_sets), first from the log of the build, and again by processor time where that is too long
or the log does not say. Limits are for g++ 12 on a two-core machine; --scale widens them for others.

usage: header_times.py BUILD_FOLDER [--scale X] [--quiet]
"""
import argparse
import json
import pathlib
import resource
import shlex
import subprocess
import sys

MARK = "verify_interface_header_sets/"
NO_ANSWER = 77  # ctest: skipped


def limit(header: str) -> float:
    """Seconds allowed for a header, named as it is included."""
    if header.count("/") == 1:  # an umbrella of several rooms or of one
        return 2.5
    return 0.8 if header.startswith("quire/core/") else 2.0


def logged(build: pathlib.Path) -> dict[str, float]:
    """Wall seconds of the latest compilation of each header."""
    log = build / ".ninja_log"
    times: dict[str, float] = {}
    for line in log.read_text().splitlines() if log.exists() else []:
        fields = line.split("\t")
        if not line.startswith("#") and len(fields) >= 4 and MARK in fields[3]:
            header = fields[3].rsplit(MARK, 1)[1].removesuffix(".cxx.o")
            times[header] = (int(fields[1]) - int(fields[0])) / 1000
    return times


def measured(build: pathlib.Path, header: str) -> float | None:
    """Processor seconds of compiling one header, the best of three; None if the build does not know it."""
    commands = build / "compile_commands.json"
    for entry in json.loads(commands.read_text()) if commands.exists() else []:
        if not entry["file"].endswith(f"{MARK}{header}.cxx"):
            continue
        command = shlex.split(entry["command"])
        command = command[next((i for i, word in enumerate(command) if word.endswith("ccache")), -1) + 1 :]
        command[command.index("-o") + 1] = "/dev/null"
        best = None
        for _ in range(3):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            if subprocess.run(command, cwd=entry["directory"], capture_output=True).returncode != 0:
                return None
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
            best = spent if best is None else min(best, spent)
        return best
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--scale", type=float, default=1.0, help="factor on every limit")
    parser.add_argument("--quiet", action="store_true", help="print only the headers above their limit")
    options = parser.parse_args()

    times = logged(options.build)
    if not times:
        print("no header was compiled alone in this build: build all_verify_interface_header_sets first")
        return NO_ANSWER

    over = 0
    for header, seconds in sorted(times.items(), key=lambda item: -item[1]):
        allowed = limit(header) * options.scale
        if seconds > allowed:  # the log holds wall time on a busy machine: ask again
            again = measured(options.build, header)
            seconds = seconds if again is None else again
        over += seconds > allowed
        if seconds > allowed or not options.quiet:
            print(f"{seconds:6.2f} s of {allowed:.2f}  {header}{'  TOO SLOW' if seconds > allowed else ''}")
    print(f"{len(times)} headers, {over} above the limit")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
