"""What a sample is taken under. Plans ask for conditions, workers keep them, records hold them."""

from __future__ import annotations

import msgspec

from bench_runner.data_kinds import kind_of_target


class Conditions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Samples with different conditions are never mixed in one figure.

    cache: warm | cold | cold (guest), which is cold on a virtual machine; threads: default | 1;
    target: pandas | arrow (what the user holds and wants back) | images | documents;
    track: plain | default | equal | codecs | choice | access | spelled; strings: str | object (the pandas dtype of
    text); work_dir: the label of the working folder ('default', or the path as the user gave it).
    network: what lies between who asks and the stored copy: '' (nothing, one process) | loopback | 1000mbit (loopback
    behind a proxy of ours that lets so much through); service: '' where there is none | warm (it has answered before)
    | fresh (it was started for this).
    """

    cache: str = "warm"
    threads: str = "default"
    target: str = "pandas"
    track: str = "plain"
    strings: str = "str"
    work_dir: str = "default"
    network: str = ""
    service: str = ""

    def __post_init__(self) -> None:
        """Raises ValueError for a target that no kind of data has."""
        kind_of_target(self.target)
