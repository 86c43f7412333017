#!/usr/bin/env python3
"""Languages as their administrator meets them: one more by a manifest alone, several versions of one, interpreters in private
places, flags of compilers, and what is said of wrong manifests. Prints TAP.

    HOTCELL=build/hotcell test/e2e/test_runtimes.py [--list] [part of a name]...
"""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "support"))
from hotcell_test import HOTCELL, Skip, check, ends, equal, err, main, out, run, scratch, test  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")
TOOL = """#!/bin/sh
# An interpreter with a version: what it is given is a script of the shell.
if [ "$1" = --version ]; then echo "tool %s"; exit; fi
TOOL=%s . "./$1"
"""
BASE = """name: tool
extensions: [.tool]
file: main.tool
interpreter: %s
%srun: ["${interpreter}", "${file}"]
env: {PATH: "/usr/bin:/bin", WHERE: here}
version: {command: ["${interpreter}", --version], pattern: "^tool ([0-9.]+)$"}
install: make one
"""


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, mode)


def tool(folder, version):
    write(os.path.join(folder, "bin", "tool"), TOOL % (version, version), 0o755)


def folders(name):
    manifests, trees = scratch(name + "-manifests"), scratch(name + "-trees")
    os.makedirs(manifests)
    os.makedirs(trees)
    os.chmod(trees, 0o755)
    return manifests, trees


def hotcell(*arguments, stdin=None, timeout=60):
    return subprocess.run([HOTCELL, *arguments], capture_output=True, input=stdin, text=True, timeout=timeout)


def listed(manifests, name):
    rows = json.loads(hotcell("runtimes", "--json", "--runtimes", manifests).stdout)
    return [row for row in rows if row["name"] == name][0]


SHOW = "echo $TOOL; echo $WHERE; grep -c /opt/tool /proc/self/mountinfo"


@test(timeout=60)
def several_versions_side_by_side():
    manifests, trees = folders("several")
    for version in ("1.2.3", "1.10.0", "2.0"):
        tool(os.path.join(trees, version), version)
    write(manifests + "/tool.yaml", BASE % ("bin/tool", "tree: {host: %s/1.2.3, cell: /opt/tool}\nprivate_paths: accept\n" % trees))
    write(manifests + "/more.yaml", "extends: tool\ninterpreter: bin/tool\ntree: {host: \"%s/*.[0-9]*0\", cell: /opt/tools}\n"
          "private_paths: accept\n" % trees)
    write(manifests + "/new.yaml", "extends: tool\nvariant: new\ninterpreter: bin/tool\ntree: {host: %s/2.0, cell: /opt/tool-2}\n"
          "private_paths: accept\nenv: {WHERE: \"${tree}\"}\n" % trees)
    write(manifests + "/none.yaml", "extends: tool\ninterpreter: bin/tool\ntree: {host: /srv/not/there, cell: /opt/none}\n"
          "private_paths: accept\n")
    row = listed(manifests, "tool")
    equal([(v["version"], v["place"], v["variant"], v["default"]) for v in row["versions"]],
          [("1.2.3", "/opt/tool/bin/tool", None, True), ("1.10.0", "/opt/tools/1.10.0/bin/tool", None, False),
           ("2.0", "/opt/tool-2/bin/tool", "new", False)], "versions")
    equal(len(row["absent"]), 1, "what is not usable")
    check("/srv/not/there" in row["absent"][0] and "none.yaml" in row["absent"][0], "why it is not", row["absent"])
    table = hotcell("runtimes", "--runtimes", manifests).stdout
    check(re.search(r"^tool +1\.2\.3 +\* /opt/tool/bin/tool \(on the host: %s/1\.2\.3/bin/tool\)$" % re.escape(trees), table, re.M),
          "the default has a star", table)
    for wanted, version, where in (("tool", "1.2.3", "here"), ("tool@1", "1.2.3", "here"), ("tool@1.2", "1.2.3", "here"),
                                   ("tool@1.10", "1.10.0", "here"), ("tool@2", "2.0", "/opt/tool-2"), ("tool@new", "2.0", "/opt/tool-2")):
        record, _, _, _ = run(SHOW, language=wanted, runtimes=manifests)
        ends(record, "ok", None)
        equal(out(record).split(), [version, where, "1"], "%s: version, environment, mounts of this one only" % wanted)
        equal(record["runtime"]["version"], version, "version in the record of " + wanted)
    for wanted in ("tool@1.1", "tool@3", "tool@", "tool@old"):
        record, code, _, _ = run(SHOW, language=wanted, runtimes=manifests)
        equal((record["status"], record["cause"], code), ("refused", "runtime", 127), wanted)
        check("1.2.3, 1.10.0, 2.0 as @new" in record["error"]["message"], "what is installed is told", record["error"])


