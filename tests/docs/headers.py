#!/usr/bin/env python3
"""All public headers can be included together, in either order."""

import os
import subprocess
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
INCLUDE = os.path.join(ROOT, "include")


def headers():
    found = []
    for folder, _, names in os.walk(os.path.join(INCLUDE, "holdfast")):
        found += [os.path.relpath(os.path.join(folder, name), INCLUDE)
                  for name in names if name.endswith(".h")]
    return sorted(found)


class Headers(unittest.TestCase):
    def compile(self, names, *flags):
        text = "".join(f"#include <{name}>\n" for name in names)
        done = subprocess.run(["cc", *flags, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{INCLUDE}", "-"],
                              input=text, text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_together_in_c(self):
        self.assertGreater(len(headers()), 20)
        self.compile(headers(), "-xc", "-std=c17")
        self.compile(headers()[::-1], "-xc", "-std=c17")


if __name__ == "__main__":
    unittest.main()
