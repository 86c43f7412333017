#!/usr/bin/env python3
"""An ordinary user: what is missing is named, what is granted works and can be taken back.

    HOTCELL=build/hotcell test/e2e/test_user.py [--list] [--times] [part of a name]...

Makes a user of its own and removes it; the tests follow each other.
"""
import glob
import json
import os
import pwd
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "support"))
from hotcell_test import *  # noqa: E402,F403
import hotcell_test as t  # noqa: E402

NAME = "hctest%d" % os.getpid()
NEEDS = ("subordinate_uids", "subordinate_gids", "id_map_programs", "own_cgroups", "door")


def entry():
    return pwd.getpwnam(NAME)


def as_user(*arguments, **options):
    head = ["setpriv", "--reuid=%d" % entry().pw_uid, "--regid=%d" % entry().pw_gid, "--init-groups", "--inh-caps=-all", "env", "-i",
            "PATH=/usr/bin:/bin", "HOME=" + entry().pw_dir, "LANG=C.UTF-8", t.HOTCELL]
    return invoke([*head, *arguments], cwd="/", **options)


def run_as_user(code, *options):
    ending = as_user("run", "--json", *options, "-c", code)
    return record_of(ending)


def doctor(*arguments, code=0):
    ending = invoke([t.HOTCELL, "doctor", "--json", *arguments])
    equal(ending.code, code, "exit code of doctor %r (%.300r)" % (arguments, ending.stderr))
    return json.loads(ending.stdout)


def states(report):
    return {(grant["name"], grant["state"]) for grant in report["grants"]}


def refused(*parts):
    record = run_as_user("print(1)")
    ends(record, "refused", "host")
    message = record["error"]["message"]
    for part in (*parts, "sudo hotcell doctor --setup " + NAME):
        check(part in message, "%r is not named: %s" % (part, message))


def groups():
    return glob.glob("/sys/fs/cgroup/hotcell/user-%d" % entry().pw_uid) + glob.glob("/sys/fs/cgroup/*/hotcell/user-%d" % entry().pw_uid)


def ranges(path):
    with open(path, encoding="utf-8") as file:
        lines = [line.strip().split(":") for line in file if line.strip()]
    return [(owner, int(first), int(count)) for owner, first, count in lines]


@test()
def without_a_set_up_everything_that_is_missing_is_named():
    refused("/etc/subuid", "/etc/subgid", "cgroup", "door")
    ending = as_user("doctor", "--json")
    equal(ending.code, 1, "exit code of doctor")
    report = json.loads(ending.stdout)
    equal(report["cells_work"], False, "cells_work")
    rows = {row["name"]: row for row in report["user"]}
    equal(sorted(rows), sorted(NEEDS), "rows of the user")
    for name in ("subordinate_uids", "subordinate_gids", "own_cgroups", "door"):
        equal((rows[name]["works"], rows[name]["mend"]), (False, "sudo hotcell doctor --setup " + NAME), name)


@test()
def wrong_uses_of_the_set_up():
    for arguments, part in ((("--setup", "nobody-of-this-name"), "no such user"), (("--setup", "root"), "root"), (("--setup",), "USER"),
                            (("--setup", NAME, "--undo", NAME), "together"), (("--dry-run",), "--setup or --undo"),
                            (("--at-boot",), "--setup or --undo")):
        ending = invoke([t.HOTCELL, "doctor", *arguments])
        equal((ending.code, ending.stdout), (125, b""), "doctor %r" % (arguments,))
        check(part in ending.stderr.decode(), "%r is not said: %r" % (part, ending.stderr))
    ending = as_user("doctor", "--setup", NAME)
    equal(ending.code, 125, "exit code of a set-up by an ordinary user")
    check(b"sudo hotcell doctor --setup" in ending.stderr, "the way is not said: %r" % ending.stderr)


@test()
def a_dry_run_changes_nothing():
    report = doctor("--setup", NAME, "--dry-run")
    check({("subordinate_uids", "would"), ("locks", "would"), ("cgroup", "would"), ("door", "would")} <= states(report), "%r" % report)
    equal([groups(), [r for r in ranges("/etc/subuid") if r[0] == NAME]], [[], []], "what there is after a dry run")


@test(60)
def the_set_up_grants_once_and_says_so():
    first = doctor("--setup", NAME)
    equal(first["good"], True, "good (%r)" % first)
    check({("subordinate_uids", "done"), ("subordinate_gids", "done"), ("cgroup", "done"), ("door", "done")} <= states(first), "%r" % first)
    equal({state for _, state in states(doctor("--setup", NAME))}, {"already"}, "states the second time")
    for path in ("/etc/subuid", "/etc/subgid"):
        table = ranges(path)
        mine = [row for row in table if row[0] == NAME]
        equal([row[2] for row in mine], [65536], "ranges in " + path)
        for owner, start, count in table:
            check(owner == NAME or start + count <= mine[0][1] or mine[0][1] + 65536 <= start, "%s overlaps with that of %s" % (path, owner))


