#!/usr/bin/env python3
"""Records in the hands of people: log, verify, replay, release; what is scrubbed, what is fixed, and a disk that is full.

    HOTCELL=build/hotcell test/cell/test_records.py [--list] [--times] [part of a name]...
"""
import hashlib
import json
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "support"))
from hotcell_test import *  # noqa: E402,F403
import hotcell_test as t  # noqa: E402

CORPORA = os.environ.get("HOTCELL_CORPORA", os.path.join(t.ROOT, "..", "shared", "corpora"))
ESCAPE = "\x1b[31m"


def call(command_, *arguments, code=0, environ=None):
    """A subcommand with --json: its document."""
    ending = invoke([HOTCELL, command_, "--json", *arguments], environ=environ)
    equal(ending.code, code, "exit code of %s %r (stdout %.400r, stderr %.300r)" % (
        command_, arguments, ending.stdout, ending.stderr))
    return json.loads(ending.stdout)


def plain(command_, *arguments, code=0):
    ending = invoke([HOTCELL, command_, *arguments])
    equal(ending.code, code, "exit code of %s %r (%.300r, %.300r)" % (command_, arguments, ending.stdout, ending.stderr))
    check(b"\x1b" not in ending.stdout + ending.stderr, "a terminal would obey %.300r" % (ending.stdout + ending.stderr))
    return ending.stdout.decode() + ending.stderr.decode()


def stored(code, store, **options):
    return run(code, store=store, **options)[0]


def sql(store, statement):
    with sqlite3.connect(os.path.join(store, "records.sqlite")) as database:
        database.execute(statement)
    database.close()


@test()
def the_log_lists_filters_and_shows():
    store = scratch("store")
    first = stored("print('one')", store)
    stored("raise ValueError('%s')" % ESCAPE.encode("unicode_escape").decode(), store)
    stored("echo three", store, language="bash")
    rows = call("log", "--store", store)
    equal([row["seq"] for row in rows], [3, 2, 1], "newest first")
    equal(rows[2]["id"], first["id"], "id")
    for filters, wanted in ((["--status", "runtime_error"], [2]), (["--language", "bash"], [3]), (["--limit", "1"], [3]),
                            (["--since", "1h"], [3, 2, 1]), (["--since", "2999-01-01"], []), (["--kind", "release"], []),
                            (["--limit", "all"], [3, 2, 1])):
        equal([row["seq"] for row in call("log", "--store", store, *filters)], wanted, "rows for %r" % (filters,))
    shown = call("log", "--store", store, first["id"])
    equal(shown["record"], first, "the record as it was answered")
    equal(call("log", "--store", store, first["id"][:12])["record"], first, "by the beginning of its id")
    equal(call("log", "--store", store, "1")["record"], first, "by its number")
    text = plain("log", "--store", store, rows[1]["id"])
    check("\\x1B[31m" in text, "the escape sequence is visible", text[-3000:])
    missing = [name for name in first if not re.search(r"^%s:" % name, text, re.M)]
    check(not missing, "fields that are not shown", missing)
    for arguments in (["nothere"], ["--since", "yesterday"], ["--limit", "x"], ["--kind", "x"], ["a", "b"], ["--blobs"],
                      ["--status", "ok", "--export", "/tmp/x"], ["--store", "/nonexistent"]):
        answer = call("log", *(["--store", store] if "--store" not in arguments else []), *arguments, code=125)
        check(answer["error"]["field"] and answer["error"]["message"], "an error that names the field", answer)


