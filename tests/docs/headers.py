#!/usr/bin/env python3
"""All public headers can be included together, in either order; holdfast.h includes those of
libholdfast; and the functions of the headers are the symbols of the libraries."""

import os
import re
import subprocess
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
INCLUDE = os.path.join(ROOT, "include")
BUILD = os.path.dirname(os.path.abspath(os.environ["HOLDFAST"]))
# Libraries of their own, which are archives without a shared form.
ARCHIVES = {"holdfast/sys/conformance.h", "holdfast/sys/sim.h"}


def headers():
    found = []
    for folder, _, names in os.walk(os.path.join(INCLUDE, "holdfast")):
        found += [os.path.relpath(os.path.join(folder, name), INCLUDE)
                  for name in names if name.endswith(".h")]
    return sorted(found)


def text_of(name):
    with open(os.path.join(INCLUDE, name), encoding="utf-8") as header:
        return re.sub(r"/\*.*?\*/", "", header.read(), flags=re.S)


def declared(name):
    """The functions and data that a header declares with HF_API."""
    return {re.search(r"(\w+)\s*(?:\(|\[|;)", item).group(1)
            for item in re.findall(r"\bHF_API\b(?!\s*__)([^;]*;)", text_of(name))}


def symbols(library):
    """What a shared library shows, without the linker's own names."""
    done = subprocess.run(["nm", "-D", "--defined-only", os.path.join(BUILD, library)], text=True,
                          capture_output=True, check=True)
    return {line.split()[2] for line in done.stdout.splitlines() if line.split()[2].startswith("hf_")}


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

    def test_the_umbrella_includes_the_headers_of_libholdfast(self):
        shown = symbols("libholdfast-net.so")
        wanted = {name for name in headers() if "/sys/" not in name and not declared(name) & shown}
        included = set(re.findall(r"#include <(.*)>", text_of("holdfast/holdfast.h")))
        self.assertEqual(included, wanted - {"holdfast/holdfast.h"})

    def test_what_the_headers_declare_is_what_the_libraries_show(self):
        names = set().union(*(declared(name) for name in headers() if name not in ARCHIVES))
        self.assertGreater(len(names), 400)
        shown = symbols("libholdfast.so"), symbols("libholdfast-net.so")
        self.assertEqual(shown[0] & shown[1], set())
        self.assertEqual(shown[0] | shown[1], names)

    def test_the_version_is_that_of_the_build(self):
        with open(os.path.join(ROOT, "meson.build"), encoding="utf-8") as build:
            version = re.search(r"(?m)^    version: '([\d.]+)'", build.read()).group(1)
        major, minor, patch = map(int, version.split("."))
        header = text_of("holdfast/version.h")
        self.assertIn(f'#define HF_VERSION "{version}"\n', header)
        self.assertIn(f"#define HF_VERSION_NUMBER {major * 10000 + minor * 100 + patch}\n", header)


if __name__ == "__main__":
    unittest.main()
