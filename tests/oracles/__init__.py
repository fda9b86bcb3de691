"""Oracles: reference outputs that the C++ tests compare with, computed by programs that are not ours.

A module `<part>.py` offers `write(out_dir: Path, shared: Path | None) -> None` and writes below `out_dir / "<part>"`;
`shared` is a directory of extra test data where there is one.  What several modules need lies in a file whose name
begins with an underscore.  `tools/make_oracles.py` runs them, and keeps what is still up to date.
"""
