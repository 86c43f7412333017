<?php mt_srand((int) (getenv("HOTCELL_SEED") ?: "0"));
