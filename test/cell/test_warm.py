#!/usr/bin/env python3
"""Warm cells: the same record as cold ones, and nothing that goes from one run to the next.

The programs of a group run through `hotcell eval`, one after the other, in cells of one host; their records are read from the store.
"""
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "support"))
from hotcell_test import HOTCELL, Skip, check, equal, err, main, out, run, scratch, test, write  # noqa: E402

PROGRAMS = os.path.dirname(HOTCELL)


def need_warm():
    if not os.path.exists(os.path.join(PROGRAMS, "_hotcell_warm.abi3.so")):
        raise Skip("built without warm Python: its headers were missing")


def records(programs, *options, **more):
    """Records of `programs` (text, or an item), in order."""
    need_warm()
    store = scratch()
    items = []
    for number, program in enumerate(programs):
        item = dict(program) if isinstance(program, dict) else {"program": program}
        item.update(id="p%03d" % number, language="python")
        items.append(item)
    path = write(scratch("items.jsonl"), "\n".join(json.dumps(item) for item in items))
    subprocess.run([HOTCELL, "eval", path, "--jobs", "1", "--store", store, "--json", *options], check=False, timeout=300,
                   stdout=subprocess.DEVNULL, **more)
    database = sqlite3.connect(os.path.join(store, "records.sqlite"))
    rows = [json.loads(text) for (text,) in database.execute("SELECT record FROM records ORDER BY seq")]
    equal(len(rows), len(items), "records")
    return rows


def stripped(text):
    """Without what differs from process to process."""
    import re
    return re.sub(r"0x[0-9a-f]{6,}", "0xADDRESS", text)


