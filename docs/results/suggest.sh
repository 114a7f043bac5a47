#!/usr/bin/env bash
# Holds suggested values against a grid of twelve points (docs/suggest.md): a problem is a name and its words.
#   bash docs/results/suggest.sh alpha03 +experiment=fedgm data.alpha=0.3
#   bash docs/results/suggest.sh vgg +experiment=vgg
#   bash docs/results/suggest.sh chitchat data=chitchat rounds=60 local.unit=steps local.epochs=5 local.optimizer=adamw \
#     local.lr=0.001 eval.every=2
#   GRID="docs/results/small/literal_fedavg_grid.jsonl docs/results/small/literal_fedgm_grid.jsonl" \
#     bash docs/results/suggest.sh delay5 +experiment=autonomous_literal                      # a grid that is stored
# The grid has seed 0, its best point and the suggested values seeds 1, 2, 3. What is finished is skipped.
set -eu
cd "$(dirname "$0")/../.."
name=$1 && shift
home=outputs/suggest/$name words=("$@" winners=null track=none)
fedgm=${FEDGM:-.venv/bin/fedgm} python=$(dirname "${FEDGM:-.venv/bin/fedgm}")/python
export WANDB_MODE=disabled OMP_NUM_THREADS=1

grid=${GRID:-docs/results/suggest/${name}_grid.jsonl}
if [ -z "${GRID:-}" ]; then
  "$fedgm" sweep twelve "${words[@]}" --workers "${WORKERS:-2}" --output-dir "$home"
  "$fedgm" sweep twelve "${words[@]}" --output-dir "$home" --best --export "$grid"
fi
best=$("$python" - $grid <<'PY'
import sys
from pathlib import Path
from fedgm.results import archive
runs = [run for file in sys.argv[1:] for run in archive.read(Path(file))]
run = max(runs, key=lambda run: run.score("test/acc") or 0)
print(*(f"algorithm.{key}={run.facts['stages'][0][key]:g}" for key in ("eta", "beta", "nu")))
PY
)
for seed in 1 2 3; do
  more=("${words[@]}" trainer.workers=1 "seed=$seed" "output_dir=$home")
  "$python" run.py "${more[@]}" algorithm=fedgm $best
  said=$("$fedgm" suggest "$@" track=none trainer.workers=1 "seed=$seed" "output_dir=$home")
  echo "$said"
  eval "$(echo "$said" | grep 'schedule=constant' | sed "s#^ *python#$python#")"
done
"$python" - "$home" "docs/results/suggest/$name.jsonl" <<'PY'
import sys
from pathlib import Path
from fedgm.results import archive
from fedgm.results.find import find
archive.write(Path(sys.argv[2]), [run for run in find([sys.argv[1]]) if run.is_done and run.facts["seed"]])
PY
