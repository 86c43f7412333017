#!/usr/bin/env python3
"""Programs of hotcell killed in the middle of a run, and many runs, a quarter of them hostile: nothing is left.

    HOTCELL=build/hotcell N=200 test/redteam/test_chaos.py [--list] [--times] [part of a name]...

N (default 200; the big one is 2000) is the number of runs in the long tests. Processes are found below the command that a test
started, never by name.
"""
import collections
import os
import random
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "support"))
from hotcell_test import *  # noqa: E402,F403
import hotcell_test as t  # noqa: E402

N = int(os.environ.get("N", "200"))
BUSY = "import os, time\nfor i in range(3):\n    if os.fork() == 0:\n        os.setsid()\nprint('up', flush=True)\nopen('/tmp/x', 'wb').write(b'x' * 30000000)\ntime.sleep(60)"


def family(process):
    """The chain below a command: [(pid, name)] with guard, keeper, process 1 of the cell, payload, by generation."""
    table = t.processes()
    generations, current = [], {process.pid}
    if t.USER is not None:  # the guard is a child of the user's door, which starts nothing else
        current = {pid for pid, (name, _) in table.items() if name == "hotcell-door" and t.owner(pid) == t.USER.pw_uid}
    while current:
        current = {pid for pid, (_, parent) in table.items() if parent in current}
        if current:
            generations.append(sorted(current))
    return generations


def wait_for_payload(process):
    """Until all of the chain lives: guard, keeper, process 1, main process and its children."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        generations = family(process)
        if len(generations) >= 5 and sum(len(g) for g in generations) >= 8:
            time.sleep(0.1)
            return family(process)
        time.sleep(0.02)
    raise Failure("the run did not come up: %r" % generations)


def alive(pids):
    """Of these processes, those that still run. A zombie below process 1 waits for the host's own init, which is not our business."""
    def lives(pid):
        fields = t._read("/proc/%d/stat" % pid).rsplit(")", 1)[-1].split()
        return len(fields) > 1 and not (fields[0] in "ZX" and fields[1] == "1")
    return [pid for pid in pids if lives(pid)]


def dead_within_a_second(pids, what):
    deadline = time.monotonic() + 1.0
    while alive(pids) and time.monotonic() < deadline:
        time.sleep(0.01)
    left = [(pid, t._read("/proc/%d/stat" % pid)[:60]) for pid in alive(pids)]
    check(not left, "a second after %s was killed there still live" % what, *left)


