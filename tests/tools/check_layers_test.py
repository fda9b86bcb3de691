"""tools/check_layers.py passes a clean tree and names file and line of every kind of violation planted in it."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
CHECKER = REPOSITORY / "tools" / "check_layers.py"

CLEAN = {
    "retort/CMakeLists.txt": "add_subdirectory(base)  # lowest\nadd_subdirectory(io)\nadd_subdirectory(comm)\nadd_subdirectory(ops)\n",
    "retort/base/CMakeLists.txt": "retort_module(base\n  SOURCES error.cpp\n  DEPENDS)\n",
    "retort/base/error.h": "#pragma once\n#include <string>\n",
    "retort/base/error.cpp": '#include "retort/base/error.h"\n',
    "retort/io/CMakeLists.txt": "retort_module(io SOURCES file.cpp DEPENDS base)\n",
    "retort/io/file.cpp": '#include "retort/base/error.h"\n#include <zlib.h>\n',
    "retort/comm/CMakeLists.txt": "retort_module(comm SOURCES group.cpp DEPENDS base)\n",
    "retort/comm/group.cpp": "#include <mpi.h>\n",
    "retort/ops/CMakeLists.txt": "retort_module(ops SOURCES norm.cpp DEPENDS io LINKS zlib TORCH)\n",
    "retort/ops/norm.cpp": '#include <ATen/ATen.h>\n// #include "retort/comm/group.h"\n#include "retort/base/error.h"\n',
    "cli/CMakeLists.txt": "add_executable(retort_program main.cpp)\ntarget_link_libraries(retort_program PRIVATE retort::ops)\n",
    "cli/main.cpp": '#include "retort/ops/norm.h"\n#include "retort/io/file.h"\n',
    "tests/io/CMakeLists.txt": "retort_test(io SOURCES file_test.cpp)\n",
    "tests/io/file_test.cpp": '#include "retort/io/file.h"\n#include "retort/base/error.h"\n',
}


def run(files):
    """Exit code and output of the checker on a tree of `files`."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([sys.executable, CHECKER, folder], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr


