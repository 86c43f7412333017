"""What the tests of real cells share: running `hotcell`, the host's counters, and a small runner that prints TAP.

    HOTCELL=build/hotcell test/cell/test_cell.py [--list] [--times] [part of a name]...

Each test runs in a child process of its own with a time limit; the child leads a process group that is killed when the test
ends. Its output is shown only when it fails. Exit code: 0 all passed or skipped, 1 a test failed, 2 wrong use.

Every record that run() sees is checked with tools/validate-record (3 ms each); a violation fails the test.

With HOTCELL_TEST_USER=NAME the programs run as root, who sees all of the host, and every hotcell that they start runs as that user,
for whom `hotcell doctor --setup NAME` has been done.
"""
import base64
import contextlib
import importlib.machinery
import importlib.util
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
HOTCELL = os.path.realpath(os.environ.get("HOTCELL", os.path.join(ROOT, "build", "hotcell")))
SKIPPED, FAILED = 77, 1
USER = pwd.getpwnam(os.environ["HOTCELL_TEST_USER"]) if os.environ.get("HOTCELL_TEST_USER") else None


class Failure(Exception):
    pass


class Skip(Exception):
    pass


def check(condition, message, *details):
    if not condition:
        raise Failure(message + "".join("\n    %s" % (detail,) for detail in details))


def equal(got, wanted, what):
    check(got == wanted, "%s: got %.600r, wanted %.600r" % (what, got, wanted))


def one_of(got, wanted, what):
    check(got in wanted, "%s: got %.600r, wanted one of %r" % (what, got, tuple(wanted)))


def between(got, low, high, what):
    check(got is not None and low <= got <= high, "%s: got %r, wanted %r to %r" % (what, got, low, high))


# ---- records ----

_validator = None


def _tool():
    global _validator
    if _validator is None:
        loader = importlib.machinery.SourceFileLoader("validate_record", os.path.join(ROOT, "tools", "validate-record"))
        tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("validate_record", loader))
        loader.exec_module(tool)
        _validator = (tool, tool.load_validator(os.path.join(ROOT, "share", "schema", "hotcell.run.1.json")))
    return _validator


def violations(text):
    """Everything that is wrong with the bytes that --json printed; it must be exactly one document."""
    tool, validator = _tool()
    try:
        documents = list(tool.documents(text.decode("utf-8")))
    except ValueError as error:
        return None, ["not JSON: %s: %.200r" % (error, text)]
    if len(documents) != 1:
        return None, ["%d documents instead of one" % len(documents)]
    return documents[0], ["%s: %s" % pair for pair in tool.violations(documents[0], validator)]


def stream_bytes(stream):
    if stream["base64"] is not None:
        return base64.b64decode(stream["base64"])
    return stream["text"].encode("utf-8")


def out(record):
    return stream_bytes(record["stdout"]).decode("utf-8", "replace")


def err(record):
    return stream_bytes(record["stderr"]).decode("utf-8", "replace")


def layer(record, name):
    return next(item for item in record["isolation"]["layers"] if item["name"] == name)


# ---- running ----

_folder = None


def folder():
    """A folder of this test program, for its store and its files."""
    global _folder
    if _folder is None:
        _folder = give(tempfile.mkdtemp(prefix="hotcell-test-"))
    return _folder


def give(path):
    """To the user that hotcell runs as."""
    if USER is not None:
        os.chown(path, USER.pw_uid, USER.pw_gid)
    return path


def scratch(name=None):
    path = give(tempfile.mkdtemp(dir=folder()))
    return path if name is None else os.path.join(path, name)


def write(path, data):
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
    return give(path)


