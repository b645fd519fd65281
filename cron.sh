#!/usr/bin/env bash
# Fetch the newest version, run the suites, commit the results to git, and publish pages on the branch gh-pages.
#
# This script is suitable for cron. It needs no input, refuses to run twice at the same time, and logs why it ended. It
# pushes only to the branches results and gh-pages of one remote, and never by force. docs/publishing.md explains the
# setup.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: ./cron.sh [--dry-run]

  --dry-run   do everything but push, below .publish/dry-run

environment:
  FORMAT_BENCH_REMOTE      the remote that is fetched from and pushed to (origin)
  FORMAT_BENCH_BRANCH      the branch of the newest version (main)
  FORMAT_BENCH_SUITES      the suites to run ("tabular compression image")
  FORMAT_BENCH_ROWS        rows of each table and number of images, for a small trial
  FORMAT_BENCH_OPTIONS     more options for each run, e.g. "--datasets ^eq$ --rounds 3"
  FORMAT_BENCH_OPERATIONS  operations on tables that asv times, e.g. "read|project" (the suites' own)
  FORMAT_BENCH_HISTORY     the benchmarks that asv runs, as a regular expression (all of the suites; none: '^$')
  FORMAT_BENCH_MACHINE     the machine's public name (its host name)
  FORMAT_BENCH_MOST_LOAD   begin only under this load average (a quarter of the cores)
TEXT
}

dry_run=no updated=no
for word in "$@"; do
  case $word in
    --dry-run) dry_run=yes ;;
    --updated) updated=yes ;;  # set by the restart below
    -h | --help) usage; exit 0 ;;
    *) echo "cron.sh: unknown option $word" >&2; usage >&2; exit 2 ;;
  esac
done

cd "$(dirname "$(readlink -f "$0")")"
ROOT=$PWD
PLACE=$ROOT/.publish
LOG=$PLACE/cron.log
# Folder of the two branches. A dry run has a separate folder, so that later runs do not publish its results.
STATE=$PLACE
[ $dry_run = no ] || STATE=$PLACE/dry-run
REMOTE=${FORMAT_BENCH_REMOTE:-origin}
BRANCH=${FORMAT_BENCH_BRANCH:-main}
SUITES=${FORMAT_BENCH_SUITES:-tabular compression image}
ROWS=${FORMAT_BENCH_ROWS:-}
read -ra OPTIONS <<< "${FORMAT_BENCH_OPTIONS:-}"
HISTORY=${FORMAT_BENCH_HISTORY:-}
MOST_LOAD=${FORMAT_BENCH_MOST_LOAD:-$(awk -v cores="$(nproc)" 'BEGIN { print cores / 4 }')}
LEAST_FREE_MB=$([ -n "$ROWS" ] && echo 2000 || echo 20000)
MACHINE=${FORMAT_BENCH_MACHINE:-$(uname -n)}
PYTHON=$ROOT/.venv/bin/python
mkdir -p "$STATE"
# Git sets these variables for hooks. If a hook starts this script, they would make git use another repository.
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_COMMON_DIR
export GIT_TERMINAL_PROMPT=0

