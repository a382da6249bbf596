#!/usr/bin/env python3
"""The hammer with kill -9: what was acknowledged is never lost, and every unit comes to its
end though the processes that held it did not."""

import sys

import hammer

if __name__ == "__main__":
    sys.exit(0 if hammer.in_scratch(hammer.run, units=4000, kills=40) else 1)
