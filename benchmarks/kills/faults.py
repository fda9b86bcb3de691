#!/usr/bin/env python3
"""The faults of ranks, one after the other: how a run ends, how soon, whether it names the culprit, and whether the next
start goes on.

    faults.py --program build/release/cli/retort --text FILE --trials 5 [--ranks 3] [--seed 1] [--only NAME] [--folder DIR]

A stage trains a small model on several ranks and saves a checkpoint every 4 steps.  Each trial brings one fault into a run of
its own, at a random step.  Seconds are those until the last process has ended; of a damaged checkpoint those until the next
start goes on.  A full disk needs the right to mount a small file system and is left out without it.  Prints a Markdown table;
ends with 1 where a run ended otherwise than it should, or where one in which nothing happened warned of something.
"""

import argparse
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

from kills import EVERY, RECIPE, command, ended_all, last_checkpoint, last_step, processes_of

STEPS = 60


class Trial:
    """A run of its own in which something goes wrong."""

    def __init__(self, options, folder, draw):
        self.options, self.folder, self.draw = options, folder, draw
        self.text, self.code, self.seconds, self.culprit = "", None, None, None
        self.named = self.went_on = True

    def start(self):
        log = open(self.folder / "stderr", "a+")
        return subprocess.Popen(command(self.options, "run", self.options.ranks), cwd=self.folder, stdin=subprocess.DEVNULL,
                                stdout=log, stderr=log)

    def after_steps(self, running, steps):
        while running.poll() is None and last_step(self.folder, "run") < steps:
            time.sleep(0.005)

    def finish(self, running, pids):
        self.seconds = ended_all(running, pids)
        self.code = running.wait() if self.seconds is not None else None
        self.text = (self.folder / "stderr").read_text()

    def signal_rank(self, number):
        running = self.start()
        self.after_steps(running, self.draw.randint(EVERY + 1, 3 * EVERY))
        pids = processes_of(running.pid)
        self.culprit = self.draw.randrange(len(pids))
        os.kill(pids[self.culprit], number)
        self.finish(running, pids)

    def stop(self, ask):
        running = self.start()
        self.after_steps(running, self.draw.randint(EVERY + 1, 3 * EVERY))
        pids = processes_of(running.pid)
        ask(running)
        self.finish(running, pids)

    def damage(self, change):
        """Stops a run, damages a part of its last checkpoint, and starts it again."""
        self.stop(lambda running: running.send_signal(signal.SIGUSR1))
        last = max((self.folder / "run/checkpoints/born").glob("step-*"))
        parts = sorted(path for path in last.iterdir() if path.name != "manifest.json")
        change(self.draw.choice(parts))
        (self.folder / "stderr").write_text("")
        begun = time.monotonic()
        running = self.start()
        while running.poll() is None and "going on after step" not in (self.folder / "stderr").read_text():
            time.sleep(0.005)
        noticed = time.monotonic() - begun
        self.finish(running, [])
        self.seconds = noticed

    def names_culprit(self):
        told = subprocess.run([self.options.program, "autopsy", "run"], cwd=self.folder, capture_output=True, text=True)
        mark = f"rank {self.culprit} "
        return mark in self.text and mark in told.stdout + told.stderr

    def goes_on(self):
        """The same command ends the run, from a checkpoint that lies no more than two behind."""
        before = last_checkpoint(self.folder, "run")
        done = subprocess.run(command(self.options, "run", self.options.ranks), cwd=self.folder, capture_output=True, text=True)
        found = re.search(r"going on after step (\d+)", done.stderr)
        return done.returncode == 0 and found is not None and int(found[1]) >= before - EVERY


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def ask_by_file(running_folder):
    return lambda running: (running_folder / "run/stop").write_text("")