say() { printf '%s %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$*" | tee -a "$LOG"; }
stop() { say "stopped: $*"; trap - EXIT; exit 1; }
logged() { "$@" >> "$LOG" 2>&1; }

# The lock is held until this process and the processes that it started have ended. It survives the restart below.
[ $updated = yes ] || exec 9> "$PLACE/lock"
flock --nonblock 9 || stop "another run of cron.sh has the lock"
trap 'status=$?; [ $status -eq 0 ] || say "ended with exit code $status"' EXIT

# --- check the conditions for a run ----------------------------------------------------------------------------------

[[ $MACHINE =~ ^[A-Za-z0-9._-]+$ ]] || stop "FORMAT_BENCH_MACHINE must have only letters, digits, '.', '_' and '-' (got $MACHINE)"
[[ -z $ROWS || $ROWS =~ ^[1-9][0-9]*$ ]] || stop "FORMAT_BENCH_ROWS must be a whole number of at least 1 (got $ROWS)"
git remote get-url "$REMOTE" > /dev/null 2>&1 ||
  stop "git has no remote $REMOTE; name one by FORMAT_BENCH_REMOTE"
[ "$(git symbolic-ref --quiet --short HEAD)" = "$BRANCH" ] || stop "the branch $BRANCH is not checked out here"
[ -z "$(git status --porcelain --untracked-files=no)" ] || stop "the work tree has uncommitted changes"
free_mb=$(df --output=avail --block-size=MB "$PLACE" | tail -n 1 | tr -dc 0-9)
[ "$free_mb" -ge "$LEAST_FREE_MB" ] || stop "only $free_mb MB of disk are free; $LEAST_FREE_MB MB are needed"
load=$(cut -d' ' -f1 /proc/loadavg)
if ! awk -v load="$load" -v most="$MOST_LOAD" 'BEGIN { exit !(load < most) }'; then
  busy="the machine is busy (load $load); it has to be under $MOST_LOAD (FORMAT_BENCH_MOST_LOAD)"
  [ $dry_run = yes ] || stop "$busy"
  [ $updated = yes ] || say "$busy: only a dry run continues"
fi

if [ $updated = no ]; then
  say "started: remote $REMOTE, suites $SUITES${ROWS:+, $ROWS rows}, dry run: $dry_run"
  logged git fetch "$REMOTE" "$BRANCH" || stop "cannot fetch the newest version of branch $BRANCH from $REMOTE"
  logged git merge-base --is-ancestor HEAD FETCH_HEAD ||
    stop "the work tree has commits that branch $BRANCH of $REMOTE lacks"
  logged git merge --ff-only FETCH_HEAD || stop "cannot check out the newest version; see $LOG"
  # The merge may have changed this script, so start it again.
  dry=()
  [ $dry_run = no ] || dry=(--dry-run)
  exec "$ROOT/cron.sh" --updated "${dry[@]}"
fi

# --- the two branches ------------------------------------------------------------------------------------------------
# Each branch has a separate repository below .publish, so the branches of this repository are not touched. Only this
# repository communicates with the remote, because it has the operator's settings and keys. The repositories exchange
# commits through refs/format-bench/ in this repository.

in_branch() { # branch, git arguments; git never uses an enclosing repository
  git --git-dir="$STATE/$1/.git" --work-tree="$STATE/$1" -C "$STATE/$1" \
    -c commit.gpgsign=false -c core.excludesFile=/dev/null "${@:2}"
}

commit_all() { # branch, message
  in_branch "$1" add --all
  in_branch "$1" diff --cached --quiet || logged in_branch "$1" commit --quiet --message "$2"
}

# Fetch a branch of the remote to refs/remote in the branch's repository. Return 2 if the remote has no such branch.
fetch_branch() { # branch
  local status=0
  git ls-remote --exit-code --heads "$REMOTE" "refs/heads/$1" > /dev/null 2>> "$LOG" || status=$?
  [ $status -eq 0 ] || return $status
  logged git fetch "$REMOTE" "+refs/heads/$1:refs/format-bench/theirs/$1" || return 1
  logged in_branch "$1" fetch "$ROOT" "+refs/format-bench/theirs/$1:refs/remote" || return 1
}

open_branch() { # branch
  local place=$STATE/$1
  in_branch "$1" rev-parse --git-dir > /dev/null 2>&1 || rm -rf "$place/.git"
  mkdir -p "$place"
  # A killed run can leave git's locks and an unfinished rebase. No other run can own them, because we hold cron.sh's
  # lock.
  [ ! -d "$place/.git" ] || find "$place/.git" -name '*.lock' -delete
  git init --quiet "$place"
  in_branch "$1" rebase --abort > /dev/null 2>&1 || rm -rf "$place/.git/rebase-merge" "$place/.git/rebase-apply"
  in_branch "$1" symbolic-ref HEAD "refs/heads/$1"
  in_branch "$1" config user.name "$(git config user.name || echo 'Format Bench')"
  in_branch "$1" config user.email "$(git config user.email || echo format-bench@localhost)"
}

take_theirs() { # branch; local commits that the remote lacks are dropped, because they are made again
  in_branch "$1" rev-parse --quiet --verify refs/remote > /dev/null || return 0
  logged in_branch "$1" reset --quiet --hard refs/remote
}

# Rebase our unpublished results onto the remote's results. Different runs write different files, except for asv's list
# of benchmarks. If both sides changed this list, use ours, which is as good. Return 1 if other files conflict: a person
# has to resolve that.
come_after() {
  if ! in_branch results rev-parse --quiet --verify HEAD > /dev/null; then
    take_theirs results
    return
  fi
  logged in_branch results rebase --quiet refs/remote && return
  while [ "$(in_branch results diff --name-only --diff-filter=U)" = asv/benchmarks.json ]; do
    logged in_branch results checkout --theirs asv/benchmarks.json
    logged in_branch results add asv/benchmarks.json
    GIT_EDITOR=true logged in_branch results rebase --continue && return
  done
  logged in_branch results rebase --abort || true
  return 1
}

push_branch() { # branch
  logged git fetch "$STATE/$1" "+HEAD:refs/format-bench/ours/$1" &&
    logged git push --quiet --no-follow-tags "$REMOTE" "refs/format-bench/ours/$1:refs/heads/$1" &&
    say "pushed $1, $(in_branch "$1" rev-parse --short HEAD)"
}

told_dry() { # branch
  [ $dry_run = yes ] && say "dry run: $1 is not pushed; it is at $(in_branch "$1" rev-parse --short HEAD) in $STATE/$1"
}

publish_results() {
  told_dry results && return
  local attempt
  for attempt in 1 2 3; do
    push_branch results && return
    fetch_branch results && come_after || break
  done
  stop "cannot push branch results to $REMOTE; the commits stay in .publish/results, and the next run publishes them"
}

# Make the pages from the results, on top of the remote's current branch, so that files that others added are kept.
publish_pages() {
  local attempt status
  for attempt in 1 2 3; do
    status=0
    fetch_branch gh-pages || status=$?
    [ $status -eq 0 ] || [ $status -eq 2 ] || break
    take_theirs gh-pages
    make_pages
    commit_all gh-pages "Pages of $(date -u +%Y-%m-%d), version ${COMMIT:0:10}"
    told_dry gh-pages && return
    push_branch gh-pages && return
  done
  stop "cannot push branch gh-pages to $REMOTE; the results are kept, and the next run makes the pages again"
}

make_pages() {
  if [ -d "$STATE/html" ]; then
    rm -rf "$STATE/gh-pages/asv"
    cp -r "$STATE/html" "$STATE/gh-pages/asv"
  fi
  logged "$PYTHON" -m reports.site.publication "$STATE/results/runs" "$STATE/gh-pages" || stop "no pages were made; see $LOG"
  touch "$STATE/gh-pages/.nojekyll"
}

logged make .venv/.ready || stop "cannot install the libraries; see $LOG"
open_branch results
open_branch gh-pages
# Remove the working files of runs that were killed before they could remove them, and truncated results of asv.
rm -rf "$STATE"/results/runs/*/work "$STATE/tmp"
for file in "$STATE"/results/asv/*.json "$STATE"/results/asv/*/*.json; do
  [ ! -e "$file" ] || "$PYTHON" -c 'import json, sys; json.load(open(sys.argv[1]))' "$file" 2> /dev/null ||
    { say "removed $file, which is incomplete" && rm -f "$file"; }
done
commit_all results "Keep what an interrupted run left"
status=0
fetch_branch results || status=$?
case $status in
  0) come_after || stop "branch results of $REMOTE and ours in .publish/results have changed the same file; see $LOG" ;;
  2) say "$REMOTE has no branch results yet" ;;
  *) stop "cannot list the branches of $REMOTE; see $LOG" ;;