@test()
def an_exported_log_is_verified_without_the_store():
    store, log = scratch("store"), scratch("log")
    for number in range(3):
        stored("print(%d)" % number, store)
    head = call("log", "--store", store, "--export", log, "--blobs")
    equal(os.stat(log).st_mode & 0o777, 0o600, "mode of the file")
    shutil.move(store, store + ".gone")
    good = call("verify", log, "--head", "%d:%s" % (head["seq"], head["sha256"]))
    equal((good["result"], good["records"], good["head"]["sha256"]), ("good", 3, head["sha256"]), "verification")
    lines = open(log, "rb").read().splitlines(keepends=True)
    # lines: header, records 1 to 3, blobs, head
    for name, changed, rule, line in (
            ("content", lines[:2] + [lines[2].replace(b'"ok"', b'"no"', 1)] + lines[3:], "content", 3),
            ("order", lines[:1] + [lines[2], lines[1]] + lines[3:], "order", 2),
            ("deletion", lines[:2] + lines[3:], "order", 3),
            ("insertion", lines[:2] + [lines[1]] + lines[2:], "order", 3),
            ("length", lines[:2] + [lines[2][:-1] + b" \n"] + lines[3:], "form", 3),
            ("tail", lines[:3], "end", 4),
            ("last record", lines[:3] + lines[4:], "end", None),
            ("middle of a line", lines[:2] + [lines[2][:50]], "form", 3),
            ("blob", lines[:4] + [lines[4].replace(b'"base64":"', b'"base64":"AAAA', 1)] + lines[5:], None, 5)):
        found = call("verify", write(scratch("changed"), b"".join(changed)), code=1)
        equal(found["result"], "broken", name)
        if rule is not None:
            equal(found["defect"]["rule"], rule, "rule for a change of %s: %r" % (name, found["defect"]))
        if line is not None:
            equal(found["defect"]["line"], line, "line for a change of %s: %r" % (name, found["defect"]))
    text = plain("verify", write(scratch("changed"), b"".join(lines[:2] + lines[3:])), code=1)
    check("record 2" in text and "expected" in text and "got" in text, "a plain answer names the link", text)
    call("verify", log, "--head", "3:" + "0" * 64, code=1)
    call("verify", log, "--head", "4:" + head["sha256"], code=1)
    for arguments in (["/nonexistent"], [log, "--head", "x"], [log, "--store", "/tmp"], ["--store", "/nonexistent"]):
        call("verify", *arguments, code=125)


@test()
def a_changed_store_is_found():
    store = scratch("store")
    for number in range(3):
        stored("print(%d)" % number, store)
    equal(call("verify", "--store", store)["result"], "good", "before")
    sql(store, "UPDATE records SET record = replace(record, 'finished', 'finishes') WHERE seq = 2")
    found = call("verify", store, code=1)["defect"]
    equal((found["rule"], found["seq"]), ("content", 2), "defect")
    other = scratch("store")
    stored("print(1)", other)
    stored("print(2)", other)
    sql(other, "DELETE FROM records WHERE seq = 2")
    equal(call("verify", other, code=1)["defect"]["rule"], "end", "a cut")
    record = stored("print(3)", other)
    equal((record["state"], record["error"]["detail"], record["chain"]), ("fault", "record", None), "nothing goes behind a cut")


