"""Reports every test as one JSON line to $TADPOLE_REPORT and runs only the tests listed in $TADPOLE_SELECT.

$TADPOLE_TEST_SECONDS bounds one test, so that a loop without end becomes a failure with a traceback.
"""

import json
import os
import signal
import threading

import pytest

_SECONDS = float(os.environ.get("TADPOLE_TEST_SECONDS", "0"))
_OUTCOMES = {"passed": "passed", "failed": "failed", "skipped": "skipped"}


class Reporter:
    def __init__(self, report, selected):
        self._report = open(report, "a", encoding="utf-8", errors="backslashreplace")
        self._selected = selected
        self._results = {}

    def _write(self, event, **fields):
        self._report.write(json.dumps({"event": event, **fields}) + "\n")
        self._report.flush()

    def pytest_collection_modifyitems(self, config, items):
        if self._selected is not None:
            kept, dropped = [], []
            for item in items:
                (kept if self._wanted(item.nodeid) else dropped).append(item)
            items[:] = kept
            config.hook.pytest_deselected(items=dropped)
        for item in items:
            self._write("collected", id=item.nodeid)

    def _wanted(self, nodeid):
        return nodeid in self._selected or nodeid.split("::")[0] in self._selected

    def pytest_collectreport(self, report):
        if report.failed:
            file, line = _place(report)
            self._write("broken", id=report.nodeid, message=report.longreprtext, file=file, line=line)

    def pytest_runtest_logstart(self, nodeid):
        self._write("started", id=nodeid)

    def pytest_runtest_logreport(self, report):
        """A test has up to three reports (set-up, call, tear-down); the worst one counts."""
        outcome = _OUTCOMES[report.outcome]
        if outcome == "failed" and report.when != "call":
            outcome = "error"
        worst = self._results.get(report.nodeid)
        if report.when == "call" or outcome != "passed":
            if worst is None or outcome in ("failed", "error"):
                file, line = _place(report)
                message = report.longreprtext if outcome in ("failed", "error") else ""
                captured = report.capstdout[-2000:] if message else ""
                if captured:
                    message += "\n--- captured stdout ---\n" + captured
                self._results[report.nodeid] = dict(outcome=outcome, message=message, file=file, line=line)
        if report.when == "teardown":
            result = self._results.pop(report.nodeid, dict(outcome="error", message="no result", file=None, line=None))
            self._write("finished", id=report.nodeid, **result)

    def pytest_sessionfinish(self):
        self._write("end")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        timed = _SECONDS > 0 and threading.current_thread() is threading.main_thread()
        if timed:
            def stop(signum, frame):
                pytest.fail(f"the test did not end within {_SECONDS:g} s")

            signal.signal(signal.SIGALRM, stop)
            signal.setitimer(signal.ITIMER_REAL, _SECONDS)
        yield
        if timed:
            signal.setitimer(signal.ITIMER_REAL, 0)


def _place(report):
    """The innermost file and line of a failure."""
    traceback = getattr(report.longrepr, "reprtraceback", None)
    for entry in reversed(getattr(traceback, "reprentries", None) or []):
        place = getattr(entry, "reprfileloc", None)
        if place is not None:
            return str(place.path), int(place.lineno)
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        return str(crash.path), int(crash.lineno)
    return None, None


def pytest_configure(config):
    # With pytest-xdist the workers' reports arrive at the controller.
    report = os.environ.get("TADPOLE_REPORT")
    if report is None:
        return
    selected = None
    if "TADPOLE_SELECT" in os.environ:
        with open(os.environ["TADPOLE_SELECT"], encoding="utf-8") as file:
            selected = set(json.load(file))
    reporter = Reporter(os.devnull if hasattr(config, "workerinput") else report, selected)
    config.pluginmanager.register(reporter, "tadpole-reporter")