esac

# --- measure ---------------------------------------------------------------------------------------------------------

COMMIT=$(git rev-parse HEAD)
failed=()
mkdir -p "$STATE/tmp"
export TMPDIR=$STATE/tmp
for suite in $SUITES; do
  until out=${STATE#"$ROOT"/}/results/runs/$(date -u +%Y%m%dT%H%M%SZ)-$suite && [ ! -e "$out" ]; do sleep 1; done
  say "running $suite"
  status=0
  logged "$PYTHON" main.py run "$suite" --report --out "$out" --machine "$MACHINE" \
    ${ROWS:+--rows "$ROWS"} "${OPTIONS[@]}" || status=$?
  case $status in
    0) ;;
    1) say "some cells of $suite failed; the other samples are kept" && failed+=("$suite") ;;
    130) stop "interrupted while $suite ran; the samples are in .publish/results, and the next run commits them" ;;
    *) say "$suite ended with exit code $status, see $LOG" && failed+=("$suite") ;;
  esac
done

asv() {
  XDG_CACHE_HOME=${XDG_CACHE_HOME:-$HOME/.cache} HOME=$STATE \
    logged "$PYTHON" -m asv --config "$STATE/asv.conf.json" "$@"
}
logged "$PYTHON" -m benchmarks.asv_settings "$STATE" "$MACHINE" || failed+=("asv settings")
if [ "$HISTORY" != '^$' ]; then
  say "running the history of $COMMIT"
  # asv exits with 2 if a benchmark failed. The results of the others are kept.
  asv run --machine "$MACHINE" --bench "${HISTORY:-^(${SUITES// /|})\\.}" --set-commit-hash "$COMMIT" --show-stderr ||
    { say "asv ended with exit code $?; see $LOG" && failed+=("history"); }
  logged "$PYTHON" -m benchmarks.asv_results "$STATE" "$MACHINE" "$COMMIT" ||
    { say "cannot name asv's results by the versions of libraries; see $LOG" && failed+=("history"); }
fi
commit_all results "Results of $(date -u +%Y-%m-%d), version ${COMMIT:0:10}"
publish_results

# --- publish ---------------------------------------------------------------------------------------------------------

rm -rf "$STATE/html"
if [ -d "$STATE/results/asv" ] && ! asv publish; then
  rm -rf "$STATE/html"
  say "asv could not make its pages; the older pages stay" && failed+=("asv publish")
fi
publish_pages
rm -rf "$STATE/tmp"

if [ ${#failed[@]} -gt 0 ]; then
  say "done, with failures: ${failed[*]}"
  trap - EXIT
  exit 1
fi
say "done"
