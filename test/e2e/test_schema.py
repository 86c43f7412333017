#!/usr/bin/env python3
"""The schema of a record: stored and fresh output are the same, and it tells good records from bad ones.

    HC_SCHEMA_GEN=build/schema-gen test/e2e/test_schema.py [--update]

Results are TAP on standard output. --update renews the stored schema and the tables of docs/record.md first.
"""
import copy
import hashlib
import importlib.machinery
import importlib.util
import json
import os
import re
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
SCHEMA_FILE = os.path.join(ROOT, "share", "schema", "hotcell.run.1.json")
OTHERS = {kind: os.path.join(ROOT, "share", "schema", "hotcell.%s.1.json" % kind) for kind in ("release", "replay")}
DOCUMENT = os.path.join(ROOT, "docs", "record.md")
TABLES = re.compile(r"(<!-- begin: [^\n]*-->\n)(.*)(<!-- end -->\n)", re.S)
TOOL = os.path.join(ROOT, "tools", "validate-record")
GONE = object()
DIGEST = "ab" * 32
NOW = "2025-03-01T12:00:00.123456Z"

sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("validate_record", TOOL)
tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("validate_record", loader))
loader.exec_module(tool)


def generated(*arguments):
    return subprocess.run([os.environ["HC_SCHEMA_GEN"], *arguments], check=True, capture_output=True, text=True).stdout


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


# ---- hand-made records ----

def stream(text):
    data = text.encode()
    return {"text": text, "base64": None, "encoding": "utf-8", "bytes": len(data), "kept_bytes": len(data),
            "head_bytes": len(data), "truncated": False, "omitted_bytes": 0,
            "sha256": hashlib.sha256(data).hexdigest(), "redactions": []}


def words_at(schema, *path):
    for name in path:
        schema = schema[name]
    return schema


def finished(schema):
    limits = words_at(schema, "properties", "limits", "required")
    layers = words_at(schema, "properties", "isolation", "properties", "layers", "items", "properties", "name", "enum")
    meters = [name for name in words_at(schema, "properties", "usage", "required")
              if name not in ("meters", "confidence")]
    usage = {name: 5 for name in meters}
    usage["meters"] = {name: "cgroup" for name in meters}
    usage["confidence"] = {name: "exact" for name in meters}
    record = {
        "schema": "hotcell.run/1", "id": "01J-run", "created_at": NOW, "submitter": None, "state": "finished", "status": "ok",
        "cause": None, "exit_code": 0, "signal": None, "signal_name": None, "error": None,
        "stdout": stream("grüße \x1b[0m\x7f\n"), "stderr": stream(""), "result": None, "compile": None,
        "artifacts": [{"path": "plot.png", "path_base64": None, "bytes": 3, "sha256": DIGEST, "type": "image/png",
                       "exported": True, "findings": []}],
        "files": {"created": ["plot.png"], "changed": [], "deleted": [], "omitted": 0},
        "usage": usage,
        "limits": {name: {"requested": None, "applied": 7, "enforced_by": "cgroup", "hit": False} for name in limits},
        "network": {"mode": "none", "attempts": [
            {"at_us": 10, "call": "connect", "protocol": "tcp", "address": "192.0.2.1", "port": 80, "name": None,
             "decision": "refused", "rule": None}], "omitted": 0},
        "syscalls_denied": [{"name": "ptrace", "count": 2, "first": {"at_us": 4, "arguments": ["0x0"] * 6, "path": None}}],
        "filter": {"sha256": DIGEST, "allowed": 300},
        "isolation": {"tier": "native", "grade": "A", "attested": "after_exec", "uid": 100001, "gid": 100001,
                      "layers": [{"name": name, "state": "applied", "evidence": "read back"} for name in layers],
                      "capabilities": "0" * 16, "mounts": ["/ ro", "/work rw"]},
        "cell": {"id": "7", "created_at": NOW, "destroyed_at": None, "warm": False, "made_ahead": True},
        "policy": {"profile": "standard", "version": 1, "sha256": DIGEST, "risk": "low", "findings": [
            {"rule": "module.deny", "line": 1, "column": 8, "name": "os", "message": "not allowed", "severity": "warning"}]},
        "acceptance": {"status": "accepted", "predicates": [
            {"kind": "stdout_number", "ok": True, "expected": "3.5", "got": "3.5"}]},
        "release": {"status": "not_authorised", "by": None, "at": None},
        "runtime": {"language": "python", "version": "3.11.2", "environment_sha256": DIGEST, "deterministic": []},
        "timing": {name: 1 for name in words_at(schema, "properties", "timing", "required")},
        "residue": {"processes": 0, "mounts": 0, "cgroups": 0, "files": 0},
        "request": {"code_sha256": DIGEST, "inputs": [{"name": "a.csv", "bytes": 3, "sha256": DIGEST}], "limits": {},
                    "profile": None, "arguments": ["-v"], "stdin": {"bytes": 0, "sha256": DIGEST}, "environment": ["LANG"], "sha256": None, "flags": ["-O2"]},
        "chain": {"seq": 1, "previous_sha256": None, "sha256": ""},
    }
    return record


