#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what a benchmark run measured, each line beside its floor and its goal.

usage: table.py FILE.json [--markdown]

FILE is the output of Google Benchmark. A benchmark sets the counters `ns` (cost of one operation), `floor_ns` (cost of
the least work that could do, in the same run), `ratio` (ns / floor_ns) and `goal`, and a label that says what the goal
is on: "ratio<=2", "ns<=15", "B<=64" or "ratio>=0.6"; text after a blank is a remark. `goal` is that number again. With
repetitions the medians are shown. The exit code is 0 whether or not the goals are met.
"""
import argparse
import json
import re
import sys


def rows(benchmarks: list[dict]) -> list[dict]:
    """The medians where there are any, else the plain results; errors stay."""
    medians = [b for b in benchmarks if b.get("aggregate_name") == "median"]
    covered = {b["run_name"] for b in medians}
    plain = [b for b in benchmarks if b.get("run_type") != "aggregate" and b.get("run_name") not in covered]
    order = {b.get("run_name"): i for i, b in reversed(list(enumerate(benchmarks)))}
    return sorted(medians + plain, key=lambda b: order[b.get("run_name")])


def number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def verdict(benchmark: dict) -> tuple[str, str]:
    """(goal as text, 'met' | 'missed by …' | '')."""
    if benchmark.get("error_occurred"):
        return "", "failed: " + benchmark.get("error_message", "")
    match = re.match(r"\s*(\w+)\s*(<=|>=)\s*([-+.\deE]+)\s*(.*)", benchmark.get("label", ""))
    if not match:
        return benchmark.get("label", ""), ""
    counter, relation, limit, remark = match[1], match[2], float(match[3]), match[4]
    text = f"{counter} {relation} {limit:g}{' ' + remark if remark else ''}"
    if counter not in benchmark:
        return text, f"no counter {counter}"
    if "goal" in benchmark and abs(benchmark["goal"] - limit) > 1e-9 * max(1, abs(limit)):
        return text, f"goal {benchmark['goal']:g} contradicts the label"
    value = benchmark[counter]
    if counter not in ("ns", "floor_ns", "ratio"):
        text += f", is {number(value)}"
    if value <= limit if relation == "<=" else value >= limit:
        return text, "met"
    return text, f"missed by {abs(value / limit - 1):.0%}" if limit else "missed"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--markdown", action="store_true", help="a table for the README")
    options = parser.parse_args()
    with open(options.file, encoding="utf-8") as file:
        benchmarks = json.load(file)["benchmarks"]

    table = [("operation", "ns", "floor ns", "ratio", "goal", "result")]
    for b in rows(benchmarks):
        goal, result = verdict(b)
        own = "goal" in b or "ns" in b # such a row says itself what its times are
        ns = b.get("ns", b.get("real_time") if b.get("time_unit") == "ns" and not own else None)
        name = re.sub(r"/(iterations|repeats|min_time|min_warmup_time):[^/]*|/(manual|real|process)_time", "", b["run_name"])
        table.append((name, number(ns), number(b.get("floor_ns")), number(b.get("ratio")), goal, result))

    if options.markdown:
        header, *body = table
        print("| " + " | ".join(header) + " |")
        print("|---|--:|--:|--:|---|---|")
        for row in body:
            print("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
        return 0
    widths = [max(len(row[i]) for row in table) for i in range(6)]
    for row in table:
        print("  ".join(cell.rjust(width) if 0 < i < 4 else cell.ljust(width)
                        for i, (cell, width) in enumerate(zip(row, widths))).rstrip())
    missed = sum(row[5].startswith("missed") for row in table)
    met = sum(row[5] == "met" for row in table)
    print(f"\n{met} goals met, {missed} missed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
