#!/usr/bin/env python3
"""What a cell promises to an ordinary and to a greedy program: limits, endings, errors, files, artifacts, the usual libraries.

    HOTCELL=build/hotcell test/cell/test_cell.py [--list] [--times] [part of a name]...
"""
import hashlib
import json
import os
import pty
import re
import select
import signal
import stat
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "support"))
from hotcell_test import *  # noqa: E402,F403
import hotcell_test as t  # noqa: E402

MIB = 1024 * 1024


def hit(record, *wanted):
    equal(sorted(name for name, value in record["limits"].items() if value["hit"]), sorted(wanted), "limits that were hit")


# ---- time ----

@test()
def wall_limit_ends_a_sleeper_in_time():
    with hostile():
        record, code, stderr, wall = run("import time; print('before', flush=True); time.sleep(60)", wall="500ms")
        ends(record, "timeout", "wall_time")
        equal((code, record["signal"], record["exit_code"], out(record)), (124, 9, None, "before\n"), "the ending")
        hit(record, "wall")
        equal(record["limits"]["wall"]["requested"], 500000, "requested")
        equal(record["limits"]["wall"]["applied"], 500000, "applied")
        between(record["usage"]["wall_us"], 500000, 560000, "wall time used")
        check(wall < 3, "the command took %.1f s" % wall)


@test()
def wall_limit_of_one_millisecond():
    record, code, _, _ = run("import time; time.sleep(60)", wall="1ms")
    ends(record, "timeout", "wall_time")
    equal(code, 124, "exit code")


@test()
def cpu_limit_ends_a_busy_loop():
    with hostile():
        record, code, _, _ = run("while True: pass", cpu="500ms", wall="20s")
        ends(record, "timeout", "cpu_time")
        equal(code, 124, "exit code")
        hit(record, "cpu")
        between(record["usage"]["cpu_us"], 500000, 600000, "CPU time used")


@test()
def cpu_of_four_threads_is_counted_together():
    # Threads of Python take turns; four processes and four C threads do not.
    source = r"""
#include <pthread.h>
static void *burn(void *p) { for (volatile unsigned long i = 0;; i++) { } return p; }
int main(void) { pthread_t t[4]; for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, burn, 0); pthread_join(t[0], 0); }
"""
    record, _, _, _ = run(source, "c", cpu="600ms", wall="20s", cpus="2")
    ends(record, "timeout", "cpu_time")
    between(record["usage"]["cpu_us"], 600000, 720000, "CPU time of all threads")
    check(record["usage"]["wall_us"] < 590000 or os.cpu_count() < 2 or os.getloadavg()[0] > 2.5,
          "four threads on two CPUs took %d us of wall" % record["usage"]["wall_us"])


@test()
def cpu_of_unwaited_grandchildren_is_counted():
    record, _, _, _ = run(r"""
import os, time
def burn(s):
    end = time.process_time() + s
    while time.process_time() < end: pass
r, w = os.pipe()
for i in range(10):
    if os.fork() == 0:
        if os.fork() == 0:
            burn(0.05); os._exit(0)
        os._exit(0)
os.close(w); os.read(r, 1)  # end of file when the last of them is gone, of whom nobody is waited for
""", cpu="5s", wall="20s")
    ends(record, "ok", None)
    # 10 x 50 ms in processes that nobody waits for; the rest is the interpreter.
    between(record["usage"]["cpu_us"], 500000, 800000, "CPU time with grandchildren")
    record, _, _, _ = run(r"""
import os
for i in range(8):
    if os.fork() == 0:
        if os.fork() == 0:
            while True: pass
        os._exit(0)
import time; time.sleep(30)
""", cpu="400ms", wall="20s")
    ends(record, "timeout", "cpu_time")


@test()
def cpu_rate_is_held():
    record, _, _, wall = run("import time\nend=time.process_time()+0.3\nwhile time.process_time()<end: pass", cpus="0.25")
    ends(record, "ok", None)
    check(record["usage"]["wall_us"] > 900000, "0.3 s of CPU at 0.25 CPUs took %d us" % record["usage"]["wall_us"])
    equal(record["limits"]["cpus"]["applied"], 250, "applied")


# ---- memory: one limit for every way to take it ----

MEMORY = {
    "heap": "b = bytearray(200 << 20)\nfor i in range(0, len(b), 4096): b[i] = 1",
    "memfd": "import os\nfor k in range(20):\n    f = os.memfd_create('x')\n    for i in range(16): os.write(f, b'x' * (1 << 20))",
    "tmpfs": "f = open('/tmp/x', 'wb')\nwhile True: f.write(b'x' * (1 << 20)); f.flush()",
    "dev_shm": "f = open('/dev/shm/x', 'wb')\nwhile True: f.write(b'x' * (1 << 20)); f.flush()",
    "mapped_file": "import mmap, os\nf = os.open('/work/x', os.O_RDWR | os.O_CREAT)\nos.ftruncate(f, 50 << 20)\n"
                   "m = mmap.mmap(f, 50 << 20)\nn = mmap.mmap(-1, 200 << 20)\n"
                   "for i in range(0, 50 << 20, 4096): m[i] = 1\nfor i in range(0, 200 << 20, 4096): n[i] = 1",
    "sysv_shm": "import ctypes\nl = ctypes.CDLL(None, use_errno=True)\nl.shmat.restype = ctypes.c_void_p\n"
                "for k in range(40):\n"
                "    i = l.shmget(0, ctypes.c_size_t(8 << 20), 0o1600)\n    assert i >= 0\n"
                "    p = l.shmat(i, None, 0)\n    ctypes.memset(p, 1, 8 << 20)",
    "page_tables": "import ctypes\nl = ctypes.CDLL(None)\nl.mmap.restype = ctypes.c_void_p\n"
                   "l.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]\n"
                   "n = 1 << 40\np = l.mmap(None, n, 1, 0x4022, -1, 0)\nassert p not in (None, 2**64 - 1)\n"
                   "a = ctypes.c_char\nfor at in range(0, n, 2 << 20): a.from_address(p + at).value",
    "pipes": "import os, fcntl\nkeep = []\ntry:\n    while True:\n        r, w = os.pipe(); keep.append((r, w))\n"
             "        os.set_blocking(w, False)\n        try: fcntl.fcntl(w, 1031, 1 << 20)\n        except OSError: pass\n"
             "        try:\n            while True: os.write(w, b'x' * 65536)\n        except BlockingIOError: pass\n"
             "except OSError: pass\nb = bytearray(300 << 20)\nfor i in range(0, len(b), 4096): b[i] = 1",
    "children": "import os, time\nfor i in range(8):\n    if os.fork() == 0:\n        b = bytearray(20 << 20)\n"
                "        for j in range(0, len(b), 4096): b[j] = 1\n        time.sleep(30)\ntime.sleep(30)",
}


