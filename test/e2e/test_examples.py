#!/usr/bin/env python3
"""What README.md shows is what happens: each command in it is run in the tree and compared with the output that is stated, and
every file of examples/ is run by the tour, whose table is the one in README.md. Prints TAP.

    HOTCELL=build/hotcell test/e2e/test_examples.py

A command is a line "    $ COMMAND" of an indented or fenced block; what follows it, up to the next command, is its output.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
HOTCELL = os.path.realpath(os.environ.get("HOTCELL", os.path.join(ROOT, "build", "hotcell")))
number = failed = 0


def result(name, wrong, skip=None):
    global number, failed
    number += 1
    failed += bool(wrong)
    print("%s %d - %s%s" % ("not ok" if wrong else "ok", number, name, " # SKIP " + skip if skip else ""))
    for line in wrong:
        print("# %.400s" % line)


def blocks(path):
    """Indented and fenced blocks, as lists of lines without their indentation."""
    found, block, fenced = [], [], False
    for line in open(os.path.join(ROOT, path), encoding="utf-8"):
        line = line.rstrip("\n")
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            block.append(line if fenced else line[4:])
            continue
        if block:
            found.append(block)
            block = []
    return found + ([block] if block else [])


def commands(block):
    """(command, lines of its output)"""
    found = []
    for line in block:
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line)
    return found


def run(command, folder):
    """In a copy of the examples, with `build/hotcell` being the program under test."""
    return subprocess.run(["bash", "-c", command], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=120,
                          env=dict(os.environ, PATH="/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", XDG_STATE_HOME=folder + "/state",
                                   LC_ALL="C.UTF-8"))


def steady(line):
    """Times differ from run to run."""
    return re.sub(r"\d+\.\d+ (s|ms|per second)\b", r"N \1", re.sub(r" +", " ", line)).rstrip()


folder = tempfile.mkdtemp(prefix="hotcell-examples-")
shutil.copytree(os.path.join(ROOT, "examples"), folder + "/examples")
os.mkdir(folder + "/build")
for name in os.listdir(os.path.dirname(HOTCELL)):  # programs and manifests lie beside the command
    if name.startswith("hotcell") or name == "share":
        os.symlink(os.path.join(os.path.dirname(HOTCELL), name), os.path.join(folder, "build", name))
seen = 0
for page in ("README.md", "examples/README.md"):
    if not os.path.exists(os.path.join(ROOT, page)):
        continue
    for block in blocks(page):
        for command, output in commands(block):
            if "hotcell" not in command:
                continue
            seen += 1
            lacking = [tool for tool in ("jq", "scdoc") if re.search(r"\b%s\b" % tool, command) and not shutil.which(tool)]
            if lacking:
                result("%s: %s" % (page, command), [], skip="%s is not installed" % lacking[0])
                continue
            done = run(command, folder)
            got = [steady(line) for line in done.stdout.splitlines()]
            wanted = [steady(line) for line in output]
            while wanted and not wanted[-1]:
                wanted.pop()
            result("%s: %s" % (page, command), [] if got == wanted else ["stated: " + line for line in wanted] +
                   ["printed: " + line for line in got])
result("README.md shows commands of hotcell", [] if seen else ["none was found"])

# ---- the tour: its table, and every example in it ----
table = [block for block in blocks("README.md") if block[0].startswith("PROGRAM")]
done = run("examples/tour build/hotcell tour", folder)
printed = done.stdout.splitlines()
at = [i for i, line in enumerate(printed) if line.startswith("PROGRAM")]
got = [steady(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in printed[at[0]:]] if at else []
wanted = [steady(line) for line in table[0]] if table else ["README.md has no table"]
missing = [line for line in wanted if line not in got]
result("the table of README.md is what the tour prints", ["stated and not printed: " + line for line in missing] +
       (["printed: " + line for line in (got or printed[-20:])] if missing else []))
programs = {os.path.relpath(os.path.join(place, name), folder + "/examples") for place, _, names in os.walk(folder + "/examples")
            for name in names if name.endswith((".py", ".c", ".sh"))
            if os.path.basename(place) != "c"}  # callers of the library, which test_library.py builds and runs
shown = {line.split(" ")[0] for line in got}
result("every program of examples/ is in it", ["not in the table: " + name for name in sorted(programs - shown)])
shutil.rmtree(folder)
print("1..%d" % number)
sys.exit(1 if failed else 0)
