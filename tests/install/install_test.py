"""What `cmake --install` makes works where it was not built: the program runs, and another project links the library."""

import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(os.environ["RETORT_SOURCE"])
BUILD = Path(os.environ["RETORT_PROGRAM"]).parents[1]
MODEL = SOURCE / "models" / "europa-5m"


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, **options)
    return done.returncode, done.stdout + done.stderr


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        made = Path(cls.folder.name) / "made"
        code, output = run("cmake", "--install", BUILD, "--prefix", made)
        assert code == 0, output
        cls.prefix = Path(cls.folder.name) / "moved"  # nothing in it may depend on where it was made
        shutil.move(made, cls.prefix)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_has_the_usual_layout(self):
        for name in ("bin/retort", "lib/libretort.so", "include/retort/base/error.h", "include/retort/pipeline/pipeline.h",
                     "lib/cmake/retort/retortConfig.cmake", "lib/cmake/retort/retortConfigVersion.cmake",
                     "share/retort/recipes/quickstart.yaml", "share/retort/tasks/arc_easy.yaml", "share/retort/models/europa-5m/config.json"):
            self.assertTrue((self.prefix / name).is_file(), name)
        sources = [path for path in self.prefix.rglob("*") if path.suffix in (".cpp", ".a")]
        self.assertEqual(sources, [])

    def test_program_computes(self):
        code, output = run(self.prefix / "bin" / "retort", "generate", "models/europa-5m", "--prompt", "The",
                           "--max-new-tokens", "1", cwd=self.prefix / "share" / "retort")
        self.assertEqual(code, 0, output)
        self.assertTrue(output.startswith("The"), output)

    def test_program_reads_parquet_where_the_build_does(self):
        table = self.prefix.with_name("a.parquet")
        seed = json.loads((SOURCE / "tests" / "fuzz" / "parquet_seeds.json").read_text())[0]
        table.write_bytes(base64.b64decode(seed))
        code, output = run(self.prefix / "bin" / "retort", "tokenize", MODEL, table)
        if (self.prefix / "lib" / "libretort_parquet.so").exists():
            self.assertEqual(code, 3, output)
            self.assertIn("row 2, column \"text\": expected text, found null", output)  # the seed's third row
        else:
            self.assertEqual(code, 5, output)
            self.assertIn("built without Apache Arrow", output)

    def test_program_takes_the_library_beside_it(self):
        shutil.copytree(self.prefix, self.prefix.with_name("broken"))
        broken = self.prefix.with_name("broken")
        for library in (broken / "lib").glob("libretort.so*"):
            library.unlink()
        environment = dict(os.environ, LD_LIBRARY_PATH="")
        code, output = run(broken / "bin" / "retort", "generate", MODEL, "--prompt", "The", env=environment)
        self.assertEqual(code, 5, output)
        self.assertIn("retort: error: cannot load the library that computes", output)
        self.assertEqual(run(broken / "bin" / "retort", "--help")[0], 0)

    def test_another_project_links_the_library(self):
        build = self.prefix.with_name("consumer")
        code, output = run("cmake", "-S", SOURCE / "tests" / "install" / "consumer", "-B", build,
                           f"-DCMAKE_PREFIX_PATH={self.prefix}")
        self.assertEqual(code, 0, output)
        code, output = run("cmake", "--build", build)
        self.assertEqual(code, 0, output)
        self.assertEqual(run(build / "consumer", MODEL), (0, "5509824 13\n"))
        code, output = run(build / "consumer", self.prefix)  # an error of the library arrives as what it is
        self.assertEqual(code, 4, output)
        self.assertIn("refused: ", output)

    def test_another_torch_is_refused_in_one_sentence(self):
        config = (self.prefix / "lib" / "cmake" / "retort" / "retortConfig.cmake").read_text()
        built_with = Path(re.search(r"set\(RETORT_TORCH (/.*)\)", config).group(1))
        torch = self.prefix.with_name("torch")
        torch.mkdir()
        for name in ("lib", "include"):
            (torch / name).symlink_to(built_with / name)
        (torch / "version.py").write_text("__version__ = '2.11.9'\n")
        code, output = run("cmake", "-S", SOURCE / "tests" / "install" / "consumer", "-B", self.prefix.with_name("refused"),
                           f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DRETORT_TORCH={torch}")
        self.assertNotEqual(code, 0)
        self.assertRegex(" ".join(output.split()), r"Retort was built with torch \S+, found 2.11.9 at")


if __name__ == "__main__":
    unittest.main()
