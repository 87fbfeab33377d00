"""`turntide ops contracts`: the published schemas, AsyncAPI and data dictionary."""
