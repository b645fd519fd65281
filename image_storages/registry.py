"""The list of image storages: name, module, and the extra of this project that installs the required libraries.

The names differ from the names of table formats, because one run may measure both.
"""

from adapters.contract import ImageStorage
from adapters.registry import Entry, Registry

STORAGES: Registry[ImageStorage] = Registry(
    {
        "base64": Entry("image_storages.base64:ENGINES"),
        "image-hdf5": Entry("image_storages.hdf5:ENGINES", "hdf5"),
        "image-lance": Entry("image_storages.lance:ENGINES", "lance"),
        "image-parquet": Entry("image_storages.parquet:ENGINES"),
        "image-raw-io": Entry("image_storages.raw_io:ENGINES"),
        "jpeg": Entry("image_storages.image_files:JPEG", "images"),
        "lmdb": Entry("image_storages.lmdb:ENGINES", "images"),
        "png": Entry("image_storages.image_files:PNG", "images"),
        "sqlite": Entry("image_storages.sqlite:ENGINES"),
        "webdataset": Entry("image_storages.webdataset:ENGINES", "images"),
        "webp": Entry("image_storages.image_files:WEBP", "images"),
    },
    entry_point_group="format_bench.image_storages",
    noun="storage",
)
