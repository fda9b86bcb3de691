#!/usr/bin/env python3
"""The faults of ranks, one after the other: how a run ends, how soon, whether it names the culprit, and whether the next
start goes on.

    faults.py --program build/release/cli/retort --text FILE --trials 5 [--ranks 3] [--seed 1] [--only NAME] [--mpirun PROGRAM]
    faults.py --program build/release/cli/retort --text FILE --trials 5 --hosts

A stage trains a small model on several ranks and saves a checkpoint every 4 steps.  Each trial brings one fault into a run of
its own, at a random step.  Seconds are those until the last process has ended.  Of a damaged checkpoint they are those until
the next start goes on, of a second job those until it is refused.  --hosts has the faults of two machines, with two ranks each
(hosts.py says what that needs).  A full disk and a lack of memory need the rights to mount a small file system and to make a
control group (version 1); they are left out without them.
Prints a Markdown table; ends with 1 where a run ended otherwise than it should, or where one in which nothing happened warned of something.
"""

import contextlib
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
from kills import EVERY, command, ended_all, last_checkpoint, last_step, parsed, parser_of, processes_of, write_recipe

STEPS = 72  # a slow rank is told of within fifty
SAVING_SECONDS = 0.15  # about what a commit takes

# Enters a control group, is not the one that the system kills there, and takes memory.
GREEDY = """
import pathlib, sys
open(sys.argv[1] + "/cgroup.procs", "w").write("0")
open("/proc/self/oom_score_adj", "w").write("-1000")
victim = pathlib.Path("/proc", sys.argv[2], "stat")
taken = []
while victim.exists() and victim.read_text().rsplit(")")[-1].split()[0] not in "ZX":
    taken.append(b"x" * (len(taken) + (1 << 20)))
"""


