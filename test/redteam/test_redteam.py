#!/usr/bin/env python3
"""The adversarial list: each attack fails, seen from outside; then an innocent run works and the host's counters are back.

    HOTCELL=build/hotcell test/redteam/test_redteam.py [--list] [--times] [part of a name]...
"""
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "support"))
from hotcell_test import *  # noqa: E402,F403
import hotcell_test as t  # noqa: E402

MIB = 1024 * 1024


def attempts(record, **wanted):
    found = [a for a in record["network"]["attempts"] if all(a[k] == v for k, v in wanted.items())]
    check(found, "no attempt %r among %.600r" % (wanted, record["network"]["attempts"]))
    return found


def denied(record, name):
    return next((row["count"] for row in record["syscalls_denied"] if row["name"] == name), 0)


def never(value, *wanted):
    """No result of an attack is a success."""
    good = {k: v for k, v in value.items() if v not in wanted}
    equal(good, {}, "results other than %r" % (wanted,))


# ---- files of the host ----

@test()
def secrets_of_the_host_are_nowhere():
    secret = "DECOY-%s" % os.urandom(8).hex()
    places = [write(scratch("secret.txt"), secret), "/run/hotcell-decoy", "/root/.hotcell-decoy", "/var/tmp/hotcell-decoy"]
    for path in places[1:]:
        write(path, secret)
    store = scratch("store")
    try:
        with hostile():
            record, _, stderr, _ = run(PRELUDE + r"""
seen = {}
for p in %r:
    for prefix in ('', '/proc/self/root', '/proc/1/root', '/proc/2/root', '/proc/self/cwd/../../..', '/proc/thread-self/root/..', '/../../..', '/dev/fd/../../..', '/proc/1/cwd/../..'):
        seen[prefix + p] = tried(open, prefix + p)
for fd in range(3, 64):
    for p in ('..', '../..', '../../etc/shadow'): seen['%%d %%s' %% (fd, p)] = tried(os.open, p, 0, dir_fd=fd)
print(set(seen.values()))
for r, ds, fs in os.walk('/', onerror=None):
    if r.startswith(('/proc', '/usr')): ds[:] = []; continue
    for f in fs:
        try:
            if %r in open(os.path.join(r, f), 'rb').read(1 << 20).decode('latin1') and f != 'main.py': print('LEAK', r, f)
        except OSError: pass
tell(kinds=sorted(set(map(str, seen.values()))))
""" % (places, secret[:6] + '" + "' + secret[6:]), environ=dict(os.environ, DECOY_TOKEN=secret), store=store)
            ends(record, "ok", None)
            check(set(facts(record)["kinds"]) <= {"ENOENT", "EACCES", "EBADF", "ENOTDIR", "EPERM"}, "opened: %r" % facts(record)["kinds"])
            check("LEAK" not in out(record), "found in a file: %.300r" % out(record))
            # The program itself never holds the secret in one piece.
            stored = b"".join(open(os.path.join(store, name), "rb").read() for name in os.listdir(store))
            for what, text in (("record", json.dumps(record)), ("stderr", stderr), ("store", stored.decode("latin1"))):
                check(secret not in text, "the secret is in the %s" % what)
    finally:
        for path in places[1:]:
            os.unlink(path)