def refused(schema):
    record = {name: None for name in schema["required"]}
    record.update({
        "schema": "hotcell.run/1", "id": "r-2", "created_at": NOW, "state": "refused", "status": "refused", "cause": "field",
        "error": dict.fromkeys(words_at(schema, "properties", "error", "required"), None) | {"field": "--wall"},
        "acceptance": {"status": "not_requested", "predicates": None},
        "release": {"status": "not_authorised", "by": None, "at": None}})
    return record


ENDED = {"exit_code": None, "signal": 9, "signal_name": "SIGKILL"}
CUT = dict(stream("abcd"), bytes=10, head_bytes=1, truncated=True, omitted_bytes=6, sha256=DIGEST)
RAW = dict(stream(""), text=None, base64="/w==", encoding="base64", bytes=1, kept_bytes=1, head_bytes=1,
           sha256=hashlib.sha256(b"\xff").hexdigest())
TIMEOUT = ENDED | {"status": "timeout", "cause": "wall_time"}
OOM = ENDED | {"status": "memory_limit", "cause": "memory"}

# what is changed in a finished record, and where the violation must be named (None: it is good)
FINISHED_CASES = [
    ("a plain one", {}, None),
    ("runtime error", {"status": "runtime_error", "cause": "exception", "exit_code": 1}, None),
    ("died by a signal", ENDED | {"status": "runtime_error", "cause": "signal"}, None),
    ("timeout", TIMEOUT | {"limits.wall.hit": True}, None),
    ("memory limit", OOM | {"limits.memory.hit": True}, None),
    ("memory of the host", OOM | {"cause": "host_memory"}, None),
    ("output cut", {"stdout": CUT, "limits.output.hit": True}, None),
    ("output not UTF-8", {"stdout": RAW}, None),
    ("output scrubbed", {"stdout.text": "[path]", "stdout.redactions": [{"kind": "host_path", "count": 1}]}, None),
    ("compile error", {"status": "compile_error", "cause": "exit_code", "exit_code": None, "stdout": None, "stderr": None,
                       "compile": {"exit_code": 1, "stdout": stream(""), "stderr": stream("bad"), "wall_us": 9,
                                   "status": "compile_error"}}, None),
    ("result as JSON text", {"result": {"text": None, "json": "1.5", "mime": {"image/png": "AAAA"}}}, None),
    ("cancelled", ENDED | {"status": "cancelled", "cause": "client"}, None),
    ("not yet torn down", {"residue": None, "timing.teardown_us": None}, None),
    ("no chain", {"chain": None}, None),
    ("a secondary layer missing", {"isolation.layers.landlock.state": "unavailable", "isolation.grade": "B"}, None),
    ("a primary layer accepted", {"isolation.layers.cpu_meter.state": "accepted_absent", "isolation.grade": "C"}, None),
    ("limit asked for", {"limits.wall.requested": 7, "request.limits": {"wall": 7}}, None),
    ("released", {"release": {"status": "authorised", "by": "eve", "at": NOW}}, None),

    ("unknown field", {"extra": 1}, "(record)"),
    ("unknown nested field", {"cell.extra": 1}, "cell"),
    ("missing field", {"submitter": GONE}, "(record)"),
    ("missing nested field", {"timing.run_us": GONE}, "timing"),
    ("other schema", {"schema": "hotcell.run/2"}, "schema"),
    ("float", {"timing.run_us": 1.0}, "timing.run_us"),
    ("number that is not one", {"usage.wall_us": float("nan")}, "usage.wall_us"),
    ("negative", {"timing.run_us": -1}, "timing.run_us"),
    ("beyond 2^53", {"timing.run_us": 2**53}, "timing.run_us"),
    ("truth as number", {"timing.run_us": True}, "timing.run_us"),
    ("exit code 256", {"exit_code": 256}, "exit_code"),
    ("unknown status", {"status": "fine"}, "status"),
    ("unknown cause", {"status": "runtime_error", "cause": "boredom"}, "cause"),
    ("unknown layer", {"isolation.layers.keyring.name": "moat"}, "isolation.layers.%d.name"),
    ("unknown meter", {"usage.meters.joules": "x"}, "usage.meters"),
    ("date without zone", {"created_at": "2025-03-01T12:00:00"}, "created_at"),
    ("date that is none", {"created_at": "2025-02-30T12:00:00Z"}, "created_at"),
    ("digest in capitals", {"filter.sha256": DIGEST.upper()}, "filter.sha256"),
    ("digest with newline", {"filter.sha256": DIGEST + "\n"}, "filter.sha256"),
    ("five arguments", {"syscalls_denied.0.first.arguments": ["0x0"] * 5}, "syscalls_denied.0.first.arguments"),
    ("finished without isolation", {"isolation": None}, "isolation"),
    ("finished without limits", {"limits": None}, "limits"),
    ("finished without stdout", {"stdout": None}, "stdout"),
    ("ok with exit code 1", {"exit_code": 1}, "exit_code"),
    ("ok without exit code", {"exit_code": None}, "exit_code"),
    ("ok with a cause", {"cause": "exit_code"}, "cause"),
    ("ok but refused", {"state": "refused"}, "state"),
    ("refused but finished", {"status": "refused", "cause": "grade"}, "state"),
    ("timeout without hit", TIMEOUT, "limits.wall.hit"),
    ("timeout with the other hit", TIMEOUT | {"cause": "cpu_time", "limits.wall.hit": True}, "limits.cpu.hit"),
    ("timeout by memory", TIMEOUT | {"cause": "memory", "limits.memory.hit": True}, "cause"),
    ("memory limit without hit", OOM, "limits.memory.hit"),
    ("error without cause", {"status": "runtime_error", "exit_code": 1}, "cause"),
    ("exit code 0 as cause", {"status": "runtime_error", "cause": "exit_code"}, "exit_code"),
    ("signal as cause but none", {"status": "runtime_error", "cause": "signal", "exit_code": 1}, "signal"),
    ("code and signal", {"status": "runtime_error", "cause": "signal", "exit_code": 1, "signal": 9,
                         "signal_name": "SIGKILL"}, "signal"),
    ("signal without name", TIMEOUT | {"signal_name": None, "limits.wall.hit": True}, "signal_name"),
    ("text and base64", {"stdout.base64": "AAAA"}, "stdout"),
    ("neither text nor base64", {"stdout.text": None}, "stdout"),
    ("encoding of the other", {"stdout.encoding": "base64"}, "stdout.encoding"),
    ("kept_bytes wrong", {"stdout.kept_bytes": 1}, "stdout.kept_bytes"),
    ("omitted_bytes wrong", {"stdout": CUT | {"omitted_bytes": 5}}, "stdout.omitted_bytes"),
    ("truncated wrong", {"stdout": CUT | {"truncated": False}}, "stdout.truncated"),
    ("head_bytes wrong", {"stdout": CUT | {"head_bytes": 5}}, "stdout.head_bytes"),
    ("stdout digest wrong", {"stdout.sha256": DIGEST}, "stdout.sha256"),
    ("lone surrogate", {"stdout.text": "\ud800"}, "stdout.text"),
    ("base64 garbage", {"stdout": RAW | {"base64": "A==="}}, "stdout.base64"),
    ("meter without confidence", {"usage.confidence.cpu_us": GONE}, "usage.confidence.cpu_us"),
    ("mechanism of an absent meter", {"usage.io_bytes": None, "usage.confidence.io_bytes": GONE}, "usage.meters.io_bytes"),
    ("limit applied by nothing", {"limits.cpu.enforced_by": None}, "limits.cpu.enforced_by"),
    ("hit but not applied", {"limits.io.applied": None, "limits.io.hit": True}, "limits.io.hit"),
    ("requested differs", {"request.limits": {"wall": 3}}, "limits.wall.requested"),
    ("layer missing", {"isolation.layers.seccomp": GONE}, "isolation.layers"),
    ("layer twice", {"isolation.layers.keyring.name": "seccomp"}, "isolation.layers.%d"),
    ("primary layer unavailable", {"isolation.layers.seccomp.state": "unavailable"}, "isolation.layers.%d.state"),
    ("absence that nobody can accept", {"isolation.layers.seccomp.state": "accepted_absent"}, "isolation.layers.%d.state"),
    ("accepted without predicates", {"acceptance.predicates": []}, "acceptance.status"),
    ("accepted against a predicate", {"acceptance.predicates.0.ok": False}, "acceptance.status"),
    ("rejected though all hold", {"acceptance.status": "rejected"}, "acceptance.status"),
    ("released by nobody", {"release": {"status": "authorised", "by": None, "at": NOW}}, "release.by"),
    ("residue", {"residue.cgroups": 1}, "residue.cgroups"),
    ("exported unread", {"artifacts.0.sha256": None}, "artifacts.0.sha256"),
    ("chain digest wrong", {"chain.sha256": DIGEST}, "chain.sha256"),
]