@test(60)
def a_user_s_cell_has_all_layers_and_ids_of_his_range():
    record = run_as_user("import os; print(os.getuid())")
    ends(record, "ok", None)
    one_of(record["isolation"]["grade"], GRADES, "grade")
    equal(record["residue"], {"processes": 0, "mounts": 0, "cgroups": 0, "files": 0}, "residue")
    start = next(row[1] for row in ranges("/etc/subuid") if row[0] == NAME)
    between(record["isolation"]["uid"], start + 32768, start + 65535, "the program's id on the host")
    absent = [item["name"] for item in record["isolation"]["layers"] if item["state"] != "applied"]
    wanted = run_as_user("print(1)", "--min-grade", "A")
    equal(wanted["status"], "refused" if absent else "ok", "status with --min-grade A, absent: %r" % absent)
    ending = as_user("doctor", "--json")
    equal((ending.code, json.loads(ending.stdout)["cells_work"]), (0, True), "doctor")


@test()
def files_that_only_the_run_could_read_are_exported():
    out_folder = os.path.join(entry().pw_dir, "out")
    record = run_as_user("""
import os
for name, mode in (('closed', 0o000), ('own', 0o600)):
    open(name, 'w').write(name); os.chmod(name, mode)
for name, mode in (('listed', 0o400), ('locked', 0o000), ('private', 0o700)):
    os.mkdir(name); open(name + '/in', 'w').write(name); os.chmod(name + '/in', 0o600); os.chmod(name, mode)
os.symlink('/etc/shadow', 'link'); os.symlink('own', 'link2'); os.mkfifo('fifo')
""", "--out", out_folder)
    ends(record, "ok", None)
    found = {os.path.relpath(os.path.join(path, name), out_folder): open(os.path.join(path, name), encoding="utf-8").read()
             for path, _, names in os.walk(out_folder) for name in names}
    equal(found, {"closed": "closed", "own": "own", "listed/in": "listed", "locked/in": "locked", "private/in": "private"}, "exported files")
    equal({os.lstat(os.path.join(out_folder, name)).st_uid for name in found}, {entry().pw_uid}, "owner of what was exported")
    left = [pid for pid in t.processes() if t.owner(pid) == entry().pw_uid]
    equal(len(left), 1, "processes of the user, of which one is the door")


@test()
def compiled_programs_and_a_checker_work_for_a_user():
    if not glob.glob("/usr/bin/gcc"):
        raise Skip("no C compiler")
    ending = as_user("run", "--json", "-l", "c", "-c", "int main(void) { return 7; }")
    equal(record_of(ending)["exit_code"], 7, "exit code of the compiled program")


@test()
def nobody_else_gets_through_the_door():
    script = "import socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.connect('/run/hotcell/user-%d/door')" % entry().pw_uid
    ending = invoke(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "python3", "-c", script])
    check(b"PermissionError" in ending.stderr, "another user at the door: %r" % ending.stderr[-200:])
    equal(os.stat("/run/hotcell/user-%d" % entry().pw_uid).st_mode & 0o777, 0o700, "mode of the folder")


@test(60)
def a_door_that_is_gone_is_named_and_comes_back():
    report = doctor("--setup", NAME)
    pid = int(re.search(r"\d+", next(g["detail"] for g in report["grants"] if g["name"] == "door"))[0])
    os.kill(pid, signal.SIGKILL)
    refused("door: Connection refused")
    check(("door", "done") in states(doctor("--setup", NAME)), "the door was not started again")
    ends(run_as_user("print(1)"), "ok", None)


@test(60)
def a_controller_that_is_not_granted_is_named_or_accepted_by_name():
    folder = "/sys/fs/cgroup/memory/hotcell/user-%d" % entry().pw_uid
    if not os.path.isdir(folder):
        raise Skip("no v1 controllers on this host")
    os.rmdir(folder)
    refused(folder)
    record = run_as_user("print(1)", "--allow", "memory_limit", "--min-grade", "D")
    ends(record, "ok", None)
    equal((record["isolation"]["grade"], layer(record, "memory_limit")["state"]), ("D", "accepted_absent"), "accepted by name")
    doctor("--setup", NAME)
    ends(run_as_user("print(1)"), "ok", None)


@test(60)
def what_was_granted_is_taken_back():
    report = doctor("--undo", NAME, "--dry-run")
    check(("door", "would") in states(report), "%r" % report)
    ends(run_as_user("print(1)"), "ok", None)
    report = doctor("--undo", NAME)
    equal(report["good"], True, "good (%r)" % report)
    equal([groups(), os.path.exists("/run/hotcell/user-%d" % entry().pw_uid)], [[], False], "what is left")
    for path in ("/etc/subuid", "/etc/subgid"):
        equal([row for row in ranges(path) if row[0] == NAME], [], path)
    refused("/etc/subuid", "door")
    equal({state for _, state in states(doctor("--undo", NAME))}, {"already"}, "states the second time")


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("Bail out! users are made by root")
        sys.exit(1)
    if "--list" in sys.argv:
        sys.exit(main())
    # A system user: useradd gives it no ranges of its own.
    subprocess.run(["useradd", "--system", "-m", "-d", "/home/" + NAME, NAME], check=True)
    try:
        result = main()
    finally:
        subprocess.run([t.HOTCELL, "doctor", "--undo", NAME], stdout=subprocess.DEVNULL, check=False)
        subprocess.run(["userdel", "-r", NAME], stderr=subprocess.DEVNULL, check=False)
    sys.exit(result)
