#!/usr/bin/env python3
"""Wrong and hostile requests: each is answered by one valid JSON document that names the field, with the exit code of the table,
and leaves nothing behind.

    HOTCELL=build/hotcell test/cell/test_bad_input.py [--list] [--times] [part of a name]...
"""
import json
import os
import resource
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "support"))
from hotcell_test import *  # noqa: E402,F403
import hotcell_test as t  # noqa: E402


def refused(arguments, field, cause="field", names=None, **more):
    """Runs `hotcell run --json` with the arguments; checks the refusal and that plain output is one line."""
    before = host_counters()
    store = os.path.join(t.folder(), "store")
    head = [HOTCELL, "run", "--json", "--store", store]
    ending = invoke(head + arguments, timeout=20, **more)
    check(ending.stdout, "no JSON document for %.200r (exit code %d, stderr %.300r)" % (arguments, ending.code, ending.stderr))
    record = record_of(ending)
    equal((record["state"], record["status"], record["cause"]), ("refused", "refused", cause), "verdict of %.200r: %.300r" % (arguments, record["error"]))
    equal(ending.code, 127 if cause == "runtime" else 125, "exit code of %.200r" % (arguments,))
    if field is not None:
        one_of(record["error"]["field"], field if isinstance(field, tuple) else (field,), "field of %.200r (%.200r)" % (arguments, record["error"]["message"]))
    if names is not None:
        check(names in record["error"]["message"], "the message %.300r does not speak of %r" % (record["error"]["message"], names))
    check(record["stdout"] is None and record["exit_code"] is None and record["usage"] is None, "a refused run has facts")
    equal(ending.stderr, b"", "stderr beside --json")
    unchanged(before)
    return record


# ---- the command line ----

@test()
def unknown_options_and_words():
    refused(["--no-such-flag", "-c", "1"], "arguments", names="no-such-flag")
    refused(["-Z", "-c", "1"], "arguments")
    refused(["--wall"], "arguments", names="wall")
    refused(["--json=yes", "-c", "1"], "arguments", names="json")
    refused(["--profile", "nope", "-c", "1"], "profile", names="nope")
    refused(["--network", "host", "-c", "1"], "network", names="host")
    refused(["--allow", "nope", "-c", "1"], "allow", names="nope")
    refused(["--allow", "seccomp", "-c", "1"], "allow", names="seccomp")
    for grade in ("E", "a", "", "AB"):
        refused(["--min-grade", grade, "-c", "1"], "min-grade")
    refused(["--deterministic=x", "-c", "1"], "deterministic")
    refused(["--deterministic=", "-c", "1"], "deterministic")
    refused(["--collect", "*" * 7, "-c", "1"], "collect")
    refused(["--collect", "", "-c", "1"], "collect")


@test()
def unknown_languages():
    refused(["-l", "cobol", "-c", "1"], "language", "runtime", names="cobol")
    refused(["-l", "python@2.7", "-c", "1"], "language", "runtime", names="2.7")
    refused(["-l", "python@", "-c", "1"], "language", "runtime")
    refused(["-l", "", "-c", "1"], "language", "runtime")
    refused(["-l", "../../etc/passwd", "-c", "1"], "language", "runtime")
    refused(["-l", "%s%n%s%n", "-c", "1"], "language", "runtime", names="%s%n")
    refused(["-l", "x" * 100000, "-c", "1"], "language", "runtime")


@test()
def no_program_or_two():
    refused([], "code")
    refused(["-c", "1", "-c", "2"], "code")
    path = write(scratch("main.py"), "print(1)")
    refused(["-c", "1", path], "code")
    refused([path, "extra"], "arguments", names="extra")


@test()
def conflicting_options():
    refused(["--cold", "--warm", "-c", "1"], "warm")
    refused(["--stdin", "-", "-"], "stdin")
    refused(["--disk", "1G", "--memory", "64M", "-c", "1"], "disk", names="1G")
    refused(["--output", "2M", "--output-total", "1M", "-c", "1"], "output_total", names="1M")
    refused(["--env", "A=1", "--env", "A=2", "-c", "1"], "env", names="A")
    path = write(scratch("a"), "x")
    refused(["--file", path, "--file", path, "-c", "1"], "file", names="twice")
    refused(["--file", path + ":x", "--file", path + ":x/y", "-c", "1"], "file")
    refused(["--file", path + ":x/y", "--file", path + ":x", "-c", "1"], "file")
    refused(["--file", path + ":main.py", "-c", "1"], "file", names="main.py")


