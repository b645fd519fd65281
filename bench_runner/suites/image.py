"""The suite `image`, which compares image storages in saving and reading all images."""

from bench_runner import data_kinds
from bench_runner.suites.rules import Storages
from bench_runner.suites.suite import QUICK_IMAGES, Quick, Suite

SUITE = Suite(
    name="image",
    question="Which storage saves and reads images fastest and smallest?",
    operations=("save", "read"),
    datasets=("cifar-like",),
    on_request=("imagenet-like", "cifar10", "imagenet100", "images"),
    variants=Storages(tracks=("plain",), names=("png", "base64", "image-hdf5", "image-parquet", "sqlite", "lmdb")),
    kind=data_kinds.IMAGES,
    quick=Quick(rows=QUICK_IMAGES, reason="5,000 images"),
    reasons={
        "the six storages": "the thesis's; others by --formats",
        "cifar-like": "50,000 small images with the shape and the entropy of CIFAR-10, made anywhere",
        "imagenet-like": "larger images of different shapes, some grey",
        "cifar10, imagenet100, images": "the thesis's data sets; your own by --data",
        "arrays=views": "slices of one block are another kind of object than separate arrays: never ranked together",
    },
)