class Trial:
    """A run of its own in which something goes wrong."""

    def __init__(self, options, folder, draw):
        self.options, self.folder, self.draw = options, folder, draw
        self.log = folder / "stderr"
        self.group = None  # the control group that it runs in
        self.text, self.told, self.code, self.seconds, self.culprit, self.complete = "", "", None, None, None, False
        self.hurt = 1  # ranks that may be named

    def start(self):
        enter = ["sh", "-c", 'echo 0 > "$0/cgroup.procs"; exec "$@"', str(self.group)] if self.group else []
        with open(self.log, "a+") as log:
            return subprocess.Popen([*enter, *command(self.options, "run", self.options.ranks)], cwd=self.folder, stdin=subprocess.DEVNULL,
                                    stdout=log, stderr=log)

    def finish(self, running, pids):
        self.seconds = ended_all(running, pids)
        self.code = running.wait() if self.seconds is not None else None
        self.complete = self.code == 0
        self.text = self.log.read_text()

    def disturb(self, act):
        """Starts a run, and acts on it and its processes a few steps later."""
        running = self.start()
        steps = self.draw.randint(EVERY + 1, 3 * EVERY)
        while running.poll() is None and last_step(self.folder, "run") < steps:
            time.sleep(0.005)
        pids = processes_of(running.pid)
        act(running, pids)
        self.finish(running, pids)

    def signal_rank(self, number):
        def act(_, pids):
            self.culprit = self.draw.randrange(len(pids))
            os.kill(pids[self.culprit], number)
        self.disturb(act)

    def kill_while_saving(self):
        """At a random moment of the commit of a checkpoint, or just after it."""
        def act(running, pids):
            self.culprit = self.draw.randrange(len(pids))
            moment = self.draw.random() * SAVING_SECONDS
            while running.poll() is None and not any((self.folder / "run/checkpoints/born").glob(".step-*")):
                time.sleep(0.0005)
            time.sleep(moment)
            os.kill(pids[self.culprit], signal.SIGKILL)
        self.disturb(act)

    def take_memory(self):
        """Shares a limit of memory with a program that takes all of it, until the system kills a rank."""
        self.group = Path("/sys/fs/cgroup/memory/retort-faults")

        def act(_, pids):
            self.culprit = self.draw.randrange(len(pids))
            Path(f"/proc/{pids[self.culprit]}/oom_score_adj").write_text("1000")
            used = int((self.group / "memory.usage_in_bytes").read_text())
            (self.group / "memory.limit_in_bytes").write_text(str(used + (16 << 20)))
            others.append(subprocess.Popen([sys.executable, "-c", GREEDY, str(self.group), str(pids[self.culprit])]))
        others = []
        try:
            self.group.mkdir()
        except OSError:
            raise PermissionError from None
        try:
            self.disturb(act)
        finally:
            for other in others:
                other.kill()
                other.wait()
            counted = re.search(r"oom_kill (\d+)", (self.group / "memory.oom_control").read_text())
            self.hurt = int(counted[1]) if counted else 1
            while (self.group / "cgroup.procs").read_text():
                time.sleep(0.1)
            self.group.rmdir()
            self.group = None

    def slow_rank_down(self):
        """Lets a rank compute a third of the time, until the run ends."""
        def act(running, pids):
            self.culprit = self.draw.randrange(len(pids))
            while running.poll() is None:
                for number, seconds in ((signal.SIGSTOP, 0.02), (signal.SIGCONT, 0.01)):
                    try:
                        os.kill(pids[self.culprit], number)
                    except ProcessLookupError:
                        return
                    time.sleep(seconds)
        self.disturb(act)

    def kill_starter(self):
        self.disturb(lambda running, _: running.kill())

    def signal_starter(self, number):
        self.disturb(lambda running, _: running.send_signal(number))

    def ask_by_file(self):
        self.disturb(lambda *_: (self.folder / "run/stop").write_text(""))

    def start_another(self):
        """In the same directory, where it has to be refused."""
        def act(*_):
            begun = time.monotonic()
            second.append(subprocess.run(command(self.options, "run", self.options.ranks), cwd=self.folder, capture_output=True).returncode)
            second.append(time.monotonic() - begun)
        second = []
        self.disturb(act)
        if self.complete:  # else its own code shows that the first job was hurt
            self.code, self.seconds = second

    def leave_alone(self):
        self.disturb(lambda *_: None)

    def damage(self, change):
        """Stops a run, damages a part of its last checkpoint, and starts it again."""
        self.signal_starter(signal.SIGUSR1)
        last = max((self.folder / "run/checkpoints/born").glob("step-*"))
        parts = sorted(path for path in last.iterdir() if path.name != "manifest.json")
        change(self.draw.choice(parts))
        self.log.write_text("")
        begun = time.monotonic()
        running = self.start()
        while running.poll() is None and "going on after step" not in self.log.read_text():
            time.sleep(0.005)
        noticed = time.monotonic() - begun
        self.finish(running, [])
        self.seconds = noticed

    def fill_disk(self):
        """Has room for two checkpoints, and for no third beside them; then there is room again."""
        run = self.folder / "run"
        run.mkdir()
        size = self.draw.randint(150, 190) << 20
        if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(run)], capture_output=True).returncode:
            raise PermissionError
        self.leave_alone()
        subprocess.run(["mount", "-o", "remount,size=2g", str(run)], check=True)

    def lose(self, stops):
        """The link between the hosts goes, and where `stops` says so all that runs on the second stands still."""
        def act(_, pids):
            hosts.Link.turn("down")
            if stops:
                stopped = hosts.signal_all("retort-b", signal.SIGSTOP)
                pids[:] = [pid for pid in pids if pid not in stopped]
        try:
            self.disturb(act)
        finally:
            for host in hosts.HOSTS:
                hosts.signal_all(host, signal.SIGKILL)
            hosts.Link.turn("up")

    def clear(self):
        if os.path.ismount(self.folder / "run"):
            subprocess.run(["umount", str(self.folder / "run")], check=True)
        shutil.rmtree(self.folder)

    def blames_right(self):
        """Whether message and autopsy name the culprit, and no more ranks than were killed; where there is none, whether a run to the end
        was left in peace."""
        if self.culprit is None:
            return self.code != 0 or not re.search("error:", self.text)
        if self.code == 0:
            return f"rank {self.culprit} is slow" in self.text
        done = subprocess.run([self.options.program, "autopsy", "run"], cwd=self.folder, capture_output=True, text=True)
        self.told = done.stdout + done.stderr
        mark = f"rank {self.culprit} "
        return all(mark in said and len(set(re.findall(r"rank (\d+) (?:on \S+ )?\(process", said))) <= self.hurt for said in (self.text, self.told))

    def errors(self):
        """What was said of the end, and what autopsy says after it."""
        return " | ".join(re.findall("(?:error:|mpirun noticed) .*", self.text) + self.told.splitlines()[-1:])

    def goes_on(self):
        """The same command ends the run, from a checkpoint that lies no more than two behind; or it had ended."""
        if self.complete:
            return True
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


# Ends that mpirun gives a code of its own.
OF_MPIRUN = {"a rank gets SIGKILL": {137}, "a rank gets SIGKILL while a checkpoint is written": {137}, "a rank gets SIGSEGV": {139}, "memory is short, and the system kills a rank": {137}, "the starter gets SIGTERM": {1}}