# What is done, the exit code that has to come, and whether a rank is to blame.
FAULTS = {
    "a rank gets SIGKILL": (lambda t: t.signal_rank(signal.SIGKILL.value), {75}, True),
    "a rank gets SIGSEGV": (lambda t: t.signal_rank(signal.SIGSEGV.value), {75}, True),
    "a rank stands still (SIGSTOP)": (lambda t: t.signal_rank(signal.SIGSTOP.value), {75}, True),
    "the starter gets SIGTERM": (lambda t: t.stop(lambda running: running.send_signal(signal.SIGTERM)), {85}, False),
    "a file asks to stop": (lambda t: t.stop(ask_by_file(t.folder)), {85}, False),
    "a part of the last checkpoint is cut": (lambda t: t.damage(cut), {0}, False),
    "a bit of a part is flipped": (lambda t: t.damage(flip), {0}, False),
    "a part is missing": (lambda t: t.damage(Path.unlink), {0}, False),
    "the disk is full": (None, {0, 7}, False),
    "nothing": (lambda t: t.stop(lambda running: None), {0}, False),
}


def mounted(folder, size):
    (folder / "run").mkdir()
    return subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder / "run")], capture_output=True).returncode == 0


def full_disk(trial):
    """Room for two checkpoints, and for no third beside them."""
    if not mounted(trial.folder, trial.draw.randint(150, 190) << 20):
        return False
    try:
        trial.stop(lambda running: None)
        subprocess.run(["mount", "-o", "remount,size=2g", str(trial.folder / "run")], check=True)
        trial.went_on = trial.code == 0 or trial.goes_on()
    finally:
        subprocess.run(["umount", str(trial.folder / "run")], check=True)
    return True


def row_of(name, options, draw):
    act, codes, has_culprit = FAULTS[name]
    trials, wrong = [], []
    for number in range(options.trials):
        folder = options.folder / f"{name.replace(' ', '_')}-{number}"
        folder.mkdir()
        (folder / "recipe.yaml").write_text(RECIPE.format(text=options.text, model=options.model, tokens=STEPS * 6 * 64, every=EVERY))
        trial = Trial(options, folder, draw)
        if name == "the disk is full":
            if not full_disk(trial):
                return None
        else:
            act(trial)
            trial.named = not has_culprit or trial.names_culprit()
            if name == "nothing":
                trial.named = not re.search("warning:|error:", trial.text)
            trial.went_on = trial.code == 0 or trial.goes_on()
        trials.append(trial)
        if trial.code not in codes or not trial.went_on or not trial.named:
            wrong.append(f"{name}, trial {number}: code {trial.code}, went on {trial.went_on}, culprit named, or no alarm {trial.named}: "
                         f"{trial.text[-300:]}")
        shutil.rmtree(folder)
    seconds = [trial.seconds for trial in trials if trial.seconds is not None]
    codes = " ".join(str(code) for code in sorted({trial.code for trial in trials}))
    culprit = f"{sum(trial.named for trial in trials)} of {len(trials)}" if has_culprit else ""
    return [name, len(trials), codes, f"{statistics.median(seconds):.1f}", f"{max(seconds):.1f}", culprit,
            f"{sum(trial.went_on for trial in trials)} of {len(trials)}"], wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, type=lambda text: str(Path(text).resolve()))
    parser.add_argument("--text", required=True, type=lambda text: str(Path(text).resolve()))
    parser.add_argument("--model", default="models/europa-5m", type=lambda text: str(Path(text).resolve()))
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    temporary = None if options.folder else tempfile.mkdtemp(prefix="faults-")
    options.folder = options.folder or Path(temporary)
    options.folder.mkdir(exist_ok=True)
    print("| fault | trials | exit code | seconds, median | longest | culprit named | goes on |\n|---|---:|---:|---:|---:|---:|---:|")
    faults = []
    for name in FAULTS:
        if options.only in name:
            found = row_of(name, options, random.Random(f"{options.seed} {name}"))
            if found is None:
                print(f"| {name} | not tried: needs the right to mount | | | | | |")
                continue
            print("| " + " | ".join(str(cell) for cell in found[0]) + " |", flush=True)
            faults += found[1]
    for fault in faults:
        print(fault, file=sys.stderr)
    if temporary:
        shutil.rmtree(temporary)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
