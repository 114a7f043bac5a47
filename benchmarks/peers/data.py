"""The images and the split of W1 and W2 for programs that do not know fedgm.

python -m benchmarks.peers.data FILE.npz
"""

import sys

import numpy as np

from benchmarks.workload import clients


def main() -> None:
    fed = clients("W1 ResNet-8, 32x32")
    own = [fed.partition.indices(client) for client in range(fed.count)]
    np.savez(
        sys.argv[1], images=fed.images.train_images.numpy(), labels=fed.images.train_labels.numpy(),
        order=np.concatenate(own), ends=np.cumsum([len(part) for part in own]),
    )  # fmt: skip


if __name__ == "__main__":
    main()
