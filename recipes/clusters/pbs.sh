#!/bin/bash
# A recipe on a PBS cluster: it saves before the time limit, and goes on in the next job.
#
#   qsub -v recipe=recipe.yaml,run=/scratch/me/run,again=$PWD/recipes/clusters/pbs.sh recipes/clusters/pbs.sh
#
# PBS sends no signal in time, only SIGTERM at the limit.  So a file named stop asks the run to save, ten minutes before
# the limit.
#PBS -N retort
#PBS -l select=4:mpiprocs=2
#PBS -l walltime=12:00:00

cd "$PBS_O_WORKDIR" || exit
# Open MPI's mpiexec kills ranks one second after SIGTERM, or as many as this variable says.  But it waits them out, up
# to twice, after every early end, perhaps beyond the limit.  The file saves without it.
unset OMPI_MCA_odls_base_sigkill_timeout
# Where a machine or its link is lost, mpiexec ends with 205 after about 25 seconds instead of waiting for it.
export OMPI_MCA_oob_tcp_keepalive_time=10 OMPI_MCA_oob_tcp_keepalive_intvl=5 OMPI_MCA_oob_tcp_keepalive_probes=3
retort doctor "$(dirname "$run")" || exit
(sleep $((12 * 3600 - 600)) && touch "$run/stop") &
mpiexec retort run "$recipe" --run-dir "$run"
code=$?
kill %1 2>/dev/null
case $code in
  0) echo "finished" ;;
  75 | 85 | 205) qsub -v recipe="$recipe",run="$run",again="$again" "$again" ;;
esac
exit $code
