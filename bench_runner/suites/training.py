"""Mini-batches of a training loop: of vectors in every format, and of images in every storage.

Two suites, because one is about formats and the other about storages; who runs the first runs both.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from adapters.contract import Adapter
from bench_runner import data_kinds
from bench_runner.suites.rules import ACCESS, Spelled, Storages
from bench_runner.suites.suite import QUICK_IMAGES, Quick, Suite

BATCHES = (
    "batches[rows=64,order=shuffled]",
    "batches[rows=64,order=blocks]",
    "batches[rows=64,order=stored]",
)
ON_REQUEST = ("batches[rows=64,order=shuffled,workers=2]", "batches[rows=1024,order=shuffled]")


class WithImages(Suite):
    """One that puts its question to images too."""

    together = ("training-images",)


@dataclass(frozen=True, kw_only=True)
class OwnArrays(Storages):
    """Storages that give arrays of their own: a batch that is handed on must not lie over the next one's memory."""

    def settings(self, engine: type[Adapter]) -> Iterable[Mapping[str, str]]:
        """The plain ones alone."""
        return (engine.plain,)


TABLES = WithImages(
    name="training",
    question="Which format hands out rows in shuffled mini-batches fastest, and how shuffled are they?",
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
            "avro, f3": "have no type for lists of one length",
            "orc": "gives vectors back as lists of any length",
            "csv, excel, json, xml": "hold no vectors but as text",
            "hdf5-fixed, hdf5-table": "hold no vectors in pandas' layout",
            "pickle": "is read whole for each row",
        },
    ),
    quick=Quick(rows=3_500, reason="3,500 vectors, and 5,000 images: as many as have no pilot round"),
    reasons={
        "25,000 vectors": "102 MB, which is handed out twice and kept until every batch is verified",
        "batches of 64": "what many train with; other sizes can be spelled",
        "three orders": "a full shuffle, blocks of neighbours shuffled in a window, and none: an order that is not "
        "shuffled is no fast loader, so they are never ranked together",
        "row groups, batches and units": "the settings that decide what a row costs",
        "no workers": "a plain loop tells formats apart; two processes of torch's DataLoader are there on request",
    },
)

IMAGES = Suite(
    name="training-images",
    question="Which storage hands out images in shuffled mini-batches fastest, and how shuffled are they?",
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
        "the storages": "all that training loops read from; Base64 and WebP by --formats",
        "order=buffer": "a shuffle buffer of 1,000 before a stream is how WebDataset is used: the measure beside it "
        "says how far from a shuffle that is",
        "arrays of their own": "a batch that is handed on must not lie over the next one's memory",
        "imagenet-like": "larger images of differing shapes, some grey",
    },
)
