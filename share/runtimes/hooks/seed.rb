# `hotcell run --deterministic`: rand, shuffle and sample of the default generator.
srand(Integer(ENV.fetch("HOTCELL_SEED", "0")))
