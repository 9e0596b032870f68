#!/usr/bin/env python3
"""Sums up ctest's JUnit reports: names failed and skipped tests and ends with "N passed, N failed, N skipped".

    scripts/count_tests.py --status 0 build/release/tests.xml build/asan/tests.xml

--status is the exit status of ctest. If it is not 0 but no test failed (a test program did not start, or there was no
test), this counts as one failure. Exit status 0 if nothing failed.
"""
import argparse
import os
import re
import sys
import xml.etree.ElementTree as ElementTree


def reason_skipped(case):
    """The message that the test passed to GTEST_SKIP(); GoogleTest prints it below the location of the call."""
    found = re.search(r": Skipped\n(.+)", case.findtext("system-out", ""))
    return f": {found.group(1).strip()}" if found else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--status", type=int, default=0, help="ctest's exit status")
    parser.add_argument("reports", nargs="+")
    arguments = parser.parse_args()

    passed, failed, skipped = 0, [], []
    for report in arguments.reports:
        preset = os.path.basename(os.path.dirname(report))
        if not os.path.exists(report):
            failed.append(f"{preset}: ctest wrote no report")
            continue
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            name = f"{preset}: {case.get('name')}"
            skip = case.find("skipped")
            if case.get("status") == "run":
                passed += 1
            elif case.get("status") == "disabled" or (skip is not None and skip.get("message", "").startswith("SKIP_")):
                skipped.append(name + reason_skipped(case))
            else:  # failed, or could not be started
                failed.append(name)
    if arguments.status != 0 and not failed:
        failed.append("ctest: failed outside the tests, see above")

    for name in skipped:
        print(f"skipped  {name}")
    for name in failed:
        print(f"FAILED   {name}")
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
