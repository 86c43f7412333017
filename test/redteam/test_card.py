#!/usr/bin/env python3
"""hotcell redteam: the card of this host, cold and warm; and that it can say NOT HELD at all."""
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "support"))
from hotcell_test import HOTCELL, check, equal, main, scratch, test  # noqa: E402

GOOD = ("held", "not_applicable", "not_promised")


def redteam(*options, code=0, hotcell=HOTCELL):
    done = subprocess.run([hotcell, "redteam", "--json", *options], stdout=subprocess.PIPE, check=False, timeout=250)
    equal(done.returncode, code, "exit code (%.400r)" % done.stdout[-400:])
    return json.loads(done.stdout)


def judge(card):
    wrong = [(row["id"], row["result"], row["evidence"]) for row in card["rows"] if row["result"] not in GOOD]
    check(not wrong, "did not hold", *wrong)
    wrong = [(row["id"], row["evidence"]) for row in card["business"] if row["result"] != "caught"]
    check(not wrong, "wrong results were accepted", *wrong)
    equal((card["not_held"], card["not_caught"]), (0, 0), "counts")


@test(timeout=250)
def the_boundary_holds_cold():
    card = redteam()
    judge(card)
    check(len(card["rows"]) >= 45 and len(card["business"]) >= 7, "rows", len(card["rows"]))
    equal(set(card["boundaries"]), {"files", "network", "resources", "identity", "lifecycle", "output", "control"}, "boundaries")
    check(all(row["result"] != "not_promised" for row in card["rows"]), "cold, everything is promised")


@test(timeout=250)
def the_boundary_holds_warm():
    if not os.path.exists(os.path.join(os.path.dirname(HOTCELL), "_hotcell_warm.abi3.so")):
        return
    judge(redteam("--warm"))


@test(timeout=120)
def a_row_that_does_not_hold_is_said_so():
    """The same command with a catalogue whose rows can't hold: what they claim as a breach is allowed."""
    build = scratch()
    shutil.copytree(os.path.join(os.path.dirname(HOTCELL), "share"), os.path.join(build, "share"))
    for name in ("hotcell", "hotcell-hall", "hotcell-keeper", "hotcell-init"):
        os.symlink(os.path.join(os.path.dirname(HOTCELL), name), os.path.join(build, name))
    os.unlink(os.path.join(build, "hotcell"))
    shutil.copy(HOTCELL, os.path.join(build, "hotcell"))
    with open(os.path.join(build, "share", "redteam", "catalogue.yaml"), "w") as file:
        file.write("""
rows:
- {id: X1, boundary: files, title: says so, language: python, program: "print('BREACH')\\nprint('DONE')"}
- {id: X2, boundary: resources, title: meets no limit, language: python, program: "print('DONE')", expect: {hit: memory}}
- {id: X3, boundary: network, title: tries nothing, language: python, program: "print('DONE')", expect: {attempt: connect}}
- {id: X4, boundary: files, title: breaks off, language: python, program: "raise SystemExit(0)"}
- {id: X5, boundary: identity, title: shares a value, language: python, program: "print('VALUE', 1)\\nprint('DONE')", options: {twice: true, differ: true}}
- {id: X6, boundary: lifecycle, title: ends otherwise, language: python, program: "print('DONE')", expect: {statuses: [timeout]}}
- {id: OK, boundary: files, title: holds, language: python, program: "print('DONE')"}
business:
- {id: Y1, title: is right, program: "print(42)", accept: [{kind: stdout_number, value: 42}]}
""")
    card = redteam(code=1, hotcell=os.path.join(build, "hotcell"))
    equal({row["id"]: row["result"] for row in card["rows"]}, {"X1": "NOT HELD", "X2": "NOT HELD", "X3": "NOT HELD", "X4": "NOT HELD",
                                                               "X5": "NOT HELD", "X6": "NOT HELD", "OK": "held"}, "results")
    equal((card["not_held"], card["not_caught"], card["business"][0]["result"]), (6, 1, "NOT CAUGHT"), "counts")
    check(all(row["evidence"] for row in card["rows"] if row["result"] == "NOT HELD"), "evidence", card["rows"])


@test(timeout=60)
def choice_list_and_usage():
    card = redteam("--only", "F01,N01")
    equal([row["id"] for row in card["rows"]], ["F01", "N01"], "only these")
    done = subprocess.run([HOTCELL, "redteam", "--list"], stdout=subprocess.PIPE, text=True, check=True, timeout=20)
    check("F01" in done.stdout and "resources" in done.stdout, "list")
    redteam("--profile", "nosuch", code=1)
    redteam("x", code=125)


if __name__ == "__main__":
    sys.exit(main())
