"""What PyTorch and the libraries around it do, as plain tables; each names the source of its facts.

Tables only: no decision about user code is made here, nothing is computed, nothing outside the standard library is
imported. ``tests/analysis/test_knowledge.py`` holds them against the installed PyTorch.
"""
