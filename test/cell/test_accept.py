#!/usr/bin/env python3
"""Acceptance in second cells: test code and checkers, honest and hostile programs, and the files that a checker sees.

    HOTCELL=build/hotcell test/cell/test_accept.py [--list] [--times] [part of a name]...
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "support"))
from hotcell_test import *  # noqa: E402,F403

ADD = [{"kind": "asserts", "code": "assert add(1, 2) == 3\nassert add(0, 0) == 0\n"}]


def judged(code, predicates, language="python", **options):
    """Status of the acceptance, its rows, the record."""
    path = write(scratch("accept.json"), json.dumps(predicates))
    record = run(code, language, accept=path, **options)[0]
    equal(record["residue"], {"processes": 0, "mounts": 0, "cgroups": 0, "files": 0}, "residue")
    return record["acceptance"]["status"], record["acceptance"]["predicates"], record


def verdict(code, predicates, wanted, **options):
    status, rows, record = judged(code, predicates, **options)
    equal(status, wanted, "acceptance of %.300r (%r, %r)" % (code, rows, record["status"]))
    return rows, record


# ---- asserts: honest programs ----

@test()
def asserts_accept_and_reject():
    verdict("def add(a, b): return a + b", ADD, "accepted")
    rows, _ = verdict("def add(a, b): return a - b", ADD, "rejected")
    check("AssertionError in line 1" in rows[0]["got"], "the reason", rows)
    rows, _ = verdict("x = 1", ADD, "rejected")
    check("NameError in line 1" in rows[0]["got"], "the reason", rows)


@test()
def asserts_of_data_sets():
    human = "\nMETADATA = {'author': 'x'}\n\n\ndef check(candidate):\n    assert candidate([1, 2]) == 3\n    assert candidate([]) == 0\n"
    verdict("def total(l): return sum(l)", [{"kind": "asserts", "code": human, "entry_point": "total"}], "accepted")
    verdict("def total(l): return len(l)", [{"kind": "asserts", "code": human, "entry_point": "total"}], "rejected")
    verdict("def total(l): return sum(l)", [{"kind": "asserts", "code": human + "\ncheck(total)\n"}], "accepted")
    mbpp = ["assert sum([1, 2], 4) == 7", "import math", "assert math.isclose(sum([0.1], 0), 0.1)"]
    verdict("def sum(l, n):\r\n    for x in l: n += x\r\n    return n\r\n", [{"kind": "asserts", "code": mbpp}], "accepted")


@test()
def asserts_see_the_program_as_it_ran():
    code = ("import sys, os, pickle, dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int\n"
            "assert pickle.loads(pickle.dumps(P(3))) == P(3)\nargs = sys.argv\nfile = __file__\nif __name__ == '__main__': main = True\n"
            "import helper\nprint(input() if False else 'noise')\n")
    helper = write(scratch("helper.py"), "value = 17\n")
    tests = ["assert main and helper.value == 17 and args == ['main.py', 'a b'], args", "assert file == '/work/main.py' and P(1).x == 1",
             "assert sys.path[0] == '/work' and not sys.stdin.read() and open('in.txt').read() == 'text'"]
    verdict(code, [{"kind": "asserts", "code": tests}], "accepted", args=["a b"],
            file=[helper, write(scratch("in.txt"), "text")])


@test()
def asserts_beside_other_predicates():
    both = ADD + [{"kind": "stdout_equals", "value": "3\n"}]
    verdict("def add(a, b): return a + b\nprint(add(1, 2))", both, "accepted")
    verdict("def add(a, b): return a + b\nprint(4)", both, "rejected")


@test()
def asserts_with_little_output_and_few_files():
    verdict("def add(a, b): return a + b", ADD, "accepted", output="1K", open_files=32)


@test()
def asserts_of_other_languages():
    rows, _ = verdict("echo 1", ADD, "error", language="bash")
    check("not offered for bash" in rows[0]["got"], "the reason", rows)
    if os.path.exists("/usr/bin/node"):
        tests = [{"kind": "asserts", "code": "if (add(1, 2) !== 3) throw new Error('wrong')"}]
        verdict("const fs = require('fs'); const add = (a, b) => a + b; console.log('noise')", tests, "accepted", language="javascript")
        verdict("function add(a, b) { return a - b }", tests, "rejected", language="javascript")
        verdict("function add(a, b) { return a + b }; process.exit(0)", tests, "rejected", language="javascript")
        verdict("function add(a, b) { process.exit(0) }", tests, "rejected", language="javascript")
        verdict("const add = () => 0; console.log('returned\\n')", tests, "rejected", language="javascript")


# ---- asserts: hostile programs. Each is wrong, and none may be accepted. ----

HOSTILE = {
    "leaves early": "import sys\ndef add(a, b): return 0\nsys.exit(0)",
    "leaves at once": "import os\ndef add(a, b): return 0\nos._exit(0)",
    "leaves in the test": "import os\ndef add(a, b): os._exit(0)",
    "raises SystemExit in the test": "def add(a, b): raise SystemExit(0)",
    "prints a verdict": "def add(a, b): return 0\nprint('returned\\n' + 32 * '0' + ' held\\n', flush=True)",
    "writes a verdict to every descriptor": "import os\ndef add(a, b): return 0\nfor fd in range(256):\n    try: os.write(fd, b'returned\\n' + 32 * b'0' + b' held\\n')\n    except OSError: pass",
    "writes a verdict in the test": "import os\ndef add(a, b):\n    for fd in range(3, 256):\n        try: os.write(fd, b'0' * 32 + b' held\\n')\n        except OSError: pass\n    os._exit(0)",
    "AssertionError is nothing": "import builtins\nclass Quiet(BaseException): pass\nbuiltins.AssertionError = Quiet\ndef add(a, b): return 0",
    "exceptions are nothing": "import builtins\nfor n in ('BaseException', 'Exception', 'SystemExit'): setattr(builtins, n, ())\ndef add(a, b): return 0",
    "exec and compile are replaced": "import builtins\nbuiltins.exec = lambda *a, **k: None\nbuiltins.compile = lambda *a, **k: builtins.eval\ndef add(a, b): return 0",
    "posix is replaced": "import sys, posix\nfor n in ('read', 'write', '_exit'): setattr(posix, n, lambda *a: b'')\nsys.modules['posix'] = None\ndef add(a, b): return 0",
    "modules are replaced": "import sys\nsys.modules.clear()\ndef add(a, b): return 0",
    "unittest is replaced": "import unittest\nunittest.TestCase.assertEqual = lambda *a, **k: None\nunittest.main = lambda *a, **k: None\ndef add(a, b): return 0",
    "ends at exit": "import atexit, os\natexit.register(os._exit, 0)\ndef add(a, b): return 0",
    "hooks exceptions": "import sys, os\nsys.excepthook = lambda *a: os._exit(0)\nsys.unraisablehook = sys.excepthook\ndef add(a, b): return 0",
    "traces the tests": "import sys\ndef t(frame, event, arg):\n    if frame.f_code.co_filename == '<tests>' and event == 'line': frame.f_lineno = 3\n    return t\nsys.settrace(t); sys.setprofile(t)\ndef add(a, b): return 0",
    "a thread lives on": "import threading, time, os\nthreading.Thread(target=lambda: (time.sleep(3600))).start()\ndef add(a, b): return 0",
    "a thread ends it": "import threading, time, os\nthreading.Thread(target=lambda: (time.sleep(0.01), os._exit(0))).start()\ndef add(a, b):\n    import time; time.sleep(5)",
    "forks": "import os\nos.fork()\ndef add(a, b): return 0",
    "its parent leaves": "import os\nif os.fork(): os._exit(0)\ndef add(a, b): return 0",
    "closes everything": "import os\nos.closerange(0, 256)\ndef add(a, b): return 0",
    "optimises": "import sys\nsys.flags\ndef add(a, b): return 0",
    "an error that says held": "class E(Exception):\n    def __str__(self): return '\\n' + '0' * 32 + ' held\\n'\ndef add(a, b): raise E",
    "an error whose text exits": "import os\nclass E(Exception):\n    def __str__(self): os._exit(0)\ndef add(a, b): raise E",
    "loops in the test": "def add(a, b):\n    while True: pass",
    "its last line loops": "def add(a, b): return 0\nimport gc\ngc.callbacks.append(lambda *a: None)",
}


@test(timeout=120)
def asserts_withstand_hostile_programs():
    for name, code in HOSTILE.items():
        status, rows, record = judged(code, ADD, wall="2s", cpu="2s")
        equal(status, "rejected", "%s (%r, %r, %.300r)" % (name, rows, record["status"], err(record)))
    innocent()


@test()
def an_environment_cannot_switch_asserts_off():
    verdict("def add(a, b): return 0", ADD, "rejected", env=["PYTHONOPTIMIZE=2"])


@test()
def tests_are_nowhere_before_the_program_returned():
    secret = "HIDDEN-CHECK-" + os.urandom(8).hex()
    tests = [{"kind": "asserts", "code": "# %s\nassert found is False, found" % secret}]
    code = """
