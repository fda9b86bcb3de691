"""FindArrowWheel.cmake finds Apache Arrow in an installed pyarrow package, does without, and refuses what cannot work."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(hello LANGUAGES CXX)
list(APPEND CMAKE_MODULE_PATH {repository}/cmake)
set(RETORT_PYARROW 26.0.1)
find_package(ArrowWheel {required})
if(TARGET arrow_wheel::parquet)
  add_executable(hello hello.cpp)
  target_link_libraries(hello PRIVATE arrow_wheel::parquet)
endif()
"""
HELLO = """#include <parquet/arrow/reader.h>
int main() { return fake_parquet("").empty() ? 0 : 1; }
"""
LIBRARY = "#include <string>\nstd::string fake_{name}(std::string s) {{ return s; }}\n"
OLD_ABI = "#define _GLIBCXX_USE_CXX11_ABI 0\n"


class ArrowWheel(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.package = self.root / "site-packages" / "pyarrow"

    def install(self, version="26.0.1", before=""):
        for folder in ("parquet/arrow", "arrow/util"):
            (self.package / "include" / folder).mkdir(parents=True)
        (self.package / "__init__.py").write_text("raise RuntimeError('found without being imported')\n")
        (self.package / "include/parquet/arrow/reader.h").write_text(
            "#include <string>\nstd::string fake_parquet(std::string);\n")
        (self.package / "include/arrow/util/config.h").write_text(f'#define ARROW_VERSION_STRING "{version}"\n')
        for name in ("arrow", "parquet"):
            file = self.package / f"lib{name}.so.2600"
            command = ["g++", "-shared", "-fPIC", "-x", "c++", "-", "-o", file, f"-Wl,-soname,{file.name}"]
            subprocess.run(command, input=before + LIBRARY.format(name=name), text=True, check=True, timeout=60)

    def configure(self, *options, required="", **environment):
        (self.root / "CMakeLists.txt").write_text(PROJECT.format(repository=REPOSITORY, required=required))
        (self.root / "hello.cpp").write_text(HELLO)
        done = subprocess.run(["cmake", "-S", self.root, "-B", self.root / "build", "-DRETORT_PYTHON=python3", *options],
                              env=dict(os.environ, **environment), capture_output=True, text=True, timeout=120)
        return done.returncode, " ".join((done.stdout + done.stderr).split())

    def test_is_found_by_its_directory_and_by_a_python(self):
        self.install()
        for options, environment in (([f"-DRETORT_ARROW={self.package}"], {}),
                                     (["-DRETORT_ARROW="], {"PYTHONPATH": str(self.package.parent)})):
            code, output = self.configure(*options, **environment)
            self.assertEqual(code, 0, output)
            self.assertIn(f"Apache Arrow 26.0.1 at {self.package}", output)
        build = self.root / "build"
        subprocess.run(["cmake", "--build", build], check=True, capture_output=True, timeout=120)
        self.assertEqual(subprocess.run([build / "hello"], timeout=60).returncode, 0)

    def test_a_build_does_without_unless_it_is_asked_for(self):
        nowhere = "-DRETORT_PYTHON=/nonexistent/python"
        code, output = self.configure(nowhere)
        self.assertEqual(code, 0, output)
        self.assertIn("has no pyarrow package): Parquet files are refused", output)
        code, output = self.configure(nowhere, required="REQUIRED")
        self.assertNotEqual(code, 0, output)
        self.assertIn("pip install pyarrow==26.0.1, and set RETORT_ARROW", output)

    def test_another_release_another_abi_and_another_directory_are_refused(self):
        named = f"-DRETORT_ARROW={self.package}"
        code, output = self.configure(named)
        self.assertNotEqual(code, 0, output)
        self.assertIn("holds no headers and libraries of Apache Arrow with Parquet", output)
        self.install(version="19.0.0")
        code, output = self.configure(named)
        self.assertNotEqual(code, 0, output)
        self.assertIn("Apache Arrow 19.0.0", output)

    def test_the_old_abi_is_refused(self):
        self.install(before=OLD_ABI)
        code, output = self.configure(f"-DRETORT_ARROW={self.package}")
        self.assertNotEqual(code, 0, output)
        self.assertIn("built with the old C++ ABI", output)


if __name__ == "__main__":
    unittest.main()