# ---- text that is not UTF-8: a record is text, and yet there must be one ----

@test()
def bytes_that_are_not_utf8_in_a_refusal():
    bad = b"\xff\xfe\x1b[31m"
    for arguments, field, cause in ((["-l", bad, "-c", "1"], "language", "runtime"), (["--profile", bad, "-c", "1"], "profile", "field"),
                                    ([b"--" + bad, "-c", "1"], "arguments", "field"), (["--file", b"/nonexistent/" + bad, "-c", "1"], "file", "field"),
                                    ([b"/nonexistent/" + bad], "code", "field"), (["--env", bad, "-c", "1"], "env", "field"),
                                    (["--wall", bad, "-c", "1"], "wall", "field"), (["--allow", bad, "-c", "1"], "allow", "field"),
                                    (["--stdin", b"/nonexistent/" + bad, "-c", "1"], "stdin", "field"), (["--accept", b"/nonexistent/" + bad, "-c", "1"], "accept", "field")):
        refused(arguments, field, cause)


@test()
def long_names_are_cut_on_character_borders():
    for shift in range(3):
        text = "a" * shift + "€" * 200
        refused(["--profile", text, "-c", "1"], "profile")
        refused(["-l", text, "-c", "1"], "language", "runtime")
        refused(["--file", "/nonexistent/" + text, "-c", "1"], "file")
        refused(["--wall", text, "-c", "1"], "wall")


@test()
def code_and_inputs_that_are_not_utf8_still_run():
    ending = invoke([HOTCELL, "run", "--json", "--store", "none", "-l", "bash", "-c", b"printf '\\377'; echo \xff"])
    record = record_of(ending)
    equal((record["status"], stream_bytes(record["stdout"])), ("ok", b"\xff\xff\n"), "a program that is not UTF-8")
    path = write(os.path.join(os.fsencode(scratch()), b"in\xff"), "x")
    ending = invoke([HOTCELL, "run", "--json", "--store", "none", "--file", path, "-c", "import os; print(os.listdir(b'.'))"])
    record = record_of(ending)
    check("in\\xff" in out(record), "the file is not there: %r" % out(record))


# ---- the program ----

@test(60)
def odd_programs():
    before = host_counters()
    record, code, _, _ = run("")
    ends(record, "ok", None)
    equal(code, 0, "an empty program")
    path = write(scratch("nul.py"), b"print(1)\n\x00\n")
    record, _, _, _ = run(None, path=path)
    one_of(record["status"], ("syntax_error", "ok", "runtime_error"), "a program with NUL")
    path = write(scratch("latin.py"), b"print('\xe4\xf6')\n")
    record, _, _, _ = run(None, path=path)
    equal((record["status"], record["error"]["type"]), ("syntax_error", "SyntaxError"), "a program in Latin-1")
    path = write(scratch("bom.py"), b"\xef\xbb\xbfprint('bom')\r\n")
    record, _, _, _ = run(None, path=path)
    equal((record["status"], out(record)), ("ok", "bom\n"), "with a byte order mark and CR LF")
    big = write(scratch("big.py"), b"#" + b"x" * (100 << 20))
    refused([big], "code", names="at most")
    os.truncate(big, 32 << 20)
    record, _, _, _ = run(None, path=big)
    ends(record, "ok", None)
    unchanged(before)


@test()
def programs_that_can_not_be_read():
    refused(["/nonexistent/main.py"], "code", names="No such file")
    refused([scratch()], "code", names="folder")
    refused([""], "code")
    loop = scratch("loop.py")
    os.symlink(loop, loop)
    refused([loop], "code")
    refused(["/proc/self/mem"], "code")
    refused(["/dev/zero"], "code")
    base = scratch()
    for name in (b"new\nline.py", b"esc\x1b.py", b"del\x7f.py"):
        write(os.path.join(os.fsencode(base), name), "print(1)")
        refused([os.path.join(os.fsencode(base), name)], ("file", "code"))