@test()
def listings_show_nothing_of_the_host():
    value, record = attack(r"""
tell(root=sorted(os.listdir('/')), etc=sorted(os.listdir('/etc')), run=os.listdir('/run'), var=os.listdir('/var'), home=os.path.exists('/home'), top=os.path.exists('/root'),
     mounts=open('/proc/self/mountinfo').read(), cgroup=open('/proc/self/cgroup').read(), passwd=open('/etc/passwd').read(), dev=sorted(os.listdir('/dev')),
     sys=os.path.exists('/sys/kernel'), proc=sorted(p for p in os.listdir('/proc') if not p.isdigit()), shadow=tried(open, '/etc/shadow'),
     ssh=os.path.exists('/etc/ssh'), cmdline=open('/proc/self/cmdline').read())
""")
    equal((value["home"], value["top"], value["sys"], value["ssh"], value["run"], value["shadow"]), (False, False, False, False, [], "ENOENT"), "places of the host")
    equal(value["proc"], ["self", "thread-self"], "/proc without processes")
    equal(set(value["dev"]), {"fd", "full", "null", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero"}, "/dev")
    equal([line for line in value["cgroup"].split() if not line.endswith(":/")], [], "paths in /proc/self/cgroup")
    check(len(value["passwd"].splitlines()) <= 3, "/etc/passwd: %r" % value["passwd"])
    allowed = re.compile(r"^/(usr|etc|lib|bin|sbin|var/cache/fontconfig|null|zero|full|random|urandom|tty|work|tmp|shm|dev|)")
    for line in value["mounts"].splitlines():
        root, point = line.split()[3:5]
        check(allowed.match(root) and "hotcell" not in line and t.folder() not in line, "a path of the host in mountinfo: %s" % line)


@test()
def every_read_only_place_resists():
    with hostile():
        value, record = attack(r"""
r = {}
files = ['/usr/bin/env', '/etc/passwd', '/etc/hostname', '/etc/ld.so.cache', '/etc/resolv.conf', '/etc/services', '/usr/lib/python3.11/os.py', '/work/main.py']
for f in files:
    if not os.path.exists(f): continue
    for name, act in (('rw', lambda: os.open(f, os.O_RDWR)), ('trunc', lambda: os.truncate(f, 0)), ('chmod', lambda: os.chmod(f, 0o777)), ('utime', lambda: os.utime(f, (0, 0))),
                      ('append', lambda: os.open(f, os.O_WRONLY | os.O_APPEND)), ('xattr', lambda: os.setxattr(f, 'user.x', b'1')), ('chown', lambda: os.chown(f, os.getuid(), -1))):
        r[name + f] = tried(act)
    if f != '/work/main.py':
        r['unlink' + f] = tried(os.unlink, f); r['rename' + f] = tried(os.rename, f, f + '2'); r['link' + f] = tried(os.link, f, '/work/l'); r['over' + f] = tried(os.rename, '/work/main.py', f)
for d in ('/', '/usr', '/usr/bin', '/etc', '/dev', '/run', '/var', '/proc', '/proc/self', '/etc/ssl', '/usr/local'):
    for name, act in (('mkdir', lambda: os.mkdir(d + '/x')), ('create', lambda: os.open(d + '/x', os.O_CREAT | os.O_WRONLY, 0o600)), ('symlink', lambda: os.symlink('a', d + '/x')), ('chmodd', lambda: os.chmod(d, 0o777)),
                      ('tmpfile', lambda: os.open(d, os.O_TMPFILE | os.O_RDWR, 0o600)), ('fifo', lambda: os.mkfifo(d + '/x'))):
        r[name + d] = tried(act)
for d in ('/dev/null', '/dev/zero', '/dev/tty'):
    r['unlink' + d] = tried(os.unlink, d); r['chmod' + d] = tried(os.chmod, d, 0o666)
import mmap
fd = os.open('/usr/bin/env', 0)
r['mmap'] = tried(mmap.mmap, fd, 4096, mmap.MAP_SHARED, mmap.PROT_WRITE)
r['proc rw'] = tried(os.open, '/proc/self/fd/%d' % fd, os.O_RDWR)
tell(**r)
""")
        good = {k: v for k, v in value.items() if v not in ("EROFS", "EACCES", "EPERM", "EXDEV", "ENOENT", "EOPNOTSUPP", "EISDIR", "ENOTSUP")}
        equal(good, {}, "changes that were not refused")


@test()
def mounting_is_impossible():
    with hostile():
        value, record = attack(r"""
r = {}
for target in ('/', '/usr', '/work', '/proc', '/tmp', '/etc', '/dev/null'):
    t = target.encode()
    r['remount' + target] = call(165, None, t, None, 0x20, None)
    r['bindrw' + target] = call(165, None, t, None, 0x1020, None)
    r['bind' + target] = call(165, b'/usr', t, None, 0x1000, None)
    r['tmpfs' + target] = call(165, b'none', t, b'tmpfs', 0, None)
    r['proc' + target] = call(165, b'none', t, b'proc', 0, None)
    r['private' + target] = call(165, None, t, None, 1 << 18, None)
    r['umount' + target] = call(166, t, 2)
    r['umountf' + target] = call(166, t, 1)
r['pivot'] = call(155, b'/work', b'/work'); r['chroot'] = call(161, b'/work')
r['fsopen'] = call(430, b'tmpfs', 0); r['open_tree'] = call(428, -100, b'/', 1); r['clone tree'] = call(428, -100, b'/usr', 0x8001)
r['move_mount'] = call(429, -100, b'/usr', -100, b'/work', 0); r['fspick'] = call(433, -100, b'/', 0); r['setattr'] = call(442, -100, b'/usr', 0, ctypes.create_string_buffer(32), 32)
r['fsconfig'] = call(431, 3, 0, None, None, 0); r['fsmount'] = call(432, 3, 0, 0); r['statmount'] = call(457, None, None, 0, 0); r['listmount'] = call(458, None, None, 0, 0)
r['quotactl'] = call(179, 0, None, 0, None); r['swapon'] = call(167, b'/work/main.py', 0)
tell(**r)
""")
        never(value, "EPERM", "ENOSYS", "EACCES")
        check(denied(record, "mount") > 10 and denied(record, "umount2") > 5 and denied(record, "pivot_root") == 1, "attempts are not told: %r" % record["syscalls_denied"])
        first = next(row["first"] for row in record["syscalls_denied"] if row["name"] == "mount")
        equal(first["path"], "/", "path of the first mount")


@test()
def nodes_handles_and_suid_files():
    with hostile():
        value, record = attack(r"""
import stat
r = {}
for kind in (stat.S_IFCHR, stat.S_IFBLK):
    for major, minor in ((1, 1), (1, 3), (8, 0), (254, 0), (10, 237)): r['node %d %d %d' % (kind, major, minor)] = tried(os.mknod, '/work/n', kind | 0o666, os.makedev(major, minor))
open('/work/s', 'w').close()
for mode in (0o4755, 0o2755, 0o6777): r['chmod %o' % mode] = tried(os.chmod, '/work/s', mode)
fd = os.open('/work/s', os.O_RDWR); r['fchmod'] = tried(os.fchmod, fd, 0o4755)
r['fchmodat'] = call(268, -100, b'/work/s', 0o4755); r['fchmodat2'] = call(452, -100, b'/work/s', 0o4755, 0)
r['chmod upper'] = call(90, b'/work/s', (1 << 40) | 0o4755)
h = ctypes.create_string_buffer(b'\x80\0\0\0' + b'\0' * 200)
r['name_to_handle'] = call(303, -100, b'/usr', h, ctypes.byref(ctypes.c_int()), 0)
h2 = ctypes.create_string_buffer(struct.pack('IiQQ', 8, 1, 2, 0))
r['open_by_handle'] = call(304, os.open('/usr', 0), h2, 0)
import fcntl
r['immutable'] = tried(fcntl.ioctl, fd, 0x40086602, struct.pack('l', 0x10))
r['fanotify'] = call(300, 0, 0)
r['caps xattr'] = tried(os.setxattr, '/work/s', 'security.capability', b'\x01\0\0\x02' + b'\xff' * 16)
r['trusted'] = tried(os.setxattr, '/work/s', 'trusted.x', b'1')
os.set_blocking(fd, True)
tell(mode=os.stat('/work/s').st_mode & 0o7000, **r)
""")
        equal(value.pop("mode"), 0, "set-id bits of the file")
        never(value, "EPERM", "ENOSYS", "EACCES", "EOPNOTSUPP", "ENOTTY")


# ---- network ----

def listeners():
    """Sockets of the host that nobody may reach: (close, name → address)"""
    tcp, udp = socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    tcp.bind(("127.0.0.1", 0))
    tcp.listen(64)
    udp.bind(("127.0.0.1", tcp.getsockname()[1]))
    path, abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    name = scratch("s")
    path.bind(name)
    path.listen(4)
    abstract.bind("\0hotcell-decoy-%d" % os.getpid())
    abstract.listen(4)
    for s in (tcp, udp, path, abstract):
        s.setblocking(False)
    return tcp, udp, path, abstract


def reached(*sockets):
    found = []
    for s in sockets:
        try:
            found.append(s.recv(100) if s.type == socket.SOCK_DGRAM else s.accept())
        except BlockingIOError:
            pass
    return found


@test()
def no_address_of_the_host_or_the_world_is_reached():
    tcp, udp, path, abstract = listeners()
    port = tcp.getsockname()[1]
    try:
        own = [info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)]
    except socket.gaierror:
        own = []
    with hostile():
        value, record = attack(r"""
r, t0 = {}, time.monotonic()
def go(name, family, address, kind=socket.SOCK_STREAM):
    try: s = socket.socket(family, kind)
    except OSError as e: r[name] = 'socket ' + errno.errorcode[e.errno]; return
    s.settimeout(5); r[name] = tried(s.connect, address); s.close()
port = %d
go('loopback', 2, ('127.0.0.1', port)); go('any', 2, ('0.0.0.0', port)); go('alias', 2, ('127.1.2.3', port))
for a in ('8.8.8.8', '10.0.0.1', '192.168.0.1', '172.17.0.1', '169.254.169.254', '100.100.100.200', '255.255.255.255', '224.0.0.1') + tuple(%r): go(a, 2, (a, 80))
for a in ('::1', '2001:4860:4860::8888', 'fe80::1', 'fd00:ec2::254', '::ffff:8.8.8.8', '::ffff:127.0.0.1', '64:ff9b::808:808'): go(a, 10, (a, port))
u = socket.socket(2, socket.SOCK_DGRAM)
for a in ('127.0.0.1', '8.8.8.8', '169.254.169.254'): r['udp ' + a] = tried(u.sendto, b'UDP', (a, port if a[0] == '1' and a[1] == '2' else 53))
r['sendmsg'] = tried(u.sendmsg, [b'x'], [], 0, ('9.9.9.9', 53))
r['connected udp'] = tried(u.connect, ('1.1.1.1', 53))
go('path', 1, %r); go('abstract', 1, '\0hotcell-decoy-%d'); go('docker', 1, '/var/run/docker.sock'); go('bus', 1, '/run/dbus/system_bus_socket'); go('journal', 1, '/run/systemd/journal/socket')
go('vsock', 40, (2, 1024))
t = time.monotonic(); r['name'] = 'resolved' if not isinstance(tried(lambda: socket.getaddrinfo('example.com', 80)), str) else 'no'; 
tell(took=time.monotonic() - t0, unix=open('/proc/self/net/unix').read().count('\n') if os.path.exists('/proc/self/net/unix') else 0, ifs=socket.if_nameindex(), **r)
""" % (port, own, path.getsockname(), os.getpid()))
        equal(reached(tcp, udp, path, abstract), [], "what reached the host")
        check(value.pop("took") < 3, "refusals took too long")
        equal([name for _, name in value.pop("ifs")], ["lo"], "interfaces")
        value.pop("unix")
        value.pop("name")
        udp_loopback = value.pop("udp 127.0.0.1")
        one_of(udp_loopback, ("ECONNREFUSED", 3), "a message to the cell's own loopback")
        good = {k: v for k, v in value.items() if v not in ("ECONNREFUSED", "ENETUNREACH", "ENOENT", "socket EAFNOSUPPORT", "socket EPERM", "EACCES", "EPERM", "EADDRNOTAVAIL", "EHOSTUNREACH", "EINVAL")}
        equal(good, {}, "connections")
        for address in ("8.8.8.8", "169.254.169.254", "2001:4860:4860::8888", "9.9.9.9"):
            for one in attempts(record, address=address):
                equal(one["decision"], "refused", "decision on %s" % address)
        attempts(record, address="169.254.169.254", port=80, call="connect", protocol="tcp", decision="refused")
        attempts(record, address="8.8.8.8", port=53, call="sendto", protocol="udp", decision="refused")
        attempts(record, address=path.getsockname(), protocol="unix")
        attempts(record, address="@hotcell-decoy-%d" % os.getpid(), protocol="unix")
        attempts(record, protocol="vsock")


@test()
def the_record_counts_every_attempt():
    # Also those made just before the end: the queue of events is not thrown away with the run.
    for count in (10, 150, 1000):
        value, record = attack(r"""
for i in range(%d):
    s = socket.socket(); tried(s.connect, ('10.%%d.%%d.1' %% (i >> 8, i & 255), 80)); s.close()
tell(done=1); os._exit(0)
""" % count)
        equal(len(record["network"]["attempts"]) + record["network"]["omitted"], count, "attempts told and omitted")
        if count <= 150:
            equal({a["address"] for a in record["network"]["attempts"]}, {"10.0.%d.1" % i for i in range(count)}, "addresses")


@test()
def the_record_counts_every_attempt_of_a_fast_program():
    for count in (150, 199):
        record, _, _, _ = run(r"""
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>
int main(void) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    for (int i = 0; i < %d; i++) {
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(80), .sin_addr.s_addr = htonl(0x0a000000 + i)};
        connect(fd, (struct sockaddr *)&a, sizeof a);
    }
    _exit(0);
}
""" % count, "c")
        ends(record, "ok", None)
        equal(len(record["network"]["attempts"]) + record["network"]["omitted"], count, "attempts told and omitted")


@test()
def socket_families_are_those_of_the_policy():
    with hostile():
        value, record = attack(r"""
ok, bad = [], {}
for family in list(range(0, 47)) + [255, 1000, -1, 1 << 31]:
    for kind in (0, 1, 2, 3, 4, 5, 6, 10):
        for protocol in (0, 1, 6, 17, 58, 132, 136, 255, 262):
            fd = call(41, family, kind | 0x80000, protocol)
            if isinstance(fd, int): ok.append([family, kind, protocol]); os.close(fd)
            else: bad[fd] = bad.get(fd, 0) + 1
for proto in range(0, 24):
    fd = call(41, 16, 3, proto)
    if isinstance(fd, int): ok.append([16, 'netlink', proto]); os.close(fd)
pair = [f for f in range(0, 47) if isinstance(call(53, f, 1, 0, (ctypes.c_int * 2)()), int)]
high = call(41, (1 << 32) | 38, 5, 0); high2 = call(41, 38, (1 << 32) | 5, 0)
tell(ok=ok, bad=sorted(bad), pair=pair, high=high, high2=high2)
""")
        wanted = {(1, k, p) for k in (1, 2, 5) for p in (0, 1)} | {(f, 1, p) for f in (2, 10) for p in (0, 6)} | {(f, 2, p) for f in (2, 10) for p in (0, 17)} | {(16, k, 0) for k in (2, 3)} | {(16, "netlink", 0)}
        extra = {tuple(item) for item in value["ok"]} - wanted
        equal(extra, set(), "sockets beyond the policy")
        equal(value["pair"], [1], "families of socketpair")
        one_of(value["high"], ("EAFNOSUPPORT", "EPERM"), "AF_ALG with high bits")
        check({"EAFNOSUPPORT", "EPROTONOSUPPORT"} <= set(value["bad"]), "errors: %r" % value["bad"])


@test()
def rewriting_the_address_from_a_second_thread_gains_nothing():
    tcp, udp, path, abstract = listeners()
    with hostile():
        value, record = attack(r"""
port = %d
buf = ctypes.create_string_buffer(struct.pack('!HH', 0x0200, port) + bytes([127, 0, 0, 1]) + b'\0' * 8, 16)
stop = False
def flip():
    a, b = bytes([127, 0, 0, 1]), bytes([8, 8, 8, 8])
    while not stop:
        ctypes.memmove(ctypes.addressof(buf) + 4, a, 4); ctypes.memmove(ctypes.addressof(buf) + 4, b, 4)
threading.Thread(target=flip, daemon=True).start()
r = set()
end = time.monotonic() + 1.5
while time.monotonic() < end:
    s = socket.socket(); r.add(str(call(42, s.fileno(), buf, 16))); s.close()
stop = True
tell(r=sorted(r))
""" % tcp.getsockname()[1])
        equal(reached(tcp), [], "what reached the host")
        check(set(value["r"]) <= {"ECONNREFUSED", "ENETUNREACH"}, "results %r" % value["r"])


@test()
def odd_addresses_do_not_upset_the_supervisor():
    with hostile():
        value, record = attack(r"""
r = []
s = socket.socket(); u = socket.socket(socket.AF_UNIX)
for length in (0, 1, 2, 3, 15, 16, 17, 110, 128, 129, 4096, -1, 0x7fffffff, 1 << 33):
    for addr in (ctypes.create_string_buffer(os.urandom(256)), ctypes.create_string_buffer(b'\x01\0' + b'\xff' * 200), None, 1, 0xffffffffffff, -1, 0x7ffffffff000):
        for fd in (s.fileno(), u.fileno(), -1, 9999):
            r.append(str(call(42, fd, addr, length))); r.append(str(call(44, fd, None, 0, 0, addr, length)))
        r.append(str(call(46, s.fileno(), addr, 0))); r.append(str(call(307, s.fileno(), addr, 1024, 0)))
os.symlink('x', 'y'); u2 = socket.socket(socket.AF_UNIX)
r.append(tried(u2.connect, '\x1b[31m\n\\x'))
tell(ok=[x for x in set(r) if not x.startswith('E')], n=len(r))
""")
        check(set(value["ok"]) <= {"0"}, "results %r" % value["ok"])
        check(record["network"]["omitted"] > 0, "nothing omitted of %d" % value["n"])
        check(len(json.dumps(record)) < MIB, "the record has %d bytes" % len(json.dumps(record)))


# ---- namespaces, ids, other processes ----

@test()
def namespaces_can_not_be_made_or_entered():
    with hostile():
        value, record = attack(r"""
r = {}
names = {'time': 0x80, 'mnt': 0x20000, 'cgroup': 0x2000000, 'uts': 0x4000000, 'ipc': 0x8000000, 'user': 0x10000000, 'pid': 0x20000000, 'net': 0x40000000}
for n, f in names.items():
    r['unshare ' + n] = call(272, f)
    r['unshare high ' + n] = call(272, (1 << 40) | f)
    if n != 'time': r['clone ' + n] = call(56, f | 17, 0, 0, 0, 0)
    if n != 'time': r['clone high ' + n] = call(56, (1 << 40) | f | 17, 0, 0, 0, 0)
    r['clone3 ' + n] = call(435, ctypes.create_string_buffer(struct.pack('Q' * 11, f, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0)), 88)
    for pid in ('self', '1'):
        fd = tried(os.open, '/proc/%s/ns/%s' % (pid, n), 0)
        r['setns %s %s' % (pid, n)] = call(308, fd, 0) if isinstance(fd, int) else fd
    r['pidfd setns ' + n] = call(308, call(434, os.getppid() or 1, 0) if isinstance(call(434, 1, 0), int) else -1, f)
r['user+all'] = call(272, 0x7e020000); r['clone user+all'] = call(56, 0x7e020000 | 17, 0, 0, 0, 0)
# Older kernels let the owner open these; what counts is that nothing can be written any more.
r['uid_map'] = tried(lambda: os.write(os.open('/proc/self/uid_map', os.O_WRONLY), b'0 0 1\n'))
r['setgroups'] = tried(lambda: os.write(os.open('/proc/self/setgroups', os.O_WRONLY), b'allow'))
r['sethostname'] = call(170, b'x', 1); r['setdomainname'] = call(171, b'x', 1)
tell(**r)
""")
        never(value, "EPERM", "ENOSYS", "EACCES", "ENOENT", "EINVAL", "ENOSPC", "EBADF", "ESRCH")
        check(denied(record, "unshare") >= 8 and denied(record, "clone") >= 7, "attempts are not told: %r" % record["syscalls_denied"])


@test()
def nested_user_namespaces_are_impossible_even_for_tools():
    with hostile():
        record, _, _, _ = run("for o in -U -r -n -m -p -i -u -C -T; do unshare $o true && echo made $o; done; nsenter -t 1 -a true && echo entered; mount -t tmpfs x /tmp && echo mounted; "
                              "command -v bwrap >/dev/null && bwrap --bind / / true && echo bwrap; chroot / true && echo chroot; true", "bash")
        ends(record, "ok", None)
        equal(out(record), "", "what worked")


@test()
def set_user_id_programs_give_nothing():
    found = subprocess.run(["find", "/usr", "-xdev", "-perm", "/6000", "-type", "f"], capture_output=True, text=True, timeout=30).stdout.split()
    if not found:
        raise Skip("no set-user-id program below /usr")
    with hostile():
        value, record = attack(r"""
import subprocess
r = {}
for p in %r:
    if not os.access(p, os.X_OK): r[p] = 'no'; continue
    try: q = subprocess.run([p, '--version'], stdin=subprocess.DEVNULL, capture_output=True, timeout=1); r[p] = 'ran'
    except (OSError, subprocess.TimeoutExpired) as e: r[p] = type(e).__name__
q = subprocess.run(['/usr/bin/cat', '/proc/self/status'], capture_output=True, text=True).stdout
s = {l.split(':')[0]: l.split(':')[1].split() for l in q.splitlines()}
r2 = {'su': subprocess.run(['timeout', '2', 'su', '-c', 'id'], stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout if os.path.exists('/usr/bin/su') else ''}
tell(ran=r, su=r2['su'], caps=[s[c] for c in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb')], uid=s['Uid'], nnp=s['NoNewPrivs'], seccomp=s['Seccomp'],
     setuid=tried(os.setuid, 0), setresuid=tried(os.setresuid, 0, 0, 0), setgid=tried(os.setgid, 0), groups=tried(os.setgroups, [0]), nobody=tried(os.setuid, 65534),
     capset=call(126, ctypes.create_string_buffer(struct.pack('Ii', 0x20080522, 0)), ctypes.create_string_buffer(struct.pack('IIIIII', *[0xffffffff] * 6))),
     ambient=call(157, 47, 2, 21, 0, 0), securebits=call(157, 28, 0, 0, 0, 0), nnp_off=call(157, 38, 0, 0, 0, 0), keepcaps=call(157, 8, 1, 0, 0, 0))
""" % found)
        equal(value["caps"], [["0000000000000000"]] * 5, "capabilities of a program below /usr after its exec")
        equal((value["nnp"], value["seccomp"], len(set(value["uid"]))), (["1"], ["2"], 1), "no_new_privs, seccomp, ids")
        equal(value["su"], "", "su")
        for name in ("setuid", "setresuid", "setgid", "groups", "nobody", "capset", "ambient", "securebits"):
            one_of(value[name], ("EPERM", "EINVAL"), name)
        one_of(value["nnp_off"], ("EINVAL", "EPERM"), "no_new_privs off")


@test()
def process_one_and_the_supervisor_are_out_of_reach():
    with hostile():
        value, record = attack(r"""
r = {}
for name in ('environ', 'mem', 'maps', 'fd', 'cwd', 'root', 'exe', 'stack', 'syscall', 'auxv', 'io', 'ns/net', 'mountinfo', 'cmdline', 'status', 'task', 'oom_score_adj', 'pagemap', 'clear_refs', 'map_files', 'timerslack_ns', 'attr/current'):
    for pid in ('1', str(os.getppid())):
        if pid == '0': continue
        r['read /proc/%s/%s' % (pid, name)] = tried(os.open, '/proc/%s/%s' % (pid, name), 0)
        r['list /proc/%s/%s' % (pid, name)] = tried(os.listdir, '/proc/%s/%s' % (pid, name))
r['oom of 1'] = tried(lambda: open('/proc/1/oom_score_adj', 'w').write('1000'))
r['lower own oom'] = tried(lambda: open('/proc/self/oom_score_adj', 'w').write('-1000') and 0 or 'done')
for s in range(1, 65): r['kill 1 %d' % s] = tried(os.kill, 1, s)
r['tgkill'] = call(234, 1, 1, 9); r['tkill'] = call(200, 1, 9)
r['sigqueue'] = call(129, 1, 9, ctypes.create_string_buffer(128))
r['attach'] = call(101, 16, 1, 0, 0); r['seize'] = call(101, 0x4206, 1, 0, 0); r['traceme'] = call(101, 0, 0, 0, 0)
buf = ctypes.create_string_buffer(64); iov = struct.pack('QQ', ctypes.addressof(buf), 64)
r['readv'] = call(310, 1, iov, 1, struct.pack('QQ', 0x400000, 64), 1, 0); r['writev'] = call(311, 1, iov, 1, iov, 1, 0); r['readv self'] = call(310, os.getpid(), iov, 1, iov, 1, 0)
p = call(434, 1, 0)
if isinstance(p, int): r['pidfd kill'] = call(424, p, 9, None, 0); r['getfd'] = call(438, p, 3, 0)
r['kcmp'] = call(312, 1, os.getpid(), 0, 3, 3); r['prlimit 1'] = call(302, 1, 7, struct.pack('QQ', 1, 1), None)
r['sched 1'] = tried(os.sched_setaffinity, 1, {0}); r['nice 1'] = tried(os.setpriority, 0, 1, 19); r['migrate'] = call(256, 1, 0, None, None)
r['pgrp 1'] = tried(os.setpgid, 1, os.getpid()); r['madvise 1'] = call(440, p if isinstance(p, int) else 0, None, 0, 0, 0); r['robust'] = call(274, 1, ctypes.byref(ctypes.c_long()), ctypes.byref(ctypes.c_long()))
r['kcmp'] = call(312, 1, 1, 0, 0, 0); r['ioprio 1'] = call(251, 1, 1, 0)
tell(ppid=os.getppid(), **r)
""")
        value.pop("ppid")
        value.pop("lower own oom")
        good = {k: v for k, v in value.items() if v not in ("EPERM", "EACCES", "ENOENT", "ESRCH", "ENOSYS", "EINVAL", "ENOTDIR", "EBADF", "EFAULT")}
        equal(good, {}, "what worked on process 1")


@test()
def kill_everything_in_sight():
    with hostile():
        record, code, _, wall = run("import os, signal\nfor who in (-1, 1):\n    try: os.kill(who, 9)\n    except OSError: pass\nprint('after', flush=True)\nos.kill(0, 9)")
        equal((record["status"], record["signal"], out(record)), ("runtime_error", 9, "after\n"), "verdict")
        record, code, _, wall = run("import os, signal, time\ntry: os.kill(-1, signal.SIGSTOP)\nexcept OSError: pass\nos.kill(os.getpid(), signal.SIGSTOP)\ntime.sleep(30)", wall="700ms")
        ends(record, "timeout", "wall_time")
        check(wall < 3, "a stopped program held the command for %.1f s" % wall)
        record, _, _, wall = run("import os, time\nfor i in range(20):\n    if os.fork() == 0:\n        os.setsid()\n        while True:\n            try: os.kill(-1, 19)\n            except OSError: pass\ntime.sleep(30)", wall="700ms", processes=32)
        ends(record, "timeout", "wall_time")
        check(wall < 4, "a storm of stops held the command for %.1f s" % wall)


@test()
def proc_tricks():
    with hostile():
        value, record = attack(r"""
r = {}
for p in ('sysrq-trigger', 'kcore', 'kallsyms', 'kmsg', 'keys', 'key-users', 'timer_list', 'sched_debug', 'config.gz', 'modules', 'iomem', 'interrupts', 'cpuinfo', 'meminfo', 'version', 'cmdline', 'partitions', 'net/unix', 'sys/kernel/core_pattern',
          'sys/kernel/modprobe', 'sys/kernel/hostname', 'sys/vm/overcommit_memory', 'sys/kernel/randomize_va_space', 'sys/user/max_user_namespaces', 'sys/net/ipv4/ip_forward', 'mounts/../kcore', 'scsi/scsi', 'bus', 'irq', 'acpi', 'fs', 'driver', 'pressure/cpu'):
    r['r ' + p] = tried(os.open, '/proc/' + p, os.O_RDONLY); r['w ' + p] = tried(os.open, '/proc/' + p, os.O_WRONLY)
r['self/mem'] = tried(lambda: 'open' if os.open('/proc/1/mem', os.O_RDWR) else 0)
r['exe'] = tried(os.open, '/proc/self/exe', os.O_RDWR)
r['sys'] = tried(os.listdir, '/sys'); r['cg'] = tried(os.listdir, '/sys/fs/cgroup')
r['umh'] = call(246, 0, 0, None, 0); r['kexec_file'] = call(320, -1, -1, 0, None, 0); r['init_module'] = call(175, None, 0, b''); r['finit'] = call(313, 0, b'', 0); r['delete_module'] = call(176, b'x', 0)
r['syslog'] = call(103, 3, ctypes.create_string_buffer(4096), 4096); r['reboot'] = call(169, 0xfee1dead, 672274793, 0x01234567, None); r['acct'] = call(163, b'/work/x'); r['iopl'] = call(172, 3); r['ioperm'] = call(173, 0x378, 3, 1)
r['clock'] = call(227, 0, struct.pack('QQ', 1, 1)); r['settimeofday'] = call(164, struct.pack('QQ', 1, 1), None); r['adjtimex'] = call(159, ctypes.create_string_buffer(256)); r['vhangup'] = call(153); r['ldt'] = call(154, 1, ctypes.create_string_buffer(16), 16)
tell(links=[os.readlink('/proc/self/root'), os.readlink('/proc/self/cwd')], **r)
""")
        equal(value.pop("links"), ["/", "/work"], "links")
        good = {k: v for k, v in value.items() if v not in ("EPERM", "EACCES", "ENOENT", "ENOSYS", "EROFS", "ETXTBSY", "ENOTDIR")}
        equal(good, {}, "what could be opened or called")


@test()
def dangerous_kernel_interfaces():
    with hostile():
        value, record = attack(r"""
r = {}
attr = ctypes.create_string_buffer(128)
for c in range(0, 40): r['bpf %d' % c] = call(321, c, attr, 128)
r['perf'] = call(298, attr, 0, -1, -1, 0); r['userfaultfd'] = call(323, 0); r['userfaultfd user'] = call(323, 1)
r['io_uring_setup'] = call(425, 8, attr); r['io_uring_enter'] = call(426, 3, 1, 0, 0, None, 0); r['io_uring_register'] = call(427, 3, 0, None, 0)
for c in range(0, 33): r['keyctl %d' % c] = call(250, c, -3, 0, 0, 0)
r['add_key'] = call(248, b'user', b'x', b'y', 1, -3); r['add session'] = call(248, b'keyring', b'x', None, 0, -5); r['request_key'] = call(249, b'user', b'x', None, 0)
for p in (0x0008, 0x0400000, 0x0800000, 0x0100000, 0x0200000, 0x8000000, 0xff & 6, 1): r['personality %x' % p] = call(135, p)
r['memfd_secret'] = call(447, 0); r['lookup_dcookie'] = call(212, 0, None, 0); r['fanotify'] = call(300, 0, 0); r['mbind'] = call(237, None, 0, 0, None, 0, 0); r['move_pages'] = call(279, 0, 0, None, None, None, 0)
r['sched fifo'] = call(144, 0, 1, struct.pack('i', 1)); r['sched fifo reset'] = call(144, 0, 0x40000001, struct.pack('i', 1)); r['sched deadline'] = call(314, 0, ctypes.create_string_buffer(struct.pack('IIQiIQQQ', 48, 6, 0, 0, 0, 10**6, 10**7, 10**7)), 0)
r['nice'] = call(141, 0, 0, -20); r['io rt'] = call(251, 1, 0, 1 << 13); r['seccomp listener'] = call(317, 1, 8, ctypes.create_string_buffer(16)); r['user dispatch'] = call(157, 59, 1, 0, 0, 0); r['set_mm'] = call(157, 35, 13, 0, 0, 0); r['ptracer'] = call(157, 0x59616d61, -1, 0, 0, 0)
r['sched_core'] = call(157, 62, 1, 0, 1, 0); r['merge'] = call(157, 67, 1, 0, 0, 0)
for n in (156, 174, 177, 178, 180, 181, 182, 183, 184, 185, 236, 400, 423, 500, 512, 547, 548, 1000, 0x3fffffff): r['number %d' % n] = call(n, 0, 0, 0, 0, 0, 0)
import resource
core = [resource.getrlimit(4), tried(resource.setrlimit, 4, (0, 0)), resource.getrlimit(4), call(302, 0, 4, struct.pack('QQ', 0, 0), None), resource.getrlimit(4)]
def raising(n):
    try: resource.setrlimit(n, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)); return 'raised' 
    except (ValueError, OSError): return 'EPERM'
tell(core=[core[0], core[2], core[4]], up=[raising(n) for n in (0, 1, 3, 7, 8, 11, 12, 13, 14)], **r)
""")
        equal(value.pop("core"), [[1, 1]] * 3, "core limit before, after setrlimit, after prlimit")
        equal(set(value.pop("up")), {"EPERM"}, "raising hard limits")
        good = {k: v for k, v in value.items() if v not in ("EPERM", "ENOSYS", "EACCES", "EINVAL")}
        equal(good, {}, "what worked")
        for name in ("bpf", "perf_event_open", "userfaultfd", "keyctl", "personality"):
            check(denied(record, name) > 0, "%s is not told among %r" % (name, [row["name"] for row in record["syscalls_denied"]]))


FOREIGN = r"""
#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    (void)argc;
    long result = -1;
    if (argv[1][0] == '8') {
        /* getpid by the 32-bit gate */
        __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory");
    } else if (argv[1][0] == 's') {
        /* socketcall(SYS_SOCKET): arguments must lie low; any answer but a kill or ENOSYS is a hole */
        __asm__ volatile("int $0x80" : "=a"(result) : "a"(102L), "b"(1L), "c"(0L) : "memory");
    } else {
        for (long n = 0; n < 560; n++) {
            long got;
            __asm__ volatile("syscall" : "=a"(got) : "a"(0x40000000L | n), "D"(-1L), "S"(0L), "d"(0L) : "rcx", "r11", "memory");
            if (got != -ENOSYS) { printf("x32 number %ld: %ld\n", n, got); return 3; }
        }
        puts("all ENOSYS");
        return 0;
    }
    printf("answered %ld\n", result);
    return result == -ENOSYS ? 0 : 3;
}
"""


@test()
def calls_of_other_architectures():
    with hostile():
        for mode in ("8", "s"):
            record, code, _, _ = run(FOREIGN, "c", args=[mode])
            if record["status"] == "policy_violation":
                equal((record["cause"], record["signal_name"], code), ("syscall", "SIGSYS", 126), "a 32-bit call")
            elif record["status"] == "runtime_error" and record["signal_name"] == "SIGSEGV":
                pass  # a kernel without the gate
            else:
                ends(record, "ok", None)
        record, code, _, _ = run(FOREIGN, "c", args=["x"])
        check(record["status"] == "policy_violation" or out(record) == "all ENOSYS\n", "x32: %s %r" % (record["status"], out(record)))


@test(60)
def a_program_killed_by_the_filter_is_never_a_fault_of_ours():
    # While such a process dies its status says "Seccomp: 3" (SECCOMP_MODE_DEAD, Linux 5.16): the filter held, it is not missing.
    source = "int main(void) { long r; __asm__ volatile(\"syscall\" : \"=a\"(r) : \"a\"(0x40000027L) : \"rcx\", \"r11\", \"memory\"); return r != -38; }"
    seen = {run(source, "c")[0]["status"] for _ in range(16)}
    check(seen <= {"policy_violation"} or seen <= {"ok"}, "statuses of sixteen equal runs: %r" % seen)


@test(60)
def nothing_done_right_after_the_exec_upsets_the_attestation():
    head = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
static void *later(void *p) { usleep(60000); return p; }
int main(void) { (void)later; """
    bodies = {"a filter of its own": "struct sock_filter f[] = {{6, 0, 0, 0x7fff0000}}; struct sock_fprog p = {1, f}; syscall(SYS_seccomp, 1, 0, &p);",
              "being preferred by the OOM killer": 'int f = open("/proc/self/oom_score_adj", O_WRONLY); if (write(f, "1000", 4) != 4) return 9;',
              "all limits lowered": "for (int i = 0; i < 16; i++) { struct rlimit l = {0, 0}; if (i != RLIMIT_CPU) setrlimit(i, &l); }",
              "a forged name": 'prctl(PR_SET_NAME, "x\\nSeccomp:\\t0");', "not dumpable": "prctl(PR_SET_DUMPABLE, 0);",
              "main thread gone": "pthread_t t; pthread_create(&t, 0, later, 0); pthread_exit(0);"}
    for what, body in bodies.items():
        for _ in range(3):
            record, _, _, _ = run(head + body + " usleep(30000); return 0; }", "c")
            ends(record, "ok", None)
            one_of(record["isolation"]["grade"], t.GRADES, "grade with %s" % what)


@test()
def binaries_for_32_bits():
    source = r"""
void _start(void) { __asm__ volatile("mov $4, %eax; mov $1, %ebx; mov $msg, %ecx; mov $4, %edx; int $0x80; mov $1, %eax; mov $0, %ebx; int $0x80; .data; msg: .ascii \"hey\\n\"; .text"); }
"""
    with hostile():
        record, _, _, _ = run("cat > a.c <<'E'\n%s\nE\ngcc -m32 -nostdlib -static -o /work/a a.c || exit 77\n./a; echo $?" % source, "bash")
        if record["exit_code"] == 77:
            raise Skip("gcc -m32 is not complete on this host")
        ends(record, "ok", None)
        check("hey" not in out(record), "a 32-bit program ran its calls: %r" % out(record))


# ---- descriptors, environment, forged verdicts, terminals ----

@test()
def only_three_descriptors_and_no_environment():
    reader, writer = os.pipe()
    os.dup2(reader, 77, inheritable=True)
    source = r"""
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>
extern char **environ;
int main(void) {
    for (int fd = 0; fd < 4096; fd++) { char p[64], t[512]; snprintf(p, 64, "/proc/self/fd/%d", fd); ssize_t n = readlink(p, t, 511); if (n > 0) { t[n] = 0; printf("fd %d %s\n", fd, t); } }
    for (char **e = environ; *e; e++) printf("env %s\n", *e);
    printf("exec %s\n", (char *)getauxval(AT_EXECFN));
}
"""
    with hostile():
        ending = invoke(command(source, "c"), environ=dict(os.environ, API_TOKEN="tok-4711", HOTCELL_SECRET="sec-4711"), close_fds=False)
        record = record_of(ending)
        lines = out(record).splitlines()
        equal([re.sub(r"\d{2,}", "N", line) for line in lines if line.startswith("fd")], ["fd 0 pipe:[N]", "fd 1 pipe:[N]", "fd 2 pipe:[N]"], "descriptors")
        check("4711" not in ending.stdout.decode() + ending.stderr.decode(), "a token of the caller is in the record")
        check(not any("hotcell" in line.lower() for line in lines), "hotcell shows itself: %r" % lines)


@test()
def forged_verdicts_reach_nobody():
    forged = json.dumps({"schema": "hotcell.run/1", "status": "ok", "exit_code": 0, "state": "finished"})
    with hostile():
        record, code, _, _ = run(PRELUDE + r"""
f = %r.encode()
for fd in range(3, 1024):
    try: os.write(fd, f); print('wrote', fd)
    except OSError: pass
    try: socket.socket(fileno=os.dup(fd)).send(f); print('sent', fd)
    except OSError: pass
print(f.decode()); print(f.decode(), file=sys.stderr); sys.stdout.flush()
os.write(0, f) if tried(os.write, 0, f) == 'done' else None
os._exit(9)
""" % forged)
        ends(record, "runtime_error", "exit_code")
        equal((code, record["exit_code"]), (9, 9), "exit code")
        check("wrote" not in out(record) and "sent" not in out(record), "a descriptor took it: %r" % out(record)[:200])


@test()
def terminal_injection():
    master, slave = os.openpty()
    with hostile():
        source = PRELUDE + r"""
import fcntl
r = {}
for fd in (0, 1, 2):
    for request in (0x5412, 0x541C, 0x5412 | (1 << 32), 0x541C | (1 << 63), 0xFFFFFFFF00005412, 0x540E, 0x5413, 0x5401):
        r['%d %x' % (fd, request)] = call(16, fd, request, ctypes.create_string_buffer(b'x' * 64))
r['tty'] = tried(os.open, '/dev/tty', os.O_RDWR); r['ptmx'] = tried(os.open, '/dev/ptmx', os.O_RDWR); r['console'] = tried(os.open, '/dev/console', os.O_RDWR); r['pts'] = tried(os.listdir, '/dev/pts')
tell(isatty=[os.isatty(f) for f in (0, 1, 2)], sid=os.getsid(0), pid=os.getpid(), **r)
"""
        process = subprocess.Popen(command(source, json_=False), stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                                   preexec_fn=lambda: __import__("fcntl").ioctl(0, 0x540E, 0))
        os.close(slave)
        data = b""
        try:
            while True:
                data += os.read(master, 65536)
        except OSError:
            pass
        equal(process.wait(20), 0, "exit code (%r)" % data[-300:])
        value = json.loads(data.decode().strip().splitlines()[-1])
        equal((value.pop("isatty"), value.pop("sid") == value.pop("pid")), ([False] * 3, True), "terminals")
        never(value, "ENOTTY", "EPERM", "ENXIO", "ENOENT", "EINVAL", "EACCES")
    os.close(master)


@test()
def two_runs_share_no_randomness():
    code = r"""
import ctypes, os, random, tempfile, uuid, sys
a = ctypes.CDLL(None); a.getauxval.restype = ctypes.c_void_p
r = ctypes.string_at(a.getauxval(25), 16).hex()
print(r, hash('x'), random.random(), uuid.uuid4(), tempfile.mktemp(), os.urandom(8).hex(), id(object()) >> 12, ctypes.cast(a.getpid, ctypes.c_void_p).value, uuid.getnode(), open('/proc/sys/kernel/random/boot_id').read() if os.path.exists('/proc/sys/kernel/random/boot_id') else '')
"""
    seen = [out(run(code)[0]).split() for _ in range(4)]
    for index, name in enumerate(("AT_RANDOM", "hash seed", "random", "uuid4", "tempfile name", "urandom")):
        equal(len({row[index] for row in seen}), 4, "different values of %s in four runs" % name)
    check(len({row[7] for row in seen}) >= 3, "address layout: %r" % [row[7] for row in seen])


@test()
def two_cells_do_not_see_each_other():
    with hostile():
        left = start(PRELUDE + r"""
s = socket.socket(socket.AF_UNIX); s.bind('\0shared-name'); s.listen()
t = socket.socket(); t.bind(('127.0.0.1', 7777)); t.listen()
p = socket.socket(socket.AF_UNIX); p.bind('/tmp/shared-sock'); p.listen()
for f in ('/tmp/shared', '/dev/shm/shared', '/work/shared'): open(f, 'w').write('x')
libc.shmget(77, 4096, 0o1666); libc.semget(77, 1, 0o1666); libc.msgget(77, 0o1666)
m = libc.mq_open(b'/shared', 0o102, 0o666, None)
print('ready', flush=True); time.sleep(3)
import select
print(len(select.select([s, t, p], [], [], 0)[0]))
""")
        time.sleep(1.0)
        value, _ = attack(r"""
r = {}
for n, f, a in (('abstract', 1, '\0shared-name'), ('tcp', 2, ('127.0.0.1', 7777)), ('path', 1, '/tmp/shared-sock')):
    s = socket.socket(f); r[n] = tried(s.connect, a)
for f in ('/tmp/shared', '/dev/shm/shared', '/work/shared'): r[f] = tried(open, f)
for n, x in (('shm', libc.shmget(77, 4096, 0)), ('sem', libc.semget(77, 1, 0)), ('msg', libc.msgget(77, 0)), ('mq', libc.mq_open(b'/shared', 2))): r[n] = 'ENOENT' if x == -1 else x
tell(pids=[int(p) for p in os.listdir('/proc') if p.isdigit()], uid=os.getuid(), **r)
""")
        record = finish(left)
        equal(out(record), "ready\n0\n", "what reached the first cell")
        value.pop("uid")
        check(all(pid in (1, 2, 3) for pid in value.pop("pids")), "processes of others")
        never(value, "ECONNREFUSED", "ENOENT")


# ---- exhaustion, with a neighbour ----

def beside_a_neighbour(attack_code, language="python", **options):
    """While the attack runs, an innocent run gives its normal result; then the attack's record."""
    with hostile():
        process = start(attack_code, language, **options)
        time.sleep(0.4)
        for _ in range(3):
            innocent()
        return finish(process, 40)


@test()
def fork_bomb_beside_a_neighbour():
    record = beside_a_neighbour("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", wall="3s", processes=64)
    equal((record["status"], record["limits"]["processes"]["hit"]), ("timeout", True), "verdict")
    check(record["usage"]["processes_peak"] <= 64, "peak %r" % record["usage"]["processes_peak"])


@test()
def notification_flood_beside_a_neighbour():
    record = beside_a_neighbour(PRELUDE + r"""
def flood():
    while True:
        s = socket.socket(); tried(s.connect, ('10.1.2.3', 1)); s.close()
for i in range(50): threading.Thread(target=flood, daemon=True).start()
time.sleep(2.5); os._exit(0)
""", wall="10s")
    ends(record, "ok", None)
    check(len(record["network"]["attempts"]) == 200 and record["network"]["omitted"] > 100, "attempts %d, omitted %d" % (len(record["network"]["attempts"]), record["network"]["omitted"]))


@test()
def killing_threads_in_the_middle_of_a_notified_call():
    with hostile():
        record, _, _, _ = run(PRELUDE + r"""
end = time.monotonic() + 2; n = 0
while time.monotonic() < end:
    pid = os.fork()
    if pid == 0:
        while True:
            s = socket.socket(); tried(s.connect, ('10.1.2.3', 1)); s.close(); call(272, 0x10000000)
    time.sleep(0.001 * (n % 5)); os.kill(pid, 9); os.waitpid(pid, 0); n += 1
tell(n=n)
""", wall="15s")
        ends(record, "ok", None)
        check(facts(record)["n"] > 50, "rounds: %r" % facts(record))


@test()
def gigabytes_of_output_leave_the_command_flat():
    with hostile():
        process = start("import os\nb = b'x' * 65536\nwhile True: os.write(1, b)", output_total="2G", wall="20s")
        peak = 0
        while process.poll() is None:
            match = re.search(r"VmRSS:\s+(\d+)", t._read("/proc/%d/status" % process.pid))
            peak = max(peak, int(match[1]) if match else 0)
            if peak > 400000:
                process.kill()
            if select_ready(process):
                break
            time.sleep(0.02)
        record = finish(process)
        ends(record, "output_limit", "output_bytes")
        check(peak < 60000, "RSS of the command reached %d KB" % peak)
        check(record["stdout"]["bytes"] >= 2 << 30, "bytes: %d" % record["stdout"]["bytes"])


def select_ready(process):
    import select
    return bool(select.select([process.stdout], [], [], 0)[0])


@test()
def kernel_memory_of_sockets_timers_and_names_is_charged_or_bounded():
    with hostile():
        before = int(re.search(r"SUnreclaim:\s+(\d+)", t._read("/proc/meminfo"))[1])
        record, _, _, _ = run(PRELUDE + r"""
keep = []
def until(f, most=100000):
    for i in range(most):
        try: keep.append(f())
        except OSError as e: return i
    return most
import select
r = dict(timers=0, events=until(lambda: os.eventfd(0) if hasattr(os, 'eventfd') else os.dup(1)))
for fd in keep: os.close(fd)
keep.clear()
id = ctypes.c_int()
n = 0
while n < 100000 and call(222, 0, None, ctypes.byref(id)) == 0: n += 1
r['timers'] = n
for i in range(5000): 
    try: os.symlink('t' * 4000, '/work/%d' % i)
    except OSError as e: break
r['links'] = i
for i in range(3000):
    try: os.setxattr('/work', 'user.%d' % i, b'x' * 4000)
    except OSError: break
r['xattr'] = i
s = []
for i in range(100):
    a, b = socket.socketpair(); s.append((a, b)); a.setblocking(False)
    try:
        while True: a.send(b'x' * 100000)
    except OSError: pass
for i in range(2000): call(129, os.getpid(), 0, None)
tell(**r)
""", memory="64M", open_files=1024)
        after = int(re.search(r"SUnreclaim:\s+(\d+)", t._read("/proc/meminfo"))[1])
        one_of(record["status"], ("ok", "memory_limit"), "status")
        check(after - before < 60000, "unreclaimable slab grew by %d KB" % (after - before))


# ---- against the supervisor ----

@test()
def closed_streams_and_sleeping():
    with hostile():
        record, _, _, wall = run("import os, time\nos.closerange(0, 3)\ntime.sleep(30)", wall="500ms")
        ends(record, "timeout", "wall_time")
        check(wall < 3 and record["usage"]["cpu_us"] < 400000, "took %.1f s, %d us of CPU" % (wall, record["usage"]["cpu_us"]))
        process = start("import os, time\nos.closerange(0, 3)\ntime.sleep(2)")
        time.sleep(1.6)
        stat = t._read("/proc/%d/stat" % process.pid).rsplit(")", 1)[1].split()
        spent = (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")
        record = finish(process)
        ends(record, "ok", None)
        check(spent < 0.7, "the command burned %.2f s while it waited for a program with closed streams" % spent)


@test()
def the_working_folder_is_taken_away():
    with hostile():
        for code in ("import os, shutil\nos.unlink('main.py'); os.rmdir('/work')", "import os\nos.chmod('/work', 0)", "import os\nos.rename('/work', '/tmp/w')",
                     "import os\nos.unlink('main.py'); os.symlink('/etc/passwd', 'main.py')", "import os\nos.unlink('main.py'); os.mkfifo('main.py')", "import os\nos.unlink('main.py'); os.mkdir('main.py'); os.mkdir('main.py/x')",
                     "import os\nos.mkdir('d'); os.chdir('d'); os.rmdir('../d'); print(os.path.exists('.'))"):
            for tail in ("", "\nraise SystemExit(1)"):
                record, code_, _, wall = run("try:\n" + "\n".join("    " + line for line in code.splitlines()) + "\nexcept OSError as e: print(e)" + tail)
                one_of(record["status"], ("ok",) if not tail else ("runtime_error",), "status of %r" % (code + tail))
                check(wall < 4, "took %.1f s" % wall)
                for item in record["artifacts"]:
                    check(item["path"] != "main.py" or item["sha256"] is None, "a link's content was taken")


@test(60)
def a_hundred_thousand_links():
    with hostile():
        record, _, _, _ = run("import os\nfor i in range(100000): os.symlink('/etc/passwd', 'l%d' % i)", inodes=150000, out=scratch("o"), memory="1G")
        ends(record, "ok", None)
        check(record["timing"]["collect_us"] < 6000000 and not any(a["exported"] for a in record["artifacts"]), "collecting took %d us" % record["timing"]["collect_us"])


@test()
def exec_loops_and_huge_arguments():
    with hostile():
        record, _, _, _ = run("#!/bin/bash\nexec bash main.sh", "bash", wall="1s")
        ends(record, "timeout", "wall_time")
        value, _ = attack(r"""
open('loop', 'w').write('#!/work/loop\n'); os.chmod('loop', 0o755)
open('bad', 'wb').write(b'\x7fELF' + os.urandom(2000)); os.chmod('bad', 0o755)
h = bytearray(open('/bin/true', 'rb').read(64)); h[56:58] = b'\xff\xff'; open('many', 'wb').write(bytes(h) + b'\0' * 100000); os.chmod('many', 0o755)
r = {}
for p in ('loop', 'bad', 'many', '/dev/null', '/work'):
    pid = os.fork()
    if pid == 0:
        try: os.execv(p, [p])
        except OSError as e: os._exit(e.errno)
    r[p] = os.waitpid(pid, 0)[1] >> 8
r['big'] = tried(os.execv, '/bin/true', ['x' * 100000] * 1000)
tell(**r)
""")
        equal(value["big"], "E2BIG", "a huge argument list")
        check(all(value.values()), "an odd file was run: %r" % value)


@test()
def double_forks_sessions_and_closed_descriptors():
    with hostile():
        record, _, _, wall = run(r"""
import os, time
for i in range(20):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid(); os.closerange(0, 256); os.chdir('/')
            while True: time.sleep(1)
        os._exit(0)
os._exit(0)
""", processes=64)
        ends(record, "ok", None)
        check(wall < 3, "took %.1f s" % wall)


@test()
def orphans_by_the_thousand_are_reaped():
    with hostile():
        record, _, _, _ = run(r"""
import os
for i in range(1500):
    pid = os.fork()
    if pid == 0:
        if os.fork() == 0: os._exit(0)
        os._exit(0)
    os.waitpid(pid, 0)
print('done')
""", processes=32, wall="20s")
        equal((record["status"], out(record)), ("ok", "done\n"), "orphans fill the table of processes: %s" % err(record)[-200:])


@test()
def all_tasks_taken_while_the_run_ends():
    with hostile():
        record, _, _, wall = run("import os, time\nn = 0\ntry:\n    while True:\n        if os.fork() == 0:\n            time.sleep(100)\n        n += 1\nexcept OSError: pass\nprint(n, flush=True)\nos._exit(0)", processes=128)
        ends(record, "ok", None)
        equal((out(record), record["usage"]["processes_peak"]), ("127\n", 128), "tasks")


@test()
def vfork_children_and_uninterruptible_waits():
    source = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>
int main(void) { sigset_t s; sigfillset(&s); sigprocmask(SIG_SETMASK, &s, 0); if (vfork() == 0) { kill(getpid(), SIGSTOP); for (;;) pause(); } return 0; }
"""
    with hostile():
        record, _, _, wall = run(source, "c", wall="600ms")
        ends(record, "timeout", "wall_time")
        check(wall < 4, "took %.1f s" % wall)


@test()
def own_filters_can_only_tighten():
    with hostile():
        value, record = attack(r"""
# allow everything: a second filter of the program's own must not loosen the first
prog = ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 0x7fff0000))
fprog = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', 1, ctypes.addressof(prog)))
r = {'own': call(317, 1, 0, fprog), 'unshare': call(272, 0x10000000), 'mount': call(165, None, b'/', None, 0x20, None), 'alg': call(41, 38, 5, 0)}
# then one that lets the notified call be traced, and one that kills: only the caller suffers
prog2 = ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 0x7ff00000)); f2 = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', 1, ctypes.addressof(prog2)))
pid = os.fork()
if pid == 0: call(317, 1, 0, f2); s = socket.socket(); s.connect(('10.0.0.1', 1)); os._exit(0)
r['status'] = os.waitpid(pid, 0)[1] != 0
tell(**r)
""")
        equal(value, {"own": 0, "unshare": "EPERM", "mount": "EPERM", "alg": "EAFNOSUPPORT", "status": True}, "results")


@test()
def cgroup_files_are_nowhere():
    with hostile():
        value, _ = attack(r"""
