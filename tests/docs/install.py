#!/usr/bin/env python3
"""What is installed is enough for README's program and the examples, under strict C11.

README's lines are run as they are, in a mount namespace of their own: what the build installs is the
/usr/local there, and /etc and the cache of ldconfig are copies. The lines that build are left out.
scripts/check-install runs them too, in a bare root.
"""

import glob
import os
import re
import subprocess
import tempfile
import unittest

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
# What takes minutes, and needs the network: the build under test is used instead.
BUILDS = ["scripts/setup build", "meson setup build-install -Dtests=disabled", "meson install -C build-install"]
# $1: the folder that has the namespace's usr/local, etc and cache
ENTER = """set -e
trap 'umount /var/cache/ldconfig; umount /etc; umount /usr/local' EXIT
mount --bind "$1/usr/local" /usr/local
mount --bind "$1/etc" /etc
mount --bind "$1/cache" /var/cache/ldconfig
env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin sh -eux install.sh
"""
BUILD = os.path.dirname(os.path.abspath(os.environ["HOLDFAST"]))


def root_is_a_mount():
    """False in a chroot, where the mounts of a namespace cannot be made private first."""
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        return any(line.split()[4] == "/" for line in mounts)


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

    def pkg_config(self, *words, package="holdfast"):
        """With no other package in sight."""
        return self.run_in("pkg-config", "--define-variable=prefix=" + self.root, *words, package,
                           env={"PATH": os.environ["PATH"], "PKG_CONFIG_LIBDIR": self.pc}).split()

    def build(self, source):
        """With the package that the source itself names."""
        out = os.path.join(self.folder, "program")
        with open(source, encoding="utf-8") as text:
            named = re.search(r"pkg-config --cflags --libs ([a-z-]+)\)", text.read())
        self.run_in("cc", "-std=c11", "-pedantic-errors", "-Wall", "-Werror", source,
                    *self.pkg_config("--cflags", "--libs", package=named.group(1) if named else "holdfast"),
                    "-o", out)
        return out

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        return path

    def test_readmes_program_builds_and_runs(self):
        with open(os.path.join(TOP, "README.md"), encoding="utf-8") as readme:
            page = readme.read()
        self.build(self.write("job.c", re.search(r"(?s)```c\n(#include <stdio.h>.*?\n}\n)```", page).group(1)))
        lines = re.search(r"(?s)```sh install\n(.*?)```", page).group(1).splitlines()
        self.assertEqual(lines[:len(BUILDS)], BUILDS)
        self.write("install.sh", "\n".join(lines[len(BUILDS):]) + "\n")
        os.mkdir(os.path.join(self.folder, "cache"))
        # another user than root cannot read all of it
        subprocess.run(["cp", "-a", "/etc", self.folder], capture_output=True, check=False)
        maps = [] if os.geteuid() == 0 else ["--map-root-user"]
        if not root_is_a_mount():
            maps += ["--propagation", "unchanged"]
        out = self.run_in("unshare", "--mount", *maps, "sh", "-c", ENTER, "sh", self.folder)
        self.assertIn(": done", out)

    def test_the_examples_build(self):
        for source in sorted(glob.glob(os.path.join(TOP, "examples", "*.c"))):
            self.build(os.path.abspath(source))

    def test_a_header_needs_no_other_package(self):
        for name, needs in (("holdfast.pc", []), ("holdfast-net.pc", ["Requires: holdfast"])):
            with open(os.path.join(self.pc, name), encoding="utf-8") as pc:
                lines = pc.read().split("\n")
            self.assertEqual([line for line in lines if line.startswith("Requires")], needs)
        self.assertIn("-lsqlite3", self.pkg_config("--libs", "--static"))


if __name__ == "__main__":
    unittest.main(verbosity=1)