# What is done, and the exit codes that may come.
FAULTS = {
    "a rank gets SIGKILL": (lambda t: t.signal_rank(signal.SIGKILL), {75}),
    "a rank gets SIGSEGV": (lambda t: t.signal_rank(signal.SIGSEGV), {75}),
    "a rank gets SIGKILL while a checkpoint is written": (Trial.kill_while_saving, {75}),
    "memory is short, and the system kills a rank": (Trial.take_memory, {75}),
    "a rank stands still (SIGSTOP)": (lambda t: t.signal_rank(signal.SIGSTOP), {75}),
    "a rank is three times as slow": (Trial.slow_rank_down, {0}),
    "the starter gets SIGKILL": (Trial.kill_starter, {-9}),
    "the starter gets SIGTERM": (lambda t: t.signal_starter(signal.SIGTERM), {85}),
    "a file asks to stop": (Trial.ask_by_file, {85}),
    "a part of the last checkpoint is cut": (lambda t: t.damage(cut), {0}),
    "a bit of a part is flipped": (lambda t: t.damage(flip), {0}),
    "a part is missing": (lambda t: t.damage(Path.unlink), {0}),
    "the disk is full": (Trial.fill_disk, {0, 7}),
    "a second job in the same directory": (Trial.start_another, {7}),
    "nothing": (Trial.leave_alone, {0}),
}


FAULTS_OF_HOSTS = {
    "the link between two machines is lost": (lambda t: t.lose(stops=False), {205}),
    "a machine stands still, without a link": (lambda t: t.lose(stops=True), {205}),
}


def row_of(name, options, draw):
    """Cells of the row, and what went otherwise than it should."""
    act, codes = options.faults[name]
    codes = OF_MPIRUN.get(name, codes) if options.mpirun else codes
    trials, wrong = [], []
    for number in range(options.trials):
        folder = options.folder / f"{name.replace(' ', '_')}-{number}"
        write_recipe(options, folder, STEPS)
        trial = Trial(options, folder, draw)
        try:
            act(trial)
            trial.named, trial.went_on = trial.blames_right(), trial.goes_on()
            if name == "nothing" and "warning:" in trial.text:
                trial.named = False
        finally:
            trial.clear()
        trials.append(trial)
        if trial.code not in codes or not trial.went_on or not trial.named:
            wrong.append(f"{name}, trial {number}: code {trial.code}, went on {trial.went_on}, blamed right {trial.named}: rank {trial.culprit}; {trial.errors()}")
    seconds = [trial.seconds for trial in trials if trial.seconds is not None]
    codes = " ".join(sorted({str(trial.code) for trial in trials}))
    culprit = f"{sum(trial.named for trial in trials)} of {len(trials)}" if trials[0].culprit is not None else ""
    return [name, len(trials), codes, f"{statistics.median(seconds):.1f}", f"{max(seconds):.1f}", culprit,
            f"{sum(trial.went_on for trial in trials)} of {len(trials)}"], wrong


def rows(options):
    """Prints them; returns what went otherwise than it should."""
    faults = []
    for name in options.faults:
        if options.only not in name:
            continue
        try:
            cells, wrong = row_of(name, options, random.Random(f"{options.seed} {name}"))
        except PermissionError:
            print(f"| {name} | not tried: needs the rights of root | | | | | |")
            continue
        print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)
        faults += wrong
    return faults


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--hosts", action="store_true", help="the faults of two machines")
    options = parsed(parser)
    options.faults = FAULTS_OF_HOSTS if options.hosts else FAULTS
    if options.hosts:
        if options.mpirun or options.ranks != parser.get_default("ranks"):
            parser.error("--hosts starts two ranks on each host by mpirun; leave --ranks and --mpirun out")
        os.environ.update(hosts.SETTINGS)
        options.ranks = 2 * len(hosts.HOSTS)
    temporary = None if options.folder else tempfile.mkdtemp(prefix="faults-")
    options.folder = Path(options.folder or temporary)
    options.folder.mkdir(exist_ok=True)
    print("| fault | trials | exit code | seconds, median | longest | culprit named | goes on |\n|---|---:|---:|---:|---:|---:|---:|")
    with hosts.Link() if options.hosts else contextlib.nullcontext():
        faults = rows(options)
    for fault in faults:
        print(fault, file=sys.stderr)
    if temporary:
        shutil.rmtree(temporary)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
