#!/bin/bash
# A recipe on a Slurm cluster: it saves before the time limit, and goes on in the next job.
#
#   sbatch --nodes=4 recipes/clusters/slurm.sh recipe.yaml /scratch/me/run
#
# Five minutes before the limit Slurm sends USR1 to the ranks; the run finishes its step, saves and ends with 85.  A rank
# that fails or hangs ends all with 75.  Both are queued again; anything else is an error for you.
#
# In srun's place mpirun of Open MPI 4.1 would kill ranks one second after SIGTERM.  OMPI_MCA_odls_base_sigkill_timeout says
# how many, and delays every early end by up to twice as long: leave it unset.  With mpirun ask for --signal=B:USR1@300, run it in
# the background, and trap USR1 to send it on to mpirun.  Set OMPI_MCA_oob_tcp_keepalive_* as pbs.sh does, and queue 205
# again.
#SBATCH --job-name=retort
#SBATCH --ntasks-per-node=2
#SBATCH --time=12:00:00
#SBATCH --signal=USR1@300
#SBATCH --requeue
#SBATCH --open-mode=append

recipe=$1 run=$2
srun --ntasks=1 retort doctor "$(dirname "$run")" || exit
srun --mpi=pmix retort run "$recipe" --run-dir "$run"
code=$?
case $code in
  0) echo "finished" ;;
  75 | 85) scontrol requeue "$SLURM_JOB_ID" ;;
esac
exit $code
