"""Add variants for engines (libraries) that refuse pandas' nullable dtypes Int64 and boolean. These variants store such
columns with numpy's dtypes (nulls=numpy), and are not ranked (rule 8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from adapters.spelling import parse, spell
from bench_runner.errors import Failure
from bench_runner.plan.chain import Chain, Excluded, Plan
from formats.registry import FORMATS


def with_null_variants(plan: Plan, columns_with_nulls: Mapping[str, frozenset[str]]) -> Plan:
    """Return the plan, with a variant with nulls=numpy in place of each variant whose engine refuses Int64 and boolean
    columns. The refused variant is moved to `excluded` (rule 8).

    `columns_with_nulls` has, for each data set, the names of the columns with missing values. These columns are known
    only after the data have been generated.
    """
    chains: list[Chain] = []
    excluded = list(plan.excluded)
    for chain in plan.chains:
        if not chain.target.data_kind.has_columns:
            chains.append(chain)
            continue
        engine, _ = FORMATS.engine(chain.spelled)
        schema = plan.datasets[chain.dataset].schema
        masked = [
            column.name
            for column in schema
            if column.name in columns_with_nulls[chain.dataset]
            and (pa.types.is_integer(column.type) or pa.types.is_boolean(column.type))
        ]
        if engine.takes_masked or not masked:
            chains.append(chain)
            continue
        reason = (
            f"{engine.engine} refuses the dtypes Int64 and boolean, which {len(masked)} columns need "
            f"({', '.join(masked[:3])}); measured with nulls=numpy"
        )
        excluded.append(Excluded(chain, Failure(kind="refused", reason=reason)))
        chains.append(with_numpy_nulls(chain))
    return replace(plan, chains=tuple(chains), excluded=tuple(excluded))


def with_numpy_nulls(chain: Chain) -> Chain:
    """Return the chain with nulls=numpy, for a chain whose engine refuses the dtypes Int64 and boolean."""
    name, settings = parse(chain.variant)
    variant = spell(name, {**settings, "nulls": "numpy"})
    return replace(chain, variant=variant, target=replace(chain.target, nulls="numpy"))
