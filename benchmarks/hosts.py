"""Two "hosts" on this machine: network namespaces with host names of their own, joined by one link.

MPI sees two machines, and their ranks share no memory.  Needs root, Debian's iproute2 and openmpi-bin.
"""

import contextlib
import os
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent

HOSTS = {"retort-a": "10.77.0.1", "retort-b": "10.77.0.2"}
FIRST = next(iter(HOSTS))

# Of many ranks on few processors, each with one thread.
CROWDED = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none", "OMP_NUM_THREADS": "1"}

# mpirun misses a host after about 25 seconds.
SETTINGS = CROWDED | {
    "OMPI_MCA_oob_tcp_keepalive_time": "10", "OMPI_MCA_oob_tcp_keepalive_intvl": "5", "OMPI_MCA_oob_tcp_keepalive_probes": "3",
    "OMPI_MCA_btl": "self,vader,tcp",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_btl_tcp_if_include": "10.77.0.0/24",
    "OMPI_MCA_oob_tcp_if_include": "10.77.0.0/24", "OMPI_MCA_plm_rsh_agent": str(HERE / "host_agent"),
    "OMP_WAIT_POLICY": "passive"} | {f"RETORT_HOST_{address.replace('.', '_')}": host for host, address in HOSTS.items()}


def call(*words):
    subprocess.run([str(word) for word in words], check=True, capture_output=True)


class Link:
    """Both hosts and what joins them, while it lives.  A rate is as `tc` takes it; without one nothing limits the link."""

    def __init__(self, rate=None):
        self.rate = rate

    def __enter__(self):
        self.__exit__()
        for host in HOSTS:
            call("ip", "netns", "add", host)
            call("ip", "-n", host, "link", "set", "lo", "up")
        first, second = HOSTS
        call("ip", "link", "add", "link0", "netns", first, "type", "veth", "peer", "name", "link0", "netns", second)
        for host, address in HOSTS.items():
            call("ip", "-n", host, "address", "add", f"{address}/24", "dev", "link0")
            self.turn("up", host)
            if self.rate:
                call("tc", "-n", host, "qdisc", "add", "dev", "link0", "root", "tbf", "rate", self.rate, "burst", "256kb",
                     "latency", "200ms")
        return self

    def __exit__(self, *_):
        for host in HOSTS:
            subprocess.run(["ip", "netns", "delete", host], capture_output=True)

    @staticmethod
    def turn(state, host=FIRST):
        """`up` or `down`."""
        call("ip", "-n", host, "link", "set", "link0", state)


def processes(host):
    return [int(pid) for pid in subprocess.run(["ip", "netns", "pids", host], check=True, capture_output=True, text=True).stdout.split()]


def signal_all(host, number):
    """To every process there; returns which got it."""
    reached = []
    for pid in processes(host):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            reached.append(pid)
    return reached


def mpirun(ranks_per_host, command, *names):
    """The words that start so many ranks of a command on each host; these variables go with them."""
    hosts = ",".join(f"{address}:{ranks_per_host}" for address in HOSTS.values())
    words = ["ip", "netns", "exec", FIRST, "unshare", "--uts", "bash", "-c", 'hostname "$0" && exec "$@"', FIRST,
             "mpirun.openmpi", "--host", hosts, "-n", str(ranks_per_host * len(HOSTS))]
    for name in ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", *names):
        words += ["-x", name]
    return [*words, *map(str, command)]
