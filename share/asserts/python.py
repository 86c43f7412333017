# Runs a program's module body, then test code in its name space. Started in a cell of its own, with the program beside it.
#
# Nothing of the tests is in this cell while the body runs: they come over standard input, together with a number that nobody can guess, only
# after this script has said that the body returned. The verdict is worth something only with that number in front of it. A body that exits,
# crashes or never returns leaves no verdict. What the body prints goes nowhere. It can still rewrite this interpreter from within; against
# that only a checker in a cell of its own helps.


def _main():
    import os
    import sys

    compile_, exec_, bytes_, str_, type_, len_ = compile, exec, bytes, str, type, len
    base_exception, dup, dup2, read, write, leave = BaseException, os.dup, os.dup2, os.read, os.write, os._exit
    tests_in, verdict_out, nothing = dup(0), dup(1), os.open(os.devnull, os.O_RDWR)
    dup2(nothing, 0)
    dup2(nothing, 1)
    dup2(nothing, 2)
    name = sys.argv[1]
    module = type_(sys)("__main__")
    module.__file__ = os.path.join(os.getcwd(), name)
    module.__builtins__ = __builtins__
    with open(name, "rb") as file:
        source = file.read()
    sys.argv[:] = [name]
    sys.modules["__main__"] = module
    space = module.__dict__
    try:
        exec_(compile_(source, module.__file__, "exec", 0, True), space)
    except base_exception as error:
        write(verdict_out, ("ended early: %s\n" % type_(error).__name__).encode())
        leave(1)
    write(verdict_out, b"body returned\n")
    sent = b""
    while True:
        piece = read(tests_in, 1 << 16)
        if not piece:
            break
        sent += piece
    nonce, _, tests = sent.partition(b"\n")
    try:
        exec_(compile_(tests, "tests", "exec", 0, True), space)
        verdict = b" pass"
    except base_exception as error:
        try:
            text = "%s: %s" % (type_(error).__name__, error)
        except base_exception:
            text = type_(error).__name__
        trace, line = error.__traceback__, 0
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == "tests":
                line = trace.tb_lineno
            trace = trace.tb_next
        verdict = (" fail line %d: %s" % (line, text[:200].replace("\n", " "))).encode("utf-8", "replace")
    write(verdict_out, nonce + verdict + b"\n")
    leave(0)


_main()