found = []
for r, ds, fs in os.walk('/'):
    if r.startswith(('/usr', '/etc/alternatives')): ds[:] = []; continue
    if r.count('/') > 6: ds[:] = []
    found += [os.path.join(r, f) for f in fs if f in ('cgroup.procs', 'release_agent', 'memory.max', 'tasks', 'notify_on_release', 'memory.limit_in_bytes')]
tell(found=found, own=open('/proc/self/cgroup').read(), write=tried(open, '/proc/self/cgroup', 'w'))
""")
        equal((value["found"], value["write"]), ([], "EACCES"), "files of cgroups")


@test()
def locks_and_watches_on_shared_files_are_no_channel_to_others():
    # flock on a file below /usr is seen by every cell: the page says so, or the second run can't observe it.
    left = start("import fcntl, os, time\nf = os.open('/usr/bin/env', 0)\nfcntl.flock(f, fcntl.LOCK_EX)\nprint('locked', flush=True)\ntime.sleep(2)")
    time.sleep(1)
    value, _ = attack("import fcntl\nf = os.open('/usr/bin/env', 0)\ntell(second=tried(fcntl.flock, f, fcntl.LOCK_EX | fcntl.LOCK_NB))")
    record = finish(left)
    host = subprocess.run(["flock", "-n", "/usr/bin/env", "true"], timeout=5).returncode
    equal((out(record), host), ("locked\n", 0), "the first run, and the host's file afterwards")
    if value["second"] != "done":
        text = "".join(t._read(os.path.join(ROOT, name)) for name in ("THREATS.md", "docs/threats.md"))
        if "flock" not in text:
            raise Failure("two cells can signal each other by flock on a file of /usr, and no document says so (catalogue T29)")


@test()
def input_is_hostile_to_the_diagnosis():
    with hostile():
        for text in ("b'\\xff' * 100000", "b'A' * 5000000", "b'Traceback\\n' * 50000", "b'  File \"main.py\", line 99999999999999999999999\\nE: x\\n'", "b'%s%n%d' * 100", "b'\\x00' * 1000 + b'E: \\xf0\\x9f'", "('é' * 700).encode() + b'\\nValueErr\\xc3\\xb6r: ' + 'é'.encode() * 1000"):
            record, code, _, _ = run("import sys\nsys.stderr.buffer.write(%s)\nsys.exit(1)" % text)
            equal((record["status"], code), ("runtime_error", 1), "status with stderr %s" % text)
            check(len(json.dumps(record["error"])) < 5000, "the error has %d bytes" % len(json.dumps(record["error"])))


if __name__ == "__main__":
    sys.exit(main())
