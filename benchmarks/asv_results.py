"""Name asv's result files by library versions: `python -m benchmarks.asv_results FOLDER MACHINE COMMIT`.

asv names a result file by commit and environment, so a run of the same commit with newer libraries would overwrite the
file. With a digest of the library versions in its name, each set of versions gets its own file and its own line in
asv's graphs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from bench_runner.machine.environment import library_versions

PARAMETER = "libraries"
"""Name that asv's pages show for the digest."""


def name_by_versions(results: Path, commit: str, versions: Mapping[str, str]) -> None:
    """Add the digest of `versions` to the names of the files of a commit in `results` that have no digest yet. Files of
    other commits stay as they are, because the versions that they were measured with are unknown.

    `results` is the folder in which asv stores results of one machine. The digest is also added to the results as a
    parameter, and the versions as requirements. If there is an earlier file with the same commit and versions, its
    results of benchmarks that were not measured again are kept. Raises OSError, and ValueError or KeyError if a file is
    not in asv's format.
    """
    digest = sha256(json.dumps(versions, sort_keys=True).encode()).hexdigest()[:8]
    for path in sorted(results.glob("*.json")):
        content = {} if path.name == "machine.json" else json.loads(path.read_text())
        if not content or PARAMETER in content["params"] or content["commit_hash"] != commit:
            continue
        content["params"][PARAMETER] = digest
        content["requirements"] = dict(versions)
        content["env_name"] = f"{content['env_name']}-{digest}"
        named = path.with_name(f"{path.stem}-{digest}.json")
        earlier = json.loads(named.read_text()) if named.exists() else content
        # The meaning of a result's values is in the columns, which another version of asv may have changed.
        if earlier["result_columns"] == content["result_columns"]:
            content["results"] = {**earlier["results"], **content["results"]}
        # Write to another name first: asv and this function read every file that ends with .json, even if incomplete.
        making = path.with_name(f"{named.name}.making")
        making.write_text(json.dumps(content))
        making.replace(named)
        path.unlink()


def main(arguments: Sequence[str]) -> int:
    """Rename the results of one commit on one machine and return the exit status. The arguments are FOLDER, as for
    `benchmarks.asv_settings`, MACHINE, and the full hash COMMIT."""
    if len(arguments) != 3:
        print("usage: python -m benchmarks.asv_results FOLDER MACHINE COMMIT", file=sys.stderr)
        return 2
    folder, machine, commit = arguments
    name_by_versions(Path(folder) / "results" / "asv" / machine, commit, library_versions())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
