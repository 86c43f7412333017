#!/usr/bin/env python3
"""`hotcell eval` as a user meets it: items good and bad, cards, interruption, resumption, workers that die.

    HOTCELL=build/hotcell test/e2e/test_eval.py [--list] [part of a name]...

Needs a host on which cells can be made.
"""
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "support"))
from hotcell_test import HOTCELL, check, equal, host_counters, main, scratch, test, unchanged  # noqa: E402


def item(id, program="print(1)", language="python", **more):
    return dict(more, id=id, language=language, program=program)


def write(folder, *items, name="items.jsonl"):
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        for one in items:
            file.write((one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n")
    return path


def evaluate(*arguments, wanted=0, stdin=None):
    ending = subprocess.run([HOTCELL, "eval", "--store", "none", *arguments], capture_output=True, input=stdin, timeout=120)
    equal(ending.returncode, wanted, "exit code (%r)" % ending.stderr)
    return ending


def results(path):
    with open(path, "rb") as file:
        data = file.read()
    check(not data or data.endswith(b"\n"), "a line of results is not complete", data[-100:])
    found = {}
    for line in data.splitlines():
        result = json.loads(line)
        check(result["id"] not in found, "an item was written twice", result["id"])
        found[result["id"]] = result
    return found


def children(pid):
    return [int(one) for one in open("/proc/%d/task/%d/children" % (pid, pid)).read().split()]


def start(*arguments):
    return subprocess.Popen([HOTCELL, "eval", "--store", "none", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def until(condition, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.02)
    check(False, "it did not happen in %d s" % seconds)


def lines(path):
    return open(path, "rb").read().count(b"\n") if os.path.exists(path) else 0


@test(timeout=60)
def data_sets_as_they_come():
    folder = scratch("shapes")
    os.makedirs(folder)
    gsm = {"question": "What is 6 x 7?", "answer": "6 x 7 = <<6*7=42>>42\n#### 42"}
    math = {"problem": "What is one half?", "solution": "It is $\\boxed{\\frac{1}{2}}$.", "level": "Level 1", "type": "Prealgebra"}
    path = write(folder, dict(gsm, completion="def solution():\n    return 6 * 7"), dict(gsm, completion="print(41)"),
                 dict(gsm, completion="Here you are:\n```python\nprint('The answer is 42')\n```\nGood luck."),
                 dict(math, generated="print(1 / 2)"), dict(math, response="print('one half')"),
                 dict(math, solution="$\\boxed{\\sqrt{2}}$", completion="print('sqrt(2)')"),
                 dict(gsm, completion="def solution(:"), gsm)
    out = os.path.join(folder, "out.jsonl")
    report = json.loads(evaluate("--json", "--results", out, path, wanted=1).stdout)
    equal({name: [row[key] for key in ("attempted", "right", "wrong", "not_judged")] for name, row in report["acceptance"]["suites"].items()},
          {"gsm8k": [4, 2, 2, 0], "math": [3, 1, 1, 1]}, "suites")
    equal(report["bad_lines"], {"count": 1, "first": [{"line": 8, "message": "completion is missing: what the model wrote "
                                                       "(or program, generated, generation, response, prediction)"}]}, "the bad line")
    equal({name: row["count"] for name, row in report["errors"].items()}, {"syntax": 1, "logical": 2}, "classes")
    check(report["errors"]["logical"]["kinds"] == {"stdout_number": 2}, "kinds", report["errors"])
    again = json.loads(evaluate("--json", "--results", out, "--resume", path, wanted=1).stdout)
    equal((again["resumed"], again["results"]), (7, 7), "names stay the same")


@test(timeout=90)
def test_code_of_data_sets_is_run():
    """HumanEval and MBPP: right and wrong answers, the data set's own, and one that leaves before it is asked."""
    folder = scratch("asserts")
    os.makedirs(folder)
    human = {"task_id": "HumanEval/0", "prompt": "from typing import List\n\ndef total(xs: List[int]) -> int:\n    \"\"\" Sum. \"\"\"\n",
             "canonical_solution": "    return sum(xs)\n", "entry_point": "total",
             "test": "def check(candidate):\n    assert candidate([1, 2]) == 3\n    assert candidate([]) == 0\n"}
    mbpp = {"task_id": 2, "text": "Double it.", "code": "def twice(x):\r\n    return 2 * x", "test_setup_code": "import math",
            "test_list": ["assert twice(2) == 4", "assert twice(math.inf) == math.inf"], "challenge_test_list": []}
    path = write(folder, human, dict(human, id="wrong", completion="    return len(xs)\n"),
                 dict(human, id="whole", completion="```python\ndef total(xs):\n    return sum(xs)\n```"),
                 dict(human, id="exit", completion="    import os; os._exit(0)\n"), mbpp,
                 dict(mbpp, id="square", completion="def twice(x):\n    return x ** 3"))
    out = os.path.join(folder, "out.jsonl")
    evaluate("--results", out, path)
    equal({name: row["accepted"] for name, row in results(out).items()},
          {"HumanEval/0": True, "wrong": False, "whole": True, "exit": False, "mbpp/2": True, "square": False}, "verdicts")


def peak_kib(arguments):
    """Highest resident memory of the dispatcher, which is the one that reads the file."""
    process = subprocess.Popen([HOTCELL, "eval", "--store", "none", "--json", *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    return usage.ru_maxrss, json.loads(out)


@test(timeout=120)
def memory_does_not_grow_with_the_file():
    folder = scratch("stream")
    os.makedirs(folder)
    peaks = []
    for count in (1000, 12000):  # of 8 KB each: 8 MB, 96 MB
        path = os.path.join(folder, "%d.jsonl" % count)
        with open(path, "w") as file:
            for n in range(count):
                file.write(json.dumps(item("i%d" % n, "print(%d) # %s" % (n, "x" * 8000), expect={"kind": "stdout_number", "value": n})) + "\n")
        peak, report = peak_kib(["--only", "i0,i%d" % (count - 1), "--report", path + ".html", path])
        equal((report["items"], report["acceptance"]["right"]), (2, 2), "items that ran")
        peaks.append(peak)
        os.unlink(path)
    # ids cost up to 50 bytes each
    check(peaks[1] < peaks[0] + 2048 + 12000 * 50 // 1024, "highest memory, KiB", peaks)


@test(timeout=60)
def results_say_what_went_wrong():
    folder = scratch("wrongs")
    os.makedirs(folder)
    path = write(folder, item("number", "print(3)", expect={"kind": "stdout_number", "value": 4}),
                 item("error", "x = 1\nraise KeyError('k')"), item("call", "import ctypes\nctypes.CDLL(None).unshare(0x10000000)"))
    out = os.path.join(folder, "out.jsonl")
    report = json.loads(evaluate("--json", "--results", out, path).stdout)
    found = results(out)
    equal((found["number"]["wrong"]["kind"], found["number"]["stdout_tail"]), ("stdout_number", "3\n"), "a wrong number")
    check("4" in found["number"]["wrong"]["expected"] and "3" in found["number"]["wrong"]["got"], "wanted and found", found["number"])
    equal((found["error"]["error_type"], found["error"]["error_message"], found["error"]["error_line"]), ("KeyError", "'k'", 2), "an error")
    equal(found["call"]["denied"], ["unshare"], "denied calls")
    equal(report["findings"]["denied_calls"], {"unshare": 1}, "denied calls in the report")
    check(found["error"]["timing"]["run_us"] > 0 and report["execution"]["stages"]["run_us"]["p50"] > 0, "times by stage")


@test(timeout=60)
def verdicts_and_cards():
    folder = scratch()
    os.mkdir(os.path.join(folder, "data"))
    with open(os.path.join(folder, "data", "x"), "w") as file:
        file.write("from the folder")
    path = write(
        folder,
        item("right", "print(42)", suite="s", expect={"kind": "stdout_number", "value": 42}),
        item("wrong", "print(43)", suite="s", expect={"kind": "stdout_trim", "value": "42"}),
        item("raises", "raise KeyError('x')", expect={"kind": "exception", "value": "KeyError"}),
        item("slow", "while True: pass", limits={"wall_s": 0.3}, expect={"kind": "fails"}),
        item("input", "import sys; print(sys.stdin.read() == 'ab' * 1000)", stdin={"repeat": "ab", "times": 1000},
             expect={"kind": "stdout_trim", "value": "True"}),
        item("files", "print(open('a').read(), open('b').read(), open('c').read())", files=[
            {"name": "a", "text": "A"}, {"name": "b", "base64": "Qg=="}, {"name": "c", "path": "data/x"}],
            expect={"kind": "stdout_trim", "value": "A B from the folder"}),
        item("shell", "exit 3", language="bash", expect={"kind": "choice", "value": "A"}),
        item("cobol", "x", language="cobol"),
        item("absent", files=[{"name": "a", "path": "data/absent"}]))
    out = os.path.join(folder, "out.jsonl")
    report = json.loads(evaluate(path, "--results", out, "--jobs", "2", "--json").stdout)
    found = results(out)
    equal({id: (r["status"], r["exit_code"], r["accepted"]) for id, r in found.items()}, {
        "right": ("ok", 0, True), "wrong": ("ok", 0, False), "raises": ("runtime_error", 1, True),
        "slow": ("timeout", None, True), "input": ("ok", 0, True), "files": ("ok", 0, True),
        "shell": ("runtime_error", 3, None), "cobol": ("refused", None, None), "absent": ("refused", None, None)}, "results")
    equal(found["raises"]["error_type"], "KeyError", "error type")
    check(found["raises"]["stderr_tail"].endswith("KeyError: 'x'\n"), "stderr_tail", found["raises"])
    equal(found["absent"]["cause"], "field", "cause")
    equal(report["execution"]["attempted"], 9, "attempted")
    equal(report["execution"]["statuses"], {"ok": 4, "runtime_error": 2, "timeout": 1, "refused": 2}, "statuses")
    equal(report["acceptance"]["suites"]["s"], {"attempted": 2, "ok": 2, "right": 1, "wrong": 1, "not_judged": 0}, "suite")
    equal((report["acceptance"]["right"], report["acceptance"]["wrong"], report["acceptance"]["not_judged"]), (5, 1, 3), "card")


@test(timeout=60)
def bad_lines_do_not_stop_the_rest():
    folder = scratch()
    path = write(folder, item("a"), b"nonsense", b'{"id":"\xff"}', item("a"), item("b", bogus=1), b"", b'{"id":"c","program":1}',
                 json.dumps(item("big", "#" * (16 << 20))).encode(), item("z"))
    out = os.path.join(folder, "out.jsonl")
    ending = evaluate(path, "--results", out, "--json", wanted=1)
    report = json.loads(ending.stdout)
    equal([row["line"] for row in report["bad_lines"]["first"]], [2, 3, 4, 5, 7, 8], "bad lines")
    equal(report["bad_lines"]["count"], 6, "count")
    equal(sorted(results(out)), ["a", "z"], "results")
    check(b"items.jsonl:2: not JSON" in ending.stderr, "the line is not named", ending.stderr)


@test(timeout=60)
def choice_of_items():
    folder = scratch()
    path = write(folder, *[item("i%d" % i) for i in range(8)])
    out = os.path.join(folder, "out.jsonl")
    evaluate(path, "--results", out, "--limit", "3")
    equal(sorted(results(out)), ["i0", "i1", "i2"], "the first ones")
    evaluate(path, "--results", out, wanted=125)  # there is something in it
    evaluate(path, "--results", out, "--resume", "--only", "i2,i5", "--only", "i7")
    equal(sorted(results(out)), ["i0", "i1", "i2", "i5", "i7"], "the chosen ones")
    with open(out, "ab") as file:
        file.write(b'{"id":"i3","status":"o')
    report = json.loads(evaluate(path, "--results", out, "--resume", "--json").stdout)
    equal(sorted(results(out)), ["i%d" % i for i in range(8)], "all")
    equal((report["resumed"], report["results"]), (5, 8), "counts")
    evaluate(path, "--only", "absent", wanted=1)
    equal(json.loads(evaluate("-", "--json", stdin=open(path, "rb").read()).stdout)["results"], 8, "from standard input")


@test()
def usage_is_refused():
    folder = scratch()
    path = write(folder, item("a"))
    for arguments in ([], [path, path], [path, "--jobs", "0"], [path, "--jobs", "x"], [path, "--wall", "3"], [path, "--resume"],
                      [path, "--bogus"], [folder], [path + "x"], [path, "--profile", "none"], [path, "--wall", "99h"],
                      [path, "--results", folder], [path, "--results", path]):
        answer = json.loads(evaluate(*arguments, "--json", wanted=125).stdout)
        equal(answer["state"], "refused", "state of %r" % arguments)
    equal(len(open(path).readlines()), 1, "the data set is whole")
    check(b"--results" in evaluate("--help").stdout, "help")


@test(timeout=90)
def interrupted_and_resumed():
    folder, before = scratch(), host_counters()
    path = write(folder, *[item("i%d" % i, "import time; time.sleep(0.2); print(%d)" % i) for i in range(40)])
    out = os.path.join(folder, "out.jsonl")
    process = start(path, "--results", out, "--jobs", "2")
    until(lambda: lines(out) >= 3)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    stdout, stderr = process.communicate(timeout=30)
    equal(process.returncode, 130, "exit code (%r)" % stderr)
    check(time.monotonic() - began < 10, "it took long")
    check(b"INTERRUPTED" in stdout, "report", stdout)
    done = results(out)
    check(3 <= len(done) < 40, "results", len(done))
    check(all(one["status"] == "ok" for one in done.values()), "what was cut short is written", done)
    evaluate(path, "--results", out, "--resume", "--jobs", "2")
    equal(len(results(out)), 40, "results")
    unchanged(before)


@test(timeout=90)
def dying_workers_are_replaced():
    folder, before = scratch(), host_counters()
    path = write(folder, *[item("i%d" % i, "import time; time.sleep(1)") for i in range(4)])
    out = os.path.join(folder, "out.jsonl")
    process = start(path, "--results", out, "--jobs", "1", "--json")
    until(lambda: children(process.pid))
    first = children(process.pid)[0]
    time.sleep(0.3)
    os.kill(first, signal.SIGKILL)  # tried again
    until(lambda: lines(out) >= 1)
    for _ in range(2):  # the second item, twice
        until(lambda: children(process.pid) and children(process.pid)[0] != first)
        first = children(process.pid)[0]
        time.sleep(0.3)
        os.kill(first, signal.SIGKILL)
    stdout, stderr = process.communicate(timeout=60)
    equal(process.returncode, 1, "exit code (%r)" % stderr)
    equal([results(out)["i%d" % i]["status"] for i in range(4)], ["ok", "fault", "ok", "ok"], "statuses")
    equal(json.loads(stdout)["execution"]["attempted"], 3, "attempted")
    unchanged(before, within=5)


@test(timeout=60)
def a_parent_that_is_killed_leaves_nothing():
    folder, before = scratch(), host_counters()
    path = write(folder, *[item("i%d" % i, "import time; time.sleep(5)") for i in range(2)])
    process = start(path, "--jobs", "2")
    until(lambda: len(children(process.pid)) == 2)
    time.sleep(0.5)
    process.kill()
    process.communicate()
    unchanged(before, within=5)


@test(timeout=120)
def memory_stays_flat():
    folder = scratch()
    path = os.path.join(folder, "big.jsonl")
    with open(path, "w") as file:  # 100 MB of which two items are wanted
        for i in range(100):
            file.write(json.dumps(item("i%d" % i, "print(1)", note="x" * (1 << 20))) + "\n")
    process = subprocess.Popen([HOTCELL, "eval", "--store", "none", "--only", "i0,i99", path], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    equal(status, 0, "status")
    check(usage.ru_maxrss < 40 << 10, "it used %d KiB" % usage.ru_maxrss)


if __name__ == "__main__":
    sys.exit(main())