@test()
def a_replay_is_identical_or_says_what_differs():
    store = scratch("store")
    data = write(scratch("data.csv"), "1,2\n")
    first = stored("import sys; print(sys.argv[1:], sys.stdin.read(), open('data.csv').read()); open('out.txt','w').write('x' * 100)",
                   store, args=["a", "b c"], stdin=b"hello", file=data, env="A=secret value", out=scratch("out"))
    equal(first["request"]["environment"], ["A"], "names of variables")
    check("secret value" not in json.dumps(first["request"]), "their values are not in the record")
    replay = call("replay", "--store", store, first["id"])
    equal((replay["verdict"], replay["environment"], replay["differences"]), ("identical", [], []), "replay")
    equal(replay["origin"], {"id": first["id"], "sha256": first["chain"]["sha256"]}, "origin")
    equal(call("log", "--store", store, replay["run"]["id"])["record"]["stdout"], first["stdout"], "stdout of the second run")
    log = scratch("log")
    call("log", "--store", store, "--export", log, "--blobs")
    equal(call("replay", log, "--id", first["id"], "--store", "none")["verdict"], "identical", "from the file")
    changing = stored("import time; print('before ' + str(time.time_ns())); open('t', 'w').write('abc' + str(time.time_ns()))", store,
                      out=scratch("out"))
    replay = call("replay", "--store", store, changing["id"], code=1)
    equal(replay["verdict"], "differs", "verdict")
    rows = {row["what"]: row for row in replay["differences"]}
    check(rows["stdout"]["offset"] >= 7 and "before " in rows["stdout"]["before_context"], "first byte of stdout", rows)
    check(rows["artifact t"]["offset"] >= 3 and rows["artifact t"]["now_context"].startswith("abc"), "of the artifact", rows)
    check("first differs at byte" in plain("replay", "--store", store, changing["id"], code=1), "plain text")
    status = stored("import sys, time; sys.exit(int(time.time_ns() / 1000) % 200 + 1)", store)
    replay = call("replay", "--store", store, status["id"], code=1)
    check("exit_code" in [row["what"] for row in replay["differences"]], "the exit code", replay)
    equal(call("verify", "--store", store)["result"], "good", "the chain with replays in it")


@test()
def a_replay_tells_of_another_environment():
    store, share = scratch("store"), None
    first = stored("print(1)", store)
    # Another environment: the recorded digest is of another manifest. Programs and share are copied, one manifest changed.
    build = os.path.dirname(HOTCELL)
    share = scratch("other")
    os.makedirs(share)
    for name in ("hotcell", "hotcell-hall", "hotcell-keeper", "hotcell-init"):
        shutil.copy(os.path.join(build, name), share)
    shutil.copytree(os.path.join(build, "share"), os.path.join(share, "share"))
    with open(os.path.join(share, "share", "runtimes", "python.yaml"), "a", encoding="utf-8") as file:
        file.write("# changed\n")
    ending = invoke([os.path.join(share, "hotcell"), "replay", "--json", "--store", store, first["id"]])
    equal(ending.code, 2, "exit code (%.300r)" % ending.stderr)
    replay = json.loads(ending.stdout)
    equal(replay["verdict"], "environment_changed", "verdict")
    equal([row["what"] for row in replay["environment"]], ["runtime.environment_sha256"], "what")
    equal(replay["differences"], [], "and the output is the same")


@test()
def a_replay_finds_the_languages_of_its_run():
    store, manifests = scratch("store"), scratch("manifests")
    os.makedirs(manifests)
    with open(os.path.join(manifests, "mawk.yaml"), "w", encoding="utf-8") as file:
        file.write("name: mawk\nextensions: [.mawk]\nfile: main.mawk\ninterpreter: [/usr/bin/mawk]\ninstall: mawk\n"
                   "run: [\"${interpreter}\", -f, \"${file}\"]\n"
                   "version: {command: [\"${interpreter}\", -W, version], pattern: \"([0-9.]+)\"}\n")
    first = stored('BEGIN { print 6 * 7 }', store, language="mawk", runtimes=manifests)
    equal(first["status"], "ok", "status")
    answer = call("replay", "--store", store, first["id"], code=125)
    check("mawk" in answer["error"]["message"], "which language is missing", answer)
    equal(call("replay", "--store", store, "--runtimes", manifests, first["id"])["verdict"], "identical", "verdict")
    answer = call("replay", "--store", store, "--runtimes", os.path.join(manifests, "mawk.yaml"), first["id"], code=125)
    equal(answer["error"]["field"], "runtimes", "the field")


