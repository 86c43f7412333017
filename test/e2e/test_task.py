#!/usr/bin/env python3
"""hotcell task: budgets hold, feedback tells what is needed and no answer, two tries at once can't overspend."""
import json
import os
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "support"))
from hotcell_test import HOTCELL, check, equal, main, scratch, test, write  # noqa: E402


def task(store, *arguments, code=0):
    done = subprocess.run([HOTCELL, "task", *arguments[:1], "--json", "--store", store, *arguments[1:]], stdout=subprocess.PIPE, check=False, timeout=100)
    equal(done.returncode, code, "exit code of %r (%.300r)" % (arguments, done.stdout))
    return json.loads(done.stdout)


def new(store, predicates, *options):
    path = write(scratch("accept.json"), json.dumps(predicates))
    return task(store, "new", "--goal", "the answer", "--accept", path, *options)


@test(timeout=60)
def a_loop_until_accepted():
    store = scratch()
    made = new(store, [{"kind": "stdout_number", "value": 4242}])
    equal(made["worst_case_us"], 132000000, "1 + 3 attempts of 30 s with 12 s")
    check("4242" not in json.dumps(made), "the answer is shown", made)
    first = task(store, "try", made["id"], "-c", "print(1 // 0)", code=1)
    equal((first["attempt"], first["accepted"], first["attempts_left"], first["feedback"]["type"], first["feedback"]["line"]),
          (1, False, 3, "ZeroDivisionError", 1), "diagnosis")
    second = task(store, "try", made["id"], "-c", "print(41)", code=1)
    equal((second["feedback"]["failed"], second["attempts_left"]), (["stdout_number"], 2), "which predicate")
    check("4242" not in json.dumps([first, second]), "the answer came back", first, second)
    third = task(store, "try", made["id"], "-c", "print(4242)")
    equal((third["accepted"], third["state"], third["attempts_left"]), (True, "accepted", 0), "accepted")
    refused = task(store, "try", made["id"], "-c", "print(4242)", code=126)
    check("reached" in refused["message"], "no further attempt", refused)
    shown = task(store, "show", made["id"])
    equal([a["accepted"] for a in shown["attempts"]], [False, False, True], "attempts")
    check("4242" not in json.dumps(shown["predicates"]), "show tells the answer", shown)
    rows = sqlite3.connect(os.path.join(store, "records.sqlite")).execute("SELECT record FROM records ORDER BY seq").fetchall()
    equal([json.loads(text)["submitter"] for (text,) in rows], [made["id"]] * 3, "every attempt is a record that names the task")
    equal([row["id"] for row in task(store, "list")], [made["id"]], "list")


@test(timeout=60)
def the_budget_ends():
    store = scratch()
    made = new(store, [{"kind": "exit_zero"}], "--attempts", "2", "--wall", "1s", "--startup", "2s")
    equal(made["worst_case_us"], 4000000, "worst case")
    began = time.monotonic()
    for left in (1, 0):
        answer = task(store, "try", made["id"], "-c", "while True: pass", code=1)
        equal((answer["status"], answer["attempts_left"]), ("timeout", left), "attempts")
    refused = task(store, "try", made["id"], "-c", "print(1)", code=126)
    check("hand over" in refused["message"], "says to hand over", refused)
    check(time.monotonic() - began < 30, "the attempts were cut at their second")
    equal(task(store, "show", made["id"])["state"], "exhausted", "state")
    made = new(store, [{"kind": "exit_zero"}], "--attempts", "5", "--wall", "5s", "--wall-total", "1500ms")
    answer = task(store, "try", made["id"], "-c", "import time; time.sleep(9)", code=1)
    check(answer["wall_left_us"] == 0 or answer["worst_case_left_us"] <= 1500000, "time of all attempts", answer)
    task(store, "try", made["id"], "-c", "import time; time.sleep(9)", code=126 if answer["wall_left_us"] < 1000 else 1)


@test(timeout=60)
def two_at_once_can_not_overspend():
    store = scratch()
    made = new(store, [{"kind": "stdout_equals", "value": "no"}], "--attempts", "3")
    tries = [subprocess.Popen([HOTCELL, "task", "try", "--json", "--store", store, made["id"], "-c", "print(%d)" % n], stdout=subprocess.PIPE)
             for n in range(6)]
    codes = sorted((p.communicate(timeout=60), p.returncode)[1] for p in tries)
    equal(codes, [1, 1, 1, 126, 126, 126], "three attempts and no more")
    equal(len(task(store, "show", made["id"])["attempts"]), 3, "attempts")


@test(timeout=60)
def a_killed_attempt_is_used_up():
    store = scratch()
    made = new(store, [{"kind": "exit_zero"}], "--attempts", "2")
    process = subprocess.Popen([HOTCELL, "task", "try", "--json", "--store", store, made["id"], "-c", "import time; time.sleep(30)"], stdout=subprocess.PIPE)
    time.sleep(1.5)
    process.kill()
    process.communicate()
    shown = task(store, "show", made["id"])
    equal((len(shown["attempts"]), shown["attempts"][0]["run"]), (1, None), "reserved and never settled")
    equal(task(store, "try", made["id"], "-c", "print(1)")["attempt"], 2, "the next one is the second")


@test(timeout=30)
def feedback_is_bounded_and_wrong_use_costs_nothing():
    store = scratch()
    made = new(store, [{"kind": "exit_zero"}], "--feedback", "400")
    answer = task(store, "try", made["id"], "-c", "import sys\nfor i in range(5000): sys.stderr.write('line %d\\n' % i)\nsys.exit(3)", code=1)
    check(len(json.dumps(answer["feedback"])) < 800 and "line 4999" in answer["feedback"]["last_lines"], "feedback", answer["feedback"])
    task(store, "try", made["id"], "--wall", "nonsense", "-c", "1", code=125)
    task(store, "try", made["id"], code=125)
    equal(len(task(store, "show", made["id"])["attempts"]), 1, "wrong requests are no attempts")
    task(store, "try", "task-nosuch00", "-c", "1", code=125)
    task(store, "try", "../../etc/passwd", "-c", "1", code=125)
    task(store, "new", "--goal", "x", code=125)
    task(store, "new", "--goal", "x", "--accept", write(scratch("a.json"), "[]"), code=125)
    task(store, "new", "--attempts", "0", "--goal", "x", "--accept", "y", code=125)


if __name__ == "__main__":
    sys.exit(main())
