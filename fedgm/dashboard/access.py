"""Who may see a served page: whoever has opened the address that the command printed."""

import secrets
from hmac import compare_digest

COOKIE = "fedgm-dashboard"


class Access:
    """A token in the first address is exchanged for a cookie, so that no address in the browser has it.

    Other users of the machine can reach the port, and other servers of the machine get the same cookies: the
    port is in the cookie's name, so that two dashboards do not overwrite each other's.
    """

    def __init__(self, port: int) -> None:
        self.name = f"{COOKIE}-{port}"
        self._token, self._session = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self._once: set[str] = set()

    @property
    def token(self) -> str:
        """For the address that is printed: it works until the server ends."""
        return self._token

    def once(self) -> str:
        """A token that works once, for the browser that is opened: other users can see its arguments."""
        token = secrets.token_urlsafe(24)
        self._once.add(token)
        return token

    def accepts(self, token: str) -> bool:
        """Whether the first address has the right token."""
        if token in self._once:
            self._once.discard(token)
            return True
        return _equal(token, self._token)

    def set_cookie(self) -> str:
        """What a browser keeps instead: scripts cannot read it, other sites cannot use it."""
        return f"{self.name}={self._session}; Path=/; HttpOnly; SameSite=Lax"

    def recognises(self, cookies: str) -> bool:
        """Whether a request has the cookie; those of other servers may hold anything."""
        pairs = [pair.partition("=") for pair in cookies.split(";")]
        return any(name.strip() == self.name and _equal(value, self._session) for name, _, value in pairs)


def _equal(given: str, secret: str) -> bool:
    return compare_digest(given.strip().encode(), secret.encode())