@test()
def what_cant_be_replayed():
    store = scratch("store")
    good = stored("print(1)", store)
    refused_ = stored("print(1)", store, wall="99h")
    call("replay", "--store", store, "run-unknown", code=125)
    call("replay", "--store", store, refused_["id"], code=125)
    call("replay", "--store", store, code=125)
    log = scratch("log")
    call("log", "--store", store, "--export", log)
    answer = call("replay", log, "--id", good["id"], "--store", "none", code=125)
    check("--blobs" in answer["error"]["message"], "what to do", answer)
    sql(store, "DELETE FROM blobs WHERE sha256 = '%s'" % good["request"]["code_sha256"])
    answer = call("replay", "--store", store, good["id"], code=125)
    equal(answer["error"]["field"], "program", "what is missing")
    sql(store, "UPDATE records SET record = replace(record, 'standard', 'standart') WHERE seq = 1")
    check("changed" in call("replay", "--store", store, good["id"], code=125)["error"]["message"], "a changed record")


@test()
def a_release_is_a_decision_of_its_own():
    store = scratch("store")
    accepted = stored("print(7)", store, expect_number="7")
    equal((accepted["acceptance"]["status"], accepted["release"]["status"]), ("accepted", "not_authorised"), "an accepted run")
    release = call("release", "--store", store, accepted["id"], "--by", "Eve", "--note", "seen by hand")
    tool, validator = t._tool()
    equal(list(tool.violations(release, validator)), [], "the record of the release")
    equal(release["run"], {"id": accepted["id"], "sha256": accepted["chain"]["sha256"]}, "of which run")
    now = call("log", "--store", store, accepted["id"])
    equal((now["release"]["status"], now["release"]["by"]), ("authorised", "Eve"), "what holds now")
    equal(now["record"]["release"]["status"], "not_authorised", "the run's own record does not change")
    equal([row["release"] for row in call("log", "--store", store, "--kind", "run")], ["authorised"], "in the list")
    call("release", "--store", store, accepted["id"], "--by", "Adam", code=1)
    call("release", "--store", store, accepted["id"], "--by", "Eve", "--revoke")
    equal(call("log", "--store", store, accepted["id"])["release"]["status"], "not_authorised", "after it was taken back")
    call("release", "--store", store, accepted["id"], "--by", "Eve", "--revoke", code=1)
    call("release", "--store", store, accepted["id"], "--by", "Eve")
    refused_ = stored("print(1)", store, wall="99h")
    call("release", "--store", store, refused_["id"], "--by", "Eve", code=1)
    call("release", "--store", store, "run-unknown", "--by", "Eve", code=1)
    call("release", "--store", store, release["id"], "--by", "Eve", code=1)
    call("release", "--store", store, accepted["id"], code=125)
    call("release", "--store", store, accepted["id"], "--by", "a\nb", code=1)
    other = stored("print(1)", store)
    sql(store, "UPDATE records SET record = replace(record, 'seen by hand', 'seen by hend')")
    answer = call("release", "--store", store, other["id"], "--by", "Eve", code=1)
    check("broken" in answer["error"]["message"], "a broken chain", answer)


@test()
def output_is_scrubbed():
    token, store = "tok-abcdef-0123456789", scratch("store")
    environ = dict(os.environ, SERVICE_API_TOKEN=token, HOME="/home/somebody")
    program = "import sys\nprint('%s', '%s/records.sqlite', '/home/somebody/x', 'sk-aaaabbbb', '%s')\nraise ValueError('%s')" % (
        token, store, socket.gethostname(), token)
    record, _, _, _ = run(program, store=store, environ=environ, redact="sk-[a-z]{8}")
    for secret in (token, store, "/home/somebody", "sk-aaaabbbb"):
        check(secret not in json.dumps([record["stdout"], record["stderr"], record["error"]]), "%r is in the record" % secret,
              record["stdout"], record["stderr"], record["error"])
    counts = {row["kind"]: row["count"] for row in record["stdout"]["redactions"]}
    equal((counts["secret"], counts["pattern"], counts["host_path"]), (1, 1, 2), "counts")
    equal(record["error"]["message"], "[secret]", "the message of the error")
    raw = b" ".join(part.encode() for part in (token, store + "/records.sqlite", "/home/somebody/x", "sk-aaaabbbb", socket.gethostname())) + b"\n"
    equal((record["stdout"]["bytes"], record["stdout"]["sha256"]), (len(raw), hashlib.sha256(raw).hexdigest()), "size and digest of the raw output")
    database = b"".join(open(os.path.join(store, name), "rb").read() for name in os.listdir(store))
    check(b"[secret]" in database, "the record is in the store")
    # at the cut between head and tail
    for shift in range(0, len(token) + 2, 3):
        cut, _, _, _ = run("print('x' * %d + '%s' + 'y' * 5000, end='')" % (512 - shift, token), store=store, environ=environ, output="4K")
        text = cut["stdout"]["text"]
        check(cut["stdout"]["truncated"], "the output was cut")
        pieces = [token[i:i + 6] for i in range(len(token) - 5) if token[i:i + 6] in text]
        check(not pieces, "pieces of the secret at the cut", pieces)
    for bad in ("a", "(x|yz)", "[abc", "x{900}yz"):
        record = record_of(invoke(command("print(1)", store=store, redact=bad)))
        equal((record["state"], record["error"]["field"]), ("refused", "redact"), "--redact %s" % bad)


