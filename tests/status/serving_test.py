#!/usr/bin/env python3
"""The parts of the status page, from a real server: who gets them, and with which headers.

    tests/status/serving_test.py --gemmd build/host/server/gemmd
"""

import argparse
import json
import pathlib
import sys
import tempfile
import unittest

from page_test import Server

FILES = {"/": "text/html", "/status.js": "text/javascript", "/status.css": "text/css"}
PARTS = ("overview", "jobs", "matrices", "kernels")
MOST_BYTES = 100 << 10


class ServingTest(unittest.TestCase):
    gemmd = None

    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.server = Server(cls.gemmd, None, pathlib.Path(temporary.name))
        cls.addClassCleanup(cls.server.stop)

    def test_the_page_is_for_anyone(self):
        total = 0
        for path, kind in FILES.items():
            status, headers, body = self.server.get(path)
            self.assertEqual(status, 200)
            self.assertEqual(headers.get_content_type(), kind)
            total += len(body)
        self.assertLess(total, MOST_BYTES)

    def test_every_answer_has_a_strict_policy(self):
        for path in (*FILES, "/status.json", "/metrics", "/none"):
            headers = self.server.get(path)[1]
            policy = headers["Content-Security-Policy"]
            self.assertIn("default-src 'none'", policy)
            self.assertNotIn("unsafe", policy)
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            self.assertEqual(headers["Cache-Control"], "no-store")

    def test_figures_are_for_tokens_with_the_role(self):
        for part in PARTS:
            path = f"/status.json?part={part}"
            answers = [self.server.get(path, token) for token in (None, "stranger", "scraper")]
            self.assertEqual([status for status, _, _ in answers], [401, 403, 200])
            self.assertIsInstance(json.loads(answers[2][2]), dict)
        self.assertEqual(self.server.get("/status.json?part=all", "scraper")[0], 400)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gemmd", required=True, help="the server's program")
    options, rest = parser.parse_known_args()
    ServingTest.gemmd = options.gemmd
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
