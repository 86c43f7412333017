# One gibibyte of output.
import sys

line = "A" * 65535 + "\n"
for _ in range(16384):
    sys.stdout.write(line)
