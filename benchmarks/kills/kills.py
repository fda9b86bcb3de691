#!/usr/bin/env python3
"""Kills ranks of a training run at random moments and starts it again, until it ends.

    kills.py --program build/release/cli/retort --text FILE --kills 50 [--ranks 1,2,3] [--seed 1] [--mpirun PROGRAM]

A stage trains a small model.  Each time it is started on one of the numbers of ranks; a moment later one of its
processes gets SIGKILL.  What is looked at:

  - all processes end, and how long after the kill;
  - `retort autopsy` and the next start name the rank that was killed, where there were several;
  - the next start goes on from the last checkpoint: no more steps are lost than lie between two of them;
  - the run ends, and its model has the loss of a run that nothing disturbed.

Prints one JSON object with the counts; ends with 1 where one of these did not hold.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import hosts  # noqa: E402

EVERY = 4  # steps between two checkpoints

RECIPE = """version: 1
data:
  text: {{path: {text}, held_out: {{every: 4}}}}
stages:
  - {{name: born, kind: finetune, from: {model}, data: [text], tokens: {tokens}, packing: {{sequence_length: 64}},
     batch: {{sequences: 6}}, checkpoint_every_steps: {every}, evaluate_every_steps: 1000000, evaluate_tokens: 4k}}
"""


def command(options, directory, ranks):
    run = [options.program, "run", "recipe.yaml", "--run-dir", directory, "--dtype", "fp32"]
    if options.hosts:
        return hosts.mpirun(ranks // len(hosts.HOSTS), run)
    return [options.mpirun, "-n", str(ranks), *run] if options.mpirun else [*run, "--ranks", str(ranks)]


def as_machines():
    """What makes each rank that mpirun starts a machine of its own, beside others on few processors."""
    return hosts.CROWDED | {"RETORT_RANKS_PER_NODE": "1"}


def rank_of(pid):
    """As its launcher told it; 0 where it was told nothing."""
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return 0
    return next((int(value) for name, _, value in (variable.partition(b"=") for variable in variables)
                 if name in (b"OMPI_COMM_WORLD_RANK", b"RETORT_RANK")), 0)


def below(pid):
    """A process and all that it started."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(process for child in children for process in below(int(child)))]


def is_rank(pid):
    """Whether it is the program, whatever it was started as: mpirun has daemons and shells below it as well."""
    try:
        return os.readlink(f"/proc/{pid}/exe").endswith("/retort")
    except OSError:
        return False


def processes_of(pid):
    """The ranks that a process started, in their order; itself where there is one."""
    return sorted((process for process in below(pid) if process != pid and is_rank(process)), key=rank_of) or [pid]


def last_checkpoint(folder, directory):
    steps = [int(path.name[5:]) for path in (folder / directory / "checkpoints/born").glob("step-*")]
    return max(steps, default=0)


def last_step(folder, directory):
    try:
        lines = (folder / directory / "metrics.jsonl").read_text().splitlines()
        return max((json.loads(line).get("step", 0) for line in lines if line.endswith("}")), default=0)
    except OSError:
        return 0


def held_out_loss(folder, directory):
    result = json.loads((folder / directory / "stages/born.json").read_text())
    return statistics.mean(result["final"]["held_out"].values())


def ended_all(running, pids, limit_seconds=120):
    """Seconds until the last process has ended; None: it did not."""
    start = time.monotonic()
    while running.poll() is None or any(Path(f"/proc/{pid}").exists() for pid in pids):
        if time.monotonic() - start > limit_seconds:
            return None
        time.sleep(0.01)
    return time.monotonic() - start


