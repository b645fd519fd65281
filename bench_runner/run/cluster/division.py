"""Division of a run between hosts, and the file in the run's folder that states it.

Hosts of different kinds measure everything, so that they can be shown side by side. Hosts of one kind share the groups
of chains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bench_runner.errors import RunError
from bench_runner.plan.chain import Chain, Plan
from bench_runner.run.cluster.messages import Group

if TYPE_CHECKING:
    from bench_runner.run.cluster.hosts import Host

SUMMARY = "cluster.json"
"""The file of the run's folder that states the division."""


class StoredPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The part of one host in a stored run."""

    identity: str
    kind: str
    groups: tuple[Group, ...]
    finished: bool
    reason: str = ""
    """The reason why it is not finished."""


class Division(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is stored about a run over a cluster, so that it can be resumed."""

    run_id: str
    seed: int
    parts: dict[str, StoredPart]
    """By the labels of the hosts, which are the names of their result folders."""


def group_of(chain: Chain) -> Group:
    """Return the group of a chain."""
    return Group(chain.suite, chain.dataset)


def groups_of(plan: Plan) -> dict[Group, float]:
    """Return the groups of a plan with a rough cost: for each chain the product of its rows and operations."""
    found: dict[Group, float] = {}
    for chain in (*plan.chains, *(excluded.chain for excluded in plan.excluded)):
        group = group_of(chain)
        found[group] = found.get(group, 0.0) + plan.datasets[chain.dataset].rows * len(chain.operations)
    return found


def divided(
    costs: Mapping[Group, float], hosts: Sequence[Host], earlier: Mapping[str, StoredPart]
) -> list[tuple[Group, ...]]:
    """Return the groups of each host.

    Each kind of host gets all groups. Hosts keep the groups that they have in `earlier`, the parts of a resumed run.
    Within a kind, the most expensive remaining group goes next to the host that has the least to do. Groups that one
    host has finished are not measured again by another host of its kind.
    """
    finished = {(part.kind, group) for part in earlier.values() if part.finished for group in part.groups}
    found: dict[str, list[Group]] = {}
    for host in hosts:
        part = earlier.get(host.label)
        found[host.label] = [
            group
            for group in (part.groups if part is not None else ())
            if group in costs and ((host.facts.kind, group) not in finished or _has_finished(part))
        ]
    for kind in dict.fromkeys(host.facts.kind for host in hosts):
        members = [host.label for host in hosts if host.facts.kind == kind]
        taken = {group for label in members for group in found[label]}
        taken |= {group for of_kind, group in finished if of_kind == kind}
        for group in sorted((group for group in costs if group not in taken), key=lambda each: -costs[each]):
            least = min(members, key=lambda label: sum(costs[each] for each in found[label]))
            found[least].append(group)
    return [tuple(found[host.label]) for host in hosts]


def _has_finished(part: StoredPart | None) -> bool:
    return part is not None and part.finished


def take_labels(hosts: Sequence[Host], earlier: Mapping[str, StoredPart]) -> None:
    """Give each host the label that it has in the earlier part of a resumed run."""
    by_identity = {part.identity: label for label, part in earlier.items()}
    for host in hosts:
        host.label = by_identity.get(host.facts.identity, host.label)


def store(folder: Path, division: Division) -> None:
    """Write the division into the run's folder."""
    making = folder / f"{SUMMARY}.making"
    making.write_bytes(msgspec.json.format(msgspec.json.encode(division), indent=1))
    making.replace(folder / SUMMARY)


def stored(folder: Path) -> Division:
    """Return the division of a run over a cluster. Raises RunError if the folder holds none."""
    try:
        return msgspec.json.decode((folder / SUMMARY).read_bytes(), type=Division)
    except (OSError, msgspec.DecodeError):
        raise RunError(
            f"{folder} holds no run over a cluster, so it cannot be resumed on one.",
            "Omit `resume`, or omit `cluster`.",
            parameter="resume",
            given=str(folder),
        ) from None


def is_division(folder: Path) -> bool:
    """Return whether the folder holds a run over a cluster."""
    return (folder / SUMMARY).exists()


def host_folders(folder: Path) -> list[Path]:
    """Return the result folders of the hosts that have measured something. Raises RunError as `stored`."""
    return [folder / label for label in stored(folder).parts if (folder / label / "run.json").exists()]


def incomplete(division: Division) -> dict[str, str]:
    """Return the hosts whose groups no host of their kind has finished, with the reason."""
    finished = {(part.kind, group) for part in division.parts.values() if part.finished for group in part.groups}
    return {
        label: part.reason or "not finished"
        for label, part in division.parts.items()
        if any((part.kind, group) not in finished for group in part.groups)
    }
