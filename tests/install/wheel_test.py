"""The wheel that tools/make_wheel.py packs: what it holds, that it knows no place of this machine, and that it runs."""

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

SOURCE = Path(os.environ["RETORT_SOURCE"])
BUILD = Path(os.environ["RETORT_PROGRAM"]).parents[1]
OF_EVERY_SYSTEM = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2",
                   "ld-linux-aarch64.so.1"}
OF_MPI = {"libretort_openmpi.so": "libmpi.so.40", "libretort_mpich.so": "libmpich.so.12"}


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, **options)
    return done.returncode, done.stdout, done.stderr


def arrow_of_build():
    """The pyarrow package whose Apache Arrow the build links; None where it reads no Parquet files."""
    module = BUILD / "retort" / "libretort_parquet.so"
    if not module.exists():
        return None
    paths = re.search(r"Library rpath: \[(.*)\]", run("readelf", "-d", module)[1]).group(1).split(":")
    return next(path for path in paths if list(Path(path).glob("libparquet.so.*")))


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = Path(cls.folder.name)
        code, output, errors = run(sys.executable, SOURCE / "tools" / "make_wheel.py", "--build", BUILD, "--out", cls.root)
        assert code == 0, errors
        cls.wheel = Path(output.strip())
        cls.archive = zipfile.ZipFile(cls.wheel)
        cls.site = cls.root / "site"
        code, output, errors = run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index",
                                   "--target", cls.site, cls.wheel)
        assert code == 0, errors

    @classmethod
    def tearDownClass(cls):
        cls.archive.close()
        cls.folder.cleanup()

    def file(self, pattern):
        names = [name for name in self.archive.namelist() if re.fullmatch(pattern, name)]
        self.assertEqual(len(names), 1, f"{pattern}: {names}")
        return self.archive.read(names[0])

    def binaries(self):
        return [self.site / "retort" / "bin" / "retort", *(self.site / "retort" / "lib").iterdir()]

    def test_brings_torch_of_the_release_that_it_was_built_with(self):
        self.assertRegex(self.file(r".*/METADATA").decode(), r"\nRequires-Dist: torch==\d+\.\d+\.\*\n")

    def test_records_every_file_with_its_hash(self):
        lines = self.file(r".*/RECORD").decode().splitlines()
        self.assertEqual(sorted(line.split(",")[0] for line in lines), sorted(self.archive.namelist()))
        for name, digest, size in (line.split(",") for line in lines):
            content = self.archive.read(name)
            if not name.endswith("/RECORD"):
                expected = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                self.assertEqual((digest, size), (f"sha256={expected}", str(len(content))), name)

    def test_holds_recipes_and_the_model_of_the_quickstart(self):
        share = self.site / "retort" / "share" / "retort"
        self.assertTrue((share / "recipes" / "quickstart.yaml").is_file())
        self.assertTrue((share / "models" / "europa-5m" / "model.safetensors").is_file())
        self.assertEqual([name for name in self.archive.namelist() if name.endswith((".h", ".cmake", ".a"))], [])

    def test_needs_what_it_holds_torch_and_every_system(self):
        held = {path.name for path in self.binaries()}
        for binary in self.binaries():
            _, dynamic, _ = run("readelf", "-d", binary)
            for name in re.findall(r"NEEDED.*\[(.+)\]", dynamic):
                of_torch = name.startswith(("libtorch", "libc10", "libgomp"))
                of_arrow = binary.name == "libretort_parquet.so" and name.startswith(("libarrow.so", "libparquet.so"))
                # A module is loaded only where a launcher of its MPI library has started the program.
                of_site = binary.name in OF_MPI and name == OF_MPI[binary.name]
                self.assertTrue(name in held | OF_EVERY_SYSTEM or of_torch or of_arrow or of_site, f"{binary.name} needs {name}")

    def test_knows_no_place_of_this_machine(self):
        for binary in self.binaries():
            _, dynamic, _ = run("readelf", "-d", binary)
            self.assertNotIn("RUNPATH", dynamic)
            for path in re.search(r"Library rpath: \[(.*)\]", dynamic).group(1).split(":"):
                self.assertTrue(path.startswith("$ORIGIN"), f"{binary.name}: {path}")

    def test_runs_with_a_torch_that_lies_elsewhere(self):
        environment = dict(os.environ, PYTHONPATH=str(self.site))
        self.assertEqual(run(sys.executable, "-m", "retort", "--help", env=environment)[0], 0)
        code, output, errors = run(sys.executable, "-m", "retort", "generate", SOURCE / "models" / "europa-5m", "--prompt",
                                   "The", "--max-new-tokens", "1", env=environment)
        self.assertEqual(code, 0, errors)
        self.assertTrue(output.startswith("The"), output)

    def test_reads_parquet_by_a_pyarrow_that_lies_beside_it_and_says_what_is_missing(self):
        arrow = arrow_of_build()
        if not arrow:
            self.assertNotIn("pyarrow", self.file(r".*/METADATA").decode())
            return
        self.assertRegex(self.file(r".*/METADATA").decode(), r'\nRequires-Dist: pyarrow==[\d.]+; extra == "parquet"\n')
        table = self.root / "a.parquet"
        seed = json.loads((SOURCE / "tests" / "fuzz" / "parquet_seeds.json").read_text())[0]
        table.write_bytes(base64.b64decode(seed))
        command = [self.site / "retort" / "bin" / "retort", "tokenize", SOURCE / "models" / "europa-5m", table]
        code, _, errors = run(*command)
        self.assertEqual(code, 5, errors)
        self.assertRegex(errors, r"a\.parquet: Apache Arrow, which reads Parquet files, does not load .*pip install pyarrow==")
        (self.site / "pyarrow").symlink_to(arrow)
        code, _, errors = run(*command)
        self.assertEqual(code, 3, errors)
        self.assertIn("row 2, column \"text\": expected text, found null", errors)  # the seed's third row

    def test_says_what_is_missing_without_torch(self):
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(self.site)}
        program = self.site / "retort" / "bin" / "retort"
        code, _, errors = run(program, "generate", SOURCE / "models" / "europa-5m", "--prompt", "The", env=environment)
        self.assertEqual(code, 5, errors)
        self.assertIn("libtorch", errors)


if __name__ == "__main__":
    unittest.main()
