"""Name asv's result files by library versions: `python -m benchmarks.asv_results FOLDER MACHINE`.

asv names a result file by commit and environment, so a run of the same commit with newer libraries would overwrite it.
A digest of the versions in the name gives each set of versions a file, and a line in asv's graphs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from bench_runner.machine.environment import library_versions

PARAMETER = "libraries"
"""Name of the digest on asv's pages."""


def name_by_versions(results: Path, versions: Mapping[str, str]) -> None:
    """Rename the files in `results`, asv's folder of one machine, whose names have no digest yet.

    The digest becomes a parameter of the results, and the versions their requirements. A file of the same commit and
    versions is replaced. Raises OSError, and ValueError or KeyError if a file is not in asv's format.
    """
    digest = sha256(json.dumps(versions, sort_keys=True).encode()).hexdigest()[:8]
    for path in sorted(results.glob("*.json")):
        content = {} if path.name == "machine.json" else json.loads(path.read_text())
        if not content or PARAMETER in content["params"]:
            continue
        content["params"][PARAMETER] = digest
        content["requirements"] = dict(versions)
        content["env_name"] = f"{content['env_name']}-{digest}"
        named = path.with_name(f"{path.stem}-{digest}.json")
        # asv, and the next call of this function, would read a half-written file that ends with .json.
        making = path.with_name(f"{named.name}.making")
        making.write_text(json.dumps(content))
        making.replace(named)
        path.unlink()


def main(arguments: Sequence[str]) -> int:
    """Run `python -m benchmarks.asv_results FOLDER MACHINE`, with the FOLDER of `benchmarks.asv_settings`."""
    if len(arguments) != 2:
        print("usage: python -m benchmarks.asv_results FOLDER MACHINE", file=sys.stderr)
        return 2
    folder, machine = arguments
    name_by_versions(Path(folder) / "results" / "asv" / machine, library_versions())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