SAME = {
    "prints": "print(2**100)",
    "main": "print(__name__, __file__, __spec__, __doc__, __package__, __cached__, __annotations__, sorted(globals()))",
    "frames": "import sys, inspect\nprint(len(inspect.stack()), sys._getframe().f_back, sys._getframe().f_code.co_name)",
    "arguments": "import sys\nprint(sys.argv, sys.orig_argv, sys.path[0], sys.executable, sys.flags)",
    "environment": "import os\nprint(sorted(os.environ.items()))\nos.system('env | sort')",
    "folder": "import os\nprint(os.getcwd(), sorted(os.listdir('.')), os.stat('main.py').st_mode, os.getuid(), os.umask(0o22))",
    "traceback": "def f(x):\n    return 1 // x\n\n\nf(0)",
    "chained": "try:\n    {}['a']\nexcept KeyError as error:\n    raise ValueError('no a') from error",
    "group": "raise ExceptionGroup('many', [ValueError(1), TypeError('t')])",
    "syntax": "def f(:\n    pass",
    "indentation": "if True:\nprint(1)",
    "encoding": {"program": "# -*- coding: latin-1 -*-\nprint('\u00e9'.encode())"},
    "bom": "\ufeffprint('after a mark')",
    "crlf": "print(1)\r\nprint('''a\r\nb''')\r\n",
    "empty": "",
    "exit none": "import sys\nprint('a')\nsys.exit()",
    "exit number": "import sys\nsys.exit(7)",
    "exit big": "raise SystemExit(256 + 3)",
    "exit negative": "raise SystemExit(-1)",
    "exit text": "import sys\nsys.exit('a reason')",
    "exit object": "raise SystemExit({'a': 1})",
    "exit true": "raise SystemExit(True)",
    "exit in thread": "import threading, sys\nt = threading.Thread(target=sys.exit, args=(3,)); t.start(); t.join(); print('on')",
    "exit in atexit": "import atexit, sys\natexit.register(lambda: sys.exit(4))\nprint('x')",
    "os exit": "import os, sys\nprint('lost', end='')\nos._exit(9)",
    "quit": "quit(5)",
    "atexit order": "import atexit\nfor i in range(3): atexit.register(print, i)",
    "atexit raises": "import atexit\natexit.register(lambda: 1 // 0)\natexit.register(print, 'first')",
    "threads": "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start()\nprint('main ends')",
    "daemon": "import threading, time\nthreading.Thread(target=time.sleep, args=(9,), daemon=True).start()\nprint('main ends')",
    "executor": "from concurrent.futures import ThreadPoolExecutor\nprint(list(ThreadPoolExecutor(2).map(abs, [-1, -2])))",
    "main thread": "import threading\nprint(threading.current_thread() is threading.main_thread(), threading.active_count())",
    "processes": "import multiprocessing as m\ndef f(x): return x * x\nif __name__ == '__main__':\n"
                 "    with m.Pool(2) as p: print(p.map(f, range(4)))",
    "fork": "import os\nprint('once', flush=True)\npid = os.fork()\nif pid == 0:\n    raise SystemExit(3)\n"
            "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))",
    "subprocess": "import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'print(1)'], capture_output=True).stdout)",
    "pickle": "import pickle\nclass P:\n    def __init__(self): self.a = 1\nprint(pickle.loads(pickle.dumps(P())).a)",
    "dataclass": "from dataclasses import dataclass\n@dataclass\nclass D:\n    a: int = 1\nprint(D())",
    "inspect": "import inspect\ndef f():\n    return 1\nprint(inspect.getsource(f), inspect.getfile(f))",
    "finalizers": "class D:\n    def __init__(self, n): self.n = n\n    def __del__(self): print('del', self.n)\n"
                  "a = D(1); _b = D(2); c = [D(3)]; d = D(4); d.me = d",
    "signal": "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)",
    "own signal": "import os, signal\nsignal.signal(signal.SIGTERM, lambda *a: print('caught'))\nos.kill(os.getpid(), signal.SIGTERM)",
    "interrupt": "raise KeyboardInterrupt",
    "alarm": "import signal, time\nsignal.alarm(1)\ntime.sleep(5)",
    "crash": "import ctypes\nctypes.string_at(0)",
    "abort": "import os\nos.abort()",
    "hook": "import sys\nsys.excepthook = lambda *a: print('hooked', a[0].__name__)\n1 // 0",
    "closed": "import sys\nprint('a')\nsys.stdout.close()",
    "unflushed": "import sys\nsys.stdout.write('no newline')",
    "binary": "import sys\nsys.stdout.buffer.write(bytes(range(256)))",
    "buffering": "import sys\nprint(sys.stdout.line_buffering, sys.stdout.encoding, sys.stderr.encoding, sys.stdin.encoding)",
    "input": {"program": "print(int(input()) + int(input()))", "stdin": "2\n40\n"},
    "input ends": "input()",
    "recursion": "def f(n): return f(n + 1)\nf(0)",
    "warning": "import warnings\nwarnings.warn('careful')",
    "asyncio": "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 3\nprint(asyncio.run(f()))",
    "decimal": "from decimal import Decimal, getcontext\ngetcontext().prec = 5\nprint(Decimal(1) / 3)",
    "locale": "import locale, time\nprint(locale.getlocale(), time.tzname, locale.setlocale(locale.LC_ALL))",
    "unhashable exit": "import sys\nsys.stderr.write('err')\nsys.exit([1])",
    "code module": "import code\ncode.InteractiveInterpreter().runsource('1/0')\nprint('on')",
    "files": "open('made.txt', 'w').write('made')\nimport os\nos.mkdir('d')\nopen('d/x', 'w').write('y')",
    "limit of files": "import resource\nprint(resource.getrlimit(resource.RLIMIT_NOFILE), resource.getrlimit(resource.RLIMIT_STACK))",
    "descriptors": "import os\nprint(sorted(int(n) for n in os.listdir('/proc/self/fd'))[:3])",
    "gil state": "import ctypes\nf = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 42)\nprint(f())",
}
if sys.version_info < (3, 11):
    del SAME["group"]


