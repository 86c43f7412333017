# Leaves "results" that point at files of the host, for a collector that follows links.
import os
import sys

os.symlink("/etc/passwd", "report.txt")
for number, path in enumerate(sys.argv[1:]):
    os.symlink(path, f"secret-{number}.txt")
os.symlink("/", "everything")
with open("honest.txt", "w") as file:
    file.write("a plain file beside them\n")
