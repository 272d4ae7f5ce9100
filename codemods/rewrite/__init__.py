"""From repairs to new source: edits on text, the builders that make them, the libcst pass that checks them, diffs."""