@test()
def a_program_from_a_fifo():
    fifo = scratch("main.py")
    os.mkfifo(fifo)
    ending = subprocess.Popen(command(path=fifo), stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    fd = None
    for _ in range(100):
        try:
            fd = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
            break
        except OSError:
            time.sleep(0.01)
            if ending.poll() is not None:
                break
    if fd is not None:
        try:
            os.write(fd, b"print('from a fifo')\n")
        except BrokenPipeError:
            pass
        os.close(fd)
    stdout, stderr = ending.communicate(timeout=10)
    record, wrong = violations(stdout)
    check(not wrong, "the record is not valid", *wrong[:5])
    # Either is an answer: it is read to its end, or it is refused because nobody writes yet. A silent empty program is none.
    check(record["status"] == "refused" or out(record) == "from a fifo\n", "a FIFO was taken as an empty program: status %s, output %r" % (record["status"], record["stdout"] and out(record)))


@test()
def a_fifo_that_nobody_writes_to_is_no_empty_program():
    fifo = scratch("main.py")
    os.mkfifo(fifo)
    refused([fifo], "code")


# ---- names of files ----

@test()
def names_in_the_cell():
    path = write(scratch("a"), "x")
    for name in ("../x", "a/../x", "/abs", "", ".", "..", "a//b", "a/", "./a", "x\ny", "x\x1by", "x\x7fy", "a" * 256, "b/" * 600 + "c"):
        refused(["--file", path + ":" + name, "-c", "1"], "file")
    refused(["--file", "/nonexistent", "-c", "1"], "file", names="No such file")
    refused(["--file", "", "-c", "1"], "file")
    refused(["--file", "/", "-c", "1"], "file")
    refused(["--file", "/dev/null", "-c", "1"], "file")
    fifo = scratch("fifo")
    os.mkfifo(fifo)
    refused(["--file", fifo, "-c", "1"], "file")
    base = scratch()
    os.symlink("/etc/passwd", os.path.join(base, "link"))
    refused(["--file", base + ":d", "-c", "1"], "file", names="link")


@test()
def a_name_with_nul():
    raise Skip("an argument of a command can't hold a NUL byte")


@test(60)
def too_many_or_too_large_inputs():
    big = scratch("big")
    with open(big, "wb") as file:
        file.truncate(257 << 20)
    refused(["--file", big, "-c", "1"], "file")
    base = scratch()
    for i in range(20001):
        os.close(os.open(os.path.join(base, str(i)), os.O_CREAT, 0o644))
    began = time.monotonic()
    refused(["--file", base + ":d", "-c", "1"], "file", names="20000")
    slow = time.monotonic() - began
    deep = scratch()
    os.makedirs(os.path.join(deep, *["d"] * 40))
    refused(["--file", deep + ":d", "-c", "1"], "file", names="deep")
    shutil.rmtree(base)
    check(slow < 30, "to refuse a folder of 20,001 files took %.1f s" % slow)


@test()
def unreadable_files():
    # Root may read every file, so what can't be read is what is not there or is a folder.
    refused(["--stdin", "/nonexistent", "-c", "1"], "stdin", names="No such file")
    refused(["--accept", "/nonexistent", "-c", "1"], "accept", names="No such file")
    refused(["--expect-stdout", "/nonexistent", "-c", "1"], ("expect-stdout", "expect_stdout"), names="No such file")
    refused(["--expect-stdout", "/", "-c", "1"], ("expect-stdout", "expect_stdout"))
    refused(["--stdin", "/", "-c", "import sys; print(repr(sys.stdin.read()))"], "stdin")


@test()
def bad_predicates():
    for text in ("", "{", "[]", "[1]", "[{}]", "[{\"kind\": \"nope\"}]", "[{\"kind\": \"stdout_equals\"}]", "[{\"kind\": \"exit_zero\", \"more\": 1}]",
                 "kind: exit_zero", "- {kind: exit_zero, kind: exit_zero}", "[{\"kind\": \"stdout_matches\", \"pattern\": \"(\"}]", "\x00", "- &a [*a]", "!!python/object:os.system x"):
        path = write(scratch("p"), text)
        refused(["--accept", path, "-c", "1"], "accept")
    for number in ("", "x", "1~", "1~-1", "1~x", "nan", "inf", "1~1%%"):
        refused(["--expect-number", number, "-c", "1"], ("expect-number", "expect_number"))


# ---- limits ----

COUNTS = ("processes", "inodes", "open_files", "artifact_count")
SIZES = ("memory", "disk", "file_size", "stack", "output", "output_total", "artifacts", "artifact_size")
GARBAGE = ("-1", "1e9", "", " ", " 5", "5 ", "x", "0x10", "99999999999999999999999", "18446744073709551616", "+5", "5,0", "1_000", "٣", "--", "NaN", "\t5", "5\n")


def limit_test(names, more):
    def garbage():
        for name in names:
            flag = "--" + name.replace("_", "-")
            for value in GARBAGE + more:
                refused(["%s=%s" % (flag, value), "-c", "1"], name)
    return garbage


limits_of_counts = test(90)(limit_test(COUNTS, ("0", "5x", "5M", "1.5")))
_tests = t._tests
_tests[-1] = ("garbage_in_counts",) + _tests[-1][1:]
limits_of_sizes = test(90)(limit_test(SIZES, ("0", "5x", "5MB", "5MiB", "9999999999G", "16E", "1T")))
_tests[-1] = ("garbage_in_sizes",) + _tests[-1][1:]


@test()
def a_number_without_a_unit_is_no_megabytes():
    for name in ("memory", "disk", "stack"):
        refused(["--%s=512" % name, "-c", "1"], name)


limits_of_times = test(60)(limit_test(("wall", "cpu"), ("0", "0s", "5", "5x", "1h", "11m", "1us", "5 s", "999999999999m", "1.5.5s", ".s")))
_tests[-1] = ("garbage_in_times",) + _tests[-1][1:]
limits_of_cpus = test(60)(limit_test(("cpus",), ("0", "0.001", "65", "1.5x", "1.2345", ".")))
_tests[-1] = ("garbage_in_cpus",) + _tests[-1][1:]


@test()
def bad_environment():
    for value in ("", "=", "=x", "A", "1A=x", "A B=x", "A-B=x", "ä=x", "A\n=x"):
        refused(["--env", value, "-c", "1"], "env")


@test()
def too_many_arguments():
    refused(["-c", "1", "--"] + ["x"] * 513, "arguments")
    refused(["-c", "1", "--", "x" * 70000, "x" * 70000], "arguments")


# ---- the store ----

def in_private_mounts(script, *arguments, timeout=30):
    """A shell script in a mount namespace of its own, so that nothing it mounts is seen outside."""
    return invoke(["unshare", "-m", "--propagation", "private", "sh", "-ec", script, "sh", *arguments], timeout=timeout)


def fault_or_refusal(ending, what):
    record, wrong = violations(ending.stdout)
    check(not wrong, "%s: the record is not valid (exit code %d, stderr %.300r)" % (what, ending.code, ending.stderr), *wrong[:5])
    one_of((record["status"], record["cause"]), (("refused", "host"), ("refused", "field"), ("fault", "host")), "%s: verdict" % what)
    equal(ending.code, 125, "%s: exit code" % what)
    check("store" in json.dumps(record["error"]) or "record" in json.dumps(record["error"]), "%s: the error does not name the store: %r" % (what, record["error"]))
    return record


@test()
def a_store_that_can_not_be_used():
    before = host_counters()
    file = write(scratch("file"), "x")
    for what, path in (("a file", file), ("below a file", file + "/x"), ("/proc", "/proc/hotcell"), ("a name too long", "/tmp/" + "x" * 300)):
        fault_or_refusal(invoke([HOTCELL, "run", "--json", "--store", path, "-c", "1"]), what)
    refused(["--store", "", "-c", "1"], "store")
    bad = scratch()
    write(os.path.join(bad, "records.sqlite"), b"this is no database at all" * 100)
    fault_or_refusal(invoke([HOTCELL, "run", "--json", "--store", bad, "-c", "1"]), "a broken database")
    cut = scratch()
    run("1", store=cut)
    for name in os.listdir(cut):
        if name != "records.sqlite":
            os.unlink(os.path.join(cut, name))
    with open(os.path.join(cut, "records.sqlite"), "r+b") as file:
        file.seek(100)
        file.write(os.urandom(8000))
    fault_or_refusal(invoke([HOTCELL, "run", "--json", "--store", cut, "-c", "1"]), "a damaged database")
    unchanged(before)


@test()
def a_store_on_a_read_only_or_full_folder():
    before = host_counters()
    place = scratch()
    ending = in_private_mounts('mount -t tmpfs -o size=64k,mode=700 none "$1"; mount -o remount,ro "$1"; exec "$2" run --json --store "$1/s" -c "print(1)"', place, HOTCELL)
    fault_or_refusal(ending, "read-only")
    ending = in_private_mounts('mount -t tmpfs -o size=64k none "$1"; mkdir "$1/s"; head -c 1000000 /dev/zero >"$1/fill" 2>/dev/null || true; exec "$2" run --json --store "$1/s" -c "print(1)"', place, HOTCELL)
    fault_or_refusal(ending, "full from the start")
    # It fits the empty database, not the record: what can't be recorded must not be told as success.
    ending = in_private_mounts('mount -t tmpfs -o size=48k none "$1"; exec "$2" run --json --store "$1/s" -c "print(\'x\' * 300000)"', place, HOTCELL)
    fault_or_refusal(ending, "full at the end")
    unchanged(before)
    innocent()


@test()
def neither_home_nor_state_folder():
    environ = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_STATE_HOME")}
    ending = invoke([HOTCELL, "run", "--json", "-c", "print(1)"], environ=environ)
    record = record_of(ending)
    if record["status"] == "refused":
        equal((record["error"]["field"], ending.code), ("store", 125), "field")
    else:
        ends(record, "ok", None)
    ending = invoke([HOTCELL, "run", "--json", "--store", "none", "-c", "print(1)"], environ={})
    ends(record_of(ending), "ok", None)
    ending = invoke([HOTCELL, "run", "--json", "-c", "print(1)"], environ=dict(environ, XDG_STATE_HOME="relative", HOME="also/relative"))
    equal(record_of(ending)["error"]["field"], "store", "relative folders are not used")
    state = scratch()
    ending = invoke([HOTCELL, "run", "--json", "-c", "print(1)"], environ=dict(environ, XDG_STATE_HOME=state))
    ends(record_of(ending), "ok", None)
    check(os.path.exists(os.path.join(state, "hotcell", "records.sqlite")), "the state folder was not used")
    equal(os.stat(os.path.join(state, "hotcell")).st_mode & 0o077, 0, "the store can be read by others")
    equal(os.stat(os.path.join(state, "hotcell", "records.sqlite")).st_mode & 0o077 if os.stat(os.path.join(state, "hotcell")).st_mode & 0o077 else 0, 0, "the database can be read by others")


# ---- the host ----

@test()
def no_cgroup_access_is_refused_not_run_with_less():
    if t.USER is not None:
        raise Skip("a user's halls begin at his door, which has the host's mounts; test/e2e/test_user.py takes his groups away")
    before = host_counters()
    ending = in_private_mounts('mount -t tmpfs none /sys/fs/cgroup; exec "$1" run --json --store none -c "print(1)"', HOTCELL)
    record, wrong = violations(ending.stdout)
    check(not wrong, "the record is not valid (exit code %d, stderr %.300r)" % (ending.code, ending.stderr), *wrong[:5])
    equal((record["status"], record["stdout"], ending.code), ("refused", None, 125), "verdict: %.300r" % record["error"])
    check("cgroup" in json.dumps(record["error"]), "the error does not name the cgroup: %r" % record["error"])
    unchanged(before)
    innocent()


@test()
def missing_controllers_are_refused_or_lower_the_grade():
    if t.USER is not None:
        raise Skip("a user's halls begin at his door, which has the host's mounts; test/e2e/test_user.py takes his groups away")
    before = host_counters()
    for controller, layer_name in (("memory", "memory_limit"), ("pids", "process_limit")):
        if not os.path.isdir("/sys/fs/cgroup/" + controller):
            raise Skip("no v1 controller %s to hide on this host" % controller)
        ending = in_private_mounts('umount "/sys/fs/cgroup/$2"; exec "$1" run --json --store none -c "print(1)"', HOTCELL, controller)
        record, wrong = violations(ending.stdout)
        check(not wrong, "the record is not valid", *wrong[:5])
        equal((record["status"], ending.code), ("refused", 125), "without %s: %.300r" % (controller, record["error"]))
        ending = in_private_mounts('umount "/sys/fs/cgroup/$2"; exec "$1" run --json --store none --allow "$3" --min-grade D -c "print(1)"', HOTCELL, controller, layer_name)
        record, wrong = violations(ending.stdout)
        check(not wrong, "the record is not valid", *wrong[:5])
        equal((record["status"], record["isolation"]["grade"], layer(record, layer_name)["state"]), ("ok", "D", "accepted_absent"), "accepted by name: %.300r" % record["error"])
    unchanged(before)
    innocent()


@test()
def hard_limits_of_the_caller():
    before = host_counters()
    # Services, shells and CI runners set these; root may raise them again.
    wrong = []
    for name, number, value in (("core", resource.RLIMIT_CORE, 0), ("nofile", resource.RLIMIT_NOFILE, 128), ("stack", resource.RLIMIT_STACK, 1 << 20),
                                ("fsize", resource.RLIMIT_FSIZE, 1 << 20), ("nproc", resource.RLIMIT_NPROC, 20), ("cpu", resource.RLIMIT_CPU, 20)):
        ending = invoke(command("print(1)", store="none"), preexec_fn=lambda: resource.setrlimit(number, (value, value)))
        record = record_of(ending)
        if record["status"] != "ok":
            wrong.append("%s: %s, %.200r" % (name, record["status"], record["error"]))
    check(not wrong, "root's hard limits make runs impossible", *wrong)
    unchanged(before)


@test()
def closed_standard_streams():
    before = host_counters()
    for closed in ([0], [2], [0, 2]):
        ending = invoke(command("print(1)"), preexec_fn=lambda: [os.close(fd) for fd in closed])
        record = record_of(ending)
        ends(record, "ok", None)
        equal(out(record), "1\n", "output with %r closed" % closed)
    for closed in ([1], [0, 1], [0, 1, 2]):
        ending = invoke(command("print(1)"), preexec_fn=lambda: [os.close(fd) for fd in closed])
        equal((ending.code, ending.stdout), (125, b""), "exit code with %r closed" % closed)
        ending = invoke(command("print(1)", json_=False), preexec_fn=lambda: [os.close(fd) for fd in closed])
        one_of(ending.code, (0, 125), "exit code of a live run with %r closed" % closed)
    ending = invoke(command("import sys; print(repr(sys.stdin.read()))", stdin="-"), preexec_fn=lambda: os.close(0))
    record = record_of(ending)
    check(record["status"] == "ok" and out(record) == "''\n" or record["error"]["field"] == "stdin", "stdin wanted, but closed: %s" % record["status"])
    ending = invoke(command("print(1)"), stdout=open("/dev/full", "wb"))
    equal(ending.code, 125, "exit code with a full disk behind stdout")
    unchanged(before)
    innocent()


@test()
def inherited_descriptors_and_signal_masks():
    reader, writer = os.pipe()
    os.set_inheritable(reader, True)
    secret = os.open(write(scratch("secret"), "x"), os.O_RDONLY)
    os.dup2(secret, 9, inheritable=True)
    import signal
    ending = invoke(command("import os; print(sorted(os.listdir('/proc/self/fd'))[:3], len(os.listdir('/proc/self/fd')))"), close_fds=False,
                    preexec_fn=lambda: (signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 60)), signal.signal(signal.SIGCHLD, signal.SIG_IGN)))
    record = record_of(ending)
    ends(record, "ok", None)
    equal(out(record), "['0', '1', '2'] 4\n", "descriptors of the program")
    ending = invoke(command("import signal, os, time; print(signal.pthread_sigmask(0, []), flush=True); os.kill(os.getpid(), 15)"),
                    preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 60)))
    record = record_of(ending)
    equal((out(record), record["signal_name"]), ("set()\n", "SIGTERM"), "mask of the program")


@test()
def export_folder_that_can_not_be_made():
    for wanted in ("/nonexistent/parent/out", "/proc/out", write(scratch("f"), "x"), "/"):
        record, code, _, _ = run("open('a', 'w').write('x')", out=wanted)
        equal((record["status"], code), ("ok", 0), "status for %r" % wanted)
        check(not any(item["exported"] for item in record["artifacts"]), "told as exported to %r" % wanted)
    equal(os.path.exists("/proc/out"), False, "made in /proc")


@test()
def every_run_leaves_no_file_in_tmp():
    before = set(os.listdir("/tmp"))
    innocent()
    run("open('x', 'w').write('x')")
    after = {name for name in set(os.listdir("/tmp")) - before if "hotcell" in name and not name.startswith("hotcell-test-")}
    equal(after, set(), "new names in /tmp")


if __name__ == "__main__":
    sys.exit(main())