def kill_one(generation, what, number=signal.SIGKILL):
    """(record or None, ending) after one process of the chain was killed."""
    before = host_counters()
    process = subprocess.Popen(command(BUSY, store="none", wall="30s"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        generations = wait_for_payload(process)
        everything = [pid for pids in generations for pid in pids]
        victim = process.pid if generation < 0 else generations[generation][0]
        os.kill(victim, number)
        if generation >= 0:
            stdout, stderr = process.communicate(timeout=15)
        dead_within_a_second(everything, what)
        if generation < 0:
            stdout, stderr = process.communicate(timeout=5)
    finally:
        process.kill()
        process.wait()
    innocent()
    unchanged(before)
    return Ending(process.returncode, stdout, stderr, 0)


@test()
def the_command_is_killed():
    ending = kill_one(-1, "the command")
    equal((ending.code, ending.stdout), (-9, b""), "the ending")


def faulty(ending, what):
    record, wrong = violations(ending.stdout)
    check(not wrong, "the record is not valid", *wrong[:5])
    equal((record["status"], record["cause"], ending.code), ("fault", "host", 125), "verdict after %s was killed: %.300r" % (what, record["error"]))


@test()
def the_guard_is_killed():
    # The run may go on to its limit or end at once; nothing may hang, and what the guard would have cleaned is cleaned by the next hall.
    before = host_counters()
    process = subprocess.Popen(command(BUSY, store="none", wall="2s"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        generations = wait_for_payload(process)
        os.kill(generations[0][0], signal.SIGKILL)
        stdout, _ = process.communicate(timeout=6)
        dead_within_a_second([pid for pids in generations for pid in pids], "the guard")
    except subprocess.TimeoutExpired:
        raise Failure("the command hangs after its guard was killed")
    finally:
        process.kill()
        process.wait()
    record, wrong = violations(stdout)
    check(not wrong, "the record is not valid", *wrong[:5])
    one_of(record["status"], ("timeout", "fault"), "status")
    innocent()
    unchanged(before)


@test()
def the_keeper_is_killed():
    faulty(kill_one(1, "the keeper"), "the keeper")


@test()
def process_one_of_the_cell_is_killed():
    faulty(kill_one(2, "process 1 of the cell"), "process 1 of the cell")


@test()
def the_payload_is_killed_from_outside():
    ending = kill_one(3, "the payload")
    record = record_of(ending)
    equal((record["status"], record["signal"]), ("runtime_error", 9), "verdict")


@test(60)
def the_keeper_is_stopped():
    # A keeper that answers nothing any more: the command must end all the same, in bounded time.
    before = host_counters()
    process = subprocess.Popen(command("import time; time.sleep(30)", store="none", wall="1s"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    generations, deadline = [], time.monotonic() + 10
    while len(generations) < 4 and time.monotonic() < deadline:
        generations = family(process)
        time.sleep(0.02)
    time.sleep(0.3)
    keeper = family(process)[1][0]
    os.kill(keeper, signal.SIGSTOP)
    try:
        try:
            stdout, _ = process.communicate(timeout=25)
        except subprocess.TimeoutExpired:
            raise Failure("25 s after its wall limit of 1 s the command still waits for a stopped keeper")
        record, wrong = violations(stdout)
        check(not wrong, "the record is not valid", *wrong[:5])
        one_of(record["status"], ("fault", "timeout"), "status")
    finally:
        process.kill()
        for pid in alive([keeper]):
            os.kill(pid, signal.SIGKILL)
        process.wait()
    innocent()
    unchanged(before)


@test(120)
def the_command_is_killed_at_any_moment():
    before = host_counters()
    rng = random.Random(4711)
    for i in range(max(20, N // 5)):
        process = start("import time; time.sleep(5)" if i % 2 else "print(1)", store="none")
        time.sleep(rng.random() * 0.15)
        pids = [pid for pids in family(process) for pid in pids]
        process.kill()
        process.communicate()
        deadline = time.monotonic() + 1.5
        while alive(pids) and time.monotonic() < deadline:
            time.sleep(0.01)
        check(not alive(pids), "a second after the kill there live %r" % [(p, t._read("/proc/%d/stat" % p)[:40]) for p in alive(pids)])
    innocent()
    unchanged(before, within=5)


@test(120)
def the_keeper_is_killed_at_any_moment():
    before = host_counters()
    rng = random.Random(815)
    seen = collections.Counter()
    for i in range(max(15, N // 10)):
        process = start("import time; time.sleep(0.5)", store="none")
        time.sleep(rng.random() * 0.12)
        generations = family(process)
        if generations:
            try:
                os.kill(rng.choice([pids[0] for pids in generations]), signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            stdout, stderr = process.communicate(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise Failure("the command hangs after the kill of one of %r" % generations)
        record, wrong = violations(stdout)
        check(not wrong, "the record is not valid (stderr %.200r)" % stderr, *wrong[:5])
        seen[record["status"]] += 1
        one_of(record["status"], ("fault", "refused", "ok", "runtime_error"), "status")
    check(seen["fault"] + seen["refused"] > 0, "no kill was felt: %r" % seen)
    innocent()
    unchanged(before, within=5)


HOSTILE = (
    ("import os\nwhile True: os.fork()", {"processes": 32, "wall": "1s"}, ("process_limit", "timeout")),
    ("b = bytearray(200 << 20)\nfor i in range(0, len(b), 4096): b[i] = 1", {"memory": "32M"}, ("memory_limit",)),
    ("while True: pass", {"cpu": "100ms"}, ("timeout",)),
    ("import os\nwhile True: os.write(1, b'x' * 65536)", {"output": "1M", "output_total": "4M"}, ("output_limit",)),
    ("i = 0\nwhile True:\n    open('f%d' % i, 'w').close(); i += 1", {"inodes": 500}, ("disk_limit",)),
    ("import os, time\nfor i in range(10):\n    if os.fork() == 0:\n        os.setsid(); time.sleep(100)\nos._exit(0)", {}, ("ok",)),
    ("import os\nos.mkfifo('f'); os.symlink('/', 'l'); os.mkdir('d'); os.chmod('d', 0); os.chmod('/work', 0); os.kill(os.getpid(), 11)", {}, ("runtime_error",)),
    ("import socket\nfor i in range(300):\n    s = socket.socket()\n    try: s.connect(('10.0.0.1', 1))\n    except OSError: pass\n    s.close()", {}, ("ok",)),
)


@test(900)
def many_runs_a_quarter_hostile_eight_at_once():
    before = host_counters()
    lock, wrong, seen = threading.Lock(), [], collections.Counter()
    numbers = iter(range(N))
    store = scratch("store")

    def worker():
        while True:
            with lock:
                number = next(numbers, None)
                if number is None or len(wrong) > 5:
                    return
            try:
                if number % 4 == 3:
                    code, options, wanted = HOSTILE[number // 4 % len(HOSTILE)]
                    record, _, _, _ = run(code, store=store, **options)
                    check(record["status"] in wanted, "hostile run %d: %s, %s, %.200r" % (number, record["status"], record["cause"], record["error"]))
                else:
                    record, _, _, _ = run("print(%d)" % number, store=store)
                    equal((record["status"], out(record)), ("ok", "%d\n" % number), "run %d: %.200r" % (number, record["error"]))
                check(record["residue"] == {"processes": 0, "mounts": 0, "cgroups": 0, "files": 0}, "residue of run %d: %r" % (number, record["residue"]))
                with lock:
                    seen[record["status"]] += 1
            except Failure as failure:
                with lock:
                    wrong.append(str(failure))

    workers = [threading.Thread(target=worker) for _ in range(8)]
    [w.start() for w in workers]
    [w.join() for w in workers]
    check(not wrong, "of %d runs some went wrong: %r" % (N, dict(seen)), *wrong[:5])
    equal(sum(seen.values()), N, "runs")
    innocent()
    unchanged(before, within=5)


@test(60)
def two_dozen_halls_at_once():
    # Each has a slice of host ids of its own.
    before = host_counters()
    running = [start("import time; time.sleep(1)", store="none", memory="16M") for _ in range(24)]
    records = [finish(process, 40) for process in running]
    equal(collections.Counter(record["status"] for record in records), {"ok": 24}, "statuses of 24 runs at once")
    equal(len({record["isolation"]["uid"] for record in records}), 24, "different host ids")
    unchanged(before, within=5)


if __name__ == "__main__":
    sys.exit(main())
