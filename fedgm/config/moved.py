"""Targets that have moved and keys that are gone: stored runs have the old ones, and keep their hash."""

from typing import Any

# `_target_` now -> as older runs have it.
MOVED: dict[str, str] = {
    "fedgm.client.rules.FedProx": "fedgm.client.fedprox.FedProx",
    "fedgm.client.rules.LastUpdates": "fedgm.client.memory.LastUpdates",
    "fedgm.client.rules.Plain": "fedgm.client.rule.Plain",
    "fedgm.client.rules.Scaffold": "fedgm.client.scaffold.Scaffold",
    "fedgm.models.convolutional.cnn": "fedgm.models.cnn.cnn",
    "fedgm.models.convolutional.resnet": "fedgm.models.resnet.resnet",
    "fedgm.models.convolutional.vgg11": "fedgm.models.vgg.vgg11",
    "fedgm.participation.ideal": "fedgm.participation.Ideal",
    "fedgm.participation.under_clock": "fedgm.participation.Event",
    "fedgm.running.mlflow.MlflowLogger": "fedgm.track.mlflow.MlflowLogger",
    "fedgm.schedule.Constant": "fedgm.server.Constant",
    "fedgm.schedule.Multistage": "fedgm.server.Multistage",
    "fedgm.schedule.every_round.Cosine": "fedgm.server.decay.Cosine",
    "fedgm.schedule.every_round.Cyclic": "fedgm.server.decay.Cyclic",
    "fedgm.schedule.every_round.Polynomial": "fedgm.server.decay.Polynomial",
    "fedgm.schedule.every_round.Sutskever": "fedgm.server.sutskever.Sutskever",
    "fedgm.schedule.every_round.UniformAverage": "fedgm.server.schedule_free.UniformAverage",
    "fedgm.schedule.every_round.WarmupStep": "fedgm.server.decay.WarmupStep",
    "fedgm.schedule.stages.Stages": "fedgm.server.stages.Stages",
    "fedgm.server.adaptive.FedAMS": "fedgm.server.fedams.FedAMS",
    "fedgm.server.adaptive.FedAMSGrad": "fedgm.server.fedamsgrad.FedAMSGrad",
    "fedgm.server.adaptive.FedAdagrad": "fedgm.server.fedadagrad.FedAdagrad",
    "fedgm.server.adaptive.FedAdam": "fedgm.server.fedadam.FedAdam",
    "fedgm.server.adaptive.FedYogi": "fedgm.server.fedyogi.FedYogi",
    "fedgm.server.adaptive.NormalizedMomentum": "fedgm.server.nsgdm.NormalizedMomentum",
    "fedgm.server.adaptive.QHAdam": "fedgm.server.qhadam.QHAdam",
    "fedgm.tasks.cross_entropy.Classification": "fedgm.tasks.classification.Classification",
    "fedgm.tasks.cross_entropy.NextToken": "fedgm.tasks.next_token.NextToken",
    "fedgm.upload.compression.Qsgd": "fedgm.upload.qsgd.Qsgd",
    "fedgm.upload.compression.Qsparse": "fedgm.upload.qsgd.Qsparse",
    "fedgm.upload.compression.TopK": "fedgm.upload.topk.TopK",
    "fedgm.upload.message.Plain": "fedgm.upload.plain.Plain",
}
# As runs between the two have it -> now.
BETWEEN: dict[str, str] = {
    "fedgm.schedule.decay.Cosine": "fedgm.schedule.every_round.Cosine",
    "fedgm.schedule.decay.Cyclic": "fedgm.schedule.every_round.Cyclic",
    "fedgm.schedule.decay.Polynomial": "fedgm.schedule.every_round.Polynomial",
    "fedgm.schedule.decay.WarmupStep": "fedgm.schedule.every_round.WarmupStep",
    "fedgm.schedule.schedule_free.UniformAverage": "fedgm.schedule.every_round.UniformAverage",
    "fedgm.schedule.sutskever.Sutskever": "fedgm.schedule.every_round.Sutskever",
}
RETIRED = ("trainer.devices",)  # never part of a hash; trainer.workers says it
NOW = {before: now for now, before in MOVED.items()} | BETWEEN


def with_present_targets(node: Any) -> Any:
    """A tree of stored values with every target where it is today."""
    if isinstance(node, dict):
        return {
            key: NOW.get(value, value)
            if key == "_target_" and isinstance(value, str)
            else with_present_targets(value)
            for key, value in node.items()
        }
    return [with_present_targets(value) for value in node] if isinstance(node, list) else node


def without_retired_keys(values: dict[str, Any]) -> dict[str, Any]:
    """Stored values without the keys that no version reads any more."""
    kept = dict(values)
    for group, name in (key.split(".") for key in RETIRED):
        if isinstance(kept.get(group), dict):
            kept[group] = {key: value for key, value in kept[group].items() if key != name}
    return kept
