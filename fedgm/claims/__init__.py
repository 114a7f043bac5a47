"""The paper's claims C1-C8 as code, by the rules of docs/claims.md: pure functions of measured curves."""