@test(timeout=280)
def same_record_cold_and_warm():
    names = list(SAME)
    programs = [SAME[name] for name in names]
    cold, warm = records(programs, "--cold"), records(programs, "--warm")
    wrong = []
    for name, before, after in zip(names, cold, warm):
        check(before["cell"]["warm"] is False and after["cell"]["warm"] is True, name + ": warmth")
        equal(after["isolation"]["grade"], before["isolation"]["grade"], name + ": grade")
        for field in ("state", "status", "cause", "exit_code", "signal_name", "error"):
            if before[field] != after[field]:
                wrong.append((name, field, before[field], after[field]))
        for stream in (out, err):
            if stripped(stream(before)) != stripped(stream(after)):
                wrong.append((name, stream.__name__, stripped(stream(before)), stripped(stream(after))))
        listed = [[(a["path"], a["sha256"]) for a in r["artifacts"]] for r in (before, after)]
        if listed[0] != listed[1]:
            wrong.append((name, "artifacts", *listed))
        equal(after["residue"], {"processes": 0, "mounts": 0, "cgroups": 0, "files": 0}, name + ": residue")
    check(not wrong, "cold and warm differ", *["%s: %s\n        cold %.900r\n        warm %.900r" % w for w in wrong])


@test(timeout=120)
def limits_hold():
    rows = records([
        {"program": "while True: pass", "limits": {"cpu": "500ms"}},
        {"program": "import time; time.sleep(30)", "limits": {"wall": "500ms"}},
        {"program": "a = []\nwhile True: a.append(bytearray(1 << 20))", "limits": {"memory": "96M"}},
        {"program": "import os\nwhile True:\n    os.fork()", "limits": {"processes": 12, "wall": "2s"}},
        {"program": "print('x' * 1000000)\n" * 3, "limits": {"output": "1M", "output_total": "2M"}},
        {"program": "import socket\ntry:\n    socket.create_connection(('192.0.2.1', 80), 1)\nexcept OSError as e:\n    print(e.errno)"},
        {"program": "print('innocent')"},
    ], "--warm")
    equal([r["status"] for r in rows[:3]], ["timeout", "timeout", "memory_limit"], "endings")
    equal(rows[2]["cause"], "memory", "cause")
    check(rows[3]["limits"]["processes"]["hit"] or rows[3]["status"] == "timeout", "fork bomb", rows[3]["status"])
    equal(rows[4]["status"], "output_limit", "output")
    check(rows[5]["network"]["attempts"], "the attempt is recorded", rows[5]["network"], out(rows[5]))
    equal(out(rows[6]), "innocent\n", "next innocent run")


LEAVES = {
    "globals": ("x = 1", "print('x' in globals())", "False"),
    "builtins": ("import builtins; builtins.print = None; builtins.secret = 1", "print(hasattr(__builtins__, 'secret'))", "False"),
    "patched module": ("import json; json.dumps = None; json.secret = 1", "import json; print(json.dumps([1]), hasattr(json, 'secret'))",
                       "[1] False"),
    "patched pandas": ("import pandas; pandas.DataFrame = 1", "import pandas; print(pandas.DataFrame({'a': [1]}).shape)", "(1, 1)"),
    "environment": ("import os; os.environ['SECRET'] = '1'", "import os; print('SECRET' in os.environ)", "False"),
    "folder": ("import os; os.makedirs('d'); os.chdir('d')", "import os; print(os.getcwd(), os.listdir('.'))", "/work ['main.py']"),
    "files": ("open('/tmp/left', 'w').write('x'); open('left', 'w')", "import os; print(os.listdir('/tmp'), os.listdir('.'))",
              "['home'] ['main.py']"),
    "shared memory": ("open('/dev/shm/left', 'w').write('x')", "import os; print(os.listdir('/dev/shm'))", "[]"),
    "threads": ("import threading, time; threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
                "import threading; print(threading.active_count())", "1"),
    "signals": ("import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)",
                "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)", "True"),
    "locale": ("import locale; locale.setlocale(locale.LC_ALL, 'C')", "import locale; print(locale.setlocale(locale.LC_CTYPE))", "C.UTF-8"),
    "random state": ("import random; random.seed(1)", "import random; random.seed(1); a = random.random(); print(a)", "0.13436424411240122"),
    "warnings": ("import warnings; warnings.simplefilter('error')", "import warnings; warnings.warn('x'); print('on')", "on"),
    "recursion limit": ("import sys; sys.setrecursionlimit(50)", "import sys; print(sys.getrecursionlimit())", "1000"),
    "ipc": ("import ctypes; print(ctypes.CDLL(None).shmget(77, 4096, 0o1666))",
            "import ctypes; print(ctypes.CDLL(None).shmget(77, 4096, 0))", "-1"),
    "numpy options": ("import numpy; numpy.set_printoptions(precision=1)", "import numpy; print(numpy.get_printoptions()['precision'])",
                      "8"),
}


