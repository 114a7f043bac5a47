#!/bin/sh
# Makes keys/: a CA, the SuperLink's certificate, and a key for each of N nodes. What is there stays.
#   sh certificates.sh N DNS:server.example.org,IP:10.0.0.1
# keys/ca.crt goes to every node, keys/client-i to node i alone; ca.key and server.key stay here.
# For trying out and for closed networks; an organisation with a CA of its own uses that.
set -eu
umask 077  # private keys are for their owner alone
mkdir -p keys
cd keys
new="-newkey ec -pkeyopt ec_paramgen_curve:secp384r1 -nodes"
if [ ! -e server.pem ]; then
    openssl req -x509 $new -days 365 -subj "/CN=fedgm CA" -addext "keyUsage=critical,keyCertSign" -keyout ca.key -out ca.crt
    openssl req $new -subj "/CN=fedgm server" -keyout server.key -out server.csr
    printf 'subjectAltName=%s\nbasicConstraints=CA:FALSE\nauthorityKeyIdentifier=keyid\n' "$2" > server.ext
    openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 365 -extfile server.ext -out server.pem
fi
i=0
while [ "$i" -lt "$1" ]; do
    [ -e "client-$i" ] || ssh-keygen -q -t ecdsa -b 384 -N "" -C "client-$i" -f "client-$i"
    i=$((i + 1))
done
