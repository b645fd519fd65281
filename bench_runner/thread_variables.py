"""Environment variables that limit libraries to one thread."""

ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "NUMEXPR_MAX_THREADS",
        "BLOSC_NTHREADS",
        "POLARS_MAX_THREADS",
        "RAYON_NUM_THREADS",
        "TOKIO_WORKER_THREADS",
        "LANCE_CPU_THREADS",
        "LANCE_IO_THREADS",
    ),
    "1",
)
"""Name and value of each variable. Set these variables before a library is loaded, because polars, for example, ignores
later changes. Other libraries read the variables only when their first call starts threads."""
