"""Retort's program, and where its recipes and the model of the quickstart lie."""

import os
import sys

_package = os.path.dirname(os.path.abspath(__file__))
share = os.path.join(_package, "share", "retort")


def main():
    """Becomes the program.  It looks for torch beside this package; elsewhere it has to be told."""
    if not os.path.isdir(os.path.join(_package, os.pardir, "torch", "lib")):
        from importlib.util import find_spec

        torch = find_spec("torch")
        if torch:
            folders = [os.path.join(torch.submodule_search_locations[0], "lib"), os.environ.get("LD_LIBRARY_PATH")]
            os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, folders))
    os.execv(os.path.join(_package, "bin", "retort"), ["retort", *sys.argv[1:]])
