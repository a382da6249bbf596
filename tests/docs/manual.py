#!/usr/bin/env python3
"""The manual pages of the library: each public function has one section, and the text of a header
arrives as troff shows it."""

import glob
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
import unittest

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILD = os.path.dirname(os.path.abspath(os.environ["HOLDFAST"]))
SHOWN = r"""/* Widgets: parts that turn.
 *
 * A widget is opened once.
 * .hidden is not a request, and 'quoted' neither.
 *
 *     hf_widget_turn(w);
 *     puts("C:\\n"); -- twice
 *
 *   name  for people
 *   size  0: the
 *         default
 */
#ifndef HOLDFAST_WIDGET_H
#define HOLDFAST_WIDGET_H

#include <holdfast/err.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_widget;

/* How it turns; see holdfast/holdfast.h. */
enum hf_way { HF_LEFT, HF_RIGHT };

/* One turn. */
struct hf_turned;

/* Turns it, by 5 … 9. HF_EINVAL for no widget, and what is
 * HF_EBUSY. */
HF_API HF_MUST_USE int hf_widget_turn(struct hf_widget *widget, enum hf_way way,
                                      const char *reason_of_the_caller, struct hf_err *err);
HF_API void hf_widget_stop(struct hf_widget *widget); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
"""
ERR = '/* Codes: all. */\n#define HF_ERRORS(X) \\\n    X(INVAL, -3, "inval", "bad", T, "x", 2, 4) \\\n' \
    '    X(BUSY, -11, "busy", \\\n      "in use", T, "x", 2, 4)\n'
PAGE = r'''.TH HOLDFAST_WIDGET 3 "" "holdfast 1.2.3" "Library Functions"
.nh
.ad l
.SH NAME
holdfast_widget \- Widgets: parts that turn
.SH SYNOPSIS
.nf
#include <holdfast/widget.h>

cc \&... $(pkg\-config \-\-cflags \-\-libs holdfast\-net)
.fi
.PP
.nf
int hf_widget_turn(struct hf_widget *widget, enum hf_way way,
    const char *reason_of_the_caller, struct hf_err *err);
void hf_widget_stop(struct hf_widget *widget);
.fi
.SH DESCRIPTION
.PP
Widgets: parts that turn.
.PP
A widget is opened once.
\&.hidden is not a request, and \(aqquoted\(aq neither.
.PP
.nf
    hf_widget_turn(w);
    puts("C:\e\en"); \-\- twice
.fi
.TP
\fBname\fR
for people
.TP
\fBsize\fR
0: the
default
.SH FUNCTIONS
.SS hf_widget_turn(), hf_widget_stop()
.PP
.nf
int hf_widget_turn(struct hf_widget *widget, enum hf_way way,
    const char *reason_of_the_caller, struct hf_err *err);
void hf_widget_stop(struct hf_widget *widget); /* NULL is fine */
.fi
.PP
Turns it, by 5 \[u2026] 9. HF_EINVAL for no widget, and what is
HF_EBUSY.
.SH TYPES AND CONSTANTS
.SS enum hf_way
.PP
.nf
enum hf_way { HF_LEFT, HF_RIGHT };
.fi
.PP
How it turns; see holdfast/holdfast.h.
.SS struct hf_turned
.PP
.nf
struct hf_turned;
.fi
.PP
One turn.
.SH ERRORS
The codes that the sections of functions name, with their general meaning. Class and remedy of each are in \fBholdfast_err\fR(3), the errors of a store in \fBholdfast_store\fR(3).
.TP
\fBHF_EINVAL\fR
bad: hf_widget_turn()
.TP
\fBHF_EBUSY\fR
in use: hf_widget_turn()
.SH SEE ALSO
\fBholdfast\fR(3),
\fBholdfast_err\fR(3)
'''
# As a terminal of 80 columns shows them; of the second the words only.
VERSION = """
FUNCTIONS
   hf_version()
       const char *hf_version(void);

       Returns the version of the library that the program runs with, as
       HF_VERSION: static text.

TYPES AND CONSTANTS
   HF_VERSION
       #define HF_VERSION "0.1.0"

       The version of the headers that a program was compiled with.
"""
DEFERRED = """
   hf_invocation_wait_key()
       int hf_invocation_wait_key(struct hf_invocation *call,
           char ret_key[HF_WAIT_KEY_TEXT], struct hf_err *err);

       A deferred call: `run` starts something outside, takes the key under
       which its end can be reported (hf_wait_resolve), and defers instead of
       answering. The turn is put away, and no worker is needed until the
       answer comes. An answer that was set before is forgotten.
"""


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