@test(timeout=120)
def deterministic_fixes_what_the_manifests_say():
    python = "import random, os; print(random.random(), random.Random().random(), hash('a'), os.cpu_count(), {'x', 'y', 'z'})"
    programs = [("python", python, ["hash_seed", "random", "numpy", "time_zone", "locale", "cpu_count"]),
                ("javascript", "console.log(Math.random())", ["random", "time_zone", "locale"]),
                ("ruby", "puts rand, [1, 2, 3, 4].shuffle.inspect", ["random", "time_zone", "locale"]),
                ("php", "<?php echo mt_rand(), rand();", ["random", "time_zone", "locale"]),
                ("lua", "print(math.random(1000000))", ["random", "time_zone", "locale"]),
                ("perl", "my %h = map { $_ => 1 } 1 .. 20; print keys %h", ["hash_seed", "time_zone", "locale"]),
                ("r", "print(runif(3))", ["random", "time_zone", "locale", "cpu_count"])]
    usable = {row["name"] for row in json.loads(invoke([HOTCELL, "runtimes", "--json"]).stdout) if row["usable"]}
    for language, program, fixed in programs:
        if language not in usable:
            continue
        records = [run(program, language=language, **{"deterministic=%s" % seed: True})[0] for seed in (7, 7, 8)]
        equal([record["status"] for record in records], ["ok"] * 3, language + " (%.300r)" % err(records[0]))
        equal(out(records[0]), out(records[1]), "the same seed in " + language)
        equal(records[0]["runtime"]["deterministic"], fixed, "what is fixed in " + language)
        check(out(records[0]) != out(records[2]), "another seed in %s gives the same" % language, out(records[0]))
        equal(records[0]["files"]["created"], [], "the working folder of " + language)
    record = run("print(1)", deterministic=True, env="PYTHONPATH=/x")[0]
    equal(record["runtime"]["deterministic"], ["hash_seed", "time_zone", "locale"], "what the caller took back is not claimed")


