#!/usr/bin/env python3
"""Every guarded system call of set-up, start, capture and collection fails once.

usage: test_faults.py [--hotcell PATH] [--step N]     PATH: a build with -Dfaults=true

For each program of the family (hall, keeper, init with the payload's set-up, library) the nth guarded call fails with EIO, for
n = 1, 2, 3, ... until well beyond the last one. Each run must either be refused (or be a fault) and name the stage, or be
complete: every layer held, output right. It must never run with less. Afterwards the host's counters are what they were.

With HOTCELL_TEST_USER=NAME hotcell runs as that user, for whom `hotcell doctor --setup NAME` of the same build has been done.
"""
import argparse
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time

PROGRAMS = {1: 'hall', 2: 'keeper', 3: 'init', 4: 'library'}
LIMIT = {1: 210, 2: 170, 3: 190, 4: 80}
# Its file can be read by itself and by root alone: an ordinary user's collector needs the opener for it.
SCRIPT = 'import os\nos.umask(0o077)\nopen("left.txt", "w").write("x" * 10)\nprint("complete")\n'
USER = pwd.getpwnam(os.environ['HOTCELL_TEST_USER']) if os.environ.get('HOTCELL_TEST_USER') else None


def groups():
    """Of the user's halls; as root: whether there are halls at all."""
    wanted = f'user-{USER.pw_uid}' if USER else 'hotcell'
    found = 0
    for path, names, _ in os.walk('/sys/fs/cgroup'):
        if USER:
            found += f'/hotcell/{wanted}/' in path + '/'
        else:
            found += 'hotcell' in names
    return found


def processes():
    """Named like ours; as a user: his own, which none but his door is meant to outlive a run."""
    found = 0
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/comm') as f:
                name = f.read()
            if USER:
                found += os.stat(f'/proc/{pid}').st_uid == USER.pw_uid and not name.startswith('hotcell-door')
            else:
                found += name.startswith('hotcell') and not name.startswith('hotcell-door')
        except OSError:
            pass
    return found


def counters():
    with open('/proc/self/mountinfo') as f:
        return {'groups': groups(), 'processes': processes(), 'mounts': sum(1 for _ in f)}


def attempt(hotcell, program, nth, source):
    env = dict(os.environ, HOTCELL_FAULT=f'{program}:{nth}')
    command = [hotcell, 'run', '--json', '--store', 'none', source]
    if USER:
        env['HOME'] = USER.pw_dir
        command[:0] = ['setpriv', f'--reuid={USER.pw_uid}', f'--regid={USER.pw_gid}', '--init-groups', '--inh-caps=-all', '--']
    r = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    try:
        return json.loads(r.stdout), r.returncode
    except ValueError:
        raise AssertionError(f'no record: exit {r.returncode}, {r.stdout[-200:]!r} {r.stderr[-200:]!r}') from None


def judge(record, code):
    """What is wrong with this answer; None when it is one of the two right ones."""
    if record['state'] in ('refused', 'fault'):
        if code != 125:
            return f'{record["state"]} with exit code {code}'
        error = record['error'] or {}
        if not error.get('detail') or not error.get('message'):
            return f'no stage named: {error}'
        return None
    if record['status'] != 'ok' or code != 0:
        return f'ended as {record["status"]} ({record["cause"]}), exit {code}'
    if record['stdout']['text'] != 'complete\n' or len(record['artifacts']) != 1:
        return 'output or artifacts are incomplete'
    absent = [layer['name'] for layer in record['isolation']['layers'] if layer['state'] != 'applied']
    # A secondary layer may be missing if the record says so and the grade shows it.
    if absent and record['isolation']['grade'] == 'A':
        return f'ran without {absent} and still claims grade A'
    primary = set(absent) - {'attempts', 'landlock', 'keyring', 'no_swap', 'cpu_rate', 'oom_preference', 'pressure'}
    if primary:
        return f'ran without {sorted(primary)}'
    if any(record['residue'].values()):
        return f'residue {record["residue"]}'
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--hotcell', default=os.environ.get('HOTCELL_FAULTS', 'build-faults/hotcell'))
    parser.add_argument('--step', type=int, default=int(os.environ.get('HOTCELL_FAULT_STEP', '1')))
    args = parser.parse_args()
    if not os.path.exists(args.hotcell):
        print('1..0 # SKIP no build with -Dfaults=true')
        return 0
    failed = 0
    print(f'1..{2 * len(PROGRAMS) + 1}', flush=True)
    number = 0
    before = counters()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # the program may be one that starts hotcell as an ordinary user
        source = os.path.join(folder, 'main.py')
        with open(source, 'w') as f:
            f.write(SCRIPT)
        if USER:
            shutil.chown(folder, USER.pw_uid, USER.pw_gid)
            shutil.chown(source, USER.pw_uid, USER.pw_gid)
        for program, name in PROGRAMS.items():
            wrong, stages, complete = [], set(), 0
            for nth in range(1, LIMIT[program] + 1, args.step):
                try:
                    record, code = attempt(args.hotcell, program, nth, source)
                    bad = judge(record, code)
                except (AssertionError, subprocess.TimeoutExpired) as e:
                    bad, record = str(e), {'state': '?', 'error': {}}
                if bad:
                    wrong.append(f'{name} call {nth}: {bad}')
                elif record['state'] == 'finished':
                    complete += 1
                else:
                    stages.add(record['error']['detail'])
            number += 1
            failed += bool(wrong)
            print(f'{"not ok" if wrong else "ok"} {number} - {name}: refused or complete, never less '
                  f'({len(stages)} stages failed, {complete} complete)', flush=True)
            for line in wrong[:10]:
                print(f'# {line}')
            # A test that no fault reached proves nothing.
            number += 1
            enough = len(stages) >= (2 if name == 'library' else 3)
            failed += not enough
            print(f'{"ok" if enough else "not ok"} {number} - {name}: faults reached stages {sorted(stages)}', flush=True)
    number += 1
    # The kernel clears away asynchronously, and others may run cells of their own meanwhile.
    for _ in range(40):
        after = counters()
        back = all(after[key] <= before[key] for key in before)
        if back:
            break
        time.sleep(0.25)
    failed += not back
    print(f'{"ok" if back else "not ok"} {number} - host counters are back ({before} -> {after})')
    return 1 if failed else 0


sys.exit(main())
