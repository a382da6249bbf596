#!/usr/bin/env python3
"""What is installed is enough for README's program and the examples, under strict C11."""

import glob
import os
import re
import subprocess
import tempfile
import unittest

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILD = os.path.dirname(os.path.abspath(os.environ["HOLDFAST"]))


class Install(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="holdfast-install-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.run_in("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir",
                    self.folder)
        self.root = os.path.join(self.folder, "usr", "local")
        (found,) = glob.glob(os.path.join(self.root, "lib", "**", "holdfast.pc"), recursive=True)
        self.pc = os.path.dirname(found)

    def run_in(self, *words, **more):
        done = subprocess.run(words, cwd=self.folder, capture_output=True, text=True,
                              check=False, **more)
        self.assertEqual(done.returncode, 0, f"{words}: {done.stdout}{done.stderr}")
        return done.stdout

    def pkg_config(self, *words):
        """With no other package in sight."""
        return self.run_in("pkg-config", "--define-variable=prefix=" + self.root, *words, "holdfast",
                           env={"PATH": os.environ["PATH"], "PKG_CONFIG_LIBDIR": self.pc}).split()

    def build(self, source):
        out = os.path.join(self.folder, "program")
        self.run_in("cc", "-std=c11", "-pedantic-errors", "-Wall", "-Werror", source,
                    *self.pkg_config("--cflags", "--libs"), "-o", out)
        return out

    def test_readmes_program_builds_and_runs(self):
        with open(os.path.join(TOP, "README.md"), encoding="utf-8") as readme:
            code = re.search(r"(?s)```c\n(#include <stdio.h>.*?\n}\n)```", readme.read()).group(1)
        source = os.path.join(self.folder, "job.c")
        with open(source, "w", encoding="utf-8") as out:
            out.write(code)
        env = {**os.environ, "LD_LIBRARY_PATH": os.path.dirname(self.pc)}
        self.assertIn(": done", self.run_in(self.build(source), env=env))

    def test_the_examples_build(self):
        for source in sorted(glob.glob(os.path.join(TOP, "examples", "*.c"))):
            self.build(os.path.abspath(source))

    def test_a_header_needs_no_other_package(self):
        with open(os.path.join(self.pc, "holdfast.pc"), encoding="utf-8") as pc:
            text = pc.read()
        self.assertNotIn("Requires", text)
        self.assertIn("-lsqlite3", self.pkg_config("--libs", "--static"))


if __name__ == "__main__":
    unittest.main(verbosity=1)
