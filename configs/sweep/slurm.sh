#!/usr/bin/env bash
# Run a planned sweep in one SLURM job: Ray on all of its nodes, `sweep run` on the first one.
#
#   python train.py sweep plan --config configs/sweep/released.yaml --output_dir runs/released
#   sbatch --nodes=4 --gpus-per-node=4 configs/sweep/slurm.sh runs/released
#   python train.py sweep status --output_dir runs/released --watch true
#
# Activate the Python environment before you submit the job; if the package is not installed in it,
# submit from the checkout. All nodes must see the environment, the checkout and the output folder at
# the same paths. Options after the folder are passed to `sweep run`. Before the time limit, and if the
# job is pre-empted with a signal to the script, the runs save their state, the job goes back into the
# queue, and it resumes from there.
#SBATCH --job-name=probelight-sweep
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --mem=64G
#SBATCH --time=04:00:00
#SBATCH --signal=B:TERM@180
#SBATCH --requeue
#SBATCH --no-kill
#SBATCH --open-mode=append
#SBATCH --output=%x-%j.log
set -euo pipefail
trap 'echo "slurm.sh, line $LINENO: $BASH_COMMAND has failed" >&2' ERR

output_dir="${1:?usage: sbatch slurm.sh OUTPUT_DIR [OPTIONS OF sweep run]}"
shift
readonly told_to_stop=143 # exit code of a sweep that SIGTERM stopped

# After a SIGTERM while Ray is still starting: nothing has run yet.
back_into_the_queue() {
    trap '' TERM
    scontrol requeue "$SLURM_JOB_ID"
    exit 0
}
trap back_into_the_queue TERM

# Anyone who reaches Ray's ports can run code there: this token keeps others out. srun passes it to
# the nodes in the environment, which only your own processes can read.
RAY_AUTH_TOKEN="$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')"
export RAY_AUTH_TOKEN RAY_AUTH_MODE=token
export RAY_USAGE_STATS_ENABLED=0
export RAY_ENABLE_UV_RUN_RUNTIME_ENV=0       # Ray makes no environments of its own under `uv run`
export RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO=1  # a run without a GPU sees none
export RAY_memory_monitor_refresh_ms=0       # SLURM limits memory
export RAY_OBJECT_STORE_ALLOW_SLOW_STORAGE=1 # runs leave files, not objects

mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
address_of() { getent ahostsv4 "$1" | awk 'NR == 1 { print $1 }'; }
head_node="$(address_of "${nodes[0]}"):$((20000 + SLURM_JOB_ID % 10000))"
readonly temp_dir="/tmp/ray-$SLURM_JOB_ID" # short, because names of sockets have a limit

start_ray() { # NODE OPTION...: runs Ray on a node until the job ends
    local node="$1"
    shift
    srun --export=ALL --nodes=1 --ntasks=1 --nodelist="$node" \
        --cpus-per-task="$SLURM_CPUS_PER_TASK" --output=%x-%j-%N.log --open-mode=append \
        ray start --block --node-ip-address="$(address_of "$node")" \
        --num-cpus="$SLURM_CPUS_PER_TASK" --object-store-memory=100000000 \
        --temp-dir="$temp_dir" "$@" &
    steps+=($!)
}

# shellcheck disable=SC2317 # the trap calls it
end_ray() {
    kill "${steps[@]}" 2>/dev/null || true
    wait
    timeout 30 srun --export=ALL --nodes="${#nodes[@]}" --ntasks="${#nodes[@]}" \
        --ntasks-per-node=1 rm -rf "$temp_dir" || true
}

steps=()
trap end_ray EXIT
start_ray "${nodes[0]}" --head --port="${head_node##*:}" --include-dashboard=false
until ray health-check --address "$head_node" >/dev/null 2>&1; do
    kill -0 "${steps[0]}" # ends the script if Ray has not started
    sleep 1
done
for node in "${nodes[@]:1}"; do
    start_ray "$node" --address="$head_node"
done

# SLURM runs a job only once at a time: an earlier process that ran this sweep on another node has ended.
python -m probelight sweep run --output_dir "$output_dir" \
    --engine.address "$head_node" --engine.take_over true "$@" &
sweep=$!
trap 'kill -TERM "$sweep"' TERM
status=0
wait "$sweep" || status=$?
if kill -0 "$sweep" 2>/dev/null; then
    # The signal has ended `wait`, but not yet the sweep: its runs are saving their state.
    status=0
    wait "$sweep" || status=$?
fi
if [[ $status -eq $told_to_stop ]]; then
    back_into_the_queue
fi
exit "$status"
