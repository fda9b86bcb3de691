#!/bin/bash
# Whether ranks train under a limit of memory that refuses one rank alone.  Each rank is in a control group of its own
# (version 1), as on a machine of its own.  Needs root, Open MPI, a finished run of recipes/smollm2.yaml, and its text.
#
#   benchmarks/memory_limit/ranks.sh RETORT RUN_OF_SMOLLM2 LIMIT_BYTES RANKS
set -u
program=$1 run=$2 limit=$3 ranks=$4
groups=/sys/fs/cgroup/memory/retort
folder=$(mktemp -d)
for rank in $(seq 0 $((ranks - 1))); do
  mkdir -p $groups-$rank
  echo "$limit" > $groups-$rank/memory.limit_in_bytes
  echo 0 > $groups-$rank/memory.max_usage_in_bytes 2>/dev/null
done
cat > "$folder/recipe.yaml" <<RECIPE
version: 1
data:
  manuals: {path: "/usr/share/debian-reference/debian-reference.en.txt.gz", separator: "\n\n\n"}
stages:
  - {name: student, kind: distill, from: $run/models/pruned, teacher: models/smollm2.gguf, data: [manuals], tokens: 12k,
     batch: {sequences: 1, accumulate: 4}, checkpoint_every_steps: 3, head_rows: 128, recompute: always,
     shard: {student_ranks: SHARD, teacher_ranks: SHARD}}
RECIPE
as_rank='echo $$ > '$groups'-${OMPI_COMM_WORLD_RANK:-0}/cgroup.procs; exec "$0" "$@"'

echo "one rank:"
sed 's/SHARD/1/g' "$folder/recipe.yaml" > "$folder/one.yaml"
bash -c "$as_rank" "$program" run "$folder/one.yaml" --run-dir "$folder/one" 2>&1 | grep -E "error|available" | cut -c1-400
echo "code ${PIPESTATUS[0]}"

echo "$ranks ranks:"
sed "s/SHARD/$ranks/g" "$folder/recipe.yaml" > "$folder/all.yaml"
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
OMPI_MCA_hwloc_base_binding_policy=none OMP_NUM_THREADS=1 RETORT_RANKS_PER_NODE=1 \
  mpirun.openmpi -n "$ranks" bash -c "$as_rank" "$program" run "$folder/all.yaml" --run-dir "$folder/all" > "$folder/log" 2>&1
echo "code $?"
grep -E "memory plan|total|peak|step +6/6|loss|error" "$folder/log" | tail -12
for rank in $(seq 0 $((ranks - 1))); do
  echo "rank $rank: most $(cat $groups-$rank/memory.max_usage_in_bytes) of $limit bytes, failures $(cat $groups-$rank/memory.failcnt)"
done
sleep 1
for rank in $(seq 0 $((ranks - 1))); do rmdir $groups-$rank; done
rm -rf "$folder"
