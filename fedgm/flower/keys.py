"""Certificates and keys of a deployment: a CA, the SuperLink's certificate, a key for each node.

For trying out and for closed networks. An organisation with a CA of its own uses that.
"""
# pyright: reportMissingImports=false

import datetime
import ipaddress
import os
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

VALID = datetime.timedelta(days=365)


def make(folder: Path, nodes: int, hosts: tuple[str, ...] = ("127.0.0.1", "localhost")) -> None:
    """Write ca.crt, server.pem, server.key, and client-i with client-i.pub; what is there stays."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "server.pem").exists():
        ca_key, server_key = (ec.generate_private_key(ec.SECP384R1()) for _ in range(2))
        ca = _certificate("fedgm CA", ca_key, "fedgm CA", ca_key, ca=True)
        server = _certificate(hosts[0], server_key, "fedgm CA", ca_key, hosts=hosts)
        _write(folder / "ca.key", _private(ca_key))
        _write(folder / "server.key", _private(server_key))
        (folder / "ca.crt").write_bytes(ca.public_bytes(serialization.Encoding.PEM))
        (folder / "server.pem").write_bytes(server.public_bytes(serialization.Encoding.PEM))
    for number in range(nodes):
        if not (folder / f"client-{number}").exists():
            key = ec.generate_private_key(ec.SECP384R1())
            _write(folder / f"client-{number}", _private(key, serialization.PrivateFormat.OpenSSH))
            public = key.public_key().public_bytes(
                serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
            )
            (folder / f"client-{number}.pub").write_bytes(public + b"\n")


def _certificate(
    name: str, key: ec.EllipticCurvePrivateKey, issuer: str, issuer_key: ec.EllipticCurvePrivateKey,
    ca: bool = False, hosts: tuple[str, ...] = (),
) -> x509.Certificate:  # fmt: skip
    now = datetime.datetime.now(datetime.UTC)
    named = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)]) for text in (name, issuer)]
    builder = (
        x509.CertificateBuilder()
        .subject_name(named[0])
        .issuer_name(named[1])
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + VALID)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=0 if ca else None), critical=True)
    )
    if hosts:
        names = [_host(host) for host in hosts]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(issuer_key, hashes.SHA384())


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _private(
    key: ec.EllipticCurvePrivateKey,
    form: serialization.PrivateFormat = serialization.PrivateFormat.PKCS8,
) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def _write(path: Path, secret: bytes) -> None:
    """Readable by its owner alone, from the first byte on."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(secret)