@test()
def a_full_disk_is_a_fault_and_loses_nothing():
    if os.geteuid() != 0:
        raise Skip("a small file system of its own can be mounted by root only")
    place = scratch("disk")
    os.makedirs(place)
    # A mount namespace of its own: nobody else sees the disk, and it goes with the process.
    script = r'''
import json, os, subprocess, sys
hotcell, place = sys.argv[1:]
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=640k", "tmpfs", place], check=True)
answers = []
for number in range(60):
    ending = subprocess.run([hotcell, "run", "--json", "--store", place + "/store", "-c",
                             "print('x' * 20000)"], capture_output=True, stdin=subprocess.DEVNULL)
    answers.append((ending.returncode, json.loads(ending.stdout)))
    if ending.returncode != 0:
        break
verified = subprocess.run([hotcell, "verify", "--json", "--store", place + "/store"], capture_output=True)
print(json.dumps({"answers": [[code, r["state"], r["status"], r["cause"], r["error"], r["chain"]] for code, r in answers],
                  "verify": json.loads(verified.stdout) if verified.stdout else None, "err": verified.stderr.decode()}))
'''
    ending = invoke(["unshare", "--mount", sys.executable, "-c", script, HOTCELL, place], timeout=60)
    equal(ending.code, 0, "script (%.500r)" % ending.stderr)
    answer = json.loads(ending.stdout)
    good = [row for row in answer["answers"] if row[0] == 0]
    code, state, status, cause, error, chain = answer["answers"][-1]
    check(len(good) >= 2, "some runs had room", answer)
    check((code, cause, chain) == (125, "host", None) and (state, status, error["detail"]) in (
        ("fault", "fault", "record"), ("refused", "refused", "store")), "the one that had none", answer["answers"][-1])
    check(answer["verify"] is not None and answer["verify"]["result"] == "good" and answer["verify"]["records"] == len(good),
          "every earlier record is there", answer["verify"], answer["err"])


@test()
def nothing_a_terminal_obeys_is_printed():
    store, odd = scratch("store"), "x%sy" % ESCAPE
    plain("log", "--store", store + odd, code=125)
    plain("log", odd, "--store", store, code=125)
    plain("verify", odd, code=125)
    plain("replay", odd, "--store", store, code=125)
    plain("run", "--store", "none", "--language", odd, "-c", "1", code=127)
    plain(odd, code=125)
    stored("print(1)", store)
    identity = call("log", "--store", store)[0]["id"]
    plain("release", "--store", store, identity, "--by", odd, code=1)


def corpus_items(count):
    names = ("humaneval", "mbpp", "pal_gsm8k", "pal_math", "pal_other", "multilang")
    items, per_file = [], (count + len(names) - 1) // len(names)
    for name in names:
        path = os.path.join(CORPORA, name + ".jsonl")
        if not os.path.exists(path):
            raise Skip("there are no corpora beside the tree (%s)" % path)
        taken = []
        with open(path, encoding="utf-8") as file:
            for line in file:
                item = json.loads(line)
                bare = item.get("bare") or {}
                if bare.get("same_stdout_twice") and not item.get("files") and bare.get("class") in ("ok", "runtime_error", "syntax_error") \
                        and bare.get("wall_ms", 9999) < 400:
                    taken.append(line)
        step = max(1, len(taken) // per_file)
        items += taken[::step][:per_file]
    return items


@test(timeout=400)
def replays_of_a_corpus_are_identical():
    items = corpus_items(int(os.environ.get("HOTCELL_REPLAYS", "210")))
    store = scratch("store")
    data = write(scratch("items.jsonl"), "".join(items))
    ending = invoke([HOTCELL, "eval", "--store", store, "--jobs", "2", "--wall", "20s", "--memory", "1G", data], timeout=200)
    check(ending.code in (0, 1), "eval: %.500r" % ending.stderr)
    rows = call("log", "--store", store, "--kind", "run", "--limit", "all")
    check(len(rows) >= 200, "only %d runs" % len(rows))
    verdicts, other = {}, []
    for row in rows:
        ending = invoke([HOTCELL, "replay", "--json", "--store", store, row["id"]])
        answer = json.loads(ending.stdout)
        verdict = answer.get("verdict", "not replayed")
        verdicts[verdict] = verdicts.get(verdict, 0) + 1
        if verdict != "identical":
            other.append((row["id"], row["language"], verdict, answer.get("environment"), answer.get("differences"), answer.get("error")))
    print(verdicts, *other, sep="\n")
    check(verdicts.get("identical", 0) >= 0.99 * len(rows), "identical: %r of %d" % (verdicts, len(rows)), *other[:5])
    equal(call("verify", "--store", store)["result"], "good", "the chain after all of it")


if __name__ == "__main__":
    sys.exit(main())