REFUSED_CASES = [
    ("by a field", {}, None),
    ("by the host", {"cause": "host", "error.detail": "hall_slice"}, None),
    ("fault before the start", {"status": "fault", "cause": "host", "error.detail": "clone"}, None),
    ("fault", {"state": "fault", "status": "fault", "cause": "host", "error.detail": "capture"}, None),
    ("cancelled in the queue", {"status": "cancelled", "cause": "client", "error": None}, None),
    ("with a cause of a finished run", {"cause": "wall_time"}, "cause"),
    ("without cause", {"cause": None}, "cause"),
    ("with exit code", {"exit_code": 0}, "exit_code"),
    ("without the field's name", {"error.field": None}, "error.field"),
    ("without an error", {"error": None}, "error"),
    ("by the host, no stage named", {"cause": "host"}, "error.detail"),
    ("as finished", {"state": "finished"}, "state"),
    ("ok", {"status": "ok", "cause": None}, "state"),
    ("accepted", {"acceptance": {"status": "accepted", "predicates": [
        {"kind": "exit_zero", "ok": True, "expected": None, "got": None}]}}, "acceptance.status"),
    ("without acceptance", {"acceptance": None}, "acceptance"),
]


def step(value, name):
    """The key or index of a part; a layer is found by its name."""
    if isinstance(value, dict):
        return name
    if name.isdigit():
        return int(name)
    return next(i for i, item in enumerate(value) if item["name"] == name)