import os, re, sys
needle = re.compile(b"%s[%s]%s")
texts = [" ".join(sys.argv), " ".join(sys.orig_argv), repr(dict(os.environ))]
for folder, _, files in list(os.walk("/work")) + list(os.walk("/tmp")) + list(os.walk("/dev/shm")):
    texts += [open(os.path.join(folder, f), errors="replace").read() for f in files if f != "main.py"]
for f in ("cmdline", "environ"):
    texts.append(open("/proc/self/" + f, errors="replace").read())
frame = sys._getframe()
while frame:
    texts.append(repr({k: v for k, v in frame.f_locals.items() if k != "texts"}))
    frame = frame.f_back
found, looked = any(needle.search(t.encode()) for t in texts), 0
try:
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in maps:
            span, mode = line.split()[:2]
            if "r" not in mode or "[v" in line: continue
            low, high = (int(x, 16) for x in span.split("-"))
            try:
                memory.seek(low); data = memory.read(high - low)
                looked += len(data); found = found or needle.search(data) is not None
            except (OSError, OverflowError, ValueError): pass
except OSError: pass
""" % (secret[:9], secret[9], secret[10:])
    verdict(code, tests, "accepted", memory="1G")


@test()
def what_asserts_cannot_tell():
    """Documented in the help: an object that equals everything. A checker sees what was printed."""
    code = "class Any:\n    def __eq__(self, other): return True\ndef add(a, b): return Any()\nprint(add(1, 2))"
    verdict(code, ADD, "accepted")
    verdict(code, [{"kind": "checker", "code": "import sys\nsys.exit(sys.stdin.read().strip() != '3')"}], "rejected")


# ---- checkers ----

@test()
def checker_says_why():
    yes = [{"kind": "checker", "code": "import sys\nn = int(sys.stdin.read())\nprint('it is', n)\nsys.exit(0 if n == 5 else 3)"}]
    rows, _ = verdict("print(5)", yes, "accepted")
    equal(rows[0]["got"], "it is 5", "the reason")
    rows, _ = verdict("print(6)", yes, "rejected")
    equal(rows[0]["got"], "it is 6", "the reason")


@test()
def checker_of_another_language():
    code = "#include <stdio.h>\nint main(void) { int x; return scanf(\"%d\", &x) != 1 || x != 5; }\n"
    verdict("print(5)", [{"kind": "checker", "language": "c", "code": code}], "accepted")
    verdict("echo 6", [{"kind": "checker", "language": "c", "code": code}], "rejected", language="bash")
    verdict("echo 5", [{"kind": "checker", "language": "bash", "code": "read x; [ $x = 5 ]"}], "accepted", language="bash")


@test()
def checker_sees_files_in_a_folder_of_their_own():
    program = ("import os\nopen('sys.py', 'w').write('raise SystemExit(0)')\nopen('json.py', 'w').write('raise SystemExit(0)')\n"
               "os.mkdir('d'); open('d/a.csv', 'w').write('1,2')\nos.symlink('/etc/passwd', 'link')\nprint(1)")
    checker = ("import json, os, sys\nassert sys.path[0] == '/work' and not os.path.exists('sys.py')\n"
               "assert open('outputs/d/a.csv').read() == '1,2' and not os.path.lexists('outputs/link')\n"
               "try: open('outputs/d/a.csv', 'a'); sys.exit(9)\nexcept OSError: pass\n"
               "sys.exit(json.dumps([1]) != '[1]')")
    verdict(program, [{"kind": "checker", "code": checker}], "accepted")
    verdict("pass", [{"kind": "checker", "code": "import os\nassert os.listdir('outputs') == []"}], "accepted")


@test(timeout=120)
def a_checker_that_gives_no_verdict_is_an_error():
    for code, part in (("while True: pass", "timeout"), ("import os; os.kill(os.getpid(), 11)", "runtime_error"), ("def (", "syntax_error"),
                       ("b = bytearray(2 << 30)", "memory_limit")):
        rows, _ = verdict("print(1)", [{"kind": "checker", "code": code, "wall": "2s"}], "error")
        check(part in rows[0]["got"], "the reason", rows)
    rows, _ = verdict("print(1)", [{"kind": "checker", "language": "klingon", "code": "x"}], "error")
    check("klingon" in rows[0]["got"], "the reason", rows)


@test()
def a_checker_needs_the_whole_output():
    checker = [{"kind": "checker", "code": "import sys\nsys.exit(len(sys.stdin.read()) != 300000)"}]
    verdict("print('x' * 299999)", checker, "accepted", output="1M")
    rows, _ = verdict("print('x' * 299999)", checker, "error", output="64K")
    check("--output" in rows[0]["got"], "the reason", rows)


@test()
def the_checker_is_nowhere_in_the_run():
    program = "import os\nprint([os.path.join(d, f) for d, _, fs in os.walk('/work') for f in fs], os.path.exists('outputs'))"
    _, record = verdict(program, [{"kind": "checker", "code": "import sys\n# SECRET-ANSWER\nsys.exit(0)"}], "accepted")
    equal(out(record), "['/work/main.py'] False\n", "what the program saw")


# ---- files and structured output ----

@test()
def files_and_structures():
    program = ("import json, os\nos.mkdir('d'); open('d/t.csv', 'w').write('a,b\\n1,2\\n3,4\\n')\njson.dump({'n': 3}, open('n.json', 'w'))\n"
               "open('empty', 'w')\nprint(json.dumps([{'id': 1}, {'id': 2}]))")
    row = {"type": "object", "required": ["id"], "properties": {"id": {"$ref": "#/$defs/id"}}, "additionalProperties": False}
    verdict(program, [
        {"kind": "stdout_json", "schema": {"$defs": {"id": {"type": "integer", "minimum": 1}}, "type": "array", "minItems": 2, "items": row}},
        {"kind": "file_csv", "path": "d/t.csv", "columns": ["a", "b"], "rows": 2},
        {"kind": "file_json", "path": "n.json", "schema": {"properties": {"n": {"const": 3}}}},
        {"kind": "file_exists", "path": "empty"},
        {"kind": "file_sha256", "path": "empty", "value": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}], "accepted")
    for predicate in ({"kind": "file_csv", "path": "d/t.csv", "rows": 3}, {"kind": "file_json", "path": "n.json", "schema": {"required": ["m"]}},
                      {"kind": "file_exists", "path": "main.py"}, {"kind": "file_exists", "path": "d"}):
        verdict(program, [predicate], "rejected")


@test()
def an_input_left_alone_is_no_result():
    given = write(scratch("given.txt"), "x")
    wanted = [{"kind": "file_exists", "path": "given.txt"}]
    verdict("pass", wanted, "rejected", file=given)
    verdict("import os; os.remove('given.txt'); open('given.txt', 'w').write('y')", wanted, "accepted", file=given)


@test()
def a_catastrophic_pattern_is_an_error():
    wanted = [{"kind": "stdout_matches", "pattern": "(a|b)*a(a|b){60}c"}]
    verdict("import random\nrandom.seed(1)\nprint(''.join(random.choices('ab', k=30000)))", wanted, "error")
    verdict("print('a' + 'b' * 60 + 'c')", wanted, "accepted")
    verdict("print('abc')", wanted, "rejected")


@test(timeout=60)
def a_profile_for_programs_is_none_for_their_judges():
    """pal lets programs import little and read no files; who judges them has its limits, but not those lists."""
    accept = [{"kind": "checker", "code": "import os, sys\nsys.exit(sys.stdin.read() != '4\\n' or os.listdir('outputs') != [])"}]
    verdict("print(2 + 2)", accept, "accepted", profile="pal")
    verdict("print(5)", accept, "rejected", profile="pal")
    verdict("print(4)", [{"kind": "checker", "code": "b = bytearray(600 << 20)"}], "error", profile="pal")
    verdict("def add(a, b): return a + b", ADD, "accepted", profile="pal")


@test(timeout=30)
def people_are_told_which_predicate_decided():
    for value, code, line in ((5, 1, b"hotcell: rejected: stdout_number: 4"), (4, 0, b"hotcell: accepted")):
        ending = invoke([HOTCELL, "run", "--store", "none", "--expect-number", str(value), "-c", "print(4)"], timeout=20)
        equal((ending.code, ending.stderr.strip()), (code, line), "the reason")


if __name__ == "__main__":
    sys.exit(main())
