# What `hotcell run --deterministic` fixes inside Python, without touching the program: found through PYTHONPATH when the
# interpreter starts. Nothing is imported for it: a module is seeded when the program imports it itself.
#
# Not fixed, on purpose: os.urandom, secrets, uuid4, random.SystemRandom. What asks for unpredictable bytes gets them.
import os
import sys

_SEED = int(os.environ.get("HOTCELL_SEED", "0"))


def _seed_random(module):
    base = module.Random.seed
    count = [0]

    def seed(self, a=None, version=2):
        # Random() and seed() without a value: the next of a fixed row, never the same twice.
        if a is None:
            a = _SEED * 1000003 + count[0]
            count[0] += 1
        return base(self, a, version)

    seed.__doc__ = base.__doc__
    module.Random.seed = seed
    module.seed = module._inst.seed
    module._inst.seed(_SEED)


def _seed_numpy(module):
    module.seed(_SEED)
    bits = sys.modules.get("numpy.random.bit_generator")
    if bits is None or not hasattr(bits, "randbits"):
        return
    import random

    source = random.Random(_SEED)
    bits.randbits = source.getrandbits  # entropy of default_rng() and SeedSequence() without a value


_AFTER_IMPORT = {"random": _seed_random, "numpy.random": _seed_numpy}


class _Loader:
    """The module's own loader, and what follows when it is done."""

    def __init__(self, inner, after):
        self._inner, self._after = inner, after

    def create_module(self, spec):
        return self._inner.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._inner
        self._inner.exec_module(module)
        self._after(module)


class _Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        after = _AFTER_IMPORT.pop(name, None)
        if after is None:
            return None
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target) if finder is not cls and hasattr(finder, "find_spec") else None
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, after)
                return spec
        return None


sys.meta_path.insert(0, _Finder)
for _name in list(_AFTER_IMPORT):
    if _name in sys.modules:
        _AFTER_IMPORT.pop(_name)(sys.modules[_name])

os.cpu_count = lambda: 1
# The program starts as without us: no folder of ours on its path, no variable of ours.
_folder = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [_entry for _entry in sys.path if _entry != _folder]
