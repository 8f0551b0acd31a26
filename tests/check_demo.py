#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The arguments of `./run demo`: which programs it starts, with what, and what it answers when they make no sense.

A copy of `run` is called in a folder whose compiler, package manager and programs are stubs that record their arguments.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

RUN = pathlib.Path(__file__).resolve().parent.parent / "run"
STUB = """#!/bin/sh
printf '%s\\n' "$(basename "$0")" "$@" >>"$LOG"
while [ $# -gt 0 ]; do
  [ "$1" = --json ] && printf '{"of": "%s"}' "$(basename "$0")" >"$2"
  shift
done
"""


def main() -> int:
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve() / "project"
        programs = root / "build" / "release" / "examples"
        tools = root / "tools"
        elsewhere = root / "elsewhere"
        for made in (programs, tools, elsewhere):
            made.mkdir(parents=True)
        shutil.copy(RUN, root / "run")
        for stub in (programs / "generate", programs / "replay"):
            stub.write_text(STUB)
            stub.chmod(0o755)
        for name, text in (("cmake", "#!/bin/sh\n"), ("dpkg-query", "#!/bin/sh\nprintf installed\n")):
            (tools / name).write_text(text)
            (tools / name).chmod(0o755)
        log = root / "log"

        def run(*arguments: str) -> tuple[int, str, list[str]]:
            log.write_text("")
            done = subprocess.run([str(root / "run"), "demo", *arguments], cwd=elsewhere, check=False, text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  env={**os.environ, "LOG": str(log), "PATH": f"{tools}:{os.environ['PATH']}"})
            return done.returncode, done.stdout, log.read_text().splitlines()

        def check(what: str, holds: bool, found: object) -> None:
            if not holds:
                failures.append(f"{what}: {found}")

        plain = ["generate", "--json", "build/demo/generate.json",
                 "replay", "--chart", "build/demo/replay.svg", "--json", "build/demo/replay.json"]
        code, said, started = run()
        check("without arguments the model writes first, then the workload is replayed", (code, started) == (0, plain), (code, started, said))
        check("a pipe gets no colours and no cursor movement", "\x1b" not in said and "\r" not in said, repr(said))

        model = ["generate", "--model", f"{elsewhere}/m.bin", "--tokenizer", f"{elsewhere}/t.bin", *plain[1:]]
        for arguments in (["--model", "m.bin", "--tokenizer", "t.bin"], ["--model=m.bin", "--tokenizer=t.bin"]):
            code, said, started = run(*arguments)
            check(f"{arguments}: files are relative to the caller", (code, started) == (0, model), (code, started, said))
        code, said, started = run("--model", "/m.bin", "--tokenizer", "/t.bin")
        check("absolute paths stay", started[:5] == ["generate", "--model", "/m.bin", "--tokenizer", "/t.bin"], started)

        code, said, started = run("--json", "out file.json")
        check("--json starts the same programs", (code, started) == (0, plain), (code, started, said))
        both = json.loads((elsewhere / "out file.json").read_text())
        check("the JSON holds both reports", both == {"generate": {"of": "generate"}, "replay": {"of": "replay"}}, both)

        for arguments, message in ((["--modle", "x"], "no argument '--modle'"), (["file.bin"], "no argument 'file.bin'"),
                                   (["--model"], "--model needs a file"), (["--json="], "--json needs a file"),
                                   (["--json", "no/such/folder.json"], "cannot be written")):
            code, said, started = run(*arguments)
            check(f"{arguments} is refused with the reason", code == 1 and message in said, (code, said))
            check(f"{arguments} starts nothing", started == [], started)
        code, said, started = run("--help")
        check("--help answers and starts nothing", code == 0 and started == [] and "demo [--model" in said, (code, started))

        (programs / "generate").write_text("#!/bin/sh\necho 'generate: no such file' >&2\nexit 2\n")
        code, said, started = run("--model", "none.bin", "--tokenizer", "t.bin")
        check("what the generator refuses ends the demo with its code", code == 2 and started == [], (code, started, said))
    print("\n".join(failures) if failures else "the demo takes its arguments")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
