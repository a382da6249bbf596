#!/usr/bin/env python3
"""Every text in prompts/ is part of the build and used, and no text for a model is in code."""

import os
import re
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def prompts():
    for folder, _, names in os.walk(os.path.join(ROOT, "prompts")):
        for name in sorted(names):
            yield os.path.basename(folder), name


class Prompts(unittest.TestCase):
    def test_each_is_built_and_used(self):
        built = read("src/core/meson.build")
        source = "".join(read(folder, name) for folder, _, names in os.walk(os.path.join(ROOT, "src/core"))
                         for name in names if name.endswith(".c"))
        seen = 0
        for folder, name in prompts():
            stem = os.path.splitext(name)[0]
            self.assertIn(f"'../../prompts/{folder}/{name}'", built)
            self.assertRegex(source, rf"\bHF_PROMPT_{folder.upper()}_{stem.upper()}\b", name)
            seen += 1
        self.assertGreater(seen, 20)

    def test_each_is_what_a_model_can_read(self):
        for folder, name in prompts():
            text = read("prompts", folder, name)
            self.assertNotRegex(text, r"[^\n -~]", name)
            for left, right in ("()", "{}", "[]"):
                self.assertEqual(text.count(left), text.count(right), name)
            self.assertFalse(re.search(r"\b(RLM|turn machine|protocol)\b", text), name)


if __name__ == "__main__":
    unittest.main()
