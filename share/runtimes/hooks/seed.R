# `hotcell run --deterministic`: the generator of R itself.
set.seed(as.integer(Sys.getenv("HOTCELL_SEED", "0")))
