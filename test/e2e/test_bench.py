#!/usr/bin/env python3
"""hotcell bench: the rows are there, right and of the promised form. Nothing is said of how fast."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "support"))
from hotcell_test import HOTCELL, check, equal, main, test  # noqa: E402

TIMES = ("bare_true", "bare_python", "cold_true", "cold_python")
RATES = ("throughput_bare_python", "throughput_cold_python")


def bench(*options, code=0):
    done = subprocess.run([HOTCELL, "bench", "--json", *options], stdout=subprocess.PIPE, check=False, timeout=200)
    equal(done.returncode, code, "exit code")
    return json.loads(done.stdout)


@test(timeout=200)
def rows_of_the_promised_form():
    report = bench("--rounds", "3", "--seconds", "0.5", "--jobs", "1")
    for name in TIMES:
        row = report["rows"][name]
        check({"name", "p50_us", "p95_us", "p99_us", "n"} <= set(row), name, row)
        check(row["n"] == 3 and 0 < row["p50_us"] <= row["p95_us"] <= row["p99_us"], name, row)
    for name in RATES:
        check(report["rows"][name]["per_second"] > 0 and report["rows"][name]["jobs"] == 1, name, report["rows"][name])
    for name in ("warm_python_record", "warm_python_first_output", "throughput_warm_python"):
        row = report["rows"][name]
        check("skipped" in row or "p50_us" in row or "per_second" in row, name, row)
    equal((report["wrong"], report["leftovers"]), (0, 0), "wrong, leftovers")


@test(timeout=60)
def chosen_rows_only():
    report = bench("--rounds", "1", "--seconds", "0", "--only", "bare_true")
    equal(list(report["rows"]), ["bare_true"], "rows")


@test()
def wrong_options():
    check("rounds" in bench("--rounds", "0", code=125)["message"], "names the option")
    check("operand" in bench("x", code=125)["message"], "operand")


if __name__ == "__main__":
    sys.exit(main())
