"""A run's configuration: its schema, its parts by ``_target_``, and which of them a stored run may build."""

from fedgm.config.schema import RunConfig, Track, compose, conf_dir, register, stored, validate

__all__ = ["RunConfig", "Track", "compose", "conf_dir", "register", "stored", "validate"]