@test(timeout=30)
def python_versions_of_the_distribution():
    row = listed(folders("none")[0], "python")
    for one in row["versions"]:
        short = ".".join(one["version"].split(".")[:2])
        record, _, _, _ = run("import sys; print('%d.%d' % sys.version_info[:2])", language="python@" + short)
        ends(record, "ok", None)
        equal(out(record), short + "\n", "python@" + short)


@test(timeout=30)
def versions_in_one_evaluation():
    manifests, trees = folders("evaluated")
    for version in ("1.0", "2.0"):
        tool(os.path.join(trees, version), version)
    write(manifests + "/tool.yaml", BASE % ("bin/tool", "tree: {host: \"%s/*\", cell: /opt/tool}\nprivate_paths: accept\n" % trees))
    items = "".join(json.dumps({"id": "%s" % wanted, "language": wanted, "program": "echo $TOOL",
                                "expect": {"kind": "stdout_trim", "value": value}}) + "\n"
                    for wanted, value in (("tool", "1.0"), ("tool@2", "2.0"), ("tool@1", "1.0")))
    ending = hotcell("eval", "--json", "--store", "none", "--jobs", "1", "--runtimes", manifests, "-", stdin=items)
    equal(json.loads(ending.stdout)["acceptance"]["right"], 3, "right answers (%r)" % ending.stderr)


@test(timeout=30)
def private_paths_are_accepted_by_name_only():
    manifests, trees = folders("private")
    tool(trees, "1.0")
    write(manifests + "/tool.yaml", BASE % ("bin/tool", "tree: {host: %s, cell: /opt/tool}\n" % trees))
    ending = hotcell("runtimes", "--runtimes", manifests)
    equal(ending.returncode, 125, "exit code")
    check("tool.yaml:5:7: programs would see the path %s" % os.path.realpath(trees) in ending.stderr, "the error", ending.stderr)
    # A file system that begins there shows no path of the host.
    if subprocess.run(["mount", "-t", "tmpfs", "none", trees], stderr=subprocess.DEVNULL).returncode != 0:
        raise Skip("no file system can be mounted here")
    try:
        tool(trees, "1.1")
        os.chmod(trees, 0o755)
        record, _, _, _ = run("grep /opt/tool /proc/self/mountinfo", language="tool", runtimes=manifests)
        ends(record, "ok", None)
        equal(out(record).split()[3:5], ["/", "/opt/tool"], "what mountinfo shows")
        check(os.path.basename(trees) not in out(record), "the host's path is told", out(record))
    finally:
        subprocess.run(["umount", trees], check=True)


@test(timeout=30)
def a_place_that_no_cell_sees_is_named():
    manifests, trees = folders("unseen")
    tool(trees, "1.0")
    write(manifests + "/tool.yaml", BASE % (trees + "/bin/tool", ""))
    row = listed(manifests, "tool")
    equal((row["usable"], row["versions"]), (False, []), "usable")
    check("lies outside of what a cell sees" in row["missing"] and "make one" in row["missing"], "why", row["missing"])
    record, code, _, _ = run("", language="tool", runtimes=manifests)
    equal((record["cause"], code), ("runtime", 127), "cause")
    # a link out of the tree, as virtual environments of private interpreters have
    os.makedirs(trees + "/env/bin")
    os.symlink(trees + "/bin/tool", trees + "/env/bin/tool")
    write(manifests + "/tool.yaml", BASE % ("bin/tool", "tree: {host: %s/env, cell: /opt/tool}\nprivate_paths: accept\n" % trees))
    check("is a link, and" in listed(manifests, "tool")["missing"], "a link out of the tree")


