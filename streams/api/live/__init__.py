"""The live page: sessions by risk, alerts, health of roles. Read first: `board`, then `hub`, then `routes`."""
