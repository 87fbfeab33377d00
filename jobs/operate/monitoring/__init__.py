"""`turntide ops monitoring`: metrics, rules, dashboards and runbooks in step."""