@test(timeout=30)
def an_interpreter_that_vanishes():
    manifests, trees = folders("vanishes")
    tool(trees, "1.0")
    write(manifests + "/tool.yaml", BASE % ("bin/tool", "tree: {host: %s, cell: /opt/tool}\nprivate_paths: accept\n" % trees))
    process = subprocess.Popen([HOTCELL, "eval", "--store", "none", "--jobs", "1", "--results", "/dev/stdout", "--runtimes", manifests,
                                "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    found = []
    for number, text in enumerate(("echo 1", "echo 2", "echo 3")):
        process.stdin.write(json.dumps({"id": "i%d" % number, "language": "tool" if number < 2 else "bash", "program": text}) + "\n")
        process.stdin.flush()
        found.append(json.loads(process.stdout.readline()))
        if number == 0:
            os.unlink(trees + "/bin/tool")
    process.stdin.close()
    process.stdout.read()
    process.wait(30)
    equal([(one["status"], one["cause"]) for one in found], [("ok", None), ("refused", "runtime"), ("ok", None)], "endings")
    check("can't be started in the cell" in found[1]["stderr_tail"], "why", found[1])


@test(timeout=30)
def two_manifests_with_one_name():
    manifests, _ = folders("twice")
    text = BASE % ("/usr/bin/bash", "")
    write(manifests + "/a.yaml", text)
    write(manifests + "/b.yaml", text.replace(".tool]", ".tool2]"))
    for arguments in (("runtimes",), ("run", "-l", "tool", "-c", "true"), ("run", "-c", "pass")):
        ending = hotcell(*arguments, "--runtimes", manifests)
        equal(ending.returncode, 127 if arguments[0] == "run" else 125, "exit code of %r (%s)" % (arguments, ending.stderr))
        check("\"tool\" belongs to" in ending.stderr and "/a.yaml" in ending.stderr and "/b.yaml" in ending.stderr,
              "both files are named", ending.stderr)
    os.unlink(manifests + "/b.yaml")
    write(manifests + "/a.yaml", text.replace("name: tool", "name: python"))  # one that hotcell itself has
    for arguments in (("runtimes",), ("run", "-c", "pass"), ("run", "-l", "python", "-c", "pass")):
        ending = hotcell(*arguments, "--runtimes", manifests)
        check(ending.returncode in (125, 127) and "\"python\" belongs to" in ending.stderr, "%r" % (arguments,), ending.stderr)


@test(timeout=30)
def wrong_manifests_are_told_with_their_place():
    manifests, _ = folders("wrong")
    good = BASE % ("/usr/bin/bash", "")
    for text, place in ((good + "colour: red\n", "9:1: the key \"colour\""), (good.replace("[.tool]", "[tool]"), "2:14: \"tool\" is not"),
                        (good + "run: [a]\n", "9:1: "), (good.replace("tool ([", "tool (("), "7:60: pattern"),
                        ("extends: nobody\ninterpreter: /usr/bin/bash\n", "extends \"nobody\""), ("[", "2:1: "), ("\xff", ": ")):
        write(manifests + "/wrong.yaml", text)
        for arguments in (("runtimes", "--runtimes", manifests), ("run", "--runtimes", manifests, "-l", "tool", "-c", "")):
            ending = hotcell(*arguments)
            check(ending.returncode in (125, 127) and "wrong.yaml" in ending.stderr and place in ending.stderr,
                  "%r: %s" % (place, arguments[0]), ending.stderr)
    for folder, why in (("/not/there", "No such file"), ("/etc/passwd", "is no folder")):
        for command in ("runtimes", "run", "eval"):
            ending = hotcell(command, "--runtimes", folder, *(["-c", ""] if command == "run" else ["x"] if command == "eval" else []))
            check(ending.returncode == 125 and "--runtimes " + folder in ending.stderr and why in ending.stderr, command, ending.stderr)


@test(timeout=90)
def replays_take_version_and_flags():
    store = scratch("store")
    versions = listed(folders("replayed")[0], "python")["versions"]
    for language, code, more in (("c", "#include <stdio.h>\nint main(void) { printf(\"%d\\n\", WORTH); return 0; }", {"flag": ["-DWORTH=7"]}),
                                 ("python@" + versions[-1]["version"], "import sys; print(sys.version)", {})):
        record, _, _, _ = run(code, language=language, store=store, **more)
        ends(record, "ok", None)
        done = subprocess.run([HOTCELL, "replay", "--store", store, record["id"]], capture_output=True, text=True, timeout=60)
        equal((done.returncode, "identical" in done.stdout), (0, True), "replay of %s (%s%s)" % (language, done.stdout, done.stderr))


@test(timeout=30)
def a_version_beside_the_default_is_not_served_warm():
    manifests, trees = folders("warmth")
    tool(trees, "3.99.1")
    write(trees + "/bin/python3", "#!/bin/sh\ncase $* in *-V) echo Python 3.99.1;; *) echo mine;; esac\n", 0o755)
    write(manifests + "/other.yaml", "extends: python\nvariant: other\ninterpreter: bin/python3\ntree: {host: %s, cell: /opt/other}\n"
          "private_paths: accept\n" % trees)
    record, code, _, _ = run("print(1)", language="python@other", runtimes=manifests, warm=True)
    equal((record["status"], record["cause"], code), ("refused", "field", 125), "--warm of a version that is not kept ready")
    item = json.dumps({"id": "a", "language": "python@other", "program": "import pandas"})
    ending = hotcell("eval", "--store", "none", "--results", "/dev/stdout", "--runtimes", manifests, "-", stdin=item)
    equal(json.loads(ending.stdout.splitlines()[0])["stdout_tail"], "mine\n", "it is the wanted one that runs")


def page():
    """The manual page as a reader sees it, where scdoc's escapes are gone."""
    with open(os.path.join(ROOT, "docs", "man", "hotcell-runtime.5.scd"), encoding="utf-8") as file:
        return re.sub(r"\\(.)", r"\1", file.read())


def manifest_in_page(first_line):
    """The block of the page that begins with this line, as a reader would copy it."""
    blocks = re.findall(r"^```\n(.*?)^```$", page(), re.M | re.S)
    return [block for block in blocks if block.startswith(first_line + "\n")][0]


def new_language(name, manifest, hello, fails, hogs, loops, interpreters):
    """What a person has after following the page: (program, output), (program, message, line), programs without end."""
    if not any(os.path.exists(path) for path in interpreters):
        raise Skip("none of %s is installed" % ", ".join(interpreters))
    manifests, _ = folders(name)
    write("%s/%s.yaml" % (manifests, name), manifest)
    row = listed(manifests, name)
    equal(row["usable"], True, "usable (%s)" % row["missing"])
    check(re.match(r"[0-9]+[.][0-9]", row["version"] or ""), "its version", row)
    record, _, _, _ = run(hello[0], language=name, runtimes=manifests)
    ends(record, "ok", None)
    equal((out(record), record["runtime"]["version"]), (hello[1], row["version"]), "what it prints")
    path = scratch("program." + name)
    write(path, hello[0])
    equal(hotcell("run", "--store", "none", "--runtimes", manifests, path).stdout, hello[1], "found by the ending of the file")
    record, _, _, _ = run(fails[0], language=name, runtimes=manifests)
    equal(record["status"], "runtime_error", "status of an error (%s)" % err(record))
    if fails[1]:
        equal((record["cause"], record["error"]["message"], record["error"]["line"]), ("exception", *fails[1:]), "the error")
    record, _, _, _ = run(hogs, language=name, runtimes=manifests, memory="64M")
    ends(record, "memory_limit", "memory")
    record, _, _, _ = run(loops, language=name, runtimes=manifests, wall="1s")
    ends(record, "timeout", "wall_time")
    ending = hotcell("run", "--store", "none", "--runtimes", manifests, "-l", name, "-c", fails[0])
    if fails[1]:
        check(ending.stderr.endswith("hotcell: runtime_error: exit code %d, line %d: %s\n" % (ending.returncode, fails[2], fails[1])),
              "the plain line", ending.stderr)


@test(timeout=60)
def awk_by_the_manual_page():
    new_language("awk", manifest_in_page("name: awk"), ("BEGIN { print 6 * 7 }", "42\n"), ("BEGIN {\n getline x < \"/\"; exit 3 }", None, None),
                 "BEGIN { x = \"x\"; while (1) x = x x }", "BEGIN { while (1) ; }", ("/usr/bin/gawk", "/usr/bin/mawk"))


@test(timeout=60)
def tcl_by_the_manual_page():
    manifest = manifest_in_page("# ~/runtimes/tcl.yaml")
    new_language("tcl", manifest, ("puts [expr {6 * 7}]", "42\n"), ("set x 1\nerror {no such thing}\n", "no such thing", 2),
                 "while 1 {append x [string repeat x 1000000]}", "while 1 {}", ("/usr/bin/tclsh",))


@test(timeout=60)
def lua51_written_by_hand():
    """As somebody would write it who only knows the page."""
    manifest = """name: lua51
extensions: [.lua51]
file: main.lua51
interpreter: [/usr/bin/lua5.1]
run: ["${interpreter}", "${file}"]
check: [/usr/bin/luac5.1, -p, "${file}"]
env: {PATH: "/usr/bin:/bin"}
version: {command: ["${interpreter}", -v], pattern: '^Lua ([0-9.]+)'}
error:
  exit_code: 1
  rules:
    - {pattern: 'lua5.1: ${file}:([0-9]+): (.*)$', line: 1, message: 2}
install: apt-get install lua5.1
"""
    new_language("lua51", manifest, ("print(6 * 7)", "42\n"), ("\nerror('no such thing')", "no such thing", 2),
                 "local a = {}; while true do a[#a + 1] = string.rep('x', 1000000 + #a) end", "while true do end", ("/usr/bin/lua5.1",))


@test(timeout=30)
def examples_of_the_page_are_good_manifests():
    """Those that extend Python: read as they stand, with their places moved."""
    manifests, trees = folders("page")
    os.makedirs(trees + "/3.99/bin")
    write(trees + "/3.99/bin/python3", "#!/bin/sh\necho Python 3.99.1\n", 0o755)
    write(trees + "/science/bin/python", "#!/bin/sh\necho Python 3.98.1\n", 0o755)
    write(manifests + "/a.yaml", manifest_in_page("# /etc/hotcell/runtimes/python-pyenv.yaml").replace("/home/me/.pyenv/versions", trees))
    write(manifests + "/b.yaml", manifest_in_page("# /etc/hotcell/runtimes/python-science.yaml").replace("host: /srv", "host: " + trees))
    found = {one["version"]: (one["place"], one["variant"]) for one in listed(manifests, "python")["versions"]}
    equal(found.get("3.99.1"), ("/opt/python/3.99/bin/python3", None), "pyenv")
    equal(found.get("3.98.1"), ("/opt/science/bin/python", "science"), "a virtual environment")


PROGRAM = "#include <stdio.h>\nint main(void) { printf(\"%ld %d\\n\", __STDC_VERSION__, WORTH); return 0; }"


@test(timeout=60)
def flags_of_the_compile_step():
    record, _, _, _ = run(PROGRAM, language="c", flag=["-std=c99", "-DWORTH=7", "-O3"])
    ends(record, "ok", None)
    equal(out(record), "199901 7\n", "what the flags made of it")
    equal(record["request"]["flags"], ["-std=c99", "-DWORTH=7", "-O3"], "flags in the record")
    record, _, _, _ = run(PROGRAM, language="c")
    ends(record, "compile_error", "exit_code")
    for language, flag, why in (("c", "-fplugin=/tmp/x.so", "is not one of those"), ("c", "-DX=$(id)", "is not one of those"),
                                ("c", "-std=/etc/passwd", "is not one of those"), ("c", "-o/etc/x", "is not one of those"),
                                ("c", "@file", "begins with '-'"), ("c", "-", "begins with '-'"),
                                ("python", "-O", "no flags that could be given"), ("c", "-B.", "is not one of those"),
                                ("c", "-wrapper", "is not one of those"), ("c", "-D", "is not one of those")):
        record, code, _, _ = run(PROGRAM, language=language, flag=[flag])
        equal((record["status"], record["cause"], code), ("refused", "field", 125), "%s %s" % (language, flag))
        check(record["error"]["field"] == "flag" and why in record["error"]["message"], flag, record["error"])
    item = {"id": "a", "language": "c", "program": PROGRAM, "flags": ["-DWORTH=9", "-std=gnu11"],
            "expect": {"kind": "stdout_trim", "value": "201112 9"}}
    ending = hotcell("eval", "--json", "--store", "none", "-", stdin=json.dumps(item) + "\n" + json.dumps(dict(item, id="b", flags="-O2")))
    report = json.loads(ending.stdout)
    equal((report["acceptance"]["right"], report["bad_lines"]["count"]), (1, 1), "flags of items")


if __name__ == "__main__":
    sys.exit(main())
