"""A node's side: it trains one client, which the node's own configuration names.

flower-supernode --node-config "partition-id=0 state='/var/lib/fedgm' words='data.path=/data/mine.npz'"
"""

from fedgm.flower import client_app

app = client_app()
