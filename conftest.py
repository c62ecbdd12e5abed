"""Shared by all tests: pytester for the plugin's own tests, and a Ctrl-C that works."""

import signal

pytest_plugins = ["pytester"]

# A background job inherits that SIGINT is ignored; tests of Ctrl-C, and what they start, want it back.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