@test(timeout=200)
def nothing_is_left_for_the_next_run():
    pairs = [program for first, second, _ in LEAVES.values() for program in (first, second)]
    rows = records(pairs, "--warm")
    wrong = []
    for number, (name, (_, _, wanted)) in enumerate(LEAVES.items()):
        seen = rows[2 * number + 1]
        if "ModuleNotFoundError" in err(seen):
            continue
        if out(seen).strip() != wanted:
            wrong.append("%s: %r, wanted %r (%s)" % (name, out(seen), wanted, err(seen)[-200:]))
    check(not wrong, "something was left", *wrong)


@test(timeout=120)
def children_of_one_host_differ():
    program = ("import random, uuid, tempfile, os, secrets\n"
               "print(random.random()); print(uuid.uuid4()); print(tempfile.mkdtemp()); print(secrets.token_hex(8))\n"
               "print(next(tempfile._get_candidate_names()))\n"
               "try:\n    import numpy\n    print(numpy.random.random(), numpy.random.default_rng().random())\n"
               "except ImportError:\n    pass\n")
    rows = records([program] * 4, "--warm")
    lines = [out(row).split("\n")[:-1] for row in rows]
    for column in zip(*lines):
        equal(len(set(column)), len(rows), "values of %r" % (column,))


@test(timeout=120)
def a_demand_that_cannot_be_met_is_refused():
    need_warm()
    for options, reason in (({"language": "bash"}, "no warm cells"), ({"deterministic": True}, "deterministic"),
                            ({"env": "PYTHONHASHSEED=1"}, "--env")):
        code = "echo 1" if "language" in options else "print(1)"
        record = run(code, warm=True, **options)[0]
        equal((record["state"], record["cause"]), ("refused", "field"), str(options))
        check(reason in record["error"]["message"], "the reason", record["error"])


def children_of(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
        return [int(word) for word in file.read().split()]


def below(pid):
    found = []
    for child in children_of(pid):
        found += [child] + below(child)
    return found


def name_of(pid):
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            return file.read()
    except OSError:
        return b""


@test(timeout=120)
def a_killed_host_costs_no_run():
    need_warm()
    store = scratch()
    items = [{"id": "p%d" % n, "language": "python", "program": "import numpy\nimport time; time.sleep(0.05); print(%d)" % n}
             for n in range(40)]
    path = write(scratch("items.jsonl"), "\n".join(json.dumps(item) for item in items))
    with subprocess.Popen([HOTCELL, "eval", path, "--jobs", "1", "--store", store, "--json"], stdout=subprocess.PIPE) as process:
        killed = 0
        for _ in range(12):
            time.sleep(0.3)
            if process.poll() is not None:
                break
            # Hosts and payloads have the same command line: the keeper's children among them are what we look for.
            for pid in [p for p in below(process.pid) if name_of(p).startswith(b"/usr/bin/python3\0main.py")][:1]:
                os.kill(pid, signal.SIGKILL)
                killed += 1
        process.communicate(timeout=100)
    check(killed > 0, "nothing was there to kill")
    database = sqlite3.connect(os.path.join(store, "records.sqlite"))
    rows = [json.loads(text) for (text,) in database.execute("SELECT record FROM records")]
    equal(len(rows), len(items), "records")
    # A program that was hit itself ended by that signal; every other one is right.
    wrong = [(r["status"], r["cause"], r["signal_name"], r["error"]) for r in rows
             if r["status"] != "ok" and r["signal_name"] != "SIGKILL"]
    check(not wrong, "runs failed", *wrong)
    check(sum(r["status"] == "ok" for r in rows) >= len(items) - killed, "too few are right")
    for r in rows:
        equal(r["residue"], {"processes": 0, "mounts": 0, "cgroups": 0, "files": 0}, "residue")


if __name__ == "__main__":
    sys.exit(main())
