#!/usr/bin/env python3
"""fire.py on PostgreSQL."""

import sys

import fire

sys.argv[1:1] = ["--engine", "postgres"]
sys.exit(fire.main())