def _become_user():
    """A program in the place of hotcell that starts it as the user, in the same process."""
    global HOTCELL
    wrapper = os.path.join(folder(), "hotcell")
    with open(wrapper, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nexec setpriv --reuid=%d --regid=%d --init-groups --inh-caps=-all %s \"$@\"\n" % (
            USER.pw_uid, USER.pw_gid, HOTCELL))
    os.chmod(wrapper, 0o755)
    HOTCELL = wrapper
    for name in ("XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        os.environ.pop(name, None)
    os.environ.update(HOME=USER.pw_dir, XDG_STATE_HOME=give(tempfile.mkdtemp(dir=folder())))


if USER is not None:
    _become_user()


def flags(options):
    result = []
    for name, value in options.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        for item in value if isinstance(value, (list, tuple)) else [value]:
            if item is True:
                result.append(flag)
            elif item is not None and item is not False:
                result += [flag, str(item)]
    return result


def command(code=None, language="python", args=(), json_=True, store=None, path=None, **options):
    result = [HOTCELL, "run"]
    if json_:
        result.append("--json")
    result += ["--store", store or os.path.join(folder(), "store")]
    if language is not None and path is None:
        result += ["--language", language]
    result += flags(options)
    if path is not None:
        result.append(path)
    elif code is not None:
        result += ["-c", code]
    return result + (["--", *args] if args else [])


class Ending:
    """Of any invocation of hotcell."""

    def __init__(self, code, stdout, stderr, wall):
        self.code, self.stdout, self.stderr, self.wall = code, stdout, stderr, wall


def invoke(arguments, stdin=None, environ=None, timeout=60, **popen):
    """Runs any command line with bounds; `arguments` are the whole of it."""
    began = time.monotonic()
    if "stdin_file" in popen:
        source = popen.pop("stdin_file")
    else:
        source = subprocess.DEVNULL if stdin is None else subprocess.PIPE
    process = subprocess.Popen(arguments, stdin=source, stdout=popen.pop("stdout", subprocess.PIPE),
                               stderr=popen.pop("stderr", subprocess.PIPE), env=environ, **popen)
    try:
        stdout, stderr = process.communicate(stdin, timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise Failure("hotcell did not end within %s s: %.300r" % (timeout, arguments))
    return Ending(process.returncode, stdout or b"", stderr or b"", time.monotonic() - began)


def record_of(ending):
    record, wrong = violations(ending.stdout)
    check(not wrong, "the record is not valid (exit code %d, stderr %.300r)" % (ending.code, ending.stderr), *wrong[:8])
    equal(ending.code, exit_code_of(record), "exit code of the command, by the table, for status %s" % record["status"])
    return record


def run(code, language="python", stdin=None, environ=None, timeout=60, **options):
    """One run with --json: (record, exit code, stderr of the command, seconds)."""
    if stdin is not None and "stdin" not in options:
        options["stdin"] = "-"
    # Long programs do not fit into one argument.
    if code is not None and len(code if isinstance(code, bytes) else code.encode("utf-8", "surrogatepass")) > 100000:
        options["path"] = write(scratch("main" + {"python": ".py", "bash": ".sh", "c": ".c"}[language]), code)
    ending = invoke(command(code, language, **options), stdin, environ, timeout)
    record = record_of(ending)
    return record, ending.code, ending.stderr.decode("utf-8", "replace"), ending.wall


def start(code, language="python", popen=None, **options):
    """A run in the background; end it with finish()."""
    return subprocess.Popen(command(code, language, **options), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, **(popen or {}))


def finish(process, timeout=60):
    try:
        stdout, stderr = process.communicate(None, timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise Failure("hotcell did not end within %s s" % timeout)
    return record_of(Ending(process.returncode, stdout, stderr, 0))


EXIT_CODES = {"timeout": 124, "memory_limit": 137, "process_limit": 1, "output_limit": 1, "disk_limit": 1,
              "policy_violation": 126, "cancelled": 130, "fault": 125}
EXIT_CODES_OF_CAUSES = {"module": 126, "call": 126, "dependency": 126, "field": 125, "grade": 125, "runtime": 127,
                        "queue_full": 125, "host": 125}


def exit_code_of(record):
    """The table of DESIGN section 6, written down a second time on purpose."""
    status = record["status"]
    if record["acceptance"]["status"] != "not_requested" and record["state"] == "finished":
        return {"accepted": 0, "rejected": 1, "error": 125}[record["acceptance"]["status"]]
    if status in EXIT_CODES:
        return EXIT_CODES[status]
    if status == "refused":
        return EXIT_CODES_OF_CAUSES[record["cause"]]
    return 128 + record["signal"] if record["signal"] is not None else record["exit_code"]


def ends(record, status, cause):
    equal((record["status"], record["cause"]), (status, cause),
          "status and cause (stderr of the program: %.500r, error %.300r)" % (
              err(record) if record["stderr"] else None, record["error"]))


def innocent():
    """The next ordinary run works, with every promise kept."""
    record, code, _, wall = run("print(sum(range(101)))")
    ends(record, "ok", None)
    equal((code, out(record)), (0, "5050\n"), "the innocent run")
    one_of(record["isolation"]["grade"], GRADES, "its grade")
    equal([name for name, value in record["limits"].items() if value["hit"]], [], "limits it hit")
    equal(record["residue"], {"processes": 0, "mounts": 0, "cgroups": 0, "files": 0}, "its residue")
    check(wall < 10, "the innocent run took %.1f s" % wall)


# A host without some secondary layers gives B; below that the tests of this tier have nothing to say.
GRADES = ("A", "B")


# ---- the host's counters ----

NAMESPACES = ("net", "user", "pid", "mnt", "ipc", "uts", "cgroup")


def _read(path):
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def processes():
    """pid → (name, parent) of everything on the host."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            match = re.match(r"\d+ \((.*)\) \S (\d+)", _read("/proc/%s/stat" % name), re.S)
            if match:
                found[int(name)] = (match[1], int(match[2]))
    return found


def owner(pid):
    with contextlib.suppress(OSError):
        return os.stat("/proc/%d" % pid).st_uid
    return None


def descendants(pid, table=None):
    table = processes() if table is None else table
    found, grew = {pid}, True
    while grew:
        more = {child for child, (_, parent) in table.items() if parent in found} - found
        found |= more
        grew = bool(more)
    return found - {pid}


def _is_part(name, pid):
    """Of some run, by name: command, library's test program, guard, keeper, process 1 of a cell. A user's door is none."""
    return pid != 1 and (name.startswith("hotcell") and name != "hotcell-door" or name in ("init", "keeper", "3", "10", "11"))


def _strangers(table):
    """Other people's living runs on this machine: what is below a living process that is not ours. What was left by a dead
    caller hangs below process 1 and counts, whoever left it."""
    mine = descendants(int(os.environ.get("HOTCELL_TEST_TOP", os.getpid())), table)
    mine |= descendants(os.getpid(), table)
    for pid, (name, _) in table.items():
        if USER is not None and name == "hotcell-door" and owner(pid) == USER.pw_uid:
            mine |= descendants(pid, table)
    found = set()
    for pid, (name, parent) in table.items():
        if not _is_part(name, pid) or pid in mine or _is_part(table.get(parent, ("", 0))[0], parent):
            continue
        if parent > 1:
            found |= {pid} | descendants(pid, table)
    return found


def _slices_in_use():
    """Numbers of the halls that live: their locks are held (seen in /proc/locks, so that looking takes none)."""
    held = {line.split()[5].rsplit(":", 1)[1] for line in _read("/proc/locks").splitlines() if " FLOCK " in line}
    found = set()
    for path, _, names in os.walk("/run/hotcell"):
        for name in names:
            with contextlib.suppress(OSError):
                if name.startswith("slice-") and str(os.stat(os.path.join(path, name)).st_ino) in held:
                    found.add(os.path.join(os.path.relpath(path, "/run/hotcell"), re.sub(r"\D", "", name)).removeprefix("./"))
    return found


def cgroup_folders(without=()):
    """Folders of every cgroup tree, but for those of living halls."""
    found = []
    mounts = [line.split(" ")[4] for line in _read("/proc/self/mountinfo").splitlines()
              if re.search(r" - cgroup2? ", line)]
    for mount in mounts:
        for path, folders, _ in os.walk(mount):
            match = re.search(r"/hotcell/((?:user-\d+/)?\d+)(/|$)", path)
            user = re.search(r"/hotcell/user-(\d+)", path)
            if match and match[1] in without or user and int(user[1]) != (USER.pw_uid if USER is not None else -1):
                folders[:] = []
                continue
            found.append(path)
    return found


def host_counters():
    """Counts of what a run could leave on the host. Other people's living halls are left out."""
    table = processes()
    strangers = _strangers(table)
    ours = {pid: row for pid, row in table.items() if pid not in strangers}
    namespaces = {kind: set() for kind in NAMESPACES}
    for pid in ours:
        for kind in NAMESPACES:
            with contextlib.suppress(OSError):
                namespaces[kind].add(os.readlink("/proc/%d/ns/%s" % (pid, kind)))
    counters = {"processes": sorted(pid for pid, (name, _) in ours.items()
                                    if _is_part(name, pid)),
                "mounts": len(_read("/proc/self/mountinfo").splitlines()),
                "cgroups": len(cgroup_folders(_slices_in_use())),
                "shmem_kb": int(re.search(r"Shmem:\s+(\d+)", _read("/proc/meminfo"))[1])}
    for kind in NAMESPACES:
        counters["ns_" + kind] = len(namespaces[kind])
    return counters


SHMEM_TOLERANCE_KB = 24 * 1024


def _differences(before, after):
    wrong = ["%s: %r before, %r after" % (name, before[name], after[name]) for name in before
             if name != "shmem_kb" and (set(after[name]) - set(before[name]) if name == "processes"
                                        else after[name] > before[name])]
    if after["shmem_kb"] > before["shmem_kb"] + SHMEM_TOLERANCE_KB:
        wrong.append("shmem_kb: %d before, %d after" % (before["shmem_kb"], after["shmem_kb"]))
    return wrong


def _least(a, b):
    return {name: sorted(set(a[name]) & set(b[name])) if name == "processes" else min(a[name], b[name]) for name in a}


def unchanged(before, after=None, within=3.0):
    """Nothing more than before is on the host. Others work here too: what is left for good is in every one of several looks."""
    deadline = time.monotonic() + within
    least = after or host_counters()
    while _differences(before, least) and time.monotonic() < deadline:
        time.sleep(0.05)
        least = _least(least, host_counters())
    wrong = _differences(before, least)
    check(not wrong, "the host's counters did not come back", *wrong)


@contextlib.contextmanager
def hostile():
    """Around an attack: afterwards an innocent run works and the host is as before."""
    # The folders at the top of each cgroup tree stay for the next hall: make sure they are there.
    before = host_counters()
    yield
    innocent()
    unchanged(before)


# ---- what programs inside a cell need to attack ----

PRELUDE = r"""
import ctypes, errno, json, os, signal, socket, struct, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(number, *arguments):
    # the result, or the name of the error
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    return errno.errorcode.get(ctypes.get_errno(), "?") if result == -1 else result
def tried(function, *arguments, **named):
    try:
        result = function(*arguments, **named)
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
    return "done" if result is None or not isinstance(result, (int, str, list, dict)) else result
def tell(**facts):
    print(json.dumps(facts)); sys.stdout.flush()
"""


def facts(record):
    """The last line that a program wrote with tell()."""
    lines = out(record).strip().splitlines()
    check(lines, "the program told nothing (status %s, stderr %.800r)" % (record["status"], err(record)))
    return json.loads(lines[-1])


def attack(body, **options):
    """A Python program with the prelude; it must reach its end, and its facts come back."""
    options.setdefault("timeout", 60)
    record, _, _, _ = run(PRELUDE + body, **options)
    ends(record, "ok", None)
    return facts(record), record


# ---- tests ----

_tests = []


def test(timeout=30):
    def register(function):
        _tests.append((function.__name__, function, timeout))
        return function
    return register


def _child(function, log):
    os.setpgid(0, 0)
    os.dup2(log.fileno(), 1)
    os.dup2(log.fileno(), 2)
    code = 0
    try:
        function()
    except Skip as reason:
        print("SKIP: %s" % reason)
        code = SKIPPED
    except Failure as failure:
        print(failure)
        frame = traceback.extract_tb(failure.__traceback__)
        print("\n".join("    at %s:%d %s" % (os.path.basename(f.filename), f.lineno, f.line) for f in frame if f.filename != __file__))
        code = FAILED
    except BaseException:
        traceback.print_exc()
        code = FAILED
    sys.stdout.flush()
    os._exit(code)


def _one(function, timeout):
    """(exit code or None for a timeout, output)"""
    with tempfile.TemporaryFile() as log:
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            _child(function, log)
        with contextlib.suppress(OSError):
            os.setpgid(pid, pid)
        pidfd = os.pidfd_open(pid)
        import select
        ready = select.select([pidfd], [], [], timeout)[0]
        os.close(pidfd)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        log.seek(0)
        return (os.waitstatus_to_exitcode(status) if ready else None), log.read().decode("utf-8", "replace")


def main():
    arguments = [a for a in sys.argv[1:] if a not in ("--list", "--times")]
    if any(a.startswith("-") for a in arguments):
        print(__doc__, file=sys.stderr)
        return 2
    chosen = [t for t in _tests if not arguments or any(part in t[0] for part in arguments)]
    if "--list" in sys.argv:
        print("\n".join(name for name, _, _ in chosen))
        return 0
    if not chosen:
        print("no test has such a name", file=sys.stderr)
        return 2
    os.environ["HOTCELL_TEST_TOP"] = str(os.getpid())
    _tool()
    folder()
    failed = 0
    if not os.access(HOTCELL, os.X_OK):
        print("Bail out! %s is not there" % HOTCELL)
        return 2
    try:
        run("pass")  # the first run makes the folders that stay, and fills the cache of versions
    except Failure as failure:
        print("Bail out! not even an empty program runs: %s" % str(failure).replace("\n", " "))
        return 1
    for number, (name, function, timeout) in enumerate(chosen, 1):
        began = time.monotonic()
        code, log = _one(function, timeout)
        took = "  [%.2f s]" % (time.monotonic() - began) if "--times" in sys.argv else ""
        if code == 0:
            print("ok %d - %s%s" % (number, name, took))
        elif code == SKIPPED:
            print("ok %d - %s # SKIP %s" % (number, name, log.strip().splitlines()[-1].replace("SKIP: ", "", 1)))
        else:
            failed += 1
            print("not ok %d - %s%s" % (number, name, took))
            if code is None:
                print("# did not end within %d s" % timeout)
            elif code != FAILED:
                print("# ended with %d" % code)
            for line in log.strip().splitlines()[-25:]:
                print("# %.1500s" % line)
        sys.stdout.flush()
    print("1..%d" % len(chosen))
    shutil.rmtree(folder(), ignore_errors=True)
    return 1 if failed else 0
