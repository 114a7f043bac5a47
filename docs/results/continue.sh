#!/usr/bin/env bash
# Continues the runs behind docs/results, in the order of docs/predictions.md: one lane for each profile.
#   bash docs/results/continue.sh full 1     # the lane, and how many runs stand side by side
#   bash docs/results/continue.sh small 1
#   bash docs/results/continue.sh keep        # packs stopped runs of `full` into docs/results/unfinished.tar.gz, for another machine
# What is finished, here or in docs/results, is skipped; what was stopped goes on where it was.
set -eu
cd "$(dirname "$0")/../.."
lane=$1 workers=${2:-1}
fedgm=${FEDGM:-.venv/bin/fedgm}
store=docs/results/$lane
export WANDB_MODE=disabled OMP_NUM_THREADS=1

kept=docs/results/unfinished.tar.gz  # an archive: what reads docs/results does not take it for results
if [ "$lane" = keep ]; then
  files=()
  for run in $(grep -rlE '"status": "(paused|running|stopped)"' --include=summary.json outputs | xargs -r grep -l '"profile": "full"' |
      xargs -r -n 1 dirname); do
    files+=("$run"/{config.yaml,metrics.jsonl,summary.json} "$(find "$run/checkpoints" -name '*.ckpt' | sort | tail -1)")
  done
  [ ${#files[@]} = 0 ] && rm -f "$kept" && exit
  tar -czf "$kept.tmp" "${files[@]}" && mv "$kept.tmp" "$kept"  # whole, or the one before it
  exit
fi
if [ "$lane" = full ] && [ -f "$kept" ]; then
  tar -xzf "$kept" --skip-old-files  # what another machine had begun
fi

mkdir -p "$store"
grid() {  # run a sweep to its end, keep its rows and its winner
  "$fedgm" sweep "sweeps/$1.yaml" track=none --workers "$workers" --stored "$store" || return 1
  "$fedgm" sweep "sweeps/$1.yaml" track=none --stored "$store" --best --export "$store/$1.jsonl" ${2---write}
}
figure() {  # run the lines of a figure, keep their rows: NAME SEEDS FILE
  "$fedgm" reproduce "$1" track=none --profile "$lane" --seeds "$2" --workers "$workers" --known docs/results \
    --export "$store/$3.jsonl" --out "outputs/drawn/$lane/$3"
}

if [ "$lane" = full ]; then
  grid full_fedavg && grid full_fedavgm && grid full_fedgm
  for seed in 1 2 3; do figure fig1ab "$seed," "fig1ab_seed$seed"; done                  # E1
  exit
fi
grid literal_fedavg_grid && grid literal_fedgm_grid                                      # E3
figure autonomous_literal 3 autonomous_literal
figure fig1ab 4,5,6 fig1ab_seeds456                                                      # E4
figure multistage_fedavg 3 multistage_fedavg
for seed in 1 2 3; do figure long "$seed," "long_seed$seed"; done                        # E2
for seed in 3 4 5 6 7; do figure fig8 "$seed," "fig8_seed$seed"; done                    # E4
for seed in 3 4 5 6 7; do figure fig2 "$seed," "fig2_seed$seed"; done
figure multistage_augmented 3 multistage_augmented                                       # E7
grid autonomous_small_eta ""
