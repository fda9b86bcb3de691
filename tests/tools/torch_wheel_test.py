"""FindTorchWheel.cmake configures against wheels of every kind, without nvcc or hipcc, and refuses what cannot work."""

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
find_package(TorchWheel REQUIRED)
file(WRITE ${{CMAKE_BINARY_DIR}}/found "${{TORCH_WHEEL_VERSION}}|${{TORCH_WHEEL_CUDA}}|${{TORCH_WHEEL_HIP}}")
add_executable(hello hello.cpp)
target_link_libraries(hello PRIVATE torch_wheel::torch)
"""
HELLO = """#include <ATen/ATen.h>
int main() {
  int threads = 0;
#pragma omp parallel reduction(+ : threads)
  threads += 1;
  return fake_torch() + threads;
}
"""
CPU_LIBRARIES = {"libc10": "#include <string>\nstd::string name_of(std::string s) { return s; }\n",
                 "libtorch_cpu": "int fake_torch() { return 0; }\n", "libtorch": "int fake_all() { return 0; }\n"}
OLD_ABI = "#define _GLIBCXX_USE_CXX11_ABI 0\n"

VERSION_2_13 = """from typing import Optional
__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'rocm', 'xpu']
__version__ = '{version}'
debug = False
cuda: Optional[str] = {cuda}
git_version = 'cf30153c4c131c8164ee7798e5022d810682e2cb'
hip: Optional[str] = {hip}
rocm: Optional[str] = None
xpu: Optional[str] = None
"""
VERSION_PLAIN = '__version__ = "{version}"\ndebug = False\ncuda = {cuda}\ngit_version = "0"\nhip = {hip}\n'


class FakeWheel:
    """A folder that looks like an installed torch package, and a project that uses it."""

    def __init__(self, root, version_py, accelerator=None, sources=None, gomp=None):
        self.root, self.torch = root, root / "site-packages" / "torch"
        (self.torch / "lib").mkdir(parents=True)
        for folder in ("ATen", "torch/csrc/api/include"):
            (self.torch / "include" / folder).mkdir(parents=True)
        (self.torch / "include" / "ATen" / "ATen.h").write_text("int fake_torch();\n")
        if version_py is not None:
            (self.torch / "version.py").write_text(version_py)
        for name, text in (sources or CPU_LIBRARIES).items():
            self.library(name, text)
        if accelerator:
            self.library(f"libc10_{accelerator}", "int fake_c10() { return 0; }\n")
            # As in the real wheel: the library needs another that no folder known to the linker holds.
            self.library(f"libtorch_{accelerator}", "int missing(); int fake_kernels() { return missing(); }\n")
        if gomp:
            self.library(gomp, "extern \"C\" int GOMP_parallel() { return 0; }\n")
        (root / "CMakeLists.txt").write_text(PROJECT.format(repository=REPOSITORY))
        (root / "hello.cpp").write_text(HELLO)

    def library(self, name, text):
        file = self.torch / "lib" / (name if ".so" in name else f"{name}.so")
        command = ["g++", "-shared", "-fPIC", "-x", "c++", "-", "-o", file, f"-Wl,-soname,{file.name}"]
        subprocess.run(command, input=text, text=True, check=True, timeout=60)

    def configure(self, torch=None):
        """Exit code and output of cmake, with neither nvcc nor hipcc to be found."""
        environment = {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/")}
        command = ["cmake", "-S", self.root, "-B", self.root / "build", f"-DRETORT_TORCH={torch or self.torch}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
        return done.returncode, " ".join((done.stdout + done.stderr).split())

    def build(self):
        done = subprocess.run(["cmake", "--build", self.root / "build"], capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr

    def found(self):
        return (self.root / "build" / "found").read_text()

    def needed(self):
        program = self.root / "build" / "hello"
        return subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True, timeout=60).stdout


class TorchWheel(unittest.TestCase):
    def wheel(self, *arguments, **options):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return FakeWheel(Path(folder.name), *arguments, **options)

    def links(self, wheel, found):
        code, output = wheel.configure()
        self.assertEqual(code, 0, output)
        self.assertEqual(wheel.found(), found)
        code, output = wheel.build()
        self.assertEqual(code, 0, output)
        return wheel.needed()

    def refuses(self, wheel, text, torch=None):
        code, output = wheel.configure(torch)
        self.assertNotEqual(code, 0)
        self.assertIn(text, output)

    def test_links_a_cpu_wheel(self):
        needed = self.links(self.wheel(VERSION_2_13.format(version="2.13.0+cpu", cuda="None", hip="None")), "2.13.0+cpu||")
        self.assertIn("Shared library: [libtorch_cpu.so]", needed)
        self.assertIn("Shared library: [libgomp.so.1]", needed)
        self.assertIn("Library rpath:", needed)
        self.assertNotIn("Library runpath:", needed)

    def test_links_a_cuda_wheel_and_keeps_its_kernels(self):
        for text in (VERSION_2_13, VERSION_PLAIN):
            wheel = self.wheel(text.format(version="2.13.0+cu130", cuda="'13.0'", hip="None"), accelerator="cuda")
            needed = self.links(wheel, "2.13.0+cu130|13.0|")
            self.assertIn("Shared library: [libtorch_cuda.so]", needed)
            self.assertIn("Shared library: [libc10_cuda.so]", needed)

    def test_links_a_rocm_wheel_and_keeps_its_kernels(self):
        text = VERSION_2_13.format(version="2.11.0+rocm7.1", cuda="None", hip="'7.1.25424'")
        needed = self.links(self.wheel(text, accelerator="hip"), "2.11.0+rocm7.1||7.1.25424")
        self.assertIn("Shared library: [libtorch_hip.so]", needed)

    def test_links_the_libtorch_archive(self):
        wheel = self.wheel(None)
        (wheel.torch / "build-version").write_text("2.12.1+cpu\n")
        self.links(wheel, "2.12.1+cpu||")

    def test_links_a_renamed_openmp_runtime_by_its_own_name(self):
        text = VERSION_2_13.format(version="2.11.0", cuda="None", hip="None")
        needed = self.links(self.wheel(text, gomp="libgomp-a34b3233.so.1"), "2.11.0||")
        self.assertIn("Shared library: [libgomp-a34b3233.so.1]", needed)
        self.assertNotIn("[libgomp.so.1]", needed)

    def test_refuses_a_directory_that_is_no_torch(self):
        wheel = self.wheel(VERSION_2_13.format(version="2.13.0", cuda="None", hip="None"))
        self.refuses(wheel, "holds no lib/libtorch.so", torch=wheel.root)

    def test_refuses_an_old_torch(self):
        self.refuses(self.wheel(VERSION_PLAIN.format(version="2.9.1+cu128", cuda="'12.8'", hip="None")),
                     "torch 2.9.1+cu128")

    def test_refuses_a_torch_that_states_no_version(self):
        self.refuses(self.wheel("debug = False\n"), "does not state its version")

    def test_refuses_the_old_abi(self):
        sources = {**CPU_LIBRARIES, "libc10": OLD_ABI + CPU_LIBRARIES["libc10"]}
        wheel = self.wheel(VERSION_2_13.format(version="2.13.0", cuda="None", hip="None"), sources=sources)
        self.refuses(wheel, "old C++ ABI")


if __name__ == "__main__":
    unittest.main()