def change(record, changes):
    """A changed copy, and the index of the list item that was changed last."""
    record, index = copy.deepcopy(record), 0
    for path, value in changes.items():
        *parents, last = path.split(".")
        owner = record
        for name in parents:
            key = step(owner, name)
            index = key if isinstance(owner, list) else index
            owner = owner[key]
        key = step(owner, last)
        if value is GONE:
            del owner[key]
        else:
            owner[key] = copy.deepcopy(value)
    if record.get("chain") and "chain.sha256" not in changes:
        record["chain"]["sha256"] = hashlib.sha256(tool.canonical(record)).hexdigest()
    return record, index


# ---- tests ----

def judge(validator, base, changes, expected):
    record, index = change(base, changes)
    found = list(tool.violations(record, validator))
    if expected is None:
        return not found, found
    expected = expected % index if "%d" in expected else expected
    return expected in [path for path, _ in found], found or ["nothing found"]


def run_tool(text, *arguments, environment=None):
    return subprocess.run([sys.executable, TOOL, *arguments], input=text, capture_output=True, text=True,
                          env=dict(os.environ, **(environment or {})))


def command_line_cases(base):
    good, _ = change(base, {})
    bad, _ = change(base, {"residue.files": 2})
    good, bad = json.dumps(good), json.dumps(bad)
    one = run_tool(good)
    yield "command line: a good record", one.returncode == 0, one
    lines = run_tool(good + "\n" + bad + "\n")
    yield "command line: a bad one among lines is named", (
        lines.returncode == 1 and "record 2: residue.files:" in lines.stdout and "record 1" not in lines.stdout), lines
    for name, text in (("nothing", ""), ("no JSON", good[:-1]), ("a duplicate key", good[:-1] + ',"id":"x"}'),
                       ("a list", "[]"), ("an exponent", good.replace('"exit_code": 0', '"exit_code": 0e0'))):
        answer = run_tool(text)
        yield "command line: %s is a violation" % name, answer.returncode == 1 and answer.stdout != "", answer
    missing = run_tool("", "/nonexistent/record.json")
    yield "command line: a file that is missing is an error", missing.returncode == 2, missing