class CheckLayers(unittest.TestCase):
    def refuses(self, planted, *expected):
        code, output = run({**CLEAN, **planted})
        self.assertEqual(code, 1, output)
        for text in expected:
            self.assertIn(text, output)
        self.assertIn("1 violations", output)

    def test_passes_a_clean_tree(self):
        code, output = run(CLEAN)
        self.assertEqual((code, output), (0, "layers: includes point downwards only\n"))

    def test_passes_this_checkout(self):
        done = subprocess.run([sys.executable, CHECKER], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_refuses_an_upward_include(self):
        self.refuses({"retort/base/error.cpp": '\n#include "retort/io/file.h"\n'},
                     "retort/base/error.cpp:2: includes retort/io/file.h: retort/base does not depend on io")

    def test_refuses_an_include_of_an_undeclared_neighbour(self):
        self.refuses({"retort/ops/norm.cpp": '  #  include <retort/comm/group.h>\n'}, "retort/ops/norm.cpp:1:")

    def test_refuses_an_upward_include_by_a_relative_path(self):
        self.refuses({"retort/base/error.cpp": '#include "../comm/group.cpp"\n'}, "retort/comm/group.cpp")

    def test_refuses_an_upward_include_in_a_folder_below_a_layer(self):
        self.refuses({"retort/comm/mpi/group.h": '#include "retort/ops/norm.h"\n'}, "retort/comm/mpi/group.h:1:")

    def test_refuses_an_upward_dependency(self):
        self.refuses({"retort/io/CMakeLists.txt": "retort_module(io SOURCES file.cpp DEPENDS base comm)\n"},
                     "retort/io/CMakeLists.txt:1: io depends upwards on comm")

    def test_refuses_a_cycle(self):
        code, output = run({**CLEAN, "retort/base/CMakeLists.txt": "retort_module(base DEPENDS io)\n"})
        self.assertEqual(code, 1, output)
        self.assertIn("retort/base/CMakeLists.txt:1: cycle: io depends on base in turn", output)

    def test_refuses_an_unknown_dependency(self):
        self.refuses({"retort/io/CMakeLists.txt": "# Files.\nretort_module(io SOURCES file.cpp DEPENDS base bytes)\n"},
                     "retort/io/CMakeLists.txt:2: io depends on bytes, which is no layer")

    def test_refuses_torch_headers_in_a_torch_free_layer(self):
        for header in ("ATen/core/Tensor.h", "c10/util/Half.h", "torch/csrc/autograd/autograd.h"):
            self.refuses({"retort/io/file.cpp": f"#include <{header}>\n"}, f"includes {header}: retort/io declares no TORCH")

    def test_refuses_a_torch_free_layer_above_torch(self):
        self.refuses({"retort/CMakeLists.txt": CLEAN["retort/CMakeLists.txt"] + "add_subdirectory(top)\n",
                      "retort/top/CMakeLists.txt": "retort_module(top SOURCES top.cpp DEPENDS ops)\n"},
                     "top declares no TORCH but depends on ops")

    def test_refuses_the_header_of_everything(self):
        self.refuses({"retort/ops/norm.cpp": "#include <torch/torch.h>\n"}, "includes torch/torch.h")

    def test_refuses_apache_arrow_outside_its_module(self):
        for header in ("arrow/api.h", "parquet/file_reader.h"):
            self.refuses({"retort/io/file.cpp": f"#include <{header}>\n"},
                         f"retort/io/file.cpp:1: includes {header}: only retort/parquet/arrow knows Apache Arrow")

    def test_refuses_cluster_headers_outside_comm(self):
        for header in ("mpi.h", "nccl.h", "rccl/rccl.h", "cuda_runtime.h", "hip/hip_runtime.h"):
            self.refuses({"retort/ops/norm.cpp": f"#include <{header}>\n"}, f"includes {header}: only retort/comm")

    def test_refuses_reference_versions_outside_the_tests(self):
        for place in ("retort/ops/norm.cpp", "retort/ops/device/norm.cpp", "cli/main.cpp"):
            self.refuses({place: '#include "retort/ops/reference/formulas.h"\n'},
                         f"{place}:1: includes retort/ops/reference/formulas.h: only tests/ knows the reference versions")

    def test_passes_reference_versions_in_tests_and_among_themselves(self):
        include = '#include "retort/ops/reference/formulas.h"\n'
        code, output = run({**CLEAN, "retort/ops/reference/formulas.h": "#pragma once\n#include <ATen/ATen.h>\n",
                            "retort/ops/reference/formulas.cpp": include,
                            "tests/ops/CMakeLists.txt": "retort_test(ops SOURCES norm_test.cpp)\n",
                            "tests/ops/norm_test.cpp": include})
        self.assertEqual(code, 0, output)

    def test_refuses_the_program_in_the_library(self):
        self.refuses({"retort/io/file.cpp": '#include "cli/main.h"\n'}, "the library knows nothing of cli/")

    def test_refuses_a_test_that_reaches_above_its_layer(self):
        self.refuses({"tests/io/file_test.cpp": '#include "retort/comm/group.h"\n'}, "tests/io does not depend on comm")

    def test_refuses_a_folder_that_declares_no_module(self):
        self.refuses({"retort/stray/file.h": '#include "retort/ops/norm.h"\n'}, "retort/stray declares no retort_module()")

    ROOMS = {"retort/ops/CMakeLists.txt": "retort_module(ops SOURCES norm.cpp DEPENDS io ROOMS cpu cuda TORCH)\n",
             "retort/ops/cpu/norm.cpp": '#include "retort/ops/norm.h"\n#include "retort/ops/cpu/norm.h"\n',
             "retort/ops/cuda/norm.cpp": '#include "retort/ops/cpu/norm.h"\n'}

    def test_passes_includes_of_earlier_rooms_and_of_what_lies_beside_them(self):
        self.assertEqual(run({**CLEAN, **self.ROOMS})[0], 0)

    def test_refuses_an_include_of_a_later_room(self):
        for place in ("retort/ops/norm.cpp", "retort/ops/cpu/norm.cpp"):
            self.refuses({**self.ROOMS, place: '#include "retort/ops/cuda/norm.h"\n'},
                         f"{place}:1: includes retort/ops/cuda/norm.h: room cuda of ops lies above")

    def test_refuses_a_room_that_is_not_named_and_one_that_is_not_there(self):
        self.refuses({**self.ROOMS, "retort/ops/hip/norm.cpp": ""}, "retort/ops/CMakeLists.txt:1: room hip of ops is missing in ROOMS")
        self.refuses({**self.ROOMS, "retort/ops/CMakeLists.txt": self.ROOMS["retort/ops/CMakeLists.txt"].replace("cpu", "hip cpu")},
                     "retort/ops/CMakeLists.txt:1: room hip of ops has no sources")

    OPTIONS = {"retort/CMakeLists.txt": CLEAN["retort/CMakeLists.txt"] + "add_subdirectory(top)\n",
               "retort/ops/options.h": "#pragma once\n#include <string>\n#include \"retort/io/options.h\"\n#include \"retort/base/error.h\"\n",
               "retort/top/CMakeLists.txt": "retort_module(top SOURCES top.cpp DEPENDS base OPTIONS ops)\n"}

    def test_passes_options_of_a_layer_that_is_not_linked(self):
        code, output = run({**CLEAN, **self.OPTIONS, "retort/top/top.cpp": '#include "retort/ops/options.h"\n'})
        self.assertEqual(code, 0, output)

    def test_refuses_another_header_of_a_layer_that_gives_its_options_only(self):
        self.refuses({**self.OPTIONS, "retort/top/top.cpp": '#include "retort/ops/norm.h"\n'},
                     "retort/top/top.cpp:1: includes retort/ops/norm.h: retort/top does not depend on ops")

    def test_refuses_options_that_need_more_than_options(self):
        for header in ('"retort/ops/norm.h"', "<ATen/core/Tensor.h>"):
            self.refuses({**self.OPTIONS, "retort/top/top.cpp": "", "retort/ops/options.h": f"#include {header}\n"},
                         "retort/ops/options.h:1: includes", "top reads this file and links nothing of ops")

    def test_refuses_the_name_of_a_family_outside_its_table(self):
        table = {"retort/architecture/families/llama.cpp": 'const Family kLlama{.architecture = "LlamaForCausalLM"};\n',
                 "retort/architecture/CMakeLists.txt": "retort_module(architecture SOURCES families/llama.cpp DEPENDS base)\n",
                 "retort/CMakeLists.txt": CLEAN["retort/CMakeLists.txt"] + "add_subdirectory(architecture)\n",
                 "retort/io/gguf_config.cpp": 'const char* kName = "LlamaForCausalLM";\n',
                 "cli/main.cpp": '// "LlamaForCausalLM"\n'}
        self.assertEqual(run({**CLEAN, **table})[0], 0)
        self.refuses({**table, "retort/ops/norm.cpp": 'bool old(const auto& c) { return c == "LlamaForCausalLM"; }\n'},
                     "retort/ops/norm.cpp:1", "names the family LlamaForCausalLM")

    def test_refuses_a_tree_without_layers(self):
        code, output = run({"README.md": ""})
        self.assertEqual(code, 1, output)


if __name__ == "__main__":
    unittest.main()