def memory_test(name, code):
    def attack_by():
        with hostile():
            extra = {"disk": "64M"} if name in ("tmpfs", "dev_shm", "mapped_file") else {}
            record, exit_code, _, wall = run(code, memory="64M", wall="20s", **extra)
            ends(record, "memory_limit", "memory")
            equal(exit_code, 137, "exit code")
            check("memory" in [n for n, v in record["limits"].items() if v["hit"]], "limits.memory.hit is not set")
            equal(record["limits"]["memory"]["applied"], 64 * MIB, "applied")
            between(record["usage"]["memory_peak_bytes"], 56 * MIB, 64 * MIB, "peak")
            check(wall < 10, "took %.1f s" % wall)
    attack_by.__name__ = "memory_limit_holds_for_" + name
    test(40)(attack_by)


for _name, _code in MEMORY.items():
    memory_test(_name, _code)


@test()
def memory_limit_counts_a_killed_child_though_main_exits_zero():
    record, code, _, _ = run(r"""
import os
if os.fork() == 0:
    b = bytearray(300 << 20)
    for i in range(0, len(b), 4096): b[i] = 1
os.wait()
print('main is fine')
""", memory="64M")
    ends(record, "memory_limit", "memory")
    equal(code, 137, "exit code")


@test()
def huge_reservation_is_not_use():
    record, _, _, _ = run("import mmap; m = mmap.mmap(-1, 8 << 30); m[0] = 1; print(len(m))", memory="64M")
    ends(record, "ok", None)


# ---- tasks ----

@test()
def fork_bomb_in_bash():
    with hostile():
        record, code, _, wall = run(":(){ :|:& };:\nwait\nsleep 1\nexit 3", "bash", wall="3s", processes=32)
        one_of((record["status"], record["cause"]), [("process_limit", "processes"), ("timeout", "wall_time"),
                                                     ("timeout", "cpu_time")], "verdict")
        check(record["limits"]["processes"]["hit"], "limits.processes.hit is not set")
        between(record["usage"]["processes_peak"], 16, 32, "peak of tasks")
        check(wall < 8, "took %.1f s" % wall)


@test()
def fork_bomb_in_python():
    with hostile():
        record, code, _, _ = run("import os\nwhile True: os.fork()", wall="5s", processes=32)
        ends(record, "process_limit", "processes")
        equal(code, 1, "exit code")
        check(record["usage"]["processes_peak"] <= 32, "peak of tasks %r" % record["usage"]["processes_peak"])


@test()
def thread_bomb():
    with hostile():
        record, _, _, _ = run(
            "import threading, time\nn = 0\nwhile True:\n    threading.Thread(target=time.sleep, args=(30,), daemon=True).start()\n    n += 1",
            wall="5s", processes=32)
        ends(record, "process_limit", "processes")
        between(record["usage"]["processes_peak"], 30, 32, "peak of tasks")


@test()
def a_refused_task_that_is_handled_is_success():
    record, code, _, _ = run(r"""
import os, time
n = 0
try:
    while True:
        if os.fork() == 0: time.sleep(30)
        n += 1
except BlockingIOError: print(n)
""", processes=10)
    ends(record, "ok", None)
    equal(out(record), "9\n", "children besides the main process")
    hit(record, "processes")


@test()
def one_task_is_enough_for_a_plain_program():
    record, _, _, _ = run("print('alone')", processes=1)
    ends(record, "ok", None)


# ---- scratch ----

@test()
def disk_bytes():
    with hostile():
        record, code, _, _ = run("n = 0\nwhile True:\n    n += 1\n    with open('f%d' % n, 'wb', 0) as f:\n        f.write(b'x' * 65536)\n        if f.tell() < 65536: f.write(b'y')", disk="4M")
        ends(record, "disk_limit", "disk_bytes")
        equal(code, 1, "exit code")
        check(record["limits"]["disk"]["hit"], "limits.disk.hit is not set")
        equal(record["limits"]["disk"]["applied"], 4 * MIB, "applied")
        between(record["usage"]["scratch_bytes"], 4 * MIB - 65536, 4 * MIB + 8192, "scratch used")
        equal(record["error"]["type"], "OSError", "error type")


@test()
def one_endless_file_is_a_full_disk():
    # The commonest way to fill the disk. The default of --file-size must not turn it into an error of unknown cause.
    record, code, _, _ = run("f = open('big', 'wb')\nwhile True: f.write(b'x' * 65536); f.flush()", disk="4M")
    ends(record, "disk_limit", "disk_bytes")


@test()
def disk_limit_is_one_for_work_tmp_and_shm():
    value, record = attack(r"""
sizes = []
for path in ('/work/a', '/tmp/b', '/dev/shm/c'):
    n = 0
    try:
        with open(path, 'wb', buffering=0) as f:
            while n < 1 << 20: n += f.write(b'x' * 65536)
    except OSError as e: pass
    sizes.append(n)
tell(sizes=sizes)
""", disk="2M")
    # The room of the inputs (here main.py and a folder's block) comes on top of what was asked for.
    between(sum(value["sizes"]), 2 * MIB - 65536, 2 * MIB + 8192, "bytes in all three folders")


@test()
def inodes():
    with hostile():
        record, code, _, _ = run("i = 0\nwhile True:\n    open('f%d' % i, 'w').close(); i += 1", inodes=200)
        ends(record, "disk_limit", "inodes")
        equal(code, 1, "exit code")
        check(record["limits"]["inodes"]["hit"], "limits.inodes.hit is not set")
        between(record["usage"]["scratch_inodes"], 195, 200 + 9, "inodes used, with those kept for inputs")


@test()
def file_size_limit():
    value, _ = attack(r"""
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
f = open('f', 'wb', buffering=0)
tell(first=f.write(b'x' * 1000), second=f.write(b'x' * 1000), third=tried(f.write, b'x'))
""", file_size=1500)
    equal(value, {"first": 1000, "second": 500, "third": "EFBIG"}, "writes")
    record, code, _, _ = run("import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_DFL)\nopen('f','wb',0).write(b'x'*10)\nopen('f','ab',0).write(b'x'*10)", file_size=10)
    ends(record, "runtime_error", "signal")
    equal((record["signal_name"], code), ("SIGXFSZ", 128 + signal.SIGXFSZ), "signal")


