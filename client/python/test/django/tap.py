"""Runs tests of Django, and prints TAP; numbers begin after that of TQ_TAP."""

import os
import unittest

from django.test.runner import DiscoverRunner


class Result(unittest.TestResult):
    n = int(os.environ.get("TQ_TAP", "0"))
    what = os.environ.get("TQ_TAP_NAME", "django")

    def say(self, test, good, more="", log=""):
        Result.n += 1
        name = test.id().replace("#", "")
        print(f"{'' if good else 'not '}ok {self.n} - {self.what}: {name}{more}", flush=True)
        for line in log.splitlines():
            print(f"# {line}", flush=True)

    def startTest(self, test):
        super().startTest(test)
        self.failed = ""

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error:
            self.failed += self._exc_info_to_string(error, subtest)

    def addSuccess(self, test):
        self.say(test, not self.failed, log=self.failed)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.say(test, False, log=self.failures[-1][1])

    def addError(self, test, error):
        super().addError(test, error)
        self.say(test, False, log=self.errors[-1][1])

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.say(test, True, f" # skip {reason}")

    def stopTest(self, test):
        super().stopTest(test)
        if self.failed:  # addSuccess is not called then
            self.say(test, False, log=self.failed)


class Runner(DiscoverRunner):
    def run_suite(self, suite, **kwargs):
        result = Result()
        suite.run(result)
        return result

    def log(self, msg, level=None):
        pass
