"""Shared by all tests: pytester for the plugin's own tests."""

pytest_plugins = ["pytester"]
