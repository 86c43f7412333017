#!/usr/bin/env python3
"""Completions for bash, zsh and fish: nothing of --help is missing in them, and a real shell completes with them. Prints TAP.

    HOTCELL=build/hotcell test/e2e/test_completion.py

A shell that is not installed is skipped by name.
"""
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

HOTCELL = os.path.realpath(os.environ.get("HOTCELL", "build/hotcell"))
number = failed = 0


def result(name, wrong, skip=None):
    global number, failed
    number += 1
    failed += bool(wrong)
    print("%s %d - %s%s" % ("not ok" if wrong else "ok", number, name, " # SKIP " + skip if skip else ""))
    for line in wrong:
        print("# %.600s" % line)


def program(*arguments):
    return subprocess.run([HOTCELL, *arguments], check=True, capture_output=True, text=True, timeout=20).stdout


SCRIPTS = {shell: program("completion", shell) for shell in ("bash", "zsh", "fish")}
COMMANDS = re.findall(r"^  (\w+) +\S", program("help").split("Commands:\n")[1].split("\n\n")[0], re.M)
OPTIONS = {}  # command: [(letter or "", name)]
for command in COMMANDS:
    text = program("help", command)
    OPTIONS[command] = [(match[1] or "", match[2]) for match in re.finditer(r"^  (?:-(\w), |    )--([a-z-]+)", text, re.M)]


# ---- each script holds all that --help lists ----

def options_in(shell, command):
    script = SCRIPTS[shell]
    if shell == "bash":
        line = re.search(r"_hotcell_options\(\).*?\n    %s\) echo \"([^\"]*)\"" % command, script, re.S)[1]
        words = line.split()
        return {w[2:] for w in words if w.startswith("--")}, {w[1:] for w in words if not w.startswith("--")}
    if shell == "zsh":
        part = script.split("case $words[1] in\n")[1].split("\n    %s)\n" % command if "\n    %s)\n" % command in script.split(
            "case $words[1] in\n")[1] else "    %s)\n" % command, 1)[1].split(";;")[0]
        return set(re.findall(r"--([a-z-]+?)(?:=-|=)?(?:\[|\})", part)), set(re.findall(r"\{-(\w)\+?,", part))
    lines = [line for line in script.splitlines() if "'__hotcell_is %s'" % command in line]
    return ({m for line in lines for m in re.findall(r" -l ([a-z-]+)", line.split(" -d ")[0])},
            {m for line in lines for m in re.findall(r" -s (\w)", line.split(" -d ")[0])})


for shell in SCRIPTS:
    wrong = [] if COMMANDS and OPTIONS["run"] else ["no command, or no option was found in the help"]
    for command in COMMANDS:
        if not re.search(r"\b%s\b" % command, SCRIPTS[shell]):
            wrong.append("the command %s is missing" % command)
            continue
        names, letters = options_in(shell, command)
        expected = {name for _, name in OPTIONS[command]}, {letter for letter, _ in OPTIONS[command] if letter}
        if (names, letters) != expected:
            wrong.append("%s: differ %s" % (command, sorted((names ^ expected[0]) | (letters ^ expected[1]))))
    result("%s: every command and option of --help, and no other" % shell, wrong)


# ---- real shells ----

LANGUAGES = program("completion", "--list", "languages").split()
PROFILES = program("completion", "--list", "profiles").split()
LAYERS = program("completion", "--list", "layers").split()
result("the lists are not empty", [] if "python" in LANGUAGES and PROFILES and LAYERS else [repr((LANGUAGES, PROFILES, LAYERS))])

FOLDER = tempfile.mkdtemp(prefix="hotcell-completion-")
for name in ("program one.py", "program_two.py", "items.jsonl"):
    open(os.path.join(FOLDER, name), "w").close()
os.mkdir(os.path.join(FOLDER, "folder"))
BIN = os.path.join(FOLDER, "bin")
os.mkdir(BIN)
os.symlink(HOTCELL, os.path.join(BIN, "hotcell"))


def by_start(words, start):
    return sorted(word for word in words if word.startswith(start))


# What is typed, and all that may come next.
CASES = [
    ("hotcell ru", by_start(COMMANDS, "ru")),
    ("hotcell eva", ["eval"]),
    ("hotcell run --pro", by_start(["--" + name for _, name in OPTIONS["run"]], "--pro")),
    ("hotcell eval --res", by_start(["--" + name for _, name in OPTIONS["eval"]], "--res")),
    ("hotcell run --language py", by_start(LANGUAGES, "py")),
    ("hotcell run -l ja", by_start(LANGUAGES, "ja")),
    ("hotcell run --profile " + PROFILES[0][:3], by_start(PROFILES, PROFILES[0][:3])),
    ("hotcell run --allow land", by_start(LAYERS, "land")),
    ("hotcell help doc", ["doctor"]),
    ("hotcell completion z", ["zsh"]),
    ("hotcell run program_t", ["program_two.py"]),
    ("hotcell run --json program_t", ["program_two.py"]),
    ("hotcell run --store fol", ["folder"]),
    ("hotcell eval items", ["items.jsonl"]),
    ("hotcell run --wall 5s --min-grade ", ["A", "B", "C", "D"]),
]


def missing(shell):
    return None if shutil.which(shell) else "%s is not installed" % shell


def compare(shell, complete):
    wrong = []
    for line, expected in CASES:
        got = complete(line)
        if sorted(word.rstrip("/ ") for word in got) != expected:
            wrong.append("%r: %r, expected %r" % (line, got, expected))
    result("%s completes %d lines" % (shell, len(CASES)), wrong)


