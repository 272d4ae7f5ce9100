"""Tests of the analysis, folder for folder."""
