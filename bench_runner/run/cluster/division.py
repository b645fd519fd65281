"""Divide a run between hosts, and store the division in a file of the run's folder.

Hosts are of one kind if their processor, cores and memory are equal. Each kind measures everything, so that kinds can
be shown side by side. Hosts of the same kind share the work: each measures some groups. A group has all chains of one
suite on one data set.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bench_runner.errors import RunError
from bench_runner.run.cluster.messages import Group

if TYPE_CHECKING:
    # The plan's modules load pandas and pyarrow, which reports of stored runs do not need.
    from bench_runner.plan.chain import Chain, Plan
    from bench_runner.run.cluster.hosts import Host

SUMMARY = "cluster.json"
"""Name of the file in the run's folder that stores the division."""


class StoredPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is stored about the part of one host."""

    identity: str
    kind: str
    groups: tuple[Group, ...]
    finished: bool
    reason: str = ""
    """The reason why the part is not finished, or ''."""


class Division(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The stored information about a run over a cluster. It is needed to resume the run."""

    run_id: str
    seed: int
    parts: dict[str, StoredPart]
    """The part of each host, by the host's label, which is also the name of the host's result folder."""


def group_of(chain: Chain) -> Group:
    """Return the group of a chain: its suite and data set."""
    return Group(chain.suite, chain.dataset)


def groups_of(plan: Plan) -> dict[Group, float]:
    """Return a rough cost for each group of a plan. The cost of a chain is its number of rows times its number of
    operations. The cost of a group is the sum over the group's chains."""
    found: dict[Group, float] = {}
    for chain in (*plan.chains, *(excluded.chain for excluded in plan.excluded)):
        group = group_of(chain)
        found[group] = found.get(group, 0.0) + plan.datasets[chain.dataset].rows * len(chain.operations)
    return found


def divided(
    costs: Mapping[Group, float], hosts: Sequence[Host], earlier: Mapping[str, StoredPart]
) -> list[tuple[Group, ...]]:
    """Return the groups of each host, in the order of `hosts`.

    The hosts of each kind get all groups together. In a resumed run, `earlier` has the parts from before, and each host
    keeps its groups. A group that one host has finished is not measured by another host of the same kind. The remaining
    groups are distributed by `costs`, the most expensive first. Each group goes to the host whose groups cost least so
    far.
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
    """Return the groups that were measured completely, as pairs (kind of host, group)."""
    return {(part.kind, group) for part in parts.values() if part.finished for group in part.groups}


def label_hosts(hosts: Sequence[Host], earlier: Mapping[str, StoredPart]) -> None:
    """Set a unique label for each host. In a resumed run, a host with a known identity gets the label from before. Any
    other host keeps its name as label, with a number appended if the name is taken."""
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
    """Read the division of the run in `folder`. Raises RunError if the folder has no run over a cluster."""
    try:
        return msgspec.json.decode((folder / SUMMARY).read_bytes(), type=Division)
    except (OSError, msgspec.DecodeError):
        raise RunError(
            f"{folder} holds no run over a cluster that `cluster` and `resume` could continue.",
            "To continue a run of this machine, omit `cluster`. To start a new run, omit `resume`.",
            parameter="resume",
            given=str(folder),
        ) from None


def is_division(folder: Path) -> bool:
    """Return whether the folder has a run over a cluster."""
    return (folder / SUMMARY).exists()


def host_folders(folder: Path) -> list[Path]:
    """Return the result folders of the hosts that have measured something. Raises RunError if `folder` has no run over
    a cluster."""
    return [folder / label for label in stored(folder).parts if (folder / label / "run.json").exists()]


def incomplete(division: Division) -> dict[str, str]:
    """Return the hosts with groups that are not finished by any host of the same kind. The dict maps the label of such
    a host to the reason."""
    finished = finished_groups(division.parts)
    return {
        label: part.reason or "not finished"
        for label, part in division.parts.items()
        if any((part.kind, group) not in finished for group in part.groups)
    }
