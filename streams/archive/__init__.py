"""The Parquet archive in a DuckLake catalog."""
