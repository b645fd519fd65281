"""Make environment variables with numbers of threads readable for NumExpr, which pandas imports.

`import pandas` fails if NumExpr cannot parse these variables. Call `make_readable` before pandas is imported. Therefore
this module imports nothing that imports pandas.
"""

from __future__ import annotations

import os
import re
from collections.abc import MutableMapping

from format_bench.errors import RequestError

FOR_OPENMP = "OMP_NUM_THREADS"
FOR_NUMEXPR = "NUMEXPR_NUM_THREADS"
READ_BY_NUMEXPR = ("NUMEXPR_MAX_THREADS", FOR_NUMEXPR, FOR_OPENMP)


def make_readable(environment: MutableMapping[str, str] = os.environ) -> None:
    """Set NUMEXPR_NUM_THREADS to the first number if OMP_NUM_THREADS is a list such as 4,2.

    OpenMP allows such lists, with one number for each level of nesting, but NumExpr does not. Raises RequestError if
    one of the variables has any other value that is not a whole number.
    """
    levels = environment.get(FOR_OPENMP, "")
    if re.fullmatch(r"\s*\d+\s*(,\s*\d+\s*)+", levels) and not environment.get(FOR_NUMEXPR):
        environment[FOR_NUMEXPR] = levels.partition(",")[0].strip()
    # NumExpr ignores OpenMP's variable if its own is set.
    others = READ_BY_NUMEXPR[:-1] if environment.get(FOR_NUMEXPR) else READ_BY_NUMEXPR
    for name in others:
        value = environment.get(name, "")
        if value and not re.fullmatch(r"\s*[+-]?\d+\s*", value):
            raise RequestError(
                f"The environment variable {name} must be a whole number (got {value!r}), or importing pandas fails.",
                f"Set it to a number of threads, or unset it: env -u {name} ...",
            )
