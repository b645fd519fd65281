"""Test cron.sh with a local bare repository. A stub replaces measurements; git and locks are real, and so are the pages
in tests that check their content."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reports.factory import make_run, write_run

ROOT = Path(__file__).parents[1]

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("flock") is None, reason="needs flock")]

NO_PART = ("tests/", "docs/", "bench_runner/results/reference_runs/")
"""Left out of the test repository, because every test checks it out."""

STUB = """#!{python} -IS
# Replaces the interpreter of .venv, without site-packages, which take most of its start: runs are invented, and asv
# only writes files like its own. asv's settings and the pages are also invented, unless STUB_REAL is set.
import os, sys
from pathlib import Path

words = sys.argv[1:]
if words[:2] == ["main.py", "run"]:
    if os.environ.get("STUB_KILLED"):
        out = Path(words[words.index("--out") + 1])
        (out / "work").mkdir(parents=True)
        (out / "work" / "table.csv").write_text("working file")
        for place in (Path(".publish/results"), Path(".publish/gh-pages")):
            (place / ".git" / "index.lock").touch()
            (place / ".git" / "config.lock").touch()
        os.kill(os.getppid(), 9)
        sys.exit(1)
    out = Path(words[words.index("--out") + 1])
    out.mkdir(parents=True, exist_ok=True)
    for file in Path({invented!r}).iterdir():
        (out / file.name).write_text(file.read_text().replace("ID-OF-RUN", out.name).replace("ITS-SUITE", words[2]))
    sys.exit(int(os.environ.get("STUB_STATUS", "0")))
if words[:2] == ["-m", "asv"]:
    place = Path(words[3]).parent
    if "run" in words:
        (place / "results" / "asv").mkdir(exist_ok=True)
        (place / "results" / "asv" / f"{{os.getpid()}}.json").write_text("{{}}")
    if "run" in words and os.environ.get("STUB_ASV"):
        sys.exit(int(os.environ["STUB_ASV"]))
    if "publish" in words:
        (place / "html").mkdir()
        (place / "html" / "index.html").write_text("graphs")
    sys.exit(0)
if words[:2] == ["-m", "benchmarks.asv_settings"] and not os.environ.get("STUB_REAL"):
    (Path(words[2]) / "asv.conf.json").write_text("{{}}")
elif words[:2] == ["-m", "reports.site.publication"] and not os.environ.get("STUB_REAL"):
    assert list(Path(words[2]).glob("*/run.json"))
    Path(words[3], "index.html").write_text("Format Bench")
else:
    os.execv({python!r}, [{python!r}, *words])
"""


def git(place: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(place), *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a bare repository of the project's files, without those in NO_PART, as branch main."""
    folder = tmp_path_factory.mktemp("project")
    made = folder / "made"
    made.mkdir()
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file() and not name.startswith(NO_PART):
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, made / name)
    git(made, "init", "--quiet", "--initial-branch", "main")
    commit(made, "the project")
    git(folder, "clone", "--quiet", "--bare", str(made), "project.git")
    return folder / "project.git"


@pytest.fixture
def remote(tmp_path: Path, project: Path) -> Path:
    """Clone the repository for one test."""
    git(tmp_path, "clone", "--quiet", "--bare", str(project), "remote.git")
    return tmp_path / "remote.git"


def commit(place: Path, message: str) -> None:
    git(place, "add", "--all")
    git(place, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "--message", message)