class Kills:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.random = random.Random(options.seed)
        self.seconds, self.lost_steps, self.faults = [], [], []
        self.kills = self.named = self.nameable = self.reached = 0

    def fault(self, text):
        self.faults.append(f"kill {self.kills}: {text}")

    def one(self):
        """One start; False once the run has ended by itself."""
        ranks = self.random.choice(self.options.ranks)
        before = last_checkpoint(self.folder, "killed")
        with open(self.folder / "stderr", "w+") as log:
            running = subprocess.Popen(command(self.options, "killed", ranks), cwd=self.folder, stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=log)
            reached = last_step(self.folder, "killed")
            wanted = reached - reached % EVERY + self.random.randint(1, 3 * EVERY)
            while running.poll() is None and last_step(self.folder, "killed") < wanted:
                time.sleep(0.005)
            time.sleep(self.random.random() * 0.1)
            pids = processes_of(running.pid)
            if running.poll() is not None:
                log.seek(0)
                return False
            victim = self.random.randrange(len(pids))
            self.kills += 1
            os.kill(pids[victim], signal.SIGKILL)
            taken = ended_all(running, pids)
            if taken is None:
                self.fault("not all ranks ended")
            elif ranks > 1:
                self.seconds.append(taken)
            log.seek(0)
            text = log.read()
        if "memory plan" in text.split("run directory")[-1]:  # the stage had begun
            self.look_at_start(text, before)
            if ranks > 1:
                self.look_at_autopsy(victim)
        return True

    def look_at_start(self, text, before):
        found = re.search(r"going on after step (\d+)", text)
        if before and "step" in text and (not found or int(found[1]) < before):
            self.fault(f"a checkpoint of step {before} was there, and it went on from {found and found[1]}")
        if found:
            self.lost_steps.append(max(0, self.reached - int(found[1])))
        self.reached = last_step(self.folder, "killed")

    def look_at_autopsy(self, victim):
        told = subprocess.run([self.options.program, "autopsy", "killed"], cwd=self.folder, capture_output=True, text=True)
        self.nameable += 1
        if f"rank {victim} " in told.stdout + told.stderr:
            self.named += 1
        else:
            self.fault(f"rank {victim} was killed; autopsy: {(told.stdout + told.stderr).strip()[:200]}")


def parser_of(description):
    """With the arguments that faults.py has too."""
    def resolved(text):
        return str(Path(text).resolve())

    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, type=resolved)
    parser.add_argument("--text", required=True, type=resolved)
    parser.add_argument("--model", default="models/europa-5m", type=resolved)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder")
    parser.set_defaults(hosts=False)  # an option of faults.py
    parser.add_argument("--mpirun", help="starts the ranks, each as a machine of its own, instead of the program")
    return parser


def parsed(parser):
    options = parser.parse_args()
    if options.mpirun:
        os.environ.update(as_machines())
    return options


def write_recipe(options, folder, steps):
    folder.mkdir(exist_ok=True)
    (folder / "recipe.yaml").write_text(
        RECIPE.format(text=options.text, model=options.model, tokens=steps * 6 * 64, every=EVERY))


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--ranks", type=lambda text: [int(part) for part in text.split(",")], default=[1, 2, 3])
    options = parsed(parser)
    folder = Path(options.folder or tempfile.mkdtemp(prefix="kills-"))
    steps = options.kills * 2 * EVERY
    write_recipe(options, folder, steps)
    subprocess.run(command(options, "straight", 1), cwd=folder, check=True, capture_output=True)
    kills = Kills(options, folder)
    while kills.kills < options.kills and kills.one():
        pass
    subprocess.run(command(options, "killed", 2), cwd=folder, check=True, capture_output=True)
    straight, killed = held_out_loss(folder, "straight"), held_out_loss(folder, "killed")
    if abs(straight - killed) > 0.01 * straight:
        kills.faults.append(f"held-out loss {killed}, without kills {straight}")
    print(json.dumps({
        "kills": kills.kills, "steps": steps, "named": kills.named, "nameable": kills.nameable,
        "largest_seconds_to_end": max(kills.seconds, default=0), "median_seconds_to_end": statistics.median(kills.seconds or [0]),
        "largest_lost_steps": max(kills.lost_steps, default=0), "steps_between_checkpoints": EVERY,
        "held_out_loss": killed, "held_out_loss_without_kills": straight, "faults": kills.faults}, indent=1))
    if not options.folder:
        shutil.rmtree(folder)
    sys.exit(1 if kills.faults else 0)


if __name__ == "__main__":
    main()
