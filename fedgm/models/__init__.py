"""Image classifiers sized for CIFAR-10; any other one comes by ``_target_``."""
