"""Makes a Python interpreter a warm host.

The host is started as `python3 main.py` with this folder on PYTHONPATH, so this file runs at the end of the interpreter's start, before
a program would be read. It imports what the runtime's manifest names and waits for orders. Each child stands in a cell of its own when
serve() returns in it; it does here what the interpreter would do next, and runs main.py without a frame of ours below it.
"""


def _host():
    import gc
    import os
    import sys

    folder = os.path.dirname(__file__)
    import _hotcell_warm as warm

    # As if this folder had never been searched: the distribution's own sitecustomize comes now, at its usual time.
    for name in ("sitecustomize", "_hotcell_warm"):
        sys.modules.pop(name, None)
    sys.path[:] = [entry for entry in sys.path if entry != folder]
    sys.path_importer_cache.pop(folder, None)
    modules = os.environ.pop("HOTCELL_WARM_MODULES", "").split()
    os.environ.pop("PYTHONPATH", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError:
        pass
    before = dict(os.environ)
    for name in modules:
        try:
            __import__(name)
        except ImportError as error:
            sys.stderr.write(f"{name}: {error}\n")
    import atexit  # noqa: F401
    import builtins
    import importlib.machinery

    os.environ.clear()
    os.environ.update(before)
    ours = frozenset(sys.modules)
    gc.collect()
    gc.freeze()
    warm.up()
    warm.serve()

    # A child, alone in its cell, waiting.
    _reseed(sys.modules, os.urandom)
    _rehearse()
    arguments, environment = warm.begin()
    _take_environment(os.environ, environment)
    program = os.path.join(os.getcwd(), arguments[1])
    sys.argv[1:] = arguments[2:]
    sys.orig_argv[:] = arguments
    sys.path.insert(0, os.path.dirname(program))
    loader = importlib.machinery.SourceFileLoader("__main__", program)
    sys.modules["__main__"] = _main_module(type(sys), loader, builtins, program)
    warm.run(program, ours)


def _main_module(module_type, loader, builtins, program):
    """A module that was made after the host's freeze: the collector has to see it when the program ends."""
    module = module_type("__main__")
    module.__loader__ = loader
    module.__annotations__ = {}
    module.__builtins__ = builtins
    module.__file__ = program
    module.__cached__ = None
    return module


def _take_environment(present, items):
    wanted = dict(item.split("=", 1) for item in items)
    for name in set(present) - set(wanted):
        del present[name]
    for name, value in wanted.items():
        if present.get(name) != value:
            present[name] = value


def _reseed(modules, urandom):
    """Random state that the host's children would otherwise share. `random` itself has a hook for forks, OpenSSL notices them."""
    if "numpy.random" in modules:
        modules["numpy.random"].seed(int.from_bytes(urandom(4), "little"))
    if "tempfile" in modules:
        modules["tempfile"]._name_sequence = None
        modules["tempfile"].tempdir = None
    if "uuid" in modules:
        modules["uuid"]._node = None
        modules["uuid"]._last_timestamp = None
    if "multiprocessing.process" in modules:
        process = modules["multiprocessing.process"]
        process.current_process().authkey = urandom(32)


def _rehearse():
    """Touches the pages that every program is about to touch, while nobody waits for it."""
    import io

    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    program = (
        "import math, sys, re, os\n"
        "class A:\n    def __init__(self, a): self.a = a\n"
        "def f(n):\n    return 1 if n < 2 else n * f(n - 1)\n"
        "x = {i: [str(i), i / 3] for i in range(9)}\n"
        "try:\n    f(9) + x[99]\nexcept KeyError as error:\n    str(error)\n"
        "print(f(20), A(3).a, x, sum(i * i for i in range(9)), '%.3f' % math.pi, sorted(x), file=out)\n"
    )
    exec(compile(program.encode(), "rehearsal", "exec"), {"out": out})
    out.flush()


_host()
