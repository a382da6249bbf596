#!/usr/bin/env python3
"""The C of a page is that of a program which is built: each block is in one of examples/. Spaces may differ."""

import glob
import os
import re
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PAGES = ["docs/effects.md"]
# Blocks that name what a larger program has; they begin with this.
EXTRACTS = ["struct hf_worker_agent agent = "]


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def squeezed(code):
    return re.sub(r"\s+", "", code)


class Snippets(unittest.TestCase):
    def test_each_block_is_in_an_example_that_is_built(self):
        built = text_of(os.path.join(ROOT, "tests/meson.build"))
        examples = [squeezed(text_of(path)) for path in glob.glob(os.path.join(ROOT, "examples/*.c"))
                    if f"'../examples/{os.path.basename(path)}'" in built]
        for page in PAGES:
            blocks = re.findall(r"^```c\n(.*?)^```", text_of(os.path.join(ROOT, page)), re.S | re.M)
            self.assertGreater(len(blocks), 2)
            for block in blocks:
                if not any(block.startswith(name) for name in EXTRACTS):
                    self.assertTrue(any(squeezed(block) in example for example in examples), f"{page}: {block}")


if __name__ == "__main__":
    unittest.main()