@pytest.fixture(scope="module")
def invented(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the result folder of the run that the stub returns."""
    run = make_run(
        datasets=("eq",), tracks=("plain",), rounds=5, info={"suites": {"ITS-SUITE": "?"}, "id": "ID-OF-RUN"}
    )
    return write_run(run, tmp_path_factory.mktemp("invented"))


@pytest.fixture
def checkout(tmp_path: Path, remote: Path, invented: Path) -> Path:
    """Clone the operator's checkout and install the stub."""
    git(tmp_path, "clone", "--quiet", str(remote), "checkout")
    place = tmp_path / "checkout"
    python = place / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(STUB.format(python=sys.executable, invented=str(invented)))
    python.chmod(0o755)
    ready = place / ".venv" / ".ready"
    ready.touch()
    os.utime(ready, (2**31, 2**31))
    return place


def cron(checkout: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "FORMAT_BENCH_ROWS": "1000",
        "FORMAT_BENCH_SUITES": "tabular",
        "FORMAT_BENCH_MOST_LOAD": "1000",
        "GIT_CONFIG_GLOBAL": os.devnull,
        **variables,
    }
    return subprocess.run(
        [str(checkout / "cron.sh"), *words], env=environment, capture_output=True, text=True, timeout=100
    )


def branches(remote: Path) -> dict[str, str]:
    lines = git(remote, "for-each-ref", "--format=%(refname:short) %(objectname)").splitlines()
    return dict(line.split() for line in lines)


def published(remote: Path, branch: str) -> list[str]:
    return git(remote, "ls-tree", "-r", "--name-only", branch).splitlines()


def commits(remote: Path, branch: str) -> int:
    return int(git(remote, "rev-list", "--count", branch))


def test_a_second_publication_uses_the_newest_version_and_keeps_the_history(
    tmp_path: Path, checkout: Path, remote: Path
) -> None:
    first = cron(checkout)
    assert first.returncode == 0, first.stdout + first.stderr
    assert branches(remote).keys() == {"main", "results", "gh-pages"}
    assert {"index.html", "asv/index.html", ".nojekyll"} <= set(published(remote, "gh-pages"))
    (run,) = [name for name in published(remote, "results") if name.endswith("samples.jsonl")]
    before = branches(remote)
    other = tmp_path / "other"
    git(tmp_path, "clone", "--quiet", str(remote), "other")
    (other / "new.txt").write_text("newer")
    (other / "cron.sh").write_text((other / "cron.sh").read_text() + "say 'the newer script'\n")
    commit(other, "newer")
    git(other, "push", "--quiet", "origin", "main")
    main = branches(remote)["main"]
    second = cron(checkout, STUB_REAL="1")
    assert second.returncode == 0, second.stdout + second.stderr
    assert (checkout / "new.txt").exists()
    assert "the newer script" in second.stdout
    assert {"index.html", "asv/index.html", ".nojekyll"} <= set(published(remote, "gh-pages"))
    for branch in ("results", "gh-pages"):
        assert commits(remote, branch) == 2
        assert git(remote, "merge-base", before[branch], branch) == before[branch]
    assert run in published(remote, "results")
    assert len([name for name in published(remote, "gh-pages") if name.endswith("samples.jsonl")]) == 2
    assert branches(remote)["main"] == main
    assert git(checkout, "status", "--porcelain") == ""
    assert not (checkout / ".publish" / "tmp").exists()


def test_a_dry_run_pushes_nothing_and_the_next_run_repeats_a_refused_push(checkout: Path, remote: Path) -> None:
    done = cron(checkout, "--dry-run", FORMAT_BENCH_MOST_LOAD="0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("only a dry run continues") == 1, "a dry run reports a busy machine"
    assert branches(remote).keys() == {"main"}
    assert (checkout / ".publish" / "dry-run" / "gh-pages" / "index.html").is_file()
    assert "dry run: gh-pages is not pushed" in done.stdout

    hook = remote / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    refused = cron(checkout)
    assert refused.returncode == 1
    assert "cannot push branch" in refused.stdout
    hook.unlink()
    assert cron(checkout).returncode == 0
    # A later run does not publish results of the dry run either.
    assert len([name for name in published(remote, "results") if name.endswith("samples.jsonl")]) == 2


def test_failures_of_a_cell_and_of_asv_are_reported_and_the_runs_published(checkout: Path, remote: Path) -> None:
    done = cron(checkout, STUB_STATUS="1", STUB_ASV="2")
    assert done.returncode == 1
    assert "some cells of tabular failed" in done.stdout
    assert "asv ended with exit code 2" in done.stdout
    assert "results" in branches(remote)
    assert "index.html" in published(remote, "gh-pages")


def test_with_a_broken_inner_repository_the_outer_one_stays_unchanged(checkout: Path, remote: Path) -> None:
    for branch in ("results", "gh-pages"):
        (checkout / ".publish" / branch / ".git").mkdir(parents=True)
    main, head = branches(remote)["main"], git(checkout, "rev-parse", "HEAD")
    (checkout / "private.txt").write_text("must not be published")
    done = cron(checkout, GIT_DIR=str(checkout / ".git"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert (branches(remote)["main"], git(checkout, "rev-parse", "HEAD")) == (main, head)
    for branch in ("results", "gh-pages"):
        assert "README.md" not in published(remote, branch)
        assert "private.txt" not in published(remote, branch)


def test_results_of_a_killed_run_are_kept_by_the_next(checkout: Path, remote: Path) -> None:
    killed = cron(checkout, STUB_KILLED="1")
    assert killed.returncode == -9
    # Processes that the killed run started hold its lock until they end.
    subprocess.run(["flock", "--wait", "20", str(checkout / ".publish" / "lock"), "true"], check=True)
    (left,) = (checkout / ".publish" / "results" / "runs").iterdir()
    (left / "samples.jsonl").write_text("")
    done = cron(checkout)
    assert done.returncode == 0, done.stdout + done.stderr
    kept = published(remote, "results")
    assert f"runs/{left.name}/samples.jsonl" in kept
    assert not [name for name in kept if "work" in name]


def test_pushes_of_others_are_kept_and_a_conflict_stops_the_run(tmp_path: Path, checkout: Path, remote: Path) -> None:
    assert cron(checkout).returncode == 0
    for branch, name in (("results", "runs/theirs/samples.jsonl"), ("gh-pages", "CNAME"), ("gh-pages", "index.html")):
        other = tmp_path / f"other-{branch}-{Path(name).name}"
        git(tmp_path, "clone", "--quiet", "--branch", branch, str(remote), other.name)
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        (other / name).write_text("theirs")
        commit(other, "theirs")
        git(other, "push", "--quiet", "origin", branch)
    done = cron(checkout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "runs/theirs/samples.jsonl" in published(remote, "results")
    assert git(remote, "show", "gh-pages:CNAME") == "theirs"
    assert "Format Bench" in git(remote, "show", "gh-pages:index.html")

    # Both sides changed one file: neither version is lost.
    other = tmp_path / "other"
    git(tmp_path, "clone", "--quiet", "--branch", "results", str(remote), "other")
    name = next(path.relative_to(other) for path in other.rglob("samples.jsonl") if "theirs" not in path.parts)
    (other / name).write_text("theirs\n")
    commit(other, "theirs")
    git(other, "push", "--quiet", "origin", "results")
    ours = checkout / ".publish" / "results"
    (ours / name).write_text("ours\n")
    done = cron(checkout)
    assert done.returncode == 1
    assert "have changed the same file" in done.stdout
    assert (ours / name).read_text() == "ours\n"
    assert git(remote, "show", f"results:{name}") == "theirs"


REASONS = [
    ({"FORMAT_BENCH_MOST_LOAD": "0"}, "the machine is busy"),
    ({"FORMAT_BENCH_REMOTE": "nosuch"}, "remote nosuch"),
    ({"FORMAT_BENCH_BRANCH": "nosuch"}, "the branch nosuch is not checked out here"),
    ({"FORMAT_BENCH_ROWS": "many"}, "at least 1 (got many)"),
]


@pytest.mark.parametrize(("variables", "reason"), REASONS)
def test_a_run_that_cannot_start_reports_and_logs_the_reason(
    variables: dict[str, str], reason: str, checkout: Path, remote: Path
) -> None:
    done = cron(checkout, **variables)
    assert done.returncode == 1
    assert reason in done.stdout
    assert reason in (checkout / ".publish" / "cron.log").read_text()
    assert branches(remote).keys() == {"main"}


def test_a_missing_remote_is_reported(tmp_path: Path, checkout: Path) -> None:
    git(checkout, "remote", "set-url", "origin", str(tmp_path / "gone.git"))
    done = cron(checkout)
    assert done.returncode == 1
    assert "cannot fetch the newest version of branch main from origin" in done.stdout


def test_a_changed_work_tree_is_left_alone(checkout: Path) -> None:
    (checkout / "README.md").write_text("changed")
    done = cron(checkout)
    assert done.returncode == 1
    assert "uncommitted changes" in done.stdout
    assert (checkout / "README.md").read_text() == "changed"


def test_a_diverged_branch_is_left_alone(checkout: Path, remote: Path) -> None:
    (checkout / "mine.txt").write_text("mine")
    commit(checkout, "mine")
    git(checkout, "update-ref", "refs/heads/other", "HEAD")
    tree = git(checkout, "commit-tree", "-m", "theirs", "HEAD^{tree}")
    git(checkout, "push", "--quiet", "--force", "origin", f"{tree}:refs/heads/main")
    done = cron(checkout)
    assert done.returncode == 1
    assert "commits that branch main of origin lacks" in done.stdout


def test_commits_that_are_not_pushed_are_not_measured(checkout: Path, remote: Path) -> None:
    (checkout / "mine.txt").write_text("mine")
    commit(checkout, "mine")
    assert "commits that branch main of origin lacks" in cron(checkout).stdout
    git(checkout, "checkout", "--quiet", "-b", "another")
    assert "the branch main is not checked out here" in cron(checkout).stdout
    assert branches(remote).keys() == {"main"}


def test_too_little_free_disk_is_reported(tmp_path: Path, checkout: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "df").write_text("#!/bin/sh\necho Avail; echo 12MB\n")
    (tools / "df").chmod(0o755)
    done = cron(checkout, PATH=f"{tools}:{os.environ['PATH']}")
    assert done.returncode == 1
    assert "only 12 MB of disk are free; 2000 MB are needed" in done.stdout


def test_two_runs_never_overlap(checkout: Path, remote: Path) -> None:
    (checkout / ".publish").mkdir()
    with (checkout / ".publish" / "lock").open("w") as lock:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX)
        done = cron(checkout)
    assert done.returncode == 1
    assert "another run of cron.sh has the lock" in done.stdout
    assert branches(remote).keys() == {"main"}


def test_an_unknown_option_is_reported() -> None:
    done = subprocess.run([str(ROOT / "cron.sh"), "--publish"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "--publish" in done.stderr
