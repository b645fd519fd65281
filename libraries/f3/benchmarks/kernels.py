"""Compare F3's encodings with uncompressed Parquet: `python -m libraries.f3.benchmarks.kernels`.

Each column of the tables is measured alone and in memory. The figures are the processor time to decode its EncUnits
with the native library and with the Wasm module, the size, and the time to encode. Decoding times are ratios to
`pq.read_table` of the same column on one thread. Each figure is the best of several runs. The runs take turns, so that
a busy machine affects all of them alike.

Results are freed at once, so the next run reuses their memory and mostly avoids the cost of fresh pages. That cost is
the same for all formats, so ratios without it are less favourable to F3 than ratios for files. Only Wasm still pays it:
results of 2 MiB and more leave the sandbox together with their pages. `libraries.f3.benchmarks.files` measures files.
"""

from __future__ import annotations

import io

import click
import pyarrow as pa
import pyarrow.parquet as pq

from bench_runner.clock import cpu_ns
from data_generator.catalogue import resolve
from libraries.f3.encodings import unit_codec
from libraries.f3.encodings.nodes import HEADER_BYTES, Tag
from tests.selfbench.costs import least_ns

UNIT_ROWS = 65_536


def _parquet(column: pa.Array) -> io.BytesIO:
    file = io.BytesIO()
    pq.write_table(pa.table({"column": column}), file, compression="none")
    return file


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def measure_column(column: pa.Array, times: int) -> tuple[dict[str, int], dict[str, int], str]:
    """Return nanoseconds by call, bytes by format, and the outermost encoding of the first EncUnit."""
    parts = [column.slice(start, UNIT_ROWS) for start in range(0, len(column), UNIT_ROWS)]
    payloads, rows = [unit_codec.encode(part).payload for part in parts], [len(part) for part in parts]
    module = unit_codec.modules()[unit_codec.CORE]
    native, wasm = unit_codec.Decoder(module), unit_codec.Decoder(module, prefer="wasm")
    file = _parquet(column)
    decoding = {
        "native": lambda: native.decode_into(payloads, column.type, rows),
        "wasm": lambda: wasm.decode_into(payloads, column.type, rows),
        "parquet": lambda: pq.read_table(file, use_threads=False),
    }
    encoding = {
        "encode": lambda: [unit_codec.encode(part) for part in parts],
        "parquet write": lambda: _parquet(column),
    }
    best = least_ns(times, decoding, cpu_ns) | least_ns(2, encoding, cpu_ns)
    nullable = payloads[0][3] & 1
    outermost = "nullable" if nullable else Tag(payloads[0][HEADER_BYTES]).name.lower()
    sizes = {"f3": sum(map(len, payloads)), "parquet": file.getbuffer().nbytes, "arrow": column.nbytes}
    return best, sizes, outermost


@click.command()
@click.argument("datasets", nargs=-1)
@click.option("--rows", default=1_000_000, show_default=True)
@click.option("--times", default=5, show_default=True)
def main(datasets: tuple[str, ...], rows: int, times: int) -> None:
    """Print a line for each column of the DATASETS (eq and core), and one line for all columns of each data set."""
    for name in datasets or ("eq", "core"):
        table = pa.Table.from_batches(resolve(name, {}, rows=rows).batches())
        click.echo(
            f"{name}, {rows} rows: milliseconds, and ratios to uncompressed Parquet (for encoding, to writing it)"
        )
        totals: dict[str, int] = {}
        for label, column in zip(table.column_names, table.columns, strict=True):
            best, sizes, encoding = measure_column(_one_chunk(column), times)
            for key, value in (best | {f"{of} bytes": size for of, size in sizes.items()}).items():
                totals[key] = totals.get(key, 0) + value
            click.echo(f"  {label:22} {column.type!s:14} {encoding:11}" + _line(best, sizes))
        sizes = {of: totals[f"{of} bytes"] for of in ("f3", "parquet", "arrow")}
        click.echo(f"  {'all':22} {'':14} {'':11}" + _line(totals, sizes))


def _line(best: dict[str, int], sizes: dict[str, int]) -> str:
    return (
        f" native {best['native'] / 1e6:7.2f} = 1/{best['parquet'] / best['native']:5.2f}"
        f"  wasm/native {best['wasm'] / best['native']:5.2f}"
        f"  encode {best['encode'] / best['parquet write']:5.2f}"
        f"  size {sizes['f3'] / sizes['parquet']:5.2f} of Parquet, {sizes['f3'] / sizes['arrow']:5.2f} of Arrow"
    )


if __name__ == "__main__":
    main()
