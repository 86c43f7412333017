#!/usr/bin/env python3
"""Programs that lie, exit or hide: none of them may be accepted by test code or a checker."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "support"))
from hotcell_test import check, equal, main, run, scratch, test, write  # noqa: E402


def judged(code, *predicates, **options):
    path = write(scratch("accept.json"), json.dumps(predicates))
    record, exit_code, _, _ = run(code, accept=path, **options)
    return record["acceptance"], exit_code, record


def asserts(code):
    return {"kind": "asserts", "code": code}


ADD = "def add(a, b):\n    return a + b\n"
TESTS = "assert add(1, 2) == 3\nassert add(0, 0) == 0\n"
FORGERS = {
    "wrong": "def add(a, b):\n    return a - b\n",
    "exits early": "import sys\ndef add(a, b): return 0\nsys.exit(0)\n",
    "os exit": "import os\ndef add(a, b): return 0\nos._exit(0)\n",
    "exits in the function": "import os\ndef add(a, b): os._exit(0)\n",
    "raises SystemExit in the function": "def add(a, b): raise SystemExit(0)\n",
    "prints a verdict": ADD.replace("a + b", "0") + "print('pass')\nprint('body returned')\nprint('0' * 32 + ' pass')\n",
    "writes to every descriptor": "import os\nfor fd in range(64):\n    try: os.write(fd, b'body returned\\n' + b'0' * 32 + b' pass\\n')\n"
                                  "    except OSError: pass\ndef add(a, b): return 0\n",
    "atexit": "import atexit, os\natexit.register(os._exit, 0)\ndef add(a, b): return 0\n",
    "thread": "import threading, os, time\nthreading.Thread(target=lambda: (time.sleep(0.05), os._exit(0)), daemon=True).start()\n"
              "import time\ndef add(a, b): time.sleep(2); return a + b\n",
    "closes everything": "import os\nos.closerange(0, 100000)\ndef add(a, b): return a + b\n",
    "patched builtins": "import builtins\nbuiltins.compile = builtins.exec = lambda *a, **k: None\ndef add(a, b): return 0\n",
    "patched os": "import os\nos.write = lambda *a: 0\nos._exit = lambda *a: None\ndef add(a, b): return 0\n",
    "patched AssertionError": "import builtins\nclass E(Exception): pass\nbuiltins.AssertionError = E\ndef add(a, b): return 0\n",
    "syntax error": "def add(a, b:\n",
    "never returns": "def add(a, b): return a + b\nwhile True: pass\n",
    "waits for input": "def add(a, b): return a + b\ninput()\n",
    "no such function": "x = 1\n",
}


@test(timeout=60)
def right_programs_pass():
    verdict, exit_code, _ = judged(ADD, asserts(TESTS))
    equal((verdict["status"], exit_code), ("accepted", 0), "right program")
    verdict, _, _ = judged(ADD + "if __name__ == '__main__':\n    print(add(1, 1))\n", asserts(TESTS), {"kind": "stdout_equals", "value": "2\n"})
    equal(verdict["status"], "accepted", "with a main part")
    verdict, _, _ = judged("def get(l):\n    return [n for n in l if n > 0]\n",
                           asserts("def check(candidate):\n    assert candidate([-1, 2]) == [2]\n\ncheck(get)\n"))
    equal(verdict["status"], "accepted", "the form of HumanEval")
    verdict, _, _ = judged("import pickle\nclass P: pass\n", asserts("import pickle\nassert isinstance(pickle.loads(pickle.dumps(P())), P)"))
    equal(verdict["status"], "accepted", "classes of __main__")
    verdict, _, _ = judged("v = open('in.txt').read()\n", asserts("assert v == 'given'"), file=write(scratch("in.txt"), "given") + ":in.txt")
    equal(verdict["status"], "accepted", "inputs are there")


@test(timeout=200)
def no_forger_passes():
    passed = []
    for name, code in FORGERS.items():
        verdict, exit_code, record = judged(code, asserts(TESTS), wall="1500ms")
        if verdict["status"] != "rejected" or exit_code != 1:
            passed.append("%s: %s, exit code %s (%s)" % (name, verdict, exit_code, record["status"]))
    check(not passed, "not rejected", *passed)


@test()
def tests_are_told_what_failed_and_hidden_from_the_program():
    verdict, _, record = judged(ADD.replace("+", "-") + "import glob, sys\nfor p in glob.glob('./**/*', recursive=True) + sys.argv:\n"
                                "    try: print(open(p).read())\n    except OSError: pass\n", asserts("# HIDDEN-7731\nassert add(1, 2) == 3, 'sum'\n"))
    check("HIDDEN-7731" not in json.dumps(record), "the tests are in the record")
    check("AssertionError" in verdict["predicates"][0]["got"] and "line 2" in verdict["predicates"][0]["got"], "what failed", verdict)


@test(timeout=60)
def languages_without_a_runner_are_an_error():
    verdict, exit_code, _ = judged("true", asserts("x"), language="bash")
    equal((verdict["status"], exit_code), ("error", 125), "bash")


CHECKER = "import sys\nn = int(sys.stdin.read())\nprint('got', n)\nsys.exit(0 if n == 42 else 1)\n"


@test(timeout=90)
def checkers():
    for program, code, wanted, exit_wanted in (
            ("print(42)", CHECKER, "accepted", 0), ("print(41)", CHECKER, "rejected", 1),
            ("print('x')", CHECKER, "rejected", 1),
            ("print(42)", "import os\nos.kill(os.getpid(), 9)", "error", 125),
            ("print(42)", "while True: pass", "error", 125)):
        verdict, exit_code, _ = judged(program, {"kind": "checker", "language": "python", "code": code}, cpu="1s")
        equal((verdict["status"], exit_code), (wanted, exit_wanted), repr((program, code, verdict)))
    verdict, _, _ = judged("print(42)", {"kind": "checker", "language": "bash", "code": "read n; echo seen $n; test $n = 42"})
    equal((verdict["status"], verdict["predicates"][0]["got"]), ("accepted", "seen 42"), "another language, and its reason")
    verdict, _, _ = judged("open('o.txt', 'w').write('made')", {"kind": "checker", "code": "assert open('outputs/o.txt').read() == 'made'\n"
                           "try:\n    open('outputs/o.txt', 'w')\nexcept PermissionError:\n    pass\nelse:\n    raise SystemExit(1)\n"})
    equal(verdict["status"], "accepted", "outputs are files to read")


@test(timeout=30)
def wrong_forms():
    for predicate, word in (({"kind": "asserts"}, "lacks code"), ({"kind": "asserts", "code": ""}, "empty"),
                            ({"kind": "checker", "code": "x", "language": 3}, "language"), ({"kind": "asserts", "code": "x", "y": 1}, "unknown field")):
        path = write(scratch("accept.json"), json.dumps([predicate]))
        record, exit_code, _, _ = run("print(1)", accept=path)
        equal((record["state"], exit_code), ("refused", 125), str(predicate))
        check(word in record["error"]["message"], word, record["error"])


if __name__ == "__main__":
    sys.exit(main())
