#!/usr/bin/env bash
# A sweep's workers as a SLURM array. Plan first, on any machine that sees the results folder:
#
#   python train.py sweep plan --config configs/sweep/released.yaml --output_dir runs/released \
#       --storage "$PROBELIGHT_STORAGE"
#   sbatch configs/sweep/slurm.sh runs/released
#   python train.py sweep status --output_dir runs/released --storage "$PROBELIGHT_STORAGE" --watch
#
# PROBELIGHT_STORAGE is a PostgreSQL that all nodes reach (postgresql+psycopg://user@host/database):
# the default, an SQLite file, is for the workers of one machine. The results folder is shared.
#
# Each task takes cells until none is left, so the array may have more or fewer tasks than there are
# cells, and may be started again at any time. Before the time limit SLURM sends SIGTERM: the cell
# saves its state, waits again, and whoever takes it goes on from there.
#SBATCH --job-name=probelight-sweep
#SBATCH --array=0-7
#SBATCH --gres=gpu:1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16G
#SBATCH --time=04:00:00
#SBATCH --signal=TERM@180
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%A-%a.log
set -euo pipefail

output_dir="${1:?usage: sbatch slurm.sh OUTPUT_DIR}"

# srun passes the signal on. 143 is a worker that was told to stop, not a failure.
status=0
srun --ntasks=1 python train.py sweep run --output_dir "$output_dir" \
    --trainer.accelerator gpu \
    ${PROBELIGHT_STORAGE:+--storage "$PROBELIGHT_STORAGE"} || status=$?
if [[ $status -eq 143 ]]; then
    # Stopped by the time limit or a pre-emption: back into the queue for what is left.
    scontrol requeue "${SLURM_ARRAY_JOB_ID:?}_${SLURM_ARRAY_TASK_ID:?}"
    exit 0
fi
exit "$status"
