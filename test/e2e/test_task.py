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


@test(timeout=90)
def the_time_holds_for_judging_too():
    """Without one bound over all of it, each attempt could take three times its wall: run, test code, checker."""
    store = scratch()
    made = new(store, [{"kind": "asserts", "code": "while True: pass"}, {"kind": "checker", "code": "while True: pass", "wall": "60s"}],
               "--attempts", "2", "--wall", "2s", "--startup", "4s")
    equal(made["worst_case_us"], 8000000, "worst case")
    spent = []
    for left in (1, 0):
        answer = task(store, "try", made["id"], "-c", "import time; time.sleep(1)", code=125)
        equal(answer["attempts_left"], left, "attempts")
        check("checker" in answer["feedback"]["not_judged"], "a checker that was ended has not judged", answer)
    spent = [attempt["spent_us"] for attempt in task(store, "show", made["id"])["attempts"]]
    check(sum(spent) < 8000000, "the worst case was passed", spent)


@test(timeout=60)
def an_attempt_has_what_the_task_says():
    store = scratch()
    made = new(store, [{"kind": "exit_zero"}], "--profile", "data", "--attempts", "7")
    for options in (["--accept", write(scratch("a.json"), '[{"kind": "exit_zero"}]')], ["--out", scratch() + "/o"], ["--profile", "pal"],
                    ["--language", "bash"], ["--store", scratch()]):
        task(store, "try", made["id"], *options, "-c", "print(1)", code=125)
    equal(task(store, "show", made["id"])["attempts"], [], "none of these is an attempt")
    answer = task(store, "try", made["id"], "-c", "print(1)")
    equal((answer["accepted"], answer["worst_case_left_us"]), (True, 0), "accepted")
    task(store, "new", "--goal", "x", "--accept", write(scratch("a.json"), '[{"kind": "exit_zero"}]'), "--language", "cobol", code=127)
    refused = task(store, "new", "--goal", "x", "--accept", write(scratch("a.json"), '[{"kind": "exit_zero"}]'), "--profile", "nosuch", code=125)
    equal(refused["field"], "profile", "field")
    profile = write(scratch("few.yaml"), "version: 1\nattempts: 2\n")
    made = new(store, [{"kind": "exit_zero"}], "--profile", profile)
    equal(made["budget"]["attempts"], 2, "attempts as the profile says")


@test(timeout=60)
def feedback_keeps_characters_whole_and_answers_secret():
    store = scratch()
    made = new(store, [{"kind": "asserts", "code": "assert secret() == 'ANSWER-991', 'ANSWER-991'"},
                       {"kind": "checker", "code": "print('ANSWER-991'); raise SystemExit(1)"}], "--feedback", "300")
    answer = task(store, "try", made["id"], "-c", "def secret(): return 1", code=1)
    equal(sorted(answer["feedback"]["failed"]), ["asserts", "checker"], "which failed")
    check("ANSWER" not in json.dumps(answer) + json.dumps(task(store, "show", made["id"])), "the answer came back", answer)
    answer = task(store, "try", made["id"], "-c", "import sys\nsys.stderr.write('\u00e4' * 999 + '\\n')\nraise ValueError('\u00e4\u20ac' * 200)", code=1)
    check(0 < len(answer["feedback"]["message"].encode()) <= 75 and len(answer["feedback"]["last_lines"].encode()) <= 150, "bounds", answer)


@test(timeout=60)
def no_answer_comes_back_and_texts_stay_whole():
    store, secret = scratch(), "4217"
    made = new(store, [{"kind": "stdout_number", "value": int(secret)}, {"kind": "asserts", "code": "assert f() == %s, 'wanted %s'" % (secret, secret)},
                       {"kind": "checker", "code": "import sys\nprint('the answer is %s')\nsys.exit(1)" % secret},
                       {"kind": "stdout_matches", "pattern": "^%s$" % secret}, {"kind": "stdout_equals", "value": secret}],
               "--attempts", "9", "--feedback", "303")
    head = "import sys\ndef f(): return 1\n"
    for body in ("print(1)", "raise ValueError('\u00e4' * 10000)", "sys.stderr.write('\u00e4' * 5000); sys.exit(1)",
                 "sys.stderr.write('x\u20ac' * 5000 + '\\n'); sys.exit(1)", "sys.stderr.buffer.write(b'\\xff' * 1000)"):
        answer = task(store, "try", made["id"], "-c", head + body, code=1)
        check(secret not in json.dumps(answer), "the answer came back", answer)
        size = sum(len((answer["feedback"].get(name) or "").encode()) for name in ("type", "message", "last_lines"))
        check(size <= 303 + 40, "%d bytes of feedback" % size, answer["feedback"])
    check(secret not in json.dumps(task(store, "show", made["id"])), "show tells the answer")


@test(timeout=60)
def one_wall_for_all_cells_of_an_attempt():
    store = scratch()
    made = new(store, [{"kind": "asserts", "code": "import time\ntime.sleep(60)"}, {"kind": "checker", "code": "import time\ntime.sleep(60)"}],
               "--attempts", "1", "--wall", "3s")
    began = time.monotonic()
    task(store, "try", made["id"], "-c", "import time\ntime.sleep(1)", code=125)  # the checker had no time left: undecided
    check(time.monotonic() - began < 20, "test code and checker had walls of their own")


if __name__ == "__main__":
    sys.exit(main())
