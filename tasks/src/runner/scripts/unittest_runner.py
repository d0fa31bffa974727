"""Runs unittest cases and reports each as one JSON line to $TADPOLE_REPORT; ids as pytest spells them.

Arguments: test files, relative to the working directory. $TADPOLE_SELECT lists the ids to run;
$TADPOLE_LIST only lists.
"""

import importlib
import json
import os
import signal
import sys
import traceback
import unittest

REPORT = open(os.environ["TADPOLE_REPORT"], "a", encoding="utf-8", errors="backslashreplace")
SECONDS = float(os.environ.get("TADPOLE_TEST_SECONDS", "0"))


def write(event, **fields):
    REPORT.write(json.dumps({"event": event, **fields}) + "\n")
    REPORT.flush()


def place(error):
    frames = traceback.extract_tb(error[2])
    own = [frame for frame in frames if os.sep + "unittest" + os.sep not in frame.filename]
    last = (own or frames or [None])[-1]
    return (last.filename, last.lineno) if last else (None, None)


class Result(unittest.TestResult):
    def __init__(self, names):
        super().__init__()
        self._names = names
        self._outcomes = {}

    def _set(self, test, outcome, error=None):
        message, file, line = "", None, None
        if error is not None:
            message = "".join(traceback.format_exception(*error))
            file, line = place(error)
        self._outcomes[id(test)] = dict(outcome=outcome, message=message, file=file, line=line)

    def startTest(self, test):
        super().startTest(test)
        write("started", id=self._names[id(test)])
        if SECONDS > 0:
            signal.setitimer(signal.ITIMER_REAL, SECONDS)

    def stopTest(self, test):
        signal.setitimer(signal.ITIMER_REAL, 0)
        write("finished", id=self._names[id(test)], **self._outcomes.get(id(test), dict(outcome="passed", message="")))
        super().stopTest(test)

    def addError(self, test, error):
        if id(test) in self._names:
            self._set(test, "error", error)
        else:
            # A set-up of a class or module: its tests are not run, so they are not reported as passed.
            write("broken", id=str(test), message="".join(traceback.format_exception(*error)))

    def addFailure(self, test, error):
        self._set(test, "failed", error)

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self._set(test, "failed", error)

    def addSkip(self, test, reason):
        if id(test) in self._names:
            self._set(test, "skipped")

    def addExpectedFailure(self, test, error):
        self._set(test, "passed")

    def addUnexpectedSuccess(self, test):
        self._set(test, "failed")


def load(path):
    """Imports a test file under the name that its packages give it."""
    directory, name = os.path.split(os.path.abspath(path))
    module = os.path.splitext(name)[0]
    while os.path.exists(os.path.join(directory, "__init__.py")):
        directory, package = os.path.split(directory)
        module = package + "." + module
    if directory not in sys.path:
        sys.path.insert(0, directory)
    return unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(module))


def cases(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from cases(item)
        else:
            yield item


class TooLong(BaseException):
    pass


def stop(signum, frame):
    raise TooLong(f"the test did not end within {SECONDS:g} s")


def main():
    signal.signal(signal.SIGALRM, stop)
    selected = None
    if "TADPOLE_SELECT" in os.environ:
        with open(os.environ["TADPOLE_SELECT"], encoding="utf-8") as file:
            selected = set(json.load(file))
    sys.path.insert(0, os.getcwd())
    names, suite = {}, unittest.TestSuite()
    for path in sys.argv[1:]:
        try:
            found = list(cases(load(path)))
        except BaseException:
            error = sys.exc_info()
            file, line = place(error)
            if isinstance(error[1], SyntaxError):
                file, line = error[1].filename, error[1].lineno
            write("broken", id=path, message="".join(traceback.format_exception(*error)), file=file, line=line)
            continue
        for case in found:
            name = f"{path}::{type(case).__qualname__}::{getattr(case, '_testMethodName', '')}"
            if selected is None or name in selected or path in selected:
                names[id(case)] = name
                write("collected", id=name)
                suite.addTest(case)
    if "TADPOLE_LIST" not in os.environ:
        suite.run(Result(names))
    write("end")


main()
