"""Statistics by which claims are judged: pure functions of numbers, as docs/claims.md defines them."""
