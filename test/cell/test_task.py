#!/usr/bin/env python3
"""Tasks: budgets that hold, feedback that gives no answer away, attempts that are ordinary records.

    HOTCELL=build/hotcell test/cell/test_task.py [--list] [--times] [part of a name]...
"""
import concurrent.futures
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "support"))
from hotcell_test import *  # noqa: E402,F403

SECRET = "4217"
NUMBER = [{"kind": "stdout_number", "value": int(SECRET)}]


def task(store, *arguments, code=0, timeout=60):
    """One `hotcell task ... --json`: its document."""
    ending = invoke([HOTCELL, "task", *arguments, "--json", "--store", store], timeout=timeout)
    equal(ending.code, code, "exit code of task %r (%.400r, %.400r)" % (arguments, ending.stdout, ending.stderr))
    return json.loads(ending.stdout)


def new(store, predicates=NUMBER, **options):
    path = write(scratch("accept.json"), json.dumps(predicates))
    return task(store, "new", "--accept", path, *flags(options))


def attempt(store, id_, program, code=1, *more, timeout=60):
    return invoke_try(store, id_, program, code, more, timeout)


def invoke_try(store, id_, program, code, more, timeout):
    ending = invoke([HOTCELL, "task", "try", id_, "--json", "--store", store, "-c", program, *more], timeout=timeout)
    equal(ending.code, code, "exit code of an attempt (%.600r, %.400r)" % (ending.stdout, ending.stderr))
    return json.loads(ending.stdout)


def records(store):
    with sqlite3.connect(os.path.join(store, "records.sqlite")) as database:
        return [json.loads(row[0]) for row in database.execute("SELECT record FROM records ORDER BY seq")]


@test()
def the_worst_case_is_told_in_advance():
    store = scratch("store")
    made = new(store)
    equal((made["worst_case_us"], made["attempts_left"], made["worst_case_left_us"], made["state"]), (132000000, 4, 132000000, "open"),
          "1+3 attempts of 30 s and 12 s")
    made = new(store, retries=0, wall="2s", overhead="0s")
    equal((made["worst_case_us"], made["attempts_left"]), (2000000, 1), "one attempt")
    made = new(store, wall_total="50s")
    equal(made["worst_case_us"], 50000000, "time in all")
    ending = invoke([HOTCELL, "task", "new", "--store", store, "--expect-number", "5"])
    check(b"132s in the worst case" in ending.stderr and ending.stdout.startswith(b"task-"), "for people", ending.stderr, ending.stdout)


@test()
def attempts_until_accepted():
    store = scratch("store")
    id_ = new(store)["task"]
    first = attempt(store, id_, "print(1)")
    equal((first["attempt"], first["acceptance"], first["next"], first["attempts_left"]), (1, "rejected", "try again", 3), "the first")
    second = attempt(store, id_, "x = [1\n")
    equal((second["feedback"]["status"], second["feedback"]["error"]["type"], second["feedback"]["error"]["line"]), ("syntax_error", "SyntaxError", 1), "the second")
    third = attempt(store, id_, "print(%s)" % SECRET, 0)
    equal((third["acceptance"], third["next"], third["state"]), ("accepted", "done", "accepted"), "the third")
    done = attempt(store, id_, "print(1)", 126)
    equal((done["next"], done["attempts_used"]), ("done", 3), "one too many")
    shown = task(store, "show", id_)
    equal([(t["attempt"], t["status"], t["accepted"]) for t in shown["tries"]],
          [(1, "ok", "rejected"), (2, "syntax_error", "rejected"), (3, "ok", "accepted")], "attempts")
    made = records(store)
    equal([(r["request"]["task"]["id"], r["request"]["task"]["attempt"], r["id"]) for r in made], [(id_, t["attempt"], t["run"]) for t in shown["tries"]], "records")
    equal([r["chain"]["seq"] for r in made], [1, 2, 3], "chain")
    equal([t["task"] for t in task(store, "list")["tasks"]], [id_], "list")


@test()
def past_the_budget_it_hands_over():
    store = scratch("store")
    id_ = new(store, retries=1)["task"]
    attempt(store, id_, "print(1)")
    equal(attempt(store, id_, "print(2)")["next"], "hand over", "the last")
    refused = attempt(store, id_, "print(%s)" % SECRET, 126)
    equal((refused["state"], refused["next"]), ("spent", "hand over"), "one more, though it would be right")
    equal(len(records(store)), 2, "nothing ran")


@test()
def feedback_is_bounded_and_gives_no_answer():
    store = scratch("store")
    predicates = NUMBER + [{"kind": "asserts", "code": "assert f() == %s, 'wanted %s'" % (SECRET, SECRET)}, {"kind": "exit_zero"},
                           {"kind": "checker", "code": "import sys\nprint('the answer is %s')\nsys.exit(1)" % SECRET},
                           {"kind": "stdout_matches", "pattern": "^%s$" % SECRET}, {"kind": "stdout_equals", "value": SECRET}]
    id_ = new(store, predicates, feedback="300", retries=9)["task"]
    program = "def f(): return 1\nfor i in range(1000): print('line', i)"
    for text in (program, program + "\nraise ValueError('x' * 10000)", program + "\nimport sys; sys.stderr.write('\\u00e4' * 5000)",
                 "def f(): return 1\nimport sys; sys.stdout.buffer.write(b'\\xff' * 1000)"):
        reply = attempt(store, id_, text)
        check(SECRET not in json.dumps(reply), "the answer is in the feedback", reply)
        feedback = reply["feedback"]
        size = sum(len((t or "").encode()) for t in (feedback["tail"], feedback["error"]["type"], feedback["error"]["message"]))
        check(size <= 300, "%d bytes of feedback" % size, feedback)
        check({row["index"] for row in feedback["failed"]} >= {0, 1, 3, 4, 5}, "what does not hold", feedback["failed"])
    human = invoke([HOTCELL, "task", "try", id_, "--store", store, "-c", program])
    check(SECRET.encode() not in human.stdout + human.stderr, "the answer is told to people", human.stdout, human.stderr)
    check(SECRET not in json.dumps(task(store, "show", id_)), "the answer is shown", "")