def environment(**more):
    return dict(os.environ, PATH=BIN + ":/usr/local/bin:/usr/bin:/bin", HOME=FOLDER, TERM="dumb", LC_ALL="C.UTF-8", **more)


def bash(line):
    """The function as readline calls it."""
    text = SCRIPTS["bash"] + "\ncd \"$1\"; COMP_LINE=$2 COMP_POINT=${#2}; _hotcell; printf '%s\\n' \"${COMPREPLY[@]}\"\n"
    done = subprocess.run(["bash", "--norc", "-c", text, "bash", FOLDER, line], capture_output=True, text=True, timeout=20,
                          env=environment())
    return [word for word in done.stdout.splitlines() if word] + done.stderr.splitlines()


def fish(line):
    done = subprocess.run(["fish", "--no-config", "-c", "cd $argv[1]; source $argv[2]; complete -C $argv[3]", FOLDER,
                           os.path.join(FOLDER, "hotcell.fish"), line], capture_output=True, text=True, timeout=20,
                          env=environment(XDG_CONFIG_HOME=FOLDER, XDG_DATA_HOME=FOLDER))
    return [word.split("\t")[0] for word in done.stdout.splitlines()] + done.stderr.splitlines()


class Terminal:
    """A shell at a terminal: what a key makes of the line."""

    def __init__(self, arguments, setup):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(FOLDER)
            os.execvpe(arguments[0], arguments, environment(PS1="> ", PROMPT="> "))
        self.run(setup + "; echo rea''dy", b"ready")

    def read(self, wanted, seconds=15):
        seen, end = b"", time.monotonic() + seconds
        while not wanted(seen) and time.monotonic() < end:
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    seen += os.read(self.fd, 65536)
                except OSError:
                    break
        return seen

    def run(self, text, until):
        os.write(self.fd, text.encode() + b"\n")
        return self.read(lambda seen: until in seen)

    def close(self):
        os.write(self.fd, b"\x03\x04")
        os.close(self.fd)
        os.waitpid(self.pid, 0)


ZSH = """fpath=(%s $fpath); autoload -Uz compinit; compinit -u -D
show-line() { zle -I; print -r -- "<<$BUFFER>>"; BUFFER= }
zle -N show-line; bindkey '^X' show-line; unsetopt zle_bracketed_paste; setopt no_always_to_end no_list_beep
zstyle ':completion:*' list-prompt ''; LISTMAX=1000""".replace("\n", "; ")
BASH = """set +o history; source %s; bind 'set bell-style none'; bind 'set enable-bracketed-paste off'
show() { printf '<<%%s>>\\n' "$READLINE_LINE"; READLINE_LINE=; }; bind -x '"\\C-x\\C-x": show'""".replace("\n", "; ")
TYPED = [  # where there is one way to go on, the key takes it
    ("hotcell run --langu", "hotcell run --language "),
    ("hotcell run --language pyth", "hotcell run --language python "),
    ("hotcell run --language=pyth", "hotcell run --language=python "),
    ("hotcell eval --jo", "hotcell eval --jobs "),
    ("hotcell doc", "hotcell doctor "),
    ("hotcell run program_t", "hotcell run program_two.py "),
]


def typed(shell, arguments, setup, key):
    terminal = Terminal(arguments, setup)
    wrong = []
    for line, expected in TYPED:
        os.write(terminal.fd, line.encode() + b"\t")
        terminal.read(lambda seen: False, 1.0)
        os.write(terminal.fd, key)
        seen = terminal.read(lambda seen: b">>" in seen).decode("utf-8", "replace")
        found = re.findall(r"<<(.*?)>>", seen, re.S)
        # zsh goes on with "=" where others set a blank
        if not found or found[-1].rstrip(" =") != expected.rstrip(" "):
            wrong.append("%r: %r, expected %r" % (line, seen, expected))
            terminal.read(lambda seen: False, 0.5)
    terminal.close()
    result("%s at a terminal: TAB completes %d lines" % (shell, len(TYPED)), wrong)


for shell, name in (("bash", "hotcell.bash"), ("zsh", "_hotcell"), ("fish", "hotcell.fish")):
    with open(os.path.join(FOLDER, name), "w") as file:
        file.write(SCRIPTS[shell])
if missing("bash"):
    result("bash", [], skip=missing("bash"))
else:
    compare("bash", bash)
    typed("bash", ["bash", "--norc", "--noprofile", "-i"], BASH % os.path.join(FOLDER, "hotcell.bash"), b"\x18\x18")
if missing("zsh"):
    result("zsh", [], skip=missing("zsh"))
else:
    typed("zsh", ["zsh", "-f", "-i"], ZSH % FOLDER, b"\x18")
if missing("fish"):
    result("fish", [], skip=missing("fish"))
else:
    compare("fish", fish)


# ---- wrong use ----

def ends(arguments, code, text):
    done = subprocess.run([HOTCELL, "completion", *arguments], capture_output=True, text=True, timeout=20)
    return [] if done.returncode == code and text in done.stderr and not done.stdout else [repr(done)]


result("wrong use is told", ends([], 125, "bash, zsh and fish") + ends(["tcsh"], 125, "there is bash, zsh and fish") +
       ends(["bash", "zsh"], 125, "one shell at a time") + ends(["--list", "moons"], 125, "--list moons") +
       ends(["bash", "--list", "layers"], 125, "give one of") + ends(["--frob"], 125, "unknown option"))
shutil.rmtree(FOLDER)
print("1..%d" % number)
sys.exit(1 if failed else 0)
