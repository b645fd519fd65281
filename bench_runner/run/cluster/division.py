"""Division of a run between hosts, and the file in the run's folder that states it.

Hosts of different kinds measure everything, so that they can be shown side by side. Hosts of one kind share the groups
of chains.
"""

from __future__ import annotations

import itertools
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
    taken = finished_groups(earlier)
    found: dict[str, list[Group]] = {}
    for host in hosts:
        part = earlier.get(host.label)
        own = [group for group in part.groups if group in costs] if part is not None else []
        if part is None or not part.finished:
            own = [group for group in own if (host.facts.kind, group) not in taken]
        found[host.label] = own
        taken |= {(host.facts.kind, group) for group in own}
    for kind in dict.fromkeys(host.facts.kind for host in hosts):
        members = [host.label for host in hosts if host.facts.kind == kind]
        for group in sorted((each for each in costs if (kind, each) not in taken), key=lambda each: -costs[each]):
            least = min(members, key=lambda label: sum(costs[each] for each in found[label]))
            found[least].append(group)
    return [tuple(found[host.label]) for host in hosts]


def finished_groups(parts: Mapping[str, StoredPart]) -> set[tuple[str, Group]]:
    """Return what has been measured completely, as pairs of a kind of host and a group."""
    return {(part.kind, group) for part in parts.values() if part.finished for group in part.groups}


def label_hosts(hosts: Sequence[Host], earlier: Mapping[str, StoredPart]) -> None:
    """Give each host a label that no other has: that of the earlier part of a resumed run, if its identity is known,
    or else its name, with a number if the name is taken."""
    by_identity = {part.identity: label for label, part in earlier.items()}
    taken = {by_identity[host.facts.identity] for host in hosts if host.facts.identity in by_identity}
    for host in hosts:
        if host.facts.identity in by_identity:
            host.label = by_identity[host.facts.identity]
            continue
        numbered = (f"{host.label}-{number}" for number in itertools.count(2))
        host.label = next(label for label in itertools.chain([host.label], numbered) if label not in taken)
        taken.add(host.label)


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
    finished = finished_groups(division.parts)
    return {
        label: part.reason or "not finished"
        for label, part in division.parts.items()
        if any((part.kind, group) not in finished for group in part.groups)
    }