@test(timeout=90)
def a_program_that_loops_holds_the_worst_case():
    store = scratch("store")
    made = new(store, retries=2, wall="1s", overhead="20s")
    began = time.monotonic()
    for _ in range(3):
        reply = attempt(store, made["task"], "while True: pass")
        equal(reply["feedback"]["status"], "timeout", "status")
    took = (time.monotonic() - began) * 1e6
    check(took <= made["worst_case_us"], "took %d us, worst case %d" % (took, made["worst_case_us"]))
    attempt(store, made["task"], "print(%s)" % SECRET, 126)


@test(timeout=90)
def one_wall_for_all_cells_of_an_attempt():
    """Run, test code and checker together get the wall of one attempt, not each of them."""
    store = scratch("store")
    predicates = [{"kind": "asserts", "code": "import time\ntime.sleep(60)"}, {"kind": "checker", "code": "import time\ntime.sleep(60)"}]
    made = new(store, predicates, retries=0, wall="3s")
    reply = attempt(store, made["task"], "import time\ntime.sleep(1)", 125)
    equal([row["ok"] for row in reply["feedback"]["failed"]], [False, None], "test code that loops, a checker without time")
    record = records(store)[0]
    spent = record["timing"]["run_us"] + record["timing"]["accept_us"]
    check(spent < 20e6, "the cells took %d us" % spent)
    made = new(store, wall="2s", retries=0)
    equal(attempt(store, made["task"], "import time\ntime.sleep(30)", 1, "--wall", "30s")["feedback"]["status"], "timeout", "a longer wall that is asked for")


@test(timeout=120)
def two_at_once_cannot_overspend():
    store = scratch("store")
    id_ = new(store, retries=2)["task"]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        endings = list(pool.map(lambda i: invoke([HOTCELL, "task", "try", id_, "--json", "--store", store, "-c", "print(%d)" % i], timeout=100), range(8)))
    equal(sorted(e.code for e in endings), [1, 1, 1, 126, 126, 126, 126, 126], "exit codes")
    equal(sorted(json.loads(e.stdout)["attempt"] for e in endings if e.code == 1), [1, 2, 3], "numbers of attempts")
    equal(len(records(store)), 3, "records")


@test(timeout=60)
def an_attempt_that_was_killed_counts():
    store = scratch("store")
    id_ = new(store, retries=0, wall="5s")["task"]
    process = subprocess.Popen([HOTCELL, "task", "try", id_, "--store", store, "-c", "import time; time.sleep(60)"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(200):
        if task(store, "show", id_)["tries"]:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    shown = task(store, "show", id_)
    equal((shown["attempts_used"], shown["time_used_us"], shown["state"]), (1, 5000000, "spent"), "it is counted with its whole wall")
    attempt(store, id_, "print(%s)" % SECRET, 126)


@test()
def what_no_program_can_help_costs_no_attempt():
    store = scratch("store")
    id_ = new(store, retries=0)["task"]
    refused = attempt(store, id_, "1", 125, "--memory", "1K")
    equal((refused["attempts_left"], refused["feedback"]["status"]), (1, "refused"), "a wrong request")
    attempt(store, id_, "print(%s)" % SECRET, 0)


@test()
def wrong_requests_name_the_field():
    store = scratch("store")
    path = write(scratch("accept.json"), json.dumps(NUMBER))
    for arguments, field in ((["new"], "accept"), (["new", "--accept", path, "--retries", "x"], "retries"), (["new", "--accept", path, "--wall", "5"], "wall"),
                             (["new", "--accept", path, "--wall", "11m"], "wall"), (["new", "--accept", path, "--retries", "5000"], "retries"),
                             (["new", "--accept", path, "--feedback", "1G"], "feedback"), (["new", "--accept", path, "operand"], "arguments"),
                             (["new", "--nothing"], "arguments"), (["new", "--accept", "/nonexistent"], "accept"),
                             (["new", "--accept", write(scratch("bad.json"), '[{"kind": "stdout_json", "schema": {"$ref": "http://x/y"}}]')], "accept"),
                             (["try"], "task"), (["try", "task-none", "-c", "1"], "task"), (["show", "task-none"], "task"), (["show"], "task"), (["list", "x"], "arguments")):
        reply = task(store, *arguments, code=125)
        equal((reply["state"], reply["error"]["field"]), ("refused", field), "field of %r (%r)" % (arguments, reply["error"]))
    id_ = new(store)["task"]
    for more, field in ((["--accept", path], "accept"), (["--out", scratch("o")], "out"), (["--wall", "1"], "wall")):
        ending = invoke([HOTCELL, "task", "try", id_, "--json", "--store", store, "-c", "1", *more])
        equal((ending.code, json.loads(ending.stdout)["error"]["field"]), (125, field), "field of %r" % (more,))
    equal(task(store, "show", id_)["tries"], [], "nothing was used")
    equal(invoke([HOTCELL, "task", "new", "--store", "none", "--accept", path]).code, 125, "no store")


if __name__ == "__main__":
    sys.exit(main())
