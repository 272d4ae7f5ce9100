"""JUnit's XML: a suite for each file, a failed test for each finding, one that passed where there is nothing."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from itertools import groupby

from junitparser import Error, Failure, JUnitXml, TestCase, TestSuite

from gradmend.cli.printable import printable, printable_name

from . import Listing
from .places import in_words, relative


def render(listing: Listing) -> Iterator[str]:
    report = JUnitXml("gradmend")
    for filename, findings in groupby(listing.findings, lambda finding: finding.filename):
        suite = _suite(filename)
        for finding in findings:
            message = printable(finding.message)
            failure = Failure(message, finding.severity.value)
            failure.text = f"{in_words(finding)}: {message}"
            suite.add_testcase(_case(f"{finding.code} {finding.name}", filename, failure))
        report.add_testsuite(suite)
    for filename, reason in listing.failed.items():
        suite = _suite(filename)
        suite.add_testcase(_case("analysis", filename, Error(printable(reason), "error")))
        report.add_testsuite(suite)
    if not listing.findings and not listing.failed:
        suite = TestSuite("gradmend")
        suite.add_testcase(TestCase("no findings", "gradmend"))
        report.add_testsuite(suite)
    report.update_statistics()  # type: ignore[no-untyped-call]
    text = io.BytesIO()
    report.write(text, pretty=True)
    yield text.getvalue().decode()


def _suite(filename: str) -> TestSuite:
    return TestSuite(printable_name(relative(filename)))


def _case(name: str, filename: str, result: Failure | Error) -> TestCase:
    case = TestCase(name, printable_name(os.path.splitext(relative(filename))[0]))
    case.result = [result]
    return case
