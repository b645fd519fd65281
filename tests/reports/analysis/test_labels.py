"""Labels are the shortest names that distinguish variants."""

from __future__ import annotations

from bench_runner.variants import variant_of
from reports.analysis.labels import short_labels

NEAR = "parquet[engine=near-storage,codec=snappy,reader="


def test_near_storage_paths_alone_have_their_own_names() -> None:
    variants = (f"{NEAR}ranges]", f"{NEAR}parquet,footers=parsed]", f"{NEAR}fetch]", "raw-io[engine=readinto]")
    assert short_labels(map(variant_of, variants)) == dict(
        zip(variants, ("V2 (byte ranges)", "V1 (rows), footers parsed", "fetch all", "raw-io"), strict=True)
    )


def test_next_to_other_formats_they_are_labelled_as_parquet() -> None:
    variants = (f"{NEAR}ranges]", "parquet[engine=pyarrow,codec=snappy]", "orc[engine=pyarrow,codec=none]")
    assert short_labels(map(variant_of, variants)) == {
        variants[0]: "parquet[near-storage,reader=ranges]",
        variants[1]: "parquet[pyarrow,codec=snappy]",
        variants[2]: "orc",
    }
