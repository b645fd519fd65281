"""The suites, each of which declares what is measured to answer one question. To add a suite, write a module for it and
add the module here."""

from __future__ import annotations

from collections.abc import Mapping

from bench_runner.suites import (
    access,
    choice,
    compression,
    documents,
    encodings,
    engines,
    image,
    near_storage,
    parallel,
    sweep,
    tabular,
    training,
    wide,
    writing,
)
from bench_runner.suites.rules import CHOICE, CODECS, Asked, Choice, Rule
from bench_runner.suites.suite import Quick, Suite

__all__ = ["CHOICE", "CODECS", "SUITES", "Asked", "Choice", "Quick", "Rule", "Suite"]

SUITES: Mapping[str, Suite] = {
    suite.name: suite
    for suite in (
        *(module.SUITE for module in (tabular, compression, image, engines)),
        *(module.SUITE for module in (access, wide, encodings, writing, sweep, choice)),
        near_storage.SUITE,
        parallel.SUITE,
        documents.SUITE,
        training.TABLES,
        training.IMAGES,
    )
}
