"""Tests; a package so that they share helpers such as ``tests.fake_reports``."""
