"""The archive published as Iceberg tables, for Spark, Trino and whatever else reads them; start at `publish`."""
