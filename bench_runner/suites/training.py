"""The suites `training` and `training-images`, which measure reading mini-batches as a training loop does.

`training` compares table formats, with vectors as data. `training-images` compares image storages. A run of `training`
measures both suites.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from adapters.contract import Adapter
from bench_runner import data_kinds
from bench_runner.suites.rules import ACCESS, Spelled, Storages
from bench_runner.suites.suite import QUICK_IMAGES, Quick, Suite

BATCHES = ("batches[rows=64,order=shuffled]", "batches[rows=64,order=blocks]", "batches[rows=64,order=stored]")
ON_REQUEST = ("batches[rows=64,order=shuffled,workers=2]", "batches[rows=1024,order=shuffled]")


class WithImages(Suite):
    """A suite that is measured together with `training-images`."""

    together = ("training-images",)


@dataclass(frozen=True, kw_only=True)
class OwnArrays(Storages):
    """Chooses image storages with settings that return separate arrays, and no others, because a returned batch must
    not share memory with the next batch."""

    def settings(self, engine: type[Adapter]) -> Iterable[Mapping[str, str]]:
        """Return only the plain settings of a storage."""
        return (engine.plain,)


TABLES = WithImages(
    name="training",
    question="Which format reads rows in shuffled mini-batches fastest, and how shuffled are they?",
    operations=("save", "read", *BATCHES),
    operations_on_request=ON_REQUEST,
    datasets=("vectors",),
    on_request=("texts", "blobs", "events", "core", "eq", "table"),
    rows=25_000,
    target="arrow",
    variants=Spelled(
        tracks=(ACCESS,),
        spelled=(
            "feather[engine=pyarrow,codec=none]",
            "feather[engine=pyarrow,codec=none,batch_rows=64]",
            "lance[engine=pylance]",
            "parquet[engine=pyarrow,codec=none]",
            "parquet[engine=pyarrow,codec=none,row_group_rows=1024]",
            "parquet[engine=pyarrow,codec=none,row_group_rows=64]",
            "vortex[engine=vortex-data]",
        ),
        left_out={
            "avro, f3": "have no type for lists of a fixed length",
            "orc": "returns vectors as lists of any length",
            "csv, excel, json, xml": "can store vectors only as text",
            "hdf5-fixed, hdf5-table": "cannot store vectors in pandas' layout",
            "pickle": "is read whole for each row",
        },
    ),
    quick=Quick(rows=3_500, reason="3,500 vectors and 5,000 images: the largest numbers without a pilot round"),
    reasons={
        "25,000 vectors": "102 MB, which are read twice, and kept until every batch is verified",
        "batches of 64": "a common size; others can be spelled",
        "three orders": "a full shuffle, blocks of neighbours shuffled in a window, and none: an order without a "
        "shuffle is not a fast loader, so they are never ranked together",
        "row groups, batches and units": "these settings decide the cost of a row",
        "no workers": "a plain loop shows differences of formats; two processes of torch's DataLoader on request",
    },
)

IMAGES = Suite(
    name="training-images",
    question="Which storage reads images in shuffled mini-batches fastest, and how shuffled are they?",
    operations=("save", "read", *BATCHES, "batches[rows=64,order=buffer]"),
    operations_on_request=ON_REQUEST,
    datasets=("cifar-like",),
    on_request=("imagenet-like", "cifar10", "imagenet100", "images"),
    variants=OwnArrays(
        tracks=("plain",),
        names=("jpeg", "png", "image-hdf5", "image-lance", "image-parquet", "lmdb", "sqlite", "webdataset"),
    ),
    kind=data_kinds.IMAGES,
    quick=Quick(rows=QUICK_IMAGES, reason="5,000 images"),
    reasons={
        "the storages": "all that training loops use; Base64 and WebP by --formats",
        "order=buffer": "WebDataset is used with a shuffle buffer of 1,000 before a stream; the measure next to it "
        "shows how far from a full shuffle that is",
        "separate arrays": "a batch that was handed out must not share memory with the next one",
        "imagenet-like": "larger images of different shapes, some grey",
    },
)