def capitals_case(validator, base):
    record, _ = change(base, {})
    digest = hashlib.sha256(tool.in_capitals(tool.canonical(record))).hexdigest()
    record, _ = change(record, {"chain.sha256": digest})
    found = list(tool.violations(record, validator))
    return "bad: chain over escapes in capitals is told apart", len(found) == 1 and "capitals" in found[0][1], found


def tables_complete(schema, tables):
    names = (words_at(schema, "properties", "status", "enum") + words_at(schema, "properties", "cause", "enum")[:-1] +
             words_at(schema, "properties", "limits", "required") +
             words_at(schema, "properties", "isolation", "properties", "layers", "items", "properties", "name", "enum"))
    return [name for name in names if "\n| `%s` |" % name not in tables]


def open_objects(schema, path="schema"):
    """Objects that would let unknown names through."""
    if isinstance(schema, list):
        for index, item in enumerate(schema):
            yield from open_objects(item, "%s.%d" % (path, index))
    if not isinstance(schema, dict):
        return
    kind = schema.get("type")
    if (kind == "object" or isinstance(kind, list) and "object" in kind) and schema.get("additionalProperties") is not False:
        yield path
    for name, item in schema.items():
        if name != "allOf":  # its parts only add to what is closed already
            yield from open_objects(item, path + "." + name)


def all_cases():
    text, tables = generated(), generated("--markdown")
    stored, document = read(SCHEMA_FILE), TABLES.search(read(DOCUMENT))
    yield "the stored schema is what schema-gen prints", stored == text, ["renew with --update"]
    yield "the tables in docs/record.md are what schema-gen prints", bool(document) and document[2] == tables, [
        "renew with --update"]
    for kind, path in OTHERS.items():
        yield "the stored schema of a %s is what schema-gen prints" % kind, (
            os.path.exists(path) and read(path) == generated("--" + kind)), ["renew with --update"]
        loose = list(open_objects(json.loads(generated("--" + kind))))
        yield "every object of a %s is closed" % kind, not loose, loose
    schema = json.loads(text)
    try:
        tool.jsonschema.Draft202012Validator.check_schema(schema)
        yield "the schema is one", True, []
    except tool.jsonschema.SchemaError as error:
        yield "the schema is one", False, [error.message]
    missing = tables_complete(schema, tables)
    yield "every word has a row in the tables", not missing, missing
    loose = list(open_objects(schema))
    yield "every object is closed", not loose, loose
    validator = tool.make_validator(schema)
    for kind, base, cases in (("finished", finished(schema), FINISHED_CASES), ("refused", refused(schema), REFUSED_CASES)):
        for name, changes, expected in cases:
            verdict, found = judge(validator, base, changes, expected)
            yield "%s: %s, %s" % ("bad" if expected else "good", kind, name), verdict, found
    yield capitals_case(validator, finished(schema))
    yield from command_line_cases(finished(schema))


def update():
    write(SCHEMA_FILE, generated())
    for kind, path in OTHERS.items():
        write(path, generated("--" + kind))
    tables = generated("--markdown")
    write(DOCUMENT, TABLES.sub(lambda m: m[1] + tables + m[3], read(DOCUMENT)))


def main():
    if "HC_SCHEMA_GEN" not in os.environ:
        print("Bail out! HC_SCHEMA_GEN must name the schema-gen program")
        return 2
    if sys.argv[1:] == ["--update"]:
        update()
    elif sys.argv[1:]:
        print("Bail out! usage: test_schema.py [--update]")
        return 2
    number = failed = 0
    for name, verdict, found in all_cases():
        number += 1
        print("%s %d - %s" % ("ok" if verdict else "not ok", number, name))
        if not verdict:
            failed += 1
            for line in str(found).splitlines():
                print("# " + line[:2000])
    print("1..%d" % number)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
