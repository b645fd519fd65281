"""A ReFrame test that runs Format Bench once on each node of a partition:

    reframe -c docs/cluster_reframe.py --distribute=all -r -S python=/path/to/.venv/bin/python

ReFrame's report has the read time of each format on each node. Their result folders are in the stage folders of the
nodes, which '--keep-stage-files' keeps; 'format-bench report FOLDER FOLDER' shows them side by side.
"""

import csv

import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class FormatBenchOnANode(rfm.RunOnlyRegressionTest):
    """One quick run of the suite `tabular`, alone on its node."""

    valid_systems = ("*",)
    valid_prog_environs = ("*",)
    # ReFrame defines the names 'variable', 'run_before' and 'sanity_function' in the body of a test.
    python = variable(str, value="python3")  # noqa: F821
    suites = variable(str, value="tabular --quick")  # noqa: F821
    exclusive_access = True
    time_limit = "15m"

    @run_before("run")  # noqa: F821
    def ask(self) -> None:
        """Set the command."""
        self.executable = self.python
        self.executable_opts = ["-m", "format_bench", "run", *self.suites.split(), "--out", "run"]

    @sanity_function  # noqa: F821
    def has_ended_without_failure(self) -> object:
        """Return whether all cells were measured."""
        return sn.assert_eq(self.job.exitcode, 0)

    @run_before("performance")  # noqa: F821
    def take_read_times(self) -> None:
        """Report the median read time of each variant."""
        with open(f"{self.stagedir}/run/results-eq-plain.csv") as file:
            rows = [row for row in csv.DictReader(file) if row["read_time (s)"]]
        self.perf_variables = {
            row["format_name"]: sn.make_performance_function(sn.defer(1000 * float(row["read_time (s)"])), "ms")
            for row in rows
        }