class Manual(unittest.TestCase):
    def made(self, name):
        return read(os.path.join(BUILD, "docs", "man", name))

    def shown(self, name):
        done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-P-cbou", "-rLL=80n",
                               os.path.join(BUILD, "docs", "man", name)],
                              encoding="utf-8", capture_output=True, check=True)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def test_a_header_becomes_this_page(self):
        with tempfile.TemporaryDirectory(prefix="holdfast-manual-") as folder:
            for name, text in (("err", ERR), ("widget", SHOWN), ("holdfast", "/* All of it. */\n")):
                with open(os.path.join(folder, name + ".h"), "w", encoding="utf-8") as out:
                    out.write(text)
            subprocess.run([os.path.join(TOP, "tools", "manual.py"), "1.2.3", folder,
                            *sorted(glob.glob(folder + "/*.h"))], check=True)
            self.assertEqual(read(os.path.join(folder, "holdfast_widget.3")), PAGE)
            self.assertIn(".TP\n\\fBholdfast_widget\\fR(3)\nWidgets: parts that turn.\n.br\n"
                          "hf_widget_turn, hf_widget_stop\n", read(os.path.join(folder, "holdfast.3")))

    def test_each_function_has_its_section_in_the_page_of_its_header(self):
        spec = importlib.util.spec_from_file_location("headers", os.path.join(TOP, "tests", "docs", "headers.py"))
        headers = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(headers)
        names = [name for name in headers.headers() if "/sys/" not in name]
        pages = {name: re.sub(r"\.h$", ".3", name.replace("/", "_")) for name in names}
        pages["holdfast/holdfast.h"] = "holdfast.3"
        self.assertEqual(sorted(pages.values()),
                         sorted(map(os.path.basename, glob.glob(BUILD + "/docs/man/*.3"))))
        index = self.made("holdfast.3")
        for name, page in pages.items():
            titles = re.findall(r"(?m)^\.SS (.*\(\).*)$", self.made(page))
            self.assertEqual(sorted(re.findall(r"(\w+)\(\)", " ".join(titles))),
                             sorted(headers.declared(name)), page)
            for function in headers.declared(name):
                self.assertEqual(len(re.findall(rf"\b{function}\b", index)), 1, function)

    def test_a_code_that_a_comment_names_is_in_the_errors(self):
        self.assertRegex(self.made("holdfast_lease.3"), r"\\fBHF_EHELD\\fR\n.*: hf_lease_take\(\)\n")
        self.assertNotIn(".SH ERRORS", self.made("holdfast_version.3"))

    def test_the_library_to_link_with_is_named(self):
        for page, library in (("work", "holdfast"), ("loop", r"holdfast\-net")):
            self.assertIn(f"\\-\\-libs {library})", self.made(f"holdfast_{page}.3"))

    @unittest.skipUnless(shutil.which("groff"), "no groff")
    def test_pages_are_clean_roff_and_read_as_the_headers_do(self):
        for page in glob.glob(BUILD + "/docs/man/*.3"):
            self.assertIn("SEE ALSO", self.shown(page))
        self.assertIn(VERSION, self.shown("holdfast_version.3"))
        self.assertIn(" ".join(DEFERRED.split()), " ".join(self.shown("holdfast_tool.3").split()))


if __name__ == "__main__":
    unittest.main()
