#!/usr/bin/env python3
"""libhotcell.so as a program of somebody else sees it: use, wrong use, many threads, nothing left, nothing else visible."""
import ctypes as c
import json
import os
import pathlib
import subprocess
import sys
import threading

build = pathlib.Path(os.environ.get("HOTCELL", "build/hotcell")).resolve().parent
so = build / "src/api/libhotcell.so"
validator = pathlib.Path(__file__).resolve().parents[2] / "tools/validate-record"


class Options(c.Structure):
    _fields_ = [("size", c.c_size_t), ("programs", c.c_char_p), ("share", c.c_char_p), ("store", c.c_char_p),
                ("workers", c.c_uint), ("waiting_max", c.c_uint)]


lib = c.CDLL(str(so))
lib.hotcell_free.argtypes = lib.hotcell_close.argtypes = [c.c_void_p]
lib.hotcell_close.restype = lib.hotcell_free.restype = None
lib.hotcell_run.argtypes = [c.c_void_p, c.c_char_p, c.POINTER(c.c_void_p)]
lib.hotcell_submit.argtypes = [c.c_void_p, c.c_char_p, c.POINTER(c.c_uint64)]
lib.hotcell_wait.argtypes = [c.c_void_p, c.c_uint64, c.c_int, c.POINTER(c.c_void_p)]
lib.hotcell_poll.argtypes = [c.c_void_p, c.c_uint64, c.POINTER(c.c_void_p)]


def open_(**more):
    options = Options(c.sizeof(Options), str(build).encode(), str(build / "share").encode(), None, 1, 0)
    for name, value in more.items():
        setattr(options, name, value)
    handle, message = c.c_void_p(), c.create_string_buffer(256)
    return lib.hotcell_open(c.byref(options), c.byref(handle), message), handle, message.value.decode()


def take(pointer):
    text = c.string_at(pointer.value).decode()
    lib.hotcell_free(pointer)
    return json.loads(text)


def request(code, language="bash"):
    return json.dumps({"language": language, "code": code}).encode()


def run(handle, text):
    record = c.c_void_p()
    assert lib.hotcell_run(handle, text, c.byref(record)) == 0
    return take(record)



def test_runs_and_refuses():
    error, handle, message = open_()
    assert error == 0, message
    record = run(handle, request("echo hello"))
    assert record["status"] == "ok" and "hello" in json.dumps(record["stdout"]), record
    done = subprocess.run([validator, "-"], input=json.dumps(record), text=True, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    for wrong in (b"{", b"[]", b'{"language": "bash"}', b'{"language": "bash", "code": "", "nonsense": 1}',
                  b'{"language": "bash", "code": "", "files": [{"name": "x", "path": "etc/passwd"}]}'):
        assert run(handle, wrong)["state"] != "finished", wrong
    assert run(handle, request("exit 3"))["exit_code"] == 3
    lib.hotcell_close(handle)


def test_wrong_use():
    assert open_(size=1)[0] == 1 and open_(workers=257)[0] == 1
    error, handle, _ = open_(waiting_max=1)
    ticket, record = c.c_uint64(), c.c_void_p()
    assert error == 0 and lib.hotcell_run(None, b"{}", c.byref(record)) == -22
    assert lib.hotcell_poll(handle, 99, c.byref(record)) == -2
    assert lib.hotcell_submit(handle, request("sleep 1"), c.byref(ticket)) == 0
    assert lib.hotcell_submit(handle, request("true"), c.byref(c.c_uint64())) == 3
    assert lib.hotcell_poll(handle, ticket, c.byref(record)) == 2
    assert lib.hotcell_wait(handle, ticket, -1, c.byref(record)) == 0
    take(record)
    assert lib.hotcell_poll(handle, ticket, c.byref(record)) == -2
    lib.hotcell_close(handle)


def test_many_threads_and_nothing_left():
    descriptors = len(os.listdir("/proc/self/fd"))
    error, handle, message = open_(workers=2)
    assert error == 0, message
    got = {}

    def one(n):
        got[n] = json.dumps(run(handle, request(f"echo number-{n}-"))["stdout"])
    threads = [threading.Thread(target=one, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 16 and all(f"number-{n}-" in text for n, text in got.items()), got
    assert lib.hotcell_submit(handle, request("sleep 1000"), c.byref(c.c_uint64())) == 0
    lib.hotcell_close(handle)  # ends what runs
    assert len(os.listdir("/proc/self/fd")) == descriptors
    children = pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    assert children == "", children


def test_only_the_interface_is_visible():
    names = subprocess.run(["nm", "-D", "--defined-only", so], text=True, capture_output=True, check=True).stdout
    names = {line.split()[-1].split("@")[0] for line in names.splitlines()} - {"HOTCELL_0"}
    assert names == {"hotcell_" + n for n in "open close run submit wait poll free version".split()}, names


def test_example():
    done = subprocess.run([build / "src/api/api-hello", build, build / "share"], text=True, capture_output=True,
                          timeout=120)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0 and [r["status"] for r in records] == ["ok", "ok"], done


tests = [(n[5:], f) for n, f in list(globals().items()) if n.startswith("test_")]
tests = [t for t in tests if not sys.argv[1:] or any(part in t[0] for part in sys.argv[1:])]
failed = 0
print(f"1..{len(tests)}")
for number, (name, function) in enumerate(tests, 1):
    try:
        function()
        print(f"ok {number} - {name}", flush=True)
    except Exception as error:  # an assertion, or what the library did to us
        failed += 1
        print(f"not ok {number} - {name}\n# {type(error).__name__}: {str(error)[:600]}", flush=True)
sys.exit(failed != 0)
