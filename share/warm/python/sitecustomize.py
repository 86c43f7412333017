"""Makes a Python interpreter a warm host.

The host is started as `python3 main.py` with this folder on PYTHONPATH, so this file runs at the end of the interpreter's start, before
the program would be read. It imports what the runtime's manifest names and waits; each child returns from here into the very start that
it was taken out of, and so finds, reads and runs its own main.py exactly as a cold interpreter does. Nothing of hotcell is in its frames.
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
    os.environ.clear()
    os.environ.update(before)
    present = frozenset(sys.modules)
    _prepare_reseeding(sys.modules)
    gc.collect()
    gc.freeze()
    warm.up()
    warm.serve()

    # A child, alone in its cell, waiting.
    _reseed(sys.modules, os.urandom)
    arguments, environment = warm.begin()
    sys.argv[1:] = arguments[2:]
    sys.orig_argv[:] = arguments
    fresh = dict(item.split("=", 1) for item in environment)
    for name in set(os.environ) - set(fresh):
        del os.environ[name]
    for name, value in fresh.items():
        if os.environ.get(name) != value:
            os.environ[name] = value
    _leave_quickly(sys.modules, present)
    warm.go()


def _prepare_reseeding(modules):
    """Everything lazy that the children need is done once, in the host."""
    if "numpy.random" in modules:
        modules["numpy.random"].seed()


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


def _leave_quickly(modules, present):
    """The host's modules are not taken apart when a child ends: that would copy every page they lie on. What the program made itself
    ends as always."""
    import atexit

    kept = []

    def keep():
        for name in present:
            if name in modules and name not in ("builtins", "sys", "__main__"):
                kept.append(modules.pop(name))

    atexit.register(keep)


_host()
del _host, _prepare_reseeding, _reseed, _leave_quickly
