"""Plan what suites measure for a request, and estimate how long that takes."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

import msgspec

from bench_runner.machine import environment
from bench_runner.plan.chain import Plan
from bench_runner.plan.planning import make_plan
from bench_runner.request import Request
from bench_runner.results.information import MachineInfo
from bench_runner.run.known import costs
from bench_runner.run.known.duration import Length, expected_length
from bench_runner.run.options import Options
from bench_runner.run.watcher import Watcher
from bench_runner.suites import SUITES
from format_bench.errors import RequestError
from format_bench.progress import Silent
from format_bench.understood import understood_lines


def run_length(plan: Plan, options: Options) -> Length:
    """Return the estimated duration of measuring a plan on this machine, from earlier measurements."""
    machine = msgspec.convert(environment.machine_facts(options.machine), MachineInfo)
    return expected_length(plan, options, costs.known(machine))


def _with_others(suites: Sequence[str], request: Request) -> Iterator[str]:
    """Yield the names of the suites, each followed by the suites that ask the same question about other kinds of data.

    The suites for other kinds of data are left out if the request names the user's own data, or has options that apply
    to tables only.
    """
    about_tables = request.target or request.tracks or request.webface or request.generated_webface
    narrow = request.data or about_tables or request.strings != Request().strings
    for name in suites:
        yield name
        if not narrow:
            yield from SUITES[name].together


def planned(suites: Sequence[str], request: Request, watcher: Watcher | None = None) -> Plan:
    """Return a plan of everything that the named suites would measure for the request.

    The user's own data are read for the plan. Raises RequestError for an unknown suite, and PlanError or DataError for
    a request that cannot be met.
    """
    if not suites:
        raise RequestError(
            "No suite was named.",
            f"Name one or more of {', '.join(SUITES)}. 'format-bench list suites' explains them.",
            parameter="suites",
            allowed=tuple(SUITES),
        )
    for name in suites:
        if name not in SUITES:
            near = difflib.get_close_matches(name, SUITES, n=1)
            guess = f" (did you mean {near[0]!r}?)" if near else ""
            raise RequestError(
                f"There is no suite {name!r}{guess}.",
                f"Choose among {', '.join(SUITES)}.",
                parameter="suites",
                given=name,
                allowed=tuple(SUITES),
            )
    heard = watcher or Silent()
    heard.stage("plan")
    plan = make_plan(
        [SUITES[name] for name in dict.fromkeys(_with_others(suites, request))],
        request,
        on_rows=lambda name, rows: heard.step(f"{name}: {rows:,} read", None),
    )
    for dataset in plan.datasets.values():
        if dataset.understood:
            heard.note("\n".join(understood_lines(dataset, title=request.data_title)))
    return plan
