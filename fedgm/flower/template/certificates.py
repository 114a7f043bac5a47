"""Makes keys/: a CA, the SuperLink's certificate for HOST, and a key for each of N nodes.

python certificates.py N [HOST ...]
"""

import sys
from pathlib import Path

from fedgm.flower.keys import make

make(Path("keys"), nodes=int(sys.argv[1]), hosts=tuple(sys.argv[2:]) or ("127.0.0.1", "localhost"))
print("keys/ca.crt goes to every node, keys/client-i to node i alone; ca.key and server.key stay here")