@test()
def open_files_limit():
    value, _ = attack(r"""
keep = []
while True:
    r = tried(os.open, '/dev/null', 0)
    if isinstance(r, str): break
    keep.append(r)
tell(last=max(keep), error=r)
""", open_files=32)
    equal(value, {"last": 31, "error": "EMFILE"}, "descriptors")


@test()
def stack_limit():
    source = "#include <string.h>\nint f(int n) { volatile char b[65536]; memset((void *)b, n, sizeof b); return n ? f(n - 1) + b[0] : 0; }\nint main(int c, char **v) { (void)v; return f(64 * c) & 0; }\n"
    record, code, _, _ = run(source, "c", stack="1M")
    ends(record, "runtime_error", "signal")
    equal((record["signal_name"], code), ("SIGSEGV", 139), "signal")
    record, code, _, _ = run(source, "c", stack="16M")
    ends(record, "ok", None)


# ---- output ----

@test()
def output_below_the_limit_is_whole():
    record, _, _, _ = run("import sys\nsys.stdout.write('a' * 1000)\nsys.stderr.write('b' * 500)", output="1500")
    ends(record, "ok", None)
    hit(record)
    equal((out(record), err(record)), ("a" * 1000, "b" * 500), "streams")


@test()
def output_head_tail_counts_and_digest():
    program = "import sys\nfor i in range(100000): sys.stdout.write('%09d\\n' % i)"
    record, code, _, _ = run(program, output="10000")
    whole = "".join("%09d\n" % i for i in range(100000)).encode()
    ends(record, "ok", None)
    equal(code, 0, "exit code")
    hit(record, "output")
    stream = record["stdout"]
    kept, head = stream_bytes(stream), stream["head_bytes"]
    equal(stream["bytes"], len(whole), "bytes")
    equal(stream["sha256"], hashlib.sha256(whole).hexdigest(), "sha256 of all of it")
    equal(stream["truncated"], True, "truncated")
    between(stream["kept_bytes"], 9900, 10000, "kept")
    # Head 1/4, tail 3/4 of the share.
    between(head, stream["kept_bytes"] // 4 - 8, stream["kept_bytes"] // 4 + 8, "head")
    check(whole.startswith(kept[:head]) and whole.endswith(kept[head:]), "head and tail are not those of the output")


@test()
def each_stream_is_guaranteed_half():
    record, _, _, _ = run("import sys\nsys.stderr.write('e' * 100000)\nsys.stdout.write('o' * 4000)", output="10000")
    equal(out(record), "o" * 4000, "stdout within its half")
    between(record["stderr"]["kept_bytes"], 5900, 6000, "stderr gets the rest")


@test()
def output_is_cut_on_character_borders():
    record, _, _, _ = run("print('€' * 100000, end='')", output="1000")
    equal(record["stdout"]["encoding"], "utf-8", "encoding")
    equal(set(out(record)), {"€"}, "characters")
    record, _, _, _ = run("import sys; sys.stdout.buffer.write(b'ok\\xff\\xfe\\x00')")
    equal((record["stdout"]["encoding"], stream_bytes(record["stdout"])), ("base64", b"ok\xff\xfe\x00"), "bytes")
    record, _, _, _ = run("import sys; sys.stdout.buffer.write(b'nul\\x00esc\\x1b[31m\\xed\\xa0\\x80')")
    equal(stream_bytes(record["stdout"]), b"nul\x00esc\x1b[31m\xed\xa0\x80", "a lone surrogate")


@test()
def output_total_kills():
    with hostile():
        record, code, _, wall = run("import sys\nwhile True: sys.stdout.write('x' * 65536)", output="64K", output_total="1M")
        ends(record, "output_limit", "output_bytes")
        equal(code, 1, "exit code")
        hit(record, "output", "output_total")
        between(record["stdout"]["bytes"], MIB, 3 * MIB, "bytes")


@test()
def output_exactly_at_the_limits_is_no_hit():
    record, _, _, _ = run("import sys\nsys.stdout.write('x' * 65536)", output="64K", output_total="64K")
    ends(record, "ok", None)
    hit(record)
    record, code, _, _ = run("import sys\nsys.stdout.write('x' * 65537)", output="64K", output_total="64K")
    ends(record, "output_limit", "output_bytes")
    hit(record, "output", "output_total")


# ---- endings ----

@test(60)
def exit_codes_pass_through():
    for code in (1, 2, 42, 124, 125, 126, 127, 137, 255):
        record, got, _, _ = run("exit %d" % code, "bash")
        ends(record, "runtime_error", "exit_code")
        equal((got, record["exit_code"], record["signal"]), (code, code, None), "exit %d" % code)


@test(60)
def signals_pass_through():
    for number in (1, 2, 6, 9, 11, 13, 15, 64):
        record, got, _, _ = run("kill -%d $$" % number, "bash")
        ends(record, "runtime_error", "signal")
        equal((got, record["exit_code"], record["signal"]), (128 + number, None, number), "signal %d" % number)
        check(number > 31 or record["signal_name"] == signal.Signals(number).name, "name %r" % record["signal_name"])


@test()
def a_signal_sent_by_the_program_to_itself_is_no_limit():
    record, code, _, _ = run("import os; os.kill(os.getpid(), 9)")
    ends(record, "runtime_error", "signal")
    equal(code, 137, "exit code")
    hit(record)
    record, code, _, _ = run("import sys; sys.exit(137)")
    ends(record, "runtime_error", "exit_code")


@test()
def other_ways_to_end():
    record, code, _, _ = run("import os, threading, time\nthreading.Thread(target=lambda: os._exit(7)).start()\ntime.sleep(20)")
    equal((record["status"], code), ("runtime_error", 7), "exit from a second thread")
    source = "#include <pthread.h>\n#include <stdio.h>\n#include <unistd.h>\nstatic void *f(void *p) { usleep(100000); puts(\"second\"); return p; }\nint main(void) { pthread_t t; pthread_create(&t, 0, f, 0); pthread_exit(0); }"
    record, code, _, _ = run(source, "c")
    equal((record["status"], code, out(record)), ("ok", 0, "second\n"), "main thread gone first")
    record, code, _, _ = run("import os\nos.closerange(0, 1024)\nos._exit(0)")
    equal((record["status"], code, out(record)), ("ok", 0, ""), "silent with all descriptors closed")
    record, code, _, _ = run("import sys; sys.stdout.write('partial')")
    equal(out(record), "partial", "a line without an end")


# ---- errors ----

@test()
def syntax_errors():
    for code, type_, line in (("print(1\n", "SyntaxError", 1), ("x = 1\nif x:\n\ty = 1\n        z = 2\n", "TabError", 4),
                              ("def f():\npass\n", "IndentationError", 2), ("a = 1\nb = = 2\n", "SyntaxError", 2)):
        record, got, _, _ = run(code)
        equal(record["status"], "syntax_error", "status of %r" % code)
        equal((got, record["error"]["type"], record["error"]["file"], record["error"]["line"]), (1, type_, "main.py", line),
              "error of %r" % code)
    record, got, _, _ = run("echo before\nif true; then\n", "bash")
    equal((record["status"], got, out(record)), ("syntax_error", 2, "before\n"), "bash")
    check(record["error"] is not None and record["error"]["line"] == 3, "bash's error: %r" % record["error"])


@test()
def syntax_error_raised_at_run_time_is_a_runtime_error():
    record, code, _, _ = run("x = 1\neval('1 +')\n")
    ends(record, "runtime_error", "exception")
    equal((record["error"]["type"], record["error"]["file"], record["error"]["line"]), ("SyntaxError", "main.py", 2), "error")
    record, _, _, _ = run("eval 'if true; then'; exit 2", "bash")
    ends(record, "runtime_error", "exit_code")
    record, _, _, _ = run("import sys; sys.exit(1)")
    ends(record, "runtime_error", "exit_code")


@test()
def a_program_that_rewrites_itself_can_not_forge_a_syntax_error():
    record, code, _, _ = run("import os, sys\nos.unlink('main.py')\nopen('main.py', 'w').write('(((')\nsys.exit(1)")
    ends(record, "runtime_error", "exit_code")
    record, code, _, _ = run("import sys\nprint('  File \"main.py\", line 1\\nSyntaxError: forged', file=sys.stderr)\nsys.exit(1)")
    equal(record["status"], "runtime_error", "status with a forged message")


@test()
def uncaught_exceptions():
    record, code, _, _ = run("def f(x):\n    return 1 / x\n\nf(0)\n")
    ends(record, "runtime_error", "exception")
    equal({k: record["error"][k] for k in ("type", "message", "file", "line")},
          {"type": "ZeroDivisionError", "message": "division by zero", "file": "main.py", "line": 2}, "error")
    equal(code, 1, "exit code")
    record, _, _, _ = run("class My(Exception): pass\nraise My('two\\nlines')")
    one_of(record["error"]["type"], ("My", "__main__.My"), "type of an error whose message has two lines")
    record, _, _, _ = run("import json\njson.loads('{')")
    equal((record["error"]["type"], record["error"]["line"]), ("json.decoder.JSONDecodeError", 2), "error in a library")
    record, _, _, _ = run("raise ValueError('\\x1b[31m\\udc80 x')")
    equal(record["error"]["type"], "ValueError", "type")


@test()
def compile_errors():
    record, code, _, _ = run("int main(void) { return x; }", "c")
    ends(record, "compile_error", "exit_code")
    equal((code, record["error"]["file"], record["error"]["line"]), (1, "main.c", 1), "error")
    check("undeclared" in record["error"]["message"], "message %r" % record["error"]["message"])
    check("undeclared" in stream_bytes(record["compile"]["stderr"]).decode(), "the compiler's output is not in the record")
    equal(record["compile"]["exit_code"], 1, "compile.exit_code")
    record, code, _, _ = run("int f(void); int main(void) { return f(); }", "c")
    ends(record, "compile_error", "exit_code")
    record, code, _, _ = run("#include <stdio.h>\nint main(void) { puts(\"hi\"); return 5; }", "c")
    ends(record, "runtime_error", "exit_code")
    equal((code, out(record), record["compile"]["exit_code"]), (5, "hi\n", 0), "a good C program")


@test(60)
def compile_time_attacks_are_held_by_the_same_limits():
    with hostile():
        record, _, _, _ = run("#include \"/dev/zero\"\nint main(void){return 0;}", "c", memory="128M", wall="5s", cpu="3s")
        one_of(record["status"], ("compile_error", "timeout", "memory_limit"), "endless include")
        record, _, _, _ = run("char a[1UL << 40] = {1};\nint main(void){return a[0];}", "c", memory="128M", wall="5s", cpu="3s")
        one_of(record["status"], ("compile_error", "disk_limit", "memory_limit", "timeout"), "a terabyte of data")
        secret = write(scratch("secret"), "HOST-SECRET-IN-A-FILE")
        record, _, _, _ = run("__asm__(\".incbin \\\"%s\\\"\");\nint main(void){return 0;}" % secret, "c")
        ends(record, "compile_error", "exit_code")
        check(b"HOST-SECRET-IN-A-FILE" not in json.dumps(record).encode(), "the host's file was included")
        record, _, _, _ = run("#include \"%s\"\nint main(void){return 0;}" % secret, "c")
        ends(record, "compile_error", "exit_code")
        check("HOST-SECRET-IN-A-FILE" not in json.dumps(record), "the host's file was included")


# ---- stdin, environment, arguments ----

@test()
def stdin_is_closed_unless_given():
    record, _, _, _ = run("import sys; print(repr(sys.stdin.read()))")
    equal(out(record), "''\n", "what was read")


@test()
def stdin_from_a_file_a_pipe_and_big():
    record, _, _, _ = run("import sys; print(sys.stdin.read()[::-1])", stdin=b"abc")
    equal(out(record), "cba\n", "a pipe")
    path = write(scratch("in"), b"\x00\xff" * 500000)
    ending = invoke(command("import sys, hashlib; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())", stdin=path))
    equal(out(record_of(ending)).strip(), hashlib.sha256(b"\x00\xff" * 500000).hexdigest(), "a million bytes")
    record, _, _, _ = run("print('does not read')", stdin=b"x" * 3000000)
    ends(record, "ok", None)
    record, _, _, wall = run("import sys; sys.stdin.close(); import time; time.sleep(0.2); print('closed')", stdin=b"y" * 3000000)
    ends(record, "ok", None)


@test()
def stdin_that_never_ends_does_not_hold_the_run():
    reader, writer = os.pipe()
    ending = invoke(command("import sys; print(sys.stdin.readline())", stdin="-", wall="1s"), stdin_file=reader, timeout=10)
    os.close(reader)
    ends(record_of(ending), "timeout", "wall_time")
    reader2, writer2 = os.pipe()
    os.write(writer2, b"one\n")
    ending = invoke(command("import sys; print(sys.stdin.readline())", stdin="-", wall="8s"), stdin_file=reader2, timeout=5)
    equal(out(record_of(ending)), "one\n\n", "a line from a pipe that stays open")


@test()
def environment_is_built_from_nothing():
    environ = dict(os.environ, SECRET_TOKEN="hunter2-environment", AWS_SECRET_ACCESS_KEY="hunter2-aws", LD_PRELOAD="", PYTHONPATH="/x")
    record, _, stderr, _ = run("import os, json; print(json.dumps(dict(os.environ)))", environ=environ, env=["A=1", "B=x=y", "EMPTY=", "HOME=/work"])
    seen = json.loads(out(record))
    equal({k: seen.get(k) for k in ("A", "B", "EMPTY", "HOME")}, {"A": "1", "B": "x=y", "EMPTY": "", "HOME": "/work"}, "given")
    check(not {"SECRET_TOKEN", "AWS_SECRET_ACCESS_KEY", "PYTHONPATH", "LD_PRELOAD", "USER", "SHELL"} & set(seen), "inherited: %r" % sorted(seen))
    check("hunter2" not in json.dumps(record) + stderr, "a secret of the caller is in the record")


@test()
def arguments():
    given = ["a b", "", "--json", "-x", "ä€", "'\"\\", "$HOME", "*"]
    record, _, _, _ = run("import sys, json; print(json.dumps(sys.argv[1:]))", args=given)
    equal(json.loads(out(record)), given, "arguments")
    unescaped = [re.sub(r"\\x([0-9A-Fa-f]{2})", lambda m: chr(int(m[1], 16)), a) for a in record["request"]["arguments"]]
    equal(unescaped, given, "request.arguments")
    ending = invoke(command("import sys, os; print([os.fsencode(a) for a in sys.argv[1:]])", args=[b"\xff\xfe"]))
    record = record_of(ending)
    equal(out(record), "[b'\\xff\\xfe']\n", "an argument that is not UTF-8")


# ---- files ----

@test()
def input_files_are_read_only_and_at_their_names():
    base = scratch()
    write(os.path.join(base, "a.txt"), "alpha")
    os.makedirs(os.path.join(base, "d", "e"))
    write(os.path.join(base, "d", "e", "x"), "xx")
    os.mkdir(os.path.join(base, "d", "empty"))
    value, record = attack(r"""
tell(a=open('a.txt').read(), b=open('sub/dir/b').read(), x=open('d/e/x').read(), empty=os.listdir('d/empty'),
     write=tried(open, 'a.txt', 'w'), append=tried(open, 'd/e/x', 'a'), chmod=tried(os.chmod, 'a.txt', 0o666),
     truncate=tried(os.truncate, 'a.txt', 0), main=tried(open, 'main.py', 'w'), cwd=os.getcwd())
""", file=["%s/a.txt" % base, "%s/a.txt:sub/dir/b" % base, "%s/d" % base])
    equal(value, {"a": "alpha", "b": "alpha", "x": "xx", "empty": [], "write": "EACCES", "append": "EACCES", "chmod": "EPERM",
                  "truncate": "EACCES", "main": "EACCES", "cwd": "/work"}, "what the program saw")
    equal(record["artifacts"], [], "artifacts of a program that left nothing")
    equal([(i["name"], i["bytes"]) for i in record["request"]["inputs"] if i["sha256"]],
          [("a.txt", 5), ("sub/dir/b", 5), ("d/e/x", 2)], "request.inputs")
    equal(open(os.path.join(base, "a.txt")).read(), "alpha", "the host's file")


@test()
def created_changed_and_deleted_files():
    a, b = write(scratch("a"), "1"), write(scratch("b"), "2")
    record, _, _, _ = run("import os\nos.unlink('a')\nos.rename('b', 'c')\nopen('b', 'w').write('new')\nos.makedirs('n/m')\nopen('n/m/f', 'w').write('x')\nos.unlink('main.py')",
                          file=[a, b])
    ends(record, "ok", None)
    files = record["files"]
    equal(sorted(files["deleted"]), ["a", "main.py"], "deleted")
    equal(files["changed"], ["b"], "changed")
    check({"c", "n/m/f"} <= set(files["created"]), "created: %r" % files["created"])
    found = {i["path"]: i for i in record["artifacts"]}
    equal(found["n/m/f"]["sha256"], hashlib.sha256(b"x").hexdigest(), "digest")
    equal(found["n/m/f"]["exported"], False, "exported without --out")


# ---- artifacts ----

def artifact(record, path):
    found = [item for item in record["artifacts"] if item["path"] == path]
    equal(len(found), 1, "artifacts named %r among %.500r" % (path, [i["path"] for i in record["artifacts"]]))
    return found[0]


def rules(item):
    return [finding["rule"] for finding in item["findings"]]


@test()
def artifacts_that_are_not_plain_files_carry_no_bytes():
    target = write(scratch("host-secret"), "SECRET-BEHIND-A-LINK")
    wanted = scratch("out")
    with hostile():
        record, _, _, wall = run(r"""
import os, socket
os.symlink('/etc/shadow', 'shadow'); os.symlink('/proc/self/environ', 'environ'); os.symlink(%r, 'decoy')
os.symlink('../../../../../../etc/passwd', 'up'); os.symlink('real.txt', 'inside'); os.symlink('/', 'root'); os.symlink('loop', 'loop')
os.mkfifo('fifo'); s = socket.socket(socket.AF_UNIX); s.bind('sock')
open('real.txt', 'w').write('real'); os.link('real.txt', 'hard1'); os.link('real.txt', 'hard2')
os.mkdir('d'); os.symlink('/etc', 'd/etc')
""" % target, out=wanted)
        ends(record, "ok", None)
        check(wall < 5, "the collector took %.1f s" % wall)
    for name, finding in (("shadow", "symlink"), ("environ", "symlink"), ("decoy", "symlink"), ("up", "symlink"), ("inside", "symlink"),
                          ("root", "symlink"), ("loop", "symlink"), ("fifo", "fifo"), ("sock", "socket"), ("d/etc", "symlink")):
        item = artifact(record, name)
        equal((item["exported"], item["sha256"], finding in rules(item)), (False, None, True), name)
    check("several_names" in rules(artifact(record, "hard1")), "hard links are not told")
    check("SECRET-BEHIND-A-LINK" not in json.dumps(record), "content behind a link is in the record")
    exported = sorted(os.path.relpath(os.path.join(p, f), wanted) for p, _, fs in os.walk(wanted) for f in fs)
    equal(exported, ["hard1", "hard2", "real.txt"], "exported files")
    for name in exported:
        info = os.lstat(os.path.join(wanted, name))
        check(stat.S_ISREG(info.st_mode) and info.st_nlink == 1, "%s is not a plain file of its own" % name)


@test()
def sparse_files_are_capped_by_their_size():
    with hostile():
        record, _, _, wall = run("f = open('sparse', 'wb'); f.truncate(1 << 40)", file_size="4G")
        one_of(record["status"], ("runtime_error",), "beyond the file size limit")
        record, _, _, wall = run("f = open('sparse', 'wb'); f.truncate(4 << 30); f.seek(1 << 31); f.write(b'x')", file_size="4G", out=scratch("o"))
        ends(record, "ok", None)
        item = artifact(record, "sparse")
        equal((item["bytes"], item["exported"], item["sha256"]), (4 << 30, False, None), "a sparse file")
        check(wall < 2, "took %.1f s" % wall)


@test()
def odd_names():
    wanted = scratch("out")
    names = [b"new\nline", b"tab\there", b"\xff\xfe", b"esc\x1b[31m", b"back\\slash", b"-rf", b" ", b"quote'\"", "ünï".encode(), b"%s%n", b"a" * 255]
    record, _, _, _ = run("import os\nfor n in %r: open(n, 'w').write('x')" % (names,), out=wanted)
    ends(record, "ok", None)
    equal(len(record["artifacts"]), len(names), "artifacts")
    equal(sorted(os.listdir(os.fsencode(wanted))), sorted(names), "exported names")
    import base64
    seen = {base64.b64decode(i["path_base64"]) if i["path_base64"] else i["path"].encode() for i in record["artifacts"]}
    equal(seen, set(names), "names in the record")
    for item in record["artifacts"]:
        check(not re.search(r"[\x00-\x1f\x7f]", item["path"]), "control characters in path %r" % item["path"])


@test()
def modes_zero_and_set_id_bits_do_not_hinder_collection():
    wanted = scratch("out")
    with hostile():
        record, _, _, _ = run(r"""
import os
os.mkdir('locked'); open('locked/f', 'w').write('in'); os.chmod('locked/f', 0); os.chmod('locked', 0)
open('zero', 'w').write('z'); os.chmod('zero', 0)
os.chmod('/work', 0)
""", out=wanted)
        ends(record, "ok", None)
    equal(sorted(i["path"] for i in record["artifacts"] if i["exported"]), ["locked/f", "zero"], "exported")
    equal(os.stat(os.path.join(wanted, "zero")).st_mode & 0o7777, 0o644, "mode")


@test(60)
def deep_folders():
    # Landlock looks at every parent, so each step costs more than the one before: 50,000 steps take a minute of the cell's CPU.
    with hostile():
        record, _, _, wall = run(r"""
import os, time
n, end = 0, time.monotonic() + 4
while n < 50000 and time.monotonic() < end: os.mkdir('d'); os.chdir('d'); n += 1
print(n)
""", inodes=60000, memory="1G", out=scratch("o"), wall="20s")
        ends(record, "ok", None)
        check(int(out(record)) > 500, "depth reached: %s" % out(record))
        check(record["timing"]["collect_us"] < 6000000, "collecting took %d us" % record["timing"]["collect_us"])
        check(record["timing"]["teardown_us"] < 6000000, "teardown took %d us" % record["timing"]["teardown_us"])
        check(record["files"]["omitted"] > 0, "nothing is counted as omitted")


@test(60)
def deep_folders_with_long_names():
    # The path is longer than PATH_MAX after 17 steps, well before any bound on depth.
    with hostile():
        record, _, _, _ = run("import os\nfor i in range(60): os.mkdir('d' * 250); os.chdir('d' * 250)\nopen('f', 'w').write('x')")
        ends(record, "ok", None)
        check(record["files"]["omitted"] > 0, "nothing is counted as omitted")


@test(60)
def two_hundred_thousand_files():
    with hostile():
        record, _, _, wall = run("import os\nfor i in range(200000): os.close(os.open('f%d' % i, 0o102))", inodes=250000, memory="1G", out=scratch("o"), wall="30s")
        ends(record, "ok", None)
        check(record["files"]["omitted"] >= 180000, "omitted: %r" % record["files"]["omitted"])
        check(record["timing"]["collect_us"] < 6000000, "collecting took %d us" % record["timing"]["collect_us"])
        check(len(json.dumps(record)) < 16 * MIB, "the record has %d bytes" % len(json.dumps(record)))


@test()
def export_is_all_or_nothing():
    for code, options, what in (("[open('f%d' % i, 'w').write('x') for i in range(5)]", {"artifact_count": 4}, "count"),
                                ("open('a', 'w').write('x'); open('b', 'w').write('x' * 2000)", {"artifact_size": 1000}, "size"),
                                ("open('a', 'w').write('x' * 800); open('b', 'w').write('x' * 800)", {"artifacts": 1000}, "total")):
        wanted = scratch("out")
        record, exit_code, _, _ = run(code, out=wanted, **options)
        equal(record["status"], "ok", what)
        check(not os.path.exists(wanted) and not any(i["exported"] for i in record["artifacts"]), "something was exported: %s" % what)
        check(any(record["limits"][name]["hit"] for name in ("artifacts", "artifact_size", "artifact_count")), "no hit: %s" % what)
        equal(os.listdir(os.path.dirname(wanted)), [], "left beside the folder")
    wanted = scratch()
    write(os.path.join(wanted, "mine"), "x")
    record, _, _, _ = run("open('a', 'w').write('x')", out=wanted)
    equal(os.listdir(wanted), ["mine"], "a folder that is not empty")
    link = scratch("link")
    os.symlink(scratch(), link)
    record, _, _, _ = run("open('a', 'w').write('x')", out=link)
    equal((os.path.islink(link), os.listdir(os.readlink(link))), (True, []), "a link as the folder")


@test()
def collect_pattern():
    wanted = scratch("out")
    record, _, _, _ = run("for n in ('a.csv', 'b.txt', 'c.csv'): open(n, 'w').write(n)", collect="*.csv", out=wanted)
    equal(sorted(os.listdir(wanted)), ["a.csv", "c.csv"], "exported")
    equal([i["exported"] for i in sorted(record["artifacts"], key=lambda i: i["path"]) if i["path"] != "b.txt"], [True, True], "told")


@test()
def rejected_results_are_not_exported():
    wanted = scratch("out")
    expected = write(scratch("e"), "right\n")
    record, code, _, _ = run("print('wrong'); open('f', 'w').write('x')", out=wanted, expect_stdout=expected)
    equal((code, record["acceptance"]["status"], os.path.exists(wanted)), (1, "rejected", False), "a wrong result")
    record, code, _, _ = run("print('right'); open('f', 'w').write('x')", out=wanted, expect_stdout=expected)
    equal((code, record["acceptance"]["status"], os.listdir(wanted)), (0, "accepted", ["f"]), "a right result")
    equal(record["release"]["status"], "not_authorised", "release")


# ---- what is left behind ----

@test()
def a_background_child_that_holds_the_pipe():
    with hostile():
        record, _, _, wall = run("(sleep 60; echo late) &\necho early", "bash")
        ends(record, "ok", None)
        equal(out(record), "early\n", "output")
        check(wall < 3, "the run took %.1f s" % wall)


@test()
def daemons_die_with_the_run():
    with hostile():
        record, _, _, wall = run(r"""
import os, signal, sys, time
for s in set(range(1, 65)) - {signal.SIGCHLD}:
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 100)
        time.sleep(300)
    os._exit(0)
os.wait(); time.sleep(0.1)
""")
        ends(record, "ok", None)
        check(wall < 3, "the run took %.1f s" % wall)


@test()
def nothing_is_kept_for_the_next_run():
    with hostile():
        run("import os\nfor d in ('/work', '/tmp', '/dev/shm', os.environ['HOME']): open(d + '/left-behind', 'w').write('x')\n"
            "import ctypes; l = ctypes.CDLL(None); l.shmget(4711, 4096, 0o1666); l.msgget(4711, 0o1666)")
        value, _ = attack("l = libc\ntell(files=[d for d in ('/work', '/tmp', '/dev/shm', os.environ['HOME']) if os.path.exists(d + '/left-behind')], "
                          "shm=l.shmget(4711, 4096, 0o600), msg=l.msgget(4711, 0o600), listing=os.listdir('/work') + os.listdir('/dev/shm'))")
        equal(value, {"files": [], "shm": -1, "msg": -1, "listing": ["main.py"]}, "what the second run found")


# ---- libraries under the default profile ----

LIBRARIES = {
    "numpy": ("import numpy as n; print(int((n.arange(9).reshape(3, 3) @ n.eye(3)).sum()), round(float(n.linalg.det(n.eye(50))), 3))", "36 1.0\n"),
    "pandas": ("import pandas as p; d = p.DataFrame({'a': [1, 2, 2], 'b': [3, 4, 5]}); d.to_csv('o.csv'); print(d.groupby('a').b.sum().to_dict(), len(p.read_csv('o.csv')))", "{1: 3, 2: 9} 3\n"),
    "scipy": ("from scipy.optimize import brentq; print(round(brentq(lambda x: x * x - 2, 0, 2), 6))", "1.414214\n"),
    "sympy": ("import sympy as s; x = s.Symbol('x'); print(s.integrate(2 * x, x), s.factor(x**2 - 1))", "x**2 (x - 1)*(x + 1)\n"),
    "matplotlib": ("import matplotlib.pyplot as p; p.plot([1, 2, 3]); p.title('t'); p.savefig('p.png'); print(open('p.png', 'rb').read(4))", "b'\\x89PNG'\n"),
}


def library_test(name, code, wanted):
    def works():
        if subprocess.run(["/usr/bin/python3", "-c", "import " + name], capture_output=True, timeout=30).returncode:
            raise Skip("%s is not installed for /usr/bin/python3" % name)
        record, _, _, _ = run(code)
        ends(record, "ok", None)
        equal(out(record), wanted, "output")
        equal(err(record), "", "stderr")
    works.__name__ = "library_" + name
    test(60)(works)


for _name, (_code, _wanted) in LIBRARIES.items():
    library_test(_name, _code, _wanted)


@test(40)
def multiprocessing_pool_by_fork_and_spawn():
    for method in ("fork", "spawn", "forkserver"):
        record, _, _, _ = run("import multiprocessing as m\ndef f(x): return x * x\nif __name__ == '__main__':\n    m.set_start_method('%s')\n    with m.Pool(3) as p: print(sum(p.map(f, range(10))))" % method)
        ends(record, "ok", None)
        equal(out(record), "285\n", method)
    record, _, _, _ = run("from concurrent.futures import ProcessPoolExecutor as P\nfrom multiprocessing import shared_memory as s\nimport os\nm = s.SharedMemory(create=True, size=100)\nm.buf[0] = 7\no = s.SharedMemory(m.name)\nprint(o.buf[0])\no.close()\nm.close(); m.unlink()\nwith P(2) as p: print(list(p.map(abs, [-1, -2])))")
    equal((record["status"], out(record)), ("ok", "7\n[1, 2]\n"), "shared memory and executor: %s" % err(record)[-300:])


@test()
def subprocess_threads_and_tempfiles():
    record, _, _, _ = run(r"""
import subprocess, threading, tempfile, queue
print(subprocess.run('echo $((6*7)) | cat; exit 3', shell=True, capture_output=True, text=True))
q = queue.Queue()
ts = [threading.Thread(target=lambda i=i: q.put(i)) for i in range(20)]
[x.start() for x in ts]; [x.join() for x in ts]
print(sum(q.queue))
with tempfile.NamedTemporaryFile() as f: print(f.name.startswith('/tmp/'))
""")
    ends(record, "ok", None)
    equal(out(record), "CompletedProcess(args='echo $((6*7)) | cat; exit 3', returncode=3, stdout='42\\n', stderr='')\n190\nTrue\n", "output")


@test()
def servers_on_the_cells_own_loopback():
    record, _, _, _ = run(r"""
import asyncio, http.server, threading, urllib.request
async def main():
    async def serve(r, w):
        w.write((await r.readline()).upper()); await w.drain(); w.close()
    s = await asyncio.start_server(serve, '127.0.0.1', 0)
    r, w = await asyncio.open_connection('127.0.0.1', s.sockets[0].getsockname()[1])
    w.write(b'hello\n'); print((await r.readline()).decode().strip()); w.close()
asyncio.run(main())
h = http.server.ThreadingHTTPServer(('127.0.0.1', 8080), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=h.serve_forever, daemon=True).start()
print(b'ThreadingHTTPServer' in urllib.request.urlopen('http://127.0.0.1:8080/main.py').read())
print(urllib.request.urlopen('http://localhost:8080/main.py').status)
""")
    ends(record, "ok", None)
    equal(out(record), "HELLO\nTrue\n200\n", "output")
    check(record["network"]["attempts"] and all(a["decision"] == "allowed" for a in record["network"]["attempts"]),
          "attempts within the cell: %r" % record["network"]["attempts"])


@test()
def surroundings_are_neutral():
    value, _ = attack(r"""
import locale, platform, pwd, shutil
tell(lang=locale.getlocale()[1], tz=time.tzname, offset=time.timezone, home=os.path.expanduser('~'), home_writable=tried(open, os.path.expanduser('~/x'), 'w'),
     cache=tried(os.makedirs, os.path.expanduser('~/.cache/deep')), user=pwd.getpwuid(os.getuid()).pw_name, host=socket.gethostname(),
     shm=tried(open, '/dev/shm/x', 'w'), enc=sys.getfilesystemencoding(), out=sys.stdout.encoding, tmp=os.access('/tmp', 7),
     machine=open('/etc/machine-id').read().strip(), uid=os.getuid(), groups=os.getgroups())
""")
    equal({k: value[k] for k in ("lang", "offset", "home", "home_writable", "cache", "shm", "enc", "out", "tmp")},
          {"lang": "UTF-8", "offset": 0, "home": "/tmp/home", "home_writable": "done", "cache": "done", "shm": "done", "enc": "utf-8", "out": "utf-8", "tmp": True}, "surroundings")
    check(value["host"] != os.uname().nodename, "the host's name is visible")
    with open("/etc/machine-id") as file:
        check(value["machine"] != file.read().strip(), "the host's machine-id is visible")
    check(value["uid"] != 0 and value["groups"] in ([], [value["uid"]]), "ids %r %r" % (value["uid"], value["groups"]))


@test()
def deterministic_runs_repeat():
    code = "print(hash('a'), hash('hotcell'), [x for x in {'a', 'b', 'c', 'dd', 'ee'}])"
    seen = [out(run(code, deterministic=True)[0]) for _ in range(3)]
    equal(len(set(seen)), 1, "outputs of three runs")
    free = {out(run(code)[0]) for _ in range(3)}
    check(len(free) > 1, "without --deterministic the hash seed is the same in three runs")
    record, _, _, _ = run("import os; print(os.environ['PYTHONHASHSEED'])", **{"deterministic=7": True})
    equal(out(record), "7\n", "seed")
    check("hash_seed" in record["runtime"]["deterministic"], "the record does not say what was fixed")


# ---- the command without --json ----

@test()
def live_output_and_one_plain_line():
    ending = invoke(command("import sys; print('to out'); print('to err', file=sys.stderr)", json_=False))
    equal((ending.code, ending.stdout, ending.stderr), (0, b"to out\n", b"to err\n"), "success says nothing more")
    ending = invoke(command("import sys; sys.stdout.buffer.write(b'\\xff\\x00\\x1b[31m'); sys.exit(5)", json_=False))
    equal((ending.code, ending.stdout), (5, b"\xff\x00\x1b[31m"), "raw bytes when stdout is no terminal")
    equal(len(ending.stderr.splitlines()), 1, "lines on stderr: %r" % ending.stderr)
    check(b"exit code 5" in ending.stderr, "the line is %r" % ending.stderr)
    ending = invoke(command("import time; time.sleep(20)", json_=False, wall="200ms"))
    check(ending.code == 124 and ending.stderr.count(b"\n") == 1 and b"timeout" in ending.stderr and b"--wall" in ending.stderr, "timeout: %d %r" % (ending.code, ending.stderr))
    process = subprocess.Popen(command("import time\nprint('first', flush=True)\ntime.sleep(1.5)\nprint('second')", json_=False), stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    began = time.monotonic()
    line = process.stdout.readline()
    check(line == b"first\n" and time.monotonic() - began < 1.2, "the first line came after %.2f s: %r" % (time.monotonic() - began, line))
    rest, _ = process.communicate(timeout=10)
    equal((rest, process.returncode), (b"second\n", 0), "the rest")


@test()
def escape_sequences_are_made_visible_on_a_terminal():
    master, slave = pty.openpty()
    process = subprocess.Popen(command(r"import sys; sys.stdout.buffer.write(b'\x1b]0;title\x07\x1b[2Jtext\x9b31m\r\x08 \xc2\x9b \xe2\x82\xac\n')", json_=False),
                               stdin=subprocess.DEVNULL, stdout=slave, stderr=slave)
    os.close(slave)
    data = b""
    while select.select([master], [], [], 5)[0]:
        try:
            piece = os.read(master, 4096)
        except OSError:
            break
        if not piece:
            break
        data += piece
    equal(process.wait(10), 0, "exit code")
    check(b"\x1b" not in data and b"\x07" not in data and b"\x08" not in data and b"\xc2\x9b" not in data and b"\x9b" not in data.replace(b"\xe2\x82\xac", b""), "control characters pass: %r" % data)
    check(b"title" in data and b"text" in data and "€".encode() in data, "text is lost: %r" % data)


@test(40)
def a_reader_that_stops_reading_does_not_make_the_command_immortal():
    process = subprocess.Popen(command("print('x' * 10**6)", json_=False, wall="1s"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        time.sleep(2.5)
        check(process.poll() is None or process.returncode == 124, "ended with %r though nobody read" % process.returncode)
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            raise Failure("SIGTERM does not end a command whose reader has stopped (waiting in drain, signals are blocked)")
    finally:
        process.kill()


@test()
def a_reader_that_goes_away_does_not_end_the_run():
    process = subprocess.Popen(command("import time\nfor i in range(20000): print('x' * 100)\nopen('done', 'w').write('d')", json_=False, out=scratch("o")), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    process.stdout.close()
    equal(process.wait(20), 0, "exit code")


@test()
def cancelling():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        before = host_counters()
        process = start("import time; print('up', flush=True); time.sleep(60)")
        time.sleep(0.5)
        process.send_signal(number)
        record = finish(process, 5)
        ends(record, "cancelled", "client")
        equal(process.returncode, 130, "exit code")
        unchanged(before)


# ---- side by side ----

@test()
def eight_runs_at_once():
    before = host_counters()
    with_new_store = scratch("store")
    running = [start("import time; time.sleep(0.3); print(%d)" % i, store=with_new_store) for i in range(8)]
    records = [finish(process) for process in running]
    equal([out(record) for record in records], ["%d\n" % i for i in range(8)], "outputs")
    equal({record["status"] for record in records}, {"ok"}, "statuses")
    equal(len({record["isolation"]["uid"] for record in records}), 8, "host ids")
    equal(sorted(record["chain"]["seq"] for record in records), list(range(1, 9)), "places in the chain")
    digests = {record["chain"]["seq"]: record["chain"] for record in records}
    for seq in range(2, 9):
        equal(digests[seq]["previous_sha256"], digests[seq - 1]["sha256"], "link %d" % seq)
    unchanged(before)


if __name__ == "__main__":
    sys.exit(main())
